//! Messages of each protocol, put together by hand; those of DNS and DHCP for IPv6 have files of their own.

use super::{dhcpv6::tests::relayed, *};
use crate::{
    application::*,
    machine::{Link, MappingName, Unit},
    policy::Policy,
};
use proptest::prelude::*;

pub(super) fn unit(fields: &str) -> Unit {
    let text =
        format!("about = \"\"\n[fields]\n\"udp.*\" = \"keep\"\n\"tcp.*\" = \"keep\"\n{fields}");
    let program = Policy::read(&text).expect("a policy").compile().expect("a program");
    Unit::new(program, Secrets::new(&[7; 32], MappingName::CryptoPan).expect("a key"))
}

/// The masked message from this port, behind its headers; over TCP where HTTP is.
pub(super) fn masked_on(unit: &mut Unit, port: u16, message: &[u8]) -> Vec<u8> {
    let ports = [port.to_be_bytes(), [0x9c, 0x40]].concat();
    let (protocol, transport) = if port == 80 {
        (6, [&ports[..], &[0; 8], &[0x50, 0x18, 0, 0, 0, 0, 0, 0]].concat())
    } else {
        let length = ((8 + message.len()) as u16).to_be_bytes();
        (17, [&ports[..], &length, &[0, 0]].concat())
    };
    let behind = 20 + transport.len();
    let length = ((behind + message.len()) as u16).to_be_bytes();
    let start = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    let packet = [&start[..], &[192, 0, 2, 1, 192, 0, 2, 2], &transport, message].concat();
    let mut out = Vec::new();
    unit.mask(Link::Ip, &packet, 1, &mut out);
    out.split_off(behind)
}

pub(super) fn dhcp() -> Vec<u8> {
    let mut message = vec![0; 240];
    message[..12].copy_from_slice(&[1, 1, 6, 0, 9, 8, 7, 6, 0, 1, 0, 0]);
    message[12..16].copy_from_slice(&[192, 0, 2, 1]);
    message[28..34].copy_from_slice(&[2, 0x1b, 0x3c, 0x4d, 0x5e, 0x6f]);
    message[44..50].copy_from_slice(b"server");
    message[236..].copy_from_slice(&[99, 130, 83, 99]);
    let options = [
        &[53, 1, 3][..],
        &[12, 6],
        b"laptop",
        &[50, 4, 192, 0, 2, 1],
        &[61, 7, 1, 2, 0x1b, 0x3c, 0x4d, 0x5e, 0x6f],
        &[55, 3, 1, 3, 6],
        &[0, 255, 0, 0],
    ];
    [message, options.concat()].concat()
}

fn radius() -> Vec<u8> {
    let attributes =
        [&[1, 7][..], b"alice", &[2, 18], &[0x5a; 16], &[4, 6, 192, 0, 2, 1], &[5, 6, 0, 0, 0, 9]];
    let attributes = attributes.concat();
    [&[1, 77, 0, 20 + attributes.len() as u8][..], &[0x33; 16], &attributes].concat()
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, content.len() as u8][..], content].concat()
}

fn snmp() -> Vec<u8> {
    let binding = |value: Vec<u8>| {
        element(0x30, &[element(6, &[0x2b, 6, 1, 2, 1, 4, 20, 192]), value].concat())
    };
    let bindings = [
        binding(element(0x40, &[192, 0, 2, 1])),
        binding(element(4, b"office 12")),
        binding(element(0x41, &[1, 2, 3])),
    ];
    let numbers = [element(2, &[9, 9]), element(2, &[0]), element(2, &[0])].concat();
    let pdu = element(0xa2, &[numbers, element(0x30, &bindings.concat())].concat());
    element(0x30, &[element(2, &[1]), element(4, b"secret"), pdu].concat())
}

const HTTP: &[u8] = b"GET /a/page?of=alice HTTP/1.1\r\nHost: www.Example.org\r\n\
    Content-Length: 5\r\nX-Alice: 7\r\nCookie: id=alice\r\n\r\nalice";
const SIP: &[u8] = b"INVITE sip:bob@192.0.2.1 SIP/2.0\r\nFrom: <sip:alice@example.org>\r\n\
    Content-Length: chunk\r\nMax-Forwards: 70\r\n\r\nv=0 alice";

/// A message of each protocol with its port and the prefix of its parts.
fn all() -> [(&'static str, u16, Vec<u8>); 6] {
    [
        ("dhcp", 67, dhcp()),
        ("dhcp", 547, relayed()),
        ("radius", 1812, radius()),
        ("snmp", 161, snmp()),
        ("http", 80, HTTP.to_vec()),
        ("sip", 5060, SIP.to_vec()),
    ]
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    bytes.to_ascii_lowercase().windows(text.len()).any(|window| window == text)
}

#[test]
fn what_is_kept_is_the_message_and_what_is_removed_leaves_no_secret() {
    for (name, port, message) in all() {
        let mut keep = unit(&format!("\"{name}.*\" = \"keep\""));
        let kept = masked_on(&mut keep, port, &message);
        assert_eq!(kept.len(), message.len(), "{name}");
        // Of these only what is always removed is gone: passwords, files, fingerprints, what ends a message.
        let changed = kept.iter().zip(&message).filter(|(a, b)| a != b).count();
        assert!(changed <= 40, "{name}: {changed}");
        // One part that identifies nobody is kept, all others are removed.
        let part = PARTS.iter().rfind(|part| part.name.starts_with(name)).expect("a part").name;
        let first = PARTS.iter().find(|part| part.name.starts_with(name)).expect("a part").name;
        let mut hash = unit(&format!("\"{part}\" = \"hash\"\n\"{first}\" = \"hash\""));
        let out = masked_on(&mut hash, port, &message);
        assert_eq!(out.len(), message.len(), "{name}");
        for secret in [
            &b"alice"[..],
            b"bob",
            b"example",
            b"secret",
            b"office",
            b"laptop",
            b"server",
            b"page",
            &[192, 0, 2, 1],
            &[0x1b, 0x3c, 0x4d],
            &[0x5a; 4],
            &[0x33; 4],
        ] {
            assert!(!holds(&out, secret), "{name}: {secret:?} in {out:?}");
        }
        // No part of it is named: all of it goes.
        assert_eq!(masked_on(&mut unit(""), port, &message), b"", "{name}");
    }
}

#[test]
fn values_become_those_of_headers_and_of_each_other() {
    let pan = crate::mapping::CryptoPan::new(&[7; 32]).map4(0xc000_0201).to_be_bytes();
    let mut dhcp_unit = unit("\"dhcp.address\" = \"prefix\"\n\"dhcp.mac\" = \"encrypt\"");
    let out = masked_on(&mut dhcp_unit, 67, &dhcp());
    assert_eq!(out[12..16], pan);
    assert_eq!(out[253..257], pan, "the address that is asked for");
    // The client's identifier is its MAC address again.
    assert_eq!(out[28..34], out[260..266]);
    assert_ne!(out[28..34], dhcp()[28..34]);
    // Nothing is mapped to nothing else: there is no address.
    assert_eq!(out[16..20], out[20..24]);

    let out = masked_on(&mut unit("\"radius.address\" = \"prefix\""), 1812, &radius());
    assert_eq!(out[47..51], pan);
    assert_eq!(out[20..27], *b"\x01\x07xxxxx");

    let out = masked_on(&mut unit("\"snmp.address\" = \"prefix\""), 161, &snmp());
    assert!(holds(&out, &[&[0x40, 4][..], &pan].concat()));
    assert!(holds(&out, b"xxxxxx"), "the community");

    let mut lines = unit("\"http.host\" = \"hash\"\n\"http.header\" = \"keep\"");
    let out = masked_on(&mut lines, 80, HTTP);
    let text = String::from_utf8(out).expect("text");
    assert!(text.starts_with("GET xxxxxxxxxxxxxxxx HTTP/1.1\r\nHost: "), "{text}");
    assert!(text.contains("Content-Length: 5\r\nX-Alice: 7\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\nxxxxx"), "{text}");
    let text = String::from_utf8(masked_on(&mut unit("\"sip.uri\" = \"hash\""), 5060, SIP));
    let text = text.expect("text");
    // A length that is no number says something else.
    assert!(text.contains("Content-Length: xxxxx\r\nMax-Forwards: xx\r\n"), "{text}");
    let status = b"HTTP/1.1 404 No alice here\r\nServer: x\r\n\r\n";
    let out = masked_on(&mut unit("\"http.host\" = \"hash\""), 80, status);
    assert!(out.starts_with(b"HTTP/1.1 404xxxxxxxxxxxxxx\r\nServer: x\r\n"), "{out:?}");
}

#[test]
fn what_is_cut_or_wrong_is_removed() {
    for (name, port, message) in all() {
        let mut keep = unit(&format!("\"{name}.*\" = \"keep\""));
        // What ends a message: DHCP has room behind it, and bodies of lines have no end of their own.
        let whole = match port {
            67 => message.len() - 2,
            80 | 5060 => message.windows(4).position(|it| it == b"\r\n\r\n").expect("an end") + 4,
            _ => message.len(),
        };
        // A relay's that holds no message is one still.
        for end in (0..whole).filter(|end| (port, *end) != (547, 34)) {
            assert_eq!(masked_on(&mut keep, port, &message[..end]), b"", "{name} cut at {end}");
        }
    }
    let mut keep = unit("\"http.*\" = \"keep\"\n\"sip.*\" = \"keep\"");
    for wrong in [
        "ALICE / HTTP/1.1\r\n\r\n",
        "GET / HTTP/9.alice\r\n\r\n",
        "GET / HTTP/1.1\r\nal ice: 1\r\n\r\n",
    ] {
        assert_eq!(masked_on(&mut keep, 80, wrong.as_bytes()), b"", "{wrong}");
    }
}

#[test]
fn parts_stand_where_their_protocols_look_for_them() {
    // The first of each protocol, which its module counts from.
    let first = |protocol| PARTS.iter().position(|part| part.protocol == protocol);
    let of = [
        Protocol::Dns,
        Protocol::Dhcp,
        Protocol::Radius,
        Protocol::Snmp,
        Protocol::Http,
        Protocol::Sip,
    ];
    assert_eq!(of.map(first), [0, 5, 10, 14, 19, 23].map(Some));
}

proptest! {
    #[test]
    fn any_message_is_masked_to_its_length_or_removed(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        at in 0usize..200,
    ) {
        for (name, port, mut message) in all() {
            let mut unit = unit(&format!("\"{name}.*\" = \"hash\""));
            let at = at.min(message.len());
            let end = (at + bytes.len()).min(message.len());
            message.splice(at..end, bytes.iter().copied());
            let out = masked_on(&mut unit, port, &message);
            prop_assert!(out.is_empty() || out.len() == message.len(), "{}", name);
        }
    }
}
