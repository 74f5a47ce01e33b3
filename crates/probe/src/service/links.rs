//! What is measured of links, for who knows the network.

use crate::{
    config::{Config, MeasuredConfig, What},
    record::{Bounded, Delay, Figures, Record, Series},
};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use topo::{MeasuredLatency, MeasuredLink, RouterId};

/// What may wait to be taken; what does not fit is dropped, for something newer follows.
const WAITING: usize = 1024;
/// A figure holds for this many intervals of its test, and for so long at the least: a record may be late
/// or fail, and a station be started again.
const HOLDS: (u32, Duration) = (3, Duration::from_secs(10));

/// Where what is measured goes, if anywhere.
#[derive(Debug, Default)]
pub(super) struct Links(Mutex<Option<Sender<MeasuredLink>>>);

impl Links {
    /// From now on to this one.
    pub(super) fn follow(&self) -> Receiver<MeasuredLink> {
        let (sender, receiver) = channel(WAITING);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    /// Reports the links that a record of the timetable is about. What somebody asked for at some moment
    /// is not reported: nobody knows what follows it.
    pub(super) fn report(&self, config: &Config, record: &Record) {
        let Figures::Delay(delay) = &record.figures else { return };
        let mut tests = config.probe.tests.iter().filter(|test| test.what == What::Owd);
        let Some(test) = tests.find(|test| test.name == record.test) else { return };
        let holds = test.interval.saturating_mul(HOLDS.0).max(HOLDS.1);
        let links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = &*links else { return };
        for measured in config.probe.measured.iter().filter(|link| link.station == record.to) {
            for link in directions(measured, delay, holds) {
                // A daemon that stops takes no more.
                let _ = sender.try_send(link);
            }
        }
    }
}

fn directions(
    config: &MeasuredConfig,
    delay: &Delay,
    holds: Duration,
) -> impl Iterator<Item = MeasuredLink> {
    let [from, to] = [config.from, config.to].map(RouterId);
    let forward = link((from, to), delay, delay.forward.as_ref(), holds);
    let reverse = config.both.then(|| link((to, from), delay, delay.reverse.as_ref(), holds));
    std::iter::once(forward).chain(reverse)
}

fn link(
    (from, to): (RouterId, RouterId),
    delay: &Delay,
    direction: Option<&Series>,
    holds: Duration,
) -> MeasuredLink {
    let latencies = direction.and_then(one_way).into_iter().chain(half(&delay.round_trip));
    let latency = latencies.min_by_key(MeasuredLatency::width_ns);
    // Where nobody counts on the path, what was lost there and back is not less than on one of both.
    let counted = direction.filter(|_| delay.counted).unwrap_or(&delay.round_trip);
    let packets = counted.sent;
    let loss = (packets > 0).then(|| (counted.lost as f64 / packets as f64).min(1.0));
    MeasuredLink { from, to, latency, loss, packets, holds }
}

/// The one-way delay, if both clocks have an error bound, and keep to it.
fn one_way(series: &Series) -> Option<MeasuredLatency> {
    let Bounded { estimate_ns, low_ns: Some(low), high_ns: Some(high) } = series.median? else {
        return None;
    };
    let low_ns = low.max(0).unsigned_abs();
    let high_ns = u64::try_from(high).ok().filter(|high| low_ns <= *high)?;
    let estimate_ns = estimate_ns.max(0).unsigned_abs().clamp(low_ns, high_ns);
    Some(MeasuredLatency { estimate_ns, low_ns, high_ns })
}

/// Half of the round trip, in which no clock's offset is: the true one-way delay is between zero and
/// all of it.
fn half(round_trip: &Series) -> Option<MeasuredLatency> {
    let median = round_trip.median?;
    let high_ns = u64::try_from(median.high_ns?).ok()?;
    let estimate_ns = (median.estimate_ns.max(0).unsigned_abs() / 2).min(high_ns);
    Some(MeasuredLatency { estimate_ns, low_ns: 0, high_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: &str = r#"
        [[test]]
        name = "mesh"
        what = "owd"
        mesh = ["alfa", "bravo", "carol"]
        interval = "1m"
        [[measured]]
        station = "bravo"
        from = "10.0.0.1"
        to = "10.0.0.2"
    "#;

    fn config(more: &str) -> Config {
        Config {
            node: "alfa".into(),
            state: "/nowhere".into(),
            probe: toml::from_str(&format!("{MEASURED}{more}")).unwrap(),
        }
    }

    fn series(sent: u64, lost: u64, estimate_ns: i64, error: Option<i64>) -> Series {
        let median = Bounded {
            estimate_ns,
            low_ns: error.map(|error| estimate_ns - error),
            high_ns: error.map(|error| estimate_ns + error),
        };
        Series { sent, lost, median: (sent > lost).then_some(median), ..Series::default() }
    }

    fn record(to: &str, test: &str, delay: Delay) -> Record {
        Record {
            at_ns: 0,
            lasted_ns: 1,
            from: "alfa".into(),
            to: to.into(),
            test: test.into(),
            figures: Figures::Delay(delay),
        }
    }

    fn reported(config: &Config, record: &Record) -> Vec<MeasuredLink> {
        let links = Links::default();
        let mut receiver = links.follow();
        links.report(config, record);
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    fn latency(estimate_ns: u64, low_ns: u64, high_ns: u64) -> Option<MeasuredLatency> {
        Some(MeasuredLatency { estimate_ns, low_ns, high_ns })
    }

    #[test]
    fn both_directions_are_reported_with_their_bounds_and_losses() {
        let delay = Delay {
            forward: Some(series(10, 1, 5_000, Some(300))),
            reverse: Some(series(9, 0, -100, Some(400))),
            counted: true,
            round_trip: series(10, 1, 4_900, Some(1)),
        };
        let reported = reported(&config("both = true"), &record("bravo", "mesh", delay));
        let [forward, reverse] = &reported[..] else { panic!("{reported:?}") };
        assert_eq!(
            (forward.from.to_string(), forward.to.to_string()),
            ("10.0.0.1".into(), "10.0.0.2".into())
        );
        assert_eq!((forward.latency, forward.loss), (latency(5_000, 4_700, 5_300), Some(0.1)));
        assert_eq!((forward.packets, forward.holds), (10, Duration::from_secs(180)));
        assert_eq!((reverse.from, reverse.to), (forward.to, forward.from));
        // A delay is not negative.
        assert_eq!((reverse.latency, reverse.loss), (latency(0, 0, 300), Some(0.0)));
    }

    #[test]
    fn where_clocks_promise_nothing_or_too_little_half_of_the_round_trip_is_reported() {
        let round_trip = series(10, 2, 5_000, Some(100));
        // Not known; known worse than by the round trip; a promise that was not kept.
        for forward in [
            series(8, 0, 77_000_000, None),
            series(8, 0, 2_000, Some(9_000)),
            series(8, 0, -2_000, Some(10)),
        ] {
            let delay = Delay {
                forward: Some(forward),
                round_trip: round_trip.clone(),
                ..Delay::default()
            };
            let reported = reported(&config(""), &record("bravo", "mesh", delay));
            let [forward] = &reported[..] else { panic!("{reported:?}") };
            assert_eq!((forward.latency, forward.loss), (latency(2_500, 0, 5_100), Some(0.2)));
        }
    }

    #[test]
    fn what_has_no_bound_at_all_is_no_latency() {
        let delay = Delay {
            forward: Some(series(8, 0, 5_000, None)),
            round_trip: series(8, 0, 5_000, None),
            ..Delay::default()
        };
        let reported = reported(&config(""), &record("bravo", "mesh", delay));
        assert_eq!((reported[0].latency, reported[0].loss), (None, Some(0.0)));
    }

    #[test]
    fn of_other_stations_and_on_request_nothing_is_reported_and_of_silence_only_the_loss() {
        let silence = Delay { round_trip: series(10, 10, 0, None), ..Delay::default() };
        let config = config("");
        assert_eq!(reported(&config, &record("carol", "mesh", silence.clone())), []);
        assert_eq!(reported(&config, &record("bravo", "request", silence.clone())), []);
        let reported = reported(&config, &record("bravo", "mesh", silence));
        assert_eq!((reported[0].latency, reported[0].loss), (None, Some(1.0)));
    }
}
