//! What requests ask of the engine, and the changes that they make.

use super::{
    Answer, FindError, HostView, LinkView, Links, MOST_ROWS, NodeView, Nodes, Path, Request, Sort,
    Status, Totals, Verdict,
    find::{Finder, Meant},
    route::Routes,
};
use crate::{
    LinkId, NodeId, SettingsChange,
    engine::{Change, ChangeError, Engine, EngineOptions, Ledger, Made, Reason},
    network::Network,
    run::{Handle, Stopped},
    scene::HostTable,
};
use serde::Serialize;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

/// So many rows of [`Status`] are enough for people.
const STATUS_ROWS: usize = 100;

/// A request cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplyError {
    /// A name is not known.
    #[error(transparent)]
    Find(#[from] FindError),
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
    routes: Mutex<Routes>,
}

impl Context {
    /// `hosts` are those of the scene, each with its namespace.
    pub fn new(
        handle: Handle,
        network: Arc<Network>,
        hosts: Vec<(HostTable, Option<String>)>,
        scene: PathBuf,
        options: &EngineOptions,
    ) -> Self {
        let tables = hosts.iter().map(|(host, _)| host.clone()).collect();
        let routes = Mutex::new(Routes::new(options.policy, options.routes));
        Self { handle, network, hosts, scene, tables, routes }
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// Looks names up.
    pub fn finder(&self) -> Finder<'_> {
        Finder::new(&self.network, &self.tables)
    }

    /// A node's name.
    pub(super) fn name(&self, node: NodeId) -> String {
        self.network.name(node).into_owned()
    }

    /// A link's name.
    pub(super) fn link_name(&self, link: LinkId) -> String {
        format!("{}>{}", self.name(self.network.from(link)), self.name(self.network.to(link)))
    }

    /// The answer to a request that has one answer.
    pub fn reply(&self, request: &Request) -> Answer {
        fn value<T: Serialize>(result: Result<T, ReplyError>) -> Result<serde_json::Value, String> {
            let value = result.map_err(|error| error.to_string())?;
            serde_json::to_value(value).map_err(|error| error.to_string())
        }
        let result = match request {
            Request::Status {} => value(self.status()),
            Request::Path { from, to } => value(self.path(from, to)),
            Request::Link { link, set } => value(self.link(link, *set)),
            Request::Node { node, up } => value(self.node(node, *up)),
            Request::Links { sort, limit } => value(self.links(*sort, *limit)),
            Request::Nodes { first, limit } => value(self.nodes(*first, *limit)),
            Request::Events {} => Ok(serde_json::json!({})),
        };
        match result {
            Ok(value) => Answer::Ok(value),
            Err(sentence) => Answer::Error(sentence),
        }
    }

    /// How the lab is.
    ///
    /// # Errors
    /// When it ends.
    pub fn status(&self) -> Result<Status, ReplyError> {
        let (ledger, runs, down, touched) = self.handle.call(|engine, now| {
            (engine.ledger().clone(), now, engine.nodes_down(), settings(engine, engine.touched()))
        })?;
        let hosts = self.hosts.iter().map(|(host, namespace)| HostView {
            name: host.name.clone(),
            node: host.attach.clone(),
            addresses: host.address.to_vec(),
            namespace: namespace.clone(),
        });
        let shown = touched.iter().take(STATUS_ROWS);
        Ok(Status {
            pid: std::process::id(),
            scene: self.scene.clone(),
            runs,
            nodes: self.network.nodes(),
            links: self.network.links(),
            hosts: hosts.collect(),
            packets: totals(&ledger),
            down: down.into_iter().take(STATUS_ROWS).map(|node| self.name(node)).collect(),
            touched: shown.map(|(link, settings)| self.link_view(*link, *settings)).collect(),
            touched_in_all: touched.len(),
        })
    }

    /// The way of packets.
    ///
    /// # Errors
    /// When a name is not known, or the lab ends.
    pub fn path(&self, from: &str, to: &str) -> Result<Path, ReplyError> {
        let mut routes = self.routes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        routes.path(self, from, to)
    }

    /// Changes a link, if anything is to be set.
    ///
    /// # Errors
    /// When there is no such link, or the lab ends.
    pub fn link(&self, text: &str, set: SettingsChange) -> Result<Verdict, ReplyError> {
        let Meant { link, both_ways } = self.finder().link(text)?;
        let back = self.network.reverse(link).filter(|_| both_ways);
        let links: Vec<_> = [Some(link), back].into_iter().flatten().collect();
        let (before, after) = self.handle.call(move |engine, now| {
            let before = settings(engine, links.clone());
            if !set.is_empty() {
                engine.apply(now, Change::Link { link, both_ways, settings: set })?;
            }
            Ok::<_, ChangeError>((before, settings(engine, links)))
        })??;
        let view = |links: Vec<(LinkId, _)>| {
            links.into_iter().map(|(link, settings)| self.link_view(link, settings)).collect()
        };
        Ok(Verdict { before: view(before), after: view(after) })
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

    /// The links that were changed or do more than delay and have met packets.
    ///
    /// # Errors
    /// When the lab ends.
    pub fn links(&self, sort: Sort, limit: usize) -> Result<Links, ReplyError> {
        let mut links = self.handle.call(|engine, _| settings(engine, engine.touched()))?;
        let in_all = links.len();
        if sort == Sort::Delay {
            links.sort_by_key(|(_, settings)| std::cmp::Reverse(settings.delay));
        }
        let shown = links.into_iter().take(limit.min(MOST_ROWS));
        let links = shown.map(|(link, settings)| self.link_view(link, settings)).collect();
        Ok(Links { in_all, links })
    }

    /// Nodes in order of their numbers.
    ///
    /// # Errors
    /// When the lab ends.
    pub fn nodes(&self, first: u32, limit: usize) -> Result<Nodes, ReplyError> {
        let limit = u32::try_from(limit.min(MOST_ROWS)).unwrap_or(0);
        let in_all = self.network.nodes();
        let down = self.handle.call(|engine, _| engine.nodes_down())?;
        let nodes = (first..first.saturating_add(limit).min(in_all)).map(|number| {
            let up = down.binary_search(&NodeId(number)).is_err();
            self.node_view(NodeId(number), up, up)
        });
        Ok(Nodes { in_all, nodes: nodes.collect() })
    }

    fn node_view(&self, node: NodeId, was_up: bool, up: bool) -> NodeView {
        NodeView {
            name: self.name(node),
            addresses: self.finder().addresses(node),
            links: self.network.links_of(node).len(),
            was_up,
            up,
        }
    }

    fn link_view(&self, link: LinkId, settings: crate::LinkSettings) -> LinkView {
        LinkView {
            from: self.name(self.network.from(link)),
            to: self.name(self.network.to(link)),
            settings,
            changed: settings != *self.network.settings(link),
        }
    }
}

/// What links do now.
pub(super) fn settings(
    engine: &Engine,
    links: Vec<LinkId>,
) -> Vec<(LinkId, crate::LinkSettings)> {
    links.into_iter().map(|link| (link, *engine.settings(link))).collect()
}

/// The ledger with its words; what never came up is left out.
pub(crate) fn totals(ledger: &Ledger) -> Totals {
    let dropped = Reason::ALL.iter().map(|reason| (reason.word(), ledger[*reason]));
    let made = Made::ALL.iter().map(|made| (made.word(), ledger[*made]));
    fn table<'a>(
        rows: impl Iterator<Item = (&'a str, u64)>,
    ) -> std::collections::BTreeMap<String, u64> {
        rows.filter(|(_, count)| *count > 0).map(|(word, count)| (word.to_owned(), count)).collect()
    }
    Totals {
        received: ledger.received,
        sent: ledger.sent,
        made: table(made),
        ended: table(dropped),
        inside: ledger.inside(),
    }
}
