//! Messages put together by hand.

use crate::{
    machine::{
        Unit,
        messages::tests::{masked_on, unit},
    },
    policy::Policy,
};
use proptest::prelude::*;

fn name(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[label.len() as u8], label.as_bytes()].concat();
    let labels: Vec<u8> = name.split('.').flat_map(label).collect();
    [&labels[..], &[0]].concat()
}

fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_be_bytes();
    [owner, &kind.to_be_bytes(), &[0, 1, 0, 0, 14, 16], &length, data].concat()
}

/// An answer of one question and these records.
fn answer(records: &[Vec<u8>]) -> Vec<u8> {
    let header = [0xbe, 0xef, 0x81, 0x80, 0, 1, 0, records.len() as u8, 0, 0, 0, 0];
    [&header[..], &name("www.Example.org"), &[0, 1, 0, 1], &records.concat()].concat()
}

fn masked(unit: &mut Unit, message: &[u8]) -> Vec<u8> {
    masked_on(unit, 53, message)
}

/// Where the answers begin.
const RECORDS: usize = 12 + 17 + 4;

#[test]
fn names_stay_in_their_domains_and_addresses_become_those_of_headers() {
    let mut unit =
        unit("\"dns.name\" = \"hash\"\n\"dns.address\" = \"prefix\"\n\"ipv4.source\" = \"prefix\"");
    let message = answer(&[
        record(&[0xc0, 12], 5, &[&[4][..], b"mail", &[0xc0, 16]].concat()),
        record(&name("WWW.example.ORG"), 1, &[192, 0, 2, 1]),
        record(&name("other.example.org"), 28, &[0x20; 16]),
    ]);
    let out = masked(&mut unit, &message);
    assert_eq!(out.len(), message.len());
    // Counts and flags stay, the number of the question is zero; types, classes and lengths stay.
    assert_eq!(out[..12], [&[0, 0][..], &message[2..12]].concat());
    let labels = |at: usize| {
        [3, 7, 3].iter().fold((at, Vec::new()), |(at, mut all), length| {
            assert_eq!(usize::from(out[at]), *length);
            all.push(out[at + 1..at + 1 + length].to_vec());
            (at + 1 + length, all)
        })
    };
    let question = labels(12).1;
    assert!(question.iter().flatten().all(u8::is_ascii_lowercase));
    assert_ne!(question.concat(), b"wwwexampleorg");
    // The alias ends in the same domain by its pointer; its own label is another one.
    let alias = RECORDS + 2 + 10;
    assert_eq!(out[RECORDS..RECORDS + 2], [0xc0, 12]);
    assert_eq!((out[alias], &out[alias + 5..alias + 7]), (4, &[0xc0, 16][..]));
    assert_ne!(&out[alias + 1..alias + 5], b"mail");
    // The same name, whatever its case; its address is mapped like the header's source.
    let second = alias + 7;
    assert_eq!(labels(second).1, question);
    let address = second + 17 + 10;
    let pan = crate::mapping::CryptoPan::new(&[7; 32]);
    assert_eq!(out[address..address + 4], pan.map4(0xc000_0201).to_be_bytes());
    let third = address + 4;
    let other: Vec<u8> = out[third + 6..third + 6 + 12].to_vec();
    assert_eq!(other, out[12 + 4..12 + 4 + 12], "the domain is the same");
    let bits = pan.map6(0x2020_2020_2020_2020_2020_2020_2020_2020).to_be_bytes();
    assert_eq!(out[out.len() - 16..], bits);
}

#[test]
fn what_is_not_named_is_removed() {
    let message = answer(&[
        record(&[0xc0, 12], 16, b"\x06secret\x03two"),
        record(&[0xc0, 12], 99, b"unknown data"),
        record(&[0], 41, &[0, 10, 0, 4, 1, 2, 3, 4]),
    ]);
    let out = masked(&mut unit("\"dns.ttl\" = \"keep\""), &message);
    assert_eq!(out.len(), message.len());
    assert_eq!(out[12..12 + 17], *b"\x03xxx\x07xxxxxxx\x03xxx\0");
    let text = RECORDS + 12;
    assert_eq!(out[text..text + 11], *b"\x06xxxxxx\x03xxx");
    assert_eq!(out[text - 6..text - 2], [0, 0, 14, 16]);
    let unknown = text + 11 + 12;
    assert_eq!(out[unknown..unknown + 12], [0; 12]);
    // A cookie becomes padding.
    assert_eq!(out[out.len() - 8..], [0, 12, 0, 4, 0, 0, 0, 0]);
    // Nothing of DNS is named: all of it goes.
    assert_eq!(masked(&mut unit(""), &message), b"");
}

#[test]
fn what_is_not_wholly_understood_is_removed() {
    let mut unit = unit("\"dns.*\" = \"keep\"");
    let whole = answer(&[record(&[0xc0, 12], 1, &[192, 0, 2, 1])]);
    assert_eq!(masked(&mut unit, &whole).len(), whole.len());
    for end in 0..whole.len() {
        assert_eq!(masked(&mut unit, &whole[..end]), b"", "{end}");
    }
    assert_eq!(masked(&mut unit, &[&whole[..], &[0]].concat()), b"");
    // Pointers to themselves, forward, and into the header.
    for to in [RECORDS as u8, RECORDS as u8 + 2, 5] {
        let wrong = answer(&[record(&[0xc0, to], 1, &[192, 0, 2, 1])]);
        assert_eq!(masked(&mut unit, &wrong), b"", "{to}");
    }
    // A name that is longer than its record.
    let wrong = answer(&[record(&[0xc0, 12], 5, b"\x09longer")]);
    assert_eq!(masked(&mut unit, &wrong), b"");
}

#[test]
fn parts_take_only_what_they_can_become() {
    for line in
        ["\"dns.name\" = \"prefix\"", "\"dns.id\" = \"encrypt\"", "\"dns.ttl\" = \"random\""]
    {
        let policy = Policy::read(&format!("about = \"\"\n[fields]\n{line}")).expect("a policy");
        assert!(policy.compile().is_err(), "{line}");
    }
    let policy = Policy::read("about = \"\"\n[fields]\n\"dns.nam\" = \"hash\"").expect("a policy");
    let error = policy.compile().expect_err("unknown").to_string();
    assert!(error.contains("did you mean \"dns.name\""), "{error}");
}

proptest! {
    #[test]
    fn any_message_is_masked_to_its_length_or_removed(
        message in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        for fields in ["\"dns.*\" = \"hash\"", "\"dns.ttl\" = \"keep\"\n\"dns.name\" = \"hash\""] {
            let out = masked(&mut unit(fields), &message);
            prop_assert!(out.is_empty() || out.len() == message.len());
        }
    }

    /// Of two messages that differ in a secret only, the same comes out where it is removed.
    #[test]
    fn what_is_removed_leaves_no_trace(one: [u8; 4], other: [u8; 4], text in "[a-z]{8}") {
        let of = |address: [u8; 4], text: &str| {
            let text = [&[8][..], text.as_bytes()].concat();
            answer(&[record(&[0xc0, 12], 1, &address), record(&[0xc0, 12], 16, &text)])
        };
        let mut unit = unit("\"dns.name\" = \"hash\"");
        prop_assert_eq!(
            masked(&mut unit, &of(one, "aaaaaaaa")),
            masked(&mut unit, &of(other, &text))
        );
    }
}
