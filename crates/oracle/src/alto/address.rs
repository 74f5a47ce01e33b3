//! Endpoint addresses and prefixes as ALTO writes them (RFC 7285, 10.4).

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// An address type of the registry (14.4). Others are not known to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressType {
    /// `ipv4`.
    V4,
    /// `ipv6`.
    V6,
}

impl AddressType {
    /// All that this server knows.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The type as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }

    /// The type of this name, if this server knows it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The type of a prefix.
    pub fn of(prefix: &IpNet) -> Self {
        match prefix {
            IpNet::V4(_) => Self::V4,
            IpNet::V6(_) => Self::V6,
        }
    }

    /// The prefix that covers all addresses of the type.
    pub fn everything(self) -> IpNet {
        match self {
            Self::V4 => IpNet::V4(Ipv4Net::default()),
            Self::V6 => IpNet::V6(Ipv6Net::default()),
        }
    }
}

impl fmt::Display for AddressType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether this is written as an address type, known or not (10.4.2).
pub fn is_address_type(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// An address with its type before it, such as `ipv4:192.0.2.1` (10.4.1).
pub fn parse_address(text: &str) -> Option<IpAddr> {
    let (kind, address) = text.split_once(':')?;
    match AddressType::parse(kind)? {
        AddressType::V4 => address.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        AddressType::V6 => address.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    }
}

/// An address or, as section 11.5 speaks of ranking prefixes, a prefix with its type before it.
pub fn parse_endpoint(text: &str) -> Option<IpNet> {
    if let Some(address) = parse_address(text) {
        return Some(IpNet::from(address));
    }
    let (kind, prefix) = text.split_once(':')?;
    match AddressType::parse(kind)? {
        AddressType::V4 => prefix.parse::<Ipv4Net>().ok().map(|net| IpNet::V4(net.trunc())),
        AddressType::V6 => prefix.parse::<Ipv6Net>().ok().map(|net| IpNet::V6(net.trunc())),
    }
}

/// An address as ALTO writes it.
pub fn format_address(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("ipv4:{address}"),
        IpAddr::V6(address) => format!("ipv6:{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_addresses() {
        for text in ["ipv4:192.0.2.34", "ipv6:2001:db8::1", "ipv6:::"] {
            let address = parse_address(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(format_address(address), text);
        }
        // Other spellings that RFC 4291 allows are understood.
        assert_eq!(parse_address("ipv6:2001:DB8:0:0::1"), parse_address("ipv6:2001:db8::1"));
        for text in [
            "192.0.2.34",
            "ipv4:",
            "ipv4:192.0.2",
            "ipv4:192.0.2.256",
            "ipv4:192.0.02.1",
            "ipv4: 192.0.2.1",
            "IPV4:192.0.2.1",
            "ipv4:2001:db8::1",
            "ipv6:192.0.2.1",
            "ipv6:2001:db8::1%eth0",
            "mac:00-00",
            "",
            "ipv4:192.0.2.0/24",
        ] {
            assert_eq!(parse_address(text), None, "{text}");
        }
    }

    #[test]
    fn endpoints_may_be_prefixes() {
        let prefix: IpNet = "192.0.2.0/24".parse().expect("a prefix");
        assert_eq!(parse_endpoint("ipv4:192.0.2.7/24"), Some(prefix));
        assert_eq!(parse_endpoint("ipv6:2001:db8::/129"), None);
        assert_eq!(parse_endpoint("ipv4:192.0.2.7").map(|net| net.prefix_len()), Some(32));
    }

    #[test]
    fn address_types() {
        assert!(is_address_type("ipv4") && is_address_type("ethernet48"));
        assert!(!is_address_type("") && !is_address_type("ip-v4"));
        assert_eq!(AddressType::parse("ethernet48"), None);
    }
}
