//! What the operator chooses about paths and groups.

use crate::value::Mark;
use ipnet::IpNet;
use std::collections::BTreeSet;

/// What the operator chooses about paths and groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which exit a path takes where there are several.
    pub exits: ExitChoice,
    /// Which origin ASes are distinguished.
    pub ases: AsInterest,
    /// Prefixes with an adjustment; the longest that covers a route is the route's. Of equal prefixes
    /// the last counts.
    pub marks: Vec<(IpNet, Mark)>,
}

/// Which exit a path takes where there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitChoice {
    /// Lowest internal weight, then shortest AS path, then lowest router id, as in *The P2P-Oracle Server*.
    #[default]
    Nearest,
    /// Shortest AS path, then lowest internal weight, then lowest router id, as in BGP.
    ShortestAsPath,
}

/// Which origin ASes are distinguished; groups have 0 for all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AsInterest {
    /// None: groups are as large as can be.
    #[default]
    None,
    /// Those that an adjustment names.
    Only(BTreeSet<u32>),
    /// All: an expression asks for the number.
    All,
}

impl AsInterest {
    /// The number under which groups know an AS.
    pub fn seen(&self, as_number: u32) -> u32 {
        match self {
            Self::All => as_number,
            Self::Only(ases) if ases.contains(&as_number) => as_number,
            Self::Only(_) | Self::None => 0,
        }
    }
}
