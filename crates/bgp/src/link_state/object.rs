//! One object of a link-state database, as BGP-LS carries it: the object that the NLRI names, and its
//! attribute (RFC 9552 sections 5.2 and 5.3, RFC 8571).
//!
//! NLRIs and TLVs are cut out here and read with netgauze one by one, so that one that cannot be read
//! costs nothing but itself (RFC 9552 section 8.2.2).

use ipnet::IpNet;
use netgauze_bgp_pkt::{
    iana::BgpLsNlriType,
    nlri::{
        BgpLsLinkDescriptor, BgpLsNlriValue, BgpLsNodeDescriptorSubTlv, BgpLsPrefixDescriptor,
        OspfRouteType,
    },
    path_attribute::BgpLsAttributeValue,
};
use netgauze_parse_utils::{
    reader::SliceReader,
    traits::{ParseFrom, ParseFromWithOneInput},
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Characters of a router's name that are kept.
const NAME: usize = 255;

/// TLVs of RFC 8571 section 2 that netgauze leaves as they are.
const DELAY: u16 = 1114;
const DELAY_MIN_MAX: u16 = 1115;
const LOSS: u16 = 1117;
const UTILIZED: u16 = 1120;

/// One step of the loss field is 0.000003 % (RFC 8571 section 2.4).
const LOSS_STEP: f64 = 0.000_000_03;

/// A node's descriptors, as far as they identify a node (RFC 9552 section 5.2.1.4). Areas and levels do
/// not: a router in two of them is one router.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    /// The instance of the routing protocol.
    pub(super) instance: u64,
    pub(super) asn: u32,
    /// IGP Router-ID: 4 octets (OSPF), 6 (IS-IS), 8 or 7 for a network between routers.
    pub(super) igp: Vec<u8>,
    pub(super) bgp: u32,
}

impl Node {
    fn new(instance: u64, descriptors: &[BgpLsNodeDescriptorSubTlv]) -> Self {
        let mut node = Self { instance, ..Self::default() };
        for descriptor in descriptors {
            match descriptor {
                BgpLsNodeDescriptorSubTlv::AutonomousSystem(asn) => node.asn = *asn,
                BgpLsNodeDescriptorSubTlv::IgpRouterId(id) => node.igp = id.to_vec(),
                BgpLsNodeDescriptorSubTlv::BgpRouterIdentifier(id) => node.bgp = *id,
                _ => {}
            }
        }
        // An IS-IS system with the number 0 behind it is the system itself.
        if node.igp.len() == 7 && node.igp.last() == Some(&0) {
            node.igp.pop();
        }
        node
    }

    /// Whether this is a network between routers and not a router (RFC 9552 section 5.2.1.4).
    pub(super) fn is_network(&self) -> bool {
        matches!(self.igp.len(), 7 | 8)
    }

    /// The router's address as far as the descriptors give it.
    pub(super) fn address(&self) -> Option<IpAddr> {
        if let Ok(octets) = <[u8; 4]>::try_from(&self.igp[..])
            && octets != [0; 4]
        {
            return Some(IpAddr::from(octets));
        }
        (self.bgp != 0).then(|| IpAddr::V4(Ipv4Addr::from(self.bgp)))
    }

    /// An address that stands for an IS-IS system that advertises none: link-local, with the system's
    /// identifier at its end.
    pub(super) fn stand_in(&self) -> Option<IpAddr> {
        let id: [u8; 6] = self.igp[..].try_into().ok()?;
        let mut octets = [0; 16];
        octets[..2].copy_from_slice(&[0xfe, 0x80]);
        octets[10..].copy_from_slice(&id);
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    }
}

/// How a prefix came into the database: what is better goes before what is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Attached where it is advertised.
    Own,
    /// Advertised by a router between two areas.
    Area,
    /// From outside the routing protocol.
    External,
}

/// What an NLRI names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Node(Node),
    Link {
        from: Node,
        to: Node,
        /// Distinguishes parallel links at `from`.
        id: u32,
        /// Its topology is another than the default one (RFC 9552 section 5.2.2.1).
        other_topology: bool,
    },
    Prefix {
        at: Node,
        prefix: IpNet,
        class: Class,
    },
}

/// Reads an NLRI of this type; `None` if it is of an unknown type or cannot be read.
pub(super) fn object(kind: u16, value: &[u8]) -> Option<Object> {
    let kind = BgpLsNlriType::try_from(kind).ok()?;
    match BgpLsNlriValue::parse(&mut SliceReader::new(value), kind).ok()? {
        BgpLsNlriValue::Node(node) => Some(Object::Node(Node::new(
            node.identifier(),
            node.local_node_descriptors().subtlvs(),
        ))),
        BgpLsNlriValue::Link(link) => {
            let instance = link.identifier();
            let (id, other_topology) = link_id(link.link_descriptors());
            Some(Object::Link {
                from: Node::new(instance, link.local_node_descriptors().subtlvs()),
                to: Node::new(instance, link.remote_node_descriptors().subtlvs()),
                id,
                other_topology,
            })
        }
        BgpLsNlriValue::Ipv4Prefix(found) | BgpLsNlriValue::Ipv6Prefix(found) => {
            let at = Node::new(found.identifier(), found.local_node_descriptors().subtlvs());
            let (mut prefix, mut class) = (None, Class::Own);
            for descriptor in found.prefix_descriptors() {
                match descriptor {
                    BgpLsPrefixDescriptor::IpReachabilityInformation(data) => {
                        prefix = Some(data.address().trunc());
                    }
                    BgpLsPrefixDescriptor::OspfRouteType(kind) => {
                        class = match kind {
                            OspfRouteType::IntraArea => Class::Own,
                            OspfRouteType::InterArea => Class::Area,
                            _ => Class::External,
                        };
                    }
                    _ => {}
                }
            }
            Some(Object::Prefix { at, prefix: prefix?, class })
        }
        BgpLsNlriValue::Unknown { .. } => None,
    }
}

/// What distinguishes a link from parallel ones at its beginning: its local identifier, else its own
/// address there (RFC 9552 section 5.2.2). Whether it is in another topology.
fn link_id(descriptors: &[BgpLsLinkDescriptor]) -> (u32, bool) {
    let (mut id, mut four, mut six, mut other) = (None, None, None, false);
    for descriptor in descriptors {
        match descriptor {
            BgpLsLinkDescriptor::LinkLocalRemoteIdentifiers { link_local_identifier, .. } => {
                id = Some(*link_local_identifier).filter(|id| *id != 0);
            }
            BgpLsLinkDescriptor::IPv4InterfaceAddress(address) => four = Some(u32::from(*address)),
            BgpLsLinkDescriptor::IPv6InterfaceAddress(address) => {
                // FNV-1a: the whole address matters, and equal ones must give equal numbers for ever.
                six = Some(address.octets().iter().fold(0x811c_9dc5_u32, |hash, octet| {
                    (hash ^ u32::from(*octet)).wrapping_mul(0x0100_0193)
                }));
            }
            BgpLsLinkDescriptor::MultiTopologyIdentifier(topology) => {
                other = !topology.id().iter().any(|id| id.value() == 0);
            }
            _ => {}
        }
    }
    (id.or(four).or(six).unwrap_or_default(), other)
}

/// The BGP-LS Attribute of an object; units are those of the rest of nigh.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Attributes {
    pub(super) name: Option<String>,
    pub(super) local: Option<IpAddr>,
    pub(super) remote: Option<IpAddr>,
    pub(super) properties: Properties,
    /// Prefix Metric.
    pub(super) prefix_metric: u32,
    /// An IS-IS prefix that came down from level 2.
    pub(super) down: bool,
}

/// The properties of one direction of a link, as far as they are advertised.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Properties {
    /// Maximum link bandwidth, Mbit/s (TLV 1089).
    pub bandwidth: Option<f64>,
    /// What can still be reserved at the lowest priority, Mbit/s (TLV 1091).
    pub unreserved: Option<f64>,
    /// What is in use, Mbit/s (TLV 1120).
    pub utilized: Option<f64>,
    /// IGP metric (TLV 1095).
    pub igp_metric: Option<u32>,
    /// TE default metric (TLV 1092).
    pub te_metric: Option<u32>,
    /// Delay in one direction, milliseconds (TLV 1114, else the least of TLV 1115).
    pub delay: Option<f64>,
    /// Share of packets lost, 0 to 1 (TLV 1117).
    pub loss: Option<f64>,
}

/// Bandwidths are IEEE floats in bytes a second (RFC 9552 section 5.3.2).
fn megabits(bytes: f32) -> Option<f64> {
    let value = f64::from(bytes) * 8.0 / 1e6;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// The last three octets of a value, behind flags and reserved bits (RFC 8571).
fn low24(value: &[u8]) -> Option<f64> {
    let &[_, a, b, c] = value.first_chunk::<4>()?;
    Some(f64::from(u32::from_be_bytes([0, a, b, c])))
}

impl Attributes {
    /// Reads the value of the attribute; the number of TLVs that could not be read.
    pub(super) fn read(mut bytes: &[u8]) -> (Self, u64) {
        let (mut attributes, mut wrong) = (Self::default(), 0);
        let mut least = None;
        while !bytes.is_empty() {
            let length = match bytes.first_chunk::<4>() {
                Some(&[_, _, high, low]) => 4 + usize::from(u16::from_be_bytes([high, low])),
                None => bytes.len() + 1,
            };
            let Some((tlv, rest)) = bytes.split_at_checked(length) else {
                wrong += 1;
                break;
            };
            bytes = rest;
            match BgpLsAttributeValue::parse(&mut SliceReader::new(tlv)) {
                Ok(value) => attributes.take(value, &mut least),
                Err(_) => wrong += 1,
            }
        }
        let delay = &mut attributes.properties.delay;
        *delay = delay.or(least);
        (attributes, wrong)
    }

    /// Takes one TLV; what is not used here is skipped (RFC 9552 section 5.3).
    fn take(&mut self, value: BgpLsAttributeValue, least: &mut Option<f64>) {
        let properties = &mut self.properties;
        match value {
            BgpLsAttributeValue::NodeNameTlv(name) => {
                self.name = Some(config::printable(name.chars().take(NAME)));
            }
            // A router with both is known by the first.
            BgpLsAttributeValue::LocalNodeIpv4RouterId(id) => self.local = Some(id.into()),
            BgpLsAttributeValue::LocalNodeIpv6RouterId(id) => {
                self.local.get_or_insert(id.into());
            }
            BgpLsAttributeValue::RemoteNodeIpv4RouterId(id) => self.remote = Some(id.into()),
            BgpLsAttributeValue::RemoteNodeIpv6RouterId(id) => {
                self.remote.get_or_insert(id.into());
            }
            BgpLsAttributeValue::MaximumLinkBandwidth(bytes) => {
                properties.bandwidth = megabits(bytes);
            }
            BgpLsAttributeValue::UnreservedBandwidth([.., lowest]) => {
                properties.unreserved = megabits(lowest);
            }
            BgpLsAttributeValue::TeDefaultMetric(metric) => properties.te_metric = Some(metric),
            BgpLsAttributeValue::IgpMetric(octets) => properties.igp_metric = igp_metric(&octets),
            BgpLsAttributeValue::PrefixMetric(metric) => self.prefix_metric = metric,
            BgpLsAttributeValue::IgpFlags { isis_up_down, .. } => self.down = isis_up_down,
            BgpLsAttributeValue::Unknown { code: DELAY, value } => {
                properties.delay = low24(&value).map(|microseconds| microseconds / 1e3);
            }
            BgpLsAttributeValue::Unknown { code: DELAY_MIN_MAX, value } => {
                *least = low24(&value).map(|microseconds| microseconds / 1e3);
            }
            BgpLsAttributeValue::Unknown { code: LOSS, value } => {
                properties.loss = low24(&value).map(|steps| (steps * LOSS_STEP).min(1.0));
            }
            BgpLsAttributeValue::Unknown { code: UTILIZED, value } => {
                properties.utilized = value
                    .first_chunk::<4>()
                    .and_then(|octets| megabits(f32::from_be_bytes(*octets)));
            }
            _ => {}
        }
    }
}

/// The IGP metric has one octet with two bits of something else (old IS-IS), two (OSPF) or three (RFC
/// 9552 section 5.3.2.4).
fn igp_metric(octets: &[u8]) -> Option<u32> {
    match *octets {
        [a] => Some(u32::from(a & 0x3f)),
        [a, b] => Some(u32::from_be_bytes([0, 0, a, b])),
        [a, b, c] => Some(u32::from_be_bytes([0, a, b, c])),
        _ => None,
    }
}
