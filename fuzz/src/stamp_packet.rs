//! Any bytes as both kinds of STAMP packets in both modes, with extensions.
//!
//! The first byte chooses the mode, and whether the packet gets the right code, which no fuzzer guesses.

use probe::stamp::{
    ErrorEstimate, Key, Reflected, Refused, Test, Timestamp,
    packet::base_length,
    tlv::{self, Report},
};
use std::sync::LazyLock;

static KEY: LazyLock<Key> = LazyLock::new(|| Key::new(&[7; 16]).expect("sixteen bytes"));

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let key = (choice & 1 != 0).then_some(&*KEY);
    let mut again = Vec::new();
    // What is read and written again is the same, but for what is reserved.
    match Test::parse(bytes, key) {
        Ok(test) => {
            test.emit(key, &mut again);
            assert_eq!(Test::parse(&again, key), Ok(test));
            assert!(!test.error.is_corrupt());
            let _ = (test.error.bound_ns(), test.timestamp.to_unix_ns(1 << 60));
        }
        Err(Refused::NotAuthentic) => assert!(key.is_some()),
        Err(Refused::TooShort) => assert!(bytes.len() < base_length(key.is_some())),
        Err(reason) => assert_eq!(reason, Refused::Corrupt),
    }
    if let Ok(reflected) = Reflected::parse(bytes, key) {
        reflected.emit(key, &mut again);
        assert_eq!(Reflected::parse(&again, key), Ok(reflected));
        let _ = reflected.is_comparable();
    }
    if let Some(first) = bytes.first_chunk() {
        let estimate = ErrorEstimate(u16::from_be_bytes(*first));
        if let Some(bound) = estimate.bound_ns() {
            assert!(ErrorEstimate::from_ns(Some(bound)).bound_ns() >= Some(bound));
        }
    }
    let expected = Report {
        traffic_class: choice,
        synchronised: choice & 2 != 0,
        received: 9,
        reflected: 8,
        left: (choice & 4 != 0).then_some((7, Timestamp(6))),
    };
    let mut extensions = bytes.to_vec();
    let must = choice & 8 != 0;
    tlv::answer(&mut extensions, (1, 2), key, must, &expected);
    assert_eq!(extensions.len(), bytes.len());
    let reported = tlv::read(&extensions, 2, key, must);
    assert!(reported.left.is_none() || reported.left == expected.left || choice & 4 == 0);
    let _ = tlv::read(bytes, 2, key, must);
}
