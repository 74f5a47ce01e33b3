//! The running oracle: builds tables beside the readers, swaps them, answers the console.
//!
//! ```text
//! files, feeds, console ──► one bounded channel ──► builder thread: all that has arrived, then one
//!                                                  snapshot ──► atomic pointer ──► readers
//! ```
//!
//! [`Service`] is a handle. Behind it one thread (`worker`) owns what is known of the network. What it
//! publishes is immutable and behind atomic pointers: readers never wait and never see a partial change.
//! A change over the control socket is answered when it is in force.
//!
//! The start has two steps, because capabilities belong to threads and are dropped in between:
//! [`Opened::open`] opens what needs privileges and starts no thread, [`Opened::start`] does the rest.

mod collect;
mod driver;
mod dump;
mod edit;
mod error;
mod forward;
mod live;
mod load;
mod name;
mod policy;
mod register;
mod show;
mod threads;
mod worker;

use crate::{
    alto::{self, AltoConfig},
    config::{Config, OracleConfig},
    control::Request,
    proxidor::{
        self,
        udp::{self, Sockets, Workers},
        xdp::Driver,
    },
    status::{self, AltoStatus, FeedsStatus, MetricStatus, Status, TablesStatus},
    tables::{Policy, Tables},
};
use arc_swap::{ArcSwap, ArcSwapOption};
use job::{Metrics, Pulse, Service as _};
use live::Live;
use load::{Dump, Files};
use register::Register;
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use threads::Udp;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use topo::Change;
use tracing::{info, warn};
use worker::{Ask, Worker};

pub use error::{ControlError, PartError, ReloadError, StartError};
pub use load::LoadError;
pub use name::NameError;
pub use policy::PolicyError;
pub use register::Updates;

/// Updates and requests that may wait for the builder before their sender waits too.
const QUEUE: usize = 256;

/// A configuration that was checked and whose files were read, and that is not in force yet.
#[derive(Debug)]
pub struct Prepared {
    config: Config,
    policy: Policy,
    files: Files,
    /// Dumps that are new or have changed, with their routes.
    read: Vec<(Dump, Vec<Change>)>,
    /// Threads on other sockets than those in force, where the configuration asks for it. They answer
    /// from the tables and settings in force.
    workers: Option<Workers>,
    /// ALTO's files as read again: certificate, key, client authorities, passwords.
    renewed: Option<alto::server::Renewed>,
    /// Whether anything visible to others was done.
    begun: bool,
    /// Held until the reload ends, so that two do not mix.
    _alone: OwnedMutexGuard<()>,
}

/// What the builder publishes and readers read.
struct Shared {
    tables: Arc<ArcSwapOption<Tables>>,
    settings: Arc<ArcSwap<proxidor::Settings>>,
    udp: Udp,
    built: ArcSwapOption<TablesStatus>,
    policy: ArcSwap<Policy>,
    /// The configuration in force.
    config: ArcSwap<Config>,
    /// The dumps in force.
    dumps: ArcSwap<Vec<Dump>>,
    feeds: Register,
    /// The programs, or why there are none.
    driver: Result<Driver, String>,
    alto: Mutex<Option<alto::server::Server>>,
    pulse: Pulse,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("built", &self.built).finish_non_exhaustive()
    }
}

impl Shared {
    /// Threads that answer at these sockets, beside those in force.
    fn answering(&self, sockets: Sockets) -> Result<Workers, PartError> {
        Ok(sockets.start(&self.tables, &self.settings, &self.pulse)?)
    }

    fn status(&self) -> Status {
        let config = self.config.load();
        let feeds = self.feeds();
        Status {
            problems: self.problems(),
            listen: config.oracle.listen.clone(),
            tables: self.built.load().as_deref().cloned(),
            queries: self.udp.queries(),
            limit: config.oracle.limit,
            threads: self.udp.threads(),
            metrics: self.metrics(),
            feeds: feeds.feeds,
            bmp_unknown_peers: feeds.bmp_unknown_peers,
            driver: self.driver.as_ref().ok().map(driver::status),
            alto: self.alto().as_ref().map(|server| AltoStatus {
                listen: server.addresses().to_vec(),
                fingerprint: server.fingerprint().to_string(),
                figures: serde_json::to_value(server.figures()).unwrap_or_default(),
            }),
        }
    }

    fn feeds(&self) -> FeedsStatus {
        let listens = self.config.load().oracle.bmp.is_some();
        let bmp_unknown_peers = listens.then(|| self.feeds.bmp_unknown_peers());
        FeedsStatus { feeds: self.feeds.status(), bmp_unknown_peers }
    }

    fn alto(&self) -> MutexGuard<'_, Option<alto::server::Server>> {
        self.alto.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn metrics(&self) -> Vec<MetricStatus> {
        let policy = self.policy.load();
        let metrics = policy.metrics.iter().enumerate();
        let metrics = metrics.map(|(bit, metric)| MetricStatus {
            bit,
            name: metric.name.clone(),
            cost: metric.expression().to_owned(),
        });
        metrics.collect()
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.tables.load().is_none() {
            problems.push("oracle: the topology files are still being read".to_owned());
        }
        problems.extend(driver::problems(&self.config.load(), &self.driver));
        problems.extend(self.feeds.problems());
        problems
    }
}

/// An oracle that has opened what needs privileges, and has no thread yet.
pub struct Opened {
    shared: Arc<Shared>,
    sockets: Sockets,
    worker: Worker,
    files: Files,
    alto: Option<(alto::server::Bound, alto::server::Snapshots)>,
}

impl Opened {
    /// Reads the configuration's own files and opens what the configuration names.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn open(config: Config) -> Result<Self, StartError> {
        let (policy, files) = read(&config)?;
        let sockets = Sockets::bind(&listen(&config), &[]).map_err(PartError::from)?;
        let driver = driver::open(&config)?;
        driver::guard(&driver, &sockets)?;
        let mut publisher = None;
        let mut alto = None;
        if let Some(config_of_alto) = &config.oracle.alto {
            let (publishes, snapshots) = alto::Publisher::new(config_of_alto.clone());
            publisher = Some(publishes);
            let settings = alto::server::Settings::new(config_of_alto, &config.state);
            alto = Some((alto::server::bind(settings)?, snapshots));
        }
        let exits = config.oracle.exits;
        let shared = Arc::new(Shared {
            tables: Arc::default(),
            settings: Arc::new(ArcSwap::from_pointee(settings(&config))),
            udp: Udp::default(),
            built: ArcSwapOption::empty(),
            policy: ArcSwap::from_pointee(policy.clone()),
            config: ArcSwap::from_pointee(config),
            dumps: ArcSwap::from_pointee(files.dumps.clone()),
            feeds: Register::new(),
            driver,
            alto: Mutex::default(),
            pulse: Pulse::default(),
        });
        let worker = Worker::new(shared.clone(), exits, policy, publisher);
        Ok(Self { shared, sockets, worker, files, alto })
    }

    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The system has no thread left, or a live feed cannot listen.
    pub async fn start(self) -> Result<Service, StartError> {
        let Self { shared, sockets, worker, files, alto } = self;
        let (asks, asked) = mpsc::channel(QUEUE);
        panics::thread("oracle-builder", move || worker.run(files, asked))
            .map_err(StartError::Thread)?;
        let workers = shared.answering(sockets)?;
        for address in workers.addresses() {
            info!(%address, threads = workers.threads(), "answering Proxidor");
        }
        shared.udp.take_over(Some(workers));
        if let Some((bound, snapshots)) = alto {
            let server = bound.start(snapshots, shared.pulse.beat("alto"))?;
            for address in server.addresses() {
                info!(%address, certificate = %server.fingerprint(), "serving ALTO");
            }
            *shared.alto() = Some(server);
        }
        let updates = Updates { asks: asks.clone(), shared: shared.clone() };
        let live = Live::start(live::config(&shared.config.load()), updates).await?;
        Ok(Service { shared, asks, live, reloading: Arc::default() })
    }
}

/// A running oracle; clones are handles on the same one.
#[derive(Clone, Debug)]
pub struct Service {
    shared: Arc<Shared>,
    asks: mpsc::Sender<Ask>,
    live: Live,
    reloading: Arc<tokio::sync::Mutex<()>>,
}

impl Service {
    /// Asks the builder; `None` when it has been stopped.
    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(ask(answer)).await.ok()?;
        answered.await.ok()
    }

    /// The handle through which another job reports what it knows of the network.
    pub fn updates(&self) -> Updates {
        Updates { asks: self.asks.clone(), shared: self.shared.clone() }
    }

    /// Does the steps of a reload that others may notice; when it fails, some of them may be done.
    async fn begin(&self, prepared: &mut Prepared, in_force: &Config) -> Result<(), PartError> {
        let (new, old) = (listen(&prepared.config), listen(in_force));
        if new != old {
            let sockets = Sockets::bind(&new, &old.addresses)?;
            driver::guard(&self.shared.driver, &sockets)?;
            prepared.workers = Some(self.shared.answering(sockets)?);
        }
        driver::configure(&self.shared.driver, &prepared.config)?;
        self.live.reload(live::config(&prepared.config)).await
    }

    /// Reads the files again, on request of an operator.
    async fn reload(&self) -> Result<(), job::Error> {
        let config = Config::clone(&self.shared.config.load());
        let mut prepared = self.prepare(config).await?;
        match self.commit(&mut prepared).await {
            Ok(()) => {
                self.finish(prepared).await;
                Ok(())
            }
            Err(error) => {
                self.roll_back(prepared).await;
                Err(error)
            }
        }
    }
}

impl job::Service for Service {
    type Config = Config;
    type Request = Request;
    type Prepared = Prepared;

    fn pulse(&self) -> &Pulse {
        &self.shared.pulse
    }

    fn problems(&self) -> Vec<String> {
        self.shared.problems()
    }

    fn status(&self) -> Value {
        serde_json::to_value(self.shared.status()).unwrap_or_default()
    }

    fn render(&self) -> String {
        status::render_status(&self.shared.status())
    }

    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        let figures = self.shared.alto().as_ref().map(alto::server::Server::figures);
        collect::collect(&self.shared.status(), figures.as_ref(), metrics)
    }

    async fn control(&self, request: Request) -> Result<Value, job::Error> {
        Ok(match request {
            // What was published does not wait for the builder.
            Request::Feeds => serde_json::to_value(self.shared.feeds()).unwrap_or_default(),
            Request::Threads => serde_json::to_value(self.shared.udp.threads()).unwrap_or_default(),
            Request::Metrics => serde_json::to_value(self.shared.metrics()).unwrap_or_default(),
            Request::Reload => {
                self.reload().await.map_err(ControlError::Reload)?;
                Value::Bool(true)
            }
            request => self
                .ask(|answer| Ask::Control(request, answer))
                .await
                .unwrap_or(Err(ControlError::Stopped))?,
        })
    }

    /// Reads the files.
    async fn prepare(&self, config: Config) -> Result<Prepared, job::Error> {
        let alone = self.reloading.clone().lock_owned().await;
        let in_force = self.shared.config.load_full();
        if config.oracle.interfaces != in_force.oracle.interfaces {
            return Err(ReloadError::Restart("interfaces").into());
        }
        if config.oracle.mode != in_force.oracle.mode {
            return Err(ReloadError::Restart("mode").into());
        }
        if serving(&config) != serving(&in_force) {
            return Err(ReloadError::Restart("alto").into());
        }
        let dumps = self.shared.dumps.load_full();
        let renewal = self.shared.alto().as_ref().map(alto::server::Server::renewal);
        let read = panics::spawn_blocking(move || Prepared::read(config, &dumps, renewal, alone));
        Ok(read.await.unwrap_or(Err(ReloadError::Stopped))?)
    }

    /// Opens sockets, configures the driver, starts feeds.
    async fn commit(&self, prepared: &mut Prepared) -> Result<(), job::Error> {
        prepared.begun = true;
        let in_force = self.shared.config.load_full();
        self.begin(prepared, &in_force).await.map_err(ReloadError::Part)?;
        if self.asks.is_closed() { Err(ReloadError::Stopped.into()) } else { Ok(()) }
    }

    /// The builder makes tables of it; returns when they are in force.
    async fn finish(&self, prepared: Prepared) {
        self.ask(|done| Ask::PutInForce(Box::new(prepared), done)).await;
    }

    async fn roll_back(&self, prepared: Prepared) {
        if !prepared.begun {
            return;
        }
        if let Some(workers) = prepared.workers {
            let shared = self.shared.clone();
            let _ = panics::spawn_blocking(move || shared.udp.discard(workers)).await;
        }
        let in_force = self.shared.config.load_full();
        if let Err(error) = self.live.reload(live::config(&in_force)).await {
            warn!("cannot restore the live feeds after a failed reload: {error}");
        }
        if let Err(error) = driver::configure(&self.shared.driver, &in_force) {
            warn!("cannot restore the rate limit after a failed reload: {error}");
        }
    }

    /// What answers ends first: a client that gets no answer asks another oracle.
    async fn stop(&self) {
        let shared = self.shared.clone();
        let _ = panics::spawn_blocking(move || shared.udp.take_over(None)).await;
        self.ask(Ask::Stop).await;
        if let Ok(driver) = &self.shared.driver {
            // The builder, which is gone, gives it no more tables.
            driver.withdraw();
        }
        let alto = self.shared.alto().take();
        if let Some(alto) = alto {
            alto.stop().await;
        }
        self.live.stop().await;
    }
}

/// Reads the policy, and the configuration's own files.
fn read(config: &Config) -> Result<(Policy, Files), PartError> {
    Ok((policy::policy(&config.oracle)?, Files::read(&config.oracle.topology)?))
}

/// Where Proxidor is answered, and by how many threads.
fn listen(config: &Config) -> udp::Listen {
    let OracleConfig { listen, threads, .. } = &config.oracle;
    udp::Listen { addresses: listen.clone(), threads: *threads }
}

/// Where and how ALTO is served, as far as that cannot change while it runs.
fn serving(config: &Config) -> Option<AltoConfig> {
    config.oracle.alto.as_ref().map(|alto| AltoConfig {
        listen: alto.listen.clone(),
        certificate: alto.certificate.clone(),
        key: alto.key.clone(),
        client_ca: alto.client_ca.clone(),
        users: alto.users.clone(),
        host: alto.host.clone(),
        limit: alto.limit.clone(),
        ..AltoConfig::default()
    })
}

/// How Proxidor is answered.
fn settings(config: &Config) -> proxidor::Settings {
    let OracleConfig { ttl, sources, authentication, .. } = &config.oracle;
    proxidor::Settings {
        ttl: u16::try_from(ttl.as_secs()).unwrap_or(u16::MAX),
        sources: sources.clone(),
        authentication: authentication.as_ref().map(|authentication| proxidor::Authentication {
            key: authentication.key.clone(),
            required: authentication.required,
        }),
    }
}

impl Prepared {
    /// Reads what has changed.
    fn read(
        config: Config,
        in_force: &[Dump],
        renewal: Option<alto::server::Renewal>,
        alone: OwnedMutexGuard<()>,
    ) -> Result<Self, ReloadError> {
        let (policy, files) = read(&config)?;
        let mut read = Vec::new();
        for dump in files.dumps.iter().filter(|dump| !in_force.contains(dump)) {
            let mut changes = Vec::new();
            dump.read(&mut |change| changes.push(change)).map_err(PartError::Load)?;
            read.push((dump.clone(), changes));
        }
        let renewed = renewal.map(alto::server::Renewal::read).transpose()?;
        Ok(Self {
            config,
            policy,
            files,
            read,
            workers: None,
            renewed,
            begun: false,
            _alone: alone,
        })
    }
}
