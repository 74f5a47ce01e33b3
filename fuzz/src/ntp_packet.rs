//! Any bytes as the answer of an NTP server: what is taken says nothing that its fields do not.

use probe::{
    clock::ntp::{Server, packet::ReplyError},
    interval::MaximumError,
};

const SENT_NS: i64 = 1_795_000_000_000_000_000;

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    // So that it answers the request wherever it is long enough.
    let number = data.get(24..32).map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
    let mut server = Server::default();
    let request = server.ask(SENT_NS, number).unwrap();
    assert_eq!(server.receive(&request, SENT_NS), Err(ReplyError::Mode(3)));
    match server.receive(data, SENT_NS + 1_000_000) {
        Ok(sample) => {
            assert!(sample.offset.contains(sample.offset.estimate_ns));
            let state = server.state();
            assert_eq!(state.reach, Some(1));
            assert_eq!(state.maximum_error_ns, sample.error.nanoseconds);
            assert!(state.stratum.is_none_or(|stratum| (1..16).contains(&stratum)));
            assert_eq!(server.receive(data, SENT_NS + 2_000_000), Err(ReplyError::Origin));
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(server.state().reach, Some(0));
            assert!(server.last().is_none_or(|sample| sample.error == MaximumError::UNKNOWN));
        }
    }
}
