//! What queries read: for a source router and a prefix group, the finished rank in the order.
//!
//! A row belongs to one metric and one source router. It holds, for each group of prefixes, the rank
//! of the group's cost among all costs of the row: 0 is the best, equal costs share a rank, and
//! `u16::MAX` is a group about which nothing is known. A candidate costs a query one longest-prefix match,
//! which gives its group, and one load from the row, however large the network is and whatever the
//! cost expressions give. Ranks are dense, so a query can sort by counting.
//!
//! Tables are immutable. A change of the network or of the policy builds the next ones beside the
//! readers (see `build`); rows that cannot have changed are shared with the ones before.

mod adjust;
mod build;

pub use adjust::{Adjustment, AdjustmentError, Adjustments, Class, Subject};

use std::{net::IpAddr, sync::Arc};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use topo::{AsInterest, GroupId, Mark, RouterId, RouterIndex, View};

use crate::{candidate::Candidate, metric::Metric};
use build::RowData;

/// The rank of what is not known: after all others.
pub const UNKNOWN: u16 = u16::MAX;

/// What the operator wants of the ranking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// The metrics; the first is the default.
    pub metrics: Vec<Metric>,
    /// What is preferred, avoided or made dearer.
    pub adjustments: Adjustments,
    /// The router that requests count as coming from where the network does not know their source.
    pub default_router: Option<RouterId>,
}

impl Policy {
    /// The ASes that the topology must distinguish for this policy.
    pub fn interest(&self) -> AsInterest {
        if self.metrics.iter().any(Metric::uses_as_number) {
            return AsInterest::All;
        }
        self.adjustments.interest()
    }

    /// The marks that the topology must put on prefixes for this policy.
    pub fn marks(&self) -> Vec<(IpNet, Mark)> {
        self.adjustments.marks().to_vec()
    }
}

/// Everything that a ranking is made from.
#[derive(Debug)]
pub struct Tables {
    /// The network.
    pub view: Arc<View>,
    /// What the operator wants.
    pub policy: Arc<Policy>,
    /// By metric, then by source router; none for routers from which no request can come.
    rows: Vec<Vec<Option<Arc<RowData>>>>,
    /// The row of a request whose source the network does not know.
    unsourced: Arc<RowData>,
    default_router: Option<RouterIndex>,
}

impl Tables {
    /// Builds all rows, on all cores. Rows that cannot have changed since `previous` are shared with
    /// it.
    pub fn build(view: Arc<View>, policy: Arc<Policy>, previous: Option<&Self>) -> Self {
        build::build(view, policy, previous)
    }

    /// The row of a metric and a source router. Without a source, and for a router from which no
    /// request can come, every known candidate costs the same, but for adjustments.
    pub fn row(&self, metric: usize, source: Option<RouterIndex>) -> Row<'_> {
        let row = || self.rows.get(metric)?.get(source?.index())?.as_deref();
        Row { data: row().unwrap_or(&self.unsourced) }
    }

    /// The router that requests from an address come from: that of the address, else the configured
    /// one, else none.
    pub fn source(&self, address: IpAddr) -> Option<RouterIndex> {
        self.view.source(address).or(self.default_router)
    }

    /// The router that requests from addresses of a group come from, as [`Self::source`] has it.
    pub fn source_of_group(&self, group: GroupId) -> Option<RouterIndex> {
        self.view.source_of_group(group).or(self.default_router)
    }

    /// The router that requests from given prefixes come from: that of the IPv4 one if the network
    /// knows it, else that of the IPv6 one, else the configured one.
    pub fn source_of_prefixes(
        &self,
        source4: Option<Ipv4Net>,
        source6: Option<Ipv6Net>,
    ) -> Option<RouterIndex> {
        let prefixes = [source4.map(IpNet::V4), source6.map(IpNet::V6)];
        let mut prefixes = prefixes.into_iter().flatten();
        prefixes.find_map(|prefix| self.source_of_prefix(prefix)).or(self.default_router)
    }

    fn source_of_prefix(&self, prefix: IpNet) -> Option<RouterIndex> {
        self.view.source_of_group(self.view.group_of_prefix(prefix.trunc()))
    }

    /// The group that a candidate belongs to.
    pub fn group(&self, candidate: &Candidate) -> GroupId {
        match *candidate {
            Candidate::V4(address) => self.view.group(address.into()),
            Candidate::V6(address) => self.view.group(address.into()),
            Candidate::Net4(net) => self.view.group_of_prefix(net.trunc().into()),
            Candidate::Net6(net) => self.view.group_of_prefix(net.trunc().into()),
        }
    }

    /// The cost of a group from a router, penalties included; none where it is not known. A
    /// preferred group's cost is not changed: only its rank puts it first.
    pub fn cost(&self, metric: usize, source: RouterIndex, group: GroupId) -> Option<f64> {
        self.row(metric, Some(source)).cost(group)
    }

    /// How many rows there are, and how much memory they take, in bytes.
    pub fn size(&self) -> (usize, usize) {
        let rows = self.rows.iter().flatten().flatten();
        rows.fold((0, 0), |(count, bytes), row| (count + 1, bytes + row.bytes()))
    }
}

/// The ranks of all groups for one metric and one source router.
#[derive(Clone, Copy, Debug)]
pub struct Row<'t> {
    data: &'t RowData,
}

impl<'t> Row<'t> {
    /// The rank of a group's cost among all costs of the row; [`UNKNOWN`] if it is not known.
    pub fn rank(&self, group: GroupId) -> u16 {
        self.data.ranks.get(group.index()).copied().unwrap_or(UNKNOWN)
    }

    /// In which part of the order a group is; none if it is not known.
    pub fn class(&self, group: GroupId) -> Option<Class> {
        self.data.class(self.rank(group))
    }

    /// The ranks of all groups, in order of [`GroupId`].
    pub fn ranks(&self) -> &'t [u16] {
        &self.data.ranks
    }

    /// How many ranks there are: every known rank is below this.
    pub fn distinct(&self) -> usize {
        self.data.costs.len()
    }

    /// The cost of a group, penalties included; none where it is not known. Where costs share a
    /// rank because there are too many, it is the lowest of them.
    pub fn cost(&self, group: GroupId) -> Option<f64> {
        self.data.costs.get(usize::from(self.rank(group))).copied()
    }
}
