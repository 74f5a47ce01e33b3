//! Snapshots: what queries read.

use crate::{
    graph::Graph,
    group::Groups,
    lpm::Table,
    options::Options,
    tree::Tree,
    value::{GroupId, RouterIndex},
};
use ipnet::IpNet;
use std::{net::IpAddr, sync::Arc};

/// An immutable snapshot of the network. Parts that did not change are shared with the one before.
#[derive(Clone, Debug)]
pub struct View {
    /// Rises with every snapshot.
    pub generation: u64,
    /// Routers and links.
    pub graph: Arc<Graph>,
    /// Groups of prefixes.
    pub groups: Arc<Groups>,
    /// From an address to the number of its group.
    pub table: Arc<Table>,
    /// What the operator chose.
    pub options: Arc<Options>,
    /// Every router that is some group's source, ascending.
    pub(crate) sources: Arc<[RouterIndex]>,
}

impl View {
    /// The group of the longest prefix that covers an address.
    pub fn group(&self, address: IpAddr) -> GroupId {
        GroupId(match address {
            IpAddr::V4(address) => self.table.lookup4(address.to_bits()),
            IpAddr::V6(address) => self.table.lookup6(address.to_bits()),
        })
    }

    /// The group of the longest prefix that covers all of this one.
    pub fn group_of_prefix(&self, prefix: IpNet) -> GroupId {
        GroupId(self.table.covering(prefix))
    }

    /// The router that requests from an address come from.
    pub fn source(&self, address: IpAddr) -> Option<RouterIndex> {
        self.source_of_group(self.group(address))
    }

    /// The router that requests from a group come from: of internal prefixes the router of lowest id,
    /// else the exit with the shortest AS path, then the lowest id.
    pub fn source_of_group(&self, group: GroupId) -> Option<RouterIndex> {
        self.groups.get(group).source()
    }

    /// Every router that is some group's source, ascending.
    pub fn sources(&self) -> &[RouterIndex] {
        &self.sources
    }

    /// The shortest paths from one router, computed when called.
    pub fn tree(&self, from: RouterIndex) -> Tree {
        Tree::new(&self.graph, self.options.exits, from)
    }
}
