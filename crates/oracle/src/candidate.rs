//! Candidates: what clients ask to have ranked.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// What is ranked: an address, or a prefix as a whole. A prefix keeps the host bits it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Candidate {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address.
    V6(Ipv6Addr),
    /// An IPv4 prefix.
    Net4(Ipv4Net),
    /// An IPv6 prefix.
    Net6(Ipv6Net),
}

impl From<IpAddr> for Candidate {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6(address),
        }
    }
}

impl From<IpNet> for Candidate {
    fn from(net: IpNet) -> Self {
        match net {
            IpNet::V4(net) => Self::Net4(net),
            IpNet::V6(net) => Self::Net6(net),
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => address.fmt(f),
            Self::Net4(net) => net.fmt(f),
            Self::Net6(net) => net.fmt(f),
        }
    }
}

/// A candidate was written neither as an address nor as a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a prefix (such as 192.0.2.1 or 2001:db8::/32)")]
pub struct NotACandidate(String);

impl FromStr for Candidate {
    type Err = NotACandidate;

    fn from_str(text: &str) -> Result<Self, NotACandidate> {
        let address = text.parse::<IpAddr>().map(Self::from);
        address
            .or_else(|_| text.parse::<IpNet>().map(Self::from))
            .map_err(|_| NotACandidate(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_read_as_they_are_written() {
        for text in ["192.0.2.1", "2001:db8::1", "192.0.2.1/24", "2001:db8::/32"] {
            assert_eq!(text.parse::<Candidate>().unwrap().to_string(), text);
        }
        let error = "192.0.2.1/33".parse::<Candidate>().unwrap_err();
        assert!(error.to_string().starts_with("\"192.0.2.1/33\" is neither"), "{error}");
    }
}
