//! Shortest paths from one router.
//!
//! A path goes by lowest sum of weights (Dijkstra). Equal cost is settled so that every run, and every
//! router on the way, decides alike: fewest hops first; then the path that, read from its beginning,
//! has the lower router id where two paths differ first. Such paths have two properties that the
//! computation uses. The part of a path up to any router on it is the path to that router, so all paths
//! together are a tree. And the part from any router on is that router's own path, so the paths are the
//! same as if each router forwarded by itself, to the lowest of its equally good neighbours.
//!
//! An explicit next hop overrides this for one destination at one router: the path goes by weight to
//! the first router that has one, over that link, and from its end on by what is said there. Where that
//! leads round in a circle, the destination is unreachable.

use crate::{
    graph::{Graph, Link, Loop},
    group::{Exit, Group},
    options::ExitChoice,
    path::PathProperties,
    value::RouterIndex,
};
use std::{cmp::Reverse, collections::BTreeMap, collections::BinaryHeap};

/// No link: the root, or a router that cannot be reached.
const NONE: u32 = u32::MAX;

/// The tree by weight alone.
#[derive(Debug)]
pub(crate) struct ByWeight {
    /// For each router the last link of the path to it.
    last: Vec<u32>,
    /// Routers that can be reached, each after the one before it on its path.
    order: Vec<RouterIndex>,
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
            for (place, link) in graph.numbered_links_from(at) {
                let to = link.to.index();
                let found = (weight + u64::from(link.properties.weight), hops + 1);
                if found == best[to] && last[to] == NONE && link.to != from {
                    last[to] = place;
                    order.push(link.to);
                }
            }
        }
        Self { last, order }
    }

    /// The links to a router, the first one first.
    fn way(&self, graph: &Graph, to: RouterIndex) -> Vec<u32> {
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

/// Shortest paths from one router.
#[derive(Debug)]
pub struct Tree {
    from: RouterIndex,
    exits: ExitChoice,
    by_weight: ByWeight,
    /// What the path to each router is like; without hops where there is none.
    paths: Vec<Option<PathProperties>>,
    /// Paths that are not by weight alone: their links.
    explicit: BTreeMap<RouterIndex, Vec<u32>>,
}

impl Tree {
    pub(crate) fn new(graph: &Graph, exits: ExitChoice, from: RouterIndex) -> Self {
        let by_weight = ByWeight::new(graph, from);
        let mut paths = vec![None; graph.routers().len()];
        paths[from.index()] = Some(PathProperties::HERE);
        for &to in by_weight.order.iter().skip(1) {
            let link = &graph.links()[by_weight.last[to.index()] as usize];
            paths[to.index()] = paths[link.from.index()]
                .map(|path: PathProperties| path.with_link(&link.properties));
        }
        let mut explicit = BTreeMap::new();
        for to in graph.hop_targets() {
            if to == from {
                continue;
            }
            let way = follow(graph, &by_weight, from, to).ok();
            paths[to.index()] = way.as_ref().map(|way| {
                way.iter().fold(PathProperties::HERE, |path, link| {
                    path.with_link(&graph.links()[*link as usize].properties)
                })
            });
            explicit.insert(to, way.unwrap_or_default());
        }
        Self { from, exits, by_weight, paths, explicit }
    }

    /// Where the paths begin.
    pub fn from(&self) -> RouterIndex {
        self.from
    }

    /// The path to a router.
    pub fn to(&self, router: RouterIndex) -> Option<PathProperties> {
        self.paths.get(router.index()).copied().flatten()
    }

    /// The exit that traffic to a group takes, if any can be reached.
    pub fn exit<'g>(&self, group: &'g Group) -> Option<&'g Exit> {
        self.choose(group).map(|(exit, _)| exit)
    }

    /// The path to a group, through the exit that its traffic takes.
    pub fn properties(&self, group: &Group) -> Option<PathProperties> {
        self.choose(group).map(|(exit, path)| path.with_external(exit.path))
    }

    fn choose<'g>(&self, group: &'g Group) -> Option<(&'g Exit, &PathProperties)> {
        // Exits are in order of router id, and of equal ones the first is the minimum.
        group
            .exits
            .iter()
            .filter_map(|exit| Some((exit, self.paths.get(exit.router.index())?.as_ref()?)))
            .min_by_key(|(exit, path)| {
                let distance = u64::from(exit.path.as_distance);
                match self.exits {
                    ExitChoice::Nearest => (path.weight, distance),
                    ExitChoice::ShortestAsPath => (distance, path.weight),
                }
            })
    }

    /// The links of the path to a router, the first one first; none if it cannot be reached, or is
    /// where the paths begin.
    pub fn way<'g>(&self, graph: &'g Graph, to: RouterIndex) -> Vec<&'g Link> {
        let links = match self.explicit.get(&to) {
            Some(links) => links.clone(),
            None => self.by_weight.way(graph, to),
        };
        links.into_iter().map(|link| &graph.links()[link as usize]).collect()
    }

    /// The link that traffic to a router takes first.
    pub fn next_hop<'g>(&self, graph: &'g Graph, to: RouterIndex) -> Option<&'g Link> {
        self.way(graph, to).into_iter().next()
    }
}

/// Why explicit next hops do not lead to a router.
enum Astray {
    /// A router on the way has neither a next hop nor a path by weight.
    Unreachable,
    /// It goes round in a circle: the routers on it.
    Circle(Vec<RouterIndex>),
}

/// The links of the path from one router to another, with explicit next hops.
fn follow(
    graph: &Graph,
    own: &ByWeight,
    from: RouterIndex,
    to: RouterIndex,
) -> Result<Vec<u32>, Astray> {
    let mut way = Vec::new();
    let mut at = from;
    // A path without a circle has fewer links than there are routers.
    while at != to && way.len() < graph.routers().len() {
        if let Some(link) = graph.hop(at, to) {
            way.push(link);
            at = graph.links()[link as usize].to;
            continue;
        }
        let by_weight = if at == from { own } else { graph.by_weight(at) };
        let rest = by_weight.way(graph, to);
        if rest.is_empty() {
            return Err(Astray::Unreachable);
        }
        for link in rest {
            way.push(link);
            at = graph.links()[link as usize].to;
            if graph.hop(at, to).is_some() {
                break;
            }
        }
    }
    if at == to {
        return Ok(way);
    }
    // Where it is now it has been before.
    let mut circle: Vec<_> =
        way.iter().rev().map(|link| graph.links()[*link as usize].from).collect();
    let end = circle.iter().position(|router| *router == at).unwrap_or(0);
    circle.truncate(end + 1);
    circle.reverse();
    Err(Astray::Circle(circle))
}

/// All circles into which explicit next hops lead.
pub(crate) fn loops(graph: &Graph) -> Vec<Loop> {
    let mut loops = Vec::new();
    // Every circle has a router with an explicit next hop: paths by weight alone come nearer.
    for (at, to, _) in graph.next_hops() {
        if let Err(Astray::Circle(mut routers)) = follow(graph, graph.by_weight(at), at, to) {
            let lowest = routers
                .iter()
                .enumerate()
                .min_by_key(|(_, router)| **router)
                .map_or(0, |(place, _)| place);
            routers.rotate_left(lowest);
            let found = Loop { to, routers };
            if !loops.contains(&found) {
                loops.push(found);
            }
        }
    }
    loops
}
