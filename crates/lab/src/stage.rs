//! From a scene to what is run: the network, where its hosts are, and what happens when.

use crate::{
    LinkId, LinkSettings, Nanos, NodeId,
    control::{Finder, Meant},
    engine::Change,
    network::{BuildError, Builder, Kind, Network, OpenError, Plan, Relation},
    scene::{Scene, no_such_node},
};
use config::{Problem, Report};
use ipnet::IpNet;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::{Ipv4Addr, Ipv6Addr},
    path::Path,
    sync::Arc,
};

/// Addresses of nodes and of the ends of links in a network that is written in a scene, where none are
/// given: shared address space (RFC 6598) and unique local addresses (RFC 4193), one after the other.
const ADDRESSES: Plan = Plan {
    node4: Some(Ipv4Addr::new(100, 64, 0, 1)),
    link4: Some(Ipv4Addr::new(100, 96, 0, 1)),
    node6: Some(Ipv6Addr::new(0xfd6e, 0x6967, 0x6800, 0, 0, 0, 0, 1)),
    link6: Some(Ipv6Addr::new(0xfd6e, 0x6967, 0x6801, 0, 0, 0, 0, 1)),
};

/// What is run.
#[derive(Debug)]
pub struct Stage {
    /// The network.
    pub network: Arc<Network>,
    /// The node of each host.
    pub attached: Vec<NodeId>,
    /// A direction of each wire, from its first end to its second.
    pub wires: Vec<LinkId>,
    /// What changes when, in order.
    pub events: VecDeque<(Nanos, Change)>,
}

/// A scene cannot be staged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The file of the network cannot be used.
    #[error(transparent)]
    Network(#[from] OpenError),
    /// What the scene says does not fit together or does not fit the network.
    #[error("{}", sentence(.0))]
    Problems(Vec<Problem>),
}

fn sentence(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Scene {
    /// Opens or builds the network and finds in it what the scene speaks of. Paths are relative to
    /// `folder`, where the scene's file is.
    ///
    /// # Errors
    /// See [`StageError`]; the scene must have no [problems](Scene::problems) by itself.
    pub fn stage(&self, folder: &Path) -> Result<Stage, StageError> {
        let mut problems = Vec::new();
        let (network, wires) = match &self.lab.network {
            Some(file) => {
                let path = folder.join(file);
                (Network::open(&path)?, Vec::new())
            }
            None => self.build().map_err(|problem| StageError::Problems(vec![problem]))?,
        };
        let mut report = Report::new(&mut problems, "");
        let mut attached = Vec::new();
        for (i, host) in self.hosts.iter().enumerate() {
            match network.find(&host.attach) {
                Some(node) if !wires.iter().any(|wire| joins(&network, *wire, node)) => {
                    attached.push(node);
                }
                _ => report.add(&format!("host[{i}].attach"), no_such_node(&host.attach)),
            }
        }
        let mut events = Vec::new();
        let mut prohibited = HashMap::new();
        for table in self.nodes.iter().filter(|table| !table.prohibit.is_empty()) {
            if let Some(node) = network.find(&table.name) {
                let list = prohibited.entry(node).or_default();
                prohibit(node, list, &table.prohibit, |change| events.push((Nanos::ZERO, change)));
            }
        }
        // Those of the same time in the order of the file.
        let mut order: Vec<_> = self.events.iter().enumerate().collect();
        order.sort_by_key(|(_, event)| event.at);
        for (i, event) in order {
            if let Some(name) = &event.node {
                match network.find(name) {
                    Some(node) => {
                        if let Some(up) = event.set.settings.up {
                            events.push((event.at, Change::Node { node, up }));
                        }
                        if let Some(list) = &event.set.prohibit {
                            let before = prohibited.entry(node).or_default();
                            let put = |change: Change| events.push((event.at, change));
                            prohibit(node, before, list, put);
                        }
                    }
                    None => report.add(&format!("event[{i}].node"), no_such_node(name)),
                }
            }
            if let Some(name) = &event.link {
                match find_link(&network, name) {
                    Ok(link) if !event.one_way && network.reverse(link).is_none() => {
                        let why = format!("{name} has no reverse direction: add `one_way = true`");
                        report.add(&format!("event[{i}].link"), why);
                    }
                    Ok(link) => {
                        let (both_ways, settings) = (!event.one_way, event.set.settings);
                        events.push((event.at, Change::Link { link, both_ways, settings }));
                    }
                    Err(why) => report.add(&format!("event[{i}].link"), why),
                }
            }
        }
        if !problems.is_empty() {
            return Err(StageError::Problems(problems));
        }
        Ok(Stage { network: Arc::new(network), attached, wires, events: events.into() })
    }

    /// The network of `[[node]]` and `[[link]]`, and a direction of each wire. The networks of hosts
    /// are behind their nodes. A wire is a link between two nodes that stand for what it is plugged into;
    /// they come last, so that the others' addresses are the same without them.
    fn build(&self) -> Result<(Network, Vec<LinkId>), Problem> {
        fn at(key: String) -> impl FnOnce(BuildError) -> Problem {
            move |error| Problem::new(key, error.to_string())
        }
        let mut builder = Builder::with_plan(ADDRESSES);
        let mut prefixes = HashSet::new();
        for (i, table) in self.nodes.iter().enumerate() {
            let node = builder.node(&table.name).map_err(at(format!("node[{i}].name")))?;
            for address in table.address.iter() {
                let result = builder.node_address(node, *address);
                result.map_err(at(format!("node[{i}].address")))?;
            }
            for prefix in table.prefix.iter() {
                prefixes.insert(*prefix);
                builder.prefix(node, *prefix).map_err(at(format!("node[{i}].prefix")))?;
            }
        }
        for host in &self.hosts {
            let networks = host.address.iter().map(IpNet::trunc);
            if let Some(node) = builder.known(&host.attach) {
                for network in networks.filter(|network| network.prefix_len() < width(network)) {
                    if prefixes.insert(network) {
                        let result = builder.prefix(node, network);
                        result.map_err(at("host".to_owned()))?;
                    }
                }
            }
        }
        for (i, link) in self.links.iter().enumerate() {
            let mut settings = LinkSettings::default();
            link.settings.apply(&mut settings);
            let [a, b] = [0, 1].map(|j: usize| {
                let end = &link.between[j];
                let missing = || Problem::new(format!("link[{i}].between[{j}]"), no_such_node(end));
                builder.known(end).ok_or_else(missing)
            });
            let (a, b) = (a?, b?);
            let wrong = at(format!("link[{i}]"));
            let relation = Relation::from(link.relation);
            if link.one_way {
                let kind = builder.kind(&Kind { settings, weight: link.weight, relation });
                kind.and_then(|kind| builder.one_way(a, b, kind)).map_err(wrong)?;
            } else {
                builder.link(a, b, &settings, link.weight, relation).map_err(wrong)?;
            }
        }
        let mut drafts = Vec::new();
        for (i, wire) in self.wires.iter().enumerate() {
            let mut settings = LinkSettings::default();
            wire.settings.apply(&mut settings);
            let [a, b] = [0, 1].map(|j: usize| match wire.between[j].name() {
                name if builder.known(name).is_some() => Ok(builder.known(name)),
                name => {
                    builder.node(name).map(Some).map_err(at(format!("wire[{i}].between[{j}].name")))
                }
            });
            if let (Some(a), Some(b)) = (a?, b?) {
                let drafted = builder.link(a, b, &settings, 1, Relation::None);
                drafts.push(drafted.map_err(at(format!("wire[{i}]")))?[0]);
            }
        }
        builder.finish_with(&drafts).map_err(at("node".to_owned()))
    }
}

/// The changes after which a node lets nothing pass to the networks of a list, and to no others of those
/// before, which the list takes the place of.
fn prohibit(node: NodeId, before: &mut Vec<IpNet>, list: &[IpNet], put: impl FnMut(Change)) {
    let change = |prohibited| move |&prefix: &IpNet| Change::Prohibit { node, prefix, prohibited };
    let gone = before.iter().filter(|net| !list.contains(net)).map(change(false));
    let new = list.iter().filter(|net| !before.contains(net)).map(change(true));
    gone.chain(new).for_each(put);
    *before = list.to_vec();
}

/// Whether a node is at an end of a link.
fn joins(network: &Network, link: LinkId, node: NodeId) -> bool {
    network.from(link) == node || network.to(link) == node
}

/// The bits of an address of this family.
fn width(network: &IpNet) -> u8 {
    network.max_prefix_len()
}

/// The link that an event names, as commands name links; both directions are meant unless the event says
/// `one_way = true`.
///
/// # Errors
/// What is wrong, for people.
pub fn find_link(network: &Network, name: &str) -> Result<LinkId, String> {
    match Finder::new(network, &[]).direction(name) {
        Ok(Meant { link, both_ways: true }) => Ok(link),
        Ok(_) => Err(format!("{name} is one-way: write a hyphen and `one_way = true`")),
        Err(error) => Err(error.to_string()),
    }
}
