//! Refusals and limits between real hosts, with NAT behind the gate.

use super::site::{SERVER, Site};
use super::through::exchange;
use datapath::gate::{AttachMode, CacheKey, FlowVerdict, Key, PacketAction, Protocol, Rules};
use datapath::shaper::{Direction as Way, Rate, Shaper};
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    time::Duration,
};
use testbed::{LIMIT, wait_until};

/// A connection, both ends.
fn connection(site: &Site, family: usize) -> (TcpStream, TcpStream) {
    let server: IpAddr = SERVER[family].parse().unwrap();
    let listener = site.server.enter(|| TcpListener::bind((server, 0))).unwrap();
    let to = listener.local_addr().unwrap();
    let client = site.client.enter(|| TcpStream::connect(to)).unwrap();
    let server = listener.accept().unwrap().0;
    client.set_read_timeout(Some(LIMIT)).unwrap();
    server.set_read_timeout(Some(LIMIT)).unwrap();
    (client, server)
}

#[test]
fn both_ends_of_a_refused_connection_hear_of_it_through_nat_whoever_speaks() {
    for (_, site) in Site::each_offloads() {
        for tool in ["iptables", "ip6tables"] {
            let masquerade =
                [tool, "-t", "nat", "-A", "POSTROUTING", "-o", "wan0", "-j", "MASQUERADE"];
            site.router.check(&masquerade).unwrap();
        }
        let gate = site.gate();
        for (family, speaks) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let (mut client, mut server) = connection(&site, family);
            assert_ne!(server.peer_addr().unwrap().ip(), client.local_addr().unwrap().ip());
            let key =
                Key::new(Protocol::Tcp, client.local_addr().unwrap(), client.peer_addr().unwrap());
            client.write_all(b"first").unwrap();
            server.read_exact(&mut [0; 5]).unwrap();
            let reset = FlowVerdict { action: PacketAction::Reset, ..FlowVerdict::default() };
            gate.table().decide(&key, &reset).unwrap();
            // One end, more than a segment.
            let speaker = [&mut client, &mut server].into_iter().nth(speaks).unwrap();
            speaker.write_all(&[7; 9000]).unwrap();
            for end in [&mut client, &mut server] {
                let error = end.read(&mut [0; 9]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
            }
        }
        let ledger = gate.ledger().unwrap();
        // A retransmission is answered again.
        assert!(ledger.from_internal.reset_verdict >= 2, "{ledger:?}");
        assert!(ledger.to_internal.reset_verdict >= 2, "{ledger:?}");
        // Each is seen once more when it returns, and once towards the other end.
        let resets = ledger.from_internal.reset_verdict + ledger.to_internal.reset_verdict;
        let released = || {
            let ledger = gate.ledger().unwrap();
            [ledger.from_internal.released, ledger.to_internal.released] == [resets; 2]
        };
        wait_until("all resets to be seen", LIMIT, released).unwrap();
        for counts in [ledger.from_internal, ledger.to_internal] {
            assert_eq!(counts.accounted(), counts.received, "{counts:?}");
        }
    }
}

#[test]
fn a_refused_datagram_is_answered_and_a_reconnection_dies_in_the_driver() {
    for (_, site) in Site::each_offloads() {
        let gate = site.gate();
        let internal = site.internal();
        let table = gate.table();
        for family in [0, 1] {
            let target = SocketAddr::new(SERVER[family].parse().unwrap(), 6881);
            let any: IpAddr = ["0.0.0.0", "::"][family].parse().unwrap();
            let socket = site.client.enter(|| UdpSocket::bind((any, 0))).unwrap();
            socket.set_read_timeout(Some(LIMIT)).unwrap();
            socket.connect(target).unwrap();
            let source = socket.local_addr().unwrap().ip();
            let udp = CacheKey { source, target, protocol: Protocol::Udp };
            table.refuse(&udp, PacketAction::Reset, Duration::from_secs(600)).unwrap();
            socket.send(b"hello").unwrap();
            let error = socket.recv(&mut [0; 9]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
            let tcp = CacheKey { protocol: Protocol::Tcp, ..udp };
            table.refuse(&tcp, PacketAction::Reset, Duration::from_secs(600)).unwrap();
            let error = site.client.enter(|| TcpStream::connect(target)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
            // Without a word, and in the driver.
            site.router.enter(|| gate.attach_driver(internal, AttachMode::Native)).unwrap();
            table.refuse(&udp, PacketAction::Drop, Duration::from_secs(600)).unwrap();
            let before = gate.ledger().unwrap();
            socket.send(b"hello").unwrap();
            let dropped =
                || gate.ledger().unwrap().driver.dropped_cache > before.driver.dropped_cache;
            wait_until("the driver to drop", LIMIT, dropped).unwrap();
            assert_eq!(table.refused(&udp).unwrap(), Some(1));
        }
        // What it lets through is judged above it as before.
        exchange(&site, 0, 100_000);
        let ledger = gate.ledger().unwrap();
        for counts in [ledger.from_internal, ledger.to_internal, ledger.driver] {
            assert_eq!(counts.accounted(), counts.received, "{counts:?}");
        }
        assert_eq!(ledger.from_internal.unreachable, 2);
        assert!(ledger.from_internal.reset_cache >= 2, "{ledger:?}");
        assert_eq!((ledger.driver.dropped_cache, ledger.from_internal.dropped_cache), (2, 0));
    }
}

#[test]
fn limited_flows_go_through_their_classes_in_both_directions() {
    for site in Site::each() {
        let gate = site.gate();
        let internal = site.internal();
        let mut shaper = site.router.enter(|| Shaper::open(internal, "nigh-ifb")).unwrap();
        let rate = Some(Rate { bytes_a_second: 20_000_000 });
        shaper.class(9, rate, rate).unwrap();
        gate.configure(&Rules { queue: Some(shaper.ifb()), ..Rules::default() }).unwrap();
        let (mut client, mut server) = connection(&site, 0);
        let key =
            Key::new(Protocol::Tcp, client.local_addr().unwrap(), server.local_addr().unwrap());
        gate.table().decide(&key, &FlowVerdict { limit: 9, ..FlowVerdict::default() }).unwrap();
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        let mut back = vec![0; bytes.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| client.write_all(&bytes).unwrap());
            server.read_exact(&mut back).unwrap();
        });
        assert!(back == bytes);
        std::thread::scope(|scope| {
            scope.spawn(|| server.write_all(&bytes).unwrap());
            client.read_exact(&mut back).unwrap();
        });
        assert!(back == bytes);
        let usage = site.router.enter(|| shaper.usage()).unwrap();
        for direction in [Way::Up, Way::Down] {
            let class = usage
                .iter()
                .find(|usage| (usage.class, usage.direction) == (9, direction))
                .unwrap();
            assert!(class.bytes > 1_000_000, "{usage:?}");
        }
        let ledger = gate.ledger().unwrap();
        assert!(ledger.from_internal.redirected > 10, "{ledger:?}");
        for counts in [ledger.from_internal, ledger.to_internal] {
            assert_eq!(counts.accounted(), counts.received, "{counts:?}");
        }
        shaper.close().unwrap();
    }
}
