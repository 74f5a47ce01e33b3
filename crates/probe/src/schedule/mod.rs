//! When each test of the mesh runs.
//!
//! Every station has the same list of tests and calculates the same timetable from it ([`plan`]), for
//! all stations and without asking anybody. Tests that would disturb each other are kept apart in it,
//! the rest runs side by side. That clocks and files may differ for a while does no harm: a test also
//! asks the station at its other end for a slot ([`crate::station::reservations`]), and either side refuses what
//! has the time.
//!
//! What disturbs what is the rule of pScheduler's classes: an exclusive test (throughput) shares no
//! station and no link with another or with a normal one; normal ones share with each other; background
//! ones (delay sessions that never end, looks at clocks) are to see what the load does and share with
//! all.

pub mod jobs;
pub mod plan;

pub use jobs::jobs;
pub use plan::{Plan, Step};

/// How a test gets along with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Fills what it measures.
    Exclusive,
    /// A few packets, which a load would falsify.
    Normal,
    /// Runs beside everything.
    Background,
}

impl Class {
    /// Whether two tests that share a station or a link must not run at once.
    pub const fn disturbs(self, other: Self) -> bool {
        matches!(
            (self, other),
            (Self::Exclusive, Self::Exclusive | Self::Normal) | (Self::Normal, Self::Exclusive)
        )
    }
}

/// One pair of one test: what is to run again and again. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// From one run to the next.
    pub interval_ns: u64,
    /// A run begins within this time after it is due.
    pub spread_ns: u64,
    /// How long a run takes.
    pub length_ns: u64,
    /// How it gets along with others.
    pub class: Class,
    /// The stations and links that it uses, as numbers.
    pub uses: Vec<u32>,
    /// From this follows when it is due, so that not all are at once.
    pub seed: u64,
}

/// Scatters numbers: neighboring ones become far apart.
pub(crate) fn scatter(value: u64) -> u64 {
    splitmix::Random::new(value).bits()
}
