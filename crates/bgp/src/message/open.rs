//! OPEN (RFC 4271 section 4.2) with its capabilities (RFC 5492).
//!
//! Sent: multiprotocol for each family that has a next hop (RFC 4760), four-octet AS numbers (RFC
//! 6793), route refresh (RFC 2918). Who announces omits graceful restart on purpose: a neighbour
//! keeps the routes of a dead speaker only if that speaker had announced the capability (RFC 4724
//! section 4.2), and a dead anycast node must lose its routes at once.

use super::{
    Families, Family, append,
    notification::{self, Notification},
};
use crate::value::Asn;
use netgauze_bgp_pkt::{
    BgpMessage,
    capabilities::{
        BgpCapability, FourOctetAsCapability, GracefulRestartAddressFamily,
        GracefulRestartCapability, MultiProtocolExtensionsCapability,
    },
    open::{BgpOpenMessage, BgpOpenMessageParameter},
};
use netgauze_iana::address_family::AddressType;
use std::net::Ipv4Addr;
use wire::Reader;

/// Our OPEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ours {
    /// Our AS number.
    pub asn: Asn,
    /// The hold time that we propose, in seconds.
    pub hold_time: u16,
    /// Our BGP identifier.
    pub identifier: Ipv4Addr,
    /// The families that we can announce.
    pub families: Families,
    /// We want to learn a link-state database.
    pub link_state: bool,
}

/// The capability for BGP-LS: multiprotocol, AFI 16388, SAFI 71 (RFC 9552 section 5.1).
pub const LINK_STATE: [u8; 6] = [1, 4, 0x40, 0x04, 0, 71];

impl Ours {
    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut capabilities = Vec::new();
        let types =
            [(Family::Ipv4, AddressType::Ipv4Unicast), (Family::Ipv6, AddressType::Ipv6Unicast)];
        for (family, kind) in types {
            if self.families.has(family) {
                capabilities.push(BgpCapability::MultiProtocolExtensions(
                    MultiProtocolExtensionsCapability::new(kind),
                ));
            }
        }
        if self.link_state {
            capabilities.push(BgpCapability::MultiProtocolExtensions(
                MultiProtocolExtensionsCapability::new(AddressType::BgpLs),
            ));
            // Some send the End-of-RIB marker only to those who know what it is (RFC 4724 section 2).
            // Nothing is announced that could be kept, so the time is 0 and no state is preserved.
            let family = GracefulRestartAddressFamily::new(false, AddressType::BgpLs);
            let restart = GracefulRestartCapability::new(false, false, 0, vec![family]);
            capabilities.push(BgpCapability::GracefulRestartCapability(restart));
        }
        capabilities.push(BgpCapability::RouteRefresh);
        capabilities.push(BgpCapability::FourOctetAs(FourOctetAsCapability::new(self.asn.0)));
        let open = BgpOpenMessage::new(
            self.asn.two_octets().unwrap_or(Asn::TRANS.0 as u16),
            self.hold_time,
            self.identifier,
            vec![BgpOpenMessageParameter::Capabilities(capabilities.into())],
        );
        append(&BgpMessage::Open(open), out);
    }
}

/// The neighbour's OPEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theirs {
    /// Its AS number: of four octets if it advertised that capability.
    pub asn: Asn,
    /// Whether it knows AS numbers of four octets.
    pub four_octets: bool,
    /// The hold time that it proposes, in seconds: 0 (no timers) or at least 3.
    pub hold_time: u16,
    /// Its BGP identifier, not 0.
    pub identifier: Ipv4Addr,
    /// The families it takes: IPv4 alone if it named none (RFC 4760 section 8).
    pub families: Families,
    /// Whether it advertises a link-state database.
    pub link_state: bool,
    /// The families in which it can send several paths to a prefix.
    pub sends_paths: Families,
    /// The families in which it can receive several paths to a prefix.
    pub receives_paths: Families,
}

impl Theirs {
    /// Reads the body of an OPEN.
    ///
    /// # Errors
    /// The NOTIFICATION to answer with (RFC 4271 section 6.2).
    pub fn decode(body: &[u8]) -> Result<Self, Notification> {
        let unspecific = || Notification::open(notification::UNSPECIFIC, &[]);
        let (fixed, parameters) = body.split_first_chunk::<10>().ok_or_else(unspecific)?;
        let &[version, as_high, as_low, hold_high, hold_low, a, b, c, d, length] = fixed;
        if version != 4 {
            return Err(Notification::open(notification::BAD_VERSION, &[0, 4]));
        }
        let hold = [hold_high, hold_low];
        let hold_time = u16::from_be_bytes(hold);
        if matches!(hold_time, 1 | 2) {
            return Err(Notification::open(notification::BAD_HOLD_TIME, &hold));
        }
        let identifier = Ipv4Addr::new(a, b, c, d);
        // RFC 6286 section 2.1: any number but 0.
        if identifier.is_unspecified() {
            return Err(Notification::open(notification::BAD_IDENTIFIER, &[a, b, c, d]));
        }
        // RFC 9072 section 2: type 255 in the first place says that lengths have two octets.
        let (parameters, declared, wide) = match *parameters {
            [255, high, low, ref rest @ ..] => (rest, u16::from_be_bytes([high, low]), true),
            _ => (parameters, u16::from(length), false),
        };
        if parameters.len() != usize::from(declared) {
            return Err(unspecific());
        }
        let mut found = Capabilities::default();
        for parameter in (Tlvs { rest: Reader::new(parameters), wide }) {
            match parameter.ok_or_else(unspecific)? {
                (2, capabilities) => {
                    for capability in (Tlvs { rest: Reader::new(capabilities), wide: false }) {
                        let (code, value) = capability.ok_or_else(unspecific)?;
                        found.take(code, value).ok_or_else(unspecific)?;
                    }
                }
                (kind, _) => return Err(Notification::open(notification::BAD_PARAMETER, &[kind])),
            }
        }
        let two = Asn(u32::from(u16::from_be_bytes([as_high, as_low])));
        Ok(Self {
            asn: found.four_octets.unwrap_or(two),
            four_octets: found.four_octets.is_some(),
            hold_time,
            identifier,
            families: found.families.unwrap_or(Families { ipv4: true, ipv6: false }),
            link_state: found.link_state,
            sends_paths: found.sends_paths,
            receives_paths: found.receives_paths,
        })
    }
}

/// The capabilities that matter here.
#[derive(Default)]
struct Capabilities {
    four_octets: Option<Asn>,
    families: Option<Families>,
    link_state: bool,
    sends_paths: Families,
    receives_paths: Families,
}

impl Capabilities {
    /// Takes one capability; `None` if it is one we know and its length is wrong. Others are skipped
    /// (RFC 5492 section 3).
    fn take(&mut self, code: u8, value: &[u8]) -> Option<()> {
        match code {
            1 => {
                let [afi_high, afi_low, _reserved, safi] = *value.first_chunk::<4>()?;
                self.link_state |= LINK_STATE.ends_with(&[afi_high, afi_low, 0, safi]);
                let families = self.families.get_or_insert_default();
                if let Some(family) =
                    Family::from_codes(u16::from_be_bytes([afi_high, afi_low]), safi)
                {
                    families.insert(family);
                }
            }
            // ADD-PATH (RFC 7911 section 4): AFI, SAFI, and 1 to receive, 2 to send, 3 for both. What
            // is malformed there counts as not understood.
            69 => {
                let (tuples, []) = value.as_chunks::<4>() else { return Some(()) };
                for &[afi_high, afi_low, safi, modes] in tuples {
                    let afi = u16::from_be_bytes([afi_high, afi_low]);
                    let Some(family) = Family::from_codes(afi, safi) else { continue };
                    if matches!(modes, 1 | 3) {
                        self.receives_paths.insert(family);
                    }
                    if matches!(modes, 2 | 3) {
                        self.sends_paths.insert(family);
                    }
                }
            }
            65 => self.four_octets = Some(Asn(u32::from_be_bytes(value.try_into().ok()?))),
            _ => {}
        }
        Some(())
    }
}

/// Items of a one-byte type, a length of one byte (two if `wide`) and a value; `None` where the bytes
/// end too early.
struct Tlvs<'a> {
    rest: Reader<'a>,
    wide: bool,
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Option<(u8, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| {
            let kind = self.rest.u8()?;
            let value = if self.wide { self.rest.block16() } else { self.rest.block8() }?;
            Some((kind, value.rest()))
        })
    }
}
