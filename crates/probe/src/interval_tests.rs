//! The interval has the true value in it, whatever the clocks do within their errors.

use super::*;
use proptest::prelude::*;

fn stamp(at_ns: i64, error: Option<u64>, uncertainty_ns: u64) -> Stamp {
    Stamp { at_ns, clock: MaximumError::of(error), uncertainty_ns }
}

/// A true moment, the clock's error and how far it is off within it, and the same of the timestamp.
fn reading() -> impl Strategy<Value = (i64, i64, u64, i64, u64)> {
    (0..4_000_000_000_000_000_000i64, 0..10_000_000_000u64, 0..1_000_000u64).prop_flat_map(
        |(moment, error, uncertainty)| {
            let off = -(error as i64)..=error as i64;
            let late = -(uncertainty as i64)..=uncertainty as i64;
            (Just(moment), off, Just(error), late, Just(uncertainty))
        },
    )
}

/// An interval and a true value in it.
fn interval() -> impl Strategy<Value = (Interval, i64)> {
    (-1_000_000..1_000_000i64, 0..1000i64, 0..1000i64, 0..4u8, 0..=2000i64).prop_map(
        |(low, below, above, bounds, rank)| {
            let high = low + below + above;
            let interval = Interval {
                estimate_ns: low + below,
                low_ns: (bounds & 1 == 0).then_some(low),
                high_ns: (bounds & 2 == 0).then_some(high),
            };
            let beyond = |known: bool| if known { 0 } else { 500 };
            let from = low - beyond(bounds & 1 == 0);
            let to = high + beyond(bounds & 2 == 0);
            (interval, from + rank * (to - from) / 2000)
        },
    )
}

proptest! {
    #[test]
    fn a_delay_lies_in_the_interval((sent, a, ea, la, ua) in reading(), (got, b, eb, lb, ub) in reading()) {
        let from = stamp(sent + a + la, Some(ea), ua);
        let to = stamp(got + b + lb, Some(eb), ub);
        let delay = Interval::between(from, to);
        prop_assert!(delay.contains(got - sent), "{delay:?}");
        prop_assert_eq!(delay.width_ns(), Some(2 * (ea + eb + ua + ub)));
        if got >= sent {
            let causal = delay.causal().unwrap();
            prop_assert!(causal.contains(got - sent) && causal.low_ns >= Some(0));
        }
    }

    #[test]
    fn one_clock_needs_only_its_rate(
        sent in 0..4_000_000_000_000_000_000i64,
        took in 0..100_000_000_000i64,
        ppb in -500_000..=500_000i64,
        (ua, ub) in (0..100_000u64, 0..100_000u64),
        late in 0..=1000i64,
    ) {
        let read = took + i64::try_from(i128::from(took) * i128::from(ppb) / 1_000_000_000).unwrap();
        let shift = (ub as i64) * late / 1000 - (ua as i64) * (1000 - late) / 1000;
        let elapsed =
            Interval::elapsed(stamp(sent, None, ua), stamp(sent + read + shift, None, ub));
        prop_assert!(elapsed.contains(took), "{elapsed:?}");
    }

    #[test]
    fn sums_and_differences_are_sound((a, x) in interval(), (b, y) in interval()) {
        prop_assert!(a.plus(b).contains(x + y));
        prop_assert!(a.minus(b).contains(x - y));
    }

    #[test]
    fn percentiles_are_sound(samples in prop::collection::vec(interval(), 1..60), share in 1..=100u64) {
        let (intervals, mut truth): (Vec<_>, Vec<_>) = samples.into_iter().unzip();
        truth.sort_unstable();
        let at = |numerator| truth[rank(truth.len() as u64, numerator, 100) as usize - 1];
        let stated = percentile(&intervals, share, 100).unwrap();
        prop_assert!(stated.contains(at(share)), "{stated:?}");
        prop_assert!(minimum(&intervals).unwrap().contains(truth[0]));
    }
}

#[test]
fn an_error_that_is_not_known_gives_no_bound_and_causality_none_either() {
    for (a, b) in [(None, Some(5)), (Some(5), None), (None, None)] {
        let delay = Interval::between(stamp(100, a, 0), stamp(90, b, 0));
        assert_eq!(delay, Interval::unbounded(-10));
        assert_eq!(delay.causal(), Ok(delay));
        assert_eq!(delay.width_ns(), None);
        let written = Bounded::from(delay);
        assert_eq!((written.estimate_ns, written.low_ns, written.high_ns), (-10, None, None));
    }
}

#[test]
fn what_the_one_clock_was_steered_is_in_the_interval_unless_its_errors_promise_more() {
    let at = |at_ns, error, steered: Option<(i64, i64)>| {
        let steered = steered.map(|(low_ns, high_ns)| Steered { low_ns, high_ns });
        Stamp { at_ns, clock: MaximumError { nanoseconds: error, steered }, uncertainty_ns: 0 }
    };
    let width = |error, steered| {
        let from = at(1_000, Some(50), Some((500, 520)));
        Interval::elapsed(from, at(1_000, error, steered)).width_ns()
    };
    // Twenty for what is not known of either reading, and one for the rate.
    assert_eq!(width(Some(1_050), Some((500, 520))), Some(2 * 21));
    assert_eq!(width(Some(1_050), Some((900, 920))), Some(2 * 421));
    assert_eq!(width(Some(1_050), Some((100, 120))), Some(2 * 421));
    // A step by a second: both errors are less.
    assert_eq!(width(Some(1_050), Some((1_000_000_000, 1_000_000_020))), Some(2_200));
    assert_eq!(width(None, None), None);
    assert_eq!(width(Some(7), None), Some(2 * 57));
    // A slew by a tenth, as chrony does: 100 microseconds of a millisecond.
    let slewed =
        Interval::elapsed(at(0, None, Some((0, 0))), at(1_100_000, None, Some((100_000, 100_000))));
    assert!(slewed.contains(1_000_000), "{slewed:?}");
}

#[test]
fn a_clock_that_broke_its_promise_is_found_out() {
    let delay = Interval::between(stamp(1000, Some(10), 0), stamp(900, Some(10), 0));
    assert_eq!(delay.causal(), Err(Contradiction { high_ns: -80 }));
    let near = Interval::between(stamp(1000, Some(60), 0), stamp(900, Some(60), 0));
    let causal = near.causal().unwrap();
    assert_eq!((causal.estimate_ns, causal.low_ns, causal.high_ns), (-100, Some(0), Some(20)));
}

#[test]
fn what_cannot_be_written_is_no_bound() {
    let delay = Interval::between(stamp(i64::MIN, Some(1), 0), stamp(i64::MAX, Some(1), 0));
    assert_eq!((delay.low_ns, delay.high_ns), (None, None));
    let wide = Interval::within(5, MaximumError::known(u64::MAX));
    assert_eq!((wide.low_ns, wide.high_ns), (None, None));
    let far = Interval { estimate_ns: i64::MAX, low_ns: Some(i64::MAX), high_ns: Some(i64::MAX) };
    assert_eq!(far.plus(far).high_ns, None);
    assert_eq!(MaximumError::known(u64::MAX).after(1), MaximumError::UNKNOWN);
    assert_eq!(MaximumError::known(7).after(1), MaximumError::known(8));
    assert_eq!(MaximumError::known(0).after(1_000_000_000), MaximumError::known(500_251));
}

#[test]
fn half_of_the_samples_without_a_bound_leave_the_median_without_one() {
    let known = Interval::within(100, MaximumError::known(10));
    let unknown = Interval::unbounded(100);
    let median = |intervals: &[Interval]| percentile(intervals, 50, 100).unwrap();
    // Wherever the unknown one lies, the second smallest is between the bounds of the others.
    assert_eq!(median(&[known, known, unknown]), known);
    let least = percentile(&[known, known, unknown], 1, 100).unwrap();
    assert_eq!((least.low_ns, least.high_ns), (None, Some(110)));
    assert_eq!(median(&[known, unknown, unknown]).width_ns(), None);
    assert_eq!(percentile(&[], 50, 100), None);
}

#[test]
fn ranks_are_the_nearest() {
    for (count, share, expected) in
        [(1, 50, 1), (2, 50, 1), (3, 50, 2), (100, 95, 95), (101, 95, 96), (10, 99, 10)]
    {
        assert_eq!(rank(count, share, 100), expected, "{share} of 100 of {count}");
    }
}
