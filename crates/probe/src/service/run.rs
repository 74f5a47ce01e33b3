//! One run of one test: permission, lease of the other end, the test itself, the record.

use super::{
    acts::{iperf3_settings, throughput_settings},
    delays,
    error::{ControlError, RunError},
    shared::{AgreedAddress, Shared, elapsed_ns, unix_ns},
};
use crate::{
    clock::Clock,
    config::{
        self, Config, Family, LONGEST, OVERHEAD, Target, TargetError, TestConfig, Transport, What,
    },
    control::Order,
    record::{Figures, Record},
    schedule::{Class, jobs},
    station::{
        Answer, Asker, Lease, PeerError, Reason, Request,
        message::{Grant, Slot, ThroughputAsk},
    },
    status::Running,
    tools::{dns, http, iperf3, ping, throughput, trace},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout, timeout_at};
use tracing::{debug, info};

/// The name of the test in records of what was asked for.
pub(super) const ON_REQUEST: &str = "request";
/// How long what is asked for waits until nothing blocks it.
const REQUEST_WAIT: Duration = Duration::from_secs(60);
/// The least and the longest pause before a station is asked again that was busy.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Where name servers answer (RFC 1035, section 4.2).
const DNS_PORT: u16 = 53;
/// After so long beyond what it may take, a test is given up.
const GRACE: Duration = Duration::from_secs(30);

/// A run that is to be done.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) test: String,
    pub(super) what: What,
    pub(super) to: Target,
    pub(super) duration: Option<Duration>,
    pub(super) rate: Option<u32>,
    pub(super) bandwidth: Option<u32>,
    pub(super) transport: Transport,
    pub(super) plain: bool,
    pub(super) family: Option<Family>,
    takes: Duration,
    slot: Slot,
}

impl Job {
    /// A run of a test of the configuration.
    pub(super) fn of(config: &Config, test: &TestConfig, to: &str) -> Result<Self, TargetError> {
        Ok(Self {
            test: test.name.clone(),
            what: test.what,
            to: Target::parse(to, test.what, &config.probe)?,
            duration: test.duration,
            rate: test.rate,
            bandwidth: test.bandwidth,
            transport: test.transport,
            plain: test.plain,
            family: test.family,
            takes: test.takes(),
            slot: slot(config, &test.name, jobs::class(test), to),
        })
    }

    /// What is asked for.
    fn ordered(config: &Config, order: Order) -> Result<Self, ControlError> {
        let limit = &config.probe.limit;
        let to = Target::parse(&order.to, order.what, &config.probe)?;
        let value = |text: String| Err(ControlError::Value(text));
        let takes = order.takes();
        let lasts = match order.what {
            What::Owd | What::Ping | What::Throughput => takes.saturating_add(OVERHEAD),
            _ => takes,
        };
        let longest = match order.what {
            What::Throughput => limit.duration,
            _ => LONGEST,
        };
        if takes > longest || takes < Duration::from_millis(100) {
            let longest = humantime::format_duration(longest);
            return value(format!("the duration must be 100ms to {longest}"));
        }
        if order.rate.is_some_and(|rate| !(1..=limit.rate).contains(&rate)) {
            return value(format!("the rate must be 1 to {}; see probe.limit.rate", limit.rate));
        }
        let bandwidth = order.bandwidth;
        if bandwidth.is_some_and(|bandwidth| !(1..=limit.bandwidth).contains(&bandwidth)) {
            let most = limit.bandwidth;
            return value(format!("the bandwidth must be 1 to {most}; see probe.limit.bandwidth"));
        }
        if order.transport == Transport::Udp
            && bandwidth.is_none()
            && order.what == What::Throughput
        {
            return value("UDP does not slow down by itself: say how many Mbit/s".to_owned());
        }
        let throughput = order.what == What::Throughput;
        let paced = throughput && matches!(order.transport, Transport::Udp | Transport::Iperf3);
        let packets = matches!(order.what, What::Owd | What::Ping);
        for (given, fits, key) in [
            (order.duration.is_some(), throughput || packets, "duration"),
            (order.rate.is_some(), packets, "rate in packets a second"),
            (bandwidth.is_some(), paced, "bandwidth but over UDP or by iperf3"),
            (order.transport != Transport::Tcp, throughput, "transport"),
            (order.plain, order.what == What::Owd, "authentication that could be left off"),
        ] {
            if given && !fits {
                return value(format!("{} has no {key}", order.what));
            }
        }
        let class = jobs::kind(order.what, false);
        Ok(Self {
            test: ON_REQUEST.to_owned(),
            what: order.what,
            slot: slot(config, ON_REQUEST, class, &order.to),
            to,
            duration: order.duration,
            rate: order.rate,
            bandwidth,
            transport: order.transport,
            plain: order.plain,
            family: order.family,
            takes: lasts,
        })
    }

    /// What it shares with others.
    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// How long data or packets are sent.
    pub(super) fn duration(&self) -> Duration {
        self.duration.unwrap_or(match self.what {
            What::Throughput => config::THROUGHPUT,
            What::Ping => config::PING,
            _ => config::DELAY,
        })
    }

    /// The address of a station to which is measured, and of this one from which.
    pub(super) fn addresses(
        &self,
        config: &Config,
        name: &str,
    ) -> Result<(IpAddr, IpAddr), RunError> {
        let none = || RunError::Family(name.to_owned());
        let (own, station) = (config.own().ok_or_else(none)?, config.probe.station(name));
        let station = station.ok_or_else(none)?;
        let common = station.addresses.iter().find_map(|to| {
            let family = if to.is_ipv4() { Family::V4 } else { Family::V6 };
            let wanted = self.family.is_none_or(|wanted| wanted == family);
            Some((own.address(Some(family))?, *to)).filter(|_| wanted)
        });
        common.ok_or_else(none)
    }
}

fn slot(config: &Config, test: &str, class: Class, to: &str) -> Slot {
    let uses = jobs::uses(&config.probe, config.name(), to).into_iter().collect();
    Slot { test: test.to_owned(), class, uses }
}

/// Why a run has not begun.
enum NotBegun {
    Busy(Duration),
    TooMany,
}

/// Does a run of the timetable; it may wait as long as the spread permits.
pub(super) async fn scheduled(shared: Arc<Shared>, job: Job, wait: Duration) {
    let (test, what) = (job.test.clone(), job.what);
    if run(&shared, job, wait).await.is_err() {
        debug!(test, "skipped: another test is in the way");
        shared.counters.skipped(&test, what);
    }
}

/// Does what is asked for.
pub(super) async fn order(shared: &Arc<Shared>, order: Order) -> Result<Record, ControlError> {
    let job = Job::ordered(&shared.config(), order)?;
    run(shared, job, REQUEST_WAIT).await.map_err(|not| match not {
        NotBegun::Busy(left) => ControlError::Busy(left),
        NotBegun::TooMany => ControlError::TooMany,
    })
}

/// Runs a test, when nothing blocks it, and keeps the record.
async fn run(shared: &Arc<Shared>, job: Job, wait: Duration) -> Result<Record, NotBegun> {
    let latest = Instant::now() + wait;
    let room = shared.room();
    let Ok(Ok(_room)) = timeout(wait.max(PAUSE.0), room.acquire_owned()).await else {
        return Err(NotBegun::TooMany);
    };
    loop {
        let slot = own(shared, &job, latest).await?;
        let _running =
            shared.runs(Running { test: job.test.clone(), what: job.what, to: job.to.to_string() });
        let (at_ns, begun) = (unix_ns(), Instant::now());
        let mut theirs = None;
        let measured =
            match timeout(job.takes + GRACE, measure(shared, &job, &slot, &mut theirs)).await {
                Ok(measured) => measured,
                Err(_) => Err(RunError::Test("it has not come to an end".to_owned())),
            };
        let lasted_ns = elapsed_ns(begun);
        // Others may begin only now.
        drop((theirs, slot));
        let figures = match measured {
            Ok(figures) => figures,
            Err(RunError::Peer(PeerError::Refused { reason: Reason::Busy, retry_ms, .. })) => {
                pause(retry_ms, latest).await?;
                continue;
            }
            Err(error) => {
                info!(test = job.test, to = %job.to, %error, "nothing was measured");
                Figures::Failed { reason: error.to_string() }
            }
        };
        match &figures {
            Figures::Failed { .. } => shared.counters.failed(&job.test, job.what),
            _ => shared.counters.done(&job.test, job.what),
        }
        let record = Record {
            at_ns,
            lasted_ns,
            from: shared.config().name().to_owned(),
            to: job.to.to_string(),
            test: job.test.clone(),
            figures,
        };
        shared.keep(&record);
        return Ok(record);
    }
}

/// Waits for as long as something is in the way.
async fn pause(retry_ms: Option<u64>, latest: Instant) -> Result<(), NotBegun> {
    let pause = retry_ms.map_or(PAUSE.1, Duration::from_millis).clamp(PAUSE.0, PAUSE.1);
    if Instant::now() + pause > latest {
        return Err(NotBegun::Busy(retry_ms.map_or(pause, Duration::from_millis)));
    }
    sleep(pause).await;
    Ok(())
}

/// A lease of this station for a test of its own; ends when dropped.
pub(super) struct Own {
    shared: Arc<Shared>,
    lease: Lease,
}

impl Own {
    /// Begins anew, for agreeing has taken its time.
    pub(super) fn prolong(&self, job: &Job) {
        let until_ns = self.shared.host.now_ns().saturating_add(job.takes.as_nanos() as u64);
        self.shared.host.admission().prolong_own(self.lease, until_ns);
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.shared.host.admission().end_own(self.lease);
    }
}

/// Takes this station's own slot.
async fn own(shared: &Arc<Shared>, job: &Job, latest: Instant) -> Result<Own, NotBegun> {
    loop {
        let now_ns = shared.host.now_ns();
        let until_ns = now_ns.saturating_add(job.takes.as_nanos() as u64);
        let given = shared.host.admission().own(job.slot.clone(), until_ns, now_ns);
        match given {
            Ok(lease) => return Ok(Own { shared: shared.clone(), lease }),
            Err(busy) => {
                let retry_ms = busy.until_ns.saturating_sub(now_ns).div_ceil(1_000_000);
                pause(Some(retry_ms), latest).await?;
            }
        }
    }
}

/// A lease of another station; it ends when this is dropped, or by itself when its time is over.
pub(super) struct Theirs {
    asker: Asker,
    lease: u64,
    _address: AgreedAddress,
}

impl Theirs {
    /// Goes on for so long from now.
    pub(super) async fn renew(&self, duration: Duration) -> Result<(), PeerError> {
        let duration_ms = duration.as_millis() as u64;
        self.asker.ask(Request::Renew { lease: self.lease, duration_ms }).await.map(drop)
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let (asker, lease) = (self.asker.clone(), self.lease);
        tokio::spawn(async move {
            let _ = asker.ask(Request::End { lease }).await;
        });
    }
}

/// Asks another station to agree.
pub(super) async fn agree(
    shared: &Arc<Shared>,
    name: &str,
    address: IpAddr,
    request: Request,
) -> Result<(Theirs, Option<Grant>), RunError> {
    let (config, tls) = (shared.config(), shared.host.tls());
    let asker = shared.peers.asker(&config, tls.as_ref(), name)?;
    match asker.ask(request).await? {
        Answer::Agreed { lease, grant, .. } => {
            let _address = shared.agreed(address);
            Ok((Theirs { asker, lease, _address }, grant))
        }
        _ => Err(PeerError::Answer { name: name.to_owned() }.into()),
    }
}

/// Does the test itself; `theirs` holds what was agreed for it.
async fn measure(
    shared: &Arc<Shared>,
    job: &Job,
    own: &Own,
    theirs: &mut Option<Theirs>,
) -> Result<Figures, RunError> {
    if job.what == What::Owd {
        return delays::measure(shared, job, own).await;
    }
    if job.what == What::Throughput {
        return throughput(shared, job, own, theirs).await;
    }
    let config = shared.config();
    // What was agreed ends so long after this at the earliest: nothing is sent any more then.
    let end = tokio::time::Instant::now() + job.takes;
    // Whoever is at the other end has agreed before the first packet.
    let to = match (&job.to, job.what) {
        (Target::Station(name), What::Ping | What::Trace) => {
            let (_, to) = job.addresses(&config, name)?;
            let duration_ms = job.takes.as_millis() as u64;
            let request = Request::Slot { slot: job.slot.clone(), duration_ms };
            *theirs = Some(agree(shared, name, to, request).await?.0);
            Some(to)
        }
        (Target::Address(to), _) => Some(*to),
        _ => None,
    };
    match timeout_at(end, single(shared, job, to)).await {
        Ok(measured) => measured,
        Err(_) => Err(RunError::Test(format!(
            "it has not come to an end within {}",
            humantime::format_duration(job.takes)
        ))),
    }
}

/// Does a test that has no other end: to an address, a page or a name server.
async fn single(shared: &Arc<Shared>, job: &Job, to: Option<IpAddr>) -> Result<Figures, RunError> {
    match &job.to {
        Target::Page(page) => {
            let page = page.parse().map_err(|_| RunError::Test(format!("{page} is no page")))?;
            let fetched = http::run(&page, &http::Settings::default(), &shared.context).await;
            return fetched.map(Figures::Http).map_err(|error| RunError::Test(error.to_string()));
        }
        Target::Question { name, server } => {
            let name = name.parse().map_err(|_| RunError::Test(format!("{name} is no name")))?;
            let (server, settings) = (SocketAddr::new(*server, DNS_PORT), dns::Settings::new(name));
            let answered = dns::run(server, &settings, &shared.context).await;
            return answered.map(Figures::Dns).map_err(|error| RunError::Test(error.to_string()));
        }
        Target::Station(_) | Target::Address(_) | Target::Reflector(_) => {}
    }
    match (job.what, to) {
        (What::Ping, Some(to)) => {
            let duration = job.duration();
            let interval = job
                .rate
                .map_or(Duration::from_millis(200), |rate| Duration::from_secs(1) / rate.max(1));
            let count = (duration.as_nanos() / interval.as_nanos().max(1)).clamp(1, 65_535) as u32;
            let settings = ping::Settings { count, interval, ..ping::Settings::default() };
            let series = ping::run(to, &settings, &shared.context).await;
            series.map(Figures::Ping).map_err(|error| RunError::Test(error.to_string()))
        }
        (What::Trace, Some(to)) => {
            let settings = trace::Settings { mtu: true, ..trace::Settings::default() };
            let traced = trace::run(to, &settings, &shared.context).await;
            traced.map(Figures::Trace).map_err(|error| RunError::Test(error.to_string()))
        }
        (What::Clock, Some(to)) => {
            shared.context.check(to).map_err(|error| RunError::Test(error.to_string()))?;
            let asked = tokio::task::spawn_blocking(move || Clock::ask(to)).await;
            let clock = asked.map_err(|error| RunError::Test(error.to_string()))?;
            // Its reach register has the one answer that was waited for.
            if clock.reach == Some(0) {
                return Err(RunError::Test(format!("{to} does not answer as an NTP server")));
            }
            Ok(Figures::Clock(clock))
        }
        _ => Err(RunError::Test(format!("{} is not measured to {}", job.what, job.to))),
    }
}

/// Sends as much as goes through to another station.
async fn throughput(
    shared: &Arc<Shared>,
    job: &Job,
    own: &Own,
    theirs: &mut Option<Theirs>,
) -> Result<Figures, RunError> {
    let Target::Station(name) = &job.to else {
        return Err(RunError::Test(format!("{} is no station", job.to)));
    };
    let (_, to) = job.addresses(&shared.config(), name)?;
    let test = ThroughputAsk {
        transport: job.transport,
        duration_ms: job.duration().as_millis() as u64,
        bandwidth: job.bandwidth,
        ipv6: to.is_ipv6(),
    };
    let with_iperf3 = (test.transport == Transport::Iperf3).then(|| iperf3_settings(&test));
    let settings = match with_iperf3 {
        None => Some(throughput_settings(&test).map_err(RunError::Test)?),
        Some(_) => None,
    };
    let request = Request::Throughput { test, slot: job.slot.clone() };
    let (agreed, grant) = agree(shared, name, to, request).await?;
    *theirs = Some(agreed);
    own.prolong(job);
    let unknown = || PeerError::Answer { name: name.clone() };
    let Some(Grant::Throughput { to: server, token }) = grant else {
        return Err(unknown().into());
    };
    // It speaks for itself and for nobody else.
    if server.ip() != to {
        return Err(unknown().into());
    }
    let context = &shared.context;
    let figures = match (with_iperf3, settings, token) {
        (Some(settings), ..) => {
            iperf3::run(server, &settings, context).await.map_err(|error| error.to_string())
        }
        (None, Some(settings), Some(token)) => {
            let token = token.parse().map_err(|_| unknown())?;
            let run = throughput::run(server, &token, &settings, context);
            run.await.map_err(|error| error.to_string())
        }
        _ => return Err(unknown().into()),
    };
    figures.map(Figures::Throughput).map_err(RunError::Test)
}
