//! Round trips of ICMP echo: RFC 792, RFC 4443 section 4.
//!
//! Requests leave in even intervals, each with a number; a reply must bring back what its request
//! carried. The kernel stamps replies when they come in (see `socket` for the interval
//! in which the true round trip lies). Works without rights where ping sockets are allowed.

use super::{
    apart::{Stop, apart},
    context::{Context, Forbidden, Refusal},
    icmp,
    socket::{Arrival, Hearing, Sent},
};
use crate::{
    interval::{Interval, minimum, percentile},
    record::{Bounded, Series},
};
use config::Problem;
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::IpAddr,
    time::{Duration, Instant},
};

/// Most requests of a test: each has a number of 16 bits of its own.
pub const MOST_REQUESTS: u32 = 65_535;
/// Least time between two requests.
pub const LEAST_INTERVAL: Duration = Duration::from_millis(1);
/// Longest time that a test takes, its last wait included.
pub const LONGEST: Duration = Duration::from_secs(3600);
/// Bytes of a payload that identify its sender.
const LEAST_SIZE: u16 = 8;
/// What fits into a packet of IPv4 behind both headers.
const MOST_SIZE: u16 = 65_507;

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Requests to send.
    pub count: u32,
    /// Time from one request to the next.
    #[serde(with = "humantime_serde")]
    pub interval: Duration,
    /// Bytes that a request carries.
    pub size: u16,
    /// A reply that takes longer is lost.
    #[serde(with = "humantime_serde")]
    pub wait: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let (interval, wait) = (Duration::from_millis(200), Duration::from_secs(2));
        Self { count: 10, interval, size: 56, wait }
    }
}

impl Settings {
    /// What is wrong with the values.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.count == 0 || self.count > MOST_REQUESTS {
            wrong("count", format!("send 1 to {MOST_REQUESTS} requests"));
        }
        if self.interval < LEAST_INTERVAL {
            wrong("interval", format!("must be at least {LEAST_INTERVAL:?}"));
        }
        if !(LEAST_SIZE..=MOST_SIZE).contains(&self.size) {
            wrong("size", format!("must be {LEAST_SIZE} to {MOST_SIZE} bytes"));
        }
        if self.wait.is_zero() {
            wrong("wait", "a reply takes some time: give more than zero".to_owned());
        }
        if self.longest().is_none_or(|longest| longest > LONGEST) {
            let limit = humantime::format_duration(LONGEST);
            wrong("count", format!("with this interval and wait the test takes more than {limit}"));
        }
        problems
    }

    /// How long it takes at most; `None` when that is beyond all measure.
    pub fn longest(&self) -> Option<Duration> {
        self.interval.checked_mul(self.count)?.checked_add(self.wait)
    }
}

/// Nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value is out of its limits.
    #[error("{0}")]
    Settings(Problem),
    /// The address did not agree.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// No socket.
    #[error(
        "opening a socket for ICMP echo to {to}: {source}; the group must be within \
         net.ipv4.ping_group_range, or the process have CAP_NET_RAW"
    )]
    Open {
        /// The destination.
        to: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// No request could be sent.
    #[error("sending an ICMP echo request to {to}: {source}")]
    Send {
        /// The destination.
        to: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The socket failed.
    #[error("receiving ICMP echo replies of {to}: {source}")]
    Receive {
        /// The destination.
        to: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
}

/// Measures.
///
/// # Errors
/// When nothing could be sent; that nobody answers is no error.
pub async fn run(to: IpAddr, settings: &Settings, context: &Context) -> Result<Series, Error> {
    if let Some(problem) = settings.problems().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    context.check(to)?;
    let (settings, context) = (settings.clone(), context.clone());
    let identifier = rand::random();
    let socket = Hearing::echo(to, identifier).map_err(|source| Error::Open { to, source })?;
    let test = Test::new(socket, to, settings, rand::random(), context);
    apart(|stop| test.run(stop)).await
}

/// A test in progress.
struct Test {
    socket: Hearing,
    to: IpAddr,
    settings: Settings,
    payload: Vec<u8>,
    context: Context,
    sent: Vec<Sent>,
    trips: Trips,
}

impl Test {
    fn new(socket: Hearing, to: IpAddr, settings: Settings, mark: u64, context: Context) -> Self {
        // The mark, over and over.
        let payload = mark.to_be_bytes().into_iter().cycle().take(settings.size.into()).collect();
        let trips = Trips::new(settings.count as usize);
        Self { socket, to, settings, payload, context, sent: Vec::new(), trips }
    }

    fn run(mut self, stop: &Stop) -> Result<Series, Error> {
        let begin = Instant::now();
        let identifier = self.socket.identifier().unwrap_or(0);
        let (mut next, mut failed, mut due) = (0, None, begin);
        while next < self.settings.count && !stop.is_set() {
            self.listen(due, stop)?;
            due = following(due, self.settings.interval, Instant::now());
            let family = self.socket.family();
            let request = icmp::request(family, identifier, next as u16, &self.payload);
            match self.socket.send(&request) {
                Ok(sent) => {
                    self.sent.push(sent);
                    next += 1;
                }
                Err(source) if next == 0 => return Err(Error::Send { to: self.to, source }),
                // The route is gone after some requests: the others are not sent.
                Err(source) => {
                    failed = Some(source);
                    break;
                }
            }
        }
        if let Some(error) = failed {
            tracing::warn!(to = %self.to, sent = next, %error, "no more echo requests can be sent");
        }
        let end = Instant::now() + self.settings.wait;
        self.listen(end, stop)?;
        Ok(self.trips.series(next.into()))
    }

    /// Takes replies until a moment, or until all requests are answered when none is left to send.
    fn listen(&mut self, until: Instant, stop: &Stop) -> Result<(), Error> {
        loop {
            self.take()?;
            let left = until.saturating_duration_since(Instant::now());
            let all = self.trips.answered == self.settings.count as usize;
            if left.is_zero() || all || stop.is_set() {
                return Ok(());
            }
            let receive = |source| Error::Receive { to: self.to, source };
            self.socket.wait(left).map_err(receive)?;
        }
    }

    /// Takes what is there.
    fn take(&mut self) -> Result<(), Error> {
        let (to, family) = (self.to, self.socket.family());
        let identifier = self.socket.identifier();
        let receive = |source| Error::Receive { to, source };
        while let Some(message) = self.socket.receive().map_err(receive)? {
            if message.error.is_some() {
                // Whatever a router says of a request, it is not answered.
                continue;
            }
            let echo = match icmp::reply(family, identifier.is_some(), message.bytes) {
                Ok(Some(echo)) => echo,
                // A raw socket hears other messages as well.
                Ok(None) => continue,
                Err(_) => {
                    self.context.counters.refuse(Refusal::Icmp);
                    continue;
                }
            };
            if identifier.is_some_and(|own| own != echo.identifier.0) {
                // A reply to somebody else on this machine.
                continue;
            }
            let sequence = usize::from(echo.sequence.0);
            match self.sent.get(sequence) {
                Some(sent) if echo.payload == self.payload => {
                    self.trips.answer(sequence, sent, &message.at, self.settings.wait);
                }
                _ => self.context.counters.refuse(Refusal::Icmp),
            }
        }
        Ok(())
    }
}

fn interval(Bounded { estimate_ns, low_ns, high_ns }: Bounded) -> Interval {
    Interval { estimate_ns, low_ns, high_ns }
}

/// When the next request is due after one that was: what a pause has skipped is not sent at once.
fn following(due: Instant, interval: Duration, now: Instant) -> Instant {
    let next = due + interval;
    if next <= now { now + interval } else { next }
}

/// What has come back.
#[derive(Clone, Debug, Default)]
struct Trips {
    trips: Vec<Option<Bounded>>,
    answered: usize,
    duplicated: u64,
    reordered: u64,
    /// The latest request that was answered so far.
    latest: Option<usize>,
}

impl Trips {
    fn new(count: usize) -> Self {
        Self { trips: vec![None; count], ..Self::default() }
    }

    fn answer(&mut self, sequence: usize, sent: &Sent, arrival: &Arrival, wait: Duration) {
        let trip = sent.round_trip(arrival);
        if trip.estimate_ns <= wait.as_nanos() as i64 {
            self.arrived(sequence, trip);
        }
    }

    fn arrived(&mut self, sequence: usize, trip: Bounded) {
        match self.trips.get_mut(sequence) {
            Some(slot @ None) => *slot = Some(trip),
            Some(Some(_)) => {
                self.duplicated += 1;
                return;
            }
            None => return,
        }
        self.answered += 1;
        // RFC 4737, section 3.3: behind one that was sent later.
        if self.latest.is_some_and(|latest| sequence < latest) {
            self.reordered += 1;
        } else {
            self.latest = Some(sequence);
        }
    }

    fn series(&self, sent: u64) -> Series {
        let trips: Vec<Interval> = self.trips.iter().flatten().copied().map(interval).collect();
        let rank = |percent| percentile(&trips, percent, 100).map(Bounded::from);
        // Loss and what follows aside, PDV is the distance to the least (RFC 5481, section 4.2).
        let (least, p99) = (minimum(&trips).map(Bounded::from), rank(99));
        let pdv = least.zip(p99).map(|(least, p99)| p99.estimate_ns.abs_diff(least.estimate_ns));
        Series {
            sent,
            lost: sent.saturating_sub(self.answered as u64),
            late: 0,
            duplicated: self.duplicated,
            reordered: self.reordered,
            contradicted: 0,
            minimum: least,
            median: rank(50),
            p95: rank(95),
            p99,
            maximum: rank(100),
            pdv_p99_ns: pdv,
            ipdv_mean_ns: self.ipdv(),
        }
    }

    /// RFC 5481, section 4.1, of neighbours that both arrived.
    fn ipdv(&self) -> Option<u64> {
        let pairs = self.trips.iter().zip(self.trips.iter().skip(1));
        let steps = pairs.filter_map(|(one, next)| Some(((*one)?, (*next)?)));
        let (mut sum, mut count) = (0u128, 0u128);
        for (one, next) in steps {
            sum += u128::from(one.estimate_ns.abs_diff(next.estimate_ns));
            count += 1;
        }
        (count > 0).then(|| (sum / count) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trip(ns: i64) -> Bounded {
        Bounded { estimate_ns: ns, low_ns: Some(ns), high_ns: Some(ns) }
    }

    #[test]
    fn what_came_back_is_counted_once_and_in_order() {
        let mut trips = Trips::new(6);
        for (sequence, ns) in [(0, 10), (2, 30), (1, 25), (2, 31), (4, 20)] {
            trips.arrived(sequence, trip(ns));
        }
        trips.arrived(6, trip(1));
        let series = trips.series(6);
        assert_eq!((series.sent, series.lost), (6, 2));
        assert_eq!((series.duplicated, series.reordered), (1, 1));
        let of = |bounded: Option<Bounded>| bounded.unwrap().estimate_ns;
        let all = (of(series.minimum), of(series.median), of(series.p95), of(series.maximum));
        assert_eq!(all, (10, 20, 30, 30));
        assert_eq!(series.pdv_p99_ns, Some(20));
        // 10 to 25 and 25 to 30.
        assert_eq!(series.ipdv_mean_ns, Some(10));
    }

    /// The smallest upper bound need not be that of the smallest estimate.
    #[test]
    fn bounds_of_ranks_are_ranks_of_bounds() {
        let mut trips = Trips::new(3);
        for (sequence, [low, ns, high]) in
            [[0, 10, 100], [15, 20, 25], [5, 30, 31]].into_iter().enumerate()
        {
            let trip = Bounded { estimate_ns: ns, low_ns: Some(low), high_ns: Some(high) };
            trips.arrived(sequence, trip);
        }
        let series = trips.series(3);
        let of = |bounded: Option<Bounded>| {
            bounded.map(|one| [one.low_ns.unwrap(), one.estimate_ns, one.high_ns.unwrap()])
        };
        assert_eq!(of(series.minimum), Some([0, 10, 25]));
        assert_eq!(of(series.median), Some([5, 20, 31]));
        assert_eq!(of(series.maximum), Some([15, 30, 100]));
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let (begin, interval) = (Instant::now(), Duration::from_millis(10));
        let at = |ms| begin + Duration::from_millis(ms);
        assert_eq!(following(at(10), interval, at(10)), at(20));
        assert_eq!(following(at(10), interval, at(19)), at(20));
        assert_eq!(following(at(10), interval, at(500)), at(510));
    }

    #[test]
    fn nothing_that_came_back_gives_no_figures() {
        let series = Trips::new(3).series(3);
        assert_eq!(series, Series { sent: 3, lost: 3, ..Series::default() });
    }

    #[test]
    fn values_out_of_their_limits_are_named() {
        assert_eq!(Settings::default().problems(), []);
        let settings =
            Settings { count: 65_536, interval: Duration::ZERO, size: 7, wait: Duration::ZERO };
        let keys: Vec<_> = settings.problems().into_iter().map(|problem| problem.key).collect();
        assert_eq!(keys, ["count", "interval", "size", "wait"]);
        let long =
            Settings { count: 4000, interval: Duration::from_secs(1), ..Settings::default() };
        assert_eq!(long.problems().len(), 1);
    }
}
