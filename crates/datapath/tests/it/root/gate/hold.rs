//! What is held goes nowhere until it is released, and then as it was.

use super::site::{Alive, SERVER, Site, of_side};
use super::through::exchange;
use datapath::gate::{
    Direction, FlowVerdict, Gate, Held, Injector, Key, Manage, PacketAction, Protocol, Reason,
    Rules, Settings,
};
use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, Shutdown, TcpListener, TcpStream, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use testbed::wait_until;

fn holding(site: &Site) -> Settings {
    let settings = site.settings();
    let rules = Rules { hold: true, ..settings.rules };
    Settings { rules, ring_bytes: 16 << 20, ..settings }
}

/// Releases everything in order until stopped, what follows each other as one where it can be.
/// Returns the longest packet that was held, and how many were joined with one before.
fn release_all(gate: &Gate, injector: &Injector, stop: &AtomicBool) -> (usize, usize) {
    let mut reader = gate.reader().unwrap();
    let (mut longest, mut joined) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let mut all = Vec::new();
        reader
            .poll(Duration::from_millis(20), |record| {
                assert_eq!(record.reason, Reason::Held);
                assert!(!record.is_broken());
                longest = longest.max(record.frame.len());
                all.extend(Held::of(&record));
            })
            .unwrap();
        joined += all.len();
        let all = Held::join_all(all);
        joined -= all.len();
        for held in all {
            injector.release(&held).unwrap();
        }
    }
    (longest, joined)
}

#[test]
fn connections_through_holding_arrive_whole_in_either_direction_and_family() {
    for (offloads, site) in Site::each_offloads() {
        let gate = Alive::new(Gate::open(&holding(&site)).unwrap());
        site.attach(&gate);
        let injector = site.router.enter(Injector::open).unwrap();
        let stop = AtomicBool::new(false);
        let (longest, joined) = std::thread::scope(|scope| {
            let worker = scope.spawn(|| release_all(&gate, &injector, &stop));
            for family in [0, 1] {
                exchange(&site, family, 1_000_000);
            }
            stop.store(true, Ordering::Relaxed);
            worker.join().unwrap()
        });
        assert!(!offloads || longest > 10_000, "{longest}");
        assert!(!offloads || joined > 0);
        let ledger = gate.ledger().unwrap();
        for counts in [ledger.from_internal, ledger.to_internal] {
            assert_eq!(counts.accounted(), counts.received, "{counts:?}");
            assert!(counts.held > 0 && counts.released > 0, "{counts:?}");
            assert_eq!(counts.dropped(), 0, "{counts:?}");
        }
    }
}

#[test]
fn datagrams_wait_until_they_are_released() {
    for site in Site::each() {
        let gate = Alive::new(Gate::open(&holding(&site)).unwrap());
        site.attach(&gate);
        let injector = site.router.enter(Injector::open).unwrap();
        let mut reader = gate.reader().unwrap();
        for (family, host) in SERVER.iter().enumerate() {
            let server: IpAddr = host.parse().unwrap();
            let any: IpAddr = ["0.0.0.0", "::"][family].parse().unwrap();
            let server = site.server.enter(|| UdpSocket::bind((server, 0))).unwrap();
            let client = site.client.enter(|| UdpSocket::bind((any, 0))).unwrap();
            client.connect(server.local_addr().unwrap()).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut next = || {
                let mut held = None;
                let wait = || {
                    reader
                        .poll(Duration::from_millis(50), |record| held = Held::of(&record))
                        .unwrap()
                        > 0
                };
                wait_until("a packet to be held", Duration::from_secs(20), wait).unwrap();
                held.unwrap()
            };
            client.send(b"there").unwrap();
            let up = next();
            server.set_nonblocking(true).unwrap();
            assert!(server.recv_from(&mut [0; 9]).is_err(), "it is held");
            server.set_nonblocking(false).unwrap();
            injector.release(&up).unwrap();
            let (length, from) = server.recv_from(&mut [0; 9]).unwrap();
            server.send_to(b"back", from).unwrap();
            injector.release(&next()).unwrap();
            assert_eq!((length, client.recv(&mut [0; 9]).unwrap()), (5, 4));
        }
        let ledger = gate.ledger().unwrap();
        for counts in [ledger.from_internal, ledger.to_internal] {
            assert_eq!((counts.held, counts.released, counts.passed_undecided), (2, 2, 0));
        }
    }
}

#[test]
fn a_managed_stream_is_copied_skipped_and_held_where_it_was_asked_for() {
    for site in Site::each() {
        let gate = site.gate();
        let (mut reader, table) = (gate.reader().unwrap(), gate.table());
        let injector = site.router.enter(Injector::open).unwrap();
        let server: IpAddr = SERVER[0].parse().unwrap();
        let listener = site.server.enter(|| TcpListener::bind((server, 0))).unwrap();
        let to = listener.local_addr().unwrap();
        let mut client = site.client.enter(|| TcpStream::connect(to)).unwrap();
        let mut server = listener.accept().unwrap().0;
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let key = Key::new(Protocol::Tcp, client.local_addr().unwrap(), to);
        let side = key.side_of(to).unwrap();
        table
            .decide(&key, &FlowVerdict { action: PacketAction::Pass, limit: 0, label: 3 })
            .unwrap();
        let first = table.get(&key).unwrap().unwrap().sent(side).first.unwrap();
        // Bytes 0 to 9 are copied, 10 to 99 are not, the rest is, and held from byte 200 on.
        let at = |byte: u32| first.wrapping_add(1).wrapping_add(byte);
        let copy = Manage { copy: true, ..Manage::default() };
        assert!(table.manage(&key, of_side(side, copy)).unwrap());
        let mut give = |bytes: usize| {
            server.write_all(&vec![bytes as u8; bytes]).unwrap();
        };
        let mut buffer = [0; 1000];
        give(10);
        client.read_exact(&mut buffer[..10]).unwrap();
        table.manage(&key, of_side(side, Manage { skip_to: Some(at(100)), ..copy })).unwrap();
        give(90);
        client.read_exact(&mut buffer[..90]).unwrap();
        let hold = Manage { skip_to: Some(at(100)), hold_from: Some(at(200)), ..copy };
        table.manage(&key, of_side(side, hold)).unwrap();
        give(100);
        client.read_exact(&mut buffer[..100]).unwrap();
        give(50);
        let mut seen = Vec::new();
        let mut held = None;
        let arrived = || {
            let each = |record: datapath::gate::Record<'_>| {
                assert_eq!((record.from, record.direction), (side, Direction::ToInternal));
                assert_eq!(
                    (record.label, record.payload().len() as u32),
                    (3, record.payload_length)
                );
                seen.push((record.reason, record.sequence, record.payload().len()));
                if held.is_none() {
                    held = Held::of(&record);
                }
            };
            reader.poll(Duration::from_millis(50), each).unwrap();
            held.is_some()
        };
        wait_until("the last block to be held", Duration::from_secs(20), arrived).unwrap();
        let expected = [
            (Reason::Managed, at(0), 10),
            (Reason::Managed, at(100), 100),
            (Reason::Held, at(200), 50),
        ];
        assert_eq!(seen[..3], expected);
        // Retransmissions are held too, and the client has nothing of it.
        client.set_nonblocking(true).unwrap();
        assert!(client.read(&mut buffer).is_err());
        client.set_nonblocking(false).unwrap();
        injector.release(&held.unwrap()).unwrap();
        client.read_exact(&mut buffer[..50]).unwrap();
        assert_eq!(buffer[..50], [50; 50]);
        let flow = table.get(&key).unwrap().unwrap();
        assert_eq!(flow.sent(side).manage, hold);
        // The end is reported for skipped bytes, too.
        table.manage(&key, of_side(side, Manage { skip_to: Some(at(10_000)), ..copy })).unwrap();
        server.write_all(&[9; 100]).unwrap();
        client.read_exact(&mut buffer[..100]).unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        let mut last = None;
        let ended = || {
            let each = |record: datapath::gate::Record<'_>| {
                if record.reason == Reason::Managed {
                    last = Some((record.sequence, record.payload().len(), record.tcp_flags & 1));
                }
            };
            reader.poll(Duration::from_millis(50), each).unwrap();
            last.is_some()
        };
        wait_until("the end", Duration::from_secs(20), ended).unwrap();
        assert_eq!(last, Some((at(350), 0, 1)));
    }
}
