//! The names of things: routers, groups of prefixes, marks and feeds.

use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{AddrParseError, IpAddr},
    str::FromStr,
};

/// Identity of a router: its loopback address, or its router id in a protocol that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouterId(pub IpAddr);

impl fmt::Display for RouterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RouterId {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl From<IpAddr> for RouterId {
    fn from(address: IpAddr) -> Self {
        Self(address)
    }
}

/// Index of a router in one [`View`](crate::View): dense from 0, in order of [`RouterId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RouterIndex(pub u32);

impl RouterIndex {
    /// As an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a group in one [`View`](crate::View): dense from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The group of addresses to which nothing routes. Its group has no exits.
    pub const UNKNOWN: Self = Self(0);

    /// As an index into a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an operator's adjustments make of a prefix: prefixes with different marks are never in one
/// group. What a mark means is its giver's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Mark(pub u16);

impl Mark {
    /// No adjustment.
    pub const NONE: Self = Self(0);
}

/// Where a piece of knowledge comes from. Several feeds may know the same thing; a feed's part goes
/// when the feed is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Feed(pub u16);

impl Feed {
    /// Files that the configuration names.
    pub const CONFIGURATION: Self = Self(0);
    /// What an operator types.
    pub const OPERATOR: Self = Self(1);
}
