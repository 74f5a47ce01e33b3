//! A table of packets: in, out, verdict, counter.

use super::frame::{ACK, FIN, HOSTS, Packet, RST, SYN, Segment};
use super::site::settings;
use datapath::gate::{
    CacheKey, Counts, Direction, FlowVerdict, Gate, Meta, Pace, PacketAction, Protocol, TcVerdict,
};
use std::time::Duration;

/// The mark of what the gate sends round.
pub(crate) const MARK: u32 = 0x6e67_6174;

/// A gate on no interface.
pub(crate) fn gate() -> Gate {
    testbed::need_root();
    Gate::open(&settings()).expect("the programs load")
}

fn counts(gate: &Gate, direction: Direction) -> Counts {
    let ledger = gate.ledger().unwrap();
    match direction {
        Direction::FromInternal => ledger.from_internal,
        Direction::ToInternal => ledger.to_internal,
    }
}

/// Runs a frame while user space lives; it must come out as it was and be counted once, where `count`
/// says.
pub(crate) fn run(
    gate: &Gate,
    direction: Direction,
    frame: &[u8],
    verdict: TcVerdict,
    count: fn(&Counts) -> u64,
) {
    gate.heartbeat().unwrap();
    run_silently(gate, direction, frame, verdict, count);
}

/// The same whether it lives or not.
pub(crate) fn run_silently(
    gate: &Gate,
    direction: Direction,
    frame: &[u8],
    verdict: TcVerdict,
    count: fn(&Counts) -> u64,
) {
    let before = counts(gate, direction);
    let (found, out, _) = gate.run(direction, frame, Meta::default()).unwrap();
    let after = counts(gate, direction);
    assert_eq!(found, verdict);
    assert_eq!(out, frame);
    assert_eq!(count(&after), count(&before) + 1, "{after:?}");
    assert_eq!(after.received, before.received + 1);
    assert_eq!(after.accounted(), after.received, "{after:?}");
}

/// A family, and what is done to its plain packet.
type Change = (usize, fn(&mut Packet));
/// The verdict on a flow, and the outcome of its packets.
pub(crate) type Outcome = (PacketAction, TcVerdict, fn(&Counts) -> u64);

const BOTH: [Direction; 2] = [Direction::FromInternal, Direction::ToInternal];

#[test]
fn what_is_no_flow_passes_but_for_what_hides_its_flow() {
    let gate = gate();
    type Row = (&'static str, Vec<u8>, TcVerdict, fn(&Counts) -> u64);
    const NEXT: TcVerdict = TcVerdict::Next;
    const DROP: TcVerdict = TcVerdict::Drop;
    let mut tags = Packet::tcp(0, ACK, b"x");
    tags.link.tags = vec![(0x8100, 5); 3];
    let mut later = Packet::udp(0, b"x");
    later.fragment = 185;
    let mut icmp = Packet::udp(0, b"x");
    icmp.protocol = 1;
    let mut options = Packet::tcp(0, ACK, b"");
    options.options = vec![1; 40];
    let short = options.bytes();
    let mut long = Packet::tcp(0, ACK, b"hello").bytes();
    long[14 + 3] += 1;
    let mut header = Packet::tcp(0, ACK, b"hello").bytes();
    header[14 + 20 + 12] = 0xf0;
    let mut small = Packet::tcp(0, ACK, b"hello").bytes();
    small[14 + 20 + 12] = 0x40;
    // Fragments that a receiver puts together to a segment whose flow no part shows (RFC 1858, RFC 3128).
    let tcp = Packet::tcp(0, ACK, b"hello");
    let piece =
        |fragment: u16, transport: &[u8]| Packet { fragment, ..tcp.clone() }.around(transport);
    let ports = [200, 213, 26, 225, 0, 0, 3, 232, 0, 0, 7, 208, 0x50, 16, 0, 0];
    let six = |extensions: &[(u8, Vec<u8>)], transport: &[u8]| {
        Packet { extensions: extensions.to_vec(), ..Packet::tcp(1, ACK, b"") }.around(transport)
    };
    let fragment = |field: u8| (44, vec![0, 0, 0, field, 0, 0, 0, 9]);
    let options: (u8, Vec<u8>) = (60, vec![0; 8]);
    let seven = vec![options.clone(); 7];
    // Options of 16 bytes, 8 of which are in this fragment.
    let mut long_options = options.clone();
    long_options.1[1] = 1;
    let cut = six(&[fragment(1), long_options], b"");
    let rows: Vec<Row> = vec![
        ("ARP", [vec![0xff; 12], vec![8, 6], vec![0; 28]].concat(), NEXT, |c| c.passed_other),
        ("three tags", tags.bytes(), NEXT, |c| c.passed_other),
        ("ICMP", icmp.bytes(), NEXT, |c| c.passed_other),
        ("a later fragment without its first", later.bytes(), NEXT, |c| c.passed_fragment),
        ("IPv4 that ends in its options", short[..60].to_vec(), DROP, |c| c.dropped_form),
        ("longer than its frame", long, DROP, |c| c.dropped_form),
        ("a TCP header longer than the packet", header, DROP, |c| c.dropped_form),
        ("a TCP header that is too short", small, DROP, |c| c.dropped_form),
        ("a first fragment of 8 bytes", piece(0x2000, &ports[..8]), DROP, |c| c.dropped_form),
        ("of 16 bytes", piece(0x2000, &ports), DROP, |c| c.dropped_form),
        ("a later one within the header", piece(1, &ports), DROP, |c| c.dropped_form),
        ("the same of IPv6", six(&[fragment(1)], &ports[..8]), DROP, |c| c.dropped_form),
        ("a later one of it", six(&[fragment(8)], &ports), DROP, |c| c.dropped_form),
        ("a later one beyond", six(&[fragment(16)], &ports), NEXT, |c| c.passed_fragment),
        ("headers that go on in the next fragment", cut, DROP, |c| c.dropped_form),
        ("a seventh extension header", six(&seven, &ports), DROP, |c| c.dropped_form),
    ];
    for direction in BOTH {
        for (what, frame, verdict, count) in &rows {
            println!("{what}, {direction:?}");
            run(&gate, direction, frame, *verdict, *count);
        }
    }
    let mut flows = 0;
    gate.table().for_each(|_, _| flows += 1).unwrap();
    assert_eq!(flows, 0);
}

#[test]
fn flows_are_found_behind_tags_options_and_extension_headers() {
    let gate = gate();
    let (mut reader, table) = (gate.reader().unwrap(), gate.table());
    let padded = |f: &mut Packet| f.link.padding = vec![0; 9];
    let changes: [Change; 9] = [
        (0, |_| ()),
        (1, |_| ()),
        (0, padded),
        (0, |f| f.link.tags = vec![(0x8100, 5)]),
        (1, |f| f.link.tags = vec![(0x88a8, 5), (0x8100, 6)]),
        (0, |f| f.options = vec![1; 40]),
        (0, |f| f.tcp_options = vec![1; 40]),
        (1, |f| f.extensions = vec![(0, vec![0; 8]), (60, [&[0, 1], &[1; 14][..]].concat())]),
        (1, |f| f.extensions = vec![(51, [&[0, 4], &[0; 22][..]].concat()), (43, vec![0; 8])]),
    ];
    for (number, (family, change)) in changes.into_iter().enumerate() {
        for protocol in [6, 17] {
            for direction in BOTH {
                let mut packet = Packet::tcp(family, ACK, b"hello");
                packet.protocol = protocol;
                packet.from.set_port(2000 + number as u16);
                change(&mut packet);
                if direction == Direction::ToInternal {
                    packet = packet.back();
                }
                run(&gate, direction, &packet.bytes(), TcVerdict::Next, |c| c.passed_undecided);
                let mut count = 0;
                reader
                    .poll(Duration::ZERO, |record| {
                        count += 1;
                        assert_eq!(record.key, packet.key());
                        assert_eq!((record.payload(), record.payload_length), (&b"hello"[..], 5));
                        assert_eq!(record.key.socket(record.from), packet.from);
                        assert_eq!(record.direction, direction);
                        assert_eq!(record.frame, packet.bytes());
                        if protocol == 6 {
                            let tcp = (record.sequence, record.acknowledgement, record.tcp_flags);
                            assert_eq!(tcp, (1000, 2000, ACK));
                        }
                    })
                    .unwrap();
                assert_eq!(count, 1, "{packet:?}");
            }
            let mut packet = Packet::tcp(family, ACK, b"hello");
            packet.protocol = protocol;
            packet.from.set_port(2000 + number as u16);
            let flow = table.get(&packet.key()).unwrap().unwrap();
            assert_eq!(flow.sent.map(|sent| sent.packets), [1, 1]);
            assert_eq!(flow.internal, packet.key().side_of(packet.from));
        }
    }
}

#[test]
fn only_the_first_packets_with_payload_are_copied() {
    let gate = gate();
    let mut reader = gate.reader().unwrap();
    let (empty, full) = (Packet::tcp(0, ACK, b""), Packet::tcp(0, ACK, &[7; 1400]));
    for _ in 0..20 {
        for packet in [&empty, &full] {
            run(&gate, Direction::FromInternal, &packet.bytes(), TcVerdict::Next, |c| {
                c.passed_undecided
            });
        }
    }
    let mut numbers = Vec::new();
    reader
        .poll(Duration::ZERO, |record| numbers.push((record.number, record.payload().len())))
        .unwrap();
    assert_eq!(numbers, (0..8).map(|number| (number, 1400)).collect::<Vec<_>>());
    // More on demand.
    assert!(gate.table().watch(&full.key(), 10).unwrap());
    gate.heartbeat().unwrap();
    for _ in 0..5 {
        gate.run(Direction::FromInternal, &full.bytes(), Meta::default()).unwrap();
    }
    assert_eq!(reader.poll(Duration::ZERO, |_| ()).unwrap(), 2);
    let counts = gate.ledger().unwrap().from_internal;
    assert_eq!((counts.copied, counts.missed), (10, 0));
}

/// What ends with its stream is known to be whole only by the FIN.
#[test]
fn ends_are_copied_of_flows_that_have_spoken_while_more_is_wanted_of_them() {
    let gate = gate();
    let mut reader = gate.reader().unwrap();
    let run = |flags, payload: &[u8]| {
        let frame = Packet::tcp(0, ACK | flags, payload).bytes();
        run(&gate, Direction::FromInternal, &frame, TcVerdict::Next, |c| c.passed_undecided);
    };
    run(FIN, b"");
    run(RST, b"");
    let mut seen = Vec::new();
    for (flags, payload) in [(0, &b"file"[..]), (0, b""), (FIN, b""), (RST, b"")] {
        run(flags, payload);
    }
    for _ in 0..20 {
        run(0, b"more");
    }
    run(FIN, b"");
    reader
        .poll(Duration::ZERO, |record| seen.push((record.tcp_flags & !ACK, record.payload().len())))
        .unwrap();
    let more = std::iter::repeat_n((0, 4), 5);
    assert_eq!(seen, [(0, 4), (FIN, 0), (RST, 0)].into_iter().chain(more).collect::<Vec<_>>());
}

/// What only the gate would see says nothing of a flow.
#[test]
fn a_packet_with_a_wrong_checksum_is_known_by_it() {
    let gate = gate();
    let mut reader = gate.reader().unwrap();
    let with = |change: fn(&mut Packet)| {
        let mut packet = Packet::tcp(0, ACK, b"hello");
        change(&mut packet);
        packet.bytes()
    };
    // A word of the payload changes, which no checksum of the network header covers.
    let spoilt = |mut frame: Vec<u8>, believed: bool| {
        let last = frame.len() - 1;
        frame[last] ^= 1;
        (frame, !believed)
    };
    let without_checksum = |mut frame: Vec<u8>| {
        let check = frame.len() - 5 - 2;
        frame[check..check + 2].fill(0);
        frame
    };
    let plain = [Packet::tcp(0, ACK, b"hello"), Packet::tcp(1, ACK, b"hello")];
    let plain = plain.into_iter().chain([Packet::udp(0, b"hello"), Packet::udp(1, b"hello!")]);
    let mut table: Vec<(Vec<u8>, bool)> = Vec::new();
    for frame in plain.map(|packet| packet.bytes()) {
        table.extend([(frame.clone(), false), spoilt(frame, false)]);
    }
    let spoilt_header = |mut frame: Vec<u8>| {
        let check = frame.len() - 5 - 20 - 20 + 10;
        frame[check] ^= 1;
        frame
    };
    table.extend([
        spoilt(with(|packet| packet.options = vec![1; 4]), false),
        (with(|packet| packet.options = vec![1; 4]), false),
        (spoilt_header(Packet::tcp(0, ACK, b"hello").bytes()), true),
        (Packet::tcp(0, 8, b"hello").bytes(), true),
        (Packet::tcp(0, RST, b"hello").bytes(), false),
        // Parts of datagrams.
        spoilt(with(|packet| packet.fragment = 0x2000), true),
        spoilt(without_checksum(Packet::udp(0, b"hello").bytes()), true),
        spoilt(Packet::tcp(0, ACK, &[7; 2500]).bytes(), true),
    ]);
    for (frame, broken) in table {
        gate.heartbeat().unwrap();
        let (_, out, _) = gate.run(Direction::FromInternal, &frame, Meta::default()).unwrap();
        assert_eq!(out, frame);
        // All of them, though they are of a few flows.
        gate.table().watch(&Packet::tcp(0, ACK, b"").key(), 100).unwrap();
        let mut broke = None;
        reader.poll(Duration::ZERO, |record| broke = Some(record.is_broken())).unwrap();
        assert_eq!(broke, Some(broken), "{frame:02x?}");
    }
}

#[test]
fn no_more_records_are_read_at_once_than_wanted() {
    let gate = gate();
    let mut reader = gate.reader().unwrap();
    gate.heartbeat().unwrap();
    for port in 1..=20 {
        let mut packet = Packet::udp(0, b"hello");
        packet.from.set_port(port);
        gate.run(Direction::FromInternal, &packet.bytes(), Meta::default()).unwrap();
    }
    let mut ports = Vec::new();
    let mut read = || {
        let pace = Pace { timeout: Duration::ZERO, gather: Duration::ZERO, most: 8 };
        reader.read(pace, |record| ports.push(record.key.socket(record.from).port())).unwrap()
    };
    assert_eq!([read(), read(), read(), read()], [8, 8, 4, 0]);
    // Each once, in the order in which they came.
    assert_eq!(ports, (1..=20).collect::<Vec<_>>());
}

#[test]
fn verdicts_hold_for_both_directions() {
    let gate = gate();
    let table = gate.table();
    for family in [0, 1] {
        let packet = Packet::tcp(family, ACK, b"hello");
        let frames = [packet.bytes(), packet.clone().back().bytes()];
        let rows: [Outcome; 2] = [
            (PacketAction::Pass, TcVerdict::Next, |c| c.passed_decided),
            (PacketAction::Drop, TcVerdict::Drop, |c| c.dropped_verdict),
        ];
        for (action, verdict, count) in rows {
            table.decide(&packet.key(), &FlowVerdict { action, ..FlowVerdict::default() }).unwrap();
            for (direction, frame) in BOTH.into_iter().zip(&frames) {
                run(&gate, direction, frame, verdict, count);
            }
        }
        let flow = table.get(&packet.key()).unwrap().unwrap();
        let bytes = [45, 65][family];
        assert_eq!(flow.sent.map(|sent| (sent.packets, sent.bytes)), [(2, 2 * bytes); 2]);
        // The class goes with the packet, in either direction.
        let limited = FlowVerdict { limit: 9, ..FlowVerdict::default() };
        table.decide(&packet.key(), &limited).unwrap();
        for (direction, frame) in BOTH.into_iter().zip(&frames) {
            let (verdict, out, meta) = gate.run(direction, frame, Meta::default()).unwrap();
            assert_eq!((verdict, &out, meta.priority), (TcVerdict::Next, frame, 0x6e69_0009));
        }
    }
    gate.bypass(true).unwrap();
    let frame = Packet::tcp(0, ACK, b"hello").bytes();
    run(&gate, Direction::FromInternal, &frame, TcVerdict::Next, |c| c.passed_bypass);
}

#[test]
fn a_refused_segment_becomes_its_reset() {
    let gate = gate();
    let reset = FlowVerdict { action: PacketAction::Reset, ..FlowVerdict::default() };
    for family in [0, 1] {
        let key = Packet::tcp(family, ACK, b"").key();
        gate.table().decide(&key, &reset).unwrap();
        for (flags, payload, expected) in [
            (SYN, &b""[..], (0, 1001, RST | ACK)),
            (SYN, b"fast open", (0, 1010, RST | ACK)),
            (ACK, b"", (2000, 0, RST)),
            (SYN | ACK, b"", (2000, 0, RST)),
            (ACK | FIN, &[7; 1400], (2000, 0, RST)),
            (FIN, &[7; 99], (0, 1100, RST | ACK)),
        ] {
            for direction in BOTH {
                let mut packet = Packet::tcp(family, flags, payload);
                packet.tcp_options = vec![1; 12];
                if direction == Direction::ToInternal {
                    packet = packet.back();
                }
                let before = counts(&gate, direction);
                let (verdict, out, meta) =
                    gate.run(direction, &packet.bytes(), Meta::default()).unwrap();
                assert_eq!((verdict, meta.mark), (TcVerdict::Redirect, MARK));
                let segment = Segment::of(&out);
                let link = packet.link.clone();
                assert_eq!((segment.to_mac, segment.from_mac), (link.from, link.to));
                assert_eq!((segment.from, segment.to), (packet.to, packet.from));
                assert_eq!((segment.ttl, segment.length), (64, 20));
                let numbers = (segment.sequence, segment.acknowledgement, segment.flags);
                assert_eq!(numbers, expected, "{flags} {direction:?}");
                let after = counts(&gate, direction);
                assert_eq!(after.reset_verdict, before.reset_verdict + 1);
                assert_eq!(after.accounted(), after.received);
                // Where it is seen again, it passes.
                let own = Meta { mark: MARK, ..Meta::default() };
                let (verdict, again, meta) = gate.run(direction, &out, own).unwrap();
                assert_eq!((verdict, meta.mark, again), (TcVerdict::Next, 0, out));
                assert_eq!(counts(&gate, direction).released, after.released + 1);
                assert_eq!(counts(&gate, direction).received, after.received);
            }
        }
        // What is not answered by a reset is dropped.
        let reset = Packet::tcp(family, RST, b"");
        run(&gate, Direction::FromInternal, &reset.bytes(), TcVerdict::Drop, |c| c.dropped_verdict);
    }
}

#[test]
fn resets_have_right_checksums_over_all_values() {
    let gate = gate();
    let packet = Packet::tcp(0, ACK, b"");
    let reset = FlowVerdict { action: PacketAction::Reset, ..FlowVerdict::default() };
    gate.table().decide(&packet.key(), &reset).unwrap();
    // The low half of the acknowledgement number goes through all values, and with it the reset's sum.
    let mut frame = packet.bytes();
    for value in 0..=u16::MAX {
        frame[14 + 20 + 10..14 + 20 + 12].copy_from_slice(&value.to_be_bytes());
        let (verdict, out, _) = gate.run(Direction::FromInternal, &frame, Meta::default()).unwrap();
        assert_eq!(verdict, TcVerdict::Redirect);
        assert_eq!(Segment::of(&out).sequence as u16, value);
    }
}

#[test]
fn what_was_refused_before_dies_at_its_first_packet() {
    let gate = gate();
    let table = gate.table();
    for family in [0, 1] {
        let mut packet = Packet::tcp(family, SYN, b"");
        let [source, target] =
            HOSTS[family].map(|host| host.parse::<std::net::SocketAddr>().unwrap());
        let key = CacheKey { source: source.ip(), target, protocol: Protocol::Tcp };
        table.refuse(&key, PacketAction::Drop, Duration::from_secs(3600)).unwrap();
        for port in [1, 51413, 65535] {
            packet.from.set_port(port);
            run(&gate, Direction::FromInternal, &packet.bytes(), TcVerdict::Drop, |c| {
                c.dropped_cache
            });
            assert_eq!(table.get(&packet.key()).unwrap(), None);
        }
        assert_eq!(table.refused(&key).unwrap(), Some(3));
        table.refuse(&key, PacketAction::Reset, Duration::from_secs(3600)).unwrap();
        let (verdict, out, _) =
            gate.run(Direction::FromInternal, &packet.bytes(), Meta::default()).unwrap();
        assert_eq!((verdict, Segment::of(&out).acknowledgement), (TcVerdict::Redirect, 1001));
        // Another port, another protocol, the other direction, and flows that were decided.
        let mut other = packet.clone();
        other.to.set_port(6882);
        let mut datagram = Packet::udp(family, b"x");
        datagram.from.set_port(9);
        let count = |c: &Counts| c.passed_undecided;
        run(&gate, Direction::FromInternal, &other.bytes(), TcVerdict::Next, count);
        run(&gate, Direction::FromInternal, &datagram.bytes(), TcVerdict::Next, count);
        run(&gate, Direction::ToInternal, &packet.clone().back().bytes(), TcVerdict::Next, count);
        packet.from.set_port(77);
        table.decide(&packet.key(), &FlowVerdict::default()).unwrap();
        run(&gate, Direction::FromInternal, &packet.bytes(), TcVerdict::Next, |c| c.passed_decided);
        // A refusal that has ended.
        table.refuse(&key, PacketAction::Drop, Duration::ZERO).unwrap();
        packet.from.set_port(78);
        run(&gate, Direction::FromInternal, &packet.bytes(), TcVerdict::Next, count);
        table.refuse(&key, PacketAction::Drop, Duration::from_secs(3600)).unwrap();
        table.forget_refusals();
        packet.from.set_port(79);
        run(&gate, Direction::FromInternal, &packet.bytes(), TcVerdict::Next, count);
    }
}
