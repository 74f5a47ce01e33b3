//! Prefixes with an adjustment.

use crate::value::Mark;
use ipnet::IpNet;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

/// Marked prefixes, to be asked from below and from above.
#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: BTreeMap<IpNet, Mark>,
    /// Lengths that occur, the longest first.
    lengths4: Vec<u8>,
    lengths6: Vec<u8>,
}

impl Marks {
    /// Of equal prefixes the last one counts.
    pub(super) fn new(marks: &[(IpNet, Mark)]) -> Self {
        let marks: BTreeMap<_, _> =
            marks.iter().map(|(prefix, mark)| (prefix.trunc(), *mark)).collect();
        let lengths = |is_v4: bool| {
            let lengths: BTreeSet<_> = marks
                .keys()
                .filter(|prefix| matches!(prefix, IpNet::V4(_)) == is_v4)
                .map(IpNet::prefix_len)
                .collect();
            lengths.into_iter().rev().collect()
        };
        Self { lengths4: lengths(true), lengths6: lengths(false), marks }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// All marked prefixes.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = IpNet> {
        self.marks.keys().copied()
    }

    /// The mark of the longest one that covers a prefix.
    pub(super) fn of(&self, prefix: IpNet) -> Mark {
        let lengths = match prefix {
            IpNet::V4(_) => &self.lengths4,
            IpNet::V6(_) => &self.lengths6,
        };
        lengths
            .iter()
            .filter(|length| **length <= prefix.prefix_len())
            .find_map(|length| self.marks.get(&shortened(prefix, *length)))
            .copied()
            .unwrap_or_default()
    }

    /// Marked prefixes inside of one, itself included if it is marked.
    pub(super) fn inside(&self, prefix: IpNet) -> impl Iterator<Item = IpNet> {
        // In order of address, then length: from the prefix to the last host in it.
        let last = match prefix {
            IpNet::V4(prefix) => IpNet::from(std::net::IpAddr::V4(prefix.broadcast())),
            IpNet::V6(prefix) => IpNet::from(std::net::IpAddr::V6(prefix.broadcast())),
        };
        self.marks
            .range((Bound::Included(prefix), Bound::Included(last)))
            .map(|(prefix, _)| *prefix)
    }
}

/// The prefix of another length at the same address.
pub(super) fn shortened(prefix: IpNet, length: u8) -> IpNet {
    IpNet::new(prefix.addr(), length).map_or(prefix, |prefix| prefix.trunc())
}
