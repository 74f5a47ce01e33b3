//! The collector says what one says that keeps every packet.

use super::*;
use crate::interval;
use proptest::prelude::*;

/// The outcome of one packet.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Arrived(Interval, bool),
    Lost,
    LostAndLate,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let delay = (0..20_000_000i64, 0..100_000i64, 0..100_000i64, 0..8u8).prop_map(
        |(estimate_ns, below, above, bounds)| Interval {
            estimate_ns,
            low_ns: (bounds != 1).then_some((estimate_ns - below).max(0)),
            high_ns: (bounds != 2).then_some(estimate_ns + above),
        },
    );
    prop_oneof![
        8 => (delay, any::<bool>()).prop_map(|(delay, again)| Outcome::Arrived(delay, again)),
        1 => Just(Outcome::Lost),
        1 => Just(Outcome::LostAndLate),
    ]
}

/// Which packets arrive when: each is held back by less than half of what is remembered.
fn order(count: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..(NEIGHBOURS / 2), count).prop_map(|held| {
        let mut order: Vec<usize> = (0..held.len()).collect();
        order.sort_by_key(|index| index + held[*index]);
        order
    })
}

fn packets(most: usize) -> impl Strategy<Value = (Vec<Outcome>, Vec<usize>)> {
    prop::collection::vec(outcome(), 0..most).prop_flat_map(|outcomes| {
        let count = outcomes.len();
        (Just(outcomes), order(count))
    })
}

/// Feeds packets to the collector; RFC 4737: reordered is what has a smaller number than one before.
fn report(outcomes: &[Outcome], order: &[usize], first: u32) -> (Collector, Series) {
    let mut collector = Collector::default();
    let mut naive = Series { sent: outcomes.len() as u64, ..Series::default() };
    let mut next = 0;
    for index in order {
        match outcomes[*index] {
            Outcome::Arrived(delay, again) => {
                let reordered = *index < next;
                next = next.max(index + 1);
                collector.arrived(first.wrapping_add(*index as u32), delay, reordered);
                naive.reordered += u64::from(reordered);
                if again {
                    collector.duplicated();
                    naive.duplicated += 1;
                }
            }
            Outcome::Lost => {
                collector.lost();
                naive.lost += 1;
            }
            Outcome::LostAndLate => {
                collector.lost();
                collector.late();
                naive.lost += 1;
                naive.late += 1;
            }
        }
    }
    let delays: Vec<Interval> = outcomes.iter().filter_map(delay).collect();
    let estimates = || delays.iter().map(|delay| delay.estimate_ns);
    let percentile = |percent| interval::percentile(&delays, percent, 100).map(Bounded::from);
    naive.minimum = interval::minimum(&delays).map(Bounded::from);
    (naive.median, naive.p95, naive.p99) = (percentile(50), percentile(95), percentile(99));
    naive.maximum = percentile(100);
    naive.pdv_p99_ns = naive.p99.map(|p99| p99.estimate_ns.abs_diff(estimates().min().unwrap()));
    let steps: Vec<u64> = outcomes
        .windows(2)
        .filter_map(|pair| {
            Some(delay(&pair[0])?.estimate_ns.abs_diff(delay(&pair[1])?.estimate_ns))
        })
        .collect();
    naive.ipdv_mean_ns = steps.iter().sum::<u64>().checked_div(steps.len() as u64);
    (collector, naive)
}

fn delay(outcome: &Outcome) -> Option<Interval> {
    match outcome {
        Outcome::Arrived(delay, _) => Some(*delay),
        Outcome::Lost | Outcome::LostAndLate => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn few_packets_give_exact_figures((outcomes, order) in packets(400), first in any::<u32>()) {
        let (mut collector, naive) = report(&outcomes, &order, first);
        prop_assert_eq!(collector.take(), naive);
        prop_assert_eq!(collector.take(), Series::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn many_packets_give_figures_that_enclose_the_exact_ones((outcomes, order) in packets(8000)) {
        let (mut collector, naive) = report(&outcomes, &order, u32::MAX - 100);
        let series = collector.take();
        let counts = |series: &Series| {
            (series.sent, series.lost, series.late, series.duplicated, series.reordered)
        };
        prop_assert_eq!(counts(&series), counts(&naive));
        prop_assert_eq!(series.ipdv_mean_ns, naive.ipdv_mean_ns);
        prop_assert_eq!((series.minimum, series.maximum), (naive.minimum, naive.maximum));
        // Twenty milliseconds in 512 cells of a power of two.
        let cell = 65_536;
        for (stated, exact) in
            [(series.median, naive.median), (series.p95, naive.p95), (series.p99, naive.p99)]
        {
            let (Some(stated), Some(exact)) = (stated, exact) else {
                prop_assert_eq!(stated, exact);
                continue;
            };
            prop_assert_eq!(stated.low_ns.is_some(), exact.low_ns.is_some());
            prop_assert_eq!(stated.high_ns.is_some(), exact.high_ns.is_some());
            let low = exact.low_ns.zip(stated.low_ns).map(|(exact, stated)| exact - stated);
            let high = stated.high_ns.zip(exact.high_ns).map(|(stated, exact)| stated - exact);
            for wider in [low, high].into_iter().flatten() {
                prop_assert!((0..cell).contains(&wider), "{stated:?} {exact:?}");
            }
            prop_assert!(stated.estimate_ns.abs_diff(exact.estimate_ns) < cell as u64);
        }
    }
}

#[test]
fn a_delay_that_both_clocks_rule_out_counts_and_promises_nothing() {
    let mut collector = Collector::default();
    let broken = Interval { estimate_ns: -90, low_ns: Some(-100), high_ns: Some(-80) };
    collector.arrived(0, broken, false);
    let nothing = Bounded { estimate_ns: -90, low_ns: None, high_ns: None };
    let series = collector.take();
    assert_eq!((series.median, series.minimum), (Some(nothing), Some(nothing)));
    assert_eq!((series.contradicted, collector.take().contradicted), (1, 0));
}

#[test]
fn neighbours_meet_over_a_wrap_and_over_the_end_of_a_window() {
    let mut collector = Collector::default();
    collector.arrived(u32::MAX, Interval::unbounded(100), false);
    assert_eq!(collector.take().ipdv_mean_ns, None);
    collector.arrived(0, Interval::unbounded(130), false);
    collector.arrived(2, Interval::unbounded(500), false);
    assert_eq!(collector.take().ipdv_mean_ns, Some(30));
}
