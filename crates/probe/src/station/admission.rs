//! What a station answers, as a value: lines in, answers and actions out. No socket, no clock.

use super::{
    message::{Answer, ClockReport, DelayAsk, Reason, Request, Slot, ThroughputAsk, VERSION},
    permission::{self, Bucket, MINUTE, Refusal},
    reservations::{Accepted, Busy, Entry, Lease, Reservations},
};
use crate::{
    config::{Config, HOUR, LimitConfig, StationConfig},
    schedule::{
        Class,
        jobs::{self, Used},
    },
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

/// Says whether the other end of a connection has proven to be the station of this name.
pub type Proof = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The other end of one connection.
pub struct Guest {
    /// The connection's number, never used twice.
    connection: u64,
    /// From where it connects.
    address: IpAddr,
    proof: Proof,
    /// Who it is, since its first hello.
    name: Option<String>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connection, address, name, .. } = self;
        f.debug_struct("Guest")
            .field("connection", connection)
            .field("address", address)
            .field("name", name)
            .finish_non_exhaustive()
    }
}

impl Guest {
    /// Who it is, since its first hello.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// What is to be done before an answer is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reflect a session's packets until the lease ends; the answer needs a grant.
    Reflect {
        /// Until when.
        lease: Lease,
        /// The station that asks.
        peer: String,
        /// Which session.
        session: DelayAsk,
    },
    /// Be the other end of a throughput test; the answer needs a grant.
    Serve {
        /// Until when.
        lease: Lease,
        /// The station that asks.
        peer: String,
        /// Which test.
        test: ThroughputAsk,
    },
    /// Stop what was done for these.
    End(Vec<Lease>),
}

/// What a station has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that were answered or refused.
    pub requests: u64,
    /// Requests that were accepted, by what was asked.
    pub accepted: BTreeMap<Accepted, u64>,
    /// What was refused, by reason.
    pub refused: BTreeMap<Reason, u64>,
}

/// Admission control of a station.
pub struct Admission {
    config: Arc<Config>,
    reservations: Reservations,
    counts: Counts,
    buckets: HashMap<String, Bucket>,
    /// Seconds of throughput tests that are left to each station.
    tested: HashMap<String, Bucket>,
    connections: u64,
    clock: ClockReport,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("reservations", &self.reservations)
            .finish_non_exhaustive()
    }
}

/// The number of no connection: leases of this station itself.
const OWN: u64 = 0;

impl Admission {
    /// Admission control of the station that the configuration is for.
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            config,
            reservations: Reservations::default(),
            counts: Counts::default(),
            buckets: HashMap::new(),
            tested: HashMap::new(),
            connections: OWN,
            clock: ClockReport::default(),
        }
    }

    /// Another configuration from now on; what was accepted and counted stays.
    pub fn configure(&mut self, config: Arc<Config>) {
        for buckets in [&mut self.buckets, &mut self.tested] {
            buckets.retain(|name, _| config.probe.station(name).is_some());
        }
        self.config = config;
    }

    /// Advertises this state of the station's clock from now on.
    pub fn set_clock(&mut self, clock: ClockReport) {
        self.clock = clock;
    }

    /// What was accepted.
    pub fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// What was accepted, to plan.
    pub fn reservations_mut(&mut self) -> &mut Reservations {
        &mut self.reservations
    }

    /// What was counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether a station of the mesh connects from an address.
    pub fn expects(&self, address: IpAddr) -> bool {
        self.config.probe.stations.iter().any(|station| is_from(station, address))
    }

    /// A peer has connected.
    pub fn guest(&mut self, address: IpAddr, proof: Proof) -> Guest {
        self.connections += 1;
        Guest { connection: self.connections, address: address.to_canonical(), proof, name: None }
    }

    /// A peer has gone: what is to be stopped.
    pub fn gone(&mut self, guest: &Guest) -> Vec<Lease> {
        self.reservations.gone(guest.connection)
    }

    /// Whether a lease of somebody has not ended.
    pub fn holds(&self, guest: &Guest, lease: Lease) -> bool {
        self.reservations.get(lease, guest.connection).is_some()
    }

    /// What is to be stopped because its end has come.
    pub fn expire(&mut self, now_ns: u64) -> Vec<Lease> {
        self.reservations.expire(now_ns)
    }

    /// A lease for a test of this station itself.
    ///
    /// # Errors
    /// When another test has the time.
    pub fn own(&mut self, slot: Slot, until_ns: u64, now_ns: u64) -> Result<Lease, Busy> {
        self.reservations.give(
            Entry { holder: None, connection: OWN, what: Accepted::Slot, slot, until_ns },
            now_ns,
        )
    }

    /// Gives a lease of this station itself another end.
    pub fn prolong_own(&mut self, lease: Lease, until_ns: u64) {
        self.reservations.renew(lease, OWN, until_ns);
    }

    /// Ends a lease of this station itself.
    pub fn end_own(&mut self, lease: Lease) {
        self.reservations.end(lease, OWN);
    }

    /// Counts what was refused before it came here.
    pub fn refuse(&mut self, reason: Reason) {
        *self.counts.refused.entry(reason).or_default() += 1;
    }

    /// Takes a lease back because what it was for cannot be done.
    pub fn impossible(&mut self, guest: &Guest, lease: Lease, text: String) -> Answer {
        if let Some(entry) = self.reservations.get(lease, guest.connection) {
            let what = entry.what;
            self.reservations.end(lease, guest.connection);
            if let Some(count) = self.counts.accepted.get_mut(&what) {
                *count = count.saturating_sub(1);
            }
        }
        self.refused((Reason::Impossible, text), None)
    }

    /// Answers a line, which may end with its newline. What is to be done goes first; then the answer is
    /// given, completed where the action says so. The connection ends with a refusal that says so.
    pub fn answer(
        &mut self,
        guest: &mut Guest,
        line: &[u8],
        now_ns: u64,
    ) -> (Answer, Option<Action>) {
        self.counts.requests += 1;
        let request = match serde_json::from_slice(line) {
            Ok(request) => request,
            Err(error) => {
                let text = format!("this is not a request: {error}");
                return (self.refused((Reason::Malformed, text), None), None);
            }
        };
        match self.consider(guest, request, now_ns) {
            Ok(answer) => answer,
            Err(Against::Rule(refusal)) => (self.refused(refusal, None), None),
            Err(Against::Busy(Busy { until_ns })) => {
                let text = "it conflicts with another test".to_owned();
                let retry_ms = until_ns.saturating_sub(now_ns).div_ceil(1_000_000);
                (self.refused((Reason::Busy, text), Some(retry_ms)), None)
            }
        }
    }

    fn consider(
        &mut self,
        guest: &mut Guest,
        request: Request,
        now_ns: u64,
    ) -> Result<(Answer, Option<Action>), Against> {
        let config = self.config.clone();
        if guest.name.is_some() {
            self.admit(guest, &config, now_ns)?;
        }
        let limit = &config.probe.limit;
        match request {
            Request::Hello { version, name, to } => {
                Ok((self.hello(guest, &config, version, name, &to)?, None))
            }
            Request::Delay { session, slot } => {
                let station = known(guest, &config)?;
                permission::words(&slot)?;
                let has =
                    self.reservations.count(&station.name, |entry| entry.what == Accepted::Delay);
                permission::delay(station, limit, &session, has)?;
                let asked = (Accepted::Delay, session.duration_ms);
                let (lease, answer) = self.accept(guest, station, asked, slot, now_ns)?;
                let peer = station.name.clone();
                Ok((answer, Some(Action::Reflect { lease, peer, session })))
            }
            Request::Throughput { test, slot } => {
                let station = known(guest, &config)?;
                permission::words(&slot)?;
                permission::throughput(station, limit, &test)?;
                let duration = Duration::from_millis(test.duration_ms);
                self.spend(station, duration, limit, now_ns)?;
                let asked = (Accepted::Throughput, test.duration_ms);
                let accepted = self.accept(guest, station, asked, slot, now_ns);
                if accepted.is_err()
                    && let Some(bucket) = self.tested.get_mut(&station.name)
                {
                    bucket.put_back(duration.as_secs_f64());
                }
                let (lease, answer) = accepted?;
                let peer = station.name.clone();
                Ok((answer, Some(Action::Serve { lease, peer, test })))
            }
            Request::Slot { slot, duration_ms } => {
                let station = known(guest, &config)?;
                permission::words(&slot)?;
                let has =
                    self.reservations.count(&station.name, |entry| entry.what == Accepted::Slot);
                permission::slot(station, limit, duration_ms, has)?;
                let asked = (Accepted::Slot, duration_ms);
                let (_, answer) = self.accept(guest, station, asked, slot, now_ns)?;
                Ok((answer, None))
            }
            Request::Renew { lease, duration_ms } => {
                permission::renewal(known(guest, &config)?, duration_ms)?;
                let endless = |entry: &Entry| {
                    entry.what == Accepted::Delay && entry.slot.class == Class::Background
                };
                // What others wait for is not made longer.
                let entry = self.reservations.get(Lease(lease), guest.connection);
                if entry.is_some_and(|entry| !endless(entry)) {
                    let text = "only delay sessions in the background are renewed".to_owned();
                    return Err((Reason::NotPermitted, text).into());
                }
                let until_ns = until(now_ns, duration_ms);
                if !self.reservations.renew(Lease(lease), guest.connection, until_ns) {
                    return Err(no_lease(lease).into());
                }
                Ok((Answer::Accepted { lease, duration_ms, grant: None }, None))
            }
            Request::End { lease } => {
                known(guest, &config)?;
                if !self.reservations.end(Lease(lease), guest.connection) {
                    return Err(no_lease(lease).into());
                }
                Ok((Answer::Done {}, Some(Action::End(vec![Lease(lease)]))))
            }
        }
    }

    /// Takes a request out of the bucket of the station that asks.
    fn admit(&mut self, guest: &Guest, config: &Config, now_ns: u64) -> Result<(), Refusal> {
        let name = &known(guest, config)?.name;
        let most = config.probe.limit.requests;
        let bucket = self.buckets.entry(name.clone());
        let full = f64::from(most);
        if bucket.or_insert_with(|| Bucket::new(full, MINUTE, now_ns)).take(1.0, full, now_ns) {
            return Ok(());
        }
        Err((Reason::Requests, format!("more than {most} requests a minute")))
    }

    /// Takes the time of a throughput test from what its station has in an hour.
    fn spend(
        &mut self,
        station: &StationConfig,
        duration: Duration,
        limit: &LimitConfig,
        now_ns: u64,
    ) -> Result<(), Refusal> {
        let (name, full) = (&station.name, limit.throughput.as_secs_f64());
        let bucket = self.tested.entry(name.clone());
        let bucket = bucket.or_insert_with(|| Bucket::new(full, HOUR, now_ns));
        if bucket.take(duration.as_secs_f64(), full, now_ns) {
            return Ok(());
        }
        let most = humantime::format_duration(limit.throughput);
        let text =
            format!("throughput tests of {name} would take more than {most} in an hour on average");
        Err((Reason::TooMany, text))
    }

    fn hello(
        &mut self,
        guest: &mut Guest,
        config: &Config,
        version: u32,
        name: String,
        to: &str,
    ) -> Result<Answer, Refusal> {
        if version != VERSION {
            let text = format!("version {version}; this station speaks version {VERSION}");
            return Err((Reason::Version, text));
        }
        if to != config.name() {
            return Err((Reason::UnknownPeer, format!("this is {}, not {to}", config.name())));
        }
        let station = config.probe.station(&name).filter(|_| name != config.name());
        let Some(station) = station else {
            return Err((
                Reason::UnknownPeer,
                format!("{name} is not another station of this mesh"),
            ));
        };
        if guest.name.as_ref().is_some_and(|before| *before != name) {
            return Err((Reason::UnknownPeer, "another name than before".to_owned()));
        }
        if !(guest.proof)(&name) {
            return Err((Reason::UnknownPeer, format!("the certificate is not for {name}")));
        }
        if !is_from(station, guest.address) {
            let text = format!("{name} does not connect from {}", guest.address);
            return Err((Reason::UnknownPeer, text));
        }
        guest.name = Some(name);
        Ok(Answer::Welcome {
            version: VERSION,
            name: config.name().to_owned(),
            offers: station.may.clone(),
            clock: self.clock,
        })
    }

    fn accept(
        &mut self,
        guest: &Guest,
        station: &StationConfig,
        (what, duration_ms): (Accepted, u64),
        mut slot: Slot,
        now_ns: u64,
    ) -> Result<(Lease, Answer), Against> {
        // Whatever the asking station says, both stations have a part in it, and what is not between them
        // has none.
        let between = jobs::uses(&self.config.probe, &station.name, self.config.name());
        let named = |used: &Used| matches!(used, Used::Station(_)) || slot.uses.contains(used);
        slot.uses = between.into_iter().filter(named).collect();
        // The same holds for what it keeps away.
        slot.class = match (what, slot.class) {
            (Accepted::Throughput, _) => Class::Exclusive,
            (Accepted::Delay, Class::Background) => Class::Background,
            (Accepted::Delay | Accepted::Slot, _) => Class::Normal,
        };
        let mut until_ns = until(now_ns, duration_ms);
        if what == Accepted::Throughput {
            until_ns = until_ns.saturating_add(permission::GRACE.as_nanos() as u64);
        }
        let entry = Entry {
            holder: Some(station.name.clone()),
            connection: guest.connection,
            slot,
            what,
            until_ns,
        };
        let lease = self.reservations.give(entry, now_ns)?;
        *self.counts.accepted.entry(what).or_default() += 1;
        Ok((lease, Answer::Accepted { lease: lease.0, duration_ms, grant: None }))
    }

    fn refused(&mut self, (reason, text): Refusal, retry_ms: Option<u64>) -> Answer {
        self.refuse(reason);
        Answer::Refused { reason, text, retry_ms }
    }
}

/// Whether a station connects from an address.
fn is_from(station: &StationConfig, address: IpAddr) -> bool {
    station.addresses.contains(&address)
        || station.control.is_some_and(|control| control.ip() == address)
}

/// The station that has sent hello. It may have left the mesh since then.
fn known<'c>(guest: &Guest, config: &'c Config) -> Result<&'c StationConfig, Refusal> {
    let Some(name) = &guest.name else {
        return Err((Reason::NoHello, "send hello first".to_owned()));
    };
    let station = config.probe.station(name);
    station.ok_or_else(|| (Reason::UnknownPeer, format!("{name} is not a station of this mesh")))
}

/// What speaks against a request.
enum Against {
    Rule(Refusal),
    Busy(Busy),
}

impl From<Refusal> for Against {
    fn from(refusal: Refusal) -> Self {
        Self::Rule(refusal)
    }
}

impl From<Busy> for Against {
    fn from(busy: Busy) -> Self {
        Self::Busy(busy)
    }
}

fn no_lease(lease: u64) -> Refusal {
    (Reason::NoLease, format!("there is no lease {lease}"))
}

fn until(now_ns: u64, duration_ms: u64) -> u64 {
    now_ns.saturating_add(duration_ms.saturating_mul(1_000_000))
}

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
