//! Who tells what of the network: the register of feeds, and the way by which they tell it.

use super::{Shared, worker::Ask};
use crate::{
    feeds::Reports,
    status::{FeedState, FeedStatus},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::mpsc;
use topo::{Change, Feed, FeedCounts};
use tracing::{info, warn};

/// Seconds since 1970.
pub(super) fn unix(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

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

/// All feeds; the place of one is its number.
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
        // A panic ends the process, so a lock is never found poisoned.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the feed with this name.
    pub(super) fn feed(&self, name: &str) -> Feed {
        let mut entries = self.entries();
        let place = entries.iter().position(|entry| entry.name == name);
        let place = place.unwrap_or_else(|| {
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
        if let Some(entry) = entries.get_mut(place) {
            entry.listed = true;
        }
        Feed(u16::try_from(place).unwrap_or(u16::MAX))
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
            let (name, state) = (&entry.name, state.word());
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
        let heard = self.reports.get().map(Reports::status).unwrap_or_default();
        let heard = |name: &str| heard.iter().find(|heard| heard.feed == name);
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
            session: heard(&entry.name).map(Into::into),
        });
        status.collect()
    }

    /// Connections to the BMP listener from addresses that are not configured.
    pub(super) fn strangers(&self) -> u64 {
        self.reports.get().map_or(0, Reports::strangers)
    }

    /// What ails, a sentence each.
    pub(super) fn ailments(&self) -> Vec<String> {
        let entries = self.entries();
        let ailing = |entry: &&Entry| {
            entry.listed
                && matches!(entry.state, FeedState::Stale | FeedState::Dropped | FeedState::Failed)
        };
        let sentence = |entry: &Entry| {
            let Entry { name, state, detail, .. } = entry;
            format!("oracle: feed {name} is {}: {detail}", state.word())
        };
        entries.iter().filter(ailing).map(sentence).collect()
    }
}

/// By which a feed tells what it knows. What it tells goes to the builder in the order of the calls; a
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

    /// Says how a feed is: for status, health and metrics. `detail` says why in a few words.
    pub fn report(&self, feed: Feed, state: FeedState, detail: &str) {
        self.shared.feeds.report(feed, state, detail);
    }

    /// Where live feeds count what they hear; they have one place for the daemon's life.
    pub(crate) fn hear(&self, reports: &Reports) {
        self.shared.feeds.reports.get_or_init(|| reports.clone());
    }

    /// No longer shows a feed that the configuration does not name any more.
    pub fn unlist(&self, feed: Feed) {
        self.shared.feeds.unlist(feed);
    }

    /// Tells changes. After the service was stopped nothing happens any more.
    pub async fn apply(&self, feed: Feed, changes: Vec<Change>) {
        let _ = self.asks.send(Ask::Apply(feed, changes)).await;
    }

    /// Forgets all that the feed has told.
    pub async fn drop_feed(&self, feed: Feed) {
        let _ = self.asks.send(Ask::DropFeed(feed)).await;
    }
}
