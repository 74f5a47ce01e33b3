//! What an upstream is to advertise, and what was observed of it: the values that both kinds of
//! announcer, the embedded session and BIRD, take and give.

use crate::{bfd, route::Attributes};
use ipnet::IpNet;
use serde::Serialize;
use std::{fmt, sync::Arc, time::Instant};

/// What is to be advertised to the upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Desired {
    /// Nothing: what was announced is withdrawn.
    #[default]
    Withdrawn,
    /// All prefixes are advertised.
    Announced {
        /// With the community GRACEFUL_SHUTDOWN (RFC 8326 section 4.2), so that other paths are preferred.
        graceful_shutdown: bool,
    },
}

/// What has been advertised to the upstream, as far as can be observed from here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advertised {
    /// Nothing. The embedded session knows this when there is no session; for BIRD it was read from
    /// BIRD's export.
    #[default]
    Nothing,
    /// Some of the prefixes, or not all in the same state.
    Partly,
    /// All prefixes.
    All {
        /// With the community GRACEFUL_SHUTDOWN.
        graceful_shutdown: bool,
    },
    /// BIRD does not answer, so what it exports is not known.
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

/// The states of a session (RFC 4271 section 8.2.2), in the order in which they are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// UPDATE messages received and discarded: nothing is ever learned.
    pub updates_discarded: u64,
    /// UPDATE messages sent.
    pub updates_out: u64,
    /// NOTIFICATION messages received.
    pub notifications_in: u64,
    /// NOTIFICATION messages sent.
    pub notifications_out: u64,
}

/// One route as it was advertised to the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertisedRoute {
    /// The prefix.
    pub prefix: IpNet,
    /// With the community GRACEFUL_SHUTDOWN.
    pub graceful_shutdown: bool,
    /// When it was written to the socket, or first seen in BIRD's export.
    pub at: Instant,
}

/// The state of an announcer as seen from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The session with the neighbour: ours, or as BIRD reports its own.
    pub state: State,
    /// What has been advertised to the neighbour.
    pub advertised: Advertised,
    /// The same prefix by prefix.
    pub routes: Vec<AdvertisedRoute>,
    /// When the last change of the advertised routes left this process: the write of the UPDATE to the
    /// socket, or BIRD's answer to the command.
    pub written: Option<Instant>,
    /// Why the advertised routes are not the desired ones, in one sentence.
    pub problem: Option<String>,
    /// The BFD session with the neighbour, where one is configured.
    pub bfd: Option<bfd::Observed>,
    /// What was counted.
    pub counters: Counters,
}

impl Observed {
    /// Sums up what is advertised of `prefixes`.
    pub(crate) fn summary(routes: &[AdvertisedRoute], prefixes: &[IpNet]) -> Advertised {
        let (Some(first), false) = (routes.first(), prefixes.is_empty()) else {
            return Advertised::Nothing;
        };
        let graceful_shutdown = first.graceful_shutdown;
        let all = prefixes.iter().all(|prefix| routes.iter().any(|route| route.prefix == *prefix));
        if all && routes.iter().all(|route| route.graceful_shutdown == graceful_shutdown) {
            Advertised::All { graceful_shutdown }
        } else {
            Advertised::Partly
        }
    }
}

/// What the task of an announcer has to bring about.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) desired: Desired,
    pub(crate) prefixes: Arc<[IpNet]>,
    /// Of every route of the embedded session; BIRD has its own.
    pub(crate) attributes: Attributes,
}
