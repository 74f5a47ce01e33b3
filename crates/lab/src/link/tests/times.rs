//! Rates to the nanosecond, and order where it is promised.

use super::*;
use proptest::prelude::*;

/// Packets: how long after the one before, and their bytes.
fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![Just(0), 1..1_000u64, 1..1_000_000u64];
    proptest::collection::vec((gap, 20..=65_535u32), 1..200)
}

/// The times at which all copies of all packets arrive, in the order of their offering.
fn arrivals(text: &str, packets: &[(u64, u32)]) -> Vec<Nanos> {
    let (settings, mut state, mut now) = (settings(text), LinkState::new(1, LinkId(2)), 0);
    let mut all = Vec::new();
    for (gap, length) in packets {
        now += gap;
        if let Outcome::Pass { at, copy, .. } = offer(&mut state, &settings, now, *length) {
            all.push(at);
            all.extend(copy);
        }
    }
    all
}

proptest! {
    /// While the transmitter is busy the n-th packet ends where the sum of all bytes says.
    #[test]
    fn the_rate_is_exact(
        rate in prop_oneof![1_000..1_000_000u64, 1_000_000..100_000_000_000u64, Just(3), Just(10u64.pow(15))],
        lengths in proptest::collection::vec(20..=65_535u32, 1..500),
    ) {
        let settings = settings(&format!("rate={rate}bit queue=1000p"));
        let (mut state, mut bits) = (LinkState::new(1, LinkId(1)), 0u128);
        for length in lengths {
            bits += u128::from(length + 14) * 8;
            let exact = bits * 1_000_000_000 / u128::from(rate);
            prop_assert_eq!(at(offer(&mut state, &settings, 0, length)).map(u128::from), Some(exact));
        }
    }

    /// Nothing overtakes anything: constant delay behind a rate, and any jitter that keeps order.
    #[test]
    fn order_is_kept(packets in packets()) {
        for text in [
            "delay=1ms rate=1Gbit queue=100p",
            "delay=1ms jitter=1ms,normal",
            "delay=1ms jitter=5ms,pareto rate=10Gbit duplicate=20%",
            "jitter=1ms,uniform,keep_order duplicate=20%",
        ] {
            let all = arrivals(text, &packets);
            prop_assert!(all.is_sorted(), "{}", text);
        }
    }

    /// Only those that were chosen are late: the others keep their order, also with jitter.
    #[test]
    fn the_others_are_not_held_back(packets in packets()) {
        let late = arrivals("delay=1ms jitter=1ms,normal reorder=10%,late=1s", &packets);
        let in_order: Vec<_> = late.into_iter().filter(|at| at.0 < 1_000_000_000).collect();
        prop_assert!(in_order.is_sorted());
    }
}

#[test]
fn jitter_without_order_reorders() {
    let packets = vec![(1_000, 100); 1_000];
    assert!(!arrivals("delay=1ms jitter=1ms,normal,reorder", &packets).is_sorted());
}

/// A packet that is late by 5 ms is overtaken by the five that come a millisecond apart behind it.
#[test]
fn a_late_packet_is_overtaken_by_those_within_its_lateness() {
    let packets = vec![(1_000_000, 100); 30];
    let all = arrivals("delay=10ms reorder=100%,late=5500us,gap=10", &packets);
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|n| all[*n]);
    assert_eq!(&order[..16], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 9, 15]);
}
