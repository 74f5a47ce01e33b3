//! Any datagrams, one after the other, to a reflector with several sessions, and what it answers to a
//! sender.
//!
//! Each begins with a byte that says from whom it is and whether it gets a right code, and one for its
//! length.

use probe::{
    interval::MaximumError,
    stamp::{
        Arrival, Key, MAX_LENGTH, Reading, Reflector, Refused, Sender,
        reflector::{Rate, SessionConfig},
        sender::{Event, Settings},
        tlv::Ask,
    },
};
use std::net::SocketAddr;

/// 2026-01-01, nanoseconds since 1970.
const BEGIN: u64 = 1_767_225_600_000_000_000;

fn key() -> Key {
    Key::new(&[7; 16]).expect("sixteen bytes")
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut reflector = Reflector::default();
    for number in 0..4_u8 {
        reflector.admit(SessionConfig {
            address: [192, 0, 2, number & 1].into(),
            port: (number == 1).then_some(1),
            ssid: (number >= 2).then_some(0x0102),
            key: (number & 1 != 0).then(key),
            extensions: number != 2,
            rate: Rate { per_second: 1000, burst: 8 },
        });
    }
    let all = Ask {
        follow_up: true,
        class_of_service: true,
        timestamp_information: true,
        direct_measurement: true,
    };
    let mut sender = Sender::new(Settings { ask: all, ..Settings::default() });
    let (mut rest, mut now_ns) = (data, BEGIN);
    let (mut test, mut reply, mut refused, mut outcomes) = (Vec::new(), Vec::new(), 0, 0);
    let mut outcome =
        |event| outcomes += u32::from(matches!(event, Event::Arrived(_) | Event::Lost { .. }));
    while let [choice, length, more @ ..] = rest {
        let (bytes, next) = more.split_at(usize::from(*length).min(more.len()));
        rest = next;
        now_ns += 100_000;
        let from = SocketAddr::new([192, 0, 2, choice & 3].into(), u16::from(choice & 4 != 0));
        let reading = Reading { ns: now_ns, error: MaximumError::known(u64::from(*choice)) };
        // A right packet with some bits of the fuzzer's.
        sender.next(reading, now_ns - BEGIN, &mut test);
        for (byte, change) in test.iter_mut().zip(bytes) {
            *byte ^= change;
        }
        let datagram = if choice & 8 == 0 { bytes } else { &test };
        let arrival = Arrival {
            bytes: datagram,
            from,
            at_ns: now_ns + 5000,
            ttl: *choice,
            traffic_class: *length,
        };
        match reflector.answer(&arrival, || reading, &mut reply) {
            Ok(answered) => {
                assert!(reply.len() <= datagram.len() && reply.len() <= MAX_LENGTH);
                assert_eq!(answered.traffic_class & 3, 0);
                reflector.left(&answered.session, answered.sequence, now_ns + 6000);
                let back = Arrival { bytes: &reply, at_ns: now_ns + 9000, ..arrival };
                let _ = sender.receive(&back, reading.error, &mut outcome);
            }
            Err(reason) => {
                assert!(reply.is_empty());
                assert!(reason != Refused::Unexpected && reason != Refused::Altered);
                refused += 1;
            }
        }
        let back = Arrival { bytes, at_ns: now_ns + 9000, ..arrival };
        let _ = sender.receive(&back, reading.error, &mut outcome);
        sender.left(u32::from(*length), now_ns, reading.error, &mut outcome);
    }
    assert_eq!(reflector.refusals().total(), refused);
    // Each packet has one outcome.
    sender.settle(u64::MAX, &mut outcome);
    assert_eq!(outcomes, sender.sent());
}
