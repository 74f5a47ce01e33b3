//! The application layer: the protocols whose messages are understood, and the parts of them that a
//! policy can name.
//!
//! A part has no fixed offset in its message; the masking of messages is in [`crate::machine`].

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

/// All of them; the constants of each protocol's module are their indices here, which a test compares.
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

/// The treatment of a part that is not removed.
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
