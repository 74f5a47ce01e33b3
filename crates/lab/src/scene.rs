//! Scenes: a network and the hosts at its edge, as people write it.
//!
//! ```toml
//! [lab]
//! seed = 7
//!
//! [[node]]
//! name = "r1"
//!
//! [[node]]
//! name = "r2"
//!
//! [[link]]
//! between = ["r1", "r2"]
//! delay = "10ms"
//!
//! [[host]]
//! name = "pc"
//! attach = "r1"
//! address = "20.0.0.10/24"
//!
//! [[host]]
//! name = "server"
//! attach = "r2"
//! address = ["30.0.0.10/24", "2001:db8:30::10/64"]
//! ```
//!
//! Every type here is one table of the file; unknown keys are refused. [`Scene::problems`] says what
//! is wrong in the file by itself, [`Scene::stage`] what does not fit the network.

mod list;
mod stage;

pub use list::List;
pub use stage::{Stage, StageError};

use crate::settings::SettingsChange;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, net::IpAddr};
use wire::{Problem, config::Report};

/// The sections of a scene.
pub const SECTIONS: [&str; 4] = ["lab", "node", "link", "host"];
/// Most ports of a lab.
pub const MOST_HOSTS: usize = 4096;
/// Longest name of a host: that of a file.
const LONGEST_NAME: usize = 200;
/// MTU of a host's interface when none is given: Ethernet's.
const MTU: u32 = 1500;
/// Lowest MTU that IPv4 and IPv6 can do with (RFC 791, RFC 8200 section 5), and the longest packet.
const MTUS: [u32; 3] = [68, 1280, 65_535];

/// A scene.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// `[lab]`
    pub lab: LabTable,
    /// `[[node]]`
    pub nodes: Vec<NodeTable>,
    /// `[[link]]`
    pub links: Vec<LinkTable>,
    /// `[[host]]`
    pub hosts: Vec<HostTable>,
}

/// `[lab]`
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LabTable {
    /// What all randomness comes from.
    pub seed: u64,
}

impl Default for LabTable {
    fn default() -> Self {
        Self { seed: 1 }
    }
}

/// `[[node]]`: a simulated router.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NodeTable {
    /// Its name.
    pub name: String,
    /// Addresses of its own.
    #[serde(default)]
    pub address: List<IpAddr>,
    /// Networks behind it.
    #[serde(default)]
    pub prefix: List<IpNet>,
}

/// `[[link]]`: a link between two nodes, the same in both directions unless `one_way`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct LinkTable {
    /// Its ends.
    pub between: [String; 2],
    /// What routing adds up along a path.
    #[serde(default = "one")]
    pub weight: u32,
    /// Whether it leads from the first to the second only.
    #[serde(default)]
    pub one_way: bool,
    /// What it does to packets.
    #[serde(flatten)]
    pub settings: SettingsChange,
}

fn one() -> u32 {
    1
}

/// `[[host]]`: a real host at a node.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// Its name, and that of the namespace which is made for it.
    pub name: String,
    /// The node that it is joined to.
    pub attach: String,
    /// Its addresses, each with the length of the prefix that is on its link.
    #[serde(default)]
    pub address: List<IpNet>,
    /// The namespace to join instead of making one.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The interface's name in the namespace.
    #[serde(default)]
    pub interface: Option<String>,
    /// A TAP device that is there already, instead of a namespace.
    #[serde(default)]
    pub tap: Option<String>,
    /// Longest IP packet of its interface in bytes.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Whether it gets default routes.
    #[serde(default)]
    pub default_route: Option<bool>,
}

/// What a host is joined by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint<'a> {
    /// A namespace that the lab makes.
    Made,
    /// An interface that the lab makes in a namespace of this name.
    Found(&'a str),
    /// The TAP device of this name.
    Tap(&'a str),
}

impl HostTable {
    /// What it is joined by.
    pub fn joint(&self) -> Joint<'_> {
        match (&self.namespace, &self.tap) {
            (_, Some(tap)) => Joint::Tap(tap),
            (Some(namespace), None) => Joint::Found(namespace),
            (None, None) => Joint::Made,
        }
    }

    /// The interface's name in its namespace.
    pub fn interface(&self) -> &str {
        self.interface.as_deref().unwrap_or("eth0")
    }

    /// Longest IP packet of its interface in bytes.
    pub fn mtu(&self) -> u32 {
        self.mtu.unwrap_or(MTU)
    }

    /// Whether it gets default routes: in namespaces of the lab unless told otherwise.
    pub fn has_default_route(&self) -> bool {
        self.default_route.unwrap_or(self.joint() == Joint::Made)
    }

    fn problems(&self, report: &mut Report<'_>) {
        if let Some(why) = bad_name(&self.name) {
            report.add("name", why);
        }
        let taken = [("namespace", &self.namespace), ("interface", &self.interface)];
        if self.tap.is_some() {
            for (key, _) in taken.iter().filter(|(_, value)| value.is_some()) {
                report.add(key, "a host with `tap` has no namespace: remove one of the two");
            }
            for (key, set) in
                [("mtu", self.mtu.is_some()), ("default_route", self.default_route.is_some())]
            {
                if set {
                    report.add(key, "whoever made the TAP device sets this: remove it here");
                }
            }
        }
        for (key, name) in [("interface", &self.interface), ("tap", &self.tap)] {
            if let Some(name) = name
                && let Some(why) = wire::config::bad_interface(name)
            {
                report.add(key, why);
            }
        }
        if let Some(why) = self.namespace.as_deref().and_then(bad_name) {
            report.add("namespace", why);
        }
        if self.address.is_empty() {
            report.add("address", "a host without address hears nothing: add `address`");
        }
        for (i, address) in self.address.iter().enumerate() {
            let key = self.address.key("address", i);
            let ip = address.addr();
            if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
                report.add(&key, format!("{ip} cannot be the address of a host"));
            }
        }
        let [lowest4, lowest6, highest] = MTUS;
        let v6 = self.address.iter().any(|address| address.addr().is_ipv6());
        let lowest = if v6 { lowest6 } else { lowest4 };
        if !(lowest..=highest).contains(&self.mtu()) {
            report.add("mtu", format!("{} is not from {lowest} to {highest}", self.mtu()));
        }
    }
}

impl Scene {
    /// Everything that is wrong in the file by itself; empty when all is well.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut report = Report::new(&mut problems, "");
        if self.nodes.is_empty() {
            report.add("node", "there is no network: add `[[node]]` and `[[link]]`");
        }
        let mut names = HashSet::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let mut report = report.within(&format!("node[{i}]"));
            if node.name.is_empty()
                || node.name.chars().any(|c| c.is_control() || c.is_whitespace())
            {
                report.add("name", "a name has at least one character and no blank");
            } else if !names.insert(node.name.as_str()) {
                report.add("name", format!("there are two nodes {}: rename one", node.name));
            }
            wire::config::prefixes("prefix", &node.prefix, &mut report);
        }
        for (i, link) in self.links.iter().enumerate() {
            let mut report = report.within(&format!("link[{i}]"));
            for (j, end) in link.between.iter().enumerate() {
                if !names.contains(end.as_str()) {
                    report.add(&format!("between[{j}]"), no_such_node(end));
                }
            }
            if link.between[0] == link.between[1] {
                report.add("between", "a link joins two nodes");
            }
            if link.weight == 0 {
                report.add("weight", "the least weight is 1");
            }
        }
        if self.hosts.len() > MOST_HOSTS {
            report.add("host", format!("more than {MOST_HOSTS} hosts"));
        }
        let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
        for (i, host) in self.hosts.iter().enumerate() {
            let mut report = report.within(&format!("host[{i}]"));
            host.problems(&mut report);
            if !names.insert(host.name.as_str()) {
                report.add("name", format!("there are two hosts {}: rename one", host.name));
            }
            for (j, address) in host.address.iter().enumerate() {
                if !addresses.insert(address.addr()) {
                    let key = host.address.key("address", j);
                    report.add(&key, format!("{} is given twice: change one", address.addr()));
                }
            }
        }
        problems
    }
}

/// What to say of a node that is not there.
fn no_such_node(name: &str) -> String {
    format!("there is no node {name}: add it, or correct the name")
}

/// Why a text cannot name a namespace, which is a file.
fn bad_name(name: &str) -> Option<String> {
    let bad = name.is_empty()
        || name.len() > LONGEST_NAME
        || name.starts_with(['.', '-'])
        || name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    bad.then(|| {
        format!(
            "{name:?} cannot name a namespace: 1 to {LONGEST_NAME} bytes, no blank, no `/`, no `.` or `-` at the beginning"
        )
    })
}
