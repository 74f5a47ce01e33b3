//! Records of both ends against each other, without sockets.

use super::*;
use crate::{
    buffer::Buffer,
    tls::{Progress, RECORD_BYTES, Records},
};
use rustls::{CipherSuiteCommon, SupportedCipherSuite, Tls13CipherSuite};

/// One end: its records, what came for it, and what it has to send.
struct End {
    records: Records,
    incoming: Buffer,
    out: Buffer,
    plain: Vec<u8>,
    /// Bytes that it has sent.
    sent: usize,
}

impl End {
    fn new(records: Records) -> Self {
        let (incoming, out) = (Buffer::default(), Buffer::default());
        Self { records, incoming, out, plain: Vec::new(), sent: 0 }
    }

    fn take(&mut self) -> Progress {
        let plain = &mut self.plain;
        let sink = |bytes: &[u8]| {
            plain.extend_from_slice(bytes);
            Ok(())
        };
        self.records.take(&mut self.incoming, &mut self.out, sink).unwrap()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.records.put(bytes, &mut self.incoming, &mut self.out).unwrap();
    }

    /// Brings what it has to send to the other end, at most so many bytes at a time.
    fn send(&mut self, to: &mut End, step: usize) {
        while !self.out.is_empty() {
            let count = self.out.len().min(step);
            to.incoming.extend(&self.out.filled()[..count]);
            self.out.consume(count);
            self.sent += count;
            to.take();
        }
    }
}

/// Both ends of a connection whose handshake is done, with keys that serve for so many records.
fn connection(records: Option<u64>) -> (End, End) {
    let mut provider = rustls::crypto::ring::default_provider();
    if let Some(limit) = records {
        provider.cipher_suites = provider
            .cipher_suites
            .iter()
            .filter_map(|suite| suite.tls13())
            .map(|suite| {
                let common =
                    CipherSuiteCommon { confidentiality_limit: limit, ..clone(&suite.common) };
                let suite = Tls13CipherSuite { common, ..*suite };
                SupportedCipherSuite::Tls13(Box::leak(Box::new(suite)))
            })
            .collect();
    }
    let provider = Arc::new(provider);
    let security = Security::Key(PresharedKey::from_bytes([1; 32]));
    let client = connecting_with(&security, Arc::clone(&provider)).unwrap();
    let server = accepting_with(&security, provider).unwrap();
    let name = ServerName::try_from("peer").unwrap();
    let mut one = End::new(Records::connecting(&client, name).unwrap());
    let mut other = End::new(Records::accepting(&server).unwrap());
    while (one.take(), other.take()) != (Progress::Open, Progress::Open) {
        one.send(&mut other, 7);
        other.send(&mut one, 7);
    }
    one.send(&mut other, 7);
    (one, other)
}

fn clone(common: &CipherSuiteCommon) -> CipherSuiteCommon {
    CipherSuiteCommon {
        suite: common.suite,
        hash_provider: common.hash_provider,
        confidentiality_limit: common.confidentiality_limit,
    }
}

#[test]
fn records_of_every_size_arrive_whole_whatever_the_pieces() {
    let (mut one, mut other) = connection(None);
    let mut sent = Vec::new();
    for (number, size) in
        [1, 100, RECORD_BYTES, RECORD_BYTES + 1, 5 * RECORD_BYTES].iter().enumerate()
    {
        let bytes = vec![number as u8 + 1; *size];
        one.put(&bytes);
        sent.extend(bytes);
        one.send(&mut other, 1000 + number);
    }
    assert!(other.plain == sent);
}

/// Sends small records in both directions; returns how many bytes that took.
fn exchange(mut one: End, mut other: End) -> usize {
    let begin = one.sent;
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for number in 0..500u32 {
        one.put(&number.to_be_bytes());
        there.extend(number.to_be_bytes());
        if number % 3 == 0 {
            other.put(&[number as u8; 7]);
            back.extend([number as u8; 7]);
        }
        one.send(&mut other, 50);
        other.send(&mut one, 13);
    }
    assert!(other.plain == there && one.plain == back);
    one.sent - begin
}

#[test]
fn keys_that_have_served_are_replaced_without_a_gap() {
    let (one, other) = connection(None);
    let without = exchange(one, other);
    let (one, other) = connection(Some(20));
    assert!(exchange(one, other) > without, "no new keys were announced");
}
