//! The names of the drivers, for people and on the wire.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A driver by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriverName {
    /// Equal blocks to each connection in turn: as fast as the slowest, times their number.
    RoundRobin,
    /// Blocks go where there is room.
    PollAll,
    /// Blocks go where they arrive in time, by estimates of each connection's rate and delay.
    #[default]
    Adaptive,
}

impl DriverName {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RoundRobin, Self::PollAll, Self::Adaptive];

    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::PollAll => "poll-all",
            Self::Adaptive => "adaptive",
        }
    }

    /// The number on the wire.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::RoundRobin => 0,
            Self::PollAll => 1,
            Self::Adaptive => 2,
        }
    }

    /// The driver that has this number on the wire.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.code() == code)
    }
}

impl fmt::Display for DriverName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that no driver has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no driver {0:?}: there are round-robin, poll-all and adaptive")]
pub struct UnknownDriver(String);

impl FromStr for DriverName {
    type Err = UnknownDriver;

    fn from_str(name: &str) -> Result<Self, UnknownDriver> {
        Self::ALL
            .into_iter()
            .find(|driver| driver.as_str() == name)
            .ok_or_else(|| UnknownDriver(name.to_owned()))
    }
}
