//! The builder thread: takes what has come, then makes and publishes one snapshot of it all.

use super::{
    ControlError, Prepared, Shared, dump,
    edit::{self, Down},
    load::{self, Files},
    policy, settings, show,
};
use crate::{
    alto::Publisher,
    config::Exits,
    control::Request,
    feeds::FeedState,
    status::TablesStatus,
    tables::{Policy, Tables},
};
use job::pulse::Beat;
use serde::Serialize;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::{mpsc, oneshot};
use topo::{Builder, Change, Feed};
use tracing::{debug, info, warn};

/// Most messages that are taken before a snapshot is made, so that one is made in time however much
/// comes.
const BATCH: usize = 4096;

/// Where the answer to a request goes.
type Answer = oneshot::Sender<Result<Value, ControlError>>;

/// A request to the thread.
#[derive(Debug)]
pub(super) enum Ask {
    /// A feed has changes.
    Apply(Feed, Vec<Change>),
    /// A feed is gone.
    DropFeed(Feed),
    /// Something of the control socket.
    Control(Request, Answer),
    /// Another configuration, or its files again.
    PutInForce(Box<Prepared>, oneshot::Sender<()>),
    /// The end.
    Stop(oneshot::Sender<()>),
}

/// What is answered when the next snapshot is in force.
enum Pending {
    Done(Result<(), ControlError>, Answer),
    Show(Request, Answer),
    InForce(oneshot::Sender<()>),
}

/// What the thread owns.
pub(super) struct Worker {
    shared: Arc<Shared>,
    builder: Builder,
    policy: Arc<Policy>,
    exits: Exits,
    /// The content of the configuration's own files, to know whether they have changed.
    configuration: Vec<Change>,
    /// Links whose interface an operator set down.
    down: Down,
    /// Whether an operator changed anything since the files were read.
    edited: bool,
    /// Feeds that reported something since the last snapshot.
    touched: BTreeSet<Feed>,
    /// Whether there is something to publish.
    changed: bool,
    builds: u64,
    /// By which ALTO gets the tables.
    publisher: Option<Publisher>,
}

/// What an operator may have changed of a policy.
fn metrics(policy: &Policy) -> Vec<(&str, &str)> {
    policy.metrics.iter().map(|metric| (&*metric.name, metric.expression())).collect()
}

impl Worker {
    /// A worker that knows nothing of the network yet.
    pub(super) fn new(
        shared: Arc<Shared>,
        exits: Exits,
        policy: Policy,
        publisher: Option<Publisher>,
    ) -> Self {
        Self {
            shared,
            builder: Builder::new(policy::options(exits, &policy)),
            policy: Arc::new(policy),
            exits,
            configuration: Vec::new(),
            down: Down::new(),
            edited: false,
            touched: BTreeSet::new(),
            changed: true,
            builds: 0,
            publisher,
        }
    }

    /// Reads the dumps, publishes the first tables, then handles requests until the end.
    pub(super) fn run(mut self, first: Files, mut asks: mpsc::Receiver<Ask>) {
        let pulse = self.shared.pulse.clone();
        let beat = pulse.beat("builder");
        self.configure(first.configuration);
        for dump in first.dumps {
            self.read_dump(dump, &beat);
        }
        self.publish();
        while let Some(ask) = beat.idle(|| asks.blocking_recv()) {
            panics::point("oracle-builder");
            let mut pending = Vec::new();
            let first = std::iter::once(ask);
            let more = std::iter::from_fn(|| asks.try_recv().ok());
            for ask in first.chain(more).take(BATCH) {
                match self.take(ask) {
                    ControlFlow::Continue(answer) => pending.extend(answer),
                    ControlFlow::Break(done) => {
                        let _ = done.send(());
                        return;
                    }
                }
            }
            if self.changed {
                self.publish();
            }
            for pending in pending {
                self.answer(pending);
            }
        }
    }

    /// Takes one message; what is to be answered is answered when it is in force. Breaks at the end,
    /// with whom to notify.
    fn take(&mut self, ask: Ask) -> ControlFlow<oneshot::Sender<()>, Option<Pending>> {
        ControlFlow::Continue(match ask {
            Ask::Apply(feed, changes) => {
                self.apply(feed, changes);
                None
            }
            Ask::DropFeed(feed) => {
                self.builder.drop_feed(feed);
                self.touch(feed);
                None
            }
            Ask::PutInForce(prepared, done) => {
                self.put_in_force(*prepared);
                Some(Pending::InForce(done))
            }
            Ask::Control(request, answer) if changes_something(&request) => {
                Some(Pending::Done(self.edit(&request), answer))
            }
            Ask::Control(request, answer) => Some(Pending::Show(request, answer)),
            Ask::Stop(done) => return ControlFlow::Break(done),
        })
    }

    fn touch(&mut self, feed: Feed) {
        self.touched.insert(feed);
        self.changed = true;
    }

    fn apply(&mut self, feed: Feed, changes: Vec<Change>) {
        let (mut taken, mut refused) = (0, 0);
        for change in changes {
            match self.builder.apply(feed, change) {
                Ok(()) => taken += 1,
                Err(refusal) => {
                    refused += 1;
                    debug!(feed = feed.0, "refused: {refusal}");
                }
            }
        }
        self.shared.feeds.count(feed, taken + refused, refused);
        if taken > 0 {
            self.touch(feed);
        }
    }

    /// Replaces what the configuration's own files and the operator had reported with the files' content.
    fn configure(&mut self, changes: Vec<Change>) {
        let feed = Feed::CONFIGURATION;
        if self.edited || changes != self.configuration {
            self.builder.drop_feed(Feed::OPERATOR);
            self.builder.drop_feed(feed);
            self.down.clear();
            self.edited = false;
            self.configuration.clone_from(&changes);
            self.apply(feed, changes);
            self.touch(feed);
            self.touch(Feed::OPERATOR);
        }
        self.shared.feeds.report(feed, FeedState::Live, "");
    }

    /// Reads a dump that has not been read yet.
    fn read_dump(&mut self, dump: load::Dump, beat: &Beat) {
        let feed = self.shared.feeds.feed(&dump.name());
        self.shared.feeds.report(feed, FeedState::Loading, "");
        let begun = Instant::now();
        let mut batch = Vec::new();
        let result = dump.read(&mut |change| {
            batch.push(change);
            if batch.len() == BATCH {
                beat.beat();
                self.apply(feed, std::mem::take(&mut batch));
            }
        });
        self.apply(feed, batch);
        match result {
            Ok(warnings) => {
                let seconds = begun.elapsed().as_secs_f64();
                let routes = self.builder.counts(feed).routes;
                info!(file = %dump.config.file.display(), routes, seconds, "read");
                self.shared.feeds.report(feed, FeedState::Live, &warnings);
            }
            Err(error) => {
                self.shared.feeds.report(feed, FeedState::Failed, &error.to_string());
                // So that the next reload reads it, changed or not.
                let mut dumps = Vec::clone(&self.shared.dumps.load());
                dumps.iter_mut().filter(|one| **one == dump).for_each(load::Dump::forget);
                self.shared.dumps.store(Arc::new(dumps));
            }
        }
        self.touch(feed);
    }

    /// Puts a configuration in force that was found good.
    fn put_in_force(&mut self, prepared: Prepared) {
        let Prepared { config, policy, mut files, read, workers, renewed, .. } = prepared;
        if let Some(renewed) = renewed {
            renewed.put_in_force();
        }
        self.configure(files.configuration);
        for old in self.shared.dumps.load().iter() {
            if !files.dumps.iter().any(|dump| dump.name() == old.name()) {
                let feed = self.shared.feeds.feed(&old.name());
                self.builder.drop_feed(feed);
                self.shared.feeds.unlist(feed);
                self.touch(feed);
            }
        }
        // One that failed after the reload had checked it: the next reload reads it.
        let in_force = self.shared.dumps.load();
        for dump in &mut files.dumps {
            if !in_force.contains(dump) && !read.iter().any(|(one, _)| one == dump) {
                dump.forget();
            }
        }
        for (dump, changes) in read {
            let feed = self.shared.feeds.feed(&dump.name());
            self.builder.drop_feed(feed);
            self.apply(feed, changes);
            self.shared.feeds.report(feed, FeedState::Live, "");
            self.touch(feed);
        }
        if let (Some(publisher), Some(alto)) = (&mut self.publisher, &config.oracle.alto) {
            publisher.configure(alto.clone());
        }
        // A reload for another job's section computes no tables.
        if config.oracle != self.shared.config.load().oracle
            || metrics(&policy) != metrics(&self.policy)
        {
            self.exits = config.oracle.exits;
            self.set_policy(policy);
        }
        self.shared.settings.store(Arc::new(settings(&config)));
        if workers.is_some() {
            self.shared.udp.take_over(workers);
        }
        self.shared.dumps.store(Arc::new(files.dumps));
        self.shared.config.store(Arc::new(config));
    }

    fn set_policy(&mut self, policy: Policy) {
        self.builder.set_options(policy::options(self.exits, &policy));
        self.policy = Arc::new(policy);
        self.changed = true;
    }

    /// Does what an operator asks.
    fn edit(&mut self, request: &Request) -> Result<(), ControlError> {
        if let Request::SetMetric { name, cost } = request {
            let mut policy = Policy::clone(&self.policy);
            let Some(metric) = policy.metrics.iter_mut().find(|metric| metric.name == *name) else {
                let message = format!("there is no metric {name}: `print metrics` shows all");
                return Err(ControlError::Value(message));
            };
            *metric = policy::metric(name, cost)
                .map_err(|error| ControlError::Value(error.to_string()))?;
            self.set_policy(policy);
            return Ok(());
        }
        edit::apply(request, &mut self.builder, &mut self.down)?;
        self.edited = true;
        self.shared.feeds.count(Feed::OPERATOR, 1, 0);
        self.touch(Feed::OPERATOR);
        Ok(())
    }

    fn answer(&self, pending: Pending) {
        // The client may be gone; then the answer is dropped.
        match pending {
            Pending::Done(result, answer) => {
                let _ = answer.send(result.map(|()| Value::Bool(true)));
            }
            Pending::Show(request, answer) => {
                let _ = answer.send(self.show(request));
            }
            Pending::InForce(done) => {
                let _ = done.send(());
            }
        }
    }

    /// Shows what is in force.
    fn show(&self, request: Request) -> Result<Value, ControlError> {
        fn value(value: impl Serialize) -> Value {
            // What is in the status always serializes.
            serde_json::to_value(value).unwrap_or_default()
        }
        let topology = self.builder.topology();
        let tables = self.shared.tables.load_full();
        let tables = || tables.as_deref().ok_or(ControlError::Loading);
        Ok(match request {
            Request::Routers => value(show::routers(topology)),
            Request::Links { router } => value(show::links(topology, &self.down, router.as_ref())?),
            Request::Networks { side, within, count } => {
                value(show::networks(topology, side, within, count))
            }
            Request::Route { router, to } => {
                value(show::route(topology, &tables()?.view, &router, to.as_ref())?)
            }
            Request::Path { from, to } => value(show::path(topology, tables()?, from, to)?),
            Request::Dump { folder } => value(dump::write(topology, &folder)?),
            _ => Value::Null,
        })
    }

    /// Makes a snapshot of all that is known and puts it in force.
    fn publish(&mut self) {
        let begun = Instant::now();
        let view = self.builder.view();
        let previous = self.shared.tables.load_full();
        let tables = Tables::build(view, self.policy.clone(), previous.as_deref());
        self.changed = false;
        self.builds += 1;
        for feed in std::mem::take(&mut self.touched) {
            self.shared.feeds.knows(feed, self.builder.counts(feed));
        }
        let (_, rows) = tables.size();
        let status = TablesStatus {
            generation: tables.view.generation,
            since: unix(SystemTime::now()),
            build_seconds: begun.elapsed().as_secs_f64(),
            builds: self.builds,
            routers: tables.view.graph.routers().len(),
            links: tables.view.graph.links().len(),
            groups: tables.view.groups.len(),
            sources: tables.view.sources().len(),
            bytes: rows + tables.view.table.bytes(),
        };
        debug!(generation = status.generation, seconds = status.build_seconds, "tables in force");
        if previous.is_none() {
            info!(
                routers = status.routers,
                groups = status.groups,
                "the first tables are in force"
            );
        }
        for circle in tables.view.graph.loops() {
            let to = tables.view.graph.router(circle.to).id;
            warn!(%to, "explicit next hops form a forwarding loop");
        }
        let tables = Arc::new(tables);
        self.shared.tables.store(Some(tables.clone()));
        if let Ok(driver) = &self.shared.driver
            && !self.shared.config.load().oracle.interfaces.is_empty()
        {
            driver.publish(&tables);
        }
        if let Some(publisher) = &mut self.publisher {
            publisher.publish(tables);
        }
        self.shared.built.store(Some(Arc::new(status)));
        self.shared.policy.store(self.policy.clone());
    }
}

/// Whether a request changes anything.
fn changes_something(request: &Request) -> bool {
    match request {
        Request::Routers
        | Request::Links { .. }
        | Request::Networks { .. }
        | Request::Route { .. }
        | Request::Path { .. }
        | Request::Threads
        | Request::Feeds
        | Request::Metrics
        | Request::Dump { .. } => false,
        Request::SetLink { .. }
        | Request::SetInterface { .. }
        | Request::SetMetric { .. }
        | Request::CreateRouter { .. }
        | Request::CreateLink { .. }
        | Request::CreateNetwork { .. }
        | Request::DeleteRouter { .. }
        | Request::DeleteLink(_)
        | Request::DeleteNetwork { .. }
        | Request::Reload => true,
    }
}

/// Seconds since 1970.
pub(super) fn unix(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
