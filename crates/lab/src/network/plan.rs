//! Addresses and names that follow from a node's or a link's number, so that nobody keeps them.

use crate::{LinkId, NodeId};
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::Reader;

/// How addresses are counted out where none was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Node 0's own IPv4 address; node n has the one n further.
    pub node4: Option<Ipv4Addr>,
    /// The IPv4 address of the interface where link 0 leaves its node; link n has the one n further.
    pub link4: Option<Ipv4Addr>,
    /// As `node4`, for IPv6.
    pub node6: Option<Ipv6Addr>,
    /// As `link4`, for IPv6.
    pub link6: Option<Ipv6Addr>,
}

/// How nodes are called that were given no name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// Node 7 is `n7`.
    #[default]
    Numbers,
    /// The first node of group g is `as` and g + 1, the ones behind it have `.1`, `.2` and so on after
    /// that.
    Groups,
}

/// Bytes of a plan in a file.
pub(super) const PLAN_BYTES: usize = 48;

impl Plan {
    /// The address of that node, if it can be counted out.
    pub(super) fn of_node4(&self, node: NodeId) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::from_bits(self.node4?.to_bits().checked_add(node.0)?))
    }

    /// The address of that node, if it can be counted out.
    pub(super) fn of_node6(&self, node: NodeId) -> Option<Ipv6Addr> {
        Some(Ipv6Addr::from_bits(self.node6?.to_bits().checked_add(node.0.into())?))
    }

    /// The address where that link begins, if it can be counted out.
    pub(super) fn of_link4(&self, link: LinkId) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::from_bits(self.link4?.to_bits().checked_add(link.0)?))
    }

    /// The address where that link begins, if it can be counted out.
    pub(super) fn of_link6(&self, link: LinkId) -> Option<Ipv6Addr> {
        Some(Ipv6Addr::from_bits(self.link6?.to_bits().checked_add(link.0.into())?))
    }

    /// The plan and the naming as the file has them: an absent address is all zero.
    pub(super) fn to_bytes(self, naming: Naming) -> [u8; PLAN_BYTES] {
        let mut bytes = [0; PLAN_BYTES];
        let v4 = |address: Option<Ipv4Addr>| address.map_or(0, Ipv4Addr::to_bits).to_le_bytes();
        let v6 = |address: Option<Ipv6Addr>| address.map_or(0, Ipv6Addr::to_bits).to_le_bytes();
        bytes[..4].copy_from_slice(&v4(self.node4));
        bytes[4..8].copy_from_slice(&v4(self.link4));
        bytes[8..24].copy_from_slice(&v6(self.node6));
        bytes[24..40].copy_from_slice(&v6(self.link6));
        bytes[40] = match naming {
            Naming::Numbers => 0,
            Naming::Groups => 1,
        };
        bytes
    }

    /// What [`Plan::to_bytes`] made. `None`: it did not make this.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<(Self, Naming)> {
        let mut reader = Reader::new(bytes);
        let (node4, link4) = (reader.u32_le()?, reader.u32_le()?);
        let (node6, link6) = (reader.array()?, reader.array()?);
        let naming = match reader.rest() {
            [0, 0, 0, 0, 0, 0, 0, 0] => Naming::Numbers,
            [1, 0, 0, 0, 0, 0, 0, 0] => Naming::Groups,
            _ => return None,
        };
        let v4 = |bits| (bits != 0).then(|| Ipv4Addr::from_bits(bits));
        let v6 = |bytes| match u128::from_le_bytes(bytes) {
            0 => None,
            bits => Some(Ipv6Addr::from_bits(bits)),
        };
        let plan = Self { node4: v4(node4), link4: v4(link4), node6: v6(node6), link6: v6(link6) };
        Some((plan, naming))
    }
}
