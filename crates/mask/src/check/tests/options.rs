//! What is in options of headers.

use super::{segments::masked, *};
use crate::policy::{Policy, SHIPPED};

const SECRET: &[u8; 16] = b"0123456789abcdef";

fn ethernet(kind: [u8; 2], rest: &[u8]) -> Vec<u8> {
    [&[0; 12][..], &kind, rest].concat()
}

fn ipv4(protocol: u8, options: &[u8], rest: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let start = [0x40 | (header / 4) as u8, 0, 0, (header + rest.len()) as u8];
    let start = [&start[..], &[0, 0, 0, 0, 64, protocol, 0, 0]].concat();
    ethernet([8, 0], &[&start[..], &[192, 0, 2, 1, 192, 0, 2, 2], options, rest].concat())
}

fn ipv6(next: u8, rest: &[u8]) -> Vec<u8> {
    let length = (rest.len() as u16).to_be_bytes();
    let start = [0x60, 0, 0, 0, length[0], length[1], next, 64];
    let ends = [[0x20; 15], [0x30; 15]].map(|network| [&network[..], &[1]].concat()).concat();
    ethernet([0x86, 0xdd], &[&start[..], &ends, rest].concat())
}

fn tcp(options: &[u8]) -> Vec<u8> {
    let offset = ((20 + options.len()) / 4) as u8;
    let header = [&[0; 12][..], &[offset << 4, 2], &[0; 6], options].concat();
    ipv4(6, &[], &header)
}

/// A redirect of neighbour discovery.
fn redirect(quoted: &[u8]) -> Vec<u8> {
    let room = quoted.len().next_multiple_of(8) - quoted.len();
    let option = [4, ((8 + quoted.len() + room) / 8) as u8, 0, 0, 0, 0, 0, 0];
    [&[137, 0, 0, 0][..], &[0; 36], &option, quoted, &[0; 8][..room]].concat()
}

/// Packets whose secret is in an option that no policy can name.
fn packets() -> Vec<Vec<u8>> {
    let udp = [0, 9, 0, 9, 0, 8, 0, 0];
    let with = |start: &[u8], end: &[u8]| [start, SECRET, end].concat();
    let datagram = [&[0, 9, 0, 9, 0, 24, 0, 0][..], SECRET].concat();
    let quoted = &ipv6(17, &datagram)[14..];
    let segments =
        [&[17, 5, 4, 0, 0, 0, 0, 0][..], &[0; 16], &[0, 1, 1, 0, 5, 17], SECRET, &[7, 0]];
    vec![
        tcp(&with(&[1, 30, 18], &[1])),
        // Of another length than it has; behind the end of options.
        tcp(&with(&[8, 18], &[1, 1])),
        tcp(&with(&[0, 0, 0], &[0])),
        ipv4(17, &with(&[130, 18], &[0, 0]), &udp),
        ipv4(17, &with(&[0], &[0, 0, 0]), &udp),
        // Options for each hop and for the destination, behind padding of both kinds.
        ipv6(0, &[&with(&[17, 2, 0, 0x3e, 17], &[7, 0, 0]), &udp[..]].concat()),
        ipv6(60, &[&with(&[17, 2, 1, 0, 0x3e, 16], &[1, 0]), &udp[..]].concat()),
        ipv6(43, &[&segments.concat(), &udp[..]].concat()),
        ipv6(43, &[&with(&[17, 2, 9, 1], &[0; 4]), &udp[..]].concat()),
        // Of neighbour discovery.
        ipv6(58, &with(&[133, 0, 0, 0, 0, 0, 0, 0, 99, 3], &[0; 6])),
        ipv6(58, &with(&[134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3], &[0; 6])),
        ipv6(58, &redirect(quoted)),
    ]
}

#[test]
fn what_nothing_is_known_of_is_looked_for() {
    for (number, packet) in packets().into_iter().enumerate() {
        let capture = capture_of(&[packet]);
        let kept = capture_of(&[within(SECRET)]);
        let report = check(&capture[..], &kept[..]).expect("a report");
        assert!(report.leaks && (2..=3).contains(&report.runs), "{number}: {report}");
        for (name, _) in SHIPPED {
            let policy = Policy::shipped(name).expect("a policy");
            let report = check(&capture[..], &masked(&capture, &policy)[..]).expect("a report");
            assert!(!report.leaks, "{number} by {name}: {report}");
        }
    }
}

/// What a redirect quotes has the addresses of its headers, and they are no runs: other packets keep theirs.
#[test]
fn a_redirected_packet_is_one_also_in_another_redirect() {
    let mut packet = packets().pop().expect("the last one");
    // As deep as the length of an option allows.
    while packet.len() < 2000 {
        let report = check(&capture_of(&[packet.clone()])[..], &capture_of(&[])[..]);
        let report = report.expect("a report");
        assert_eq!((report.ipv6, report.runs), (2, 2), "{}", packet.len());
        packet = ipv6(58, &redirect(&packet[14..]));
    }
}

/// They are the policy's to keep, and what they reveal is among the fingerprints.
#[test]
fn options_that_policies_can_name_and_short_ones_are_not_looked_for() {
    for options in [
        &[&[1, 1, 8, 10][..], b"01234567"].concat()[..],
        &[&[1, 1, 5, 10][..], b"01234567"].concat(),
        &[&[1, 1, 1, 34, 9][..], b"0123456"].concat(),
    ] {
        let report = check(&capture_of(&[tcp(options)])[..], &capture_of(&[])[..]);
        assert_eq!(report.expect("a report").runs, 0, "{options:?}");
    }
}
