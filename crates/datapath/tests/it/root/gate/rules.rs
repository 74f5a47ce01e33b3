//! Rules over several packets: fragments, connections that begin again, datagrams that are refused,
//! silence of user space, a ring that is full.

use super::frame::{ACK, FIN, Packet, RST, SYN};
use super::site::{of_side, settings};
use super::table::{Outcome, gate, run, run_silently};
use crate::root::common::{network_header, sum};
use datapath::gate::{
    Counts, Direction, FlowVerdict, Gate, Manage, Meta, OnFailure, PacketAction, Reason, Rules,
    Settings, TableError, TcVerdict, WINDOW,
};
use std::time::Duration;
use testbed::wait_until;

const UP: Direction = Direction::FromInternal;

#[test]
fn later_fragments_go_the_way_of_the_first() {
    let gate = gate();
    for family in [0, 1] {
        let header = |offset: u16| {
            let [high, low] = offset.to_be_bytes();
            (44, vec![0, 0, high, low, 0, 0, 0, 9])
        };
        let mut first = Packet::udp(family, &[7; 56]);
        let mut later = Packet::udp(family, b"");
        let tail = if family == 0 {
            first.fragment = 0x2000;
            later.fragment = 8;
            later.around(&[7; 30])
        } else {
            first.extensions = vec![header(1)];
            later.extensions = vec![header(8 << 3)];
            later.around(&[7; 30])
        };
        run(&gate, UP, &tail, TcVerdict::Next, |c| c.passed_fragment);
        let rows: [Outcome; 3] = [
            (PacketAction::Pass, TcVerdict::Next, |c| c.passed_decided),
            (PacketAction::Drop, TcVerdict::Drop, |c| c.dropped_verdict),
            // There is nobody to notify that a fragment is refused.
            (PacketAction::Reset, TcVerdict::Drop, |c| c.dropped_verdict),
        ];
        run(&gate, UP, &first.bytes(), TcVerdict::Next, |c| c.passed_undecided);
        run(&gate, UP, &tail, TcVerdict::Next, |c| c.passed_undecided);
        for (action, verdict, count) in rows {
            let say = FlowVerdict { action, ..FlowVerdict::default() };
            gate.table().decide(&first.key(), &say).unwrap();
            for frame in [&first.bytes(), &tail] {
                run(&gate, UP, frame, verdict, count);
            }
        }
        let flow = gate.table().get(&first.key()).unwrap().unwrap();
        let side = first.key().side_of(first.from).unwrap();
        assert_eq!(flow.sent(side).packets, 8);
    }
}

#[test]
fn a_connection_between_the_sockets_of_an_ended_one_is_a_new_flow() {
    let gate = gate();
    let (mut reader, table) = (gate.reader().unwrap(), gate.table());
    let packet = |flags| Packet::tcp(0, flags, b"");
    let key = packet(0).key();
    run(&gate, UP, &packet(SYN).bytes(), TcVerdict::Next, |c| c.passed_undecided);
    let verdict = FlowVerdict { label: 5, ..FlowVerdict::default() };
    table.decide(&key, &verdict).unwrap();
    // Not by a retransmission, nor by anything but a SYN after the end.
    for flags in [SYN, ACK, ACK | FIN, ACK] {
        run(&gate, UP, &packet(flags).bytes(), TcVerdict::Next, |c| c.passed_decided);
    }
    assert_eq!(reader.poll(Duration::ZERO, |_| ()).unwrap(), 0);
    run(&gate, UP, &packet(SYN).bytes(), TcVerdict::Next, |c| c.passed_undecided);
    let mut ended = None;
    reader
        .poll(Duration::ZERO, |record| {
            assert_eq!((record.key, record.reason, record.frame.len()), (key, Reason::Ended, 0));
            ended = record.ended;
        })
        .unwrap();
    let ended = ended.unwrap();
    let side = key.side_of(packet(0).from).unwrap();
    assert_eq!((ended.verdict, ended.client), (Some(verdict), Some(side)));
    assert_eq!((ended.sent(side).packets, ended.sent(side).first), (5, Some(1000)));
    let flow = table.get(&key).unwrap().unwrap();
    assert_eq!((flow.verdict, flow.sent(side).packets), (None, 1));
}

#[test]
fn a_refused_datagram_becomes_a_port_unreachable() {
    let gate = gate();
    let reset = FlowVerdict { action: PacketAction::Reset, ..FlowVerdict::default() };
    for family in [0, 1] {
        for length in [0, 1, 100, 1400] {
            let datagram = Packet::udp(family, &vec![7; length]);
            gate.table().decide(&datagram.key(), &reset).unwrap();
            let frame = datagram.bytes();
            let before = gate.ledger().unwrap().from_internal;
            let (verdict, out, _) = gate.run(UP, &frame, Meta::default()).unwrap();
            assert_eq!(verdict, TcVerdict::Redirect);
            let after = gate.ledger().unwrap().from_internal;
            assert_eq!(after.unreachable, before.unreachable + 1);
            assert_eq!(after.accounted(), after.received);
            assert_eq!((&out[..6], &out[6..12]), (&frame[6..12], &frame[..6]));
            let (kind, at) = network_header(&out).unwrap();
            let ip = &out[at..];
            // Type and code, then the datagram's headers as they were.
            if kind == 0x0800 {
                assert_eq!(
                    (ip.len(), ip[3], ip[8], ip[9], sum(&ip[..20])),
                    (56, 56, 64, 1, 0xffff)
                );
                assert_eq!((&ip[12..16], &ip[16..20]), (&frame[30..34], &frame[26..30]));
                assert_eq!((&ip[20..22], sum(&ip[20..])), (&[3, 3][..], 0xffff));
                assert_eq!((&ip[24..28], &ip[28..]), (&[0; 4][..], &frame[14..42]));
            } else {
                assert_eq!((ip.len(), ip[5], ip[6], ip[7]), (96, 56, 58, 64));
                assert_eq!((&ip[8..24], &ip[24..40]), (&frame[38..54], &frame[22..38]));
                let pseudo = [&ip[8..40], &[0, 0, 0, 56, 0, 0, 0, 58], &ip[40..]].concat();
                assert_eq!((&ip[40..42], sum(&pseudo)), (&[1, 4][..], 0xffff));
                assert_eq!((&ip[44..48], &ip[48..]), (&[0; 4][..], &frame[14..62]));
            }
        }
    }
    // No more than some at once.
    let frame = Packet::udp(0, b"x").bytes();
    let dropped = || {
        let (verdict, ..) = gate.run(UP, &frame, Meta::default()).unwrap();
        verdict == TcVerdict::Drop
    };
    wait_until("errors to be too many", Duration::from_secs(20), || (0..64).any(|_| dropped()))
        .unwrap();
    let counts = gate.ledger().unwrap().from_internal;
    assert!(counts.dropped_verdict > 0 && counts.accounted() == counts.received);
}

#[test]
fn no_error_for_what_goes_to_a_group_or_comes_from_no_host() {
    let gate = gate();
    let reset = FlowVerdict { action: PacketAction::Reset, ..FlowVerdict::default() };
    let rows = [
        (0, "10.0.0.5", "239.192.152.143"),
        (0, "10.0.0.5", "255.255.255.255"),
        (0, "0.0.0.0", "192.0.2.7"),
        (0, "239.0.0.1", "192.0.2.7"),
        (1, "2001:db8:1::5", "ff15::efc0:988f"),
        (1, "::", "2001:db8:2::7"),
        (1, "ff02::1", "2001:db8:2::7"),
    ];
    let mut packets = Vec::new();
    for (family, from, to) in rows {
        for mut packet in [Packet::udp(family, b"x"), Packet::tcp(family, ACK, b"x")] {
            packet.from.set_ip(from.parse().unwrap());
            packet.to.set_ip(to.parse().unwrap());
            packets.push(packet);
        }
    }
    // A frame for all on the link.
    let mut group = Packet::udp(0, b"x");
    group.link.to = [1, 0, 0x5e, 0x40, 0x98, 0x8f];
    packets.push(group);
    for packet in packets {
        println!("{packet:?}");
        gate.table().decide(&packet.key(), &reset).unwrap();
        run(&gate, UP, &packet.bytes(), TcVerdict::Drop, |c| c.dropped_verdict);
    }
}

#[test]
fn a_second_attempt_between_the_same_sockets_is_a_new_beginning() {
    let gate = gate();
    let (mut reader, table) = (gate.reader().unwrap(), gate.table());
    let packet = |flags, sequence, payload| Packet { sequence, ..Packet::tcp(0, flags, payload) };
    let key = packet(SYN, 0, b"").key();
    let side = key.side_of(packet(SYN, 0, b"").from).unwrap();
    let count = |c: &Counts| c.passed_undecided;
    let up = |packet: Packet| run(&gate, UP, &packet.bytes(), TcVerdict::Next, count);
    let down = |packet: Packet| {
        run(&gate, Direction::ToInternal, &packet.back().bytes(), TcVerdict::Next, count);
    };
    let firsts = || {
        let flow = table.get(&key).unwrap().unwrap();
        (flow.sent(side).first, flow.sent(side.other()).first)
    };
    // No payload was sent: the numbers are those of the last attempt.
    up(packet(SYN, 1000, b""));
    down(packet(SYN | ACK, 5000, b""));
    up(packet(SYN, 2000, b""));
    assert_eq!(firsts(), (Some(2000), None));
    down(packet(SYN | ACK, 6000, b""));
    assert_eq!(firsts(), (Some(2000), Some(6000)));
    // Refused by the peer: the entry is a new one, which nobody needs to be notified of.
    down(packet(RST | ACK, 6001, b""));
    up(packet(SYN, 3000, b""));
    assert_eq!((firsts(), reader.poll(Duration::ZERO, |_| ()).unwrap()), ((Some(3000), None), 0));
    // With payload there was something to look at, and the next has its own first packets.
    for _ in 0..9 {
        up(packet(ACK, 3001, b"hello"));
    }
    up(packet(SYN, 4000, b""));
    assert_eq!(firsts(), (Some(3000), None), "within a connection that is no beginning");
    up(packet(RST, 3006, b""));
    up(packet(SYN, 4000, b""));
    up(packet(ACK, 4001, b"again"));
    assert_eq!(firsts(), (Some(4000), None));
    let mut seen = Vec::new();
    reader
        .poll(Duration::ZERO, |record| {
            seen.push((record.reason, record.number, record.sequence));
            let ended = record.ended.map(|flow| (flow.verdict, flow.copied));
            assert_eq!(ended, (record.reason == Reason::Ended).then_some((None, 8)));
        })
        .unwrap();
    assert_eq!(seen.len(), 10);
    assert_eq!(
        seen[7..],
        [(Reason::First, 7, 3001), (Reason::Ended, 0, 0), (Reason::First, 0, 4001)]
    );
}

#[test]
fn a_flow_is_refused_also_where_the_table_has_no_room_for_that() {
    let gate = with(|settings| settings.max_flows = 1);
    let table = gate.table();
    table.decide(&Packet::udp(1, b"").key(), &FlowVerdict::default()).unwrap();
    let packet = Packet::tcp(0, ACK, b"x");
    let say =
        |action| table.decide(&packet.key(), &FlowVerdict { action, ..FlowVerdict::default() });
    let sees = |verdict, count| run(&gate, UP, &packet.bytes(), verdict, count);
    sees(TcVerdict::Next, |c| c.passed_undecided);
    assert!(matches!(say(PacketAction::Drop), Err(TableError::Full)));
    sees(TcVerdict::Drop, |c| c.dropped_verdict);
    assert!(matches!(say(PacketAction::Pass), Err(TableError::Full)));
    sees(TcVerdict::Next, |c| c.passed_undecided);
    assert!(matches!(say(PacketAction::Drop), Err(TableError::Full)));
    // With room the verdict takes over what was counted.
    table.remove(&Packet::udp(1, b"").key()).unwrap();
    say(PacketAction::Drop).unwrap();
    sees(TcVerdict::Drop, |c| c.dropped_verdict);
    let flow = table.get(&packet.key()).unwrap().unwrap();
    assert_eq!(flow.sent.map(|sent| sent.packets).iter().sum::<u64>(), 4);
}

fn with(change: impl FnOnce(&mut Settings)) -> Gate {
    let mut settings = settings();
    change(&mut settings);
    testbed::need_root();
    Gate::open(&settings).unwrap()
}

#[test]
fn what_is_undecided_follows_the_rule_when_user_space_is_silent() {
    type Row = (OnFailure, TcVerdict, fn(&Counts) -> u64);
    let rows: [Row; 2] = [
        (OnFailure::Pass, TcVerdict::Next, |c| c.passed_failure),
        (OnFailure::Drop, TcVerdict::Drop, |c| c.dropped_failure),
    ];
    for (on_failure, verdict, count) in rows {
        let gate = with(|settings| settings.rules.on_failure = on_failure);
        let (old, mut new) = (Packet::tcp(0, ACK, b"x"), Packet::tcp(1, ACK, b"x"));
        gate.table().decide(&old.key(), &FlowVerdict::default()).unwrap();
        let silent = || {
            gate.run(UP, &new.bytes(), Meta::default()).unwrap();
            count(&gate.ledger().unwrap().from_internal) > 0
        };
        wait_until("user space to be taken for gone", Duration::from_secs(60), silent).unwrap();
        run_silently(&gate, UP, &new.bytes(), verdict, count);
        run_silently(&gate, UP, &old.bytes(), TcVerdict::Next, |c| c.passed_decided);
        // New ones take no room.
        new.from.set_port(77);
        run_silently(&gate, UP, &new.bytes(), verdict, count);
        assert_eq!(gate.table().get(&new.key()).unwrap(), None);
        gate.heartbeat().unwrap();
        run(&gate, UP, &new.bytes(), TcVerdict::Next, |c| c.passed_undecided);
    }
}

#[test]
fn a_full_ring_is_counted_and_what_follows_is_configured() {
    type Row = (OnFailure, TcVerdict, fn(&Counts) -> u64);
    let rows: [Row; 2] = [
        (OnFailure::Pass, TcVerdict::Next, |c| c.passed_undecided),
        (OnFailure::Drop, TcVerdict::Drop, |c| c.dropped_ring),
    ];
    for (on_failure, verdict, count) in rows {
        let small = |settings: &mut Settings| {
            settings.ring_bytes = 1 << 18;
            settings.rules = Rules { on_failure, packets: 1_000_000, ..settings.rules };
        };
        let gate = with(small);
        let frame = Packet::udp(0, &[7; 1400]).bytes();
        for _ in 0..200 {
            gate.heartbeat().unwrap();
            gate.run(UP, &frame, Meta::default()).unwrap();
        }
        run(&gate, UP, &frame, verdict, count);
        let counts = gate.ledger().unwrap().from_internal;
        assert_eq!(counts.copied + counts.missed, 201);
        assert!(counts.missed > 50, "{counts:?}");
        let held = gate.reader().unwrap().poll(Duration::ZERO, |_| ()).unwrap();
        assert_eq!(held as u64, counts.copied);
        run(&gate, UP, &frame, TcVerdict::Next, |c| c.passed_undecided);
    }
}

#[test]
fn a_host_that_fills_the_ring_leaves_room_for_others() {
    for family in [0, 1] {
        let gate = with(|settings| settings.ring_bytes = 1 << 18);
        let missed = || gate.ledger().unwrap().from_internal.missed;
        let mut flood = Packet::udp(family, b"hello");
        for port in 1..=2000 {
            flood.from.set_port(port);
            gate.heartbeat().unwrap();
            gate.run(UP, &flood.bytes(), Meta::default()).unwrap();
        }
        // The ring has room for 1,024 such packets; half of it is everybody's.
        assert!((500..1500).contains(&missed()), "{}", missed());
        let before = missed();
        let mut other = Packet::udp(family, b"hello");
        other.from.set_ip(["10.0.0.6", "2001:db8:1:1::5"][family].parse().unwrap());
        run(&gate, UP, &other.bytes(), TcVerdict::Next, |c| c.copied);
        // Who answers is counted as who began.
        run(&gate, Direction::ToInternal, &other.back().bytes(), TcVerdict::Next, |c| c.copied);
        assert_eq!(missed(), before);
        // What was missed of a flow is not one of its first packets: they come when there is room.
        let mut unseen = 0;
        gate.table().for_each(|_, flow| unseen += u64::from(flow.copied == 0)).unwrap();
        assert_eq!(unseen, before);
        gate.reader().unwrap().poll(Duration::ZERO, |_| ()).unwrap();
        run(&gate, UP, &flood.bytes(), TcVerdict::Next, |c| c.copied);
    }
}

#[test]
fn what_comes_again_is_held_until_its_receiver_has_acknowledged_it() {
    const DOWN: Direction = Direction::ToInternal;
    for first in [1000_u32, 0x9000_0000, u32::MAX] {
        let gate = gate();
        let client = |flags, acknowledgement| Packet {
            sequence: 1,
            acknowledgement,
            ..Packet::tcp(0, flags, b"")
        };
        let server = |flags, sequence, payload| Packet {
            sequence,
            acknowledgement: 1,
            ..Packet::tcp(0, flags, payload).back()
        };
        let next = first.wrapping_add(1);
        let passes = |direction, packet: &Packet, count| {
            run(&gate, direction, &packet.bytes(), TcVerdict::Next, count);
        };
        passes(UP, &client(SYN, 0), |c| c.passed_undecided);
        passes(DOWN, &server(SYN | ACK, first, b""), |c| c.passed_undecided);
        let data = server(ACK, next, b"decoy");
        let hold_from = Some(next.wrapping_add(1000));
        let manage = Manage { copy: true, hold_from, ..Manage::default() };
        let key = data.key();
        let side = key.side_of(data.from).unwrap();
        let verdict = FlowVerdict::default();
        gate.table().decide_managed(&key, &verdict, of_side(side, manage)).unwrap();
        // What the server says before the client has acknowledged its SYN may be a decoy, too.
        run(&gate, DOWN, &data.bytes(), TcVerdict::Drop, |c| c.held);
        passes(UP, &client(ACK, next), |c| c.passed_decided);
        run(&gate, DOWN, &data.bytes(), TcVerdict::Drop, |c| c.held);
        passes(UP, &client(ACK, next.wrapping_add(5)), |c| c.passed_decided);
        passes(DOWN, &data, |c| c.passed_decided);
    }
}

#[test]
fn a_verdict_brings_what_is_to_be_seen_of_both_sides() {
    let gate = gate();
    let (mut reader, table) = (gate.reader().unwrap(), gate.table());
    let packet = Packet::tcp(0, ACK, b"GET");
    let (key, answer) = (packet.key(), packet.clone().back());
    run(&gate, UP, &packet.bytes(), TcVerdict::Next, |c| c.passed_undecided);
    assert_eq!(reader.poll(Duration::ZERO, |_| ()).unwrap(), 1);
    let copy = Manage { copy: true, ..Manage::default() };
    let hold = Manage { hold_from: Some(1000), ..copy };
    let side = key.side_of(packet.from).unwrap();
    let mut manage = [hold; 2];
    manage[side as usize] = copy;
    table.decide_managed(&key, &FlowVerdict::default(), manage).unwrap();
    // The very next packets of either side.
    run(&gate, UP, &packet.bytes(), TcVerdict::Next, |c| c.passed_decided);
    let to_internal = Direction::ToInternal;
    let (verdict, ..) = gate.run(to_internal, &answer.bytes(), Meta::default()).unwrap();
    assert_eq!((verdict, gate.ledger().unwrap().to_internal.held), (TcVerdict::Drop, 1));
    let mut seen = Vec::new();
    reader.poll(Duration::ZERO, |record| seen.push((record.from, record.reason))).unwrap();
    assert_eq!(seen, [(side, Reason::Managed), (side.other(), Reason::Held)]);
    // Another verdict leaves that as it is, unless it brings something else.
    table.decide(&key, &FlowVerdict { label: 7, ..FlowVerdict::default() }).unwrap();
    assert_eq!(table.get(&key).unwrap().unwrap().sent.map(|sent| sent.manage), manage);
    table.decide_managed(&key, &FlowVerdict::default(), [Manage::default(), copy]).unwrap();
    let flow = table.get(&key).unwrap().unwrap();
    assert_eq!(flow.sent.map(|sent| sent.manage), [Manage::default(), copy]);
}

#[test]
fn of_a_super_packet_only_what_is_needed_is_copied() {
    let gate = gate();
    let (mut reader, table) = (gate.reader().unwrap(), gate.table());
    let payload: Vec<u8> = (0..3000_u32).map(|byte| byte as u8).collect();
    let packet = Packet::tcp(0, ACK, &payload);
    let (key, begin) = (packet.key(), packet.sequence);
    let end = begin + payload.len() as u32;
    table.decide(&key, &FlowVerdict::default()).unwrap();
    let side = key.side_of(packet.from).unwrap();
    // What is skipped before which number; whether beginnings are enough; bytes omitted, and copied.
    let rows = [
        (None, false, 0, 3000),
        (Some(begin), false, 0, 3000),
        (Some(begin + 1000), false, 1000, 2000),
        (Some(end - 1), true, 2999, 1),
        (Some(begin.wrapping_sub(WINDOW - 1)), true, 0, 3000),
        (Some(begin.wrapping_sub(WINDOW)), true, 0, 1882),
        (None, true, 0, 1882),
    ];
    for (skip_to, brief, skipped, copied) in rows {
        let manage = Manage { copy: true, skip_to, brief, hold_from: None };
        table.manage(&key, of_side(side, manage)).unwrap();
        // One that is no super-packet is copied whole: its checksum has to be inspected.
        for (gso_size, skipped, copied) in [(1448, skipped, copied), (0, 0, 3000)] {
            let meta = Meta { gso_size, ..Meta::default() };
            let (verdict, out, _) = gate.run(UP, &packet.bytes(), meta).unwrap();
            assert_eq!((verdict, out), (TcVerdict::Next, packet.bytes()));
            let mut seen = Vec::new();
            let each = |record: datapath::gate::Record<'_>| {
                seen.push((record.sequence, record.payload_length, record.payload().to_vec()));
            };
            reader.poll(Duration::ZERO, each).unwrap();
            let rest = &payload[skipped..];
            let expected = (begin + skipped as u32, rest.len() as u32, rest[..copied].to_vec());
            assert_eq!(seen, [expected], "{manage:?}, {gso_size}");
        }
    }
    // An end is reported with the last byte, however much is skipped before it.
    let manage = Manage { copy: true, skip_to: Some(end + 9), ..Manage::default() };
    table.manage(&key, of_side(side, manage)).unwrap();
    let last = Packet { flags: ACK | FIN, ..packet };
    gate.run(UP, &last.bytes(), Meta { gso_size: 1448, ..Meta::default() }).unwrap();
    let mut seen = Vec::new();
    reader.poll(Duration::ZERO, |record| seen.push((record.sequence, record.tcp_flags))).unwrap();
    assert_eq!(seen, [(end - 1, ACK | FIN)]);
}
