//! The network's own part: routers, links between them, and explicit next hops.

mod follow;

use crate::{
    path::{LinkKey, LinkProperties},
    value::{RouterId, RouterIndex},
};
pub(crate) use follow::{ByWeight, follow};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

/// A router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterInfo {
    /// Its identity.
    pub id: RouterId,
    /// Its name, for people.
    pub name: Option<Arc<str>>,
}

/// One direction of a link, as it counts: measurements are in its properties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Where it begins.
    pub from: RouterIndex,
    /// Where it ends.
    pub to: RouterIndex,
    /// Distinguishes parallel links.
    pub id: u32,
    /// Its properties.
    pub properties: LinkProperties,
}

/// Routers and links of one snapshot.
///
/// Links are in order of their beginning, then of their end, then of use: of parallel links the first
/// is used, that of lowest weight, then highest bandwidth, then lowest id.
#[derive(Debug, Default)]
pub struct Graph {
    routers: Vec<RouterInfo>,
    /// For each router where its links begin in `links`, and the end of all.
    starts: Vec<u32>,
    links: Vec<Link>,
    /// Explicit next hops: (to, at) to an index in `links`.
    hops: BTreeMap<(RouterIndex, RouterIndex), u32>,
    /// Paths by weight from routers to which explicit next hops lead, calculated when first asked for.
    by_weight: Vec<OnceLock<ByWeight>>,
    /// Forwarding loops of explicit next hops.
    loops: Vec<Loop>,
}

/// Explicit next hops form a forwarding loop: the router they were to lead to cannot be reached through
/// any of the routers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Where they were to lead.
    pub to: RouterIndex,
    /// The routers in the loop, each once, in the order of forwarding, the lowest first.
    pub routers: Vec<RouterIndex>,
}

impl Graph {
    /// A graph of these routers, in any order, and of those links whose both ends are among them.
    pub(crate) fn new(
        mut routers: Vec<RouterInfo>,
        links: impl IntoIterator<Item = (LinkKey, LinkProperties)>,
        hops: impl IntoIterator<Item = (RouterId, RouterId, LinkKey)>,
    ) -> Self {
        routers.sort_unstable_by_key(|router| router.id);
        let mut graph = Self { routers, ..Self::default() };
        graph.links = links
            .into_iter()
            .filter_map(|(key, properties)| {
                Some(Link {
                    from: graph.index(key.from)?,
                    to: graph.index(key.to)?,
                    id: key.id,
                    properties,
                })
            })
            .collect();
        graph.links.sort_unstable_by(|a, b| {
            (a.from, a.to, a.properties.weight)
                .cmp(&(b.from, b.to, b.properties.weight))
                .then_with(|| b.properties.bandwidth.total_cmp(&a.properties.bandwidth))
                .then_with(|| a.id.cmp(&b.id))
        });
        let mut index = 0;
        for router in 0..=graph.routers.len() {
            while graph.links.get(index).is_some_and(|link| link.from.index() < router) {
                index += 1;
            }
            graph.starts.push(index as u32);
        }
        for (at, to, via) in hops {
            if let (Some(at), Some(to)) = (graph.index(at), graph.index(to))
                && let Some(link) = graph.find(via)
            {
                graph.hops.insert((to, at), link);
            }
        }
        if !graph.hops.is_empty() {
            graph.by_weight.resize_with(graph.routers.len(), OnceLock::new);
            graph.loops = follow::loops(&graph);
        }
        graph
    }

    /// All routers, in order of id: a router's index is its position.
    pub fn routers(&self) -> &[RouterInfo] {
        &self.routers
    }

    /// The router with this identity.
    pub fn index(&self, id: RouterId) -> Option<RouterIndex> {
        self.routers
            .binary_search_by_key(&id, |router| router.id)
            .ok()
            .map(|index| RouterIndex(index as u32))
    }

    /// The router with this index.
    ///
    /// # Panics
    ///
    /// If the index is not from this snapshot.
    pub fn router(&self, index: RouterIndex) -> &RouterInfo {
        &self.routers[index.index()]
    }

    /// All links, in order of their beginning, then of their end; of parallel links the one that is
    /// used comes first.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The links that begin at a router.
    pub fn links_from(&self, router: RouterIndex) -> &[Link] {
        &self.links[self.range(router)]
    }

    /// The same with their indexes among all links.
    pub(crate) fn numbered_links_from(
        &self,
        router: RouterIndex,
    ) -> impl Iterator<Item = (u32, &Link)> {
        (self.starts[router.index()]..).zip(self.links_from(router))
    }

    fn range(&self, router: RouterIndex) -> std::ops::Range<usize> {
        self.starts[router.index()] as usize..self.starts[router.index() + 1] as usize
    }

    /// Explicit next hops: the link that a router takes to another.
    pub fn next_hops(&self) -> impl Iterator<Item = (RouterIndex, RouterIndex, &Link)> {
        self.hops.iter().map(|((to, at), link)| (*at, *to, &self.links[*link as usize]))
    }

    /// Forwarding loops of explicit next hops.
    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }

    /// The explicit next hop at a router on the path to another: the index of a link.
    pub(crate) fn hop(&self, at: RouterIndex, to: RouterIndex) -> Option<u32> {
        self.hops.get(&(to, at)).copied()
    }

    /// Paths by weight alone from a router. Only for graphs with explicit next hops.
    pub(crate) fn by_weight(&self, from: RouterIndex) -> &ByWeight {
        self.by_weight[from.index()].get_or_init(|| ByWeight::new(self, from))
    }

    /// Routers to which some router has an explicit next hop, each once, ascending.
    pub(crate) fn hop_targets(&self) -> Vec<RouterIndex> {
        let mut targets: Vec<_> = self.hops.keys().map(|(to, _)| *to).collect();
        targets.dedup();
        targets
    }

    /// The index of a link.
    fn find(&self, key: LinkKey) -> Option<u32> {
        let (from, to) = (self.index(key.from)?, self.index(key.to)?);
        let range = self.range(from);
        let start = range.start;
        self.links[range]
            .iter()
            .position(|link| link.to == to && link.id == key.id)
            .map(|offset| (start + offset) as u32)
    }
}
