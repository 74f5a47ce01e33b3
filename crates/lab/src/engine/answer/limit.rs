//! How many errors a node sends, by Linux' rules.
//!
//! Towards each destination a bucket that holds six errors and gets one more every interval
//! (`icmp_ratelimit`), and for the node as a whole a bucket of 50 that gets 1,000 a second
//! (`icmp_msgs_per_sec`, `icmp_msgs_burst`). An error takes from both, or is not sent and takes from
//! neither. What a sender needs to find the path's MTU is not limited.

use std::net::IpAddr;

use rustc_hash::FxHashMap;

use crate::{Nanos, NodeId};

/// How many ICMP errors nodes send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpLimits {
    /// Time for one more error of a node towards an IPv4 address; zero for no limit.
    pub interval4: Nanos,
    /// The same towards an IPv6 address.
    pub interval6: Nanos,
    /// Errors towards an address that may follow each other at once.
    pub burst: u32,
    /// Errors a second of a node in all; zero for no limit.
    pub rate: u32,
    /// Errors of a node that may follow each other at once.
    pub node_burst: u32,
}

impl Default for IcmpLimits {
    /// As Linux does by default.
    fn default() -> Self {
        Self {
            interval4: Nanos(1_000_000_000),
            interval6: Nanos(100_000_000),
            burst: 6,
            rate: 1000,
            node_burst: 50,
        }
    }
}

impl IcmpLimits {
    /// No limits.
    pub const OFF: Self =
        Self { interval4: Nanos::ZERO, interval6: Nanos::ZERO, burst: 0, rate: 0, node_burst: 0 };
}

/// Buckets that are kept at a time, of each kind. Full ones need not be kept.
const MOST: usize = 1 << 16;

/// A bucket, in time: `credit` grows as time goes by, up to that of a burst.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    credit: u64,
    at: Nanos,
}

/// The buckets of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    limits: IcmpLimits,
    nodes: FxHashMap<NodeId, Bucket>,
    destinations: FxHashMap<(NodeId, IpAddr), Bucket>,
}

impl Limiter {
    /// Full buckets.
    pub(crate) fn new(limits: IcmpLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Whether a node may send an error to an address now. If so it is taken for sent.
    pub(crate) fn allows(&mut self, now: Nanos, node: NodeId, to: IpAddr) -> bool {
        let limits = self.limits;
        let interval = if to.is_ipv4() { limits.interval4 } else { limits.interval6 }.0;
        let share = if limits.rate == 0 { 0 } else { 1_000_000_000 / u64::from(limits.rate) };
        let all = bucket(&mut self.nodes, node, now, share, limits.node_burst);
        let one = bucket(&mut self.destinations, (node, to), now, interval, limits.burst);
        let allowed = all.is_none_or(|bucket| bucket.credit >= share)
            && one.as_ref().is_none_or(|bucket| bucket.credit >= interval);
        if allowed {
            if let Some(bucket) = self.nodes.get_mut(&node) {
                bucket.credit -= share;
            }
            if let Some(bucket) = self.destinations.get_mut(&(node, to)) {
                bucket.credit -= interval;
            }
        }
        allowed
    }
}

/// The bucket of a key with what it has got by now; None where there is no limit.
fn bucket<K: std::hash::Hash + Eq + Copy>(
    buckets: &mut FxHashMap<K, Bucket>,
    key: K,
    now: Nanos,
    interval: u64,
    burst: u32,
) -> Option<Bucket> {
    if interval == 0 {
        return None;
    }
    let full = interval.saturating_mul(u64::from(burst.max(1)));
    let level = |bucket: &Bucket| (bucket.credit + now.since(bucket.at).0).min(full);
    if buckets.len() >= MOST && !buckets.contains_key(&key) {
        buckets.retain(|_, bucket| level(bucket) < full);
        if buckets.len() >= MOST {
            buckets.clear();
        }
    }
    let bucket = buckets.entry(key).or_insert(Bucket { credit: full, at: now });
    *bucket = Bucket { credit: level(bucket), at: now };
    Some(*bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sent(limiter: &mut Limiter, now: u64, to: &str, tries: usize) -> usize {
        let to = to.parse().expect("an address");
        (0..tries).filter(|_| limiter.allows(Nanos(now), NodeId(1), to)).count()
    }

    #[test]
    fn six_at_once_then_one_a_second() {
        let mut limiter = Limiter::new(IcmpLimits::default());
        assert_eq!(sent(&mut limiter, 0, "10.0.0.1", 20), 6);
        assert_eq!(sent(&mut limiter, SECOND - 1, "10.0.0.1", 20), 0);
        assert_eq!(sent(&mut limiter, SECOND, "10.0.0.1", 20), 1);
        assert_eq!(sent(&mut limiter, 3 * SECOND, "10.0.0.1", 20), 2);
        assert_eq!(sent(&mut limiter, 90 * SECOND, "10.0.0.1", 20), 6);
        assert_eq!(sent(&mut limiter, 90 * SECOND, "10.0.0.2", 20), 6);
        assert_eq!(sent(&mut limiter, 90 * SECOND, "2001:db8::1", 20), 6);
        assert_eq!(sent(&mut limiter, 90 * SECOND + SECOND / 10, "2001:db8::1", 20), 1);
    }

    #[test]
    fn a_node_sends_fifty_at_once_to_all_together() {
        let mut limiter = Limiter::new(IcmpLimits::default());
        let mut all = |now: u64| {
            (0..100)
                .map(|host| sent(&mut limiter, now, &format!("10.0.0.{host}"), 1))
                .sum::<usize>()
        };
        assert_eq!(all(0), 50);
        assert_eq!(all(SECOND / 100), 10);
    }

    #[test]
    fn without_limits_everything_is_sent() {
        let mut limiter = Limiter::new(IcmpLimits::OFF);
        assert_eq!(sent(&mut limiter, 0, "10.0.0.1", 1000), 1000);
        assert!(limiter.nodes.is_empty() && limiter.destinations.is_empty());
    }

    #[test]
    fn space_is_bounded() {
        let mut limiter = Limiter::new(IcmpLimits::default());
        for number in 0..3 * MOST as u32 {
            let to = IpAddr::from(number.to_be_bytes());
            limiter.allows(Nanos(u64::from(number) * 1000), NodeId(number), to);
        }
        assert!(limiter.nodes.len() <= MOST && limiter.destinations.len() <= MOST);
    }
}
