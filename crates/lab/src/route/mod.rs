//! Where packets go next, worked out when somebody asks.
//!
//! No node has a table of all destinations: a million nodes would need a million million entries. A
//! search finds the paths from the node where a packet is to the one where its address lives, and what
//! it found at the nodes on the path is kept in bounded space (`cache`). What is found does not depend
//! on what was asked before: at each node it is all links that begin a best path.
//!
//! A node's own forwarding entries come before that.
mod cache;
mod shortest;
#[cfg(test)]
mod tests;
mod valley;
mod view;

use crate::{LinkId, Network, NodeId};
use cache::{Cache, Hops};
use rustc_hash::FxHashSet;
use shortest::Shortest;
use splitmix::Random;
use std::net::IpAddr;
use valley::Valley;
use view::View;

/// No path is longer: no packet lives to see it.
pub const LONGEST_PATH: usize = 255;

/// How many bytes searches keep for the next time.
const SCRATCH: usize = 2 << 20;

/// So many classes of flows there are for nodes with several links that are equally good: all flows of
/// a class take the same path.
pub const FLOW_CLASSES: u32 = 64;

/// Which paths are best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RouteMode {
    /// The ones of the smallest sum of weights.
    #[default]
    Shortest,
    /// The ones that ASes choose by what they are to each other: routes of customers before those of
    /// peers before those of providers, then the fewest ASes, then the smallest sum of weights of links
    /// without relation, which are inside an AS.
    ValleyFree,
    /// None: nodes forward by their entries only.
    EntriesOnly,
}

/// How paths are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RoutePolicy {
    /// Which paths are best.
    pub mode: RouteMode,
    /// Whether flows are spread over paths that are equally good. If not, each node takes the link of
    /// the lowest number among those that begin a best path.
    pub ecmp: bool,
}

/// There is no route, or none that is short enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPath {
    /// The node that has no route, or the one after [`LONGEST_PATH`] links. The links to it are known.
    pub at: NodeId,
    /// Whether another flow might have come to another node, as [`Router::path`] says.
    pub forks: bool,
}

/// Finds paths through one network.
#[derive(Debug)]
pub struct Router {
    policy: RoutePolicy,
    cache: Cache,
    /// The links that routing takes for down.
    unusable: FxHashSet<LinkId>,
    shortest: Shortest,
    valley: Valley,
}

impl Router {
    /// Knows nothing yet and will keep at most about `capacity` bytes of what it learns.
    pub fn new(policy: RoutePolicy, capacity: usize) -> Self {
        Self {
            policy,
            cache: Cache::new(capacity),
            unusable: FxHashSet::default(),
            shortest: Shortest::default(),
            valley: Valley::default(),
        }
    }

    /// What routing knows of a link from now on. All links are usable at first.
    pub fn set_usable(&mut self, link: LinkId, usable: bool) {
        let changed = if usable { self.unusable.remove(&link) } else { self.unusable.insert(link) };
        if changed {
            self.cache.clear();
        }
    }

    /// The links from one node to another, for a packet to that address. `flow` is a hash of what distinguishes
    /// its flow from others; its class is what is left when it is divided by [`FLOW_CLASSES`].
    ///
    /// The answer is whether `flow` chose among several links somewhere on the path; if not, all flows go
    /// there.
    ///
    /// # Errors
    ///
    /// A node on the path has no route, or the path has more than [`LONGEST_PATH`] links, as one in a
    /// circle, which entries can make; the links up to there are in `out`.
    pub fn path(
        &mut self,
        network: &Network,
        from: NodeId,
        to: NodeId,
        address: IpAddr,
        flow: u32,
        out: &mut Vec<LinkId>,
    ) -> Result<bool, NoPath> {
        out.clear();
        let mut at = from;
        let mut forks = false;
        while at != to && out.len() < LONGEST_PATH {
            let next = self.next(network, at, to, address, flow);
            let (link, chosen) = next.ok_or(NoPath { at, forks })?;
            forks |= chosen;
            out.push(link);
            at = network.to(link);
        }
        if at == to { Ok(forks) } else { Err(NoPath { at, forks }) }
    }

    /// The link that a packet takes at a node, and whether another flow might take another one.
    fn next(
        &mut self,
        network: &Network,
        at: NodeId,
        to: NodeId,
        address: IpAddr,
        flow: u32,
    ) -> Option<(LinkId, bool)> {
        let usable = |link| self.unusable.is_empty() || !self.unusable.contains(&link);
        if let Some(link) = network.entry(at, address, usable) {
            return Some((link, false));
        }
        if let Some(hops) = self.cache.get(at, to) {
            return pick(&hops, self.policy.ecmp, at, flow);
        }
        let view = View { network, unusable: &self.unusable };
        match self.policy.mode {
            RouteMode::Shortest => self.shortest.search(&view, at, to, &mut self.cache),
            RouteMode::ValleyFree => self.valley.search(&view, at, to, &mut self.cache),
            RouteMode::EntriesOnly => return None,
        }
        // A search far afield is rare; what it took is not kept.
        if self.shortest.bytes() > SCRATCH {
            self.shortest = Shortest::default();
        }
        if self.valley.bytes() > SCRATCH {
            self.valley = Valley::default();
        }
        pick(&self.cache.get(at, to)?, self.policy.ecmp, at, flow)
    }

    /// How many bytes are in use for what was learnt.
    pub fn bytes(&self) -> usize {
        self.cache.bytes() + self.shortest.bytes() + self.valley.bytes()
    }
}

/// The flow's link of those that are equally good, and whether other flows may have others.
fn pick(hops: &Hops, ecmp: bool, at: NodeId, flow: u32) -> Option<(LinkId, bool)> {
    let links = hops.links();
    let several = ecmp && links.len() > 1;
    let index = if several { index_of(at, flow % FLOW_CLASSES, links.len()) } else { 0 };
    links.get(index).map(|&link| (link, several))
}

/// The index that a node deals to a class of flows, of so many. Each gets as many classes as the others,
/// or one more. Nodes must not all divide flows by the same function, or those behind the first cannot any
/// more: so each deals the classes out in an order of its own.
fn index_of(at: NodeId, class: u32, choices: usize) -> usize {
    let key = |class: u32| (Random::new(u64::from(at.0) << 32 | u64::from(class)).bits(), class);
    let mine = key(class);
    let rank = (0..FLOW_CLASSES).filter(|&other| key(other) < mine).count();
    rank * choices / FLOW_CLASSES as usize
}
