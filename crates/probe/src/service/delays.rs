//! Delay sessions of this station: those that are asked for, and those that never end.

use super::{
    actions::KEY,
    error::RunError,
    lease::{self, Own, Theirs},
    reports::{Continuous, Ssid, State},
    shared::{Shared, elapsed_ns},
    spec::Job,
};
use crate::{
    config::{Config, OVERHEAD, Target, TestConfig, What},
    delay::{Delays, News, Report, Session, SessionId},
    record::{Delay, Figures, Record},
    schedule::scatter,
    stamp::{
        Key,
        sender::{Peer, Settings},
        tlv,
    },
    station::{
        PeerError, Request,
        message::{DelayAsk, Grant},
    },
};
use ::config::hex;
use datapath::clock::unix_ns;
use std::{
    net::SocketAddr,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    sync::Notify,
    time::{MissedTickBehavior, sleep, sleep_until, timeout},
};
use tracing::{info, warn};

/// Packets a second by default.
const RATE: u32 = 10;
/// For how long a session that never ends is accepted each time, and how often that is renewed.
const LEASE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(10));
/// The pause before a session is asked for again.
const PAUSE: Duration = Duration::from_secs(2);

/// A session in progress; closed when dropped.
struct Open {
    shared: Arc<Shared>,
    delays: Arc<Delays>,
    id: SessionId,
    to: SocketAddr,
    wake: Arc<Notify>,
}

impl Open {
    fn new(shared: &Arc<Shared>, delays: &Arc<Delays>, session: Session) -> Self {
        let (to, wake) = (session.to, Arc::new(Notify::new()));
        let mut permits = shared.reports.permits.lock().unwrap_or_else(PoisonError::into_inner);
        *permits.entry(to).or_default() += 1;
        delays.permit(to);
        drop(permits);
        let report = Report::new(session.settings.peer);
        let state = State { report, ended: None, wake: wake.clone() };
        // Held, so that nothing is reported of a session that is not yet known.
        let mut sessions = shared.reports.sessions();
        let id = delays.open(session);
        sessions.insert(id, state);
        drop(sessions);
        Self { shared: shared.clone(), delays: delays.clone(), id, to, wake }
    }

    /// Waits until all is reported.
    async fn ended(&self) {
        loop {
            let over =
                self.shared.reports.sessions().get(&self.id).is_none_or(|s| s.ended.is_some());
            if over {
                return;
            }
            self.wake.notified().await;
        }
    }

    /// The figures since the last call; and why nothing was begun, if so.
    fn take(&self) -> Result<Delay, RunError> {
        let mut sessions = self.shared.reports.sessions();
        let Some(state) = sessions.get_mut(&self.id) else {
            return Err(RunError::Test("the session is gone".to_owned()));
        };
        match state.ended {
            Some(News::NotPermitted) => Err(RunError::Test("the address is not permitted".into())),
            Some(News::SsidInUse) => Err(RunError::Test("the session's number is in use".into())),
            _ => Ok(state.report.take()),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.delays.close(self.id);
        let mut permits =
            self.shared.reports.permits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = permits.get_mut(&self.to) {
            *count -= 1;
            if *count == 0 {
                permits.remove(&self.to);
                self.delays.forbid(self.to);
            }
        }
        drop(permits);
        self.shared.reports.sessions().remove(&self.id);
    }
}

/// Measures delay for as long as the job says.
pub(super) async fn measure(
    shared: &Arc<Shared>,
    job: &Job,
    own: &Own,
) -> Result<Figures, RunError> {
    let delays = delays(shared)?;
    let (rate, duration) = (job.rate.unwrap_or(RATE), job.duration());
    let count = (duration.as_secs_f64() * f64::from(rate)).round().max(1.0) as u32;
    let ask = Ask { rate, duration: duration + OVERHEAD, count: Some(count) };
    let (session, _accepted) = open(shared, &delays, job, ask).await?;
    own.prolong(job);
    let open = Open::new(shared, &delays, session);
    if timeout(duration + OVERHEAD, open.ended()).await.is_err() {
        warn!(to = %open.to, "a delay session has not come to its end");
    }
    open.take().map(Figures::Delay)
}

fn delays(shared: &Shared) -> Result<Arc<Delays>, RunError> {
    let none = || RunError::Test("this station sends no STAMP packets".to_owned());
    shared.delays.clone().ok_or_else(none)
}

/// What is wanted of a session.
struct Ask {
    rate: u32,
    duration: Duration,
    count: Option<u32>,
}

/// What a session has while it runs.
struct Accepted {
    /// What the other station was asked for; nothing of a reflector of the allow list.
    theirs: Option<Theirs>,
    _ssid: Option<Ssid>,
}

/// Agrees with who is at the other end, unless that is a reflector of the allow list.
async fn open(
    shared: &Arc<Shared>,
    delays: &Delays,
    job: &Job,
    ask: Ask,
) -> Result<(Session, Accepted), RunError> {
    let interval = Duration::from_secs(1) / ask.rate.max(1);
    let share = scatter(u64::from(shared.reports.ssids.lock().0)) % 1000;
    let phase = interval * share as u32 / 1000;
    let session =
        |to, from, settings| Session { to, from, interval, phase, count: ask.count, settings };
    match &job.to {
        Target::Reflector(to) => {
            if !shared.config().probe.allows(to.ip()) {
                return Err(RunError::Test(format!("{} is not on the allow list", to.ip())));
            }
            let settings = Settings { peer: Peer::TwampLight, ..Settings::default() };
            Ok((session(*to, None, settings), Accepted { theirs: None, _ssid: None }))
        }
        Target::Station(name) => {
            let (from, to) = job.addresses(&shared.config(), name)?;
            let none = || RunError::Test("all session numbers are in use".to_owned());
            let own = shared.reports.ssids.take().ok_or_else(none)?;
            let ssid = own.number;
            let request = Request::Delay {
                session: DelayAsk {
                    from: SocketAddr::new(from, delays.sender_address().port()),
                    ssid,
                    rate: ask.rate,
                    duration_ms: ask.duration.as_millis() as u64,
                    authenticated: !job.plain,
                },
                slot: job.slot().clone(),
            };
            let (theirs, grant) = lease::request(shared, name, to, request).await?;
            let unknown = || PeerError::Answer { name: name.clone() };
            let Some(Grant::Delay { to: reflector, key }) = grant else {
                return Err(unknown().into());
            };
            let settings = Settings { ssid, ssid_needed: true, ..Settings::default() };
            // It speaks for itself and for nobody else.
            if reflector.ip() != to {
                return Err(unknown().into());
            }
            let settings = match key {
                // A driver answers the base packet alone.
                None if job.plain => Settings { ask: tlv::Ask::default(), ..settings },
                None => return Err(unknown().into()),
                Some(key) => {
                    let secret: [u8; KEY] = hex::array(&key).ok_or_else(unknown)?;
                    Settings { key: Some(Key::new(&secret).ok_or_else(unknown)?), ..settings }
                }
            };
            let accepted = Accepted { theirs: Some(theirs), _ssid: Some(own) };
            Ok((session(reflector, Some(from), settings), accepted))
        }
        other => Err(RunError::Test(format!("{other} has no delay"))),
    }
}

impl Continuous {
    /// Begins and ends sessions so that there are those of the configuration. Within the runtime.
    pub(super) fn configure(&self, shared: &Arc<Shared>, config: &Config) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = config.name();
        let mut wanted: Vec<(&TestConfig, &str)> = Vec::new();
        for test in config.probe.tests.iter().filter(|test| test.continuous()) {
            let pairs = test.pairs().into_iter().filter(|(from, _)| *from == own);
            wanted.extend(pairs.map(|(_, to)| (test, to)));
        }
        running.retain(|(test, to, task)| {
            let stays = wanted.contains(&(test, to.as_str()));
            if !stays {
                task.abort();
            }
            stays
        });
        for (test, to) in wanted {
            if running.iter().any(|(other, there, _)| other == test && there == to) {
                continue;
            }
            let task = tokio::spawn(go_on(shared.clone(), test.clone(), to.to_owned()));
            running.push((test.clone(), to.to_owned(), task));
        }
    }
}

/// Measures all the time, whatever happens to the other station.
async fn go_on(shared: Arc<Shared>, test: TestConfig, to: String) {
    loop {
        let begun = Instant::now();
        let Ok(job) = Job::of(&shared.config(), &test, &to) else { return };
        let Err(error) = session(&shared, &test, &job).await else { return };
        info!(test = test.name, to, %error, "nothing is measured");
        shared.counters.failed(&test.name, What::Owd);
        // A session may have run for long before.
        let now = (unix_ns().cast_signed(), Instant::now());
        keep(&shared, &test, &to, now, Figures::Failed { reason: error.to_string() });
        // What is asked for in vain is asked for again, once each interval at the least.
        let pause = PAUSE.max(test.interval.saturating_sub(begun.elapsed()));
        wait(&shared, &to, pause).await;
    }
}

/// Waits, but not longer than until a station that was not reached is.
async fn wait(shared: &Shared, to: &str, pause: Duration) {
    let end = Instant::now() + pause;
    let reached = || shared.peers.reached(to);
    let before = reached();
    while Instant::now() < end {
        sleep(PAUSE.min(end.saturating_duration_since(Instant::now()))).await;
        if !before && reached() {
            return;
        }
    }
}

/// One session, until it cannot go on.
async fn session(shared: &Arc<Shared>, test: &TestConfig, job: &Job) -> Result<(), RunError> {
    let delays = delays(shared)?;
    let ask = Ask { rate: test.rate.unwrap_or(RATE), duration: LEASE.0, count: None };
    let (session, accepted) = open(shared, &delays, job, ask).await?;
    let open = Open::new(shared, &delays, session);
    let since = (unix_ns().cast_signed(), Instant::now());
    let mut part = Part { open, test, to: job.to.to_string(), since };
    let mut each = tokio::time::interval_at((since.1 + test.interval).into(), test.interval);
    each.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut renew_at = since.1 + LEASE.1;
    loop {
        tokio::select! {
            _ = each.tick() => {
                let delay = part.open.take()?;
                part.keep(delay);
            }
            () = sleep_until(renew_at.into()), if accepted.theirs.is_some() => {
                renew_at = Instant::now() + LEASE.1;
                if let Some(theirs) = &accepted.theirs {
                    theirs.renew(LEASE.0).await?;
                }
            }
            () = part.open.ended() => {
                // Why nothing was begun, if so; else the rest is kept.
                let delay = part.open.take()?;
                part.keep_if_any(delay);
                return Err(RunError::Test("the session has ended".to_owned()));
            }
        }
    }
}

/// What a session has measured since its last record; kept when the session ends, however it does.
struct Part<'a> {
    open: Open,
    test: &'a TestConfig,
    to: String,
    since: (i64, Instant),
}

impl Part<'_> {
    fn keep(&mut self, delay: Delay) {
        let shared = &self.open.shared;
        shared.counters.done(&self.test.name, What::Owd);
        keep(shared, self.test, &self.to, self.since, Figures::Delay(delay));
        self.since = (unix_ns().cast_signed(), Instant::now());
    }

    fn keep_if_any(&mut self, delay: Delay) {
        if delay.round_trip.sent > 0 {
            self.keep(delay);
        }
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if let Ok(delay) = self.open.take() {
            self.keep_if_any(delay);
        }
    }
}

fn keep(
    shared: &Shared,
    test: &TestConfig,
    to: &str,
    (at_ns, begun): (i64, Instant),
    figures: Figures,
) {
    shared.keep(&Record {
        at_ns,
        lasted_ns: elapsed_ns(begun),
        from: shared.config().name().to_owned(),
        to: to.to_owned(),
        test: test.name.clone(),
        figures,
    });
}
