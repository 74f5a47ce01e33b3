//! How a feed is, for status, health and metrics.

use arc_swap::ArcSwap;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

/// The states of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not heard yet.
    #[default]
    Waiting,
    /// It tells what it knows.
    Up,
    /// Its session is lost; what it told still counts.
    Stale,
    /// What it told was forgotten.
    Dropped,
}

/// How one feed is.
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
    /// Why it is not up, or what the last session ended with.
    pub problem: Option<String>,
    /// Sessions that came up.
    pub sessions: u64,
    /// Sessions and attempts that ended with an error.
    pub errors: u64,
    /// Peers of the router that are up.
    pub peers: usize,
    /// Routes or objects that the running session has told.
    pub routes: usize,
    /// Those left from the session before.
    pub stale: usize,
    /// Over the daemon's life.
    pub messages: u64,
    /// Routes or objects refused because there were as many as there may be.
    pub refused: u64,
    /// What was malformed and cost only itself.
    pub malformed: u64,
    /// What was passed over: unknown types, other tables, routes from inside the AS.
    pub ignored: u64,
    /// Changes that were told.
    pub changes: u64,
}

/// A feed's status, written by its task and read by everybody.
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
    strangers: Arc<AtomicU64>,
}

impl Reports {
    /// These feeds are configured from now on.
    pub(super) fn set(&self, feeds: Vec<Report>) {
        self.feeds.store(Arc::new(feeds));
    }

    /// Counts a connection from an address that is not configured; returns how many there were.
    pub(super) fn stranger(&self) -> u64 {
        self.strangers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How each feed is.
    pub fn status(&self) -> Vec<Status> {
        self.feeds.load().iter().map(Report::status).collect()
    }

    /// Connections to the BMP listener from addresses that are not configured, over the daemon's life.
    pub fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }
}
