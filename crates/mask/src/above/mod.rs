//! The second layer: protocols above the transport, whose fields stand at no fixed place.
//!
//! ```text
//! policy   "dns.name" = "hash", "dns.address" = "prefix"
//! message  | header | www.example.org | A | 192.0.2.1 |
//! result   | header | kqz.ufwacyb.mgu | A | 77.4.91.6 |
//! ```
//!
//! A message keeps its length and what makes it one: types, lengths, counts. A protocol of which a policy
//! names nothing is removed, like all others; so is a message that is not wholly there, or not wholly
//! understood: nothing is guessed. What the policy does not name is zero, or letters `x` where it is text.

mod dhcp;
mod dhcpv6;
mod dns;
mod lines;
mod message;
mod radius;
mod snmp;
#[cfg(test)]
mod tests;

use crate::{machine::Secrets, program::Program};
use message::Message;
use wire::IpProtocol;

/// A protocol that is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// DNS (RFC 1035), and mDNS and LLMNR, which have its form.
    Dns,
    /// DHCP for IPv4 (RFC 2131), and BOOTP.
    Dhcp,
    /// DHCP for IPv6 (RFC 8415), whose parts are those of the other one.
    Dhcpv6,
    /// RADIUS (RFC 2865, RFC 2866).
    Radius,
    /// SNMP, all versions (RFC 1157, RFC 3416, RFC 3412).
    Snmp,
    /// Heads of HTTP/1 (RFC 9112).
    Http,
    /// SIP (RFC 3261).
    Sip,
}

/// A transport's protocol and its ports, from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) transport: IpProtocol,
    pub(crate) ports: [u16; 2],
}

impl Protocol {
    /// What is spoken on these ports.
    pub(crate) fn of(ports: Ports) -> Option<Self> {
        // The lower one is the service's, if it is one of these.
        let mut of = ports.ports;
        of.sort_unstable();
        of.into_iter().find_map(|port| match (ports.transport, port) {
            (IpProtocol::UDP, 53 | 5353 | 5355) | (IpProtocol::TCP, 53) => Some(Self::Dns),
            (IpProtocol::UDP, 67 | 68) => Some(Self::Dhcp),
            (IpProtocol::UDP, 546 | 547) => Some(Self::Dhcpv6),
            (IpProtocol::UDP, 1645 | 1646 | 1812 | 1813) => Some(Self::Radius),
            (IpProtocol::UDP, 161 | 162) => Some(Self::Snmp),
            (IpProtocol::TCP, 80 | 3128 | 8000 | 8080) => Some(Self::Http),
            (IpProtocol::UDP | IpProtocol::TCP, 5060) => Some(Self::Sip),
            _ => None,
        })
    }

    /// The protocol whose parts it has.
    pub(crate) fn named_as(self) -> Self {
        if self == Self::Dhcpv6 { Self::Dhcp } else { self }
    }
}

/// What a field holds, which decides what can become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Bytes or numbers: keep or hash.
    Bytes,
    /// Text that people read: keep or hash, which gives letters.
    Text,
    /// Addresses of IPv4 and IPv6: keep, hash, encrypt or prefix.
    Address,
    /// MAC addresses: keep, hash or encrypt.
    Mac,
}

/// A field of such a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// As policies name it.
    pub name: &'static str,
    /// The protocol it is of.
    pub protocol: Protocol,
    /// What it holds.
    pub holds: Holds,
}

/// All of them; the constants of each protocol's module are their places here, which a test compares.
pub const PARTS: &[Part] = &[
    part("dns.id", Protocol::Dns, Holds::Bytes),
    part("dns.name", Protocol::Dns, Holds::Text),
    part("dns.address", Protocol::Dns, Holds::Address),
    part("dns.ttl", Protocol::Dns, Holds::Bytes),
    part("dns.text", Protocol::Dns, Holds::Text),
    part("dhcp.id", Protocol::Dhcp, Holds::Bytes),
    part("dhcp.address", Protocol::Dhcp, Holds::Address),
    part("dhcp.mac", Protocol::Dhcp, Holds::Mac),
    part("dhcp.text", Protocol::Dhcp, Holds::Text),
    part("dhcp.time", Protocol::Dhcp, Holds::Bytes),
    part("radius.id", Protocol::Radius, Holds::Bytes),
    part("radius.text", Protocol::Radius, Holds::Text),
    part("radius.address", Protocol::Radius, Holds::Address),
    part("radius.number", Protocol::Radius, Holds::Bytes),
    part("snmp.community", Protocol::Snmp, Holds::Text),
    part("snmp.oid", Protocol::Snmp, Holds::Bytes),
    part("snmp.string", Protocol::Snmp, Holds::Bytes),
    part("snmp.address", Protocol::Snmp, Holds::Address),
    part("snmp.number", Protocol::Snmp, Holds::Bytes),
    part("http.target", Protocol::Http, Holds::Text),
    part("http.host", Protocol::Http, Holds::Text),
    part("http.header", Protocol::Http, Holds::Text),
    part("http.body", Protocol::Http, Holds::Text),
    part("sip.uri", Protocol::Sip, Holds::Text),
    part("sip.party", Protocol::Sip, Holds::Text),
    part("sip.header", Protocol::Sip, Holds::Text),
    part("sip.body", Protocol::Sip, Holds::Text),
];

const fn part(name: &'static str, protocol: Protocol, holds: Holds) -> Part {
    Part { name, protocol, holds }
}

/// What becomes of a part that is not removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It stays.
    Keep,
    /// A pseudo-random value under the key, the same for the same value.
    Hash,
    /// Another value under the key, and no other value's: for addresses.
    Encrypt,
    /// The data set's mapping: for addresses of IP.
    Prefix,
}

impl Holds {
    /// Whether this can become of it.
    pub fn allows(self, treatment: Treatment) -> bool {
        match treatment {
            Treatment::Keep | Treatment::Hash => true,
            Treatment::Encrypt => matches!(self, Self::Address | Self::Mac),
            Treatment::Prefix => self == Self::Address,
        }
    }
}

/// Writes what a policy makes of a message into a result of the same length, which is zero before; whether
/// it is kept. Where it is not, the result may hold anything.
pub(crate) fn treat(
    program: &Program,
    secrets: &mut Secrets,
    protocol: Protocol,
    transport: IpProtocol,
    message: &[u8],
    out: &mut [u8],
) -> bool {
    let mut message = Message { program, secrets, from: message, to: out };
    let done = match protocol {
        Protocol::Dns => dns::mask(&mut message, transport),
        Protocol::Dhcp => dhcp::mask(&mut message),
        Protocol::Dhcpv6 => dhcpv6::mask(&mut message),
        Protocol::Radius => radius::mask(&mut message),
        Protocol::Snmp => snmp::mask(&mut message),
        Protocol::Http => lines::mask(&mut message, &lines::HTTP),
        Protocol::Sip => lines::mask(&mut message, &lines::SIP),
    };
    done.is_some()
}

/// A part's own pseudo-random values; fields of headers have lower ones.
fn tag(part: usize) -> u16 {
    0x4000 + part as u16
}
