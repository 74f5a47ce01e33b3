//! Offset, delay and manners of an NTP client.

use super::*;
use proptest::prelude::*;

/// An answer that a server gives whose clock is `ahead` of ours.
fn answer(
    number: u64,
    received_ns: i64,
    sent_ns: i64,
    stratum: u8,
    reference: &[u8; 4],
) -> Vec<u8> {
    let mut bytes = vec![0x24, stratum, 6, 0xe3]; // 2^-29 s
    bytes.extend([0, 0, 0x80, 0]); // half a second
    bytes.extend([0, 0, 0x40, 0]); // a quarter
    bytes.extend(reference);
    for timestamp in [
        Timestamp::from_unix_ns(received_ns - 5_000_000_000),
        Timestamp(number),
        Timestamp::from_unix_ns(received_ns),
        Timestamp::from_unix_ns(sent_ns),
    ] {
        bytes.extend(timestamp.0.to_be_bytes());
    }
    bytes
}

proptest! {
    #[test]
    fn the_clocks_difference_lies_in_the_interval(
        sent in 1_000_000_000_000_000_000..2_000_000_000_000_000_000i64,
        ahead in -1_000_000_000_000..1_000_000_000_000i64,
        (forward, stay, reverse) in (0..1_000_000_000i64, 0..1_000_000i64, 0..1_000_000_000i64),
    ) {
        let mut server = Server::default();
        server.ask(sent, 7).unwrap();
        let received = sent + forward + ahead;
        let bytes = answer(7, received, received + stay, 2, &[192, 0, 2, 1]);
        let sample = server.receive(&bytes, sent + forward + stay + reverse).unwrap();
        prop_assert!(sample.offset.contains(ahead), "{sample:?}");
        prop_assert!(sample.delay_ns.abs_diff(forward + reverse) <= 4);
        let width = sample.offset.width_ns().unwrap();
        let promised = (forward + reverse).unsigned_abs() + 4 * drift_ns((forward + stay + reverse).unsigned_abs());
        prop_assert!(width <= promised + 40, "{width} {promised}");
    }
}

#[test]
fn the_record_tells_what_the_server_says() {
    let mut server = Server::default();
    assert_eq!(server.state().reach, Some(0));
    server.ask(1_000, 7).unwrap();
    server.receive(&answer(7, 2_000, 2_000, 2, &[192, 0, 2, 1]), 3_000).unwrap();
    let clock = server.state();
    assert_eq!((clock.source.as_str(), clock.stratum, clock.reach), ("ntp", Some(2), Some(1)));
    assert_eq!(clock.maximum_error_ns, Some(500_000_000 + 2));
    assert_eq!(clock.reference.as_deref(), Some("192.0.2.1"));
    assert!((clock.since_update_seconds.unwrap() - 5.0).abs() < 1e-6);
    assert!(!clock.holdover);
    assert!(clock.offset_ns.unwrap().abs() <= 2);
}

#[test]
fn a_server_that_follows_nothing_promises_nothing() {
    for (leap, stratum, reference) in [
        (0xe4, 2, b"GPS\0"),
        (0x24, 16, b"INIT"),
        (0x24, 8, b"\x7f\x7f\x01\x01"),
        (0x24, 6, b"LOCL"),
    ] {
        let mut server = Server::default();
        server.ask(1_000, 7).unwrap();
        let mut bytes = answer(7, 2_000, 2_000, stratum, reference);
        bytes[0] = leap;
        let sample = server.receive(&bytes, 3_000).unwrap();
        assert_eq!(sample.error, MaximumError::UNKNOWN);
        let clock = server.state();
        assert_eq!((clock.stratum, clock.maximum_error_ns, clock.reach), (None, None, Some(1)));
    }
}

#[test]
fn the_reach_register_has_the_last_eight_polls() {
    let mut server = Server::default();
    for poll in 0..12u64 {
        server.ask(1_000, poll).unwrap();
        if poll < 4 {
            server.receive(&answer(poll, 2_000, 2_000, 2, b"\0\0\0\0"), 3_000).unwrap();
        }
        let wanted = [1, 3, 7, 15, 30, 60, 120, 240, 224, 192, 128, 0][poll as usize];
        assert_eq!(server.state().reach, Some(wanted), "poll {poll}");
        assert_eq!(server.last().is_some(), wanted != 0);
    }
    assert_eq!(server.state().maximum_error_ns, None, "an error so old is not repeated");
}

#[test]
fn an_answer_counts_once() {
    let mut server = Server::default();
    server.ask(1_000, 7).unwrap();
    let bytes = answer(7, 2_000, 2_000, 2, b"\0\0\0\0");
    assert!(server.receive(&bytes, 3_000).is_ok());
    assert_eq!(server.receive(&bytes, 3_000), Err(ReplyError::Origin));
    server.ask(1_000, 8).unwrap();
    assert_eq!(server.receive(&bytes, 3_000), Err(ReplyError::Origin));
}

#[test]
fn a_server_that_is_asked_too_often_is_asked_less() {
    let mut server = Server::default();
    let polls = |server: &mut Server, kiss: bool| {
        (0..32)
            .filter(|_| {
                let asked = server.ask(1_000, 7).is_some();
                if asked && kiss {
                    let refused = server.receive(&answer(7, 2_000, 2_000, 0, b"RATE"), 3_000);
                    assert_eq!(refused, Err(ReplyError::Kiss(*b"RATE")));
                }
                asked
            })
            .count()
    };
    assert_eq!(polls(&mut server, false), 32);
    // At 0, then after 2, 4, 8 and 16 intervals.
    assert_eq!(polls(&mut server, true), 5);
    assert!(server.refusal().is_none());
    let later = polls(&mut server, false);
    assert!((1..=2).contains(&later), "{later}");
}

#[test]
fn a_server_that_forbids_it_is_not_asked_again() {
    for code in [b"DENY", b"RSTR"] {
        let mut server = Server::default();
        server.ask(1_000, 7).unwrap();
        server.receive(&answer(7, 2_000, 2_000, 0, code), 3_000).unwrap_err();
        assert_eq!(server.ask(2_000, 8), None);
        assert!(server.refusal().unwrap().contains(std::str::from_utf8(code).unwrap()));
    }
    let mut server = Server::default();
    server.ask(1_000, 7).unwrap();
    let sample = server.receive(&answer(7, 2_000, 2_000, 0, b"STEP"), 3_000).unwrap();
    assert_eq!(sample.error, MaximumError::UNKNOWN);
    assert!(server.ask(2_000, 8).is_some());
}
