//! Which flows are removed when the kernel's table is full.
//!
//! While verdicts do not fit, the silent flows of those hosts that have more than an eighth of the table
//! are forgotten sooner, or of all hosts where no single one has: after half the time with each round in
//! which the table was full. It grows again by the same steps. A refused flow is not forgotten sooner, for its
//! next packet would be that of a new one.

use rustc_hash::{FxHashMap, FxHashSet};
use std::net::IpAddr;

/// Shortest silence after which a flow is forgotten, however full the table is.
const SHORTEST_NS: u64 = 5_000_000_000;
/// The times are halved so often, at most.
const MOST: u32 = 10;
/// A host that has more than one part in so many of all flows makes room alone.
const PART: usize = 8;

/// How full the table is, and of whose flows.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    halved: u32,
    hosts: FxHashSet<IpAddr>,
    full: u64,
}

impl Crowd {
    /// The silence after which a flow of this host is forgotten, which else is `idle_ns`.
    pub(super) fn idle_ns(&self, host: IpAddr, idle_ns: u64) -> u64 {
        if self.halved == 0 || !self.hosts.is_empty() && !self.hosts.contains(&host) {
            return idle_ns;
        }
        idle_ns.min((idle_ns >> self.halved).max(SHORTEST_NS))
    }

    /// A round has ended: `full` verdicts did not fit since the start, and these are the flows' hosts.
    pub(super) fn round(&mut self, full: u64, hosts: impl Iterator<Item = IpAddr>) {
        if full == std::mem::replace(&mut self.full, full) {
            self.halved = self.halved.saturating_sub(1);
            return;
        }
        self.halved = (self.halved + 1).min(MOST);
        let mut flows: FxHashMap<IpAddr, usize> = FxHashMap::default();
        let mut all = 0;
        for host in hosts {
            *flows.entry(host).or_default() += 1;
            all += 1;
        }
        let crowds = |(host, flows): (IpAddr, usize)| (flows > all / PART).then_some(host);
        self.hosts = flows.into_iter().filter_map(crowds).collect();
    }
}
