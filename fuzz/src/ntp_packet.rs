//! Any datagrams from an NTP server that is asked again and again: what is taken says nothing that its fields do not,
//! each request has one answer at most, and a server that wants to be left alone is.
//!
//! Each begins with a byte: whether time passes and a request is sent before it, and whether it bears that request's
//! number as its origin, which no fuzzer guesses; then comes a byte for its length.

use probe::{
    clock::ntp::{Server, packet::ReplyError},
    interval::MaximumError,
};

const BEGIN_NS: i64 = 1_795_000_000_000_000_000;

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut server = Server::default();
    let (mut rest, mut now_ns, mut number) = (data, BEGIN_NS, 0x0123_4567_89ab_cdef);
    // Whether an answer is awaited, and how many polls it is since one came.
    let (mut awaited, mut silent) = (false, None::<u32>);
    while let [what, length, more @ ..] = rest {
        let (bytes, later) = more.split_at(usize::from(*length).min(more.len()));
        rest = later;
        if what & 1 != 0 {
            now_ns += i64::from(what >> 2) << 32;
            number += 1;
            if let Some(request) = server.ask(now_ns, number) {
                assert!(server.refusal().is_none());
                assert_eq!(server.receive(&request, now_ns), Err(ReplyError::Mode(3)));
                awaited = true;
                silent = silent.map(|polls| polls + 1);
            } else {
                // Asked less, or not at all.
                number -= 1;
            }
        }
        let mut datagram = bytes.to_vec();
        if let Some(origin) = datagram.get_mut(24..32).filter(|_| what & 2 != 0) {
            origin.copy_from_slice(&number.to_be_bytes());
        }
        match server.receive(&datagram, now_ns + 1_000_000) {
            Ok(sample) => {
                assert!(awaited, "an answer that nobody waits for");
                assert!(sample.offset.contains(sample.offset.estimate_ns));
                let state = server.state();
                assert_eq!(state.reach.map(|reach| reach & 1), Some(1));
                assert_eq!(state.maximum_error_ns, sample.error.nanoseconds);
                assert!(state.stratum.is_none_or(|stratum| (1..16).contains(&stratum)));
                let again = server.receive(&datagram, now_ns + 2_000_000);
                assert_eq!(again, Err(ReplyError::Origin));
                (awaited, silent) = (false, Some(0));
            }
            Err(ReplyError::Kiss(code)) => {
                assert!(awaited);
                awaited = false;
                assert_eq!(server.refusal().is_some(), [*b"DENY", *b"RSTR"].contains(&code));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let reachable = silent.is_some_and(|polls| polls < 8);
        assert_eq!(server.last().is_some(), reachable);
        assert!(server.last().is_none_or(|sample| {
            sample.error == MaximumError::UNKNOWN || sample.reply.stratum < 16
        }));
    }
}
