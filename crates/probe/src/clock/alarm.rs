//! Why this station cannot promise what it is to promise of its clock, in sentences for people.

use super::ntp::Sample;
use crate::{interval::MaximumError, record, status::duration};
use std::{net::IpAddr, time::Duration};

/// What is wrong, a sentence each; nothing is when no limit is to be kept.
pub(super) fn problems<'a>(
    limit: Option<Duration>,
    clock: &record::Clock,
    now: MaximumError,
    servers: impl Iterator<Item = (IpAddr, &'a Sample)>,
) -> Vec<String> {
    let Some(limit) = limit else { return Vec::new() };
    let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let mut problems = Vec::new();
    match now.nanoseconds {
        None => problems.push(format!(
            "clock: {} gives no maximum error, so the error is unbounded, and probe.clock.limit is {}{}",
            clock.source,
            duration(limit_ns),
            past(clock, "it was last set")
        )),
        Some(error_ns) if error_ns > limit_ns => problems.push(format!(
            "clock: the maximum error is {}, and probe.clock.limit is {}{}",
            duration(error_ns),
            duration(limit_ns),
            if clock.holdover { past(clock, "it runs on by itself, last set") } else { String::new() }
        )),
        Some(_) => {}
    }
    problems.extend(servers.filter_map(|(address, sample)| contradiction(address, sample, now)));
    problems
}

/// The difference of two clocks is at most the sum of what both may be off.
fn contradiction(address: IpAddr, sample: &Sample, now: MaximumError) -> Option<String> {
    let allowed_ns = now.plus(sample.error).nanoseconds?;
    let (low, high) = sample.offset.low_ns.zip(sample.offset.high_ns)?;
    // The least that the clocks can be apart.
    let apart_ns = low.max(high.saturating_neg()).max(0).unsigned_abs();
    (apart_ns > allowed_ns).then(|| {
        format!(
            "clock: this station's and that of NTP server {address} are at least {} apart, and by their \
             maximum errors at most {}: one of them is worse than it reports",
            duration(apart_ns),
            duration(allowed_ns)
        )
    })
}

fn past(clock: &record::Clock, what: &str) -> String {
    clock.since_update_seconds.map_or_else(String::new, |s| format!("; {what} {s:.0} s ago"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::ntp::packet::{Reply, Timestamp},
        interval::Interval,
    };

    const LIMIT: Option<Duration> = Some(Duration::from_millis(1));

    fn clock() -> record::Clock {
        record::Clock {
            source: "chrony".into(),
            since_update_seconds: Some(75.0),
            holdover: true,
            ..record::Clock::default()
        }
    }

    fn none() -> std::iter::Empty<(IpAddr, &'static Sample)> {
        std::iter::empty()
    }

    #[test]
    fn without_a_limit_and_within_it_nothing_is_wrong() {
        assert_eq!(problems(None, &clock(), MaximumError::UNKNOWN, none()), [""; 0]);
        assert_eq!(problems(LIMIT, &clock(), MaximumError::known(1_000_000), none()), [""; 0]);
    }

    #[test]
    fn a_bound_that_cannot_be_kept_is_reported() {
        assert_eq!(
            problems(LIMIT, &clock(), MaximumError::known(1_500_000), none()),
            [
                "clock: the maximum error is 1.5 ms, and probe.clock.limit is 1.0 ms; it runs on by itself, last \
              set 75 s ago"
            ]
        );
        assert_eq!(
            problems(LIMIT, &clock(), MaximumError::UNKNOWN, none()),
            [
                "clock: chrony gives no maximum error, so the error is unbounded, and probe.clock.limit is \
              1.0 ms; it was last set 75 s ago"
            ]
        );
    }

    #[test]
    fn a_server_that_both_errors_do_not_explain_is_named() {
        let reply = Reply {
            leap: 0,
            stratum: 1,
            precision: -20,
            root_delay_ns: 0,
            root_dispersion_ns: 0,
            reference: *b"GPS\0",
            set: Timestamp(1),
            received: Timestamp(1),
            sent: Timestamp(1),
        };
        let sample = |offset_ns| Sample {
            offset: Interval::within(offset_ns, MaximumError::known(100_000)),
            delay_ns: 200_000,
            error: MaximumError::known(50_000),
            reply,
            since_update_ns: 0,
        };
        let reported = |offset_ns| {
            let (sample, address) = (sample(offset_ns), "192.0.2.1".parse().unwrap());
            problems(LIMIT, &clock(), MaximumError::known(20_000), [(address, &sample)].into_iter())
        };
        assert_eq!(reported(170_000), [""; 0]);
        assert_eq!(reported(-170_000), [""; 0]);
        for offset_ns in [-180_000, 180_000] {
            assert_eq!(
                reported(offset_ns),
                [
                    "clock: this station's and that of NTP server 192.0.2.1 are at least 80.0 us apart, and by \
                  their maximum errors at most 70.0 us: one of them is worse than it reports"
                ]
            );
        }
    }
}
