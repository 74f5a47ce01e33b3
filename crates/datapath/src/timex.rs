//! What the kernel says of its clock: adjtimex(2), asked and never set.

use std::{io, mem::MaybeUninit};

/// The kernel's view of its clock at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timex {
    /// Nobody sets the clock, or nobody has for so long that the kernel's error reached its limit of
    /// 16 seconds (STA_UNSYNC); the errors below mean nothing then.
    pub unsynchronised: bool,
    /// What is left of the last correction, to be added to the clock, in nanoseconds.
    pub offset_ns: i64,
    /// Correction of the clock's frequency, in parts per thousand million.
    pub frequency_ppb: i64,
    /// Microseconds that the clock advances at each of 100 ticks a second, 10,000 unless it is slewed.
    pub tick_us: i64,
    /// Largest error by the kernel's reckoning, in microseconds: that set by the daemon that sets the clock,
    /// and 500 more at the beginning of each second since.
    pub maximum_error_us: u64,
    /// Likely error, in microseconds, as set by the daemon.
    pub estimated_error_us: u64,
    /// Nanoseconds since the beginning of the clock's present second.
    pub subsecond_ns: u32,
}

/// Asks the kernel; needs no right.
///
/// # Errors
///
/// The kernel's, such as of a sandbox that forbids the call.
pub fn read() -> io::Result<Timex> {
    let mut timex = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: the struct is the kernel's own, zeroed: `modes` 0 asks and sets nothing.
    let state = unsafe { libc::adjtimex(timex.as_mut_ptr()) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all of it are integers, for which zeroes are values, and the kernel has written it.
    let timex = unsafe { timex.assume_init() };
    // Nanoseconds in `offset` and `time`, else microseconds.
    let scale = if timex.status & libc::STA_NANO != 0 { 1 } else { 1000 };
    Ok(Timex {
        unsynchronised: timex.status & libc::STA_UNSYNC != 0 || state == libc::TIME_ERROR,
        offset_ns: timex.offset.saturating_mul(scale),
        // Units of 2^-16 parts per million.
        frequency_ppb: timex.freq.saturating_mul(1000) >> 16,
        tick_us: timex.tick,
        maximum_error_us: u64::try_from(timex.maxerror).unwrap_or(0),
        estimated_error_us: u64::try_from(timex.esterror).unwrap_or(0),
        subsecond_ns: u32::try_from(timex.time.tv_usec.saturating_mul(scale)).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_answers_within_its_limits() {
        let timex = super::read().unwrap();
        // NTP_PHASE_LIMIT, MAXFREQ, and a tick within a tenth (ntp.c).
        assert!(timex.maximum_error_us <= 16_000_000, "{timex:?}");
        assert!(timex.frequency_ppb.abs() <= 500_000, "{timex:?}");
        assert!((9_000..=11_000).contains(&timex.tick_us), "{timex:?}");
        assert!(timex.subsecond_ns < 1_000_000_000, "{timex:?}");
    }
}
