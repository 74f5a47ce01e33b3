//! One announcer for each upstream: what it should say, and what it was seen to have said.
//!
//! The caller sets a [`Desired`] state; the announcer works towards it on its own task, through
//! whatever losses of the session, and keeps an [`Observed`] state that can be read or waited on. Both
//! kinds of upstream, the embedded session and BIRD, look the same from outside.

use crate::{
    bird,
    config::{PasswordError, Upstream},
    route::Attributes,
    session,
};
use ipnet::IpNet;
use serde::Serialize;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};

/// How long a clean stop may take.
const STOP: Duration = Duration::from_secs(2);

/// What the upstream is to be told about the prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Desired {
    /// Nothing: what was announced is withdrawn.
    #[default]
    Withdrawn,
    /// All prefixes are announced.
    Announced {
        /// With the community GRACEFUL_SHUTDOWN (RFC 8326 section 4.2), so that other paths are preferred.
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
    /// UPDATE messages received and thrown away: nothing is ever learned.
    pub updates_discarded: u64,
    /// UPDATE messages sent.
    pub updates_out: u64,
    /// NOTIFICATION messages received.
    pub notifications_in: u64,
    /// NOTIFICATION messages sent.
    pub notifications_out: u64,
}

/// One prefix as the neighbour was told about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The prefix.
    pub prefix: IpNet,
    /// With the community GRACEFUL_SHUTDOWN.
    pub graceful_shutdown: bool,
    /// When it was written to the socket, or read back from BIRD.
    pub at: Instant,
}

/// An announcer as it is seen from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The session with the neighbour: ours, or as BIRD reports its own.
    pub state: State,
    /// What the neighbour has been told.
    pub advertised: Advertised,
    /// The same prefix by prefix.
    pub told: Vec<Told>,
    /// When the last change of what the neighbour is told left this process: the write of the UPDATE
    /// to the socket, or BIRD's answer to the command.
    pub written: Option<Instant>,
    /// Why the announcer is not where it should be, one sentence.
    pub problem: Option<String>,
    /// What was counted.
    pub counters: Counters,
}

impl Observed {
    /// Sums up what was told about `prefixes`.
    pub(crate) fn summary(told: &[Told], prefixes: &[IpNet]) -> Advertised {
        let (Some(first), false) = (told.first(), prefixes.is_empty()) else {
            return Advertised::Nothing;
        };
        let graceful_shutdown = first.graceful_shutdown;
        let all = prefixes.iter().all(|prefix| told.iter().any(|told| told.prefix == *prefix));
        if all && told.iter().all(|told| told.graceful_shutdown == graceful_shutdown) {
            Advertised::All { graceful_shutdown }
        } else {
            Advertised::Partly
        }
    }
}

/// What the task of an announcer is told to bring about.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) desired: Desired,
    pub(crate) prefixes: Arc<[IpNet]>,
    /// Of every route of the embedded session; BIRD has its own.
    pub(crate) attributes: Attributes,
}

/// The prefixes without host bits.
fn networks(prefixes: Vec<IpNet>) -> Arc<[IpNet]> {
    prefixes.iter().map(IpNet::trunc).collect()
}

/// An announcer could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The password of the session cannot be had.
    #[error("upstream {name}: {error}")]
    Password {
        /// The upstream's name.
        name: String,
        /// Why.
        error: PasswordError,
    },
}

/// A running announcer.
///
/// Dropping it ends its task at once: the embedded session's connection closes and the neighbour
/// withdraws; BIRD is left as it is. [`Announcer::stop`] is the clean way.
#[derive(Debug)]
pub struct Announcer {
    upstream: Upstream,
    order: watch::Sender<Order>,
    observed: watch::Receiver<Observed>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Announcer {
    /// Starts to work for an upstream: nothing is announced until [`Announcer::set`] asks for it. Must be
    /// called on a tokio runtime.
    ///
    /// # Errors
    /// The file with the session's password is not usable. An upstream that cannot be reached is no
    /// error: it is tried again for ever.
    pub fn start(upstream: &Upstream, prefixes: Vec<IpNet>) -> Result<Self, StartError> {
        let order = Order {
            desired: Desired::Withdrawn,
            prefixes: networks(prefixes),
            attributes: upstream.attributes(),
        };
        let (order, orders) = watch::channel(order);
        let (publish, observed) = watch::channel(Observed::default());
        let (stop, stopped) = oneshot::channel();
        let task = match upstream {
            Upstream::Bgp(config) => {
                let password = config
                    .password()
                    .map_err(|error| StartError::Password { name: config.name.clone(), error })?;
                let session = session::Session::new(config, password);
                tokio::spawn(session.run(orders, publish, stopped))
            }
            Upstream::Bird(config) => {
                tokio::spawn(bird::Announcer::new(config).run(orders, publish, stopped))
            }
        };
        Ok(Self { upstream: upstream.clone(), order, observed, stop: Some(stop), task })
    }

    /// The upstream as configured.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The upstream's name.
    pub fn name(&self) -> &str {
        self.upstream.name()
    }

    /// Sets what the upstream is to be told, and returns at once.
    pub fn set(&self, desired: Desired) {
        self.order.send_if_modified(|order| {
            let changed = order.desired != desired;
            order.desired = desired;
            changed
        });
    }

    /// Sets the prefixes; the session stays up and only the difference is sent.
    pub fn set_prefixes(&self, prefixes: Vec<IpNet>) {
        let prefixes = networks(prefixes);
        self.order.send_if_modified(|order| {
            let changed = order.prefixes != prefixes;
            order.prefixes = prefixes;
            changed
        });
    }

    /// Goes over to another form of the upstream, of which [`Upstream::same_session`] holds: the session
    /// stays up, and routes whose attributes are others now are announced again (RFC 4271 section 3.1:
    /// a route with the same prefix takes the place of the one before). Says whether it could.
    pub fn adopt(&mut self, upstream: &Upstream) -> bool {
        if !self.upstream.same_session(upstream) {
            return false;
        }
        self.upstream = upstream.clone();
        let attributes = upstream.attributes();
        self.order.send_if_modified(|order| {
            let changed = order.attributes != attributes;
            order.attributes = attributes;
            changed
        });
        true
    }

    /// What the upstream is to be told.
    pub fn desired(&self) -> Desired {
        self.order.borrow().desired
    }

    /// What was observed last.
    pub fn observed(&self) -> Observed {
        self.observed.borrow().clone()
    }

    /// Every change of what is observed, to wait on.
    pub fn watch(&self) -> watch::Receiver<Observed> {
        self.observed.clone()
    }

    /// Withdraws, says good-bye (Cease / Administrative Shutdown, RFC 4486) and ends, within two seconds
    /// whatever the upstream does.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // A task that does not end in time is ended by the drop of `self`.
        let _ = tokio::time::timeout(STOP, &mut self.task).await;
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
