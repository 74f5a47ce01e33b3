//! What a builder knows, to be read.

use super::{Builder, reports::Report};
use crate::{
    path::{ExternalPath, LinkKey, LinkProperties},
    value::RouterId,
};
use ipnet::IpNet;
use std::{collections::BTreeSet, net::IpAddr};

/// What a builder knows, to be read: what counts, whichever feed reported it.
#[derive(Clone, Copy, Debug)]
pub struct Topology<'b> {
    builder: &'b Builder,
}

impl<'b> Topology<'b> {
    pub(super) fn new(builder: &'b Builder) -> Self {
        Self { builder }
    }

    /// Routers and their names, in order of id.
    pub fn routers(self) -> impl Iterator<Item = (RouterId, Option<&'b str>)> {
        self.builder.network.routers.iter().map(|(id, name)| (*id, name.as_deref()))
    }

    /// Links with what they are like, measurements included, in order of key. Those that wait for a
    /// router are among them.
    pub fn links(self) -> impl Iterator<Item = (LinkKey, LinkProperties)> + use<'b> {
        self.builder.network.measured_links()
    }

    /// Explicit next hops: at, to, via; in this order.
    pub fn next_hops(self) -> impl Iterator<Item = (RouterId, RouterId, LinkKey)> {
        self.builder.network.hops.iter().map(|((at, to), via)| (*at, *to, *via))
    }

    /// Internal prefixes and where they are attached, in order of prefix and router.
    pub fn internal(self) -> impl Iterator<Item = (IpNet, RouterId)> {
        self.each(true).map(|(prefix, router, _)| (prefix, router))
    }

    /// External routes, in order of prefix and exit: the shortest that a feed reports.
    pub fn routes(self) -> impl Iterator<Item = (IpNet, RouterId, ExternalPath)> {
        self.each(false)
    }

    /// The route by which an exit reaches an address: that to the longest prefix.
    pub fn route(self, exit: RouterId, to: IpAddr) -> Option<(IpNet, ExternalPath)> {
        let Builder { prefixes, sets, ids, .. } = self.builder;
        let whole = IpNet::from(to);
        let covering = (0..=whole.prefix_len()).rev().filter_map(|length| {
            let prefix = IpNet::new(to, length).ok()?.trunc();
            Some((prefix, prefixes.get(prefix)?.set))
        });
        let mut routes = covering.filter_map(|(prefix, set)| {
            let reports = sets.reports(set).iter().filter(|report| !report.at.is_internal());
            let at_exit = reports.filter(|report| ids.get(report.at.slot()) == Some(&exit));
            Some((prefix, at_exit.map(Report::path).min()?))
        });
        routes.next()
    }

    /// What is reported of prefixes.
    fn each(self, internal: bool) -> impl Iterator<Item = (IpNet, RouterId, ExternalPath)> {
        let Builder { prefixes, sets, ids, .. } = self.builder;
        let is_meant = move |report: &&Report| report.at.is_internal() == internal;
        let mut some: Vec<_> = prefixes
            .iter()
            .map(|(prefix, known)| (prefix, known.set))
            .filter(|(_, set)| sets.reports(*set).iter().any(|report| is_meant(&report)))
            .collect();
        some.sort_unstable();
        some.into_iter().flat_map(move |(prefix, set)| {
            let reports = sets.reports(set).iter().filter(is_meant);
            let mut routes: Vec<_> = reports
                .filter_map(|report| Some((prefix, *ids.get(report.at.slot())?, report.path())))
                .collect();
            routes.sort_unstable();
            routes.dedup_by_key(|(_, router, _)| *router);
            routes
        })
    }

    /// Routers that links, prefixes or routes name and that are not declared: what names them waits.
    pub fn undeclared(self) -> BTreeSet<RouterId> {
        let Builder { network, sets, ids, .. } = self.builder;
        let links = network.links.iter().flat_map(|(key, _)| [key.from, key.to]);
        let reports = (1..sets.end()).flat_map(|id| sets.reports(id));
        links
            .chain(reports.filter_map(|report| ids.get(report.at.slot()).copied()))
            .filter(|id| !network.routers.contains(id))
            .collect()
    }
}
