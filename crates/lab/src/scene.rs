//! Scenes: a network, the hosts at its edge and what happens when, as people write it.
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
//!
//! [[event]]
//! at = "10s"
//! link = "r1-r2"
//! set = { delay = "50ms", loss = "1%" }
//! ```
//!
//! Every type here is one table of the file; unknown keys are refused. [`Scene::problems`] checks the
//! file by itself, [`Scene::stage`] checks it against the network.

mod ends;
mod list;

pub use ends::{WireEnd, WireTable};
pub use list::List;

use crate::{
    Nanos, RouteMode,
    network::{Network, Relation},
    settings::SettingsChange,
};
use config::{Problem, Report, prefixes};
use ipnet::IpNet;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, IntoDeserializer},
};
use std::{collections::HashSet, net::IpAddr, path::PathBuf};

/// The sections of a scene.
pub const SECTIONS: [&str; 6] = ["lab", "node", "link", "host", "wire", "event"];
/// Most ports of a lab: a host has one, a wire two.
pub const MOST_PORTS: usize = 4096;
/// Longest name of a host: that of a file.
const LONGEST_NAME: usize = 200;
/// The default MTU of a host's interface: Ethernet's.
const MTU: u32 = 1500;
/// Lowest MTU for IPv4 and IPv6 (RFC 791, RFC 8200 section 5), and the longest packet.
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
    /// `[[wire]]`
    pub wires: Vec<WireTable>,
    /// `[[event]]`
    pub events: Vec<EventTable>,
}

/// `[lab]`
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LabTable {
    /// The file of a network; without it the network is that of `[[node]]` and `[[link]]`.
    pub network: Option<PathBuf>,
    /// The seed of all randomness.
    pub seed: u64,
    /// Whether super-packets cross whole if no link handles packets one by one.
    pub gso: bool,
    /// Time from a change of a link until routing has converged.
    pub convergence: Nanos,
    /// Which paths are best; by default it depends on the network, see [`Routing::fitting`].
    pub routing: Option<Routing>,
    /// Whether flows are spread over equal-cost paths (ECMP).
    pub ecmp: bool,
}

/// Which paths are best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// Those of the smallest sum of weights.
    Shortest,
    /// Valley-free paths by business relations: over customers, else peers, else providers.
    ValleyFree,
}

impl Routing {
    /// The default: valley-free paths if links have business relations, else the shortest ones.
    pub fn fitting(network: &Network) -> Self {
        if network.has_relations() { Self::ValleyFree } else { Self::Shortest }
    }
}

impl From<Routing> for RouteMode {
    fn from(routing: Routing) -> Self {
        match routing {
            Routing::Shortest => Self::Shortest,
            Routing::ValleyFree => Self::ValleyFree,
        }
    }
}

impl Default for LabTable {
    fn default() -> Self {
        let convergence = Nanos(1_000_000_000);
        Self { network: None, seed: 1, gso: true, convergence, routing: None, ecmp: false }
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
    /// Networks that it refuses to forward to.
    #[serde(default)]
    pub prohibit: List<IpNet>,
}

/// `[[link]]`: a link between two nodes, the same in both directions unless `one_way`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct LinkTable {
    /// Its ends.
    pub between: [String; 2],
    /// Its weight in the cost of paths.
    #[serde(default = "one")]
    pub weight: u32,
    /// Whether it leads from the first to the second only.
    #[serde(default)]
    pub one_way: bool,
    /// What the second is to the first, for valley-free routing.
    #[serde(default, deserialize_with = "relation")]
    pub relation: Business,
    /// Delay, loss, rate and other settings.
    #[serde(flatten)]
    pub settings: SettingsChange,
}

/// What one end of a link is to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Business {
    /// Both are of one network.
    #[default]
    Internal,
    /// It sells transit.
    Provider,
    /// They exchange their customers' traffic.
    Peer,
    /// It buys transit.
    Customer,
}

impl From<Business> for Relation {
    fn from(business: Business) -> Self {
        match business {
            Business::Internal => Self::None,
            Business::Provider => Self::Provider,
            Business::Peer => Self::Peer,
            Business::Customer => Self::Customer,
        }
    }
}

/// Reads a relation; the old word for an internal link is refused with the new one.
fn relation<'de, D: Deserializer<'de>>(from: D) -> Result<Business, D::Error> {
    let word = String::deserialize(from)?;
    if word == "inside" {
        return Err(D::Error::custom("`inside` was renamed to `internal`"));
    }
    Business::deserialize(IntoDeserializer::<D::Error>::into_deserializer(word))
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
    /// An existing namespace, instead of one that the lab makes.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The name of its interface.
    #[serde(default)]
    pub interface: Option<String>,
    /// An existing TAP device that no program has open; in `namespace`, else where the lab is run.
    #[serde(default)]
    pub tap: Option<String>,
    /// An existing interface towards the host, in `namespace` like `tap`. All its frames go to the lab.
    #[serde(default)]
    pub xdp: Option<String>,
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
    /// The interface of this name, through AF_XDP.
    Xdp(&'a str),
}

impl HostTable {
    /// A host in a namespace that is made for it, with nothing special.
    pub fn new(name: &str, attach: &str, addresses: Vec<IpNet>) -> Self {
        Self {
            name: name.to_owned(),
            attach: attach.to_owned(),
            address: addresses.into(),
            namespace: None,
            interface: None,
            tap: None,
            xdp: None,
            mtu: None,
            default_route: None,
        }
    }

    /// What it is joined by.
    pub fn joint(&self) -> Joint<'_> {
        match (&self.namespace, &self.tap, &self.xdp) {
            (_, Some(tap), _) => Joint::Tap(tap),
            (_, None, Some(interface)) => Joint::Xdp(interface),
            (Some(namespace), None, None) => Joint::Found(namespace),
            (None, None, None) => Joint::Made,
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

    /// Whether it gets default routes: in namespaces of the lab unless set otherwise.
    pub fn has_default_route(&self) -> bool {
        self.default_route.unwrap_or(self.joint() == Joint::Made)
    }

    fn problems(&self, report: &mut Report<'_>) {
        if self.address.is_empty() {
            report.add("address", "a host needs an address: add `address`");
        }
        let [lowest4, lowest6, highest] = MTUS;
        let v6 = self.address.iter().any(|address| address.addr().is_ipv6());
        let lowest = if v6 { lowest6 } else { lowest4 };
        if !(lowest..=highest).contains(&self.mtu()) {
            report.add("mtu", format!("{} is not from {lowest} to {highest}", self.mtu()));
        }
        self.end_problems(report);
    }

    /// What is wrong with how it is joined, which an end of a wire is as well.
    fn end_problems(&self, report: &mut Report<'_>) {
        if let Some(why) = bad_name(&self.name) {
            report.add("name", why);
        }
        if self.tap.is_some() && self.xdp.is_some() {
            report.add("xdp", "this is joined by `tap` or by `xdp`: remove one of the two");
        }
        if matches!(self.joint(), Joint::Tap(_) | Joint::Xdp(_)) {
            for (key, is_there) in [
                ("interface", self.interface.is_some()),
                ("mtu", self.mtu.is_some()),
                ("default_route", self.default_route.is_some()),
            ] {
                if is_there {
                    report.add(
                        key,
                        "this is set where the host's interface is configured: remove it here",
                    );
                }
            }
        }
        for (key, name) in [("interface", &self.interface), ("tap", &self.tap), ("xdp", &self.xdp)]
        {
            if let Some(why) = name.as_deref().and_then(config::bad_interface) {
                report.add(key, why);
            }
        }
        if let Some(why) = self.namespace.as_deref().and_then(bad_name) {
            report.add("namespace", why);
        }
        for (i, address) in self.address.iter().enumerate() {
            let key = self.address.key("address", i);
            let ip = address.addr();
            if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
                report.add(&key, format!("{ip} cannot be the address of a host"));
            }
        }
    }
}

/// `[[event]]`: something changes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EventTable {
    /// When, from the lab's start.
    pub at: Nanos,
    /// The link that changes, in both directions: the names of its ends with a hyphen between.
    #[serde(default)]
    pub link: Option<String>,
    /// Whether only the direction from the first end to the second changes.
    #[serde(default)]
    pub one_way: bool,
    /// The node that changes.
    #[serde(default)]
    pub node: Option<String>,
    /// What changes.
    pub set: EventSet,
}

/// What an event changes: settings of a link, or of a node whether it is up and what it prohibits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct EventSet {
    /// All networks that a node refuses to forward to from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prohibit: Option<List<IpNet>>,
    /// Settings of a link; of them a node has `up`.
    #[serde(flatten)]
    pub settings: SettingsChange,
}

impl EventTable {
    fn problems(&self, report: &mut Report<'_>) {
        match (&self.link, &self.node) {
            (Some(_), Some(_)) => {
                report.add("node", "an event is of a link or of a node: remove one")
            }
            (None, None) => report.add("link", "say what changes: add `link` or `node`"),
            (None, Some(_)) => {
                let settings = self.set.settings;
                if settings != (SettingsChange { up: settings.up, ..SettingsChange::default() }) {
                    report.add("set", "of a node there are `up` and `prohibit`: write such as `set = { up = false }`");
                }
                if self.one_way {
                    report.add("one_way", "this is for links: remove it");
                }
            }
            (Some(_), None) => {
                if self.set.prohibit.is_some() {
                    report.add("set.prohibit", "this is for nodes: remove it");
                }
            }
        }
        if let Some(prohibit) = &self.set.prohibit {
            prefixes("set.prohibit", prohibit, report);
        }
        if self.set == EventSet::default() {
            report.add("set", "this changes nothing: write what changes, such as `up = false`");
        }
    }
}

impl Scene {
    /// The real systems: the hosts, and behind them those that only wires are plugged into, with all
    /// addresses of their ends.
    pub fn systems(&self) -> Vec<HostTable> {
        let mut systems = self.hosts.clone();
        for end in self.wires.iter().flat_map(WireTable::hosts) {
            let hosts = self.hosts.len();
            match systems.iter_mut().position(|system| system.name == end.name) {
                None => systems.push(end),
                Some(index) if index < hosts => {}
                Some(index) => {
                    let more = systems[index].address.iter().chain(end.address.iter());
                    systems[index].address = more.copied().collect::<Vec<_>>().into();
                }
            }
        }
        systems
    }

    /// Everything that is wrong in the file by itself; empty if it is valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut report = Report::new(&mut problems, "");
        if self.lab.network.is_some() {
            for (section, is_there) in
                [("node", !self.nodes.is_empty()), ("link", !self.links.is_empty())]
            {
                if is_there {
                    report.add(
                        section,
                        "the network comes from the file in `lab.network`: remove one of the two",
                    );
                }
            }
            if !self.wires.is_empty() {
                report.add("wire", "wires need a network that is written in the scene, or no network: run them as a lab of their own");
            }
        } else if self.nodes.is_empty() && self.wires.is_empty() {
            report.add(
                "node",
                "there is no network: add `lab.network`, `[[node]]` and `[[link]]`, or `[[wire]]`",
            );
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
            prefixes("prefix", &node.prefix, &mut report);
            prefixes("prohibit", &node.prohibit, &mut report);
        }
        if self.lab.network.is_none() {
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
                    report.add("weight", "the smallest weight is 1");
                }
            }
        }
        if self.hosts.len() + 2 * self.wires.len() > MOST_PORTS {
            report.add("host", format!("more than {MOST_PORTS} hosts and ends of wires"));
        }
        ends::problems(&self.wires, &self.hosts, &names, &mut report);
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
        for (i, event) in self.events.iter().enumerate() {
            event.problems(&mut report.within(&format!("event[{i}]")));
        }
        problems
    }
}

/// The error for an unknown node.
pub(crate) fn no_such_node(name: &str) -> String {
    format!("there is no node {name}: add it, or correct the name")
}

/// Why a text cannot name a namespace, which is a file.
pub(crate) fn bad_name(name: &str) -> Option<String> {
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
