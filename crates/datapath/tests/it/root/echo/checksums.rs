//! Every value that a checksum can have, against recomputation of the whole reply (RFC 1624 errs
//! where the reply sums up to zero; so does a carry that is not brought round).

use super::frame::{Frame, Ip};
use super::{CLIENT4, CLIENT6, SERVICE4, SERVICE6};
use datapath::echo::{Settings, Verdict};

/// Runs 65,536 requests through the program with `verify` on or off; each reply must be the one that
/// was built again.
fn all(ip: Ip, verify: bool, change: impl Fn(&mut Frame, u16)) {
    let program = super::program(&Settings { verify, ..super::settings() });
    for value in 0..=u16::MAX {
        let mut request = Frame::request(ip);
        change(&mut request, value);
        let (verdict, out) = program.run(None, &request.bytes()).unwrap();
        assert_eq!(verdict, Verdict::Tx, "{request:?}");
        assert_eq!(out, request.reply().bytes(), "{request:?}");
    }
}

/// With a message of type 8, identifier 0 and no payload, the sequence number runs through all sums;
/// with 0 the reply is all zeros, with 0xffff it has the same sum and is not. So does the header's
/// sum with its identification, and the TTL takes all its values on the path.
fn change4(request: &mut Frame, value: u16) {
    request.ident = 0;
    request.sequence = value;
    request.payload = Vec::new();
    request.id = value;
    request.ttl = value as u8;
}

#[test]
fn ipv4_verified() {
    all(Ip::V4(CLIENT4, SERVICE4), true, change4);
}

#[test]
fn ipv4_unverified() {
    all(Ip::V4(CLIENT4, SERVICE4), false, change4);
}

#[test]
fn ipv6_verified() {
    all(Ip::V6(CLIENT6, SERVICE6), true, |request, value| request.sequence = value);
}

#[test]
fn ipv6_unverified() {
    all(Ip::V6(CLIENT6, SERVICE6), false, |request, value| request.sequence = value);
}

/// All lengths of payload up to the MTU, with bytes that show when one is counted twice or not at
/// all, in frames with and without padding that must not be counted.
#[test]
fn every_length() {
    for verify in [true, false] {
        let settings = Settings { verify, ..super::settings() };
        let program = super::program(&settings);
        for mut request in Frame::both() {
            for length in 0..=1472 {
                request.payload = (0..length).map(|i: usize| (i * 37 + 11) as u8).collect();
                for padding in [0, 1, 18] {
                    request.link.padding = vec![0xa5; padding];
                    let (verdict, out) = program.run(None, &request.bytes()).unwrap();
                    assert_eq!(verdict, Verdict::Tx, "{length} {padding}");
                    assert_eq!(out, request.reply().bytes(), "{length} {padding}");
                }
            }
        }
    }
}

/// Each single bit of a request that is wrong is found, whatever it is.
#[test]
fn every_flipped_bit_is_found() {
    let program = super::program(&super::settings());
    for mut request in Frame::both() {
        for length in [0, 1, 17, 18, 56, 131] {
            request.payload = (0..length).collect();
            let bytes = request.bytes();
            for bit in 14 * 8..bytes.len() * 8 {
                let mut wrong = bytes.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                // IPv6 has no checksum of traffic class, flow label and hop limit.
                let free = matches!(request.ip, Ip::V6(..))
                    && matches!((bit / 8, bit % 8), (14, 0..4) | (15..=17 | 21, _));
                let (verdict, _) = program.run(None, &wrong).unwrap();
                assert_eq!(verdict == Verdict::Tx, free, "bit {bit} of {wrong:02x?}");
            }
        }
    }
}
