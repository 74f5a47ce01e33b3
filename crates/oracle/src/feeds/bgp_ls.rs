//! BGP-LS: a speaker advertises the internal network (RFC 9552).

use super::{
    BgpLsConfig, FLUSH, News, StartError, State, Update, report::Report, send, send_changes, until,
};
use bgp::{
    config::Password,
    link_state::{Graph, GraphChange, Learned, Learner, LinkId, Properties, graph::Counters},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use topo::{Change, LinkKey, LinkProperties, RouterId};

/// How many events of a session may wait.
const WAITING: usize = 16;

/// How long a good-bye may take.
const STOP: Duration = Duration::from_secs(2);

/// The feed of one speaker.
#[derive(Debug)]
pub struct Speaker {
    config: BgpLsConfig,
    feed: Arc<str>,
    report: Report,
    sender: mpsc::Sender<Update>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// The session's password, from the configuration or its file.
///
/// # Errors
/// The file is not usable.
pub(super) fn password(config: &BgpLsConfig) -> Result<Option<Password>, StartError> {
    let error = |error| StartError::Password { peer: config.peer, error };
    config.session().password().map_err(error)
}

impl Speaker {
    pub(super) async fn start(
        config: &BgpLsConfig,
        password: Option<Password>,
        sender: &mpsc::Sender<Update>,
    ) -> Self {
        let feed: Arc<str> = format!("bgp-ls {}", config.peer).into();
        let report = Report::new(&feed);
        let waiting = "the session has not come up yet".to_owned();
        report.set(State::Waiting, Some(waiting.clone()));
        send(sender, &feed, News::Waiting(waiting)).await;
        let (events, happened) = mpsc::channel(WAITING);
        let learner = Learner::start(&config.session(), config.port, password, events);
        let (stop, stopped) = oneshot::channel();
        let task = Task {
            feed: Arc::clone(&feed),
            hold: config.hold,
            max_objects: config.max_objects,
            bandwidth: config.default_bandwidth.0 as f64 / 1e6,
            graph: Graph::new(config.max_objects),
            counted: Counters::default(),
            fresh: false,
            flush_at: None,
            drop_at: None,
            sender: sender.clone(),
            report: report.clone(),
        };
        let task = tokio::spawn(task.run(learner, happened, stopped));
        let (config, sender) = (config.clone(), sender.clone());
        Self { config, feed, report, sender, stop: Some(stop), task }
    }

    pub(super) fn config(&self) -> &BgpLsConfig {
        &self.config
    }

    pub(super) fn report(&self) -> &Report {
        &self.report
    }

    /// Ends the session; `removed`: whether what the speaker advertised is to be removed.
    pub(super) async fn stop(mut self, removed: bool) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if tokio::time::timeout(STOP, &mut self.task).await.is_err() {
            self.task.abort();
            let _ = (&mut self.task).await;
        }
        if removed {
            send(&self.sender, &self.feed, News::Removed).await;
        }
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a speaker's task works with.
struct Task {
    feed: Arc<str>,
    hold: Duration,
    max_objects: usize,
    bandwidth: f64,
    graph: Graph,
    counted: Counters,
    /// UPDATEs have come since the last look at what they mean.
    fresh: bool,
    flush_at: Option<Instant>,
    /// When the stale network is removed.
    drop_at: Option<Instant>,
    sender: mpsc::Sender<Update>,
    report: Report,
}

impl Task {
    async fn run(
        mut self,
        learner: Learner,
        mut happened: mpsc::Receiver<Learned>,
        mut stop: oneshot::Receiver<()>,
    ) {
        loop {
            let settle = if self.drop_at.is_none() { self.graph.settle_at() } else { None };
            let deadline = [self.flush_at, self.drop_at, settle].into_iter().flatten().min();
            tokio::select! {
                biased;
                _ = &mut stop => break,
                event = happened.recv() => match event {
                    Some(event) => self.happened(event).await,
                    None => return,
                },
                () = until(deadline) => {}
            }
            let now = Instant::now();
            if settle.is_some_and(|at| at <= now) {
                self.graph.settle(now);
                self.fresh = true;
            }
            if self.drop_at.is_some_and(|at| at <= now) {
                self.forget().await;
            }
            if self.fresh && self.flush_at.is_none() {
                self.flush_at = Some(now + FLUSH);
            }
            if self.flush_at.is_some_and(|at| at <= now) && !self.flush().await {
                break;
            }
        }
        learner.stop().await;
    }

    async fn happened(&mut self, event: Learned) {
        match event {
            Learned::Up => {
                self.graph.begin(Instant::now());
                self.drop_at = None;
                self.report.set(State::Up, None);
                self.report.update(|status| status.sessions += 1);
                send(&self.sender, &self.feed, News::Up).await;
            }
            Learned::Updates(updates) => {
                self.fresh = true;
                let messages = updates.len() as u64;
                // The session has ended where the lengths in it do not fit.
                let wrong = updates.iter().filter(|body| self.graph.update(body).is_err()).count();
                self.count(messages, wrong as u64);
            }
            Learned::Down(why) => {
                self.drop_at = Some(Instant::now() + self.hold);
                self.report.set(State::Stale, Some(why.clone()));
                self.report.update(|status| status.errors += 1);
                send(&self.sender, &self.feed, News::Down(why)).await;
            }
            Learned::Failed(why) => {
                let state = self.report.state();
                self.report.set(state, Some(why.clone()));
                self.report.update(|status| status.errors += 1);
                if state == State::Waiting {
                    send(&self.sender, &self.feed, News::Waiting(why)).await;
                }
            }
        }
    }

    /// Adds what was counted since the last call to the report.
    fn count(&mut self, messages: u64, wrong: u64) {
        let now = self.graph.counters();
        let old = std::mem::replace(&mut self.counted, now);
        self.report.update(|status| {
            status.messages += messages;
            status.refused += now.refused - old.refused;
            status.malformed += now.malformed - old.malformed + wrong;
            status.ignored += now.unknown - old.unknown;
        });
        if now.refused > 0 && old.refused == 0 {
            let limit = self.max_objects;
            tracing::warn!(feed = %self.feed, limit, "more objects than max_objects: they are refused");
        }
    }

    async fn flush(&mut self) -> bool {
        (self.flush_at, self.fresh) = (None, false);
        let changes = self.graph.take_changes();
        let (count, objects) = (changes.len() as u64, self.graph.len());
        self.report.update(|status| {
            status.changes += count;
            status.routes = objects;
        });
        let bandwidth = self.bandwidth;
        let changes = changes.into_iter().map(|change| translate(change, bandwidth));
        send_changes(&self.sender, &self.feed, changes).await
    }

    async fn forget(&mut self) {
        (self.drop_at, self.flush_at, self.fresh) = (None, None, false);
        self.graph = Graph::new(self.max_objects);
        self.counted = Counters::default();
        let hold = humantime::format_duration(self.hold);
        let why = format!("the speaker has been gone for {hold}");
        tracing::warn!(feed = %self.feed, "its network is removed: {why}");
        self.report.set(State::Dropped, Some(why.clone()));
        self.report.update(|status| status.routes = 0);
        send(&self.sender, &self.feed, News::Dropped(why)).await;
    }
}

fn translate(change: GraphChange, bandwidth: f64) -> Change {
    match change {
        GraphChange::Router { id, name } => Change::Router { id: RouterId(id), name },
        GraphChange::RemoveRouter(id) => Change::RemoveRouter(RouterId(id)),
        GraphChange::Link(id, properties) => {
            Change::Link { key: key(id), properties: link(&properties, bandwidth) }
        }
        GraphChange::RemoveLink(id) => Change::RemoveLink(key(id)),
        GraphChange::Prefix(prefix, id) => Change::Internal { prefix, router: RouterId(id) },
        GraphChange::RemovePrefix(prefix, id) => {
            Change::RemoveInternal { prefix, router: RouterId(id) }
        }
    }
}

fn key(id: LinkId) -> LinkKey {
    LinkKey { from: RouterId(id.from), to: RouterId(id.to), id: id.id }
}

/// A link that is advertised without a metric has weight 1; congestion is the share of the bandwidth that is in use.
fn link(advertised: &Properties, default_bandwidth: f64) -> LinkProperties {
    let bandwidth = advertised.bandwidth.unwrap_or(default_bandwidth);
    let used = advertised.utilized.filter(|_| bandwidth > 0.0).map(|used| used / bandwidth);
    LinkProperties {
        bandwidth,
        latency: advertised.delay.unwrap_or_default(),
        weight: advertised.igp_metric.or(advertised.te_metric).unwrap_or(1),
        congestion: used.unwrap_or_default(),
        loss: advertised.loss.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_properties_of_a_link_have_defaults() {
        let nothing = link(&Properties::default(), 10_000.0);
        let expected = LinkProperties {
            bandwidth: 10_000.0,
            latency: 0.0,
            weight: 1,
            congestion: 0.0,
            loss: 0.0,
        };
        assert_eq!(nothing, expected);
        let advertised = Properties {
            bandwidth: Some(1000.0),
            utilized: Some(250.0),
            te_metric: Some(7),
            delay: Some(2.5),
            loss: Some(0.01),
            ..Properties::default()
        };
        let expected = LinkProperties {
            bandwidth: 1000.0,
            latency: 2.5,
            weight: 7,
            congestion: 0.25,
            loss: 0.01,
        };
        assert_eq!(link(&advertised, 10_000.0), expected);
        let advertised = Properties { igp_metric: Some(3), bandwidth: Some(0.0), ..advertised };
        assert_eq!((link(&advertised, 1.0).weight, link(&advertised, 1.0).congestion), (3, 0.0));
    }
}
