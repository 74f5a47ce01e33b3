//! The answers to commands about a running lab.

use crate::{LinkSettings, Nanos};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::IpAddr, path::PathBuf};

/// How a lab is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The lab's process.
    pub pid: u32,
    /// The file of its scene.
    pub scene: PathBuf,
    /// How long it has run.
    pub runs: Nanos,
    /// Nodes of its network.
    pub nodes: u32,
    /// Directed links of its network.
    pub links: u32,
    /// Its hosts.
    pub hosts: Vec<HostView>,
    /// Packets by outcome.
    pub packets: Totals,
    /// Nodes that are down, by name; the first hundred.
    pub down: Vec<String>,
    /// Links that were changed, those that do more than delay and have met a packet, and wires; the
    /// first hundred.
    pub touched: Vec<LinkView>,
    /// How many of those links there are.
    pub touched_total: usize,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostView {
    /// Its name.
    pub name: String,
    /// The node that it is joined to.
    pub node: String,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
}

/// Packets by outcome: what came and was made equals what left, ended or is inside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// From hosts.
    pub received: u64,
    /// To hosts.
    pub sent: u64,
    /// Made inside, by what.
    pub made: BTreeMap<String, u64>,
    /// Ended in the lab, by reason.
    pub ended: BTreeMap<String, u64>,
    /// In flight now.
    pub in_flight: u64,
}

/// A directed link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkView {
    /// Its number in the network.
    pub number: u32,
    /// The node that it leaves.
    pub from: String,
    /// The node that it leads to.
    pub to: String,
    /// What differs from a link that does nothing.
    pub settings: LinkSettings,
    /// Whether it is a direction of a wire.
    pub wire: bool,
    /// Whether it does something else than in the network's file or scene.
    pub changed: bool,
    /// Packets that came to it; a super-packet is one.
    pub packets: u64,
    /// Bytes of their IP packets; of frames on a wire, what is behind the Ethernet header.
    pub bytes: u64,
    /// Packets of these that it did not carry.
    pub dropped: u64,
}

/// Whether a node is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Its own addresses.
    pub addresses: Vec<IpAddr>,
    /// How many links leave it.
    pub links: usize,
    /// Whether it was there before the request.
    pub was_up: bool,
    /// Whether it is there.
    pub up: bool,
}

/// Before and after a change of a link, each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkChange {
    /// Before.
    pub before: Vec<LinkView>,
    /// After; the same when nothing was to change.
    pub after: Vec<LinkView>,
}

/// What comes first in a list of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Most bytes
    #[default]
    Bytes,
    /// Most packets
    Packets,
    /// Most packets that were not carried
    Drops,
    /// By number in the network
    Number,
}

/// Links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// How many there are to show.
    pub total: usize,
    /// The first of them.
    pub links: Vec<LinkView>,
}

/// Nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// How many the network has.
    pub total: u32,
    /// Those that were asked for.
    pub nodes: Vec<NodeView>,
}

/// The path of packets from one node to another, and the links on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// What was asked for.
    pub from: String,
    /// What was asked for.
    pub to: String,
    /// The address that packets go to.
    pub address: IpAddr,
    /// The nodes, the first of which is where packets set out.
    pub hops: Vec<PathHop>,
    /// The host that they reach behind the last node.
    pub host: Option<String>,
    /// Why packets do not get further than the last hop; nothing when they arrive.
    pub stopped: Option<String>,
    /// Whether other flows may take another path of equal cost.
    pub ecmp: bool,
    /// What the links' delays add up to; queues, jitter and transmission come on top.
    pub delay: Nanos,
    /// The lowest rate, bits a second, if there is any.
    #[serde(rename = "bits_per_second")]
    pub rate: Option<u64>,
    /// The link that has it.
    pub bottleneck: Option<String>,
    /// The largest packet that passes whole, bytes.
    pub mtu: Option<u32>,
    /// The share of packets that links lose by chance, from 0 to 1.
    pub loss: f64,
}

/// A node on a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathHop {
    /// Its name.
    pub node: String,
    /// The address by which it answers: of the interface that packets come in by.
    pub address: Option<IpAddr>,
    /// What the links up to here add up to.
    pub delay: Nanos,
    /// What the link to here does; nothing at the first node.
    pub link: Option<LinkSettings>,
}

/// The part of a lab that is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// The file of its scene.
    pub scene: PathBuf,
    /// How long it has run.
    pub runs: Nanos,
    /// Nodes of its network.
    pub nodes_total: u32,
    /// Directed links of its network.
    pub links_total: u32,
    /// The nodes that are drawn.
    pub nodes: Vec<MapNode>,
    /// The links between them.
    pub links: Vec<LinkView>,
    /// How many links between them are skipped.
    pub links_skipped: usize,
    /// Its hosts.
    pub hosts: Vec<HostView>,
    /// Packets by outcome.
    pub packets: Totals,
}

/// A node that is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapNode {
    /// Its name.
    pub name: String,
    /// Its own addresses.
    pub addresses: Vec<IpAddr>,
    /// How many links leave it.
    pub links: usize,
    /// Whether it is there.
    pub up: bool,
}
