//! What all parts of the running station share.

use super::{
    actions::Commitments,
    driver::Driver,
    links::Links,
    peers::{self, Peers},
    reports::{Continuous, Reports},
};
use crate::{
    archive::Archive,
    clock::Clock,
    config::{Config, What},
    delay::Delays,
    record::Record,
    station::Host,
    status::{DelayStatus, PeerStatus, RunStatus, Running, StationStatus, Status},
    tools::{self, Context, Permission},
};
use config::token::Token;
use datapath::stamp::StampProgram;
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::{Duration, Instant},
};
use tokio::sync::{Notify, Semaphore};

/// How long a station may be out of reach before that is a problem of the node.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The outcome of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// Something was measured.
    pub(crate) done: u64,
    /// Nothing could be measured; the record says why.
    pub(crate) failed: u64,
    /// There was no room for it at its time.
    pub(crate) skipped: u64,
}

/// What is counted of tests.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    runs: Mutex<BTreeMap<(String, What), Runs>>,
    /// Requests by HTTP that were refused, by reason.
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    fn count(&self, test: &str, what: What, count: impl Fn(&mut Runs)) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        count(runs.entry((test.to_owned(), what)).or_default());
    }

    pub(super) fn done(&self, test: &str, what: What) {
        self.count(test, what, |runs| runs.done += 1);
    }

    pub(super) fn failed(&self, test: &str, what: What) {
        self.count(test, what, |runs| runs.failed += 1);
    }

    pub(super) fn skipped(&self, test: &str, what: What) {
        self.count(test, what, |runs| runs.skipped += 1);
    }

    pub(super) fn refuse_request(&self, word: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(word).or_default() += 1;
    }

    fn refused_requests(&self) -> BTreeMap<String, u64> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
    }

    pub(super) fn runs(&self) -> BTreeMap<(String, What), Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Addresses that accept test packets, each as often as it does.
#[derive(Debug, Default)]
struct Accepted(Mutex<HashMap<IpAddr, usize>>);

impl Accepted {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where tests of this station may send to: addresses that accept it, and those on the allow list.
#[derive(Debug)]
struct Allowed {
    accepted: Arc<Accepted>,
    config: Arc<RwLock<Arc<Config>>>,
}

impl Permission for Allowed {
    fn allows(&self, to: IpAddr) -> bool {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        config.probe.allows(to)
            || config.probe.clock.servers.contains(&to)
            || self.accepted.lock().contains_key(&to)
    }

    fn lists(&self, to: IpAddr) -> bool {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        config.probe.allows(to)
    }
}

/// An address accepts test packets until this is dropped.
#[derive(Debug)]
pub(super) struct AcceptedAddress {
    accepted: Arc<Accepted>,
    address: IpAddr,
}

impl Drop for AcceptedAddress {
    fn drop(&mut self) {
        let mut accepted = self.accepted.lock();
        if let Some(count) = accepted.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                accepted.remove(&self.address);
            }
        }
    }
}

/// What all parts share.
#[derive(Debug)]
pub(crate) struct Shared {
    config: Arc<RwLock<Arc<Config>>>,
    pub(super) host: Arc<Host<Commitments>>,
    pub(super) peers: Peers,
    pub(super) archive: Archive,
    pub(super) clock: Arc<Clock>,
    /// Where delay sessions run; nowhere without an entry for this station.
    pub(super) delays: Option<Arc<Delays>>,
    pub(super) reports: Arc<Reports>,
    /// The reflector in the driver, if there is one.
    pub(super) driver: Option<Arc<Driver>>,
    pub(super) continuous: Continuous,
    pub(super) counters: Counters,
    pub(super) links: Links,
    pub(super) context: Context,
    accepted: Arc<Accepted>,
    /// Woken when the configuration has changed.
    pub(super) changed: Notify,
    /// Room for tests at once; made again with the limit.
    room: Mutex<(usize, Arc<Semaphore>)>,
    running: Mutex<BTreeMap<u64, Running>>,
    token: RwLock<Option<Token>>,
}

impl Shared {
    pub(super) fn new(
        config: Arc<Config>,
        host: Arc<Host<Commitments>>,
        (archive, counters): (Archive, Arc<tools::Counters>),
        clock: Arc<Clock>,
        (delays, reports): (Option<Arc<Delays>>, Arc<Reports>),
        driver: Option<Arc<Driver>>,
    ) -> Self {
        let tests = config.probe.limit.tests;
        let config = Arc::new(RwLock::new(config));
        let accepted = Arc::<Accepted>::default();
        let allowed = Allowed { accepted: accepted.clone(), config: config.clone() };
        let mut context = Context::new(Arc::new(allowed));
        context.counters = counters;
        Self {
            config,
            host,
            peers: Peers::default(),
            archive,
            clock,
            delays,
            reports,
            driver,
            continuous: Continuous::default(),
            counters: Counters::default(),
            links: Links::default(),
            context,
            accepted,
            changed: Notify::new(),
            room: Mutex::new((tests, Arc::new(Semaphore::new(tests)))),
            running: Mutex::default(),
            token: RwLock::default(),
        }
    }

    /// The configuration in force.
    pub(super) fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_config(&self, config: Arc<Config>) {
        let tests = config.probe.limit.tests;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        if room.0 != tests {
            *room = (tests, Arc::new(Semaphore::new(tests)));
        }
    }

    /// Takes what was measured.
    pub(super) fn keep(&self, record: &Record) {
        self.links.report(&self.config(), record);
        self.archive.put(record);
    }

    /// The token of requests by HTTP.
    pub(super) fn token(&self) -> Option<Token> {
        self.token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_token(&self, token: Option<Token>) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// Room for one more test.
    pub(super) fn room(&self) -> Arc<Semaphore> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// An address accepts test packets.
    pub(super) fn accepted(&self, address: IpAddr) -> AcceptedAddress {
        let address = address.to_canonical();
        *self.accepted.lock().entry(address).or_default() += 1;
        AcceptedAddress { accepted: self.accepted.clone(), address }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A test runs until what this gives is dropped.
    pub(super) fn runs(self: &Arc<Self>, running: Running) -> RunningGuard {
        let mut all = self.running();
        let number = all.last_key_value().map_or(0, |(number, _)| number + 1);
        all.insert(number, running);
        RunningGuard { shared: self.clone(), number }
    }

    pub(crate) fn status(&self) -> Status {
        let config = self.config();
        let admission = self.host.admission();
        let counts = admission.counts().clone();
        let leases =
            admission.reservations().entries().filter(|(_, entry)| entry.holder.is_some()).count();
        drop(admission);
        let peers = self.peers.states().into_iter().map(|(name, state)| PeerStatus {
            name,
            reached: state.reached.is_ok(),
            why: state.reached.err(),
            since_seconds: state.since.elapsed().as_secs_f64(),
            clock_error_ns: state.clock.maximum_error_ns,
        });
        let tests = self.counters.runs().into_iter().map(|((test, what), runs)| RunStatus {
            test,
            what,
            done: runs.done,
            failed: runs.failed,
            skipped: runs.skipped,
        });
        Status {
            problems: self.problems(),
            name: config.name().to_owned(),
            clock: self.clock.state(),
            clock_error_ns: self.clock.now_error().nanoseconds,
            clocks: self.clock.servers().into_iter().collect(),
            peers: peers.collect(),
            tests: tests.collect(),
            running: self.running().values().cloned().collect(),
            station: StationStatus {
                requests: counts.requests,
                leases,
                accepted: counts
                    .accepted
                    .iter()
                    .map(|(what, n)| (what.word().into(), *n))
                    .collect(),
                refused: counts.refused.iter().map(|(why, n)| (why.word().into(), *n)).collect(),
            },
            delays: self.delays.as_ref().map(|delays| DelayStatus::of(&delays.counters())),
            driver: self.driver.as_ref().and_then(|driver| ledger(&driver.program())),
            requests_refused: self.counters.refused_requests(),
            archive: self.archive.status(),
        }
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let reported = self.clock.problems().into_iter();
        let mut problems: Vec<String> =
            reported.map(|reported| format!("probe: {reported}")).collect();
        problems.extend(self.driver.iter().flat_map(|driver| driver.problems()));
        let config = self.config();
        let wanted = peers::wanted(&config);
        for (name, state) in self.peers.states() {
            // Whom somebody asked for once need not be there.
            if wanted.contains(name.as_str())
                && let Err(why) = state.reached
                && state.since.elapsed() > TIMEOUT
            {
                problems.push(format!("probe: station {name} is not reached: {why}"));
            }
        }
        problems
    }
}

/// What the driver has done with packets for the reflector.
fn ledger(driver: &StampProgram) -> Option<BTreeMap<String, u64>> {
    let ledger = driver.ledger().ok()?;
    let rows = [
        ("reflected", ledger.reflected),
        ("unknown-session", ledger.passed_sender),
        ("form", ledger.passed_form),
        ("too-short", ledger.too_short),
        ("bad-checksum", ledger.bad_checksum),
        ("corrupt", ledger.corrupt),
        ("over-rate", ledger.over_rate),
    ];
    Some(rows.into_iter().map(|(word, count)| (word.to_owned(), count)).collect())
}

/// Takes a test from the list of those that run.
#[derive(Debug)]
pub(super) struct RunningGuard {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.shared.running().remove(&self.number);
    }
}

/// How long ago that was, in nanoseconds.
pub(super) fn elapsed_ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
