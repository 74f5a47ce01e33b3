//! Paths by weight alone, and paths with explicit next hops; see [`crate::tree`] for the rules.

use super::{Graph, Loop};
use crate::value::RouterIndex;
use std::{cmp::Reverse, collections::BinaryHeap};

/// No link: the root, or a router that cannot be reached.
const NONE: u32 = u32::MAX;

/// The shortest-path tree by weight alone.
#[derive(Debug)]
pub(crate) struct ByWeight {
    /// For each router the last link of the path to it.
    pub(crate) last: Vec<u32>,
    /// Routers that can be reached, each after the one before it on its path.
    pub(crate) order: Vec<RouterIndex>,
}

impl ByWeight {
    pub(crate) fn new(graph: &Graph, from: RouterIndex) -> Self {
        let count = graph.routers().len();
        // The best sum of weights and the fewest hops that give it.
        let mut best = vec![(u64::MAX, u32::MAX); count];
        let mut heap = BinaryHeap::new();
        best[from.index()] = (0, 0);
        heap.push(Reverse((0, 0, from)));
        while let Some(Reverse((weight, hops, at))) = heap.pop() {
            if (weight, hops) > best[at.index()] {
                continue;
            }
            for link in graph.links_from(at) {
                let found = (weight + u64::from(link.properties.weight), hops + 1);
                if found < best[link.to.index()] {
                    best[link.to.index()] = found;
                    heap.push(Reverse((found.0, found.1, link.to)));
                }
            }
        }
        // Routers of one number of hops in order of their paths: whoever is reached first from the
        // first of them comes first in the next round, because links are in order of their ends.
        let mut last = vec![NONE; count];
        let mut order = Vec::with_capacity(count);
        order.push(from);
        let mut done = 0;
        while let Some(&at) = order.get(done) {
            done += 1;
            let (weight, hops) = best[at.index()];
            for (index, link) in graph.numbered_links_from(at) {
                let to = link.to.index();
                let found = (weight + u64::from(link.properties.weight), hops + 1);
                if found == best[to] && last[to] == NONE && link.to != from {
                    last[to] = index;
                    order.push(link.to);
                }
            }
        }
        Self { last, order }
    }

    /// The links to a router, the first one first.
    pub(crate) fn path(&self, graph: &Graph, to: RouterIndex) -> Vec<u32> {
        let mut links = Vec::new();
        let mut at = to;
        while self.last[at.index()] != NONE {
            let link = self.last[at.index()];
            links.push(link);
            at = graph.links()[link as usize].from;
        }
        links.reverse();
        links
    }
}

/// Why explicit next hops do not lead to a router.
pub(crate) enum Unreachable {
    /// A router on the path has neither a next hop nor a path by weight.
    NoPath,
    /// They form a forwarding loop: the routers in it.
    Loop(Vec<RouterIndex>),
}

/// The links of the path from one router to another, with explicit next hops.
pub(crate) fn follow(
    graph: &Graph,
    own: &ByWeight,
    from: RouterIndex,
    to: RouterIndex,
) -> Result<Vec<u32>, Unreachable> {
    let mut path = Vec::new();
    let mut at = from;
    // A path without a loop has fewer links than there are routers.
    while at != to && path.len() < graph.routers().len() {
        if let Some(link) = graph.hop(at, to) {
            path.push(link);
            at = graph.links()[link as usize].to;
            continue;
        }
        let by_weight = if at == from { own } else { graph.by_weight(at) };
        let rest = by_weight.path(graph, to);
        if rest.is_empty() {
            return Err(Unreachable::NoPath);
        }
        for link in rest {
            path.push(link);
            at = graph.links()[link as usize].to;
            if graph.hop(at, to).is_some() {
                break;
            }
        }
    }
    if at == to {
        return Ok(path);
    }
    // Where it is now it has been before.
    let mut cycle: Vec<_> =
        path.iter().rev().map(|link| graph.links()[*link as usize].from).collect();
    let end = cycle.iter().position(|router| *router == at).unwrap_or(0);
    cycle.truncate(end + 1);
    cycle.reverse();
    Err(Unreachable::Loop(cycle))
}

/// All forwarding loops of explicit next hops.
pub(super) fn loops(graph: &Graph) -> Vec<Loop> {
    let mut loops = Vec::new();
    // Every loop has a router with an explicit next hop: paths by weight alone come nearer.
    for (at, to, _) in graph.next_hops() {
        if let Err(Unreachable::Loop(mut routers)) = follow(graph, graph.by_weight(at), at, to) {
            let lowest = routers
                .iter()
                .enumerate()
                .min_by_key(|(_, router)| **router)
                .map_or(0, |(index, _)| index);
            routers.rotate_left(lowest);
            let found = Loop { to, routers };
            if !loops.contains(&found) {
                loops.push(found);
            }
        }
    }
    loops
}
