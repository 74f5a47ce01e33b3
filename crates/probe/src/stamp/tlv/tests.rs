//! Extensions byte by byte, as section 4 of RFC 8972 draws them.

use super::*;
use proptest::prelude::*;

const REPORT: Report = Report {
    traffic_class: 0xb8 | 1,
    synchronised: true,
    received: 0x0102_0304,
    reflected: 0x0506_0708,
    left: Some((0x1112_1314, Timestamp(0x2122_2324_2526_2728))),
};

fn key() -> Key {
    Key::new(&[9; 32]).unwrap()
}

/// What a reflector makes of extensions of a packet without authentication.
fn answered(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    answer(&mut bytes, (1, 2), None, false, &REPORT);
    bytes
}

#[test]
fn padding_is_understood_and_kept() {
    assert_eq!(answered(&[0x80, 1, 0, 3, 7, 8, 9]), [0, 1, 0, 3, 7, 8, 9]);
    // More than once, and of no length.
    assert_eq!(answered(&[0x80, 1, 0, 0, 0x80, 1, 0, 1, 5]), [0, 1, 0, 0, 0, 1, 0, 1, 5]);
}

#[test]
fn timestamp_information() {
    // Figure 11: source and method on arrival, the same on departure; sub-TLVs behind are left alone.
    assert_eq!(answered(&[0x80, 3, 0, 4, 0, 0, 0, 0]), [0, 3, 0, 4, 1, 2, 1, 2]);
    assert_eq!(answered(&[0x80, 3, 0, 5, 0, 0, 0, 0, 9]), [0, 3, 0, 5, 1, 2, 1, 2, 9]);
    assert_eq!(answered(&[0x80, 3, 0, 3, 0, 0, 0]), [0x40, 3, 0, 3, 0, 0, 0]);
}

#[test]
fn class_of_service() {
    // Figure 12: DSCP1 46 is what came, so it is used; DSCP2 46, ECN 1, RP 0.
    let mut bytes = [0x80, 4, 0, 4, 46 << 2, 0, 0, 0];
    let used = answer(&mut bytes, (1, 2), None, false, &REPORT);
    assert_eq!(bytes, [0, 4, 0, 4, 0b1011_1010, 0b1110_0100, 0, 0]);
    assert_eq!(used.dscp, Some(46));
    assert_eq!(read(&bytes, 2, None, false).traffic_class, Some(0xb9));
    // DSCP1 10 is neither that nor zero: RP 1, and the reverse path uses what came.
    let mut bytes = [0x80, 4, 0, 4, 10 << 2, 0, 0, 0];
    let used = answer(&mut bytes, (1, 2), None, false, &REPORT);
    assert_eq!((used.dscp, bytes[5] & 3), (Some(46), 1));
    // Zero is always permitted.
    let mut bytes = [0x80, 4, 0, 4, 0, 0, 0, 0];
    assert_eq!(answer(&mut bytes, (1, 2), None, false, &REPORT).dscp, Some(0));
}

#[test]
fn direct_measurement() {
    // Figure 13: the sender's counter stays.
    let bytes = answered(&[0x80, 5, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes, [0, 5, 0, 12, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(read(&bytes, 2, None, false).counted, Some((0x0102_0304, 0x0506_0708)));
}

#[test]
fn follow_up_telemetry() {
    // Figure 15.
    let asked = [&[0x80, 7, 0, 16][..], &[0; 16]].concat();
    let bytes = answered(&asked);
    assert_eq!(bytes[..8], [0, 7, 0, 16, 0x11, 0x12, 0x13, 0x14]);
    assert_eq!(bytes[8..16], [0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28]);
    assert_eq!(bytes[16..], [SOFTWARE, 0, 0, 0]);
    assert_eq!(read(&bytes, 2, None, false).left, REPORT.left);
    // Nothing is known yet: zeros, which say nothing.
    let mut bytes = asked;
    answer(&mut bytes, (1, 2), None, false, &Report { left: None, ..REPORT });
    assert_eq!(bytes[4..], [0; 16]);
    assert_eq!(read(&bytes, 2, None, false).left, None);
    // Of a wrong length, the fields are zero and M is set.
    assert_eq!(answered(&[0x80, 7, 0, 2, 1, 1]), [0x40, 7, 0, 2, 0, 0]);
}

#[test]
fn what_is_not_answered_is_unrecognised_and_what_follows_is_answered() {
    let location = [0x80, 2, 0, 4, 0, 0, 0, 0];
    let report = [0x80, 6, 0, 4, 0x10, 1, 0, 0];
    let unknown = [0, 200, 0, 0];
    let bytes = [&location[..], &report, &unknown, &[0x80, 1, 0, 0]].concat();
    let expected = [&location[..], &report, &[0x80, 200, 0, 0], &[0, 1, 0, 0]].concat();
    assert_eq!(answered(&bytes), expected);
}

#[test]
fn nothing_is_touched_behind_what_is_malformed() {
    // Longer than what is left of the packet.
    assert_eq!(answered(&[0x80, 1, 0, 9, 7, 0x80, 1]), [0xc0, 1, 0, 9, 7, 0x80, 1]);
    // Of a length that its type does not have.
    let bytes = [0x80, 4, 0, 3, 0, 0, 0, 0x80, 1, 0, 0];
    assert_eq!(answered(&bytes), [0x40, 4, 0, 3, 0, 0, 0, 0x80, 1, 0, 0]);
    // Too short for a header.
    assert_eq!(answered(&[0x80, 1, 0, 0, 0x80, 1]), [0, 1, 0, 0, 0xc0, 1]);
}

#[test]
fn a_sender_believes_nothing_behind_what_is_malformed_or_not_understood() {
    let class = [0, 4, 0, 4, 0, 0x40, 0, 0];
    let with = |flags: u8| [&[flags, 1, 0, 0][..], &class].concat();
    assert!(read(&with(0), 2, None, false).traffic_class.is_some());
    assert!(read(&with(UNRECOGNISED), 2, None, false).traffic_class.is_some());
    assert!(read(&with(MALFORMED), 2, None, false).traffic_class.is_none());
    assert!(read(&with(NOT_AUTHENTIC), 2, None, false).traffic_class.is_none());
    let mut unrecognised = class;
    unrecognised[0] = UNRECOGNISED;
    assert!(read(&unrecognised, 2, None, false).traffic_class.is_none());
}

#[test]
fn the_code_is_over_the_number_and_what_is_before_it() {
    let mut bytes = Vec::new();
    let all = Ask {
        follow_up: true,
        class_of_service: true,
        timestamp_information: true,
        direct_measurement: true,
    };
    ask(all, (77, 78), 46, Some(&key()), 120, &mut bytes);
    assert_eq!(bytes.len(), 120);
    let code = all.length(true) - TAG;
    assert_eq!(bytes[code - 4..code], [0x80, 8, 0, 16]);
    let right = key().tag(&[&77_u32.to_be_bytes(), &bytes[..code - 4]]);
    assert_eq!(bytes[code..code + TAG], right);
    assert_eq!(bytes[code + TAG..code + TAG + 2], [0x80, 1]);

    let mut reply = bytes.clone();
    answer(&mut reply, (77, 5), Some(&key()), true, &REPORT);
    let reported = read(&reply, 5, Some(&key()), true);
    assert_eq!(reported.left, REPORT.left);
    assert_eq!(reported.traffic_class, Some(0xb9));
    assert_eq!(reported.timestamp_information, Some([1, 2]));
    assert_eq!(reported.counted, Some((REPORT.received, REPORT.reflected)));
    // With another number or another key it is wrong, and so is everything.
    assert_eq!(read(&reply, 6, Some(&key()), true), Reported::default());
    assert_eq!(read(&reply, 5, Key::new(&[1; 16]).as_ref(), true), Reported::default());

    // A reflector to which it is wrong says so in every one, and answers none.
    let mut spoilt = bytes.clone();
    spoilt[5] ^= 1;
    let before = spoilt.clone();
    answer(&mut spoilt, (77, 5), Some(&key()), true, &REPORT);
    let extents: Vec<_> = walk(&spoilt).flatten().collect();
    assert_eq!(extents.len(), 6);
    for extent in extents {
        assert_eq!(spoilt[extent.at], UNRECOGNISED | NOT_AUTHENTIC);
        assert_eq!(spoilt[extent.at + 1..extent.end], before[extent.at + 1..extent.end]);
    }
}

#[test]
fn authenticated_packets_need_the_code_but_for_padding_alone() {
    let padding = [0x80, 1, 0, 2, 0, 0];
    let mut bytes = padding;
    answer(&mut bytes, (1, 2), Some(&key()), true, &REPORT);
    assert_eq!(bytes[0], 0);
    let mut bytes = [&padding[..], &[0x80, 4, 0, 4, 0, 0, 0, 0]].concat();
    answer(&mut bytes, (1, 2), Some(&key()), true, &REPORT);
    assert_eq!((bytes[0], bytes[6]), (0xa0, 0xa0));
    // In a place where something other than padding follows it, it counts as wrong.
    let mut bytes = Vec::new();
    ask(Ask { class_of_service: true, ..Ask::default() }, (1, 1), 0, Some(&key()), 0, &mut bytes);
    bytes.extend([0x80, 4, 0, 4, 0, 0, 0, 0]);
    answer(&mut bytes, (1, 2), Some(&key()), true, &REPORT);
    assert_eq!(bytes[0], 0xa0);
}

proptest! {
    #[test]
    fn any_bytes_are_answered_at_their_length(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0..9_u8], 0..120),
        keyed: bool,
        must: bool,
    ) {
        let key = keyed.then(key);
        let mut reply = bytes.clone();
        answer(&mut reply, (1, 2), key.as_ref(), must, &REPORT);
        prop_assert_eq!(reply.len(), bytes.len());
        let _ = read(&reply, 2, key.as_ref(), must);
        let _ = read(&bytes, 2, key.as_ref(), must);
    }
}
