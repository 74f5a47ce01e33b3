//! What the kernel knows of its clock (adjtimex(2)): the maximum error that a daemon told it, grown since.
//!
//! The kernel adds 500 microseconds to its maximum error at the beginning of each of the clock's seconds
//! (`second_overflow` in ntp.c), and gives up at 16 seconds. Within a second its figure stands still,
//! so the part of the second that has passed is added here: with it the error is never less than what
//! 500 parts per million make of the time since the daemon set it.

use super::Reading;
use crate::{
    interval::{RATE_PPM, drift_ns},
    record,
};
use datapath::timex::{self, Timex};
use std::io;

/// What the kernel says now.
///
/// # Errors
///
/// The kernel's.
pub fn read() -> io::Result<Reading> {
    let clock = timex::read().map(state)?;
    Ok(Reading { clock, rate_ppm: RATE_PPM })
}

fn state(timex: Timex) -> record::Clock {
    let known = !timex.unsynchronised;
    let nanoseconds = |microseconds: u64| microseconds.saturating_mul(1000);
    record::Clock {
        source: "kernel".into(),
        // What is to be added to the clock is what it is behind.
        offset_ns: known.then(|| timex.offset_ns.saturating_neg()),
        estimated_error_ns: known.then(|| nanoseconds(timex.estimated_error_us)),
        maximum_error_ns: known.then(|| {
            nanoseconds(timex.maximum_error_us).saturating_add(drift_ns(timex.subsecond_ns.into()))
        }),
        frequency_ppb: Some(timex.frequency_ppb),
        ..record::Clock::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: Timex = Timex {
        unsynchronised: false,
        offset_ns: 1500,
        frequency_ppb: -12_345,
        tick_us: 10_000,
        maximum_error_us: 2_500,
        estimated_error_us: 40,
        subsecond_ns: 0,
    };

    #[test]
    fn errors_are_what_the_kernel_says() {
        let state = state(SET);
        assert_eq!(state.offset_ns, Some(-1500));
        assert_eq!(state.maximum_error_ns, Some(2_500_000));
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

    /// A daemon sets the error somewhere in a second; the kernel adds 500 microseconds when one begins.
    #[test]
    fn the_error_is_never_less_than_500_ppm_make_of_it() {
        for set_ns in (0..1_000_000_000u64).step_by(90_909_091) {
            for now_ns in (set_ns..4_000_000_000).step_by(123_456_789) {
                let seconds = now_ns / 1_000_000_000;
                let timex = Timex {
                    maximum_error_us: 100 + 500 * seconds,
                    subsecond_ns: (now_ns % 1_000_000_000) as u32,
                    ..SET
                };
                let true_growth = (now_ns - set_ns).div_ceil(2000);
                let error = state(timex).maximum_error_ns;
                assert!(
                    error >= Some(100_000 + true_growth),
                    "set {set_ns}, now {now_ns}: {error:?}"
                );
            }
        }
    }
}
