//! Live sources of the topology: routers that report their routes over BMP, and speakers that advertise
//! the internal network over BGP-LS.
//!
//! Every feed is a task of its own that turns what it receives into [`topo::Change`]s. They are sent in
//! batches, at most [`FLUSH`] after they arrived, through one bounded channel: while the builder is
//! behind, the feeds wait, and with them the routers. A feed whose session is lost keeps its routes for
//! its hold time; one that reconnects replaces them without a gap. Both are reported with the changes.
//!
//! - [`config`]: `[oracle.bmp]` and `[[oracle.bgp_ls]]`.
//! - [`bmp`]: the listener, and one feed a router.
//! - [`bgp_ls`]: one feed a speaker.

pub mod bgp_ls;
pub mod bmp;
pub mod config;
mod report;

pub use config::{BgpLsConfig, BmpConfig, Config};
pub use report::{FeedState, Reports, State, Status};

use crate::feeds::{bgp_ls::Speaker, bmp::Listener};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use topo::Change;

/// How long a change may wait for others to go out with it.
pub const FLUSH: Duration = Duration::from_millis(100);

/// The most changes that go out together.
pub const BATCH: usize = 8192;

/// A message of a feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The feed's name, such as `bmp 10.8.0.1`; always the same for the same router or speaker.
    pub feed: Arc<str>,
    /// What it reports.
    pub news: News,
}

/// What a feed reports.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Nothing has been received yet; why, or what it waits for.
    Waiting(String),
    /// Its session is up.
    Up,
    /// What it knows has changed. May also come after [`News::Down`].
    Changes(Vec<Change>),
    /// Its session is lost, with the reason. Its routes stay for its hold time.
    Down(String),
    /// Everything that it reported is to be removed, with the reason.
    Dropped(String),
    /// It is no longer configured, and everything that it reported is to be removed.
    Removed,
}

/// The feeds could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `[oracle.bmp]` cannot listen on an address.
    #[error("oracle.bmp.listen: {address}: {error}; choose a free address of this machine")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's error.
        error: std::io::Error,
    },
    /// There is no usable password for a session.
    #[error("oracle.bgp_ls: peer {peer}: {error}")]
    Password {
        /// The speaker.
        peer: std::net::IpAddr,
        /// Why.
        error: bgp::config::PasswordError,
    },
}

/// All live feeds.
#[derive(Debug)]
pub struct Feeds {
    sender: mpsc::Sender<Update>,
    bmp: Option<Listener>,
    speakers: Vec<Speaker>,
    reports: Reports,
}

impl Feeds {
    /// Starts the feeds of a configuration. Must be called on a tokio runtime.
    ///
    /// # Errors
    /// What is configured cannot be used. A router or speaker that is not there is no error.
    pub async fn start(config: &Config, sender: mpsc::Sender<Update>) -> Result<Self, StartError> {
        let reports = Reports::default();
        let mut feeds = Self { sender, bmp: None, speakers: Vec::new(), reports };
        feeds.reload(config).await?;
        Ok(feeds)
    }

    /// Applies another configuration. A feed whose configuration has not changed keeps its session.
    ///
    /// # Errors
    /// What is configured cannot be used; then nothing has changed.
    pub async fn reload(&mut self, config: &Config) -> Result<(), StartError> {
        // All that can fail comes first.
        let mut new = Vec::new();
        for settings in &config.bgp_ls {
            if !self.speakers.iter().any(|speaker| speaker.config() == settings) {
                new.push((settings, bgp_ls::password(settings)?));
            }
        }
        let listening = match (&self.bmp, &config.bmp) {
            (Some(listener), Some(bmp)) if listener.config().listen == bmp.listen => None,
            (_, Some(bmp)) => Some(bmp::listen(&bmp.listen)?),
            (_, None) => None,
        };
        match (&mut self.bmp, &config.bmp) {
            (Some(listener), Some(bmp)) => listener.reload(bmp, listening).await,
            (None, Some(bmp)) => {
                let sockets = listening.unwrap_or_default();
                self.bmp = Some(Listener::start(bmp, sockets, &self.sender, &self.reports).await);
            }
            (_, None) => {
                if let Some(listener) = self.bmp.take() {
                    listener.stop(true).await;
                }
            }
        }
        let old = std::mem::take(&mut self.speakers);
        let (kept, gone) =
            old.into_iter().partition(|speaker| config.bgp_ls.contains(speaker.config()));
        self.speakers = kept;
        for speaker in gone {
            speaker.stop(true).await;
        }
        for (settings, password) in new {
            self.speakers.push(Speaker::start(settings, password, &self.sender).await);
        }
        let routers = self.bmp.iter().flat_map(Listener::reports);
        let speakers = self.speakers.iter().map(Speaker::report);
        self.reports.set(routers.chain(speakers).cloned().collect());
        Ok(())
    }

    /// The state of each feed, readable at any time.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// Ends all sessions, with a NOTIFICATION where the protocol has one. Nothing is sent any more.
    pub async fn stop(self) {
        if let Some(listener) = self.bmp {
            listener.stop(false).await;
        }
        for speaker in self.speakers {
            speaker.stop(false).await;
        }
    }
}

/// Sends news; `false` if the receiver is gone.
async fn send(sender: &mpsc::Sender<Update>, feed: &Arc<str>, news: News) -> bool {
    sender.send(Update { feed: Arc::clone(feed), news }).await.is_ok()
}

/// Sends changes in batches; `false` if the receiver is gone.
async fn send_changes(
    sender: &mpsc::Sender<Update>,
    feed: &Arc<str>,
    changes: impl Iterator<Item = Change>,
) -> bool {
    let mut changes = changes.peekable();
    while changes.peek().is_some() {
        let batch = changes.by_ref().take(BATCH).collect();
        if !send(sender, feed, News::Changes(batch)).await {
            return false;
        }
    }
    true
}

/// Waits until a time, for ever if there is none.
async fn until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
