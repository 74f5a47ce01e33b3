//! `[[wire]]`: two interfaces that are joined directly, as by a cable with a link's settings.

use super::{HostTable, Joint, List};
use crate::settings::SettingsChange;
use config::Report;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// `[[wire]]`: what one end sends comes out of the other as it is.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct WireTable {
    /// Its ends.
    pub between: [WireEnd; 2],
    /// What it does to frames, in both directions. The MTU is that of the interfaces too which the
    /// lab makes at its ends.
    #[serde(flatten)]
    pub settings: SettingsChange,
}

/// An end of a wire. What the keys mean they mean of a host.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WireEnd {
    /// The system that it is plugged into, and the namespace that is made for that, unless another end
    /// or a host has one of this name; without it the name of `namespace`.
    #[serde(default)]
    pub name: Option<String>,
    /// Addresses of its interface.
    #[serde(default)]
    pub address: List<IpNet>,
    /// A namespace that is there already.
    #[serde(default)]
    pub namespace: Option<String>,
    /// What its interface is called.
    #[serde(default)]
    pub interface: Option<String>,
    /// A TAP device that is there already.
    #[serde(default)]
    pub tap: Option<String>,
    /// An interface that is there already, through AF_XDP.
    #[serde(default)]
    pub xdp: Option<String>,
}

impl WireEnd {
    /// The name of the system that it is plugged into; empty if it has none.
    pub fn name(&self) -> &str {
        self.name.as_deref().or(self.namespace.as_deref()).unwrap_or_default()
    }

    /// The end as a host, with an interface of this MTU.
    pub fn host(&self, mtu: Option<u32>) -> HostTable {
        let end = self.clone();
        HostTable {
            name: self.name().to_owned(),
            attach: self.name().to_owned(),
            address: end.address,
            namespace: end.namespace,
            interface: end.interface,
            tap: end.tap,
            xdp: end.xdp,
            mtu,
            default_route: None,
        }
    }
}

impl WireTable {
    /// Its ends as hosts.
    pub fn hosts(&self) -> [HostTable; 2] {
        self.between.each_ref().map(|end| end.host(self.settings.mtu))
    }
}

/// Reports what is wrong with wires in a scene with these hosts and nodes.
pub(super) fn problems(
    wires: &[WireTable],
    hosts: &[HostTable],
    nodes: &HashSet<&str>,
    report: &mut Report<'_>,
) {
    let mut namespaces: HashMap<String, Option<String>> = HashMap::new();
    let mut interfaces: HashSet<(String, String)> = HashSet::new();
    for host in hosts {
        namespaces.insert(host.name.clone(), host.namespace.clone());
        if matches!(host.joint(), Joint::Made | Joint::Found(_)) {
            interfaces.insert((host.name.clone(), host.interface().to_owned()));
        }
    }
    for (i, wire) in wires.iter().enumerate() {
        let mut report = report.within(&format!("wire[{i}]"));
        if wire.between[0].name() == wire.between[1].name() {
            report.add("between", "a wire joins two systems: give them different names");
        }
        for (j, end) in wire.between.iter().enumerate() {
            let mut report = report.within(&format!("between[{j}]"));
            let host = end.host(None);
            if host.name.is_empty() {
                report.add("name", "say what the wire is plugged into: add `name` or `namespace`");
                continue;
            }
            host.end_problems(&mut report);
            let key = if end.name.is_some() { "name" } else { "namespace" };
            if nodes.contains(host.name.as_str()) {
                let why = format!("{} is a simulated node: a wire joins real systems", host.name);
                report.add(key, why);
            }
            match namespaces.get(&host.name) {
                Some(other) if *other != host.namespace => report.add(
                    key,
                    format!("{} is in another namespace elsewhere: rename one", host.name),
                ),
                Some(_) => {}
                None => {
                    namespaces.insert(host.name.clone(), host.namespace.clone());
                }
            }
            if matches!(host.joint(), Joint::Made | Joint::Found(_))
                && !interfaces.insert((host.name.clone(), host.interface().to_owned()))
            {
                let why = format!(
                    "{} has an interface {} already: call this one something else",
                    host.name,
                    host.interface()
                );
                report.add("interface", why);
            }
        }
    }
}
