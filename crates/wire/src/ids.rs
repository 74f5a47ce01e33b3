//! Numbers with a meaning: MAC addresses, EtherTypes, protocols, echo identifiers.

use std::{fmt, str::FromStr};

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether the group bit is set: multicast and broadcast.
    pub fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text that is no MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no MAC address: write six pairs of hexadecimal digits, as 02:00:00:00:00:01")]
pub struct MacError(pub String);

impl FromStr for Mac {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let wrong = || MacError(text.to_owned());
        let mut out = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut out {
            let part = parts.next().ok_or_else(wrong)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(Self(out)) }
    }
}

/// What an Ethernet frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// Address resolution.
    pub const ARP: Self = Self(0x0806);
    /// IPv6.
    pub const IPV6: Self = Self(0x86dd);
    /// Customer VLAN tag, IEEE 802.1Q.
    pub const VLAN: Self = Self(0x8100);
    /// Service VLAN tag, IEEE 802.1ad (QinQ).
    pub const SERVICE_VLAN: Self = Self(0x88a8);

    /// Whether a VLAN tag follows.
    pub fn is_vlan(self) -> bool {
        self == Self::VLAN || self == Self::SERVICE_VLAN
    }
}

/// The protocol number of IPv4, the next header of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: Self = Self(0);
    /// ICMP for IPv4.
    pub const ICMP: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// IPv6 routing header.
    pub const ROUTING: Self = Self(43);
    /// IPv6 fragment header.
    pub const FRAGMENT: Self = Self(44);
    /// Authentication header.
    pub const AUTHENTICATION: Self = Self(51);
    /// ICMP for IPv6.
    pub const ICMPV6: Self = Self(58);
    /// Nothing follows.
    pub const NONE: Self = Self(59);
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: Self = Self(60);
    /// Mobility header, RFC 6275.
    pub const MOBILITY: Self = Self(135);
    /// Host identity protocol, RFC 7401.
    pub const HIP: Self = Self(139);
    /// Shim6, RFC 5533.
    pub const SHIM6: Self = Self(140);
}

/// The identifier of an ICMP echo, in host order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identifier(pub u16);

/// The sequence number of an ICMP echo, in host order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence(pub u16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_text_round_trip_and_refusals() {
        let mac: Mac = "02:ab:00:00:00:ff".parse().unwrap();
        assert_eq!(mac.to_string(), "02:ab:00:00:00:ff");
        for wrong in
            ["", "02:ab:00:00:00", "02:ab:00:00:00:ff:01", "2:ab:0:0:0:0", "+2:00:00:00:00:00"]
        {
            assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
        }
        assert!(Mac::BROADCAST.is_multicast());
        assert!(!mac.is_multicast());
    }
}
