//! UPDATE (RFC 4271 section 4.3): building announcements and withdrawals, and the little that is looked
//! at in those received.
//!
//! IPv4 prefixes go into the message's own fields, IPv6 prefixes into MP_REACH_NLRI and
//! MP_UNREACH_NLRI (RFC 4760), whatever family the session itself runs over. A message holds as many
//! prefixes of one set of attributes as fit into 4,096 bytes.

use super::{
    Family, HEADER, MAX, append,
    notification::{self, Notification},
};
use crate::{
    route::Attributes,
    value::{Asn, Community, LargeCommunity},
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netgauze_bgp_pkt::{
    BgpMessage, community as netgauze,
    nlri::{Ipv4Unicast, Ipv4UnicastAddress, Ipv6Unicast, Ipv6UnicastAddress},
    path_attribute::{
        As2PathSegment, As4Path, As4PathSegment, AsPath, AsPathSegmentType, Communities,
        LargeCommunities, LocalPreference, MpReach, MpUnreach, MultiExitDiscriminator, NextHop,
        Origin, PathAttribute, PathAttributeValue,
    },
    update::BgpUpdateMessage,
};
use netgauze_parse_utils::{WritablePdu, WritablePduWithOneInput};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The degree of preference inside our own AS, where LOCAL_PREF is mandatory (RFC 4271 section 5.1.5).
const LOCAL_PREFERENCE: u32 = 100;

/// What a session has settled that an UPDATE depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Our AS number.
    pub local_as: Asn,
    /// The neighbour is in our own AS.
    pub internal: bool,
    /// Both know AS numbers of four octets (RFC 6793).
    pub four_octets: bool,
    /// Next hop of IPv4 prefixes, if they can be announced.
    pub next_hop4: Option<Ipv4Addr>,
    /// Next hop of IPv6 prefixes, if they can be announced.
    pub next_hop6: Option<Ipv6Addr>,
}

impl Terms {
    /// Whether prefixes of the family can be announced.
    pub fn carry(&self, family: Family) -> bool {
        match family {
            Family::Ipv4 => self.next_hop4.is_some(),
            Family::Ipv6 => self.next_hop6.is_some(),
        }
    }

    /// Appends one UPDATE that announces the first of `prefixes`, all of one family, and returns how many:
    /// as many as fit. Nothing is appended, and all are skipped, where there is no next hop.
    pub fn announce(
        &self,
        attributes: &Attributes,
        prefixes: &[IpNet],
        out: &mut Vec<u8>,
    ) -> usize {
        let mut list = self.path(attributes.prepend);
        if let Some(med) = attributes.med {
            list.push(optional(
                false,
                PathAttributeValue::MultiExitDiscriminator(MultiExitDiscriminator::new(med)),
            ));
        }
        if self.internal {
            list.push(well_known(PathAttributeValue::LocalPreference(LocalPreference::new(
                LOCAL_PREFERENCE,
            ))));
        }
        let communities: Vec<_> = attributes
            .communities
            .iter()
            .map(|Community(value)| netgauze::Community::new(*value))
            .collect();
        if !communities.is_empty() {
            list.push(optional(
                true,
                PathAttributeValue::Communities(Communities::new(communities)),
            ));
        }
        let large: Vec<_> = attributes
            .large_communities
            .iter()
            .map(|LargeCommunity(a, b, c)| netgauze::LargeCommunity::new(*a, *b, *c))
            .collect();
        if !large.is_empty() {
            list.push(optional(
                true,
                PathAttributeValue::LargeCommunities(LargeCommunities::new(large)),
            ));
        }
        match prefixes.first() {
            Some(IpNet::V4(_)) => {
                let Some(hop) = self.next_hop4 else { return prefixes.len() };
                // Attributes are in the order of their types (RFC 4271 section 5).
                list.push(well_known(PathAttributeValue::NextHop(NextHop::new(hop))));
                list.sort_by_key(code);
                let room = room(&list, 0);
                let (nlri, count) = ipv4(prefixes, room);
                emit(vec![], list, nlri, out);
                count
            }
            Some(IpNet::V6(_)) => {
                let Some(hop) = self.next_hop6 else { return prefixes.len() };
                list.sort_by_key(code);
                // Flags, type, length of two bytes, AFI, SAFI, length of next hop, next hop, reserved.
                let (nlri, count) = ipv6(prefixes, room(&list, 4 + 2 + 1 + 1 + 16 + 1));
                let reach = MpReach::Ipv6Unicast {
                    next_hop_global: hop,
                    next_hop_local: None,
                    nlri: nlri.into(),
                };
                // RFC 7606 section 5.1: MP_REACH_NLRI is the very first attribute.
                list.insert(0, optional(false, PathAttributeValue::MpReach(reach)));
                emit(vec![], list, vec![], out);
                count
            }
            None => 0,
        }
    }

    /// ORIGIN and AS_PATH, and AS4_PATH towards a speaker that knows only two octets (RFC 6793 section
    /// 4.2.2).
    fn path(&self, prepend: u8) -> Vec<PathAttribute> {
        let sequence = AsPathSegmentType::AsSequence;
        let count = usize::from(prepend) + 1;
        let mut list = vec![well_known(PathAttributeValue::Origin(Origin::IGP))];
        let path = if self.internal {
            AsPath::As4PathSegments([].into())
        } else if self.four_octets {
            let numbers = vec![self.local_as.0; count];
            AsPath::As4PathSegments([As4PathSegment::new(sequence, numbers)].into())
        } else {
            let short = self.local_as.two_octets();
            let numbers = vec![short.unwrap_or(Asn::TRANS.0 as u16); count];
            if short.is_none() {
                let numbers = vec![self.local_as.0; count];
                let segments = [As4PathSegment::new(sequence, numbers)];
                list.push(optional(true, PathAttributeValue::As4Path(As4Path::new(segments))));
            }
            AsPath::As2PathSegments([As2PathSegment::new(sequence, numbers)].into())
        };
        list.push(well_known(PathAttributeValue::AsPath(path)));
        list
    }
}

/// Appends one UPDATE that withdraws the first of `prefixes`, all of one family, and returns how many.
pub fn withdraw(prefixes: &[IpNet], out: &mut Vec<u8>) -> usize {
    match prefixes.first() {
        Some(IpNet::V4(_)) => {
            let (withdrawn, count) = ipv4(prefixes, room(&[], 0));
            emit(withdrawn, vec![], vec![], out);
            count
        }
        Some(IpNet::V6(_)) => {
            // Flags, type, length of two bytes, AFI, SAFI.
            let (nlri, count) = ipv6(prefixes, room(&[], 4 + 2 + 1));
            unreach(nlri, out);
            count
        }
        None => 0,
    }
}

/// Appends the End-of-RIB marker of a family (RFC 4724 section 2).
pub fn end_of_rib(family: Family, out: &mut Vec<u8>) {
    match family {
        Family::Ipv4 => emit(vec![], vec![], vec![], out),
        Family::Ipv6 => unreach(vec![], out),
    }
}

/// Looks at the body of an UPDATE that is thrown away: only its two lengths can end the session.
///
/// Nothing is learned, so an UPDATE whose attributes or prefixes are malformed is as good as withdrawn
/// ("treat-as-withdraw", RFC 7606 section 2); but lengths that do not fit mean that the two speakers no
/// longer agree on where things are (RFC 7606 section 3, item b).
///
/// # Errors
/// The NOTIFICATION to answer with.
pub fn check(body: &[u8]) -> Result<(), Notification> {
    let skip = |rest: &mut &[u8]| -> Option<()> {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        *rest = behind.get(usize::from(u16::from_be_bytes(*length))..)?;
        Some(())
    };
    let mut rest = body;
    match skip(&mut rest).and_then(|()| skip(&mut rest)) {
        Some(()) => Ok(()),
        None => Err(Notification::update(notification::MALFORMED_ATTRIBUTES)),
    }
}

fn emit(
    withdrawn: Vec<Ipv4UnicastAddress>,
    attributes: Vec<PathAttribute>,
    nlri: Vec<Ipv4UnicastAddress>,
    out: &mut Vec<u8>,
) {
    let message = BgpMessage::Update(BgpUpdateMessage::new(withdrawn, attributes, nlri));
    debug_assert!(message.len() <= MAX, "{} bytes", message.len());
    append(&message, out);
}

fn unreach(nlri: Vec<Ipv6UnicastAddress>, out: &mut Vec<u8>) {
    let unreach = MpUnreach::Ipv6Unicast { nlri: nlri.into() };
    emit(vec![], vec![optional(false, PathAttributeValue::MpUnreach(unreach))], vec![], out);
}

/// Bytes that are left for prefixes beside these attributes and `extra`.
fn room(attributes: &[PathAttribute], extra: usize) -> usize {
    // Two lengths of two bytes each.
    let used: usize = attributes.iter().map(WritablePdu::len).sum();
    MAX.saturating_sub(HEADER + 4 + used + extra)
}

/// How many prefixes, each a byte of length and the bytes that hold its bits, fit into `room`.
fn fitting(lengths: impl Iterator<Item = u8>, mut room: usize) -> usize {
    lengths
        .take_while(|bits| {
            let bytes = 1 + usize::from(bits.div_ceil(8));
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        })
        .count()
}

/// The IPv4 prefixes at the front that fit, and how many of `prefixes` that deals with.
fn ipv4(prefixes: &[IpNet], room: usize) -> (Vec<Ipv4UnicastAddress>, usize) {
    let count = fitting(prefixes.iter().map(IpNet::prefix_len), room);
    let list = prefixes[..count].iter().filter_map(|prefix| match prefix {
        IpNet::V4(net) => Some(Ipv4UnicastAddress::new_no_path_id(unicast4(*net)?)),
        IpNet::V6(_) => None,
    });
    (list.collect(), count)
}

/// The IPv6 prefixes at the front that fit, and how many of `prefixes` that deals with.
fn ipv6(prefixes: &[IpNet], room: usize) -> (Vec<Ipv6UnicastAddress>, usize) {
    let count = fitting(prefixes.iter().map(IpNet::prefix_len), room);
    let list = prefixes[..count].iter().filter_map(|prefix| match prefix {
        IpNet::V6(net) => Some(Ipv6UnicastAddress::new(None, unicast6(*net)?)),
        IpNet::V4(_) => None,
    });
    (list.collect(), count)
}

/// The prefix as netgauze holds it; `None` for multicast and broadcast, which the routes never have.
fn unicast4(net: Ipv4Net) -> Option<Ipv4Unicast> {
    Ipv4Unicast::from_net(net).ok()
}

fn unicast6(net: Ipv6Net) -> Option<Ipv6Unicast> {
    Ipv6Unicast::from_net(net).ok()
}

fn code(attribute: &PathAttribute) -> u8 {
    attribute.path_attribute_type().map_or_else(|code| code, u8::from)
}

fn well_known(value: PathAttributeValue) -> PathAttribute {
    attribute(false, true, value)
}

fn optional(transitive: bool, value: PathAttributeValue) -> PathAttribute {
    attribute(true, transitive, value)
}

/// An attribute with a length of two bytes if it needs one (RFC 4271 section 4.3).
fn attribute(optional: bool, transitive: bool, value: PathAttributeValue) -> PathAttribute {
    let extended = value_len(&value) > 255;
    PathAttribute::from(optional, transitive, false, extended, value)
        .expect("the flags are those of the attribute's type")
}

/// The length of the attributes that can grow past 255 bytes; netgauze counts the byte of the length
/// field too.
fn value_len(value: &PathAttributeValue) -> usize {
    match value {
        PathAttributeValue::Communities(list) => list.len(false) - 1,
        PathAttributeValue::LargeCommunities(list) => list.len(false) - 1,
        PathAttributeValue::MpReach(reach) => reach.len(false) - 1,
        PathAttributeValue::MpUnreach(unreach) => unreach.len(false) - 1,
        _ => 0,
    }
}
