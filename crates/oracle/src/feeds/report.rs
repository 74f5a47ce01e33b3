//! The state of a feed, for status, health and metrics.

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

/// The states of a live feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing received yet.
    #[default]
    Waiting,
    /// Its session is up.
    Up,
    /// Its session is lost; what it reported still counts.
    Stale,
    /// What it reported was removed.
    Dropped,
}

/// The state of a feed, file or session, as status and metrics show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedState {
    /// Its files are being read.
    Loading,
    /// It was read, or its session is up.
    Live,
    /// Nothing has been received from it yet.
    Waiting,
    /// Its session is lost; what it reported is kept for its hold time.
    Stale,
    /// Its session is lost, and what it reported is removed.
    Dropped,
    /// It cannot be read.
    Failed,
}

impl FeedState {
    /// The name, as it is printed and labelled.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Live => "live",
            Self::Waiting => "waiting",
            Self::Stale => "stale",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
        }
    }
}

/// The state of one feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The feed's name.
    pub feed: String,
    /// The router or speaker as it calls itself, if it does.
    pub name: Option<String>,
    /// Its state.
    pub state: State,
    /// Since when.
    pub since: SystemTime,
    /// Why it is not up, what the last session ended with, or which peer's routes are skipped.
    pub problem: Option<String>,
    /// Sessions that came up.
    pub sessions: u64,
    /// Sessions and attempts that ended with an error.
    pub errors: u64,
    /// Peers of the router that are up.
    pub peers: usize,
    /// Routes or objects that the running session has reported.
    pub routes: usize,
    /// Those left from the session before.
    pub stale: usize,
    /// Over the daemon's life.
    pub messages: u64,
    /// Routes or objects refused because the limit was reached.
    pub refused: u64,
    /// Malformed items that were skipped without ending the session.
    pub malformed: u64,
    /// Items that were skipped: unknown types, other tables, routes from inside the AS.
    pub ignored: u64,
    /// Changes that were reported.
    pub changes: u64,
}

/// A feed's status, written by its task and read by all.
#[derive(Clone, Debug)]
pub(super) struct Report(Arc<Mutex<Status>>);

impl Report {
    pub(super) fn new(feed: &str) -> Self {
        Self(Arc::new(Mutex::new(Status {
            feed: feed.to_owned(),
            name: None,
            state: State::Waiting,
            since: SystemTime::now(),
            problem: None,
            sessions: 0,
            errors: 0,
            peers: 0,
            routes: 0,
            stale: 0,
            messages: 0,
            refused: 0,
            malformed: 0,
            ignored: 0,
            changes: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        // Nothing that holds it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> Status {
        self.lock().clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.lock());
    }

    pub(super) fn state(&self) -> State {
        self.lock().state
    }

    pub(super) fn set(&self, state: State, problem: Option<String>) {
        let mut status = self.lock();
        if status.state != state {
            status.state = state;
            status.since = SystemTime::now();
        }
        status.problem = problem;
    }
}

/// The reports of all feeds that are configured; clones are handles on the same ones.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    feeds: Arc<ArcSwap<Vec<Report>>>,
    unknown_peers: Arc<AtomicU64>,
}

impl Reports {
    /// These feeds are configured from now on.
    pub(super) fn set(&self, feeds: Vec<Report>) {
        self.feeds.store(Arc::new(feeds));
    }

    /// Counts a connection from an address that is not configured; returns how many there were.
    pub(super) fn unknown_peer(&self) -> u64 {
        self.unknown_peers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The state of each feed.
    pub fn status(&self) -> Vec<Status> {
        self.feeds.load().iter().map(Report::status).collect()
    }

    /// Connections to the BMP listener from addresses that are not configured, over the daemon's life.
    pub fn unknown_peers(&self) -> u64 {
        self.unknown_peers.load(Ordering::Relaxed)
    }
}
