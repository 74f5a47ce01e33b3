//! `nigh gate classify` and `nigh gate replay` on captures that the tests write: what is printed, how well
//! that is judged, and that what is sent arrives as it was recorded.

use clap::Parser;
use datapath::socket::{Buffer, Receive, Socket};
use gate::cli::{ClassifyArgs, ClassifyError, ReplayArgs, classify, replay};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Duration,
};
use testbed::{End, Namespace, link};
use wire::{EtherType, IpProtocol, ipv4, tcp};

/// As on the command line.
#[derive(Parser)]
struct Line<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

fn args<A: clap::Args>(words: &[&str]) -> A {
    Line::<A>::parse_from(std::iter::once(&"test").chain(words)).args
}

const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 5), 40_000);

/// An Ethernet frame with a TCP segment.
fn frame(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 14 + 20 + 20 + payload.len()];
    out[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    out[12..14].copy_from_slice(&EtherType::IPV4.0.to_be_bytes());
    let header = ipv4::Repr {
        source: from.0,
        destination: to.0,
        protocol: IpProtocol::TCP,
        ttl: 64,
        traffic_class: 0,
        identification: 1,
        dont_fragment: true,
        payload_len: 20 + payload.len(),
    };
    header.emit(&mut out[14..]).unwrap();
    let segment = tcp::Repr {
        source_port: from.1,
        destination_port: to.1,
        sequence,
        acknowledgement: 1,
        flags: tcp::Flags::ACK,
        window: 1000,
    };
    let ends = (IpAddr::from(from.0), IpAddr::from(to.0));
    segment.emit(ends, payload, &mut out[34..]).unwrap();
    out
}

/// A web server's flow, a peer's, and one of which nobody knows what it is.
fn frames() -> Vec<Vec<u8>> {
    let web = ([192, 0, 2, 80].into(), 8080);
    let peer = ([192, 0, 2, 7].into(), 51_413);
    let odd = ([192, 0, 2, 9].into(), 9999);
    let mut handshake = b"\x13BitTorrent protocol".to_vec();
    handshake.extend([0; 8]);
    handshake.extend(*b"01234567890123456789-nigh00-abcdefghijkl");
    let request = b"GET / HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: x\r\n\r\n";
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
    let mut all = vec![
        frame(CLIENT, web, 1, request),
        frame(web, CLIENT, 1, answer),
        frame((CLIENT.0, 40_001), peer, 1, &handshake),
        frame(peer, (CLIENT.0, 40_001), 1, &handshake),
    ];
    for at in 0..9 {
        all.push(frame((CLIENT.0, 40_002), odd, 1 + at * 3, &[0x80, at as u8, 0x81]));
    }
    all
}

/// Writes a capture, a millisecond between frames.
fn capture(folder: &tempfile::TempDir, frames: &[Vec<u8>]) -> PathBuf {
    let mut out = 0xa1b2_c3d4u32.to_le_bytes().to_vec();
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    for (at, frame) in frames.iter().enumerate() {
        out.extend(7u32.to_le_bytes());
        out.extend((at as u32 * 1000).to_le_bytes());
        out.extend((frame.len() as u32).to_le_bytes());
        out.extend((frame.len() as u32).to_le_bytes());
        out.extend(frame);
    }
    let path = folder.path().join("flows.pcap");
    fs::write(&path, out).unwrap();
    path
}

fn run(words: &[&str], json: bool) -> Result<String, (ClassifyError, String)> {
    let mut out = Vec::new();
    let result = classify(&args::<ClassifyArgs>(words), Default::default(), json, &mut out);
    let text = String::from_utf8(out).unwrap();
    result.map(|()| text.clone()).map_err(|error| (error, text))
}

#[test]
fn a_capture_is_labelled_as_tables_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = capture(&folder, &frames());
    let path = path.to_str().unwrap();
    let text = run(&[path], false).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let row =
        |name: &str| rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(row("http")[1..4], ["1", "0", "2"], "{text}");
    assert_eq!(row("bittorrent/peer-wire")[1..4], ["1", "0", "2"], "{text}");
    assert_eq!(row("unknown")[1..4], ["1", "0", "9"], "{text}");
    assert!(text.ends_with("flows.pcap: 13 frames, 13 of flows\n"), "{text}");

    let text = run(&[path, "--flows"], false).unwrap();
    assert!(text.contains("tcp 10.0.0.5:40000 > 192.0.2.80:8080"), "{text}");
    assert!(text.contains("http (server name www.example.org)"), "{text}");

    let text = run(&[path], true).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["server_name"], "www.example.org");
    assert_eq!(lines[1]["application"], "bittorrent");
    assert_eq!(lines[1]["category"], "peer-to-peer");
    assert_eq!(lines[1]["engine"], "parser");
    assert_eq!(
        (&lines[2]["application"], &lines[2]["known_after"]),
        (&"unknown".into(), &().into())
    );
}

#[test]
fn labels_are_judged_by_a_table_of_what_flows_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = capture(&folder, &frames());
    let table = folder.path().join("TRUTH");
    let words = [path.to_str().unwrap(), "--truth", table.to_str().unwrap()];
    fs::write(&table, "flows.pcap tcp *:* *:51413 bittorrent plain\n* any *:* *:* other plain\n")
        .unwrap();
    let text = run(&words, false).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    let cells = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        cells(rows[0]).join(" "),
        "bittorrent 1 100.00 % 100.00 % 0 100.00 % 0.00 %",
        "{text}"
    );
    assert_eq!(cells(rows[1]).join(" "), "other 2 100.00 % 100.00 % 1 - -", "{text}");

    // Called bittorrent, and should not have been: half of the flows that are none.
    fs::write(&table, "* any *:* *:8080 bittorrent hidden\n* any *:* *:* other plain\n").unwrap();
    let text = run(&words, true).unwrap();
    // The flows come first, then what is judged.
    let mut lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.retain(|line| line["truth"] == "bittorrent");
    assert_eq!((&lines[0]["recall"], &lines[0]["false_share"]), (&0.0.into(), &0.5.into()));
    assert_eq!(lines[0]["how"], "hidden");

    fs::write(&table, "* any *:* *:8080 other plain\n").unwrap();
    let (error, _) = run(&words, false).unwrap_err();
    assert!(error.to_string().starts_with("2 flows with payload match no line"), "{error}");
    fs::write(&table, "nonsense\n").unwrap();
    let (error, _) = run(&words, false).unwrap_err();
    assert!(error.to_string().contains("TRUTH: line 1: "), "{error}");
}

#[test]
fn what_is_no_capture_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.txt");
    fs::write(&path, "Dear reader, this is no capture, but long enough to be one.").unwrap();
    let (error, _) = run(&[path.to_str().unwrap()], false).unwrap_err();
    assert!(error.to_string().contains("letter.txt: neither pcap nor pcapng"), "{error}");
    let (error, _) = run(&["/nowhere.pcap"], false).unwrap_err();
    assert!(error.to_string().starts_with("cannot open /nowhere.pcap"), "{error}");
}

/// The next frames of IPv4; the kernel's own, such as neighbour discovery, are of other kinds.
fn take(receiver: &Socket, count: usize) -> Vec<Vec<u8>> {
    let mut buffer = Buffer::new(2048);
    let mut got = Vec::new();
    while got.len() < count {
        let mut any = false;
        for one in receiver.receive(&mut buffer).unwrap() {
            any = true;
            if one.bytes[12..14] == EtherType::IPV4.0.to_be_bytes() {
                got.push(one.bytes.to_vec());
            }
        }
        assert!(any, "{} of {count} frames came", got.len());
    }
    got
}

mod root {
    use super::*;

    #[test]
    fn what_is_sent_arrives_as_it_was_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = frames();
        let path = capture(&folder, &wanted);
        let (one, other) = (Namespace::new("send").unwrap(), Namespace::new("take").unwrap());
        link(End::new(&one, "out"), End::new(&other, "in")).unwrap();
        let receiver = other.enter(|| {
            let index = nix::net::if_::if_nametoindex("in").unwrap();
            let socket = Socket::packet(index, Receive::Incoming).unwrap();
            socket.set_timeout(Duration::from_secs(10)).unwrap();
            socket
        });
        let path = path.to_str().unwrap();
        for speed in ["max", "100"] {
            let words = [path, "--interface", "out", "--speed", speed];
            let sent = one.enter(|| replay(&args::<ReplayArgs>(&words))).unwrap();
            assert_eq!((sent.frames, sent.too_long, sent.filled), (13, 0, 0));
            assert_eq!(sent.bytes, wanted.iter().map(|frame| frame.len() as u64).sum::<u64>());
            let got = take(&receiver, wanted.len());
            assert_eq!(got, wanted);
        }
        let words = [path, "--interface", "out", "--to", "02:00:00:00:00:77", "--speed", "max"];
        one.enter(|| replay(&args::<ReplayArgs>(&words))).unwrap();
        wanted.iter_mut().for_each(|frame| frame[5] = 0x77);
        assert_eq!(take(&receiver, wanted.len()), wanted);
        let words = [path, "--interface", "nothing"];
        let error = one.enter(|| replay(&args::<ReplayArgs>(&words))).unwrap_err();
        assert_eq!(error.to_string(), "there is no interface nothing: see `ip link`");
    }
}
