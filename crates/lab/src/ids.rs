//! Numbers that must not be taken for each other.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A simulated node: its index in the network's array of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A directed link: its index in the network's array of links. The other direction is a link of its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A port, where a real host is joined to a node, in the order in which ports were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// Nanoseconds: a length of time, or the time since the lab's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time, and the lab's start.
    pub const ZERO: Self = Self(0);

    /// The difference, or no time if `earlier` is later.
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;

    /// Stops at the greatest time, 584 years.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;

    /// Stops at zero, as [`Nanos::since`].
    fn sub(self, other: Self) -> Self {
        self.since(other)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stop_at_their_ends() {
        assert_eq!(Nanos(u64::MAX) + Nanos(1), Nanos(u64::MAX));
        assert_eq!(Nanos(1) - Nanos(2), Nanos::ZERO);
        assert_eq!(Nanos::from(Duration::MAX), Nanos(u64::MAX));
        assert_eq!(Nanos(1_500_000).to_string(), "1.5ms");
    }
}
