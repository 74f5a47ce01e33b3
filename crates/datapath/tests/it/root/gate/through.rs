//! Real connections through the gate.

use super::site::{CLIENT, SERVER, Site};
use datapath::gate::{Direction, FlowVerdict, PacketAction, Protocol, Reason};
use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};
use testbed::wait_until;

/// Sends `size` bytes up and the same down; what came back.
pub(crate) fn exchange(site: &Site, family: usize, size: usize) -> (SocketAddr, SocketAddr) {
    let server: IpAddr = SERVER[family].parse().unwrap();
    let listener = site.server.enter(|| TcpListener::bind((server, 0))).unwrap();
    let to = listener.local_addr().unwrap();
    let echo = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut bytes = vec![0; size];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    });
    let mut stream = site.client.enter(|| TcpStream::connect(to)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let from = stream.local_addr().unwrap();
    let sent: Vec<u8> = (0..size).map(|at| (at * 7 + at / 251) as u8).collect();
    stream.write_all(&sent).unwrap();
    let mut back = vec![0; size];
    stream.read_exact(&mut back).unwrap();
    assert!(sent == back);
    echo.join().unwrap();
    (from, to)
}

#[test]
fn a_connection_passes_and_its_first_packets_are_copied_out() {
    for site in Site::each() {
        let gate = site.gate();
        let (mut reader, table) = (gate.reader().unwrap(), gate.table());
        for family in [0, 1] {
            // After two seconds without one, packets pass and are not copied.
            gate.heartbeat().unwrap();
            let (from, to) = exchange(&site, family, 300_000);
            assert_eq!(from.ip(), CLIENT[family].parse::<IpAddr>().unwrap());
            let key = datapath::gate::Key::new(Protocol::Tcp, from, to);
            let client = key.side_of(from).unwrap();
            let mut first = [Vec::new(), Vec::new()];
            let mut count = 0;
            reader
                .poll(Duration::from_secs(5), |record| {
                    assert_eq!((record.key, record.reason), (key, Reason::First));
                    assert_eq!((record.client, record.internal), (Some(client), Some(client)));
                    let up = record.direction == Direction::FromInternal;
                    assert_eq!(record.from == client, up);
                    assert_eq!((record.number, record.ifindex), (count, site.internal()));
                    count += 1;
                    first[usize::from(!up)].extend_from_slice(&record.payload()[..1]);
                })
                .unwrap();
            assert_eq!(count, 8);
            assert_eq!(first[0][0], 0);
            // Both ends have closed, and all of it was counted in one entry.
            let ended = || {
                let flow = table.get(&key).unwrap().unwrap();
                flow.sent.iter().all(|sent| sent.tcp_flags & 1 != 0)
            };
            wait_until("both sides to end", Duration::from_secs(10), ended).unwrap();
            let flow = table.get(&key).unwrap().unwrap();
            assert_eq!(
                (flow.verdict, flow.client, flow.internal),
                (None, Some(client), Some(client))
            );
            for sent in flow.sent {
                assert!(sent.bytes > 300_000 && sent.packets >= 300_000 / 1448, "{sent:?}");
            }
            // It stays the same flow when it gets a verdict.
            let verdict = FlowVerdict { action: PacketAction::Pass, limit: 0, label: 7 };
            table.decide(&key, &verdict).unwrap();
            let decided = table.get(&key).unwrap().unwrap();
            assert_eq!(
                (decided.verdict, decided.sent[0].bytes),
                (Some(verdict), flow.sent[0].bytes)
            );
            let mut seen = 0;
            table.for_each(|other, _| seen += u32::from(*other == key)).unwrap();
            assert_eq!(seen, 1);
            assert_eq!(table.remove(&key).unwrap().unwrap().sent, flow.sent);
            assert_eq!(table.get(&key).unwrap(), None);
        }
        let ledger = gate.ledger().unwrap();
        for counts in [ledger.from_internal, ledger.to_internal] {
            assert_eq!(counts.accounted(), counts.received, "{counts:?}");
            assert!(counts.passed_undecided > 0 && counts.dropped() == 0, "{counts:?}");
        }
    }
}

#[test]
fn between_two_internal_interfaces_a_packet_is_judged_where_it_comes_in() {
    for site in Site::each() {
        let gate = site.gate();
        // The other interface is internal too.
        let other = site.router.enter(|| nix::net::if_::if_nametoindex("wan0")).unwrap();
        site.router.enter(|| gate.attach(other)).unwrap();
        let (from, to) = exchange(&site, 0, 100_000);
        let flow = gate.table().get(&datapath::gate::Key::new(Protocol::Tcp, from, to)).unwrap();
        let ledger = gate.ledger().unwrap();
        let (from_internal, to_internal) = (ledger.from_internal, ledger.to_internal);
        let packets: u64 = flow.unwrap().sent.iter().map(|sent| sent.packets).sum();
        assert!(packets >= from_internal.passed_undecided, "{packets} {ledger:?}");
        // Both directions came in somewhere, and went out counted only.
        assert!(
            from_internal.passed_undecided > 10 && to_internal.passed_internal > 10,
            "{ledger:?}"
        );
        assert_eq!(to_internal.passed_undecided, 0, "{ledger:?}");
        for counts in [from_internal, to_internal] {
            assert_eq!(counts.accounted(), counts.received, "{counts:?}");
        }
    }
}
