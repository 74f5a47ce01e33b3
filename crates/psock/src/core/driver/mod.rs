//! The drivers: how blocks are spread over the connections. docs/decisions/140-drivers.md compares them.

mod adaptive;
mod poll_all;
mod round_robin;

pub use super::driver_name::{DriverName, UnknownDriver};
use super::{ConnectionId, Connections, schedule::Schedule, sender::Sender};

impl DriverName {
    /// A driver of this name that has no connections yet.
    pub(super) fn driver(self) -> Box<dyn Driver> {
        match self {
            Self::RoundRobin => Box::<round_robin::RoundRobin>::default(),
            Self::PollAll => Box::<poll_all::PollAll>::default(),
            Self::Adaptive => Box::<adaptive::Adaptive>::default(),
        }
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
