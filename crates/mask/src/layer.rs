//! Kinds of headers and their fields: what a policy can name.
//!
//! A field is a run of bits in the fixed part of a header. The **structure** of a packet (versions,
//! lengths, what comes next) is always kept: without it nothing of the result could be read, and sizes
//! and protocols identify nobody. Checksums are no fields: they are computed again from the result.
//!
//! Options, extension headers and the addresses in them are kinds of their own.

/// Kinds of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Ethernet II.
    Ethernet,
    /// A tag of IEEE 802.1Q.
    Vlan,
    /// A label of MPLS (RFC 3032).
    Mpls,
    /// ARP (RFC 826), and what follows its lengths for Ethernet and IPv4.
    Arp,
    /// IPv4 (RFC 791) without options.
    Ipv4,
    /// A loose or strict source route or a recorded one, before its addresses.
    Ipv4Route,
    /// An address in it.
    Ipv4RouteAddress,
    /// The router alert (RFC 2113).
    Ipv4RouterAlert,
    /// IPv6 (RFC 8200) without extension headers.
    Ipv6,
    /// An extension header of options, whose options are removed.
    Ipv6Options,
    /// A routing header, before its addresses.
    Ipv6Routing,
    /// The same of segment routing (RFC 8754), whose flags and tag are removed.
    Ipv6Segments,
    /// An address in it.
    Ipv6RoutingAddress,
    /// The fragment header.
    Ipv6Fragment,
    /// TCP (RFC 9293) without options.
    Tcp,
    /// Its maximum segment size.
    TcpMss,
    /// Its window scale (RFC 7323).
    TcpWindowScale,
    /// Selective acknowledgements are allowed (RFC 2018).
    TcpSackPermitted,
    /// Selective acknowledgements.
    TcpSack,
    /// One block of them.
    TcpSackBlock,
    /// Timestamps (RFC 7323).
    TcpTimestamps,
    /// UDP (RFC 768).
    Udp,
    /// Any message of ICMP (RFC 792): type, code and checksum.
    Icmp,
    /// An echo's rest of the header.
    IcmpEcho,
    /// A redirect's.
    IcmpRedirect,
    /// Any other one's that quotes a packet.
    IcmpError,
    /// Any message of ICMPv6 (RFC 4443): type, code and checksum.
    Icmpv6,
    /// An echo's rest of the header.
    Icmpv6Echo,
    /// An error's.
    Icmpv6Error,
    /// A router's advertisement (RFC 4861, section 4.2).
    RouterAdvertisement,
    /// A neighbour's solicitation or advertisement (4.3, 4.4).
    Neighbour,
    /// A redirect (4.5).
    NeighbourRedirect,
    /// An option of neighbour discovery (4.6): type and length.
    NeighbourOption,
    /// The link-layer address in one (4.6.1).
    NeighbourLink,
    /// The prefix in one (4.6.2).
    NeighbourPrefix,
    /// GRE (RFC 2784).
    Gre,
    /// Its key (RFC 2890).
    GreKey,
    /// Its sequence number.
    GreSequence,
    /// VXLAN (RFC 7348).
    Vxlan,
}

impl Kind {
    /// Whether it is an option, which is removed with its structure where a policy names nothing of it.
    pub fn is_option(self) -> bool {
        matches!(
            self,
            Self::Ipv4Route
                | Self::Ipv4RouterAlert
                | Self::TcpMss
                | Self::TcpWindowScale
                | Self::TcpSackPermitted
                | Self::TcpSack
                | Self::TcpTimestamps
        )
    }
}

impl Kind {
    /// What an option has inside that is a kind of its own.
    pub fn inner(self) -> Option<Self> {
        match self {
            Self::Ipv4Route => Some(Self::Ipv4RouteAddress),
            Self::TcpSack => Some(Self::TcpSackBlock),
            _ => None,
        }
    }
}

/// So many kinds there are.
pub const KINDS: usize = Kind::Vxlan as usize + 1;

/// A field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// As policies name it.
    pub name: &'static str,
    /// The header it is in.
    pub kind: Kind,
    /// Its first byte there.
    pub at: u8,
    /// Bytes it lies in: 1, 2 or 4, or 6 or 16 for a whole address.
    pub bytes: u8,
    /// Which bits of these are its own, where they are four bytes or fewer.
    pub mask: u32,
    /// Whether it is structure, and so always kept.
    pub is_structure: bool,
}

impl Field {
    /// Its width in bits.
    pub fn bits(&self) -> u32 {
        if self.bytes <= 4 { self.mask.count_ones() } else { u32::from(self.bytes) * 8 }
    }

    /// Whether it is an address, of whatever kind.
    pub fn is_address(&self) -> bool {
        matches!(self.meaning(), 1..=3)
    }

    /// A number that it shares with the fields of the same meaning, so that what is equal in two of them
    /// gives the same under the key: a flow's source is the other direction's destination.
    pub fn meaning(&self) -> u16 {
        let last = self.name.rsplit('.').next().unwrap_or_default();
        match (self.bytes, last) {
            (4, "source" | "destination" | "sender" | "target" | "address" | "gateway")
            | (6 | 16, _) => address_meaning(self.bytes.into()),
            (2, "source_port" | "destination_port") => 4,
            (4, "sequence" | "acknowledgement" | "left" | "right")
                if self.kind != Kind::GreSequence =>
            {
                5
            }
            (4, "value" | "echo") => 6,
            // Others share nothing: their index in the table is their number.
            _ => 16 + FIELDS.iter().position(|field| field.name == self.name).unwrap_or(0) as u16,
        }
    }

    const fn new(name: &'static str, kind: Kind, at: u8, bytes: u8, mask: u32) -> Self {
        Self { name, kind, at, bytes, mask, is_structure: false }
    }

    const fn structure(name: &'static str, kind: Kind, at: u8, bytes: u8, mask: u32) -> Self {
        Self { name, kind, at, bytes, mask, is_structure: true }
    }
}

/// The meaning of an address of 4 (IPv4), 6 (MAC) or 16 bytes (IPv6).
pub(crate) fn address_meaning(bytes: usize) -> u16 {
    match bytes {
        6 => 1,
        4 => 2,
        _ => 3,
    }
}

/// The field of this name.
pub fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// All fields.
pub const FIELDS: &[Field] = {
    use Kind::*;
    const fn f(name: &'static str, kind: Kind, at: u8, bytes: u8) -> Field {
        let mask = match bytes {
            1 => 0xff,
            2 => 0xffff,
            _ => u32::MAX,
        };
        Field::new(name, kind, at, bytes, mask)
    }
    const fn part(name: &'static str, kind: Kind, at: u8, bytes: u8, mask: u32) -> Field {
        Field::new(name, kind, at, bytes, mask)
    }
    const fn s(name: &'static str, kind: Kind, at: u8, bytes: u8, mask: u32) -> Field {
        Field::structure(name, kind, at, bytes, mask)
    }
    &[
        f("ethernet.destination", Ethernet, 0, 6),
        f("ethernet.source", Ethernet, 6, 6),
        s("ethernet.type", Ethernet, 12, 2, 0xffff),
        part("vlan.priority", Vlan, 0, 2, 0xe000),
        part("vlan.drop_eligible", Vlan, 0, 2, 0x1000),
        part("vlan.id", Vlan, 0, 2, 0x0fff),
        s("vlan.type", Vlan, 2, 2, 0xffff),
        part("mpls.label", Mpls, 0, 4, 0xffff_f000),
        part("mpls.traffic_class", Mpls, 0, 4, 0x0e00),
        s("mpls.bottom", Mpls, 0, 4, 0x0100),
        part("mpls.ttl", Mpls, 0, 4, 0x00ff),
        s("arp.hardware_type", Arp, 0, 2, 0xffff),
        s("arp.protocol_type", Arp, 2, 2, 0xffff),
        s("arp.lengths", Arp, 4, 2, 0xffff),
        f("arp.operation", Arp, 6, 2),
        f("arp.sender_mac", Arp, 8, 6),
        f("arp.sender", Arp, 14, 4),
        f("arp.target_mac", Arp, 18, 6),
        f("arp.target", Arp, 24, 4),
        s("ipv4.version_and_length", Ipv4, 0, 1, 0xff),
        part("ipv4.dscp", Ipv4, 1, 1, 0xfc),
        part("ipv4.ecn", Ipv4, 1, 1, 0x03),
        s("ipv4.total_length", Ipv4, 2, 2, 0xffff),
        f("ipv4.identification", Ipv4, 4, 2),
        part("ipv4.reserved", Ipv4, 6, 2, 0x8000),
        part("ipv4.dont_fragment", Ipv4, 6, 2, 0x4000),
        s("ipv4.fragment", Ipv4, 6, 2, 0x3fff),
        f("ipv4.ttl", Ipv4, 8, 1),
        s("ipv4.protocol", Ipv4, 9, 1, 0xff),
        f("ipv4.source", Ipv4, 12, 4),
        f("ipv4.destination", Ipv4, 16, 4),
        s("ipv4.route.type_and_length", Ipv4Route, 0, 2, 0xffff),
        f("ipv4.route.pointer", Ipv4Route, 2, 1),
        f("ipv4.route.address", Ipv4RouteAddress, 0, 4),
        s("ipv4.router_alert.type_and_length", Ipv4RouterAlert, 0, 2, 0xffff),
        f("ipv4.router_alert.value", Ipv4RouterAlert, 2, 2),
        s("ipv6.version", Ipv6, 0, 1, 0xf0),
        part("ipv6.dscp", Ipv6, 0, 2, 0x0fc0),
        part("ipv6.ecn", Ipv6, 0, 2, 0x0030),
        part("ipv6.flow_label", Ipv6, 0, 4, 0x000f_ffff),
        s("ipv6.payload_length", Ipv6, 4, 2, 0xffff),
        s("ipv6.next_header", Ipv6, 6, 1, 0xff),
        f("ipv6.hop_limit", Ipv6, 7, 1),
        f("ipv6.source", Ipv6, 8, 16),
        f("ipv6.destination", Ipv6, 24, 16),
        s("ipv6.options.next_and_length", Ipv6Options, 0, 2, 0xffff),
        s("ipv6.routing.next_and_length", Ipv6Routing, 0, 2, 0xffff),
        s("ipv6.routing.type_and_left", Ipv6Routing, 2, 2, 0xffff),
        s("ipv6.routing.last_entry", Ipv6Segments, 4, 1, 0xff),
        f("ipv6.routing.address", Ipv6RoutingAddress, 0, 16),
        s("ipv6.fragment.next_header", Ipv6Fragment, 0, 1, 0xff),
        s("ipv6.fragment.offset", Ipv6Fragment, 2, 2, 0xffff),
        f("ipv6.fragment.identification", Ipv6Fragment, 4, 4),
        f("tcp.source_port", Tcp, 0, 2),
        f("tcp.destination_port", Tcp, 2, 2),
        f("tcp.sequence", Tcp, 4, 4),
        f("tcp.acknowledgement", Tcp, 8, 4),
        s("tcp.header_length", Tcp, 12, 1, 0xf0),
        part("tcp.reserved", Tcp, 12, 2, 0x0e00),
        part("tcp.flags", Tcp, 12, 2, 0x01ff),
        f("tcp.window", Tcp, 14, 2),
        f("tcp.urgent", Tcp, 18, 2),
        s("tcp.mss.kind_and_length", TcpMss, 0, 2, 0xffff),
        f("tcp.mss.value", TcpMss, 2, 2),
        s("tcp.window_scale.kind_and_length", TcpWindowScale, 0, 2, 0xffff),
        f("tcp.window_scale.shift", TcpWindowScale, 2, 1),
        f("tcp.sack_permitted", TcpSackPermitted, 0, 2),
        s("tcp.sack.kind_and_length", TcpSack, 0, 2, 0xffff),
        f("tcp.sack.left", TcpSackBlock, 0, 4),
        f("tcp.sack.right", TcpSackBlock, 4, 4),
        s("tcp.timestamps.kind_and_length", TcpTimestamps, 0, 2, 0xffff),
        f("tcp.timestamps.value", TcpTimestamps, 2, 4),
        f("tcp.timestamps.echo", TcpTimestamps, 6, 4),
        f("udp.source_port", Udp, 0, 2),
        f("udp.destination_port", Udp, 2, 2),
        s("udp.length", Udp, 4, 2, 0xffff),
        s("icmp.type_and_code", Icmp, 0, 2, 0xffff),
        f("icmp.echo.identifier", IcmpEcho, 0, 2),
        f("icmp.echo.sequence", IcmpEcho, 2, 2),
        f("icmp.redirect.gateway", IcmpRedirect, 0, 4),
        f("icmp.error.rest", IcmpError, 0, 4),
        s("icmpv6.type_and_code", Icmpv6, 0, 2, 0xffff),
        f("icmpv6.echo.identifier", Icmpv6Echo, 0, 2),
        f("icmpv6.echo.sequence", Icmpv6Echo, 2, 2),
        f("icmpv6.error.rest", Icmpv6Error, 0, 4),
        f("icmpv6.router.hop_limit_and_flags", RouterAdvertisement, 0, 2),
        f("icmpv6.router.lifetime", RouterAdvertisement, 2, 2),
        f("icmpv6.router.reachable", RouterAdvertisement, 4, 4),
        f("icmpv6.router.retransmit", RouterAdvertisement, 8, 4),
        f("icmpv6.neighbour.flags", Neighbour, 0, 4),
        f("icmpv6.neighbour.target", Neighbour, 4, 16),
        f("icmpv6.redirect.target", NeighbourRedirect, 4, 16),
        f("icmpv6.redirect.destination", NeighbourRedirect, 20, 16),
        s("icmpv6.option.type_and_length", NeighbourOption, 0, 2, 0xffff),
        f("icmpv6.option.link_address", NeighbourLink, 2, 6),
        f("icmpv6.option.prefix_length_and_flags", NeighbourPrefix, 2, 2),
        f("icmpv6.option.prefix_lifetime", NeighbourPrefix, 4, 4),
        f("icmpv6.option.prefix_preferred", NeighbourPrefix, 8, 4),
        f("icmpv6.option.prefix", NeighbourPrefix, 16, 16),
        s("gre.flags_and_version", Gre, 0, 2, 0xffff),
        s("gre.protocol", Gre, 2, 2, 0xffff),
        f("gre.key", GreKey, 0, 4),
        f("gre.sequence", GreSequence, 0, 4),
        s("vxlan.flags", Vxlan, 0, 1, 0xff),
        part("vxlan.vni", Vxlan, 4, 4, 0xffff_ff00),
    ]
};

#[cfg(test)]
#[test]
fn the_manual_has_all_fields_with_their_bits() {
    let manual = include_str!("../../../docs/mask.md");
    for field in FIELDS {
        let star = if field.is_structure { "*" } else { "" };
        let entry = format!("`{}` {}{star}", field.name, field.bits());
        assert!(manual.contains(&entry), "docs/mask.md lacks {entry}");
    }
    assert!(manual.contains(&format!("a program is {KINDS} lists")));
}
