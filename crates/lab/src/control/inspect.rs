//! What requests ask of the engine, and the changes that they make.

use super::{
    FindError, HostView, LinkChange, LinkView, Links, MOST_ROWS, NodeView, Nodes, Request, Sort,
    Status, Totals,
    find::{Finder, Meant},
};
use crate::{
    LinkId, LinkSettings, NodeId, PortId, SettingsChange,
    engine::{Change, ChangeError, Engine, Ledger, LinkLoad, Made, Reason},
    handle::{Handle, Stopped},
    network::Network,
    scene::HostTable,
};
use ipnet::IpNet;
use serde::Serialize;
use std::{cmp::Reverse, collections::BTreeMap, net::IpAddr, path::PathBuf, sync::Arc};

/// So many rows of [`Status`] are enough for people.
const STATUS_ROWS: usize = 100;

/// A request cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplyError {
    /// A name is not known.
    #[error(transparent)]
    Find(#[from] FindError),
    /// What wires are plugged into decides itself where packets go.
    #[error("{0} is at the end of a wire: it routes packets itself, so query it there")]
    NotRouted(String),
    /// The engine refuses.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The lab ends.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A running lab, as the commands see it.
#[derive(Debug)]
pub struct Context {
    handle: Handle,
    network: Arc<Network>,
    hosts: Vec<(HostTable, Option<String>)>,
    scene: PathBuf,
    tables: Vec<HostTable>,
    /// A direction of each wire.
    wires: Vec<LinkId>,
}

impl Context {
    /// `hosts` are the systems of the scene, each with its namespace; `wires` a direction of each wire.
    pub fn new(
        handle: Handle,
        network: Arc<Network>,
        hosts: Vec<(HostTable, Option<String>)>,
        wires: Vec<LinkId>,
        scene: PathBuf,
    ) -> Self {
        let tables = hosts.iter().map(|(host, _)| host.clone()).collect();
        Self { handle, network, hosts, scene, tables, wires }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// The file of the scene.
    pub(super) fn scene(&self) -> &std::path::Path {
        &self.scene
    }

    /// The nodes that hosts are joined to, in the hosts' order.
    pub(super) fn host_nodes(&self) -> Vec<NodeId> {
        self.tables.iter().filter_map(|host| self.network.find(&host.attach)).collect()
    }

    /// Looks names up.
    pub fn finder(&self) -> Finder<'_> {
        Finder::new(&self.network, &self.tables)
    }

    /// A node's name.
    pub(crate) fn name(&self, node: NodeId) -> String {
        self.network.name(node).into_owned()
    }

    /// Whether a link is a direction of a wire.
    pub(crate) fn is_wire(&self, link: LinkId) -> bool {
        self.wires.contains(&link)
            || self.network.reverse(link).is_some_and(|back| self.wires.contains(&back))
    }

    /// Whether a node stands for what wires are plugged into.
    pub(crate) fn is_system(&self, node: NodeId) -> bool {
        let ends = |link: &LinkId| [self.network.from(*link), self.network.to(*link)];
        self.wires.iter().any(|wire| ends(wire).contains(&node))
    }

    /// A node's own addresses; of what wires are plugged into, those of the ends.
    pub(super) fn addresses(&self, node: NodeId) -> Vec<IpAddr> {
        let name = self.network.name(node);
        match self.tables.iter().find(|host| host.name == name) {
            Some(system) if self.is_system(node) => {
                system.address.iter().map(IpNet::addr).collect()
            }
            _ => self.finder().addresses(node),
        }
    }

    /// The name of a port's host.
    pub(crate) fn host_name(&self, port: PortId) -> String {
        let host = self.tables.get(usize::from(port.0));
        host.map_or_else(String::new, |host| host.name.clone())
    }

    /// The port of a host.
    pub(crate) fn port(&self, host: &str) -> Option<PortId> {
        let index = self.tables.iter().position(|table| table.name == host)?;
        u16::try_from(index).ok().map(PortId)
    }

    /// A link's name.
    pub(crate) fn link_name(&self, link: LinkId) -> String {
        format!("{}>{}", self.name(self.network.from(link)), self.name(self.network.to(link)))
    }

    /// The answer to a request that has one answer.
    ///
    /// # Errors
    /// A sentence, when it cannot be done.
    pub fn reply(&self, request: &Request) -> Result<serde_json::Value, String> {
        fn value<T: Serialize>(result: Result<T, ReplyError>) -> Result<serde_json::Value, String> {
            let value = result.map_err(|error| error.to_string())?;
            serde_json::to_value(value).map_err(|error| error.to_string())
        }
        match request {
            Request::Status {} => value(self.status()),
            Request::Path { from, to } => value(self.path(from, to)),
            Request::Link { link, set } => value(self.link(link, *set)),
            Request::Node { node, up } => value(self.node(node, *up)),
            Request::Links { sort, limit, all } => value(self.links(*sort, *limit, *all)),
            Request::Nodes { first, limit } => value(self.nodes(*first, *limit)),
            Request::Events {} | Request::Capture { .. } => Ok(serde_json::json!({})),
        }
    }

    /// How the lab is.
    ///
    /// # Errors
    /// When it ends.
    pub fn status(&self) -> Result<Status, ReplyError> {
        let (ledger, runs, down, shown, touched_total) = self.handle.call(|engine, now| {
            let touched = engine.touched();
            let shown = touched.iter().take(STATUS_ROWS).copied().collect();
            let shown = states(engine, shown);
            (engine.ledger().clone(), now, engine.nodes_down(), shown, touched.len())
        })?;
        Ok(Status {
            pid: std::process::id(),
            scene: self.scene.clone(),
            runs,
            nodes: self.network.nodes(),
            links: self.network.links(),
            hosts: self.host_views(),
            packets: totals(&ledger),
            down: down.into_iter().take(STATUS_ROWS).map(|node| self.name(node)).collect(),
            touched: shown.into_iter().map(|state| self.link_view(state)).collect(),
            touched_total,
        })
    }

    /// The hosts.
    pub(super) fn host_views(&self) -> Vec<HostView> {
        let view = |(host, namespace): &(HostTable, Option<String>)| HostView {
            name: host.name.clone(),
            node: host.attach.clone(),
            addresses: host.address.to_vec(),
            namespace: namespace.clone(),
        };
        self.hosts.iter().map(view).collect()
    }

    /// Changes a link, if anything is to be set.
    ///
    /// # Errors
    /// When there is no such link, or the lab ends.
    pub fn link(&self, text: &str, set: SettingsChange) -> Result<LinkChange, ReplyError> {
        let Meant { link, both_ways } = self.finder().link(text)?;
        let back = self.network.reverse(link).filter(|_| both_ways);
        let links: Vec<_> = [Some(link), back].into_iter().flatten().collect();
        let (before, after) = self.handle.call(move |engine, now| {
            let before = states(engine, links.clone());
            if !set.is_empty() {
                engine.apply(now, Change::Link { link, both_ways, settings: set })?;
            }
            Ok::<_, ChangeError>((before, states(engine, links)))
        })??;
        let view =
            |states: Vec<State>| states.into_iter().map(|state| self.link_view(state)).collect();
        Ok(LinkChange { before: view(before), after: view(after) })
    }

    /// Takes a node out or puts it back, if that is asked.
    ///
    /// # Errors
    /// When there is no such node, or the lab ends.
    pub fn node(&self, name: &str, up: Option<bool>) -> Result<NodeView, ReplyError> {
        let node = self.finder().node(name)?;
        let (was_up, is_up) = self.handle.call(move |engine, now| {
            let was_up = engine.is_up(node);
            if let Some(up) = up.filter(|up| *up != was_up) {
                engine.apply(now, Change::Node { node, up })?;
            }
            Ok::<_, ChangeError>((was_up, engine.is_up(node)))
        })??;
        Ok(self.node_view(node, was_up, is_up))
    }

    /// The links that packets came to, and those that were changed; then the first of the others if
    /// all are wanted.
    ///
    /// # Errors
    /// When the lab ends.
    pub fn links(&self, sort: Sort, limit: usize, all: bool) -> Result<Links, ReplyError> {
        let limit = limit.min(MOST_ROWS);
        let (loads, touched) = self.handle.call(|engine, _| {
            let touched = engine.touched();
            (engine.link_loads().collect::<Vec<_>>(), touched)
        })?;
        let mut links: BTreeMap<LinkId, LinkLoad> =
            touched.into_iter().map(|link| (link, LinkLoad::default())).collect();
        links.extend(loads);
        let mut total = links.len();
        if all {
            total = self.network.links() as usize;
            let others = (0..self.network.links()).map(LinkId).take(limit);
            for link in others {
                links.entry(link).or_default();
            }
        }
        let mut links: Vec<_> = links.into_iter().collect();
        match sort {
            Sort::Bytes => links.sort_by_key(|(_, load)| Reverse(load.bytes)),
            Sort::Packets => links.sort_by_key(|(_, load)| Reverse(load.packets)),
            Sort::Drops => links.sort_by_key(|(_, load)| Reverse(load.dropped)),
            Sort::Number => {}
        }
        links.truncate(limit);
        let shown: Vec<_> = links.iter().map(|(link, _)| *link).collect();
        let now = self.handle.call(|engine, _| settings(engine, shown))?;
        let views = links
            .into_iter()
            .zip(now)
            .map(|((link, load), (_, settings))| self.link_view(State { link, settings, load }));
        Ok(Links { total, links: views.collect() })
    }

    /// Nodes that come after the one of that name or address, or the first.
    ///
    /// # Errors
    /// When there is no such node, or the lab ends.
    pub fn nodes_after(&self, name: Option<&str>, limit: usize) -> Result<Nodes, ReplyError> {
        let first = match name {
            Some(name) => self.finder().node(name)?.0.saturating_add(1),
            None => 0,
        };
        self.nodes(first, limit)
    }

    /// Nodes in order of their numbers.
    ///
    /// # Errors
    /// When the lab ends.
    pub fn nodes(&self, first: u32, limit: usize) -> Result<Nodes, ReplyError> {
        let limit = u32::try_from(limit.min(MOST_ROWS)).unwrap_or(0);
        let total = self.network.nodes();
        let down = self.handle.call(|engine, _| engine.nodes_down())?;
        let nodes = (first..first.saturating_add(limit).min(total)).map(|number| {
            let up = down.binary_search(&NodeId(number)).is_err();
            self.node_view(NodeId(number), up, up)
        });
        Ok(Nodes { total, nodes: nodes.collect() })
    }

    fn node_view(&self, node: NodeId, was_up: bool, up: bool) -> NodeView {
        NodeView {
            name: self.name(node),
            addresses: self.addresses(node),
            links: self.network.links_of(node).len(),
            was_up,
            up,
        }
    }

    pub(super) fn link_view(&self, state: State) -> LinkView {
        let State { link, settings, load } = state;
        LinkView {
            number: link.0,
            from: self.name(self.network.from(link)),
            to: self.name(self.network.to(link)),
            settings,
            wire: self.is_wire(link),
            changed: settings != *self.network.settings(link),
            packets: load.packets,
            bytes: load.bytes,
            dropped: load.dropped,
        }
    }
}

/// What a link does now, and what it had to do.
pub(super) struct State {
    link: LinkId,
    settings: LinkSettings,
    load: LinkLoad,
}

/// What links do now and had to do.
pub(super) fn states(engine: &mut Engine, links: Vec<LinkId>) -> Vec<State> {
    let loads: Vec<_> = engine.loads_of(&links).collect();
    let state = |(link, load)| State { link, settings: *engine.settings(link), load };
    links.into_iter().zip(loads).map(state).collect()
}

/// What links do now.
pub(super) fn settings(engine: &Engine, links: Vec<LinkId>) -> Vec<(LinkId, LinkSettings)> {
    links.into_iter().map(|link| (link, *engine.settings(link))).collect()
}

/// The ledger with its words; what never came up is omitted.
pub(crate) fn totals(ledger: &Ledger) -> Totals {
    let dropped = Reason::ALL.iter().map(|reason| (reason.word(), ledger[*reason]));
    let made = Made::ALL.iter().map(|made| (made.word(), ledger[*made]));
    fn table<'a>(rows: impl Iterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
        rows.filter(|(_, count)| *count > 0).map(|(word, count)| (word.to_owned(), count)).collect()
    }
    Totals {
        received: ledger.received,
        sent: ledger.sent,
        made: table(made),
        ended: table(dropped),
        in_flight: ledger.in_flight(),
    }
}
