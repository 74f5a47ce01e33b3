//! The unicast routes of an UPDATE, of both families (RFC 4271 section 4.3, RFC 4760), with path
//! identifiers where the two speakers have agreed on them (RFC 7911).
//!
//! Errors are handled as RFC 7606 asks: where the lengths do not fit, nothing can be located and
//! the source is given up; an attribute that makes no sense withdraws the routes it came with.

use super::{
    Families, Family,
    attributes::{self, Attributes, PathLength, path_length},
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the reader of an UPDATE has to know of the speakers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// AS_PATH has numbers of four octets (RFC 6793).
    pub four_octets: bool,
    /// Families whose prefixes have a path identifier each (RFC 7911 section 3).
    pub add_path: Families,
}

/// A prefix with its path identifier, 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nlri {
    /// The prefix, without host bits.
    pub prefix: IpNet,
    /// Distinguishes several paths to the prefix (RFC 7911).
    pub path_id: u32,
}

/// The content of one UPDATE. A value of this type is used again and again, so that reading allocates
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Prefixes that are no longer reached, also those whose attributes were malformed.
    pub withdrawn: Vec<Nlri>,
    /// Prefixes that are reached, each with the next hop it came with.
    pub announced: Vec<(Nlri, Option<IpAddr>)>,
    /// The path to them.
    pub path: PathLength,
    /// The marker at the end of a family's table (RFC 4724 section 2).
    pub end_of_rib: Option<Family>,
    /// An attribute was malformed and its routes count as withdrawn.
    pub malformed: bool,
    /// Families other than IPv4 and IPv6 unicast were in it and skipped.
    pub other_families: bool,
}

/// An UPDATE cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The lengths of its parts do not add up.
    #[error("the lengths inside an UPDATE do not add up")]
    Lengths,
    /// A prefix is longer than its family's addresses, or cut short.
    #[error("an UPDATE has a prefix that is too long or cut short")]
    Prefix,
}

impl Learned {
    /// Reads the body of an UPDATE.
    ///
    /// # Errors
    /// Where it is not known any more where things are (RFC 7606 section 3 items b and j).
    pub fn read(&mut self, body: &[u8], format: Format) -> Result<(), Unreadable> {
        self.clear();
        let parts = attributes::parts(body).ok_or(Unreadable::Lengths)?;
        let ids4 = format.add_path.ipv4;
        prefixes(Family::Ipv4, ids4, parts.withdrawn, |nlri| self.withdrawn.push(nlri))?;
        let width = if format.four_octets { 4 } else { 2 };
        let (mut path, mut four, mut hop) = (None, None, None);
        let mut unreached = None;
        for attribute in Attributes(parts.attributes) {
            let attribute = attribute.ok_or(Unreadable::Lengths)?;
            match attribute.code {
                attributes::AS_PATH => match path_length(attribute.value, width) {
                    Some(found) => path = Some(found),
                    None => self.malformed = true,
                },
                // A wrong AS4_PATH is skipped (RFC 7606 section 7.9), and one from a speaker of four
                // octets too (RFC 6793 section 4.1).
                attributes::AS4_PATH if !format.four_octets => {
                    four = path_length(attribute.value, 4);
                }
                attributes::NEXT_HOP => match <[u8; 4]>::try_from(attribute.value) {
                    Ok(octets) => hop = Some(IpAddr::from(octets)),
                    Err(_) => self.malformed = true,
                },
                attributes::MP_REACH => self.reach(attribute.value, format)?,
                attributes::MP_UNREACH => {
                    unreached = self.unreach(attribute.value, format)?;
                }
                _ => {}
            }
        }
        let announced = &mut self.announced;
        prefixes(Family::Ipv4, ids4, parts.announced, |nlri| announced.push((nlri, hop)))?;
        match path {
            // RFC 7606 section 3 item d: a mandatory attribute is missing.
            None if !self.announced.is_empty() => self.malformed = true,
            _ => self.path = merged(path.unwrap_or_default(), four),
        }
        if self.announced.is_empty() && self.withdrawn.is_empty() && !self.malformed {
            self.end_of_rib = match unreached {
                None if parts.attributes.is_empty() => Some(Family::Ipv4),
                family => family,
            };
        }
        if self.malformed {
            self.withdrawn.extend(self.announced.drain(..).map(|(nlri, _)| nlri));
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.withdrawn.clear();
        self.announced.clear();
        self.path = PathLength::default();
        self.end_of_rib = None;
        self.malformed = false;
        self.other_families = false;
    }

    /// MP_REACH_NLRI: AFI, SAFI, a counted next hop, a reserved octet, prefixes (RFC 4760 section 3).
    fn reach(&mut self, value: &[u8], format: Format) -> Result<(), Unreadable> {
        let (&[high, low, safi, length], rest) =
            value.split_first_chunk::<4>().ok_or(Unreadable::Lengths)?;
        let Some(family) = Family::from_codes(u16::from_be_bytes([high, low]), safi) else {
            self.other_families = true;
            return Ok(());
        };
        let (hop, rest) = rest.split_at_checked(usize::from(length)).ok_or(Unreadable::Lengths)?;
        let (_reserved, rest) = rest.split_first().ok_or(Unreadable::Lengths)?;
        // A link-local address may follow the global one (RFC 2545 section 3); IPv4 prefixes may have an
        // IPv6 next hop (RFC 8950).
        let hop = match hop {
            [a, b, c, d] => Some(IpAddr::V4(Ipv4Addr::new(*a, *b, *c, *d))),
            _ => hop.first_chunk::<16>().map(|octets| IpAddr::V6(Ipv6Addr::from(*octets))),
        };
        if hop.is_none() {
            self.malformed = true;
        }
        let announced = &mut self.announced;
        prefixes(family, format.add_path.has(family), rest, |nlri| announced.push((nlri, hop)))
    }

    /// MP_UNREACH_NLRI: AFI, SAFI, prefixes (RFC 4760 section 4); the family if there are none.
    fn unreach(&mut self, value: &[u8], format: Format) -> Result<Option<Family>, Unreadable> {
        let (&[high, low, safi], rest) =
            value.split_first_chunk::<3>().ok_or(Unreadable::Lengths)?;
        let Some(family) = Family::from_codes(u16::from_be_bytes([high, low]), safi) else {
            self.other_families = true;
            return Ok(None);
        };
        let withdrawn = &mut self.withdrawn;
        prefixes(family, format.add_path.has(family), rest, |nlri| withdrawn.push(nlri))?;
        Ok(rest.is_empty().then_some(family))
    }
}

/// AS_PATH of two octets with the numbers that AS4_PATH knows better (RFC 6793 section 4.2.3): the end of
/// the path is AS4_PATH's unless that is the longer one.
fn merged(path: PathLength, four: Option<PathLength>) -> PathLength {
    match four {
        Some(four) if four.distance <= path.distance && four.distance > 0 => {
            PathLength { origin: four.origin, ..path }
        }
        _ => path,
    }
}

/// Reads prefixes: each a path identifier if `ids`, a length in bits and the octets that hold them.
fn prefixes(
    family: Family,
    ids: bool,
    mut bytes: &[u8],
    mut each: impl FnMut(Nlri),
) -> Result<(), Unreadable> {
    while !bytes.is_empty() {
        let mut path_id = 0;
        if ids {
            let (id, rest) = bytes.split_first_chunk::<4>().ok_or(Unreadable::Prefix)?;
            path_id = u32::from_be_bytes(*id);
            bytes = rest;
        }
        let (&length, rest) = bytes.split_first().ok_or(Unreadable::Prefix)?;
        let (octets, rest) =
            rest.split_at_checked(usize::from(length.div_ceil(8))).ok_or(Unreadable::Prefix)?;
        bytes = rest;
        let prefix = network(family, octets, length).ok_or(Unreadable::Prefix)?;
        each(Nlri { prefix, path_id });
    }
    Ok(())
}

/// A prefix from the octets that hold its bits; bits behind them do not count (RFC 4271 section 4.3).
pub(crate) fn network(family: Family, octets: &[u8], length: u8) -> Option<IpNet> {
    let net = match family {
        Family::Ipv4 => {
            let mut address = [0; 4];
            address.get_mut(..octets.len())?.copy_from_slice(octets);
            IpNet::V4(Ipv4Net::new(address.into(), length).ok()?)
        }
        Family::Ipv6 => {
            let mut address = [0; 16];
            address.get_mut(..octets.len())?.copy_from_slice(octets);
            IpNet::V6(Ipv6Net::new(address.into(), length).ok()?)
        }
    };
    Some(net.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Families = Families { ipv4: true, ipv6: true };
    const WIDE: Format =
        Format { four_octets: true, add_path: Families { ipv4: false, ipv6: false } };

    fn nlri(prefix: &str, path_id: u32) -> Nlri {
        Nlri { prefix: prefix.parse().unwrap(), path_id }
    }

    fn read(body: &[u8], format: Format) -> Result<Learned, Unreadable> {
        let mut learned = Learned::default();
        learned.read(body, format).map(|()| learned)
    }

    /// An UPDATE's body from its three parts.
    fn body(withdrawn: &[u8], attributes: &[u8], announced: &[u8]) -> Vec<u8> {
        let mut bytes = (withdrawn.len() as u16).to_be_bytes().to_vec();
        bytes.extend(withdrawn);
        bytes.extend((attributes.len() as u16).to_be_bytes());
        bytes.extend(attributes);
        bytes.extend(announced);
        bytes
    }

    /// ORIGIN, AS_PATH 64500 64501, NEXT_HOP 192.0.2.1.
    const PATH: [u8; 24] = [
        0x40, 1, 1, 0, 0x40, 2, 10, 2, 2, 0, 0, 0xfb, 0xf4, 0, 0, 0xfb, 0xf5, 0x40, 3, 4, 192, 0,
        2, 1,
    ];

    #[test]
    fn prefixes_of_the_first_family_are_in_the_message_itself() {
        let learned =
            read(&body(&[8, 10], &PATH, &[0, 24, 203, 0, 113, 20, 198, 51, 111]), WIDE).unwrap();
        assert_eq!(learned.withdrawn, [nlri("10.0.0.0/8", 0)]);
        let hop = Some("192.0.2.1".parse().unwrap());
        assert_eq!(
            learned.announced,
            [
                (nlri("0.0.0.0/0", 0), hop),
                (nlri("203.0.113.0/24", 0), hop),
                // Bits behind the prefix do not count.
                (nlri("198.51.96.0/20", 0), hop)
            ]
        );
        assert_eq!(learned.path, PathLength { distance: 2, origin: 64501, first: 64500 });
        assert!(!learned.malformed && learned.end_of_rib.is_none());
    }

    #[test]
    fn the_second_family_is_in_attributes() {
        let mut reach = vec![0, 2, 1, 16];
        reach.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        reach.extend([0, 32, 0x20, 1, 0x0d, 0xb8, 0]);
        let mut attributes = PATH[..17].to_vec();
        attributes.extend([0x80, 14, reach.len() as u8]);
        attributes.extend(reach);
        let learned = read(&body(&[], &attributes, &[]), WIDE).unwrap();
        let hop = Some("2001:db8::1".parse().unwrap());
        assert_eq!(learned.announced, [(nlri("2001:db8::/32", 0), hop), (nlri("::/0", 0), hop)]);
        let unreach = [0x80, 15, 8, 0, 2, 1, 32, 0x20, 1, 0x0d, 0xb8];
        let learned = read(&body(&[], &unreach, &[]), WIDE).unwrap();
        assert_eq!(learned.withdrawn, [nlri("2001:db8::/32", 0)]);
    }

    #[test]
    fn path_identifiers_tell_paths_apart() {
        let format = Format { four_octets: true, add_path: BOTH };
        let learned =
            read(&body(&[0, 0, 0, 9, 8, 10], &PATH, &[0, 0, 1, 0, 8, 11]), format).unwrap();
        assert_eq!(learned.withdrawn, [nlri("10.0.0.0/8", 9)]);
        assert_eq!(learned.announced[0].0, nlri("11.0.0.0/8", 256));
    }

    /// RFC 4724 section 2.
    #[test]
    fn each_family_has_its_end() {
        assert_eq!(read(&body(&[], &[], &[]), WIDE).unwrap().end_of_rib, Some(Family::Ipv4));
        let six = [0x80, 15, 3, 0, 2, 1];
        assert_eq!(read(&body(&[], &six, &[]), WIDE).unwrap().end_of_rib, Some(Family::Ipv6));
        let other = [0x80, 15, 3, 0x40, 4, 71];
        let learned = read(&body(&[], &other, &[]), WIDE).unwrap();
        assert_eq!((learned.end_of_rib, learned.other_families), (None, true));
    }

    /// RFC 6793 section 4.2.3: a speaker of two octets carries the other numbers beside the path.
    #[test]
    fn numbers_of_four_octets_come_through_speakers_of_two() {
        let narrow = Format::default();
        let attributes = [
            0x40, 2, 8, 2, 3, 0, 1, 0x5b, 0xa0, 0x5b, 0xa0, 0x40, 3, 4, 192, 0, 2, 1, 0xc0, 17, 10,
            2, 2, 0, 3, 0, 0, 0, 4, 0, 0,
        ];
        let learned = read(&body(&[], &attributes, &[8, 10]), narrow).unwrap();
        assert_eq!(learned.path, PathLength { distance: 3, origin: 0x0004_0000, first: 1 });
    }

    /// RFC 7606: a malformed path withdraws its routes; lengths that do not fit end the session.
    #[test]
    fn errors_cost_what_they_must() {
        let mut wrong = PATH;
        wrong[7] = 9;
        let learned = read(&body(&[], &wrong, &[8, 10]), WIDE).unwrap();
        assert!(learned.malformed && learned.announced.is_empty());
        assert_eq!(learned.withdrawn, [nlri("10.0.0.0/8", 0)]);
        let learned = read(&body(&[], &PATH[..4], &[8, 10]), WIDE).unwrap();
        assert!(learned.malformed, "no AS_PATH");
        assert_eq!(read(&body(&[], &PATH, &[33, 1, 2, 3, 4, 5]), WIDE), Err(Unreadable::Prefix));
        assert_eq!(read(&body(&[], &PATH, &[24, 1, 2]), WIDE), Err(Unreadable::Prefix));
        assert_eq!(read(&body(&[], &PATH[..16], &[]), WIDE), Err(Unreadable::Lengths));
        assert_eq!(read(&[0], WIDE), Err(Unreadable::Lengths));
    }
}
