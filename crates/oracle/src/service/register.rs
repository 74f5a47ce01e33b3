//! The register of feeds, and the handle through which they report changes of the network.

use super::{
    Shared,
    worker::{Ask, unix},
};
use crate::{
    feeds::{FeedState, Reports},
    status::FeedStatus,
};
use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::SystemTime,
};
use tokio::sync::mpsc;
use topo::{Change, Feed, FeedCounts};
use tracing::{info, warn};

/// What is known of one feed.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    state: FeedState,
    since: SystemTime,
    detail: String,
    counts: FeedCounts,
    changes: u64,
    refused: u64,
    /// Whether it is shown: one that the configuration no longer names is not.
    listed: bool,
}

/// All feeds; the index of one is its number.
#[derive(Debug)]
pub(super) struct Register {
    entries: Mutex<Vec<Entry>>,
    /// What live feeds count of their sessions.
    reports: OnceLock<Reports>,
}

impl Register {
    pub(super) fn new() -> Self {
        let register = Self { entries: Mutex::new(Vec::new()), reports: OnceLock::new() };
        // Feed::CONFIGURATION and Feed::OPERATOR.
        register.feed("configuration");
        register.feed("console");
        register.report(Feed::OPERATOR, FeedState::Live, "");
        register
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the feed with this name.
    pub(super) fn feed(&self, name: &str) -> Feed {
        let mut entries = self.entries();
        let index = entries.iter().position(|entry| entry.name == name);
        let index = index.unwrap_or_else(|| {
            entries.push(Entry {
                name: name.to_owned(),
                state: FeedState::Waiting,
                since: SystemTime::now(),
                detail: String::new(),
                counts: FeedCounts::default(),
                changes: 0,
                refused: 0,
                listed: true,
            });
            entries.len() - 1
        });
        if let Some(entry) = entries.get_mut(index) {
            entry.listed = true;
        }
        Feed(u16::try_from(index).unwrap_or(u16::MAX))
    }

    /// No longer shows a feed.
    pub(super) fn unlist(&self, feed: Feed) {
        if let Some(entry) = self.entries().get_mut(usize::from(feed.0)) {
            entry.listed = false;
        }
    }

    pub(super) fn report(&self, feed: Feed, state: FeedState, detail: &str) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(usize::from(feed.0)) else { return };
        if entry.state != state {
            (entry.state, entry.since) = (state, SystemTime::now());
            let (name, state) = (&entry.name, state.name());
            match entry.state {
                FeedState::Stale | FeedState::Dropped | FeedState::Failed => {
                    warn!(feed = name, "{state}: {detail}");
                }
                _ => info!(feed = name, "{state}"),
            }
        }
        detail.clone_into(&mut entry.detail);
    }

    pub(super) fn count(&self, feed: Feed, changes: u64, refused: u64) {
        if let Some(entry) = self.entries().get_mut(usize::from(feed.0)) {
            entry.changes += changes;
            entry.refused += refused;
        }
    }

    pub(super) fn knows(&self, feed: Feed, counts: FeedCounts) {
        if let Some(entry) = self.entries().get_mut(usize::from(feed.0)) {
            entry.counts = counts;
        }
    }

    pub(super) fn status(&self) -> Vec<FeedStatus> {
        let sessions = self.reports.get().map(Reports::status).unwrap_or_default();
        let session = |name: &str| sessions.iter().find(|session| session.feed == name);
        let entries = self.entries();
        let listed = entries.iter().filter(|entry| entry.listed);
        let status = listed.map(|entry| FeedStatus {
            name: entry.name.clone(),
            state: entry.state,
            since: unix(entry.since),
            detail: entry.detail.clone(),
            routers: entry.counts.routers,
            links: entry.counts.links,
            prefixes: entry.counts.prefixes,
            routes: entry.counts.routes,
            changes: entry.changes,
            refused: entry.refused,
            session: session(&entry.name).map(Into::into),
        });
        status.collect()
    }

    /// Connections to the BMP listener from addresses that are not configured.
    pub(super) fn bmp_unknown_peers(&self) -> u64 {
        self.reports.get().map_or(0, Reports::unknown_peers)
    }

    /// The problems, a sentence each.
    pub(super) fn problems(&self) -> Vec<String> {
        let entries = self.entries();
        let failing = |entry: &&Entry| {
            entry.listed
                && matches!(entry.state, FeedState::Stale | FeedState::Dropped | FeedState::Failed)
        };
        let sentence = |entry: &Entry| {
            let Entry { name, state, detail, .. } = entry;
            format!("oracle: feed {name} is {}: {detail}", state.name())
        };
        entries.iter().filter(failing).map(sentence).collect()
    }
}

/// The handle through which a feed reports. Its changes go to the builder in the order of the calls; a
/// call waits while the builder is behind.
#[derive(Clone, Debug)]
pub struct Updates {
    pub(super) asks: mpsc::Sender<Ask>,
    pub(super) shared: Arc<Shared>,
}

impl Updates {
    /// A number for the feed with this name; always the same one.
    pub fn feed(&self, name: &str) -> Feed {
        self.shared.feeds.feed(name)
    }

    /// Sets the state of a feed for status, health and metrics. `detail` is the reason in a few words.
    pub fn report(&self, feed: Feed, state: FeedState, detail: &str) {
        self.shared.feeds.report(feed, state, detail);
    }

    /// Sets where live feeds count what they receive; there is one for the daemon's life.
    pub(super) fn set_reports(&self, reports: &Reports) {
        self.shared.feeds.reports.get_or_init(|| reports.clone());
    }

    /// No longer shows a feed that the configuration does not name any more.
    pub fn unlist(&self, feed: Feed) {
        self.shared.feeds.unlist(feed);
    }

    /// Reports changes. Does nothing after the service was stopped.
    pub async fn apply(&self, feed: Feed, changes: Vec<Change>) {
        let _ = self.asks.send(Ask::Apply(feed, changes)).await;
    }

    /// Removes everything that the feed has reported.
    pub async fn drop_feed(&self, feed: Feed) {
        let _ = self.asks.send(Ask::DropFeed(feed)).await;
    }
}
