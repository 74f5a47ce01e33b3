//! Live feeds on a runtime of their own, so that a router's table does not delay the daemon's thread.

use super::{PartError, StartError, Updates, driver, forward};
use crate::{
    config::Config,
    feeds::{self, Feeds},
};
use std::sync::Arc;
use tokio::{
    runtime::{self, Runtime},
    sync::Mutex,
};

/// The feeds and the threads they run on; clones are handles on the same ones.
#[derive(Clone, Debug)]
pub(super) struct Live {
    feeds: Arc<Mutex<Option<Feeds>>>,
    runtime: Arc<Threads>,
}

/// Threads that end with their last handle; a runtime must not be dropped where it would wait.
#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The feeds of a configuration.
pub(super) fn config(config: &Config) -> feeds::Config {
    feeds::Config { bmp: config.oracle.bmp.clone(), bgp_ls: config.oracle.bgp_ls.clone() }
}

impl Live {
    /// Starts the feeds.
    pub(super) async fn start(config: feeds::Config, updates: Updates) -> Result<Self, StartError> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("oracle-feeds")
            .on_thread_start(panics::adopt())
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let handle = runtime.handle().clone();
        handle.spawn(updates.shared.pulse.beat("feeds").keep());
        handle.spawn(driver::watch(Arc::downgrade(&updates.shared)));
        let live = Self { feeds: Arc::default(), runtime: Arc::new(Threads(Some(runtime))) };
        let started = handle.spawn(async move { forward::start(&config, updates).await });
        let started = started.await.map_err(|error| StartError::Thread(error.into()))?;
        *live.feeds.lock().await = Some(started.map_err(PartError::Feeds)?);
        Ok(live)
    }

    /// Applies another configuration; a feed whose configuration has not changed keeps its session.
    pub(super) async fn reload(&self, config: feeds::Config) -> Result<(), PartError> {
        let feeds = self.feeds.clone();
        let reload = async move {
            match &mut *feeds.lock().await {
                Some(feeds) => feeds.reload(&config).await,
                None => Ok(()),
            }
        };
        match self.runtime.0.as_ref().map(|runtime| runtime.spawn(reload)) {
            Some(reloaded) => Ok(reloaded.await.unwrap_or(Ok(()))?),
            None => Ok(()),
        }
    }

    /// Ends all sessions.
    pub(super) async fn stop(&self) {
        if let Some(feeds) = self.feeds.lock().await.take() {
            feeds.stop().await;
        }
    }
}
