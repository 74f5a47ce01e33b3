//! Masked packets on a TAP device, as tcpdump sees them, in a namespace.

use datapath::mask::Direction;
use mask::{
    live::output::{Device, Output, OutputError, Packet, Statistics},
    machine::Link,
};
use std::{fs::File, path::Path};
use testbed::{LIMIT, Namespace, wait_until};

/// An Ethernet header, a full IP packet and two VLAN tags.
const LONGEST: usize = 14 + 65_535 + 8;

fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let file = File::open(path).expect("a capture");
    let _ = capture::read::<capture::ReadError>(file, |frame, _| {
        frames.push(frame.bytes.to_vec());
        Ok(())
    });
    frames
}

/// What tcpdump writes of packets that are written to a device of this link, and what happened to them.
fn seen(link: Link, packets: &[&[u8]], wanted: usize) -> (Vec<Vec<u8>>, Statistics) {
    let host = Namespace::new("masked").expect("a namespace");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("seen.pcap");
    let mut output = Output::Tap(host.enter(|| Device::open(link, "mask0")).expect("a device"));
    let name = path.to_str().expect("a name");
    let words = ["tcpdump", "-Z", "root", "-U", "-s", "0", "-ni", "mask0", "-w", name];
    let dump = host.spawn(&words).expect("tcpdump");
    wait_until("tcpdump", LIMIT, || dump.stderr().contains("listening")).expect("tcpdump");
    for bytes in packets {
        let packet = Packet {
            at_ns: 0,
            length: bytes.len() as u32,
            direction: Direction::In,
            comment: None,
            bytes,
        };
        output.packet(&packet).expect("written");
    }
    output.flush().expect("nothing waits");
    wait_until("all frames", LIMIT, || frames(&path).len() >= wanted).expect("all frames");
    let state = host.check(&["ip", "address", "show", "mask0"]).expect("a device");
    assert!(
        state.contains("NOARP") && state.contains("UP") && state.contains("mtu 65521"),
        "{state}"
    );
    assert!(!state.contains("inet"), "{state}");
    let (statistics, ended) = output.end();
    ended.expect("an end");
    assert!(!host.check(&["ip", "link"]).expect("links").contains("mask0"));
    (frames(&path), statistics)
}

#[test]
fn frames_are_seen_as_they_are() {
    let small = [[0xff; 6], [2; 6]].concat();
    let frame = [&small[..], &[0x08, 0x06], &[7; 46]].concat();
    let longest = [&small[..], &[0x88, 0xb5], &vec![9; LONGEST - 14]].concat();
    let packets: [&[u8]; 5] = [&frame, &longest, &frame[..13], &frame[..14], &vec![1; LONGEST + 1]];
    let (seen, statistics) = seen(Link::Ethernet, &packets, 3);
    assert!(seen == [frame.clone(), longest, frame[..14].to_vec()]);
    let bytes = (60 + LONGEST + 14) as u64;
    assert_eq!(
        statistics,
        Statistics { packets: 3, bytes, short: 1, long: 1, ..Statistics::default() }
    );
}

#[test]
fn packets_of_ip_have_a_header_that_says_which() {
    let (v4, v6) = ([0x45; 40], [0x60; 40]);
    let (seen, statistics) = seen(Link::Ip, &[&v4, &[], &v6], 2);
    let framed = |kind: [u8; 2], packet: &[u8]| [&[0; 12], &kind[..], packet].concat();
    assert!(seen == [framed([0x08, 0], &v4), framed([0x86, 0xdd], &v6)]);
    assert_eq!((statistics.packets, statistics.bytes, statistics.short), (2, 80, 1));
}

#[test]
fn a_device_that_is_down_loses_packets_and_one_that_is_gone_is_an_error() {
    let host = Namespace::new("down").expect("a namespace");
    let open = || host.enter(|| Device::open(Link::Ip, "mask0"));
    let mut output = Output::Tap(open().expect("a device"));
    assert!(matches!(open(), Err(OutputError::Tap(error)) if error.is_busy()));
    let packet = Packet {
        at_ns: 0,
        length: 20,
        direction: Direction::In,
        comment: None,
        bytes: &[0x45; 20],
    };
    host.check(&["ip", "link", "set", "mask0", "down"]).expect("down");
    output.packet(&packet).expect("lost");
    assert_eq!(output.statistics().refused, 1);
    host.check(&["ip", "link", "delete", "mask0"]).expect("gone");
    let error = output.packet(&packet).expect_err("no device").to_string();
    assert!(error.starts_with("TAP device mask0: "), "{error}");
    assert!(host.enter(|| Device::open(Link::Ip, "mask%d")).is_err());
}
