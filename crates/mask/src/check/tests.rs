//! Captures with something left in them, in every form.

mod known;
mod options;
mod remains;
mod segments;

use super::*;
use capture::pcapng::{self, Medium, Record};

fn capture_of(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    pcapng::section(&mut out, "test", None);
    pcapng::interface(&mut out, None, Medium::Ethernet, 0);
    for (time, bytes) in (0..).zip(packets) {
        let length = bytes.len() as u32;
        let (interface, direction, medium) = (0, None, Medium::Ethernet);
        pcapng::packet(
            &mut out,
            Record { interface, time, direction, medium, length, bytes, comment: None },
        );
    }
    out
}

const SOURCE: [u8; 4] = [198, 51, 100, 77];
const MAC: [u8; 6] = [0x02, 0x1b, 0x3c, 0x4d, 0x5e, 0x6f];

/// A frame of UDP from [`SOURCE`], with something to read.
fn original() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend(MAC);
    frame.extend([8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(SOURCE);
    frame.extend([192, 0, 2, 9, 0x30, 0x39, 0, 99, 0, 40, 0, 0]);
    frame.extend(*b"GET /the/secret/page?of=somebody");
    frame
}

fn found(masked: Vec<u8>) -> Vec<(String, u64)> {
    let original = capture_of(&[original()]);
    let report = check(&original[..], &capture_of(&[vec![0; 60], masked])[..]).expect("a report");
    assert_eq!((report.packets, report.masked), (1, 2));
    assert_eq!((report.ipv4, report.macs, report.runs), (2, 1, 4));
    assert_eq!(report.leaks, !report.findings.is_empty());
    for finding in &report.findings {
        assert_eq!(finding.packets, [2], "{finding}");
    }
    let text = |it: &Finding| it.to_string().split(':').next().unwrap_or_default().to_owned();
    report.findings.iter().map(|finding| (text(finding), finding.count)).collect()
}

fn within(bytes: &[u8]) -> Vec<u8> {
    [&[0xaa; 21][..], bytes, &[0xaa; 9]].concat()
}

fn one(says: &str) -> Vec<(String, u64)> {
    vec![(says.to_owned(), 1)]
}

#[test]
fn nothing_is_found_where_nothing_is() {
    assert_eq!(found(within(b"")), []);
    assert_eq!(found(vec![]), []);
    assert_eq!(found(vec![7; 3]), []);
}

#[test]
fn an_address_is_found_in_every_form() {
    assert_eq!(found(within(&SOURCE)), one("IPv4 addresses as they were"));
    let mut reversed = SOURCE;
    reversed.reverse();
    assert_eq!(found(within(&reversed)), one("IPv4 addresses with their bytes reversed"));
    assert_eq!(found(within(b"x 198.51.100.77, y")), one("IPv4 addresses as text"));
    assert_eq!(found(within(b"at 198.51.100.77.")), one("IPv4 addresses as text"));
    for text in
        ["198.51.100.77:5060", "198.51.100.77.443", "1.1.1.1-198.51.100.77", "77.100.51.198"]
    {
        assert_eq!(found(within(text.as_bytes())), one("IPv4 addresses as text"), "{text}");
    }
    assert_eq!(found(within(b"=c633644d=")), one("IPv4 addresses as hexadecimal digits"));
    let bits = u32::from_be_bytes(SOURCE);
    for shift in 1..8 {
        let wide = (u64::from(bits) << shift).to_be_bytes();
        assert_eq!(found(within(&wide[3..])), one("IPv4 addresses moved by some bits"), "{shift}");
    }
    // A neighbour is none.
    assert_eq!(found(within(&[198, 51, 100, 78])), []);
    assert_eq!(found(within(b"198.51.100.7")), []);
}

#[test]
fn one_of_something_is_not_many() {
    let original = capture_of(&[original()]);
    let says = |masked: &[u8]| check(&original[..], masked).expect("a report");
    let text = says(&original).to_string();
    for words in [
        "1 packet, 1 in the original\n",
        "looked for 2 IPv4 addresses, 0 IPv6 addresses, 1 MAC address, 0 names of hosts and 4 runs of payload\n",
        "; first in packet 1\n",
        "found at once by its size: 1 packet;",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let nothing = says(&capture_of(&[vec![0; 60], vec![0; 61]]));
    assert!(nothing.to_string().starts_with("2 packets, 1 in the original\n"), "{nothing}");
    let page = nothing.html("masked", "original");
    for words in ["masked against original: 2 packets, 1<", "1 MAC address, 0 names of hosts"] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

/// RFC 4291, appendix A.
#[test]
fn a_mac_address_is_found_in_the_identifier_that_is_made_of_it() {
    let identifier = [0, 0x1b, 0x3c, 0xff, 0xfe, 0x4d, 0x5e, 0x6f];
    let says = "interface identifiers made of MAC addresses";
    assert_eq!(found(within(&identifier)), one(&format!("{says} as they were")));
    let text = found(within(b" 2001:db8:7::1b:3cff:fe4d:5e6f "));
    assert_eq!(text, one(&format!("{says} as text")));
    // An address reveals the MAC address, too.
    let mut ipv6 = [&[0xff; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 59, 64]].concat();
    ipv6.extend([&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0][..], &identifier, &[0xff; 16]].concat());
    let original = capture_of(&[ipv6]);
    for (left, what) in [(&MAC[..], "MAC addresses as they were"), (&identifier, says)] {
        let report = check(&original[..], &capture_of(&[within(left)])[..]).expect("a report");
        assert!(report.leaks);
        assert!(report.findings[0].to_string().starts_with(what), "{}", report.findings[0]);
    }
}

#[test]
fn mac_addresses_and_payload_are_found() {
    assert_eq!(found(within(&MAC)), one("MAC addresses as they were"));
    assert_eq!(found(within(b" 02:1b:3c:4D:5e:6f ")), one("MAC addresses as text"));
    assert_eq!(found(within(b" 02-1b-3c-4d-5e-6f ")), one("MAC addresses as text"));
    assert_eq!(found(within(b"at 021b.3c4d.5e6f.")), one("MAC addresses as text"));
    assert_eq!(found(within(b"a-02:1b:3c:4d:5e:6f-b")), one("MAC addresses as text"));
    assert_eq!(found(within(b"021b3c4d5e6f")), one("MAC addresses as hexadecimal digits"));
    // Any fifteen bytes of it.
    let payload = &original()[42..];
    for begin in 0..payload.len() - 15 {
        let found = found(within(&payload[begin..begin + 15]));
        assert_eq!(found[0].0, "runs of payload as they were", "{begin}");
    }
}

/// A question for the address of a name, as a frame.
fn question() -> Vec<u8> {
    let mut frame = original();
    frame.truncate(34);
    frame.extend([0x30, 0x39, 0, 53, 0, 40, 0, 0]);
    frame.extend([9, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    frame.extend(b"\x05alice\x07example\x00\x00\x01\x00\x01");
    frame[17] = frame.len() as u8 - 14;
    frame[39] = frame[17] - 20;
    frame
}

#[test]
fn names_are_found_in_every_form_whatever_their_case() {
    let original = capture_of(&[question()]);
    for (masked, form) in [
        (b"to alice.example!".to_vec(), "as text"),
        (b"www.ALICE.Example".to_vec(), "as text"),
        (b"\x05AlIcE\x07example\x03org".to_vec(), "as DNS writes them"),
        (b"elpmaxe.ECILA".to_vec(), "with their bytes reversed"),
        (b"616c6963652e6578616D706c65".to_vec(), "as hexadecimal digits"),
        (b"alice.example\0".windows(2).map(|it| it[0] >> 3 | it[1] << 5).collect(), ""),
        (
            b"\0alice.example\0".windows(2).map(|it| it[0] << 5 | it[1] >> 3).collect(),
            "moved by some bits",
        ),
    ] {
        let report = check(&original[..], &capture_of(&[within(&masked)])[..]).expect("a report");
        assert_eq!(report.names, 1);
        let names = report.findings.iter().map(ToString::to_string);
        let names: Vec<_> = names.filter(|it| it.starts_with("names of hosts")).collect();
        if form.is_empty() {
            // The bits are not in their order.
            assert!(names.is_empty(), "{names:?}");
        } else {
            assert!(names.len() == 1 && names[0].contains(&format!("{form}: 1")), "{names:?}");
            assert!(report.leaks);
        }
    }
}

#[test]
fn comments_and_other_blocks_are_inspected() {
    let original = capture_of(&[original()]);
    for note in ["from 198.51.100.77", "02:1b:3c:4d:5e:6f", "GET /the/secret/page"] {
        let mut section = Vec::new();
        pcapng::section(&mut section, "test", Some(note));
        let mut packet = section.clone();
        pcapng::section(&mut section, "test", None);
        pcapng::interface(&mut packet, None, Medium::Ethernet, 0);
        let (interface, direction, medium) = (0, None, Medium::Ethernet);
        let (bytes, comment) = (&[0; 20][..], Some(note));
        let record = Record { interface, time: 0, direction, medium, length: 20, bytes, comment };
        pcapng::packet(&mut packet, record);
        for (masked, positions) in [(section, 1), (packet, 2)] {
            let report = check(&original[..], &masked[..]).expect("a report");
            assert!(report.leaks, "{note}");
            let finding = &report.findings[0];
            assert_eq!((finding.outside % positions, finding.packets.len()), (0, 0), "{finding}");
            assert_eq!(finding.outside, finding.count, "{finding}");
        }
    }
}

/// What no header is known of is looked for like payload.
#[test]
fn fragments_quotes_trailers_and_unknown_protocols_are_payload() {
    let secret = *b"0123456789abcdef";
    let ip = |protocol: u8, fragment: u8, rest: &[u8]| {
        let length = 20 + rest.len() as u8;
        let start = [0x45, 0, 0, length, 0, 0, 0, fragment, 64, protocol, 0, 0];
        [&start[..], &[192, 0, 2, 1, 192, 0, 2, 2], rest].concat()
    };
    let frame = |kind: [u8; 2], rest: &[u8]| [&[0; 12][..], &kind, rest].concat();
    let quote = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &ip(17, 0, &[&[0; 8][..], &secret].concat())];
    for packet in [
        frame([8, 0], &ip(17, 9, &secret)),
        frame([8, 0], &ip(132, 0, &secret)),
        frame([8, 0], &ip(1, 0, &quote.concat())),
        frame([8, 0], &[&ip(17, 0, &[0; 8])[..], &secret].concat()),
        frame([0x88, 0xcc], &secret),
    ] {
        let masked = capture_of(&[within(&secret)]);
        let report = check(&capture_of(&[packet])[..], &masked[..]).expect("a report");
        assert!(report.leaks && report.runs == 2, "{report:?}");
    }
}

#[test]
fn the_original_itself_leaks_everything() {
    let capture = capture_of(&[original()]);
    let report = check(&capture[..], &capture[..]).expect("a report");
    assert!(report.leaks);
    let plain = report.findings.iter().filter(|it| it.to_string().contains("as they were"));
    assert_eq!(plain.map(|it| it.count).sum::<u64>(), 2 + 1 + 4);
}

#[test]
fn what_chance_finds_is_no_leak() {
    // All hosts of a network but every second, and masked bytes that are of the same network throughout.
    let packets: Vec<Vec<u8>> = (0..100u8)
        .map(|host| {
            let mut frame = original();
            frame[26..30].copy_from_slice(&[198, 51, 100, 2 * host]);
            frame
        })
        .collect();
    let masked: Vec<Vec<u8>> =
        (0..=255u8).map(|host| within(&[198, 51, 100, host, 0xaa, 0xbb])).collect();
    let report = check(&capture_of(&packets)[..], &capture_of(&masked)[..]).expect("a report");
    let finding = &report.findings[0];
    assert_eq!((finding.count, report.leaks), (100, false), "{finding}");
    assert!((finding.by_chance - 100.0).abs() < 5.0, "{finding}");
}
