//! One announcer for each upstream: what it should say, and what it was seen to have said.
//!
//! The caller sets a [`Desired`] state; the announcer works towards it on its own task, through
//! whatever losses of the session, and keeps an [`Observed`] state that can be read or waited on. Both
//! kinds of upstream, the embedded session and BIRD, look the same from outside.

use serde::Serialize;
use std::{fmt, time::Instant};

/// What the upstream is to be told about the prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Desired {
    /// Nothing: what was announced is withdrawn.
    #[default]
    Withdrawn,
    /// All prefixes are announced.
    Announced {
        /// With the community GRACEFUL_SHUTDOWN (RFC 8326), so that other paths are preferred.
        graceful_shutdown: bool,
    },
}

/// What the upstream has been told about the prefixes, as far as can be seen from here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advertised {
    /// Nothing. The embedded session knows this when there is no session; for BIRD it has been read
    /// back.
    #[default]
    Nothing,
    /// Some of the prefixes, or not all in the same state.
    Partly,
    /// All prefixes.
    All {
        /// With the community GRACEFUL_SHUTDOWN.
        graceful_shutdown: bool,
    },
    /// BIRD does not answer, so that nothing is known of what it exports.
    Unknown,
}

impl Advertised {
    /// Whether this is what was desired.
    pub fn is(self, desired: Desired) -> bool {
        match (self, desired) {
            (Self::Nothing, Desired::Withdrawn) => true,
            (
                Self::All { graceful_shutdown: is },
                Desired::Announced { graceful_shutdown: wanted },
            ) => is == wanted,
            _ => false,
        }
    }
}

/// The states of a session (RFC 4271 section 8.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Waiting before the next attempt, or stopped.
    #[default]
    Idle,
    /// A TCP connection is being opened.
    Connect,
    /// The last attempt to connect failed; waiting for the next.
    Active,
    /// OPEN is sent.
    OpenSent,
    /// OPEN is received and accepted.
    OpenConfirm,
    /// Routes can be announced.
    Established,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Connect => "Connect",
            Self::Active => "Active",
            Self::OpenSent => "OpenSent",
            Self::OpenConfirm => "OpenConfirm",
            Self::Established => "Established",
        })
    }
}

/// What an announcer has counted since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// How often a session reached Established.
    pub established: u64,
    /// How often an established session ended.
    pub lost: u64,
    /// Messages received, all types.
    pub messages_in: u64,
    /// Messages sent, all types.
    pub messages_out: u64,
    /// UPDATE messages received and thrown away: nothing is ever learned.
    pub updates_discarded: u64,
    /// UPDATE messages sent.
    pub updates_out: u64,
    /// NOTIFICATION messages received.
    pub notifications_in: u64,
    /// NOTIFICATION messages sent.
    pub notifications_out: u64,
}

/// An announcer as it is seen from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The session with the neighbour: ours, or as BIRD reports its own.
    pub state: State,
    /// What the neighbour has been told.
    pub advertised: Advertised,
    /// When the last change of what the neighbour is told left this process: the write of the UPDATE
    /// to the socket, or BIRD's answer to the command.
    pub written: Option<Instant>,
    /// Why the announcer is not where it should be, one sentence.
    pub problem: Option<String>,
    /// What was counted.
    pub counters: Counters,
}
