//! How good this station's clock is, at any moment, and those of the NTP servers that are watched.
//!
//! [`Clock`] has a thread that reads what is known of the clock every second and keeps it in a [`Watch`], from
//! where [`Clock::error_of`] takes it without a lock: it is asked for every timestamp, after that was taken.
//! Between two readings the error grows, and a step of the clock, whoever made it, is added to the error at
//! once. [`chrony`] is believed where it runs and has set the clock, else the [`kernel`]; which has the smaller
//! error does not matter, see docs/decisions/155-whose-error-is-believed.md.
//!
//! Another thread asks NTP servers ([`ntp`]). `alarm` says why a bound cannot be promised.

pub mod chrony;
pub mod kernel;
pub mod ntp;

mod alarm;
mod history;
mod watch;

pub use watch::{Clocks, Watch};

use crate::{
    config::ClockConfig,
    interval::{MaximumError, RATE_PPM},
    record,
};
use arc_swap::ArcSwap;
use datapath::clock::unix_ns;
use history::History;
use ntp::Server;
use std::{
    io,
    net::IpAddr,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::Duration,
};

/// How often the clock's state is read.
const PERIOD: Duration = Duration::from_secs(1);

/// The watch over clocks; ends when it is dropped.
#[derive(Debug)]
pub struct Clock {
    shared: Arc<Shared>,
    /// Held so that they end with the watch.
    _threads: Vec<Ticker>,
}

#[derive(Debug)]
struct Shared {
    limit: Option<Duration>,
    watch: ArcSwap<Watch>,
    state: ArcSwap<record::Clock>,
    servers: ArcSwap<Vec<(IpAddr, Server)>>,
}

/// What is read of this station's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its state.
    pub clock: record::Clock,
    /// Its maximum error without what is yet to be corrected of it, where that is apart.
    pub reported_ns: Option<u64>,
    /// How fast its maximum error grows from then on, in parts per million.
    pub rate_ppm: u64,
}

/// The clocks cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("a thread that watches clocks cannot be started: {0}")]
pub struct StartError(#[from] io::Error);

impl Clock {
    /// Reads the clock's state, and goes on doing so; asks NTP servers in the network namespace of the
    /// calling thread.
    ///
    /// # Errors
    ///
    /// There can be no thread.
    pub fn start(config: &ClockConfig) -> Result<Self, StartError> {
        let servers: Vec<_> =
            config.servers.iter().map(|address| (*address, Server::default())).collect();
        let shared = Arc::new(Shared {
            limit: config.limit,
            servers: ArcSwap::from_pointee(servers.clone()),
            ..Shared::new(MaximumError::UNKNOWN, record::Clock::default())
        });
        let mut history = History::default();
        shared.read(&mut history);
        let watched = Arc::clone(&shared);
        let mut threads =
            vec![Ticker::start("probe-clock", PERIOD, move || watched.read(&mut history))?];
        if !servers.is_empty() {
            let (watched, mut servers) = (Arc::clone(&shared), servers);
            threads.push(Ticker::start("probe-ntp", config.interval.max(PERIOD), move || {
                ntp::ask_all(&mut servers);
                watched.servers.store(Arc::new(servers.clone()));
            })?);
        }
        Ok(Self { shared, _threads: threads })
    }

    /// A clock of which this is known, now: for tests, and for stations whose clocks somebody else watches.
    pub fn fixed(error: MaximumError) -> Self {
        let state = record::Clock {
            source: "configuration".into(),
            maximum_error_ns: error.nanoseconds,
            ..record::Clock::default()
        };
        Self { shared: Arc::new(Shared::new(error, state)), _threads: Vec::new() }
    }

    /// The most that this station's clock is off at this moment.
    pub fn now_error(&self) -> MaximumError {
        self.error_of(unix_ns())
    }

    /// The most that this station's clock was off when it gave this timestamp, nanoseconds since 1970, and
    /// since; of a time to come, from now until then.
    pub fn error_of(&self, at_ns: u64) -> MaximumError {
        self.shared.error_of(i64::try_from(at_ns).unwrap_or(i64::MAX))
    }

    /// This station's clock, with its maximum error at this moment.
    pub fn state(&self) -> record::Clock {
        let state = self.shared.state.load();
        record::Clock {
            maximum_error_ns: self.now_error().nanoseconds,
            ..record::Clock::clone(&state)
        }
    }

    /// The clocks of the NTP servers that are watched.
    pub fn servers(&self) -> Vec<(IpAddr, record::Clock)> {
        let servers = self.shared.servers.load();
        servers.iter().map(|(address, server)| (*address, server.state())).collect()
    }

    /// Asks an NTP server once; waits up to a second for its answer.
    pub fn ask(address: IpAddr) -> record::Clock {
        let mut servers = [(address, Server::default())];
        ntp::ask_all(&mut servers);
        let [(_, server)] = servers;
        server.state()
    }

    /// Why what is configured cannot be promised, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        let servers = self.shared.servers.load();
        let answers =
            servers.iter().filter_map(|(address, server)| Some((*address, server.last()?)));
        let state = self.shared.state.load();
        alarm::problems(self.shared.limit, &state, self.now_error(), answers)
    }
}

impl Shared {
    fn new(error: MaximumError, state: record::Clock) -> Self {
        let mut watch = Watch::default();
        let reported_ns = error.nanoseconds;
        let clock = record::Clock { maximum_error_ns: reported_ns, ..state.clone() };
        watch.take(&Reading { clock, reported_ns, rate_ppm: RATE_PPM }, Clocks::read());
        Self {
            limit: None,
            watch: ArcSwap::from_pointee(watch),
            state: ArcSwap::from_pointee(state),
            servers: ArcSwap::default(),
        }
    }

    fn read(&self, history: &mut History) {
        // Before what is asked, so that the time that the answer takes counts.
        let clocks = Clocks::read();
        let mut reading = believed();
        history.take(clocks.boot_ns(), reading.reported_ns, &mut reading.clock);
        let mut watch = Watch::clone(&self.watch.load());
        watch.take(&reading, clocks);
        self.watch.store(Arc::new(watch));
        self.state.store(Arc::new(reading.clock));
    }

    fn error_of(&self, at_ns: i64) -> MaximumError {
        self.watch.load().error_of(at_ns, &Clocks::read())
    }
}

/// chrony, where it has set the clock, else the kernel.
fn believed() -> Reading {
    match chrony::read(unix_ns().cast_signed()) {
        Ok(reading) if reading.clock.maximum_error_ns.is_some() => return reading,
        Ok(_) => {}
        Err(error) if error.is_absent() => {}
        Err(error) => tracing::debug!("{error}"),
    }
    kernel::read().unwrap_or_else(|error| {
        tracing::debug!("the kernel reports nothing about its clock: {error}");
        let clock = record::Clock { source: "kernel".into(), ..record::Clock::default() };
        Reading { clock, reported_ns: None, rate_ppm: RATE_PPM }
    })
}

/// A thread that does something again and again until it is dropped.
#[derive(Debug)]
struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// The first time at once.
    fn start(
        name: &str,
        period: Duration,
        mut act: impl FnMut() + Send + 'static,
    ) -> Result<Self, StartError> {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = panics::thread(name, move || {
            act();
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                panics::point("clock");
                act();
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been written already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reported_clock_is_kept() {
        let shared = Shared::new(MaximumError::known(1), record::Clock::default());
        let mut history = History::default();
        shared.read(&mut history);
        shared.read(&mut history);
        let (state, now) = (shared.state.load(), shared.error_of(unix_ns().cast_signed()));
        assert!(["kernel", "chrony"].contains(&state.source.as_str()), "{state:?}");
        assert_eq!(state.maximum_error_ns.is_some(), now.nanoseconds.is_some());
        assert!(now.nanoseconds >= state.maximum_error_ns, "it grows: {state:?}, {now:?}");
    }

    #[test]
    fn a_fixed_error_grows_from_what_it_was() {
        let clock = Clock::fixed(MaximumError::known(1000));
        let (first, second) = (clock.now_error().nanoseconds, clock.now_error().nanoseconds);
        assert!(first >= Some(1000) && second.is_some(), "{first:?} {second:?}");
        assert_eq!(Clock::fixed(MaximumError::UNKNOWN).now_error().nanoseconds, None);
        assert!(clock.servers().is_empty() && clock.problems().is_empty());
    }

    #[test]
    fn a_watch_can_be_ended() {
        let config =
            ClockConfig { servers: vec!["127.0.0.1".parse().unwrap()], ..Default::default() };
        let clock = Clock::start(&config).unwrap();
        assert_eq!(clock.servers().len(), 1);
        drop(clock);
    }
}
