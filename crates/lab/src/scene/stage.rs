//! From a scene to what is run: the network, and where its hosts are.

use super::{Scene, no_such_node};
use crate::{
    LinkSettings, NodeId,
    network::{BuildError, Builder, Kind, Network, Plan, Relation},
};
use ipnet::IpNet;
use std::{
    collections::HashSet,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};
use wire::{Problem, config::Report};

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
}

/// What the scene says does not fit together.
#[derive(Debug, thiserror::Error)]
#[error("{}", sentence(.0))]
pub struct StageError(pub Vec<Problem>);

fn sentence(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Scene {
    /// Builds the network and finds in it what the scene speaks of.
    ///
    /// # Errors
    /// See [`StageError`]; the scene must have no [problems](Scene::problems) by itself.
    pub fn stage(&self) -> Result<Stage, StageError> {
        let mut problems = Vec::new();
        let network = self.build().map_err(|problem| StageError(vec![problem]))?;
        let mut report = Report::new(&mut problems, "");
        let mut attached = Vec::new();
        for (i, host) in self.hosts.iter().enumerate() {
            match network.find(&host.attach) {
                Some(node) => attached.push(node),
                None => report.add(&format!("host[{i}].attach"), no_such_node(&host.attach)),
            }
        }
        if !problems.is_empty() {
            return Err(StageError(problems));
        }
        Ok(Stage { network: Arc::new(network), attached })
    }

    /// The network of `[[node]]` and `[[link]]`. The networks of hosts are behind their nodes.
    fn build(&self) -> Result<Network, Problem> {
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
            if link.one_way {
                let relation = Relation::None;
                let kind = builder.kind(&Kind { settings, weight: link.weight, relation });
                kind.and_then(|kind| builder.one_way(a, b, kind)).map_err(wrong)?;
            } else {
                builder.link(a, b, &settings, link.weight, Relation::None).map_err(wrong)?;
            }
        }
        builder.finish().map_err(at("node".to_owned()))
    }
}

/// The bits of an address of this family.
fn width(network: &IpNet) -> u8 {
    network.max_prefix_len()
}
