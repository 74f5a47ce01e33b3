//! Bidirectional Forwarding Detection with a neighbour on the same link (RFC 5880, RFC 5881), so that a path that
//! fails and a process that hangs are noticed within a second and not within the hold time of BGP.
//!
//! Asynchronous mode only: no echo function (we offer none), no demand mode of our own, no authentication; packets
//! that a router has forwarded are discarded by their TTL (RFC 5881 section 5). A session belongs to a BGP session
//! and runs on its task, so it falls silent with it: the bit Control Plane Independent is never set.
//!
//! - [`packet`]: control packets; [`fsm`]: the state machine, without sockets and without a clock;
//! - [`Listener`]: the port on which all sessions of the process receive; a `Session` on both.

pub mod fsm;
mod link;
pub mod packet;
mod session;
mod socket;

pub(crate) use session::Session;
pub use socket::Listener;

use config::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// The port of single-hop control packets (RFC 5881 section 4).
pub const PORT: u16 = 3784;

/// The shortest interval: other work of the daemon may take its thread for some tens of milliseconds.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest interval; long before it the hold time of BGP is as quick.
const LONGEST: Duration = Duration::from_secs(60);

/// BFD with a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BfdConfig {
    /// The interval at which control packets are sent, and at which the neighbour is asked to send them; the slower
    /// of the two ends decides. 100 milliseconds to a minute.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub interval: Duration,
    /// How many packets in a row are missed when the neighbour takes this node for gone, 2 to 255.
    #[schemars(range(min = 2))]
    pub multiplier: u8,
}

impl Default for BfdConfig {
    fn default() -> Self {
        Self { interval: Duration::from_millis(300), multiplier: 3 }
    }
}

impl BfdConfig {
    /// Everything that is wrong with the values, by keys from `bfd` on.
    pub(crate) fn problems(&self) -> impl Iterator<Item = Problem> {
        let interval = (!(SHORTEST..=LONGEST).contains(&self.interval))
            .then(|| Problem::new("bfd.interval", "the interval is 100 ms to 60 s"));
        let multiplier = (self.multiplier < 2).then(|| {
            Problem::new(
                "bfd.multiplier",
                "one lost packet must not end a session: use 2 or more, such as 3",
            )
        });
        interval.into_iter().chain(multiplier)
    }
}

/// The states of a session (RFC 5880 section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Taken out of service by an operator.
    AdminDown,
    /// The neighbour is not heard.
    #[default]
    Down,
    /// The neighbour is heard, but has not said that it hears us.
    Init,
    /// Both ends hear each other.
    Up,
}

impl State {
    fn from_code(code: u8) -> Self {
        match code & 3 {
            0 => Self::AdminDown,
            1 => Self::Down,
            2 => Self::Init,
            _ => Self::Up,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdminDown => "AdminDown",
            Self::Down => "Down",
            Self::Init => "Init",
            Self::Up => "Up",
        })
    }
}

/// Why a session changed its state last (RFC 5880 section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Diagnostic(pub u8);

impl Diagnostic {
    /// No control packets came for as long as the neighbour had promised some.
    pub const TIME_EXPIRED: Self = Self(1);
    /// The neighbour said that its session is down.
    pub const NEIGHBOUR_DOWN: Self = Self(3);
    /// An operator took the session out of service.
    pub const ADMIN_DOWN: Self = Self(7);
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0 => "No Diagnostic",
            1 => "Control Detection Time Expired",
            2 => "Echo Function Failed",
            3 => "Neighbor Signaled Session Down",
            4 => "Forwarding Plane Reset",
            5 => "Path Down",
            6 => "Concatenated Path Down",
            7 => "Administratively Down",
            8 => "Reverse Concatenated Path Down",
            code => return write!(f, "diagnostic {code}"),
        })
    }
}

/// A session as seen from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Its state.
    pub state: State,
    /// Why it changed last.
    pub diagnostic: Diagnostic,
    /// How long the neighbour may be silent; none before it was heard.
    pub detection_time: Option<Duration>,
    /// How often the neighbour was lost.
    pub failures: u64,
}
