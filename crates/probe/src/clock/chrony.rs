//! What chrony knows of the clock, where it sets it: asked over its command port on loopback.
//!
//! The clock is at most |what is yet to be corrected| + root dispersion + half the root delay off (RFC 5905,
//! section 11.1: the root distance); chronyd makes the dispersion grow until the moment at which it answers.
//! A number of the protocol has 24 bits, so each is taken a little larger than it is there.
//!
//! Configured as a reference itself (`local`), chronyd reports that it is synchronised with no error at all; as
//! nobody knows how far such a clock is from true time, its errors count as not known.

pub mod packet;

use super::{
    Reading,
    ntp::packet::{LOCAL, reference_name},
};
use crate::{interval::RATE_PPM, record};
use packet::{AnswerError, Question, Source, Tracking};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::Duration,
};

/// Where chronyd takes questions unless it is configured otherwise.
pub const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 323);

/// chronyd answers from its event loop; it is not waited for longer.
const TIMEOUT: Duration = Duration::from_millis(300);

/// Sources that are looked through for the one that the clock follows.
const MOST_SOURCES: u32 = 64;

/// Frequency tolerance (RFC 5905, section 7.2, PHI).
const PHI_PPM: u64 = 15;

/// Without an update for so many times the last interval between two the reference is gone.
const MISSED_UPDATES: f64 = 8.0;
/// But not before so many seconds.
const HOLDOVER_S: f64 = 16.0;

/// chronyd's answer has nothing of use.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It cannot be asked, or does not answer.
    #[error("chronyd does not answer on {ADDRESS}: {0}")]
    Silent(#[from] io::Error),
    /// It answers otherwise than it should.
    #[error("chronyd on {ADDRESS}: {0}")]
    Answer(#[from] AnswerError),
}

impl AskError {
    /// Whether nobody is there: chrony does not run here.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Silent(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

/// Asks chronyd how good the clock is; `now_ns` is this clock's time since 1970.
///
/// # Errors
///
/// See [`AskError`].
pub fn read(now_ns: i64) -> Result<Reading, AskError> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(ADDRESS)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let tracking = ask(&socket, Question::Tracking, Tracking::parse)?;
    let count = ask(&socket, Question::SourceCount, Source::parse_count)?;
    let mut selected = None;
    for index in 0..count.min(MOST_SOURCES) {
        let source = ask(&socket, Question::Source(index), Source::parse)?;
        if source.selected {
            selected = Some(source);
            break;
        }
    }
    let clock = state(&tracking, selected, now_ns);
    Ok(Reading { reported_ns: clock.maximum_error_ns, clock, rate_ppm: rate_ppm(&tracking) })
}

fn ask<T>(
    socket: &UdpSocket,
    question: Question,
    parse: fn(&[u8], u32) -> Result<T, AnswerError>,
) -> Result<T, AskError> {
    let sequence = rand::random();
    socket.send(&question.emit(sequence))?;
    let mut buffer = [0; 1024];
    let length = socket.recv(&mut buffer)?;
    Ok(parse(&buffer[..length], sequence)?)
}

fn state(tracking: &Tracking, selected: Option<Source>, now_ns: i64) -> record::Clock {
    // RFC 5905, figure 9: leap indicator 3 is a clock that nobody sets.
    let set = tracking.leap != 3 && (1..16).contains(&tracking.stratum);
    let known = set && tracking.reference != LOCAL;
    let since_update_seconds =
        known.then(|| now_ns.saturating_sub(tracking.reference_ns).max(0) as f64 / 1e9);
    let allowance_s = (tracking.update_interval_s * MISSED_UPDATES).max(HOLDOVER_S);
    let silent = selected.is_none_or(|source| source.reach == 0);
    let error_s = tracking.correction_s.abs()
        + tracking.root_dispersion_s.abs()
        + tracking.root_delay_s.abs() / 2.0;
    record::Clock {
        source: "chrony".into(),
        // What is to be added to the clock is what it is behind.
        offset_ns: known.then(|| (-tracking.correction_s * 1e9) as i64),
        estimated_error_ns: known.then(|| upwards(tracking.rms_offset_s.abs())),
        maximum_error_ns: known.then(|| upwards(error_s)).filter(|_| error_s.is_finite()),
        stratum: if set { u8::try_from(tracking.stratum).ok() } else { None },
        reference: set.then(|| reference(tracking)),
        reach: selected.map(|source| source.reach),
        frequency_ppb: Some((tracking.frequency_ppm * 1000.0) as i64),
        since_update_seconds,
        holdover: since_update_seconds.is_some_and(|since| silent || since > allowance_s),
    }
}

/// How fast the error grows until chronyd is asked again: by the tolerance of a disciplined clock and what
/// chronyd does not know of its frequency.
fn rate_ppm(tracking: &Tracking) -> u64 {
    PHI_PPM.saturating_add(tracking.skew_ppm.abs().ceil() as u64).min(RATE_PPM)
}

/// Nanoseconds, not less than was meant.
fn upwards(seconds: f64) -> u64 {
    const COARSENESS: f64 = 1.0 / (1 << 22) as f64;
    (seconds * (1.0 + COARSENESS) * 1e9).ceil() as u64
}

fn reference(tracking: &Tracking) -> String {
    match tracking.address {
        Some(address) => address.to_string(),
        None if tracking.reference == LOCAL => "local".into(),
        None => reference_name(tracking.reference, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPS: Tracking = Tracking {
        reference: *b"GPS\0",
        address: None,
        stratum: 1,
        leap: 0,
        reference_ns: 1_000_000_000_000,
        correction_s: -0.000_002,
        rms_offset_s: 0.000_001,
        frequency_ppm: -1.5,
        skew_ppm: 0.01,
        root_delay_s: 0.000_004,
        root_dispersion_s: 0.000_010,
        update_interval_s: 16.0,
    };
    const REACHED: Option<Source> = Some(Source { selected: true, reach: 0o377 });

    #[test]
    fn the_maximum_error_is_the_root_distance_and_what_is_to_be_corrected() {
        let clock = state(&GPS, REACHED, 1_010_000_000_000);
        assert_eq!(clock.offset_ns, Some(2000));
        let error = clock.maximum_error_ns.unwrap();
        assert!((14_000..=14_001).contains(&error), "{error}");
        assert_eq!(clock.estimated_error_ns, Some(1001));
        assert_eq!((clock.stratum, clock.reference.as_deref()), (Some(1), Some("GPS")));
        assert_eq!((clock.frequency_ppb, clock.reach), (Some(-1500), Some(0o377)));
        assert_eq!((clock.since_update_seconds, clock.holdover), (Some(10.0), false));
    }

    #[test]
    fn the_error_grows_by_tolerance_and_skew() {
        for (skew_ppm, rate) in [(0.01, 16), (-3.2, 19), (1e9, 500), (f64::NAN, 15)] {
            assert_eq!(rate_ppm(&Tracking { skew_ppm, ..GPS }), rate);
        }
    }

    #[test]
    fn a_reference_that_is_silent_or_long_gone_leaves_the_clock_to_itself() {
        let silent = Some(Source { selected: true, reach: 0 });
        assert!(state(&GPS, silent, 1_010_000_000_000).holdover);
        assert!(!state(&GPS, REACHED, 1_100_000_000_000).holdover);
        assert!(state(&GPS, REACHED, 1_200_000_000_000).holdover);
        assert!(state(&GPS, None, 1_010_000_000_000).holdover, "no source is selected any more");
    }

    #[test]
    fn a_clock_that_follows_itself_promises_nothing() {
        let clock = state(&Tracking { reference: LOCAL, stratum: 8, ..GPS }, None, 0);
        assert_eq!((clock.stratum, clock.reference.as_deref()), (Some(8), Some("local")));
        assert_eq!((clock.maximum_error_ns, clock.holdover), (None, false));
    }

    #[test]
    fn a_clock_that_is_not_synchronised_promises_nothing() {
        for tracking in [Tracking { leap: 3, ..GPS }, Tracking { stratum: 0, ..GPS }] {
            let clock = state(&tracking, None, 0);
            assert_eq!(
                (clock.offset_ns, clock.maximum_error_ns, clock.stratum),
                (None, None, None)
            );
            assert_eq!((clock.reference, clock.holdover), (None, false));
        }
    }
}
