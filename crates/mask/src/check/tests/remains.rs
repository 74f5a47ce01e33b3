//! What is left without a leak: hosts that look alike, fingerprints, and the page that says so.

use super::{segments::*, *};
use crate::policy::{Policy, SHIPPED};
use proptest::prelude::*;

const NO_ADDRESS: [&str; 2] = [r#""ipv4.source" = "remove""#, r#""ipv4.destination" = "remove""#];

#[test]
fn hosts_that_look_alike_are_counted() {
    let mut packets = hosts(5);
    // Another system, and one some hops away, which says nothing.
    packets[1].ttl = 57;
    packets[3].ttl = 128;
    packets[4].window = 1024;
    let of = |lines: &[&str]| after(&packets, lines).anonymity;
    let all = of(&[]);
    assert_eq!((all.hosts, all.groups, all.smallest, all.alone), (5, 3, 1, 2));
    assert_eq!(all.sizes.into_iter().collect::<Vec<_>>(), [(1, 2), (3, 1)]);
    let names: Vec<_> = all.features.iter().map(|it| (it.name, it.values, it.alone)).collect();
    assert_eq!(names, [("first TTL", 2, 1), ("TCP window", 2, 1)]);
    // One in five.
    assert!((all.features[0].bits - 0.7219).abs() < 1e-4, "{:?}", all.features);
    let lines = all.features.iter().flat_map(|feature| feature.policy).copied();
    let none = of(&lines.collect::<Vec<_>>());
    assert_eq!((none.hosts, none.groups, none.smallest, none.alone), (5, 1, 5, 0));
    assert!(none.features.is_empty());
}

#[test]
fn hosts_are_identified_by_mac_addresses_where_no_address_is_left_and_then_by_nothing() {
    let packets = hosts(3);
    assert_eq!(after(&packets, &[]).anonymity.hosts_by, Some(HostsBy::Address));
    let by_mac = after(&packets, &NO_ADDRESS).anonymity;
    assert_eq!((by_mac.hosts_by, by_mac.hosts), (Some(HostsBy::Mac), 3));
    let lines = [&NO_ADDRESS[..], &[r#""ethernet.*" = "remove""#]].concat();
    // The group's own line is in the policy already.
    let text = format!("about = \"\"\n[fields]\n{}\n\"ipv4.*\" = \"keep\"\n", lines.join("\n"));
    let capture = capture_at(&packets);
    let policy = Policy::read(&text).expect("a policy");
    let report = check(&capture[..], &masked(&capture, &policy)[..]).expect("a report");
    assert_eq!((report.anonymity.hosts_by, report.anonymity.hosts), (None, 0));
    assert!(report.to_string().contains("hosts cannot be distinguished"), "{report}");
}

/// Two connections of a host with a clock of 1000 Hz, and one of another host.
fn with_everything() -> Vec<Segment> {
    let mut packets = Vec::new();
    for n in 0..20u16 {
        let (time, ticks) = (1_700_000_000_000_000_001 + u64::from(n) * 50_000_000, n * 50);
        let first = Segment {
            time,
            ports: [40_000 + n % 2, 443],
            identification: 100 + n,
            timestamp: 90_000_000 + u32::from(ticks),
            payload: usize::from(n / 3),
            ..Segment::default()
        };
        let (source, ports, timestamps_first) = ([192, 0, 2, 9], [50_000, 22], true);
        let identification = n.wrapping_mul(30_011) | 1;
        let timestamp = 0x9e37_79b9_u32.wrapping_mul(n.into()) | 1;
        let second =
            Segment { source, ports, timestamps_first, timestamp, identification, ..first };
        packets.extend([first, Segment { payload: 0, ..second }]);
    }
    packets.last_mut().expect("some").payload = 999;
    packets
}

/// What the report says to do does away with what it says, and with nothing else.
#[test]
fn each_fingerprint_goes_with_the_lines_that_are_said_to_remove_it() {
    let packets = with_everything();
    let before = after(&packets, &[]).fingerprints;
    let traces = |of: &[Fingerprint]| of.iter().map(|it| it.trace).collect::<Vec<_>>();
    use Trace::*;
    let all = [TcpTimestamps, TcpOptions, IpIdentification, RareSizes, Times, Ports];
    assert_eq!(traces(&before), all);
    for found in &before {
        let left = traces(&after(&packets, found.policy).fingerprints);
        assert_eq!(left.contains(&found.trace), found.policy.is_empty(), "{found}");
        let others = all.iter().filter(|trace| **trace != found.trace);
        let gone: Vec<_> = others.filter(|trace| !left.contains(trace)).collect();
        // Without options there is no option for timestamps.
        assert!(gone.is_empty() || found.trace == TcpOptions, "{found} {gone:?}");
    }
}

#[test]
fn fingerprints_have_their_numbers_in_words() {
    let says = |packets: &[Segment]| after(packets, &[]).to_string();
    let text = says(&with_everything());
    for words in [
        "TCP timestamps are left in 40 packets, of 2 clocks that run, most at 1000 Hz",
        "hosts whose uptime shows: 1 (the longest: 1.0 days)",
        "TCP options of SYNs are left; orders, which distinguish systems: 2",
        "IPv4 identification is left in 40 packets; it counts up for 1 of 2 hosts",
        "sizes that occur in one packet only: 1, more for one host only: 6",
        "40 packets have a time in nanoseconds",
        "ports below 32768 that are those of the original: 2",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Each connection with a clock of its own.
    let mut packets = with_everything();
    for packet in packets.iter_mut().filter(|packet| packet.ports[0] == 40_001) {
        packet.timestamp += 5_000_000;
    }
    assert!(says(&packets).contains("no uptime is certain"), "{}", says(&packets));
    // What has been replaced is no clock.
    let lines = [r#""tcp.timestamps.*" = "encrypt""#];
    let text = after(&with_everything(), &lines).to_string();
    assert!(text.contains("no running clock can be read"), "{text}");
    // Ports that were replaced are of no service.
    let lines = ["source", "destination"].map(|it| format!("\"tcp.{it}_port\" = \"encrypt\""));
    let report = after(&with_everything(), &lines.each_ref().map(|line| &line[..]));
    assert!(report.fingerprints.iter().all(|it| it.trace != Trace::Ports), "{report}");
}

#[test]
fn header_lengths_are_reported_where_they_differ() {
    let mut capture = Vec::new();
    pcapng::section(&mut capture, "test", None);
    pcapng::interface(&mut capture, None, Medium::Ethernet, 0);
    for header in [5u8, 10] {
        let mut frame = Segment::default().frame();
        frame[46] = header << 4;
        let (interface, direction, medium) = (0, None, Medium::Ethernet);
        let (length, bytes) = (frame.len() as u32, &frame[..]);
        let record = Record { interface, time: 0, direction, medium, length, bytes, comment: None };
        pcapng::packet(&mut capture, record);
    }
    let strict = Policy::shipped("strict").expect("a policy");
    let report = check(&capture[..], &masked(&capture, &strict)[..]).expect("a report");
    let lengths = report.fingerprints.iter().find(|it| it.trace == Trace::TcpHeaderLength);
    assert_eq!(lengths.map(|it| (it.count, it.policy.len())), Some((2, 0)));
}

#[test]
fn what_is_too_much_is_bounded_and_said() {
    let (mut hosts, mut fingerprints) = (Hosts::default(), Fingerprints::default());
    let (mut pairs, mut packet) = (Pairs::default(), Outline::default());
    for n in 1..(1 << 20) + 4u32 {
        packet.source = Some(std::net::Ipv4Addr::from_bits(n).into());
        packet.length = n;
        packet.tcp = Some(outline::Segment { timestamp: Some(n), ..Default::default() });
        let host = hosts.add(&packet);
        fingerprints.add(&packet, host);
        pairs.add_original(&packet);
        pairs.add_masked(&packet);
    }
    let anonymity = hosts.finish();
    assert_eq!((anonymity.hosts, anonymity.packets_skipped), (1 << 20, 3));
    assert!(
        anonymity.to_string().contains("; not inspected: 3 packets of more hosts"),
        "{anonymity}"
    );
    let found = fingerprints.finish(&Ports::default(), anonymity.hosts);
    let text: String = found.iter().map(Fingerprint::to_string).collect();
    assert!(text.contains("; not counted: 983043 packets of more sizes"), "{text}");
    assert!(text.contains("of which 65536 connections were inspected"), "{text}");
    let injection = pairs.finish(0);
    assert_eq!((injection.pairs, injection.skipped), (1 << 18, (3 << 18) + 3));
    assert!(
        injection.to_string().contains("only the first 262144 packets were compared"),
        "{injection}"
    );
}

#[test]
fn the_page_is_whole_and_holds_no_script_and_nothing_from_elsewhere() {
    let name = "<script>alert('1')</script> & \"more\"";
    for (policy, _) in SHIPPED {
        let capture = capture_at(&among_many());
        let policy = Policy::shipped(policy).expect("a policy");
        let report = check(&capture[..], &masked(&capture, &policy)[..]).expect("a report");
        let page = report.html(name, "in.pcap");
        let page = page.strip_prefix("<!DOCTYPE html>\n").expect("a page of HTML");
        let tree = roxmltree::Document::parse(page).expect("a tree");
        for element in tree.descendants().filter(roxmltree::Node::is_element) {
            assert_ne!(element.tag_name().name(), "script");
            let names = element.attributes().map(|attribute| attribute.name());
            assert_eq!(names.filter(|name| ["src", "href"].contains(name)).count(), 0);
        }
        assert!(page.contains("&lt;script&gt;") && !page.contains("url("));
        // All that the text says is in it.
        let shown = |text: &str| page.contains(&terminal::markup::escape(text));
        assert!(shown(report.verdict()));
        assert!(report.fingerprints.iter().all(|it| shown(&it.text)));
        assert!(report.injection.to_string().lines().all(shown));
        assert!(report.anonymity.to_string().lines().all(shown));
    }
    let capture = capture_at(&among_many());
    let report = check(&capture[..], &capture[..]).expect("a report");
    let page = report.html("a", "b");
    assert!(page.contains("<td>leak</td>") && page.contains("IPv4 addresses as they were"));
}

proptest! {
    /// Whatever is in the packets, there is a report, in words, as JSON and as a page.
    #[test]
    fn any_packets_give_a_report(
        cut in 0..54usize,
        changes in prop::collection::vec((0..54usize, any::<u8>()), 0..20),
        noise in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut damaged = Segment::default().frame();
        changes.iter().for_each(|(at, byte)| damaged[*at] = *byte);
        let frames = [damaged[..cut].to_vec(), damaged, noise];
        let (original, mut reversed) = (capture_of(&frames), frames.to_vec());
        reversed.reverse();
        for masked in [original.clone(), capture_of(&reversed), capture_of(&[])] {
            let report = check(&original[..], &masked[..]).expect("a report");
            serde_json::to_string(&report).expect("JSON");
            prop_assert!(report.html("", "").contains(report.verdict()));
            prop_assert!(report.to_string().contains("k-anonymity"));
        }
    }
}
