//! What a reflector answers, to whom, and what it refuses.

use super::*;
use crate::interval::MaximumError;
use crate::stamp::tlv::{Ask, Reported};

const SENDER: &str = "192.0.2.1:5000";
/// 2026-01-01.
const NOW: u64 = 1_767_225_600_000_000_000;

fn reflected(address: &str) -> SessionConfig {
    SessionConfig {
        address: address.parse().unwrap(),
        port: None,
        ssid: None,
        key: None,
        extensions: true,
        rate: Rate { per_second: 1000, burst: 1000 },
    }
}

fn key() -> Key {
    Key::new(&[3; 16]).unwrap()
}

fn test(sequence: u32, sent_ns: u64, ssid: u16, key: Option<&Key>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let timestamp = Timestamp::from_unix_ns(sent_ns);
    Test { sequence, timestamp, error: ErrorEstimate(0x8001), ssid }.emit(key, &mut bytes);
    bytes
}

fn arrival<'a>(bytes: &'a [u8], from: &str) -> Arrival<'a> {
    Arrival { bytes, from: from.parse().unwrap(), at_ns: NOW + 1000, ttl: 60, traffic_class: 0x28 }
}

fn ask(reflector: &mut Reflector, bytes: &[u8], from: &str) -> Result<(Reply, Vec<u8>), Refused> {
    let now = || Reading { ns: NOW + 2000, error: MaximumError::known(1_000_000) };
    let mut reply = vec![1, 2, 3];
    let answered = reflector.answer(&arrival(bytes, from), now, &mut reply);
    assert!(reply.len() <= bytes.len(), "never more bytes than it got");
    if answered.is_err() {
        assert!(reply.is_empty());
    }
    answered.map(|answered| (answered, reply))
}

#[test]
fn every_field_of_a_reply() {
    let mut reflector = Reflector::default();
    reflector.admit(reflected("192.0.2.1"));
    let bytes = test(7, NOW, 0x1234, None);
    let (answered, reply) = ask(&mut reflector, &bytes, SENDER).unwrap();
    let parsed = Reflected::parse(&reply, None).unwrap();
    assert_eq!((answered.sequence, answered.traffic_class), (0, 0x28));
    assert_eq!(reply.len(), bytes.len());
    let expected = Reflected {
        sequence: 0,
        timestamp: Timestamp::from_unix_ns(NOW + 2000),
        error: ErrorEstimate::from_ns(Some(1_000_000)),
        ssid: 0x1234,
        received: Timestamp::from_unix_ns(NOW + 1000),
        sender_sequence: 7,
        sender_timestamp: Timestamp::from_unix_ns(NOW),
        sender_error: ErrorEstimate(0x8001),
        sender_ttl: 60,
    };
    assert_eq!(parsed, expected);
    assert_eq!((reflector.reflected(), reflector.refusals().total()), (1, 0));
}

#[test]
fn only_agreed_senders_are_answered() {
    let mut reflector = Reflector::default();
    let bytes = test(0, NOW, 0, None);
    assert_eq!(ask(&mut reflector, &bytes, SENDER), Err(Refused::UnknownSession));
    reflector.admit(SessionConfig { port: Some(5000), ssid: Some(9), ..reflected("192.0.2.1") });
    assert_eq!(ask(&mut reflector, &bytes, SENDER), Err(Refused::UnknownSession));
    let bytes = test(0, NOW, 9, None);
    assert_eq!(ask(&mut reflector, &bytes, "192.0.2.1:5001"), Err(Refused::UnknownSession));
    assert_eq!(ask(&mut reflector, &bytes, "192.0.2.2:5000"), Err(Refused::UnknownSession));
    ask(&mut reflector, &bytes, SENDER).unwrap();
    ask(&mut reflector, &bytes, "[::ffff:192.0.2.1]:5000").unwrap();
    let session =
        SessionConfig { port: Some(5000), ssid: Some(9), ..reflected("192.0.2.1") }.session();
    assert!(reflector.remove(&session));
    assert!(!reflector.remove(&session));
    assert_eq!(ask(&mut reflector, &bytes, SENDER), Err(Refused::UnknownSession));
    assert_eq!(reflector.refusals().of(Refused::UnknownSession), 5);
}

#[test]
fn each_session_has_its_own_numbers() {
    let mut reflector = Reflector::default();
    for ssid in [Some(1), Some(2), None] {
        reflector.admit(SessionConfig { ssid, ..reflected("2001:db8::1") });
    }
    let mut sequence = |ssid, sequence| {
        let bytes = test(sequence, NOW + u64::from(sequence), ssid, None);
        ask(&mut reflector, &bytes, "[2001:db8::1]:9").unwrap().0.sequence
    };
    let numbers = [(1, 0), (1, 1), (2, 5), (1, 2), (3, 0), (4, 1), (2, 6)];
    let given: Vec<_> = numbers.iter().map(|(ssid, number)| sequence(*ssid, *number)).collect();
    assert_eq!(given, [0, 1, 0, 2, 0, 1, 1]);
}

#[test]
fn authenticated_packets_are_verified_first_and_not_answered_twice() {
    let mut reflector = Reflector::default();
    reflector.admit(SessionConfig { key: Some(key()), ssid: Some(5), ..reflected("192.0.2.1") });
    let mut send =
        |bytes: &[u8]| ask(&mut reflector, bytes, SENDER).map(|(reply, _)| reply.sequence);
    let first = test(0, NOW, 5, Some(&key()));
    assert_eq!(send(&first), Ok(0));
    assert_eq!(send(&first), Err(Refused::Replayed));
    // Unauthenticated packets have the SSID elsewhere; such a session is not agreed on.
    assert_eq!(send(&test(1, NOW, 5, None)), Err(Refused::UnknownSession));
    let other = Key::new(&[4; 16]).unwrap();
    assert_eq!(send(&test(1, NOW + 1, 5, Some(&other))), Err(Refused::NotAuthentic));
    assert_eq!(send(&first[..111]), Err(Refused::TooShort));
    // Overtaking is no replay; the same again is.
    let later: Vec<_> =
        (1..=3).map(|n| test(n, NOW + u64::from(n) * 10, 5, Some(&key()))).collect();
    assert_eq!(send(&later[2]), Ok(1));
    assert_eq!(send(&later[0]), Ok(2));
    assert_eq!(send(&later[1]), Ok(3));
    assert_eq!(send(&later[1]), Err(Refused::Replayed));
    // So far behind that nobody remembers.
    assert_eq!(send(&test(1000, NOW + 10_000, 5, Some(&key()))), Ok(4));
    assert_eq!(send(&test(4, NOW + 40, 5, Some(&key()))), Err(Refused::Replayed));
    // The sender began again: its time went on, its numbers did not, and those here begin again too.
    assert_eq!(send(&test(0, NOW + 20_000, 5, Some(&key()))), Ok(0));
    assert_eq!(send(&test(1, NOW + 20_010, 5, Some(&key()))), Ok(1));
    assert_eq!(reflector.refusals().of(Refused::Replayed), 3);
}

#[test]
fn an_unauthenticated_duplicate_is_reflected_with_a_number_of_its_own() {
    let mut reflector = Reflector::default();
    reflector.admit(reflected("192.0.2.1"));
    let bytes = test(0, NOW, 0, None);
    assert_eq!(ask(&mut reflector, &bytes, SENDER).unwrap().0.sequence, 0);
    assert_eq!(ask(&mut reflector, &bytes, SENDER).unwrap().0.sequence, 1);
}

#[test]
fn what_is_malformed_is_refused() {
    let mut reflector = Reflector::default();
    reflector.admit(reflected("192.0.2.1"));
    let mut bytes = test(0, NOW, 0, None);
    for length in 0..41 {
        assert_eq!(ask(&mut reflector, &bytes[..length], SENDER), Err(Refused::TooShort));
    }
    bytes[13] = 0;
    assert_eq!(ask(&mut reflector, &bytes, SENDER), Err(Refused::Corrupt));
}

#[test]
fn a_packet_of_twamp_light_gets_its_padding_back() {
    let mut reflector = Reflector::default();
    reflector.admit(SessionConfig { extensions: false, ..reflected("192.0.2.1") });
    let mut bytes = test(0, NOW, 0, None);
    bytes.truncate(14);
    bytes.extend([0xee; 27]);
    let (_, reply) = ask(&mut reflector, &bytes, SENDER).unwrap();
    assert_eq!(reply.len(), 41);
    assert_eq!(Reflected::parse(&reply, None).unwrap().ssid, 0xeeee);
    bytes[3] = 1;
    bytes.extend([0xdd; 30]);
    let (_, reply) = ask(&mut reflector, &bytes, SENDER).unwrap();
    assert_eq!((reply.len(), &reply[44..]), (71, &[0xdd; 27][..]));
}

#[test]
fn no_more_than_the_agreed_rate_is_answered() {
    let mut reflector = Reflector::default();
    reflector
        .admit(SessionConfig { rate: Rate { per_second: 10, burst: 3 }, ..reflected("192.0.2.1") });
    let mut send = |sequence: u32, at_ns| {
        let bytes = test(sequence, at_ns, 0, None);
        let arrival = Arrival { at_ns, ..arrival(&bytes, SENDER) };
        let now = || Reading { ns: at_ns, error: MaximumError::UNKNOWN };
        reflector.answer(&arrival, now, &mut Vec::new()).map(|reply| reply.sequence)
    };
    let at_once: Vec<_> = (0..5).map(|n| send(n, NOW)).collect();
    assert_eq!(at_once[..3], [Ok(0), Ok(1), Ok(2)]);
    assert_eq!(at_once[3..], [Err(Refused::OverRate); 2]);
    assert_eq!(send(5, NOW + 100_000_000), Ok(3));
    assert_eq!(send(6, NOW + 100_000_000), Err(Refused::OverRate));
    // A clock that was set back a day does not shut the bucket for a day.
    assert_eq!(send(7, NOW - 86_400_000_000_000), Ok(4));
}

#[test]
fn the_kernels_time_of_sending_goes_with_the_next_reply() {
    let mut reflector = Reflector::default();
    reflector.admit(reflected("192.0.2.1"));
    let mut send = |sequence: u32, left: Option<u64>| {
        let mut bytes = test(sequence, NOW + u64::from(sequence), 0, None);
        let follow_up = Ask { follow_up: true, ..Ask::default() };
        tlv::ask(follow_up, (sequence, 0), 0, None, 0, &mut bytes);
        let (answered, reply) = ask(&mut reflector, &bytes, SENDER).unwrap();
        if let Some(left) = left {
            reflector.left(&answered.session, answered.sequence, left);
        }
        tlv::read(&reply[44..], answered.sequence, None, false)
    };
    let left = |sequence, at_ns| Reported {
        left: Some((sequence, Timestamp::from_unix_ns(at_ns))),
        ..Reported::default()
    };
    assert_eq!(send(0, Some(NOW + 5)), Reported::default());
    assert_eq!(send(1, None), left(0, NOW + 5));
    assert_eq!(send(2, Some(NOW + 9)), left(0, NOW + 5));
    assert_eq!(send(3, None), left(2, NOW + 9));
}

#[test]
fn a_clock_of_unknown_error_says_so() {
    let mut reflector = Reflector::default();
    reflector.admit(reflected("192.0.2.1"));
    let bytes = test(0, NOW, 0, None);
    let mut reply = Vec::new();
    let now = || Reading { ns: NOW, error: MaximumError::UNKNOWN };
    reflector.answer(&arrival(&bytes, SENDER), now, &mut reply).unwrap();
    let parsed = Reflected::parse(&reply, None).unwrap();
    assert_eq!((parsed.error.bound_ns(), parsed.error.is_corrupt()), (None, false));
}
