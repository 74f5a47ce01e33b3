//! A sender and a reflector, with a clock each and a network between them that does what the test says.

use super::*;
use crate::stamp::reflector::{Rate, Reflector, SessionConfig};

/// 2026-01-01.
const BEGIN: u64 = 1_767_225_600_000_000_000;
const MS: u64 = 1_000_000;
const SENDER: &str = "192.0.2.1:5000";

/// Two ends. Time is true time since the beginning; their clocks are off by so much.
struct Ends {
    sender: Sender,
    reflector: Reflector,
    ours_off: i64,
    theirs_off: i64,
    ours: MaximumError,
    theirs: MaximumError,
    events: Vec<Event>,
}

impl Ends {
    fn new(settings: Settings) -> Self {
        let mut reflector = Reflector::default();
        reflector.admit(SessionConfig {
            address: "192.0.2.1".parse().unwrap(),
            port: None,
            ssid: None,
            key: settings.key.clone(),
            extensions: true,
            rate: Rate { per_second: 1_000_000, burst: 1000 },
        });
        let (ours, theirs) = (MaximumError::known(MS), MaximumError::known(2 * MS));
        let sender = Sender::new(settings);
        Self { sender, reflector, ours_off: 0, theirs_off: 0, ours, theirs, events: Vec::new() }
    }

    fn ours(&self, at: u64) -> u64 {
        (BEGIN + at).wrapping_add_signed(self.ours_off)
    }

    fn theirs(&self, at: u64) -> u64 {
        (BEGIN + at).wrapping_add_signed(self.theirs_off)
    }

    /// A test packet that the kernel sends 10 microseconds after it got it.
    fn send(&mut self, at: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let now = Reading { ns: self.ours(at), error: self.ours };
        let sequence = self.sender.next(now, at, &mut bytes);
        let left = self.ours(at + 10_000);
        self.sender.left(sequence, left, self.ours, |event| self.events.push(event));
        bytes
    }

    /// Its reflection: received at this time, given to the kernel a millisecond later, sent 20
    /// microseconds after that.
    fn reflect(&mut self, bytes: &[u8], at: u64) -> Vec<u8> {
        let arrival = Arrival {
            bytes,
            from: SENDER.parse().unwrap(),
            at_ns: self.theirs(at),
            ttl: 61,
            traffic_class: 0,
        };
        let now = Reading { ns: self.theirs(at + MS), error: self.theirs };
        let mut reply = Vec::new();
        let answered = self.reflector.answer(&arrival, || now, &mut reply).unwrap();
        let left = self.theirs(at + MS + 20_000);
        self.reflector.left(&answered.session, answered.sequence, left);
        reply
    }

    fn receive(&mut self, bytes: &[u8], at: u64) -> Result<(), Refused> {
        let arrival = Arrival {
            bytes,
            from: SENDER.parse().unwrap(),
            at_ns: self.ours(at),
            ttl: 61,
            traffic_class: 0,
        };
        self.sender.receive(&arrival, self.ours, |event| self.events.push(event))
    }

    /// A packet that comes back: 3 ms forward, 5 ms reverse.
    fn round(&mut self, at: u64) {
        let bytes = self.send(at);
        let reply = self.reflect(&bytes, at + 10_000 + 3 * MS);
        self.receive(&reply, at + 10_000 + 3 * MS + MS + 20_000 + 5 * MS).unwrap();
    }

    fn settle(&mut self, at: u64) -> Vec<Event> {
        self.sender.settle(at, |event| self.events.push(event));
        std::mem::take(&mut self.events)
    }

    fn samples(&mut self, at: u64) -> Vec<Sample> {
        let sample = |event| match event {
            Event::Arrived(sample) => Some(sample),
            _ => None,
        };
        self.settle(at).into_iter().filter_map(sample).collect()
    }
}

fn plain() -> Settings {
    Settings { ask: Ask::default(), ..Settings::default() }
}

#[test]
fn both_kernels_times_give_the_true_delays() {
    for key in [None, Key::new(&[6; 16])] {
        let mut ends = Ends::new(Settings { key, ..Settings::default() });
        ends.round(0);
        // The kernel's time of the first reply is not known yet.
        assert_eq!(ends.events, []);
        ends.round(100 * MS);
        let samples = ends.samples(0);
        assert_eq!(samples.len(), 1);
        let sample = samples[0];
        assert_eq!((sample.sequence, sample.ttl), (0, 61));
        assert!(sample.kernel_sent && sample.kernel_left);
        let (forward, reverse) = (sample.forward.unwrap(), sample.reverse.unwrap());
        assert_eq!(forward.estimate_ns, 3 * MS as i64);
        assert_eq!(reverse.estimate_ns, 5 * MS as i64);
        assert_eq!(sample.round_trip.estimate_ns, 8 * MS as i64);
        // Three milliseconds of both clocks' errors, rounded up in theirs.
        let width = forward.width_ns().unwrap();
        assert!((6 * MS..6 * MS + MS / 10).contains(&width), "{width}");
        // The last packet is reported when its time is over, by the reflector's own time.
        let last = ends.samples(3_000_000_000)[0];
        assert!(last.kernel_sent && !last.kernel_left);
        assert_eq!(last.reverse.unwrap().estimate_ns, 5_020_000);
    }
}

#[test]
fn offsets_within_the_errors_leave_the_truth_in_the_interval() {
    for (ours_off, theirs_off) in [(MS, -2 * MS as i64), (MS, 2 * MS as i64)] {
        let mut ends = Ends::new(Settings::default());
        (ends.ours_off, ends.theirs_off) = (-(ours_off as i64), theirs_off);
        ends.round(0);
        ends.round(100 * MS);
        let sample = ends.samples(0)[0];
        assert!(sample.forward.unwrap().contains(3 * MS as i64));
        assert!(sample.reverse.unwrap().contains(5 * MS as i64));
        assert!(sample.round_trip.contains(8 * MS as i64));
        assert!(sample.round_trip.width_ns().unwrap() < 50_000);
    }
}

#[test]
fn an_unknown_clock_bounds_nothing() {
    let mut ends = Ends::new(plain());
    ends.theirs = MaximumError::UNKNOWN;
    ends.round(0);
    let sample = ends.samples(0)[0];
    assert_eq!((sample.forward.unwrap().low_ns, sample.reverse.unwrap().high_ns), (None, None));
    assert!(sample.round_trip.low_ns.is_some());
}

#[test]
fn losses_are_reported_by_direction() {
    let mut ends = Ends::new(plain());
    let mut lost = Vec::new();
    // Of ten packets, 2 and 5 do not arrive, the replies to 3 and 6 do not, and 9 is open.
    for number in 0..10 {
        let at = number * 10 * MS;
        let bytes = ends.send(at);
        if [2, 5].contains(&number) {
            continue;
        }
        let reply = ends.reflect(&bytes, at + MS);
        if ![3, 6, 9].contains(&number) {
            ends.receive(&reply, at + 2 * MS).unwrap();
        }
    }
    for event in ends.settle(5_000 * MS) {
        if let Event::Lost { sequence, direction, .. } = event {
            lost.push((sequence, direction));
        }
    }
    use Direction::{Forward, Reverse};
    let expected =
        [(2, Some(Forward)), (3, Some(Reverse)), (5, Some(Forward)), (6, Some(Reverse)), (9, None)];
    assert_eq!(lost, expected);
    assert_eq!(ends.sender.settle_at_ns(), None);
}

/// Whoever looks through all packets in flight for each of them does not come to an end here.
#[test]
fn an_outage_of_many_packets_is_reported_in_the_time_that_they_take() {
    const MANY: u64 = 300_000;
    let mut ends = Ends::new(plain());
    ends.round(0);
    let mut bytes = Vec::new();
    for number in 0..MANY {
        let now = Reading { ns: ends.ours(MS + number), error: ends.ours };
        ends.sender.next(now, MS + number, &mut bytes);
    }
    // Only the last one is answered, and then all are lost on the forward path.
    ends.round(2 * MS);
    let events = ends.settle(5_000 * MS);
    let lost =
        |event: &&Event| matches!(event, Event::Lost { direction: Some(Direction::Forward), .. });
    assert_eq!(events.iter().filter(lost).count() as u64, MANY);
    assert_eq!(events.len() as u64, MANY + 2);
}

#[test]
fn losses_before_the_first_reply_and_with_a_stateless_reflector() {
    let mut ends = Ends::new(plain());
    ends.send(0);
    ends.round(MS);
    let direction = |events: Vec<Event>| match events.last() {
        Some(Event::Lost { direction, .. }) => *direction,
        other => panic!("{other:?}"),
    };
    assert_eq!(direction(ends.settle(2000 * MS)), Some(Direction::Forward));
    let mut ends = Ends::new(Settings { peer: Peer::Stateless, ..plain() });
    ends.send(0);
    ends.round(MS);
    assert_eq!(direction(ends.settle(2000 * MS)), None);
}

#[test]
fn duplicates_are_reported_by_direction() {
    let mut ends = Ends::new(plain());
    let bytes = ends.send(0);
    let reply = ends.reflect(&bytes, MS);
    let doubled = ends.reflect(&bytes, MS);
    for one in [&reply, &doubled, &reply] {
        ends.receive(one, 3 * MS).unwrap();
    }
    let events = ends.settle(0);
    assert_eq!(events.len(), 3);
    assert_eq!(events[1], Event::Duplicate { sequence: 0, direction: Some(Direction::Forward) });
    assert_eq!(events[2], Event::Duplicate { sequence: 0, direction: Some(Direction::Reverse) });
    assert!(ends.settle(5000 * MS).is_empty());
}

#[test]
fn reordering_is_reported_by_direction() {
    let mut ends = Ends::new(plain());
    let tests: Vec<_> = (0..5).map(|number| ends.send(number * MS)).collect();
    // 1 and 2 change order on the forward path; the replies to 3 and 4 on the reverse path.
    let replies: Vec<_> =
        [0, 2, 1, 3, 4].iter().map(|at| ends.reflect(&tests[*at], 10 * MS)).collect();
    for at in [0, 1, 2, 4, 3] {
        ends.receive(&replies[at], 20 * MS).unwrap();
    }
    let orders: Vec<_> = ends
        .samples(0)
        .iter()
        .map(|one| (one.sequence, one.reordered_forward, one.reordered_reverse, one.reordered))
        .collect();
    let right = Some(false);
    assert_eq!(
        orders,
        [
            (0, right, right, false),
            (2, right, right, false),
            (1, Some(true), right, true),
            (4, right, right, false),
            (3, right, Some(true), true),
        ]
    );
}

#[test]
fn what_nobody_asked_for_is_refused() {
    let key = Key::new(&[6; 16]);
    let mut ends = Ends::new(Settings { key, ssid: 7, ssid_needed: true, ..plain() });
    let bytes = ends.send(0);
    let reply = ends.reflect(&bytes, MS);
    assert_eq!(ends.receive(&reply[..111], 2 * MS), Err(Refused::TooShort));
    let mut spoilt = reply.clone();
    spoilt[20] ^= 1;
    assert_eq!(ends.receive(&spoilt, 2 * MS), Err(Refused::NotAuthentic));
    let other = |change: fn(&mut Reflected)| {
        let mut packet = Reflected::parse(&reply, Key::new(&[6; 16]).as_ref()).unwrap();
        change(&mut packet);
        let mut bytes = Vec::new();
        packet.emit(Key::new(&[6; 16]).as_ref(), &mut bytes);
        bytes
    };
    let mut refused = |change| ends.receive(&other(change), 2 * MS).unwrap_err();
    assert_eq!(refused(|packet| packet.sender_sequence = 1), Refused::Unexpected);
    assert_eq!(refused(|packet| packet.sender_sequence = u32::MAX), Refused::Unexpected);
    assert_eq!(refused(|packet| packet.sender_timestamp.0 += 1), Refused::Altered);
    assert_eq!(refused(|packet| packet.ssid = 0), Refused::Altered);
    assert_eq!(refused(|packet| packet.error.0 &= 0xff00), Refused::Corrupt);
    ends.receive(&reply, 2 * MS).unwrap();
    assert_eq!(ends.sender.refusals().total(), 7);
}

#[test]
fn a_reply_after_the_time_limit_is_late_once_and_then_a_duplicate() {
    let mut ends = Ends::new(plain());
    let bytes: Vec<_> = (0..200).map(|number| ends.send(number)).collect();
    let reply = |ends: &mut Ends, number: usize| ends.reflect(&bytes[number], MS);
    let (early, first) = (reply(&mut ends, 0), reply(&mut ends, 198));
    ends.receive(&first, 2 * MS).unwrap();
    ends.settle(5000 * MS);
    let late = reply(&mut ends, 199);
    for bytes in [&late, &late, &first] {
        ends.receive(bytes, 5000 * MS).unwrap();
    }
    assert_eq!(
        ends.settle(5000 * MS),
        [
            Event::Late { sequence: 199 },
            Event::Duplicate { sequence: 199, direction: None },
            Event::Duplicate { sequence: 198, direction: None },
        ]
    );
    // So late that nobody remembers.
    assert_eq!(ends.receive(&early, 5000 * MS), Err(Refused::Unexpected));
}

#[test]
fn a_responder_of_twamp_light_is_understood() {
    // RFC 5357, section 4.2.1: 41 bytes, an Error Estimate that it leaves at zero, numbers copied.
    let mut ends = Ends::new(Settings { peer: Peer::TwampLight, ..plain() });
    let bytes = ends.send(0);
    let mut reply = bytes[..14].to_vec();
    reply[4..12].copy_from_slice(&Timestamp::from_unix_ns(BEGIN + 4 * MS).0.to_be_bytes());
    reply[12..14].fill(0);
    reply.extend([0; 2]);
    reply.extend(Timestamp::from_unix_ns(BEGIN + 3 * MS).0.to_be_bytes());
    reply.extend(&bytes[..14]);
    reply.extend([0, 0, 253]);
    assert_eq!(reply.len(), 41);
    ends.receive(&reply, 9 * MS).unwrap();
    let sample = ends.samples(0)[0];
    assert_eq!(sample.round_trip.estimate_ns, 8 * MS as i64 - 10_000);
    assert_eq!((sample.ttl, sample.reordered_forward), (253, None));
    let forward = sample.forward.unwrap();
    assert_eq!((forward.estimate_ns, forward.low_ns), (3 * MS as i64 - 10_000, None));
}

#[test]
fn timestamps_of_ptp_give_a_round_trip_but_no_one_way_delay() {
    let mut ends = Ends::new(plain());
    let bytes = ends.send(0);
    let mut packet = Reflected::parse(&ends.reflect(&bytes, 3 * MS), None).unwrap();
    packet.error = ErrorEstimate(packet.error.0 | 0x4000);
    // 37 seconds ahead of UTC, as PTP's clocks are.
    let seconds = (BEGIN / 1_000_000_000 + 37) << 32;
    packet.received = Timestamp(seconds + 3 * MS);
    packet.timestamp = Timestamp(seconds + 4 * MS);
    let mut reply = Vec::new();
    packet.emit(None, &mut reply);
    ends.receive(&reply, 9 * MS).unwrap();
    let sample = ends.samples(0)[0];
    assert_eq!((sample.forward, sample.reverse), (None, None));
    assert_eq!(sample.round_trip.estimate_ns, 8 * MS as i64 - 10_000);
}

#[test]
fn packets_have_the_length_that_is_asked_for() {
    let lengths = |key: Option<Key>, ask, length| {
        let mut ends = Ends::new(Settings { key, ask, length, ..Settings::default() });
        let bytes = ends.send(0);
        assert_eq!(bytes.len(), ends.sender.length());
        bytes.len()
    };
    let follow_up = Ask { follow_up: true, ..Ask::default() };
    assert_eq!(lengths(None, Ask::default(), 0), 44);
    assert_eq!(lengths(None, Ask::default(), 47), 44);
    assert_eq!(lengths(None, Ask::default(), 48), 48);
    assert_eq!(lengths(None, follow_up, 0), 64);
    assert_eq!(lengths(None, follow_up, 1000), 1000);
    assert_eq!(lengths(None, follow_up, 9000), MAX_LENGTH);
    assert_eq!(lengths(Key::new(&[1; 16]), Ask::default(), 0), 112);
    assert_eq!(lengths(Key::new(&[1; 16]), follow_up, 0), 112 + 20 + 20);
}

#[test]
fn a_time_that_cannot_be_the_packets_is_not_taken() {
    let mut ends = Ends::new(plain());
    let mut bytes = Vec::new();
    let now = Reading { ns: BEGIN, error: ends.ours };
    let sequence = ends.sender.next(now, 0, &mut bytes);
    for at_ns in [BEGIN - 1, BEGIN + STALE_NS] {
        ends.sender.left(sequence, at_ns, ends.ours, |_| {});
    }
    ends.sender.left(sequence + 1, BEGIN + 5, ends.ours, |_| {});
    let reply = ends.reflect(&bytes, 3 * MS);
    ends.receive(&reply, 9 * MS).unwrap();
    assert!(ends.events.is_empty());
    let sample = ends.samples(5000 * MS)[0];
    assert_eq!((sample.kernel_sent, sample.sent_ns), (false, BEGIN));
}
