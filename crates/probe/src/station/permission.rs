//! Who may ask what of a station, how long, how fast and how often.
//!
//! The rules as pure functions; they are applied to stations that are authenticated.

use super::{
    Reason,
    message::{DelayAsk, MAX_USES, Slot, ThroughputAsk},
};
use crate::config::{LONGEST_LEASE, LimitConfig, MIN_BANDWIDTH, Service, StationConfig, Transport};
use std::time::Duration;

/// What a throughput test may take beside its length, to begin and to end.
pub const GRACE: Duration = crate::config::OVERHEAD;
/// The time in which a bucket of requests or lines is full again.
pub const MINUTE: Duration = Duration::from_secs(60);
/// Longest name of a test.
const MAX_TEST: usize = 63;

/// Something is not permitted: why, and a sentence.
pub type Refusal = (Reason, String);

/// Whether a station may ask for a delay session.
///
/// # Errors
/// What is against it.
pub fn delay(
    asks: &StationConfig,
    limit: &LimitConfig,
    ask: &DelayAsk,
    has: usize,
) -> Result<(), Refusal> {
    service(asks, Service::Delay)?;
    if !asks.addresses.contains(&ask.from.ip()) || ask.from.port() == 0 {
        let text = format!("{} is not an address of {}", ask.from, asks.name);
        return Err((Reason::Address, text));
    }
    if !(1..=limit.rate).contains(&ask.rate) {
        let text = format!("{} packets a second; 1 to {} are permitted", ask.rate, limit.rate);
        return Err((Reason::TooFast, text));
    }
    // Of the longest test, whose last replies come after it.
    duration(ask.duration_ms, LONGEST_LEASE + GRACE)?;
    if has >= limit.sessions {
        let text = format!("{} has {has} delay sessions, the most at once", asks.name);
        return Err((Reason::TooMany, text));
    }
    Ok(())
}

/// Whether a station may ask for a throughput test.
///
/// # Errors
/// What is against it.
pub fn throughput(
    asks: &StationConfig,
    limit: &LimitConfig,
    ask: &ThroughputAsk,
) -> Result<(), Refusal> {
    let transport = match ask.transport {
        Transport::Iperf3 => Service::Iperf3,
        _ => Service::Throughput,
    };
    service(asks, transport)?;
    duration(ask.duration_ms, limit.duration)?;
    match ask.bandwidth {
        Some(bandwidth) if !(MIN_BANDWIDTH..=limit.bandwidth).contains(&bandwidth) => {
            let most = limit.bandwidth;
            let text = format!("{bandwidth}; {MIN_BANDWIDTH} to {most} are permitted");
            Err((Reason::TooFast, text))
        }
        _ => Ok(()),
    }
}

/// Whether a station may ask for a slot, where it has so many.
///
/// # Errors
/// What is against it.
pub fn slot(
    asks: &StationConfig,
    limit: &LimitConfig,
    duration_ms: u64,
    has: usize,
) -> Result<(), Refusal> {
    service(asks, Service::Slot)?;
    duration(duration_ms, LONGEST_LEASE)?;
    if has >= limit.sessions {
        let text = format!("{} has {has} slots, the most at once", asks.name);
        return Err((Reason::TooMany, text));
    }
    Ok(())
}

/// Whether a station may go on with a delay session.
///
/// # Errors
/// What is against it.
pub fn renewal(asks: &StationConfig, duration_ms: u64) -> Result<(), Refusal> {
    service(asks, Service::Delay)?;
    duration(duration_ms, LONGEST_LEASE)
}

/// Whether the words of a slot are within bounds.
///
/// # Errors
/// What is against it.
pub fn words(slot: &Slot) -> Result<(), Refusal> {
    let good = slot.test.len() <= MAX_TEST && slot.uses.len() <= MAX_USES;
    if good { Ok(()) } else { Err((Reason::Malformed, "too many or too long words".into())) }
}

/// Whether a time is permitted.
///
/// # Errors
/// It is not.
pub fn duration(duration_ms: u64, most: Duration) -> Result<(), Refusal> {
    let most_ms = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
    if (1..=most_ms).contains(&duration_ms) {
        return Ok(());
    }
    Err((Reason::TooLongTest, format!("{duration_ms} ms; 1 to {most_ms} are permitted")))
}

fn service(asks: &StationConfig, service: Service) -> Result<(), Refusal> {
    if asks.may.contains(&service) {
        return Ok(());
    }
    let what = match service {
        Service::Delay => "delay",
        Service::Throughput => "throughput",
        Service::Iperf3 => "iperf3",
        Service::Slot => "a slot",
    };
    Err((Reason::NotPermitted, format!("{} may not request {what} here", asks.name)))
}

/// A bucket that holds so much, and is full again after its period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    left: f64,
    at_ns: u64,
    period: Duration,
}

impl Bucket {
    /// A full one.
    pub fn new(most: f64, period: Duration, now_ns: u64) -> Self {
        Self { left: most, at_ns: now_ns, period }
    }

    /// Takes some out, if it is there.
    pub fn take(&mut self, some: f64, most: f64, now_ns: u64) -> bool {
        let passed = Duration::from_nanos(now_ns.saturating_sub(self.at_ns));
        self.left = (self.left + passed.div_duration_f64(self.period) * most).min(most);
        self.at_ns = now_ns.max(self.at_ns);
        let is_there = self.left >= some;
        if is_there {
            self.left -= some;
        }
        is_there
    }

    /// Puts back what was not used.
    pub fn put_back(&mut self, some: f64) {
        self.left += some;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Transport;

    fn station() -> StationConfig {
        StationConfig {
            name: "a".into(),
            addresses: vec!["192.0.2.1".parse().expect("an address")],
            control: None,
            may: vec![Service::Delay],
        }
    }

    fn ask(from: &str, rate: u32, duration_ms: u64) -> DelayAsk {
        let from = from.parse().expect("an address");
        DelayAsk { from, ssid: 1, rate, duration_ms, authenticated: false }
    }

    #[test]
    fn a_session_has_bounds() {
        let (station, limit) = (station(), LimitConfig::default());
        let asked = |from, rate, duration_ms, has| {
            let asked = delay(&station, &limit, &ask(from, rate, duration_ms), has);
            asked.err().map(|(reason, _)| reason)
        };
        assert_eq!(asked("192.0.2.1:9", 1000, 305_000, 7), None);
        assert_eq!(asked("192.0.2.2:9", 10, 1000, 0), Some(Reason::Address));
        assert_eq!(asked("192.0.2.1:0", 10, 1000, 0), Some(Reason::Address));
        assert_eq!(asked("192.0.2.1:9", 1001, 1000, 0), Some(Reason::TooFast));
        assert_eq!(asked("192.0.2.1:9", 0, 1000, 0), Some(Reason::TooFast));
        assert_eq!(asked("192.0.2.1:9", 10, 305_001, 0), Some(Reason::TooLongTest));
        assert_eq!(asked("192.0.2.1:9", 10, 0, 0), Some(Reason::TooLongTest));
        assert_eq!(asked("192.0.2.1:9", 10, 1000, 8), Some(Reason::TooMany));
        let bulk = ThroughputAsk {
            transport: Transport::Tcp,
            duration_ms: 1,
            bandwidth: None,
            ipv6: false,
        };
        let refused = throughput(&station, &limit, &bulk);
        assert_eq!(refused.err().map(|(reason, _)| reason), Some(Reason::NotPermitted));
        // A server that others steer must be permitted by its name.
        let station = StationConfig { may: vec![Service::Throughput], ..station };
        assert_eq!(throughput(&station, &limit, &bulk), Ok(()));
        let steered = ThroughputAsk { transport: Transport::Iperf3, ..bulk };
        let refused = throughput(&station, &limit, &steered);
        assert_eq!(refused.err().map(|(reason, _)| reason), Some(Reason::NotPermitted));
    }

    #[test]
    fn slots_are_a_right_and_have_bounds() {
        let limit = LimitConfig { duration: Duration::from_secs(3600), ..LimitConfig::default() };
        let asked = |station: &StationConfig, duration_ms, has| {
            slot(station, &limit, duration_ms, has).err().map(|(reason, _)| reason)
        };
        let without = station();
        assert_eq!(asked(&without, 1000, 0), Some(Reason::NotPermitted));
        let with = StationConfig { may: vec![Service::Slot], ..without };
        assert_eq!(asked(&with, 300_000, 7), None);
        assert_eq!(asked(&with, 300_001, 0), Some(Reason::TooLongTest));
        assert_eq!(asked(&with, 1000, 8), Some(Reason::TooMany));
        let renewed = |station| renewal(station, 1000).err().map(|(reason, _)| reason);
        assert_eq!(renewed(&with), Some(Reason::NotPermitted));
        assert_eq!(renewed(&station()), None);
    }

    #[test]
    fn requests_come_back_with_time() {
        let mut bucket = Bucket::new(60.0, Duration::from_secs(60), 0);
        let mut take = |now_ns| bucket.take(1.0, 60.0, now_ns);
        assert_eq!((0..100).filter(|_| take(0)).count(), 60);
        assert!(!take(900_000_000));
        assert!(take(2_000_000_000));
        assert!(take(2_000_000_000));
        assert!(!take(1_000_000_000), "a clock that steps back gives nothing");
        bucket.put_back(0.5);
        assert!(!bucket.take(0.6, 60.0, 2_000_000_000) && bucket.take(0.5, 60.0, 2_000_000_000));
    }
}
