//! Any bytes as a DNS message: what it answers is bounded and learnt within bounds.

use classify::{dns, names::Names};
use std::net::Ipv4Addr;

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some(answer) = dns::answer(data) else { return };
    assert!(answer.addresses.len() <= 64 && answer.name.len() <= 255);
    assert!(answer.name.bytes().all(|byte| byte.is_ascii_graphic()));
    let host = Ipv4Addr::LOCALHOST.into();
    let mut names = Names::new(8);
    for at_ns in 0..3 {
        names.learn(host, &answer, at_ns);
        assert!(names.len() <= 8);
    }
    if let (Some((address, _)), false) = (answer.addresses.last(), answer.name.is_empty()) {
        assert_eq!(names.of(host, *address, 3).map(|named| named.name), Some(answer.name.into()));
    }
}
