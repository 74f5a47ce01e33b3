//! Passes what live feeds report to the running oracle.

use super::Updates;
use crate::feeds::{Config, FeedState, Feeds, News, StartError, Update};
use tokio::sync::mpsc;

/// How many batches may wait; beyond them the feeds wait.
const QUEUE: usize = 16;

/// Starts the feeds of a configuration and passes what they report to the running oracle. Must be
/// called on a tokio runtime.
///
/// # Errors
/// See [`Feeds::start`].
pub(super) async fn start(config: &Config, updates: Updates) -> Result<Feeds, StartError> {
    let (sender, news) = mpsc::channel(QUEUE);
    tokio::spawn(forward(news, updates.clone()));
    let feeds = Feeds::start(config, sender).await?;
    updates.set_reports(feeds.reports());
    Ok(feeds)
}

/// Runs until the feeds are gone.
async fn forward(mut news: mpsc::Receiver<Update>, updates: Updates) {
    while let Some(Update { feed, news }) = news.recv().await {
        panics::point("oracle-feeds");
        let feed = updates.feed(&feed);
        match news {
            News::Changes(changes) => updates.apply(feed, changes).await,
            News::Up => updates.report(feed, FeedState::Live, ""),
            News::Waiting(why) => updates.report(feed, FeedState::Waiting, &why),
            News::Down(why) => updates.report(feed, FeedState::Stale, &why),
            News::Dropped(why) => {
                updates.drop_feed(feed).await;
                updates.report(feed, FeedState::Dropped, &why);
            }
            News::Removed => {
                updates.drop_feed(feed).await;
                updates.unlist(feed);
            }
        }
    }
}
