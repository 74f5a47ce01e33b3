//! What the kernel knows of its clock (adjtimex(2)): the maximum error that a daemon set, grown since.
//!
//! The kernel adds 500 microseconds to its maximum error at the beginning of each of the clock's seconds
//! (`second_overflow` in ntp.c), and gives up at 16 seconds. Within a second its figure does not change,
//! so the part of the second that has passed is added here: with it the error is never less than what
//! 500 parts per million make of the time since the daemon set it.
//!
//! Not every daemon says a maximum error. systemd-timesyncd and phc2sys write nought each time, only so that
//! the kernel does not give up; grown by the rule that is a multiple of 500 microseconds, and such a figure
//! counts as not known, as does one that is less than the estimated error, or of a clock that is slewed faster
//! than the rule allows for. What is left of a correction is no part of the figure and is added to it.

use super::Reading;
use crate::{
    interval::{RATE_PPM, drift_ns},
    record,
};
use datapath::timex::{self, Timex};
use std::io;

/// Microseconds of a tick of a clock that is not slewed.
const TICK_US: i64 = 10_000;

/// What the kernel reports now.
///
/// # Errors
///
/// The kernel's.
pub fn read() -> io::Result<Reading> {
    timex::read().map(reading)
}

/// What this says of the clock.
pub fn reading(timex: Timex) -> Reading {
    let known = !timex.unsynchronised && is_plausible(&timex);
    let nanoseconds = |microseconds: u64| microseconds.saturating_mul(1000);
    let reported_ns = known.then(|| {
        nanoseconds(timex.maximum_error_us).saturating_add(drift_ns(timex.subsecond_ns.into()))
    });
    let clock = record::Clock {
        source: "kernel".into(),
        // What is to be added to the clock is what it is behind.
        offset_ns: known.then(|| timex.offset_ns.saturating_neg()),
        estimated_error_ns: known.then(|| nanoseconds(timex.estimated_error_us)),
        maximum_error_ns: reported_ns
            .map(|reported_ns| reported_ns.saturating_add(timex.offset_ns.unsigned_abs())),
        frequency_ppb: Some(timex.frequency_ppb),
        ..record::Clock::default()
    };
    Reading { clock, reported_ns, rate_ppm: RATE_PPM }
}

/// Whether the maximum error is one that somebody reckoned.
fn is_plausible(timex: &Timex) -> bool {
    // By the second, and what there is for a clock at its usual pace: a tick more or less is 100 ppm.
    const GROWTH_US: u64 = RATE_PPM;
    let slew_ppb = (timex.tick_us - TICK_US).saturating_mul(100_000);
    let pace_ppb = slew_ppb.saturating_add(timex.frequency_ppb).unsigned_abs();
    !timex.maximum_error_us.is_multiple_of(GROWTH_US)
        && timex.maximum_error_us >= timex.estimated_error_us
        && pace_ppb <= RATE_PPM * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: Timex = Timex {
        unsynchronised: false,
        offset_ns: 1500,
        frequency_ppb: -12_345,
        tick_us: 10_000,
        maximum_error_us: 2_400,
        estimated_error_us: 40,
        subsecond_ns: 0,
    };

    fn state(timex: Timex) -> record::Clock {
        reading(timex).clock
    }

    #[test]
    fn errors_are_what_the_kernel_says_and_what_is_yet_to_be_corrected() {
        for offset_ns in [1500, -1500] {
            let reading = reading(Timex { offset_ns, ..SET });
            assert_eq!(reading.reported_ns, Some(2_400_000));
            assert_eq!(reading.clock.maximum_error_ns, Some(2_401_500));
        }
        let state = state(SET);
        assert_eq!(state.offset_ns, Some(-1500));
        assert_eq!(state.estimated_error_ns, Some(40_000));
        assert_eq!(state.frequency_ppb, Some(-12_345));
    }

    #[test]
    fn a_clock_that_nobody_sets_promises_nothing() {
        let state = state(Timex { unsynchronised: true, ..SET });
        assert_eq!(
            (state.offset_ns, state.estimated_error_ns, state.maximum_error_ns),
            (None, None, None)
        );
        assert_eq!(state.frequency_ppb, Some(-12_345));
    }

    /// systemd-timesyncd, phc2sys, and a daemon that slews by the tick.
    #[test]
    fn an_error_that_nobody_reckoned_is_not_known() {
        let reported = |timex| state(timex).maximum_error_ns;
        assert!(reported(SET).is_some());
        for maximum_error_us in [0, 500, 32_000, 15_999_500] {
            assert_eq!(reported(Timex { maximum_error_us, estimated_error_us: 0, ..SET }), None);
        }
        assert_eq!(reported(Timex { estimated_error_us: 16_000_000, ..SET }), None);
        for (tick_us, frequency_ppb, known) in [
            (10_001, 0, true),
            (9_996, 0, true),
            (10_005, 1, false),
            (9_900, 0, false),
            (10_000, -500_000, true),
            (10_006, -200_000, true),
        ] {
            let timex = Timex { tick_us, frequency_ppb, ..SET };
            assert_eq!(reported(timex).is_some(), known, "{timex:?}");
        }
    }

    /// A daemon sets the error somewhere in a second; the kernel adds 500 microseconds when one begins.
    #[test]
    fn the_error_is_never_less_than_500_ppm_make_of_it() {
        for set_ns in (0..1_000_000_000u64).step_by(90_909_091) {
            for now_ns in (set_ns..4_000_000_000).step_by(123_456_789) {
                let seconds = now_ns / 1_000_000_000;
                let timex = Timex {
                    maximum_error_us: 101 + 500 * seconds,
                    subsecond_ns: (now_ns % 1_000_000_000) as u32,
                    offset_ns: 0,
                    ..SET
                };
                let true_growth = (now_ns - set_ns).div_ceil(2000);
                let error = state(timex).maximum_error_ns;
                assert!(
                    error >= Some(101_000 + true_growth),
                    "set {set_ns}, now {now_ns}: {error:?}"
                );
            }
        }
    }
}
