//! The running station: schedules and runs tests, agrees with others, keeps what comes of it.
//!
//! ```text
//!   timetable ──┐                       ┌──> peers: agree with the other end
//!   control  ───┼──> run: permission ───┼──> test ──> record ──> archive
//!   HTTP     ───┘    and own lease      └──> end what was agreed
//!   other stations ──> host: admission ──> actions: reflect, serve
//! ```
//!
//! [`Service`] is a handle. Everything behind it runs on a runtime of its own, apart from the daemon's one
//! thread, so that a test that is heavy never keeps an operator waiting.
//!
//! The start has two steps, because rights belong to threads and are given up in between:
//! [`Opened::open`] opens what needs a right and starts no thread, [`Opened::start`] does the rest.

mod actions;
mod clocks;
mod collect;
mod delays;
mod driver;
mod error;
mod lease;
mod links;
mod peers;
mod reports;
mod run;
mod shared;
mod spec;
mod timetable;

pub use error::{ControlError, ReloadError, RequestError, ShowError, StartError};

use crate::{
    archive::Archive,
    clock::Clock,
    config::Config,
    control::{Order, Request},
    delay,
    show::Ask,
    station::{Admission, Host, Tls},
    status,
};
use actions::Commitments;
use config::token::{Token, TokenError};
use datapath::clock::unix_ns;
use driver::Driver;
use job::Pulse;
use reports::Reports;
use serde_json::Value;
use shared::Shared;
use std::{
    fmt,
    net::{IpAddr, SocketAddr, TcpListener},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{runtime::Runtime, sync::mpsc::Receiver};
use topo::MeasuredLink;
use tracing::info;

/// Threads that the tests run on.
const THREADS: usize = 2;
/// The archive's folder in the state directory.
pub const ARCHIVE: &str = "probe";

/// A station that holds what needs a right, and has no thread yet.
#[derive(Debug)]
pub struct Opened {
    config: Config,
    tls: Option<Tls>,
    listener: Option<TcpListener>,
    delays: Option<delay::Opened>,
    driver: Option<Arc<Driver>>,
    token: Option<Token>,
}

impl Opened {
    /// Reads keys and certificates and opens what the configuration names.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn open(config: Config) -> Result<Self, StartError> {
        let tls = read_tls(&config)?;
        let token = read_token(&config)?;
        let listener = match config.own().and_then(|own| own.control()) {
            Some(address) if tls.is_some() => {
                let listen = || {
                    let listener = TcpListener::bind(address)?;
                    listener.set_nonblocking(true)?;
                    Ok(listener)
                };
                Some(listen().map_err(|source| StartError::Listen { address, source })?)
            }
            _ => None,
        };
        let driver = driver::open(&config)?;
        let delays = config.own().map(|own| {
            // Of a station with one address packets come from that one.
            let unspecified = IpAddr::from(std::net::Ipv6Addr::UNSPECIFIED);
            let address = match own.addresses.as_slice() {
                [address] => *address,
                _ => unspecified,
            };
            let port = config.probe.reflector.port;
            delay::Opened::open(&delay::Config {
                sender: SocketAddr::new(address, 0),
                reflector: tls.is_some().then_some(SocketAddr::new(address, port)),
                driver: driver.as_ref().map(|driver| driver.program()),
                gather: config.probe.gather.unwrap_or(delay::GATHER),
                ..delay::Config::default()
            })
        });
        let delays = delays.transpose()?;
        Ok(Self { config, tls, listener, delays, driver, token })
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(self) -> Result<Service, StartError> {
        let Self { config, tls, listener, delays, driver, token } = self;
        let clock = Arc::new(Clock::start(&config.probe.clock)?);
        let archive = Archive::open(&config.state.join(ARCHIVE), &config.probe.archive)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("probe")
            .on_thread_start(panics::adopt())
            .enable_all()
            .build()
            .map_err(StartError::Runtime)?;
        let connections = config.probe.limit.connections;
        let config = Arc::new(config);
        let reports = Arc::<Reports>::default();
        let pulse = Pulse::default();
        let start = |opened: delay::Opened| {
            let (clock, reports) = (clock.clone(), reports.clone());
            opened
                .watch(pulse.beat("delay"))
                .start(move |at_ns| clock.error_of(at_ns), move |id, news| reports.report(id, news))
        };
        let delays = delays.map(start).transpose()?.map(Arc::new);
        let counters = Arc::<crate::tools::Counters>::default();
        let commitments = Commitments::new(config.clone(), delays.clone(), counters.clone());
        let host = Arc::new(Host::new(Admission::new(config.clone()), tls, commitments));
        let kept = (archive, counters);
        let shared = Shared::new(config, host, kept, clock, (delays, reports), driver.clone());
        let shared = Arc::new(shared);
        shared.set_token(token);
        {
            let _entered = runtime.enter();
            if let Some(listener) = listener {
                let listener =
                    tokio::net::TcpListener::from_std(listener).map_err(StartError::Runtime)?;
                if let Ok(address) = listener.local_addr() {
                    info!(%address, station = shared.config().name(), "takes other stations");
                }
                runtime.spawn(shared.host.clone().serve(listener, connections));
            }
            runtime.spawn(shared.host.clone().watch());
            if let Some(driver) = &driver {
                runtime.spawn(driver.clone().watch());
            }
            runtime.spawn(timetable::run(shared.clone(), pulse.beat("timetable")));
            runtime.spawn(clocks::run(shared.clone(), pulse.beat("clocks")));
            shared.peers.configure(&shared.config(), shared.host.tls().as_ref());
            shared.continuous.configure(&shared, &shared.config());
        }
        Ok(Service { shared, running: Arc::new(Mutex::new(Some(runtime))), pulse })
    }
}

/// A configuration that was found good and whose files were read, and that is not in force yet.
#[derive(Debug)]
pub struct Prepared {
    config: Config,
    tls: Option<Tls>,
    token: Option<Token>,
}

/// A running station; clones are handles on the same one.
#[derive(Clone, Debug)]
pub struct Service {
    shared: Arc<Shared>,
    /// What its tasks run on, until it is stopped.
    running: Arc<Mutex<Option<Runtime>>>,
    pulse: Pulse,
}

impl Service {
    /// What was measured.
    pub fn archive(&self) -> &Archive {
        &self.shared.archive
    }

    /// What is measured of the links in `probe.measured`, as it is measured; only the last
    /// caller receives it.
    pub fn links(&self) -> Receiver<MeasuredLink> {
        self.shared.links.follow()
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        self.shared.config()
    }

    async fn order(&self, order: Order) -> Result<Value, ControlError> {
        let shared = self.shared.clone();
        let handle = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let running = running.as_ref().ok_or(ControlError::Stopped)?;
            running.spawn(async move { run::order(&shared, order).await })
        };
        let record = handle.await.map_err(|_| ControlError::Stopped)??;
        Ok(serde_json::to_value(record).unwrap_or_default())
    }

    /// Runs a test for who asks by HTTP and bears this token; answered with the record.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn request(&self, token: Option<&str>, body: &[u8]) -> Result<Value, RequestError> {
        let config = self.shared.config();
        let refuse = |error: RequestError| {
            self.shared.counters.refuse_request(error.word());
            Err(error)
        };
        let (Some(request), Some(own)) = (&config.probe.request, self.shared.token()) else {
            return refuse(RequestError::Off);
        };
        if !token.is_some_and(|shown| own.is(shown)) {
            return refuse(RequestError::Token);
        }
        let order = match Order::read(body) {
            Ok(order) => order,
            Err(error) => return refuse(RequestError::Malformed(error)),
        };
        if !request.may.is_empty() && !request.may.contains(&order.what) {
            return refuse(RequestError::NotPermitted(order.what));
        }
        match self.order(order).await {
            Ok(record) => Ok(record),
            Err(error) => refuse(error.into()),
        }
    }

    /// What was measured, as JSON for who asks by HTTP: an [`Answer`](crate::show::Answer).
    ///
    /// # Errors
    /// See [`ShowError`].
    pub async fn show(&self, ask: Ask) -> Result<String, ShowError> {
        let shared = self.shared.clone();
        let answer = move || {
            let answer = ask.answer(&shared.archive, unix_ns().cast_signed())?;
            Ok(serde_json::to_string(&answer).unwrap_or_default())
        };
        panics::spawn_blocking(answer).await.map_err(|_| ShowError::Stopped)?
    }
}

impl job::Service for Service {
    type Config = Config;
    type Request = Request;
    type Prepared = Prepared;

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn problems(&self) -> Vec<String> {
        self.shared.problems()
    }

    fn status(&self) -> Value {
        serde_json::to_value(self.shared.status()).unwrap_or_default()
    }

    fn render(&self) -> String {
        status::render(&self.shared.status())
    }

    fn collect(&self, metrics: &mut job::Metrics<'_>) -> fmt::Result {
        collect::collect(&self.shared, metrics)
    }

    async fn control(&self, request: Request) -> Result<Value, job::Error> {
        let Request::Run(order) = request;
        Ok(self.order(order).await?)
    }

    /// Reads keys and certificates: nothing else can fail.
    async fn prepare(&self, config: Config) -> Result<Prepared, job::Error> {
        let old = self.shared.config();
        let own = |config: &Config| config.own().map(|own| (own.control(), own.addresses.clone()));
        for (differs, key) in [
            (config.name() != old.name(), "name"),
            (own(&config) != own(&old), "station"),
            (config.probe.security.is_some() != old.probe.security.is_some(), "security"),
            (config.probe.reflector != old.probe.reflector, "reflector"),
            (config.probe.gather != old.probe.gather, "gather"),
            (config.probe.archive != old.probe.archive, "archive"),
            (config.probe.clock != old.probe.clock, "clock"),
            (config.probe.limit.connections != old.probe.limit.connections, "limit.connections"),
        ] {
            if differs {
                return Err(ReloadError::Restart(key).into());
            }
        }
        let tls = read_tls(&config).map_err(ReloadError::Security)?;
        let token = read_token(&config).map_err(ReloadError::Token)?;
        Ok(Prepared { config, tls, token })
    }

    /// Counters, the archive, connections and what was agreed stay, where the stations that they belong to
    /// do.
    async fn finish(&self, prepared: Prepared) {
        let Prepared { config, tls, token } = prepared;
        self.shared.set_token(token);
        let config = Arc::new(config);
        self.shared.host.set_tls(tls.clone());
        self.shared.host.admission().configure(config.clone());
        self.shared.host.actions().configure(config.clone());
        self.shared.set_config(config.clone());
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            let _entered = running.enter();
            self.shared.peers.configure(&config, tls.as_ref());
            self.shared.continuous.configure(&self.shared, &config);
        }
        self.shared.changed.notify_waiters();
    }

    /// Ends everything; what was measured is in the archive when this returns.
    async fn stop(&self) {
        self.shared.peers.clear();
        if let Some(delays) = &self.shared.delays {
            delays.stop();
        }
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let shared = self.shared.clone();
        let _ = panics::spawn_blocking(move || {
            if let Some(running) = running {
                running.shutdown_timeout(std::time::Duration::from_secs(1));
            }
            if let Some(driver) = &shared.driver {
                driver.close();
            }
            shared.archive.flush();
        })
        .await;
    }
}

fn read_token(config: &Config) -> Result<Option<Token>, TokenError> {
    config.probe.request.as_ref().map(|request| Token::read(&request.token)).transpose()
}

fn read_tls(config: &Config) -> Result<Option<Tls>, psock::SecurityError> {
    config.probe.security.as_ref().map(Tls::read).transpose()
}
