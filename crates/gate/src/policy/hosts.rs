//! Which groups a host is in: one look-up for each length of prefix that is there.

use crate::config::GroupConfig;
use ipnet::IpNet;
use std::{
    collections::{BTreeSet, HashMap},
    net::IpAddr,
};

/// The groups of hosts.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
    prefixes: HashMap<IpNet, Vec<usize>>,
    /// Lengths of prefixes that are there: of IPv4, of IPv6.
    lengths: [BTreeSet<u8>; 2],
}

impl Hosts {
    pub(super) fn new(groups: &[GroupConfig]) -> Self {
        let mut prefixes: HashMap<IpNet, Vec<usize>> = HashMap::new();
        let mut lengths = [BTreeSet::new(), BTreeSet::new()];
        for (number, group) in groups.iter().enumerate() {
            for prefix in &group.hosts {
                prefixes.entry(prefix.trunc()).or_default().push(number);
                let [v4, v6] = &mut lengths;
                match prefix {
                    IpNet::V4(prefix) => v4.insert(prefix.prefix_len()),
                    IpNet::V6(prefix) => v6.insert(prefix.prefix_len()),
                };
            }
        }
        let names = groups.iter().map(|group| group.name.clone()).collect();
        Self { names, prefixes, lengths }
    }

    /// The groups that a host is in.
    pub(super) fn groups_of(&self, host: IpAddr) -> Vec<usize> {
        let [v4, v6] = &self.lengths;
        let lengths = if host.is_ipv4() { v4 } else { v6 };
        let prefix = |length: &u8| IpNet::new(host, *length).ok().map(|prefix| prefix.trunc());
        let groups =
            lengths.iter().filter_map(prefix).filter_map(|prefix| self.prefixes.get(&prefix));
        groups.flatten().copied().collect()
    }

    pub(super) fn numbers(&self, names: &[String]) -> Vec<usize> {
        names.iter().filter_map(|name| self.names.iter().position(|other| other == name)).collect()
    }

    pub(super) fn name(&self, number: usize) -> Option<&str> {
        self.names.get(number).map(String::as_str)
    }
}
