//! Echo between namespaces.

use super::{anywhere, wait};
use probe::tools::{Context, Refusal, ping};
use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use testbed::pair_without_offloads;

fn quick() -> ping::Settings {
    let interval = Duration::from_millis(5);
    ping::Settings { count: 20, interval, ..ping::Settings::default() }
}

#[test]
fn every_request_is_answered_within_its_interval_by_ping_sockets_and_by_raw_ones() {
    let (left, _right) = pair_without_offloads().unwrap();
    for range in ["0 2147483647", "1 0"] {
        left.sysctl(&[("ipv4.ping_group_range", range)]).unwrap();
        for to in ["192.0.2.2", "2001:db8::2"] {
            let (settings, context) = (quick(), anywhere());
            let run = ping::run(to.parse().unwrap(), &settings, &context);
            let series = left.enter(|| wait(run)).unwrap();
            assert_eq!((series.sent, series.lost, series.duplicated), (20, 0, 0), "{to}");
            let all = [series.minimum, series.median, series.p95, series.p99, series.maximum];
            for trip in all.map(Option::unwrap) {
                let (low, high) = (trip.low_ns.unwrap(), trip.high_ns.unwrap());
                assert!(
                    0 <= low && low <= trip.estimate_ns && trip.estimate_ns <= high,
                    "{trip:?}"
                );
            }
            assert!(series.minimum.unwrap().estimate_ns > 0);
            assert_eq!(context.counters.refused(Refusal::Icmp), 0);
        }
    }
}

#[test]
fn who_does_not_answer_has_lost_everything() {
    let (left, right) = pair_without_offloads().unwrap();
    right.sysctl(&[("ipv4.icmp_echo_ignore_all", "1")]).unwrap();
    let settings = ping::Settings { count: 3, wait: Duration::from_millis(50), ..quick() };
    let context = anywhere();
    let run = ping::run("192.0.2.2".parse().unwrap(), &settings, &context);
    let series = left.enter(|| wait(run)).unwrap();
    assert_eq!((series.sent, series.lost, series.minimum), (3, 3, None));
    let run = ping::run("198.51.100.1".parse().unwrap(), &settings, &context);
    let error = left.enter(|| wait(run)).unwrap_err();
    assert!(matches!(error, ping::Error::Open { .. }), "no route: {error}");
}

#[test]
fn nothing_is_sent_to_who_did_not_agree() {
    let asked = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&asked);
    let never = move |_: IpAddr| {
        seen.fetch_add(1, Ordering::Relaxed);
        false
    };
    let context = Context::new(Arc::new(never));
    let error = wait(ping::run("127.0.0.1".parse().unwrap(), &quick(), &context)).unwrap_err();
    assert!(matches!(error, ping::Error::Forbidden(_)), "{error}");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}
