//! What the programs cost: figures are printed, not judged; the machine may be busy.

use super::frame::{ACK, HOSTS, Packet, SYN};
use super::site::{CLIENT, Site};
use super::table::gate;
use datapath::gate::{CacheKey, Direction, FlowVerdict, Key, PacketAction, Protocol};
use std::{
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

const TIMES: u32 = 20_000;
/// Of so many runs the fastest, which nothing interrupted.
const RUNS: u32 = 50;

#[test]
fn the_cost_of_a_packet_is_measured() {
    let gate = gate();
    let table = gate.table();
    let (four, six) = (Packet::tcp(0, ACK, &[7; 1400]), Packet::tcp(1, ACK, &[7; 1400]));
    let time = |what: &str, packet: &Packet, direction| {
        let once = |_| {
            gate.heartbeat().unwrap();
            gate.time(direction, &packet.bytes(), TIMES).unwrap()
        };
        let took = (0..RUNS).map(once).min().unwrap();
        println!("{what:40} {:6} ns", took.as_nanos());
        assert!(took > Duration::ZERO);
    };
    for packet in [&four, &six] {
        table.decide(&packet.key(), &FlowVerdict::default()).unwrap();
    }
    time("decided, IPv4, from internal hosts", &four, Direction::FromInternal);
    time("decided, IPv4, to internal hosts", &four.clone().back(), Direction::ToInternal);
    time("decided, IPv6, from internal hosts", &six, Direction::FromInternal);
    let refused = FlowVerdict { action: PacketAction::Drop, ..FlowVerdict::default() };
    table.decide(&four.key(), &refused).unwrap();
    time("refused", &four, Direction::FromInternal);
    let [source, target] = HOSTS[1].map(|host| host.parse::<SocketAddr>().unwrap());
    let key = CacheKey { source: source.ip(), target, protocol: Protocol::Tcp };
    table.refuse(&key, PacketAction::Drop, Duration::from_secs(3600)).unwrap();
    let mut again = Packet::tcp(1, SYN, b"");
    again.from.set_port(9);
    time("refused before, IPv6", &again, Direction::FromInternal);
    time(
        "undecided, after its first packets",
        &Packet::udp(0, &[7; 1400]),
        Direction::FromInternal,
    );
    gate.bypass(true).unwrap();
    time("switched off", &four, Direction::FromInternal);
}

/// What a datagram costs that is refused where it leaves: the network stack above, the hook, the program.
#[test]
fn the_cost_of_a_hook_is_measured() {
    for site in Site::each() {
        let gate = site.gate();
        let socket = site.router.enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
        socket.connect((CLIENT[0], 9)).unwrap();
        let key =
            Key::new(Protocol::Udp, socket.local_addr().unwrap(), socket.peer_addr().unwrap());
        let refused = FlowVerdict { action: PacketAction::Drop, ..FlowVerdict::default() };
        gate.table().decide(&key, &refused).unwrap();
        // Few at a time, so that some of the runs are not interrupted.
        const DATAGRAMS: u32 = 200;
        let once = |_| {
            let began = Instant::now();
            for _ in 0..DATAGRAMS {
                // The kernel says that it was dropped.
                let _ = socket.send(&[7; 1400]);
            }
            began.elapsed() / DATAGRAMS
        };
        let took = (0..RUNS * 20).map(once).min().unwrap();
        println!("a datagram that is refused at {:9} {:6} ns", site.kind, took.as_nanos());
        assert!(gate.ledger().unwrap().to_internal.dropped_verdict > u64::from(TIMES));
    }
}
