//! Every field where the figures of the RFCs have it, written out by hand.

use super::*;
use proptest::prelude::*;

/// A packet from lines of hexadecimal digits, four bytes of the figure each.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

fn key() -> Key {
    Key::new(b"sixteen bytes, or more").unwrap()
}

const TEST: Test = Test {
    sequence: 0x0102_0304,
    timestamp: Timestamp(0x1112_1314_2122_2324),
    error: ErrorEstimate(0x8a05),
    ssid: 0x3132,
};

const REFLECTED: Reflected = Reflected {
    sequence: 0x4142_4344,
    timestamp: Timestamp(0x5152_5354_6162_6364),
    error: ErrorEstimate(0x8b06),
    ssid: 0x3132,
    received: Timestamp(0x7172_7374_8182_8384),
    sender_sequence: 0x0102_0304,
    sender_timestamp: Timestamp(0x1112_1314_2122_2324),
    sender_error: ErrorEstimate(0x8a05),
    sender_ttl: 0xf7,
};

#[test]
fn an_unauthenticated_test_packet() {
    // RFC 8972, figure 1.
    let bytes = hex("01020304 11121314 21222324 8a053132
                     00000000 00000000 00000000 00000000 00000000 00000000 00000000");
    let mut out = vec![9; 3];
    TEST.emit(None, &mut out);
    assert_eq!(out, bytes);
    assert_eq!(Test::parse(&bytes, None), Ok(TEST));
    assert_eq!(plain_ssid(&bytes), Some(0x3132));
}

#[test]
fn an_unauthenticated_reflected_packet() {
    // RFC 8972, figure 2.
    let bytes = hex("41424344 51525354 61626364 8b063132 71727374 81828384
                     01020304 11121314 21222324 8a050000 f7000000");
    let mut out = Vec::new();
    REFLECTED.emit(None, &mut out);
    assert_eq!(out, bytes);
    assert_eq!(Reflected::parse(&bytes, None), Ok(REFLECTED));
    // TWAMP Light's ends with the TTL (RFC 5357, section 4.2.1).
    assert_eq!(Reflected::parse(&bytes[..41], None), Ok(REFLECTED));
    assert_eq!(Reflected::parse(&bytes[..40], None), Err(Refused::TooShort));
}

#[test]
fn an_authenticated_test_packet() {
    // RFC 8972, figure 3: the code is that of the 96 bytes before it.
    let text = hex("01020304 00000000 00000000 00000000 11121314 21222324 8a053132
                    00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
                    00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
                    00000000");
    assert_eq!(text.len(), 96);
    let mut out = Vec::new();
    TEST.emit(Some(&key()), &mut out);
    assert_eq!(out[..96], text);
    assert_eq!(out[96..], key().tag(&[&text]));
    assert_eq!(Test::parse(&out, Some(&key())), Ok(TEST));
    assert_eq!(authenticated_ssid(&out), Some(0x3132));
    for at in 0..112 {
        let mut spoilt = out.clone();
        spoilt[at] ^= 0x40;
        assert_eq!(Test::parse(&spoilt, Some(&key())), Err(Refused::NotAuthentic), "byte {at}");
    }
    assert_eq!(Test::parse(&out[..111], Some(&key())), Err(Refused::TooShort));
    let other = Key::new(&[7; 32]).unwrap();
    assert_eq!(Test::parse(&out, Some(&other)), Err(Refused::NotAuthentic));
}

#[test]
fn an_authenticated_reflected_packet() {
    // RFC 8972, figure 4.
    let text = hex("41424344 00000000 00000000 00000000 51525354 61626364 8b063132 00000000
                    71727374 81828384 00000000 00000000 01020304 00000000 00000000 00000000
                    11121314 21222324 8a050000 00000000 f7000000 00000000 00000000 00000000");
    assert_eq!(text.len(), 96);
    let mut out = Vec::new();
    REFLECTED.emit(Some(&key()), &mut out);
    assert_eq!(out[..96], text);
    assert_eq!(out[96..], key().tag(&[&text]));
    assert_eq!(Reflected::parse(&out, Some(&key())), Ok(REFLECTED));
    out[80] ^= 1;
    assert_eq!(Reflected::parse(&out, Some(&key())), Err(Refused::NotAuthentic));
}

#[test]
fn a_test_packet_of_twamp_light_with_padding() {
    // RFC 5357, section 4.1.2: sequence, timestamp, Error Estimate, then padding of any content.
    let mut bytes = hex("00000007 11121314 21222324 8a05");
    bytes.extend([0xee; 27]);
    let test = Test { sequence: 7, ssid: 0xeeee, ..TEST };
    assert_eq!(Test::parse(&bytes, None), Ok(test));
    assert_eq!(Test::parse(&bytes[..40], None), Err(Refused::TooShort));
}

#[test]
fn what_is_reserved_is_ignored() {
    let mut bytes = Vec::new();
    REFLECTED.emit(None, &mut bytes);
    for at in [38, 39, 41, 42, 43] {
        bytes[at] = 0xff;
    }
    assert_eq!(Reflected::parse(&bytes, None), Ok(REFLECTED));
}

#[test]
fn a_multiplier_of_zero_is_corrupt() {
    let mut bytes = Vec::new();
    Test { error: ErrorEstimate(0x8a00), ..TEST }.emit(None, &mut bytes);
    assert_eq!(Test::parse(&bytes, None), Err(Refused::Corrupt));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for key in [None, Some(&key())] {
            let _ = Test::parse(&bytes, key);
            let _ = Reflected::parse(&bytes, key);
        }
        let _ = (plain_ssid(&bytes), authenticated_ssid(&bytes));
    }

    #[test]
    fn packets_survive(bits: (u32, u64, u16, u16, u64, u32, u64, u16, u8)) {
        let packet = Reflected {
            sequence: bits.0,
            timestamp: Timestamp(bits.1),
            error: ErrorEstimate(bits.2),
            ssid: bits.3,
            received: Timestamp(bits.4),
            sender_sequence: bits.5,
            sender_timestamp: Timestamp(bits.6),
            sender_error: ErrorEstimate(bits.7),
            sender_ttl: bits.8,
        };
        let mut bytes = Vec::new();
        for key in [None, Some(&key())] {
            packet.emit(key, &mut bytes);
            prop_assert_eq!(bytes.len(), base_length(key.is_some()));
            prop_assert_eq!(Reflected::parse(&bytes, key), Ok(packet));
        }
    }
}
