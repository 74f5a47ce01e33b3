//! The table of packets: for each rule, packet in, verdict, packet out, counter; in both families,
//! untagged, tagged and doubly tagged.

use super::frame::{Frame, Ip, checksum};
use super::model::{self, As, Counted};
use super::{CLIENT4, CLIENT6, LINK4, LINK6, PROBE_ID, SERVICE4, SERVICE6};
use As::{Answered, Dropped, Passed};
use datapath::echo::{Counters, DropReason, Fragments, Ledger, Settings, Verdict};
use std::net::IpAddr;

const TAGS: [&[(u16, u16)]; 5] = [
    &[],
    &[(0x8100, 7)],
    &[(0x88a8, 7)],
    &[(0x88a8, 100), (0x8100, 0xe007)],
    &[(0x8100, 100), (0x8100, 7)],
];

/// One line of the table.
struct Case {
    what: &'static str,
    settings: Settings,
    frame: Frame,
    counted: Counted,
    as_: As,
}

/// Runs the table: what each line says, and that the model says so too.
fn run(cases: Vec<Case>) {
    let program = super::program(&super::settings());
    for case in cases {
        if program.settings() != case.settings {
            program.configure(&case.settings).unwrap();
        }
        for tags in TAGS {
            let mut frame = case.frame.clone();
            frame.link.tags = tags.to_vec();
            let bytes = frame.bytes();
            let what = format!("{} {:?} {tags:?}", case.what, frame.ip);
            let before = count(&program.ledger().unwrap(), case.counted);
            let (verdict, out) = program.run(None, &bytes).unwrap();
            let after = count(&program.ledger().unwrap(), case.counted);

            let (expected, changed) = match case.as_ {
                Answered => (Verdict::Tx, frame.reply().bytes()),
                Passed => (Verdict::Pass, bytes.clone()),
                Dropped(_) => (Verdict::Drop, bytes.clone()),
            };
            assert_eq!(verdict, expected, "{what}");
            assert_eq!(out, changed, "{what}");
            let mut counters = before;
            counters.received += 1;
            match case.as_ {
                Answered => counters.answered += 1,
                Passed => counters.passed += 1,
                Dropped(reason) => counters.drops[reason as usize] += 1,
            }
            assert_eq!(after, counters, "{what}");

            let model = model::judge(&case.settings, &bytes);
            assert_eq!((model.counted, model.as_), (case.counted, case.as_), "{what}");
            assert_eq!(model.frame, changed, "{what}");
        }
    }
}

fn count(ledger: &Ledger, counted: Counted) -> Counters {
    match counted {
        Counted::Probe => ledger.probe,
        Counted::Other => ledger.other,
        Counted::Service(address) => {
            ledger.rows.iter().find(|row| row.address == address).unwrap().counters
        }
    }
}

fn service(frame: &Frame) -> Counted {
    Counted::Service(match frame.ip {
        Ip::V4(..) => SERVICE4.into(),
        Ip::V6(..) => SERVICE6.into(),
    })
}

/// The same change of an ordinary request in both families.
fn both(what: &'static str, as_: As, change: impl Fn(&mut Frame)) -> Vec<Case> {
    under(super::settings(), what, as_, change)
}

fn under(
    settings: Settings,
    what: &'static str,
    as_: As,
    change: impl Fn(&mut Frame),
) -> Vec<Case> {
    let case = |mut frame: Frame| {
        change(&mut frame);
        Case { what, settings: settings.clone(), counted: service(&frame), frame, as_ }
    };
    Frame::both().map(case).into()
}

fn one(what: &'static str, as_: As, ip: Ip, change: impl Fn(&mut Frame)) -> Vec<Case> {
    let mut frame = Frame::request(ip);
    change(&mut frame);
    vec![Case { what, settings: super::settings(), counted: service(&frame), frame, as_ }]
}

const V4: Ip = Ip::V4(CLIENT4, SERVICE4);
const V6: Ip = Ip::V6(CLIENT6, SERVICE6);

#[test]
fn requests_are_answered() {
    run([
        both("smallest", Answered, |_| {}),
        both("no payload", Answered, |f| f.payload.clear()),
        both("odd payload", Answered, |f| f.payload = vec![9; 21]),
        both("full MTU", Answered, |f| {
            f.payload = vec![0x5a; if matches!(f.ip, Ip::V4(..)) { 1472 } else { 1452 }];
        }),
        both("more than the usual MTU", Answered, |f| f.payload = vec![0x5a; 3300]),
        both("padding behind the packet", Answered, |f| {
            f.payload.truncate(3);
            f.link.padding = vec![0xee; 15];
        }),
        both("TTL 1", Answered, |f| f.ttl = 1),
        both("TTL 255", Answered, |f| f.ttl = 255),
        both("type of service, flow label", Answered, |f| {
            f.tos = 0xb9;
            f.flow_label = if matches!(f.ip, Ip::V6(..)) { 0xabcde } else { 0 };
        }),
        both("fragmentation allowed", Answered, |f| f.fragment = 0),
        both("the reserved bit", Answered, |f| f.fragment = 0x8000),
    ]
    .into_iter()
    .flatten()
    .collect());
}

#[test]
fn what_is_not_ours_goes_to_the_kernel() {
    let hop_by_hop = || vec![58, 0, 5, 2, 0, 0, 1, 0];
    run([
        one("IPv4 options", Passed, V4, |f| f.between = vec![1; 4]),
        one("all IPv4 options", Passed, V4, |f| f.between = vec![1; 40]),
        one("hop-by-hop options", Passed, V6, |f| {
            f.protocol = Some(0);
            f.between = hop_by_hop();
        }),
        one("destination options", Passed, V6, |f| {
            f.protocol = Some(60);
            f.between = hop_by_hop();
        }),
        one("routing header", Passed, V6, |f| {
            f.protocol = Some(43);
            f.between = hop_by_hop();
        }),
        both("UDP", Passed, |f| f.protocol = Some(17)),
        both("TCP", Passed, |f| f.protocol = Some(6)),
        both("an echo reply", Passed, |f| {
            f.kind = if matches!(f.ip, Ip::V4(..)) { 0 } else { 129 };
        }),
        one("an ICMPv4 error", Passed, V4, |f| f.kind = 3),
        one("ICMPv4's type in IPv6", Passed, V6, |f| f.kind = 8),
        one("ICMPv6's type in IPv4", Passed, V4, |f| f.kind = 128),
        one("neighbour solicitation", Passed, V6, |f| f.kind = 135),
        one("neighbour advertisement", Passed, V6, |f| f.kind = 136),
        one("timestamp request", Passed, V4, |f| f.kind = 13),
        one("first fragment", Passed, V4, |f| f.fragment = 0x2000),
        one("middle fragment", Passed, V4, |f| f.fragment = 0x2001),
        one("last fragment", Passed, V4, |f| f.fragment = 0x00b9),
        one("IPv6 fragment", Passed, V6, |f| {
            f.protocol = Some(44);
            f.between = vec![58, 0, 0, 1, 0, 0, 0, 1];
        }),
        under(
            Settings { fragments: Fragments::Drop, ..super::settings() },
            "fragments of UDP",
            Passed,
            |f| {
                f.fragment = 0x2000;
                f.protocol = Some(if matches!(f.ip, Ip::V4(..)) { 17 } else { 44 });
                if matches!(f.ip, Ip::V6(..)) {
                    f.between = vec![17, 0, 0, 1, 0, 0, 0, 1];
                }
            },
        ),
    ]
    .into_iter()
    .flatten()
    .collect());
}

#[test]
fn frames_for_others_are_none_of_our_business() {
    let other = |what, ip, change: &dyn Fn(&mut Frame)| {
        let mut frame = Frame::request(ip);
        change(&mut frame);
        let settings = super::settings();
        Case { what, settings, frame, counted: Counted::Other, as_: Passed }
    };
    let mut multicast = SERVICE6;
    multicast[0] = 0xff;
    let neighbour6 = { [SERVICE6[0], 1, 0xd, 0xb8, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x51] };
    run(vec![
        other("another IPv4 address", Ip::V4(CLIENT4, [50, 50, 50, 51]), &|_| {}),
        other("another IPv6 address", Ip::V6(CLIENT6, neighbour6), &|_| {}),
        other("broadcast", Ip::V4(CLIENT4, [255; 4]), &|f| f.link.to = [0xff; 6]),
        other("multicast", Ip::V6(CLIENT6, multicast), &|f| f.link.to = [0x33, 0x33, 0, 0, 0, 1]),
        other("address zero", Ip::V4(CLIENT4, [0; 4]), &|_| {}),
        other("address ::", Ip::V6(CLIENT6, [0; 16]), &|_| {}),
        other("ARP", V4, &|f| f.link.ether_type = Some(0x0806)),
        other("IPv6 that says it is IPv4", V6, &|f| f.link.ether_type = Some(0x0800)),
        other("IPv4 that says it is IPv6", V4, &|f| f.link.ether_type = Some(0x86dd)),
        other("a third tag", V4, &|f| f.link.ether_type = Some(0x8100)),
        // Frames to our link address that are not the probe.
        other("ping of the link address", Ip::V4(CLIENT4, LINK4), &|_| {}),
        other("that with the probe's identifier", Ip::V4(CLIENT4, LINK4), &|f| f.ident = PROBE_ID),
        other("wrong identifier", Ip::V4(LINK4, LINK4), &|_| {}),
        other("the probe's reply", Ip::V4(LINK4, LINK4), &|f| (f.ident, f.kind) = (PROBE_ID, 0)),
        other("ping of the link address", Ip::V6(CLIENT6, LINK6), &|f| f.ident = PROBE_ID),
        other("wrong identifier", Ip::V6(LINK6, LINK6), &|_| {}),
        other("the probe's reply", Ip::V6(LINK6, LINK6), &|f| (f.ident, f.kind) = (PROBE_ID, 129)),
    ]);
}

#[test]
fn what_is_never_answered_is_dropped_and_named() {
    let bad = |reason| Dropped(reason);
    let mut cases: Vec<Case> = [
        both("code 1", bad(DropReason::BadCode), |f| f.code = 1),
        both("code 255", bad(DropReason::BadCode), |f| f.code = 255),
        both("ICMP checksum", bad(DropReason::BadChecksumIcmp), |f| f.spoil_icmp = 1),
        both("ICMP checksum's high byte", bad(DropReason::BadChecksumIcmp), |f| {
            f.spoil_icmp = 0x8000;
        }),
        one("IP checksum", bad(DropReason::BadChecksumIp), V4, |f| f.spoil_ip = 1),
        both("longer than the frame", bad(DropReason::BadLength), |f| f.length_lie = 1),
        both("much longer", bad(DropReason::BadLength), |f| f.length_lie = 20_000),
        both("half an ICMP header", bad(DropReason::BadLength), |f| f.length_lie = -22),
        both("no ICMP header", bad(DropReason::BadLength), |f| f.length_lie = -26),
        one("shorter than its header", bad(DropReason::BadLength), V4, |f| f.length_lie = -27),
        one("total length 0", bad(DropReason::BadLength), V4, |f| f.length_lie = -46),
        one("header of 16 bytes", bad(DropReason::BadLength), V4, |f| f.ihl = Some(4)),
        one("header of 0 bytes", bad(DropReason::BadLength), V4, |f| f.ihl = Some(0)),
        both("to everybody on the link", bad(DropReason::NotUnicast), |f| f.link.to = [0xff; 6]),
        both("to a group on the link", bad(DropReason::NotUnicast), |f| f.link.to[0] = 0x33),
        both("from a group on the link", bad(DropReason::NotUnicast), |f| f.link.from[0] = 3),
    ]
    .into_iter()
    .flatten()
    .collect();
    let drop = Settings { fragments: Fragments::Drop, ..super::settings() };
    cases.extend(under(
        drop,
        "a fragment where they are refused",
        bad(DropReason::Fragment),
        |f| {
            f.fragment = 0x2000;
            if matches!(f.ip, Ip::V6(..)) {
                f.protocol = Some(44);
                f.between = vec![58, 0, 0, 1, 0, 0, 0, 1];
            }
        },
    ));
    run(cases);
}

#[test]
fn bogon_sources_are_refused() {
    let four = [
        ([0, 0, 0, 0], true),
        ([0, 255, 255, 255], true),
        ([1, 0, 0, 0], false),
        ([126, 255, 255, 255], false),
        ([127, 0, 0, 1], true),
        ([127, 255, 255, 255], true),
        ([128, 0, 0, 0], false),
        ([10, 0, 0, 1], false),
        ([100, 64, 0, 1], false),
        ([169, 254, 0, 1], false),
        ([192, 168, 0, 1], false),
        ([198, 51, 100, 1], false),
        ([223, 255, 255, 255], false),
        ([224, 0, 0, 1], true),
        ([239, 255, 255, 255], true),
        ([240, 0, 0, 1], true),
        ([255, 255, 255, 255], true),
        (SERVICE4, true),
        (LINK4, true),
    ]
    .map(|(source, bogon)| (Ip::V4(source, SERVICE4), bogon));
    let six = [
        ("::", true),
        ("::1", true),
        ("::192.0.2.1", true),
        ("::ffff:192.0.2.1", true),
        ("ff02::1", true),
        ("ff0e::1", true),
        ("fe80::1", false),
        ("fd00::1", false),
        ("64:ff9b::c000:201", false),
        ("2001:db8::1", false),
        ("2002:c000:201::1", false),
        ("2001:db8:50::50", true),
        ("2001:db8:ff00::29", true),
    ]
    .map(|(source, bogon)| {
        let source: std::net::Ipv6Addr = source.parse().unwrap();
        (Ip::V6(source.octets(), SERVICE6), bogon)
    });
    run(four
        .into_iter()
        .chain(six)
        .flat_map(|(ip, bogon)| {
            let as_ = if bogon { Dropped(DropReason::BogonSource) } else { Answered };
            one("source", as_, ip, |_| {})
        })
        .collect());
}

#[test]
fn lists_decide_who_is_answered() {
    let lists = |allow: &[&str], deny: &[&str]| Settings {
        allow: allow.iter().map(|text| text.parse().unwrap()).collect(),
        deny: deny.iter().map(|text| text.parse().unwrap()).collect(),
        ..super::settings()
    };
    let denied = Dropped(DropReason::Denied);
    run([
        under(lists(&[], &["192.0.2.0/24", "2001:db8:7::/48"]), "denied", denied, |_| {}),
        under(lists(&[], &["192.0.3.0/24", "2001:db8:8::/48"]), "others denied", Answered, |_| {}),
        under(lists(&["192.0.2.7/32", "2001:db8:7::7/128"], &[]), "allowed", Answered, |_| {}),
        under(lists(&["192.0.2.8/32", "2001:db8:7::8/128"], &[]), "others allowed", denied, |_| {}),
        under(
            lists(&["0.0.0.0/0", "::/0"], &["192.0.2.7/32", "2001:db8:7::7/128"]),
            "allowed widely, denied narrowly",
            denied,
            |_| {},
        ),
        under(
            lists(&["192.0.2.7/32", "2001:db8:7::7/128"], &["0.0.0.0/0", "::/0"]),
            "allowed narrowly, denied widely",
            denied,
            |_| {},
        ),
        under(lists(&[], &["2001:db8::/32"]), "a list of one family", Passed, |f| {
            // What is passed is passed, whoever sent it.
            f.protocol = Some(17);
        }),
    ]
    .into_iter()
    .flatten()
    .collect());
}

#[test]
fn the_probe_takes_the_same_way() {
    let probe = |what, ip, as_, change: &dyn Fn(&mut Frame)| {
        let mut frame = Frame::request(ip);
        frame.ident = PROBE_ID;
        change(&mut frame);
        let mut settings = super::settings();
        settings.deny = vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        Case { what, settings, frame, counted: Counted::Probe, as_ }
    };
    let mut cases = Vec::new();
    for ip in [Ip::V4(LINK4, LINK4), Ip::V6(LINK6, LINK6)] {
        cases.push(probe("the probe", ip, Answered, &|_| {}));
        cases.push(probe("a damaged one", ip, Dropped(DropReason::BadChecksumIcmp), &|f| {
            f.spoil_icmp = 4;
        }));
        cases.push(probe("a short one", ip, Dropped(DropReason::BadLength), &|f| {
            f.length_lie = 1;
        }));
    }
    run(cases);
}

/// Without verification a request with wrong checksums is answered, wrong by as much as it was, and
/// one with right ones exactly.
#[test]
fn unverified_requests_keep_their_errors() {
    let settings = Settings { verify: false, ..super::settings() };
    let program = super::program(&settings);
    let mut frame = Frame::request(V4);
    frame.spoil_icmp = 0x0100;
    frame.spoil_ip = 0x0001;
    let (verdict, out) = program.run(None, &frame.bytes()).unwrap();
    assert_eq!(verdict, Verdict::Tx);
    let request = frame.bytes();
    let differs = |bytes: &[u8]| {
        let sum = |bytes: &[u8]| u32::from(checksum(bytes)) % 0xffff;
        (sum(&bytes[14..34]), sum(&bytes[34..]))
    };
    assert_eq!(differs(&out), differs(&request));
    assert_ne!(differs(&out), (0, 0));
}

/// A frame cut anywhere is never answered and never makes the program read beyond it.
#[test]
fn cut_frames_are_not_answered() {
    let settings = super::settings();
    let program = super::program(&settings);
    for frame in Frame::both() {
        for tags in TAGS {
            let mut frame = frame.clone();
            frame.link.tags = tags.to_vec();
            let bytes = frame.bytes();
            for length in 14..bytes.len() {
                let cut = &bytes[..length];
                let (verdict, out) = program.run(None, cut).unwrap();
                let model = model::judge(&settings, cut);
                assert_eq!(verdict, model.verdict(), "{length}");
                assert_ne!(verdict, Verdict::Tx);
                assert_eq!(out, cut);
            }
        }
    }
    let ledger = program.ledger().unwrap();
    let rows: Vec<IpAddr> = ledger.rows.iter().map(|row| row.address).collect();
    assert_eq!(rows, [IpAddr::from(SERVICE4), IpAddr::from(SERVICE6)]);
    assert!(ledger.rows.iter().all(|row| row.counters.dropped(DropReason::BadLength) > 0));
}
