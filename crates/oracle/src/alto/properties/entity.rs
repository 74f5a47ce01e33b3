//! Entities and properties as they are written (RFC 9240 sections 5 and 6).

use crate::alto::{
    address::{format_address, parse_endpoint},
    network_map::NetworkMap,
};
use ipnet::IpNet;
use std::sync::Arc;

/// Name of the property of PIDs.
pub(super) const ROUTED: &str = ".priv:nigh-routed";

/// An entity that this server knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Entity {
    /// A prefix, or an address as the prefix of full length: they are the same entity (section 6.1.1.2).
    Net(IpNet),
    /// A PID of one of the network maps.
    Pid {
        /// Which one.
        map: usize,
        /// Its name.
        pid: String,
    },
}

impl Entity {
    pub(super) fn net(&self) -> Option<IpNet> {
        match self {
            Entity::Net(net) => Some(*net),
            Entity::Pid { .. } => None,
        }
    }
}

/// Reads an entity's identifier; none if the domain is unknown or the identifier is not valid in it (section 8.6).
pub(super) fn parse(all: &[Arc<NetworkMap>], text: &str) -> Option<Entity> {
    let (domain, own) = text.split_once(':')?;
    let Some(id) = domain.strip_suffix(".pid") else {
        return parse_endpoint(text).map(Entity::Net);
    };
    let map = all.iter().position(|map| map.id() == id)?;
    all.get(map)?.index_of(own)?;
    Some(Entity::Pid { map, pid: own.to_owned() })
}

/// A prefix as an entity.
pub(super) fn write_net(net: IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() {
        return format_address(net.addr());
    }
    match net {
        IpNet::V4(net) => format!("ipv4:{net}"),
        IpNet::V6(net) => format!("ipv6:{net}"),
    }
}

/// A PID as an entity.
pub(super) fn write_pid(all: &[Arc<NetworkMap>], map: usize, pid: &str) -> String {
    format!("{}.pid:{pid}", all.get(map).map_or("", |map| map.id()))
}

/// A property that this server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Property {
    /// The PID in a network map, of prefixes.
    Pid(usize),
    /// Whether there is a route, of PIDs.
    Routed,
}

impl Property {
    /// All that there are.
    pub(super) fn all(all: &[Arc<NetworkMap>]) -> Vec<Property> {
        (0..all.len()).map(Property::Pid).chain([Property::Routed]).collect()
    }

    /// Reads a property's name.
    pub(super) fn parse(all: &[Arc<NetworkMap>], text: &str) -> Option<Property> {
        if text == ROUTED {
            return Some(Property::Routed);
        }
        let id = text.strip_suffix(".pid")?;
        all.iter().position(|map| map.id() == id).map(Property::Pid)
    }

    /// Its name.
    pub(super) fn name(self, all: &[Arc<NetworkMap>]) -> String {
        match self {
            Property::Pid(map) => format!("{}.pid", all.get(map).map_or("", |map| map.id())),
            Property::Routed => ROUTED.to_owned(),
        }
    }

    /// The network map that it is of.
    pub(super) fn map(self) -> Option<usize> {
        match self {
            Property::Pid(map) => Some(map),
            Property::Routed => None,
        }
    }
}

/// Whether the operator has a route to a PID.
pub(super) fn routed(map: &NetworkMap, pid: &str) -> &'static str {
    let pid = map.index_of(pid).and_then(|index| map.pid(index));
    if pid.is_some_and(|pid| pid.sources.is_empty()) { "no" } else { "yes" }
}
