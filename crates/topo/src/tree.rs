//! Shortest paths from one router.
//!
//! A path goes by lowest sum of weights (Dijkstra). Equal cost is settled so that every run, and every
//! router on the path, decides alike: fewest hops first; then the path that, read from its beginning,
//! has the lower router id where two paths differ first. Such paths have two properties that the
//! computation uses. The part of a path up to any router on it is the path to that router, so all paths
//! together are a tree. And the part from any router on is that router's own path, so the paths are the
//! same as if each router forwarded by itself, to the lowest of its equally good neighbours.
//!
//! An explicit next hop overrides this for one destination at one router: the path goes by weight to
//! the first router that has one, over that link, and from its end on by the next hops there. Where that
//! is a forwarding loop, the destination is unreachable.

use crate::{
    graph::{ByWeight, Graph, Link, follow},
    group::{Exit, Group},
    options::ExitChoice,
    path::PathProperties,
    value::RouterIndex,
};
use std::collections::BTreeMap;

/// Shortest paths from one router.
#[derive(Debug)]
pub struct Tree {
    from: RouterIndex,
    exits: ExitChoice,
    by_weight: ByWeight,
    /// The properties of the path to each router; `None` where there is none.
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
            let links = follow(graph, &by_weight, from, to).ok();
            paths[to.index()] = links.as_ref().map(|links| {
                links.iter().fold(PathProperties::HERE, |path, link| {
                    path.with_link(&graph.links()[*link as usize].properties)
                })
            });
            explicit.insert(to, links.unwrap_or_default());
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
    pub fn path<'g>(&self, graph: &'g Graph, to: RouterIndex) -> Vec<&'g Link> {
        let links = match self.explicit.get(&to) {
            Some(links) => links.clone(),
            None => self.by_weight.path(graph, to),
        };
        links.into_iter().map(|link| &graph.links()[link as usize]).collect()
    }

    /// The link that traffic to a router takes first.
    pub fn next_hop<'g>(&self, graph: &'g Graph, to: RouterIndex) -> Option<&'g Link> {
        self.path(graph, to).into_iter().next()
    }
}
