//! Ranking: candidates in, the same candidates out, best first.
//!
//! Three steps: the groups of all candidates in one batch of longest-prefix matches, for each group
//! one load of its place from the row, and a stable sort by place. Places are dense, so the sort
//! counts how many candidates have each place, adds the counts up to where each place begins, and
//! puts every candidate there at once.

mod sort;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use topo::RouterIndex;

use crate::tables::{Row, Tables, UNKNOWN};
use sort::Sorter;

/// Ranks; each thread has its own, with memory that is used again and again.
#[derive(Debug, Default)]
pub struct Ranker {
    addresses4: Vec<u32>,
    addresses6: Vec<u128>,
    groups: Vec<u32>,
    places: Vec<u16>,
    sorter: Sorter,
}

impl Ranker {
    /// Puts IPv4 addresses in order. Equal costs keep their order; what is unknown goes last.
    pub fn rank4(
        &mut self,
        tables: &Tables,
        metric: usize,
        source: Option<RouterIndex>,
        candidates: &mut [[u8; 4]],
    ) {
        let row = tables.row(metric, source);
        self.addresses4.clear();
        self.addresses4.extend(candidates.iter().map(|address| u32::from_be_bytes(*address)));
        self.groups.resize(candidates.len(), 0);
        tables.view.table.lookup4_batch(&self.addresses4, &mut self.groups);
        self.places.clear();
        self.places.extend(self.groups.iter().map(|&group| place(row, group)));
        self.sorter.sort(&self.places, row.distinct(), |from, to| {
            if let (Some(address), Some(to)) = (self.addresses4.get(from), candidates.get_mut(to)) {
                *to = address.to_be_bytes();
            }
        });
    }

    /// Puts any candidates in order: `order` becomes their indices, best first, of the first 65,536 of
    /// them. Equal costs keep their order; what is unknown goes last.
    pub fn rank(
        &mut self,
        tables: &Tables,
        metric: usize,
        source: Option<RouterIndex>,
        candidates: &[Candidate],
        order: &mut Vec<u16>,
    ) {
        let candidates = candidates.get(..1 << 16).unwrap_or(candidates);
        let row = tables.row(metric, source);
        self.addresses4.clear();
        self.addresses6.clear();
        for candidate in candidates {
            match candidate {
                Candidate::V4(address) => self.addresses4.push(address.to_bits()),
                Candidate::V6(address) => self.addresses6.push(address.to_bits()),
                Candidate::Net4(_) | Candidate::Net6(_) => (),
            }
        }
        let (count4, count6) = (self.addresses4.len(), self.addresses6.len());
        self.groups.resize(count4 + count6, 0);
        let (groups4, groups6) = self.groups.split_at_mut(count4);
        tables.view.table.lookup4_batch(&self.addresses4, groups4);
        tables.view.table.lookup6_batch(&self.addresses6, groups6);
        let (mut groups4, mut groups6) = (groups4.iter(), groups6.iter());
        self.places.clear();
        self.places.extend(candidates.iter().map(|candidate| {
            let group = match candidate {
                Candidate::V4(_) => groups4.next().copied(),
                Candidate::V6(_) => groups6.next().copied(),
                Candidate::Net4(_) | Candidate::Net6(_) => Some(tables.group(candidate).0),
            };
            group.map_or(UNKNOWN, |group| place(row, group))
        }));
        order.clear();
        order.resize(candidates.len(), 0);
        self.sorter.sort(&self.places, row.distinct(), |from, to| {
            if let Some(to) = order.get_mut(to) {
                *to = from as u16;
            }
        });
    }
}

fn place(row: Row<'_>, group: u32) -> u16 {
    row.places().get(group as usize).copied().unwrap_or(UNKNOWN)
}

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
