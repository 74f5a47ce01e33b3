//! One run of one test: permission, lease of the other end, the test itself, the record.

use super::{
    actions::{iperf3_settings, throughput_settings},
    delays,
    error::{ControlError, RunError},
    lease::{self, Own, Theirs},
    shared::{Shared, elapsed_ns},
    spec::Job,
};
use crate::{
    clock::Clock,
    config::{Target, Transport, What},
    control::Order,
    record::{Figures, Record},
    station::{
        PeerError, Reason, Request,
        message::{Grant, ThroughputAsk},
    },
    status::Running,
    tools::{dns, http, iperf3, ping, throughput, trace},
};
use datapath::clock::unix_ns;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout, timeout_at};
use tracing::{debug, info};

/// How long what is asked for waits until nothing blocks it.
const REQUEST_WAIT: Duration = Duration::from_secs(60);
/// The least and the longest pause before a station is asked again that was busy.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Where name servers answer (RFC 1035, section 4.2).
const DNS_PORT: u16 = 53;
/// After so long beyond what it may take, a test is given up.
const GRACE: Duration = Duration::from_secs(30);

/// Why a run has not begun.
enum NotBegun {
    Busy(Duration),
    TooMany,
}

/// Does a run of the timetable; it may wait as long as the spread permits.
pub(super) async fn scheduled(shared: Arc<Shared>, job: Job, wait: Duration) {
    let (test, what) = (job.test.clone(), job.what);
    if run(&shared, job, wait).await.is_err() {
        debug!(test, "skipped: another test has the slot");
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
        let (at_ns, begun) = (unix_ns().cast_signed(), Instant::now());
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

/// Waits for as long as another test has the time.
async fn pause(retry_ms: Option<u64>, latest: Instant) -> Result<(), NotBegun> {
    let pause = retry_ms.map_or(PAUSE.1, Duration::from_millis).clamp(PAUSE.0, PAUSE.1);
    if Instant::now() + pause > latest {
        return Err(NotBegun::Busy(retry_ms.map_or(pause, Duration::from_millis)));
    }
    sleep(pause).await;
    Ok(())
}

/// Takes this station's own slot.
async fn own(shared: &Arc<Shared>, job: &Job, latest: Instant) -> Result<Own, NotBegun> {
    loop {
        let now_ns = shared.host.now_ns();
        let until_ns = now_ns.saturating_add(job.takes.as_nanos() as u64);
        let given = shared.host.admission().own(job.slot().clone(), until_ns, now_ns);
        match given {
            Ok(lease) => return Ok(Own { shared: shared.clone(), lease }),
            Err(busy) => {
                let retry_ms = busy.until_ns.saturating_sub(now_ns).div_ceil(1_000_000);
                pause(Some(retry_ms), latest).await?;
            }
        }
    }
}

/// Does the test itself; `theirs` holds what was accepted for it.
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
    // What was accepted ends so long after this at the earliest: nothing is sent any more then.
    let end = tokio::time::Instant::now() + job.takes;
    // Whoever is at the other end has accepted before the first packet.
    let to = match (&job.to, job.what) {
        (Target::Station(name), What::Ping | What::Trace) => {
            let (_, to) = job.addresses(&config, name)?;
            let duration_ms = job.takes.as_millis() as u64;
            let request = Request::Slot { slot: job.slot().clone(), duration_ms };
            *theirs = Some(lease::request(shared, name, to, request).await?.0);
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
            let page = page.parse().map_err(|_| RunError::Test(format!("{page} is not a page")))?;
            let fetched = http::run(&page, &http::Settings::default(), &shared.context).await;
            return fetched.map(Figures::Http).map_err(|error| RunError::Test(error.to_string()));
        }
        Target::Question { name, server } => {
            let name = name.parse().map_err(|_| RunError::Test(format!("{name} is not a name")))?;
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
        return Err(RunError::Test(format!("{} is not a station", job.to)));
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
    let request = Request::Throughput { test, slot: job.slot().clone() };
    let (accepted, grant) = lease::request(shared, name, to, request).await?;
    *theirs = Some(accepted);
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
