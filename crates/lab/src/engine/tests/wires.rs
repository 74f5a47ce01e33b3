//! Wires: what is put in at one end comes out of the other as it was, when the link says so.

use wire::{EtherType, Mac};

use super::{
    table::{MS, Table, frame, udp},
    travel::{SUPER_HEADER, super_packet},
};
use crate::{
    Change, LinkId, NodeId, PortId,
    engine::{CapturePoint, EngineOptions, LinkLoad, Made, Reason, Room, Watch, Watched},
    network::{Builder, Relation},
    pool::VIRTIO,
};

const ONE: Mac = Mac([2, 0, 0, 0, 0, 1]);
const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);

/// Two systems with a wire between them, whose ports are 0 and 1.
fn wire(settings: &str) -> Table {
    wire_with(settings, EngineOptions::default())
}

fn wire_with(settings: &str, options: EngineOptions) -> Table {
    let mut builder = Builder::new();
    let [one, other] = ["one", "other"].map(|name| builder.node(name).expect("a node"));
    let settings = settings.parse().expect("settings");
    let drafts = builder.link(one, other, &settings, 1, Relation::None).expect("a link");
    let (network, links) = builder.finish_with(&drafts[..1]).expect("a network");
    let mut table = Table::new(network, options);
    assert_eq!(table.engine.add_wire(links[0]), Some([PortId(0), PortId(1)]));
    table
}

/// The direction from the first system to the second.
fn there(table: &Table) -> LinkId {
    table.engine.network().link_between(NodeId(0), NodeId(1)).expect("a link")
}

/// What came to it.
fn load(table: &mut Table) -> LinkLoad {
    let link = there(table);
    table.engine.loads_of(&[link]).next().expect("one for each")
}

fn change(table: &mut Table, settings: &str, both_ways: bool) {
    let (link, now) = (there(table), crate::Nanos(table.now));
    let settings = settings.parse().expect("settings");
    table.engine.apply(now, Change::Link { link, both_ways, settings }).expect("a link");
}

/// Frames that no router would forward, or not like this.
fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let short = udp("10.0.0.1", "10.0.0.2", 1, 179, b"x");
    let padded = [&short[..], &[0x55; 17]].concat();
    let link_local = udp("fe80::1", "ff02::5", 1, 9, &[3; 1300]);
    let tagged = [&[0x0f, 0xa5, 0x08, 0x00][..], &short].concat();
    let bridge = Mac([1, 0x80, 0xc2, 0, 0, 0]);
    vec![
        ("TTL 1", frame(OTHER, ONE, EtherType::IPV4, &short)),
        ("padding", frame(OTHER, ONE, EtherType::IPV4, &padded)),
        ("a wrong checksum", frame(OTHER, ONE, EtherType::IPV4, &[0x45; 40])),
        ("ARP", frame(Mac::BROADCAST, ONE, EtherType::ARP, &[9; 28])),
        ("multicast", frame(Mac([0x33, 0x33, 0, 0, 0, 5]), ONE, EtherType::IPV6, &link_local)),
        ("a tag", frame(OTHER, ONE, EtherType(0x8100), &tagged)),
        ("IEEE 802.3 with LLC", frame(bridge, ONE, EtherType(38), &[0x42; 38])),
        ("an unknown EtherType", frame(OTHER, ONE, EtherType(0x88b5), &[1, 2, 3])),
        ("no payload", frame(OTHER, ONE, EtherType(0x9000), &[])),
    ]
}

#[test]
fn every_frame_crosses_unchanged_both_ways_after_the_delay() {
    for settings in ["delay=10ms", "delay=10ms queue=10p rate=10Gbit", "delay=10ms jitter=0.1ms"] {
        let mut table = wire(settings);
        for (name, bytes) in frames() {
            for (from, to) in [(0, 1), (1, 0)] {
                let sent = table.now;
                table.send_frame(PortId(from), &bytes);
                let left = table.drain();
                assert_eq!(left.len(), 1, "{name}");
                assert_eq!(left[0].port, PortId(to), "{name}");
                assert_eq!(left[0].bytes[VIRTIO..], bytes, "{name}");
                let took = left[0].at - sent;
                assert!((9 * MS..=11 * MS).contains(&took), "{name}: {took}");
                if settings == "delay=10ms" {
                    assert_eq!(took, 10 * MS, "{name}");
                }
            }
        }
        let all = 2 * frames().len() as u64;
        let ledger = table.engine.ledger();
        assert_eq!((ledger.received, ledger.sent), (all, all));
        let load = load(&mut table);
        assert_eq!((load.packets, load.dropped), (all / 2, 0));
        let payload = frames().iter().map(|(_, bytes)| bytes.len() as u64 - 14).sum::<u64>();
        assert_eq!(load.bytes, payload);
    }
}

#[test]
fn frames_of_equal_times_keep_their_order() {
    let mut table = wire("delay=10ms");
    for number in 0..100 {
        table.send_frame(PortId(0), &frame(OTHER, ONE, EtherType(0x88b5), &[number]));
    }
    assert!(table.drain().iter().map(|left| left.ip()[0]).eq(0..100));
}

/// What is lost, and by what name.
#[test]
fn what_does_not_get_over_is_counted_by_reason() {
    let long = frame(OTHER, ONE, EtherType::IPV4, &[0; 1501]);
    let full = frame(OTHER, ONE, EtherType::IPV4, &[0; 1500]);
    let tagged = frame(OTHER, ONE, EtherType(0x8100), &[&[0, 7, 8, 0][..], &[0; 1500]].concat());
    for (settings, bytes, reason) in [
        ("delay=1ms", &long, Some(Reason::TooBig)),
        ("delay=1ms", &full, None),
        ("delay=1ms", &tagged, None),
        ("mtu=9000", &long, None),
        ("loss=100%", &full, Some(Reason::Loss)),
        ("up=false", &full, Some(Reason::LinkDown)),
    ] {
        let mut table = wire(settings);
        table.send_frame(PortId(0), bytes);
        assert_eq!(table.drain().len(), usize::from(reason.is_none()), "{settings}");
        let dropped = load(&mut table).dropped;
        assert_eq!(dropped, u64::from(reason.is_some()), "{settings}");
        if let Some(reason) = reason {
            assert_eq!(table.engine.ledger()[reason], 1, "{settings}");
        }
    }
    let mut table = wire("delay=1ms");
    table.send_frame(PortId(0), &[1, 2, 3]);
    assert!(table.drain().is_empty());
    assert_eq!(table.engine.ledger()[Reason::Malformed], 1);
}

/// Loss, copies and flipped bits by chance: the sums are exact, and the same seed does the same.
#[test]
fn chance_is_seeded_and_everything_is_counted() {
    const SENT: u64 = 20_000;
    let run = |seed| {
        let options = EngineOptions { seed, ..EngineOptions::default() };
        let mut table = wire_with("delay=5ms loss=10% duplicate=5% corrupt=2%", options);
        let mut left = Vec::new();
        for number in 0..SENT {
            let bytes = frame(OTHER, ONE, EtherType(0x88b5), &number.to_be_bytes());
            table.send_frame(PortId(0), &bytes);
            table.now += MS / 100;
            left.extend(table.until(table.now));
        }
        left.extend(table.drain());
        let ledger = table.engine.ledger().clone();
        assert_eq!(ledger.sent, SENT - ledger[Reason::Loss] + ledger[Made::Copy]);
        let damaged = left.iter().filter(|left| {
            let number = u64::from_be_bytes(left.ip().try_into().expect("eight bytes"));
            number >= SENT || left.bytes[VIRTIO..26] != frame(OTHER, ONE, EtherType(0x88b5), &[])
        });
        (ledger[Reason::Loss], ledger[Made::Copy], damaged.count(), left)
    };
    let (lost, copies, damaged, left) = run(7);
    // Within three sigma.
    assert!((1873..=2127).contains(&lost), "{lost}");
    assert!((800..=1000).contains(&copies), "{copies}");
    assert!(damaged > 200, "{damaged}");
    assert!(run(7).3 == left);
    assert!(run(8).3 != left);
}

/// Super-packets pass whole, and are split where frames are treated one by one, or leave as on a wire.
#[test]
fn super_packets_cross_whole_unless_a_link_treats_frames_one_by_one() {
    let split = || EngineOptions { gso: false, ..EngineOptions::default() };
    let whole = frame(OTHER, ONE, EtherType::IPV4, &super_packet());
    for (settings, options, plain, parts) in [
        ("delay=1ms", EngineOptions::default(), false, 1),
        ("delay=1ms", split(), false, 4),
        ("delay=1ms rate=1Gbit", EngineOptions::default(), false, 4),
        ("delay=1ms", EngineOptions::default(), true, 4),
    ] {
        let mut table = wire_with(settings, options);
        if plain {
            table.engine.set_plain(PortId(1));
        }
        table.send_bytes(PortId(0), &[&SUPER_HEADER[..], &whole].concat());
        let left = table.drain();
        assert_eq!(left.len(), parts, "{settings}");
        if parts == 1 {
            assert_eq!(left[0].bytes, [&SUPER_HEADER[..], &whole].concat());
        }
        let payload = left.iter().map(|left| left.ip().len() - 40).sum::<usize>();
        assert_eq!(payload, super_packet().len() - 40, "{settings}");
        assert!(left.iter().all(|left| left.bytes[12..24] == whole[..12]));
        if plain {
            assert!(left.iter().all(|left| left.bytes[..VIRTIO] == [0; VIRTIO]));
        }
    }
    // With a tag it cannot be split, and crosses whole.
    let tagged = [&whole[..12], &[0x81, 0, 0, 7], &whole[12..]].concat();
    let mut table = wire("delay=1ms");
    table.send_bytes(PortId(0), &[&SUPER_HEADER[..], &tagged].concat());
    assert_eq!(table.drain()[0].bytes, [&SUPER_HEADER[..], &tagged].concat());
}

#[test]
fn changes_take_effect_between_two_frames() {
    let mut table = wire("delay=10ms");
    let bytes = frame(OTHER, ONE, EtherType(0x88b5), &[1]);
    table.send_frame(PortId(0), &bytes);
    change(&mut table, "delay=50ms", false);
    table.send_frame(PortId(0), &bytes);
    table.send_frame(PortId(1), &bytes);
    let times: Vec<_> = table.drain().iter().map(|left| (left.at / MS, left.port.0)).collect();
    assert_eq!(times, [(10, 1), (10, 0), (50, 1)]);
    // What is on the wire when that goes down arrives; what comes then is lost.
    table.send_frame(PortId(1), &bytes);
    change(&mut table, "up=false", true);
    table.send_frame(PortId(1), &bytes);
    assert_eq!(table.drain().len(), 1);
    assert_eq!(table.engine.ledger()[Reason::LinkDown], 1);
    change(&mut table, "up=true", true);
    // A system that is taken out neither sends nor hears.
    for node in [NodeId(0), NodeId(1)] {
        table.send_frame(PortId(0), &bytes);
        let now = crate::Nanos(table.now);
        table.engine.apply(now, Change::Node { node, up: false }).expect("a node");
        table.send_frame(PortId(0), &bytes);
        assert_eq!(table.drain().len(), usize::from(node == NodeId(0)));
        let now = crate::Nanos(table.now);
        table.engine.apply(now, Change::Node { node, up: true }).expect("a node");
    }
    assert_eq!(table.engine.ledger()[Reason::NodeDown], 3);
    // Nothing is reported of routing: there is none.
    let (news, _) = table.engine.events_since(0);
    assert!(news.iter().all(|news| matches!(news.what, crate::engine::EventKind::Changed(_))));
}

#[test]
fn a_capture_has_whole_frames_once_at_each_end() {
    let link = there(&wire(""));
    let back = wire("").engine.network().reverse(link);
    for (what, spots) in [
        (Watched::Link(link, back), vec![CapturePoint::Onto(link)]),
        (Watched::Link(link, None), vec![CapturePoint::Onto(link)]),
        (Watched::Node(NodeId(0)), vec![CapturePoint::Onto(link)]),
        (Watched::Node(NodeId(1)), vec![CapturePoint::By(link)]),
    ] {
        let mut table = wire("delay=10ms");
        let (to, seen) = std::sync::mpsc::channel();
        let room = std::sync::Arc::new(Room::default());
        table.engine.watch(Watch { what, snap: 65_536, to, room });
        for (_, bytes) in frames() {
            table.send_frame(PortId(0), &bytes);
            table.drain();
            for point in &spots {
                let seen = seen.try_recv().expect("a frame");
                assert_eq!((seen.point, seen.ethernet, seen.dropped), (*point, true, None));
                assert_eq!((seen.bytes, seen.length as usize), (bytes.clone(), bytes.len()));
            }
        }
        assert!(seen.try_recv().is_err());
    }
}
