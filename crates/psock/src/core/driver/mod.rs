//! The drivers: how blocks are spread over the connections. docs/decisions/140-drivers.md compares them.

mod adaptive;
mod poll_all;
mod round_robin;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{ConnectionId, Connections, schedule::Schedule, sender::Sender};

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

    /// A driver of this name that has no connections yet.
    pub(super) fn driver(self) -> Box<dyn Driver> {
        match self {
            Self::RoundRobin => Box::<round_robin::RoundRobin>::default(),
            Self::PollAll => Box::<poll_all::PollAll>::default(),
            Self::Adaptive => Box::<adaptive::Adaptive>::default(),
        }
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

/// What a driver sees when it decides.
pub(super) struct View<'a> {
    /// The bytes that wait.
    pub(super) sender: &'a mut Sender,
    /// The connections.
    pub(super) connections: &'a mut Connections,
    /// Now.
    pub(super) now_ns: u64,
}

/// Fills the schedule table.
pub(super) trait Driver: Send {
    /// A connection is there.
    fn opened(&mut self, id: ConnectionId);

    /// A connection is gone; the table forgets it too.
    fn closed(&mut self, id: ConnectionId);

    /// `asked` has room for a block: appends to the table what is to be sent next, by whom, if the table
    /// does not say it yet. Nothing is appended that cannot be sent at once, except for other
    /// connections.
    fn fill(&mut self, asked: ConnectionId, view: &mut View<'_>, table: &mut Schedule);

    /// Time went by, or something was acknowledged.
    fn tick(&mut self, _: &mut View<'_>) {}

    /// When [`Self::tick`] and then [`Self::fill`] are to be called at the latest.
    fn wake_at(&self, _: &Connections) -> Option<u64> {
        None
    }
}
