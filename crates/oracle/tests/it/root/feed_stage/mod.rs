//! Live feeds in a namespace, and a builder that takes their reports.

use oracle::feeds::{Config, Feeds, News, Update};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
pub(crate) use testbed::LIMIT;
use testbed::{Namespace, wait_until};
use tokio::{
    runtime::{Builder as Runtimes, Runtime},
    sync::mpsc,
};
use topo::{Builder, Feed, View};

/// How long a change at a router may take to be seen here: a promise of the program.
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// What the feeds have reported.
pub(crate) struct Known {
    pub(crate) builder: Builder,
    numbers: BTreeMap<Arc<str>, Feed>,
    /// All news but changes, in order: the feed's name and the news.
    pub(crate) news: Vec<(String, News)>,
    pub(crate) changes: usize,
}

impl Known {
    fn take(&mut self, update: Update) {
        let next = Feed(2 + self.numbers.len() as u16);
        let feed = *self.numbers.entry(Arc::clone(&update.feed)).or_insert(next);
        match update.news {
            News::Changes(changes) => {
                self.changes += changes.len();
                for change in changes {
                    self.builder.apply(feed, change).unwrap();
                }
            }
            news => {
                if matches!(news, News::Dropped(_) | News::Removed) {
                    self.builder.drop_feed(feed);
                }
                self.news.push((update.feed.to_string(), news));
            }
        }
    }
}

/// Feeds that run, and what they have reported.
pub(crate) struct FeedStage {
    feeds: Option<Feeds>,
    runtime: Runtime,
    known: Arc<Mutex<Known>>,
}

impl FeedStage {
    /// Starts feeds whose sockets are in a namespace, beside what is known already.
    pub(crate) fn start(namespace: &Namespace, config: &Config, builder: Builder) -> Self {
        let known = Known { builder, numbers: BTreeMap::new(), news: Vec::new(), changes: 0 };
        let known = Arc::new(Mutex::new(known));
        namespace.enter(|| {
            // Its worker is started here and so lives in the namespace, like the sockets it opens.
            let runtime =
                Runtimes::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let (sender, mut updates) = mpsc::channel(16);
            let taker = Arc::clone(&known);
            runtime.spawn(async move {
                while let Some(update) = updates.recv().await {
                    taker.lock().unwrap().take(update);
                }
            });
            let feeds = runtime.block_on(async { Feeds::start(config, sender).await.unwrap() });
            Self { feeds: Some(feeds), runtime, known }
        })
    }

    pub(crate) fn feeds(&self) -> &Feeds {
        self.feeds.as_ref().unwrap()
    }

    /// Changes over to another configuration; new sockets are in the namespace.
    pub(crate) fn reload(&mut self, namespace: &Namespace, config: &Config) {
        let (feeds, runtime) = (self.feeds.as_mut().unwrap(), &self.runtime);
        namespace.enter(|| runtime.block_on(feeds.reload(config)).unwrap());
    }

    pub(crate) fn stop(&mut self) {
        let feeds = self.feeds.take().unwrap();
        self.runtime.block_on(feeds.stop());
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.known().builder.view()
    }

    /// Waits until what is known is so.
    #[track_caller]
    pub(crate) fn until(
        &self,
        what: &str,
        limit: Duration,
        mut condition: impl FnMut(&mut Known) -> bool,
    ) {
        if let Err(error) = wait_until(what, limit, || condition(&mut self.known())) {
            panic!(
                "{error}; status: {:#?}; news: {:#?}",
                self.feeds().reports().status(),
                self.known().news
            );
        }
    }
}
