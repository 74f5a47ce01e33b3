//! A stream of whole BGP messages, taken apart.

use bgp::message::{HEADER, Kind, split};

/// The messages in `bytes`, which end with one: type and body of each.
pub(crate) fn split_all(mut bytes: &[u8]) -> Vec<(Kind, Vec<u8>)> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let (kind, body) = split(bytes).unwrap().unwrap();
        messages.push((kind, body.to_vec()));
        bytes = &bytes[HEADER + body.len()..];
    }
    messages
}
