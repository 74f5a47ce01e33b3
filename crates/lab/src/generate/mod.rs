//! Internets made by rule: the same seed and numbers always make the same one.
//!
//! ```text
//!   tier 1     as1 ===== as2 ===== as3      all peer with each other
//!             /  |  \   /   \     /   \
//!   transit  as4--as5 as6----as7 as8  as9   buy from ASes before them, peer with their like
//!           /  \ /  |  |\    |  \  |    \
//!   stubs  ..............................   buy only, most have one router
//! ```
//!
//! An AS buys transit only from ASes of lower numbers, so no one is its own provider and everybody can
//! reach everybody. Low numbers are chosen most often, so a few ASes have very many customers; of two
//! candidates the nearer one is taken. ASes lie around cities on a plane, and a link's delay is that of
//! light in glass with a fifth of detours. Delays are rounded up to steps of 4 %, so that many links are
//! of one kind.
//!
//! Nothing is kept but where each AS begins: what an AS does follows from the seed and its number
//! (`draw`). So networks of 100 million routers are made without lists of their links.
mod draw;
mod kinds;
#[cfg(test)]
mod tests;
mod world;

use crate::network::{BuildError, Edge, Naming, Network, Plan, PrefixEntry, Source, from_source};
use kinds::Kinds;
use std::cell::RefCell;
use std::net::{Ipv4Addr, Ipv6Addr};
use thiserror::Error;
use world::World;

/// What to make.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct Generate {
    /// Routers
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    pub nodes: u32,
    /// Another seed makes another internet of the same kind
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// ASes at the top, which buy from nobody [default: a tenth of the routers, at most 12]
    #[arg(long, value_name = "COUNT")]
    pub tier1: Option<u32>,
    /// Share of the ASes that sell transit, from 0 to 0.9; the others are stubs
    #[arg(long, value_name = "SHARE", default_value_t = 0.15)]
    pub transit: f64,
    /// Mean number of routers of an AS that sells transit, from 1 to 1000
    #[arg(long, value_name = "MEAN", default_value_t = 6.0)]
    pub routers: f64,
    /// Mean number of routers of a stub, from 1 to 1000
    #[arg(long, value_name = "MEAN", default_value_t = 1.5)]
    pub stub_routers: f64,
    /// Mean number of providers of an AS, from 1 to 8
    #[arg(long, value_name = "MEAN", default_value_t = 2.0)]
    pub providers: f64,
    /// Mean number of peers that an AS seeks that sells transit, from 0 to 50
    #[arg(long, value_name = "MEAN", default_value_t = 4.0)]
    pub peers: f64,
    /// Mean number of IPv4 prefixes of an AS, from 1 to 1000; each has one IPv6 prefix
    #[arg(long, value_name = "MEAN", default_value_t = 3.0)]
    pub prefixes: f64,
    /// Give links a rate, by tier: packets then wait for each other, which costs more to simulate
    #[arg(long)]
    pub rates: bool,
}

impl Default for Generate {
    /// A thousand routers.
    fn default() -> Self {
        Self {
            nodes: 1_000,
            seed: 1,
            tier1: None,
            transit: 0.15,
            routers: 6.0,
            stub_routers: 1.5,
            providers: 2.0,
            peers: 4.0,
            prefixes: 3.0,
            rates: false,
        }
    }
}

/// Why nothing is made.
#[derive(Debug, Error, PartialEq)]
pub enum GenerateError {
    /// A number is out of its range.
    #[error("{name} is {value}; it must be from {least} to {most}")]
    Range {
        /// Which one.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it may be at least.
        least: f64,
        /// What it may be at most.
        most: f64,
    },
    /// There are more prefixes, or routers and links, than addresses.
    #[error("there are not enough IPv4 addresses for {what}: make fewer {fewer}")]
    Addresses {
        /// What needs them.
        what: String,
        /// What there is too much of.
        fewer: &'static str,
    },
    /// The network is too large.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is done now.
    pub step: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// Of how much.
    pub total: u64,
}

/// IPv4 addresses of routers, then of their interfaces: up to multicast.
const ROUTERS4: u32 = 0x8000_0000;
const ROUTERS4_END: u32 = 0xe000_0000;
/// IPv4 prefixes: up to 127.0.0.0/8.
const PREFIXES4: u32 = 0x0100_0000;
const PREFIXES4_END: u32 = 0x7f00_0000;
/// IPv6 addresses of routers and of interfaces.
const NODES6: u128 = 0x2001_0db8 << 96;
const LINKS6: u128 = NODES6 | 1 << 80;
/// AS n has the /48 that is 2a00 and the 32 bits of n.
const PREFIXES6: u128 = 0x2a00 << 112;

impl Generate {
    fn check(&self) -> Result<(), GenerateError> {
        let most = f64::from((self.nodes / 2).clamp(1, 1_000));
        let ranges = [
            ("nodes", f64::from(self.nodes), 2.0, f64::from((1_u32 << 31) - 1)),
            ("tier1", f64::from(self.tier1.unwrap_or(1)), 1.0, most),
            ("transit", self.transit, 0.0, 0.9),
            ("routers", self.routers, 1.0, 1_000.0),
            ("stub-routers", self.stub_routers, 1.0, 1_000.0),
            ("providers", self.providers, 1.0, 8.0),
            ("peers", self.peers, 0.0, 50.0),
            ("prefixes", self.prefixes, 1.0, 1_000.0),
        ];
        for (name, value, least, most) in ranges {
            // What is not a number is not in any range.
            if !(least..=most).contains(&value) {
                return Err(GenerateError::Range { name, value, least, most });
            }
        }
        Ok(())
    }

    /// Makes the network, and reports progress.
    ///
    /// # Errors
    ///
    /// A number is out of its range, or there are more routers or links than numbers and addresses.
    pub fn make(&self, progress: &mut dyn FnMut(Progress)) -> Result<Network, GenerateError> {
        self.check()?;
        let world = World::new(self);
        let kinds = Kinds::new(self.rates);
        let prefixes = (0..world.ases()).map(|number| world.prefixes(number)).sum();
        let length = block_length(prefixes)?;
        let made = Made { world: &world, kinds: &kinds, length, progress: RefCell::new(progress) };
        let plan = Plan {
            node4: Some(Ipv4Addr::from_bits(ROUTERS4)),
            link4: Some(Ipv4Addr::from_bits(ROUTERS4 + self.nodes)),
            node6: Some(Ipv6Addr::from_bits(NODES6)),
            link6: Some(Ipv6Addr::from_bits(LINKS6)),
        };
        let network = from_source(&made, kinds.list(), plan, Naming::Groups)?;
        let links = network.links();
        if u64::from(self.nodes) + u64::from(links) > u64::from(ROUTERS4_END - ROUTERS4) {
            let what = format!("{} routers and {links} links", self.nodes);
            return Err(GenerateError::Addresses { what, fewer: "routers" });
        }
        Ok(network)
    }
}

/// The length of the largest IPv4 prefixes: none longer than needed, from /12 to /30.
fn block_length(prefixes: u64) -> Result<u8, GenerateError> {
    let room = u64::from(PREFIXES4_END - PREFIXES4);
    let length = (12..=30_u8).find(|length| prefixes << (32 - length) <= room);
    length.ok_or_else(|| GenerateError::Addresses {
        what: format!("{prefixes} prefixes"),
        fewer: "prefixes",
    })
}

/// What the network is put together from.
struct Made<'w, 'p> {
    world: &'w World,
    kinds: &'w Kinds,
    /// Of the largest prefixes.
    length: u8,
    progress: RefCell<&'p mut dyn FnMut(Progress)>,
}

impl Made<'_, '_> {
    fn report(&self, step: &'static str, number: u32) {
        if number.is_multiple_of(1 << 14) {
            let (done, total) = (number.into(), self.world.ases().into());
            (self.progress.borrow_mut())(Progress { step, done, total });
        }
    }
}

impl Source for Made<'_, '_> {
    fn nodes(&self) -> u32 {
        self.world.nodes()
    }

    fn groups(&self) -> &[u32] {
        self.world.firsts()
    }

    fn edges(&self, mut give: impl FnMut(Edge)) {
        for number in 0..self.world.ases() {
            self.report("links are made", number);
            self.world.edges(number, |line| give(self.kinds.edge(line)));
        }
    }

    fn prefixes4(&self, mut give: impl FnMut(PrefixEntry<u32>)) {
        let mut next = u64::from(PREFIXES4);
        for number in 0..self.world.ases() {
            self.report("prefixes are given out", number);
            for prefix in 0..self.world.prefixes(number) {
                // No more is used than if all were of the largest size, for which there is room.
                let length = (self.length + self.world.longer(number, prefix)).min(30);
                let size = 1_u64 << (32 - length);
                let address = next.next_multiple_of(size);
                next = address + size;
                give((address as u32, length, self.world.router(number, prefix) << 1 | 1));
            }
        }
    }

    fn prefixes6(&self, mut give: impl FnMut(PrefixEntry<u128>)) {
        for number in 0..self.world.ases() {
            let address = PREFIXES6 | u128::from(number + 1) << 80;
            give((address, 48, self.world.router(number, 0) << 1 | 1));
        }
    }
}
