//! Ports: what the engine knows of the hosts that are joined to nodes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{IpNet, Mac};

use crate::{LinkId, Nanos, NodeId, PortId};

/// A port.
#[derive(Debug)]
pub(crate) struct Port {
    /// The node that it is joined to.
    pub node: NodeId,
    /// The node's MAC address on it.
    pub mac: Mac,
    /// The host's MAC address, once known.
    pub host: Option<Mac>,
    /// When the node last asked for the host's MAC address.
    pub asked: Option<Nanos>,
    /// The host's addresses, each with the prefix that the host takes for its link.
    pub addresses: Vec<IpNet>,
    /// Whether frames must leave without virtio header, in their final form.
    pub plain: bool,
    /// What its frames cross to, if that is no node but another port.
    pub wire: Option<Joined>,
    /// The node's own IPv4 address on the port.
    pub gateway4: Option<Ipv4Addr>,
    /// The node's own IPv6 address on the port.
    pub gateway6: Option<Ipv6Addr>,
}

/// What a port at the end of a wire is joined to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    /// The link by which its frames leave.
    pub link: LinkId,
    /// The port at the other end.
    pub other: PortId,
}

impl Port {
    /// A port at the end of a wire: the node there takes no part.
    pub(crate) fn of_wire(node: NodeId, wire: Joined) -> Self {
        Self {
            node,
            mac: Mac([0; 6]),
            host: None,
            asked: None,
            addresses: Vec::new(),
            plain: false,
            wire: Some(wire),
            gateway4: None,
            gateway6: None,
        }
    }

    /// Whether an address is the host's own.
    pub(crate) fn is_host(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|net| net.addr() == address)
    }
}

/// The node's address on a link where the host has `addresses`: its own if it lies there, else the
/// first of the first prefix that the host does not have itself. A prefix of one address has none.
pub(crate) fn gateway(addresses: &[IpNet], own: Option<IpAddr>) -> Option<IpAddr> {
    let free = |address: &IpAddr| !addresses.iter().any(|net| net.addr() == *address);
    addresses.iter().find_map(|net| {
        // The first address of an IPv6 prefix is any router's (RFC 4291, section 2.6.1).
        let named = |address: &IpAddr| {
            *address != net.network() || net.max_prefix_len() - net.prefix_len() < 2
        };
        own.filter(|own| net.contains(own) && free(own))
            .or_else(|| net.hosts().take(3).find(|address| named(address) && free(address)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_is_the_nodes_own_address_or_the_first_free_one() {
        for (addresses, own, gateway_address) in [
            ("20.0.0.10/8", Some("20.1.2.3"), Some("20.1.2.3")),
            ("20.0.0.10/8", Some("30.1.2.3"), Some("20.0.0.1")),
            ("20.0.0.1/8", None, Some("20.0.0.2")),
            ("20.0.0.1/8", Some("20.0.0.1"), Some("20.0.0.2")),
            ("20.0.0.1/31", None, Some("20.0.0.0")),
            ("20.0.0.1/32", None, None),
            ("2001:db8::10/64", None, Some("2001:db8::1")),
        ] {
            let addresses = [addresses.parse().expect("a prefix")];
            let own = own.map(|own| own.parse().expect("an address"));
            let right = gateway_address.map(|address| address.parse().expect("an address"));
            assert_eq!(gateway(&addresses, own), right, "{addresses:?}");
        }
    }
}
