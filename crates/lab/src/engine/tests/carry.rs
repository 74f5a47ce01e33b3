//! Packets between two hosts, and what passes between a host and its node.

use std::net::Ipv4Addr;

use wire::{EtherType, IpProtocol, Mac, arp, ethernet, ipv4};

use super::table::{MS, Table, frame, packet, row, udp};
use crate::{
    Nanos, PortId,
    engine::{Made, Reason},
};

#[test]
fn a_packet_takes_the_sum_of_the_delays_and_loses_a_hop_at_each_node() {
    let mut table = row(4, "delay=10ms");
    table.now = 5 * MS;
    table.send(PortId(0), &packet("10.0.0.10", "10.3.0.10", 64, IpProtocol::UDP, &[7; 30]));
    let left = table.drain();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].at, left[0].port), (35 * MS, PortId(1)));
    let right = packet("10.0.0.10", "10.3.0.10", 60, IpProtocol::UDP, &[7; 30]);
    assert_eq!(left[0].ip(), right);
    let header = ethernet::Packet::new(&left[0].bytes[12..]).expect("a frame");
    assert_eq!(
        (header.destination(), header.source(), header.ether_type()),
        (Table::host_mac(1), Table::node_mac(1), EtherType::IPV4)
    );
    let ledger = table.engine.ledger();
    assert_eq!((ledger.received, ledger.sent, ledger.in_flight()), (1, 1, 0));
}

#[test]
fn packets_of_equal_times_leave_in_the_order_in_which_they_came() {
    let mut table = row(2, "delay=10ms");
    for number in 0..100 {
        table.send(PortId(0), &packet("10.0.0.10", "10.1.0.10", 9, IpProtocol::UDP, &[number]));
    }
    let left = table.drain();
    assert!(left.iter().map(|left| left.ip()[20]).eq(0..100));
}

#[test]
fn padding_of_short_frames_does_not_travel() {
    let mut table = row(2, "delay=10ms");
    let mut bytes = packet("10.0.0.10", "10.1.0.10", 9, IpProtocol::UDP, &[1]);
    bytes.resize(46, 0);
    table.send(PortId(0), &bytes);
    assert_eq!(table.drain()[0].ip().len(), 21);
}

/// ARP questions of the host, and whether its node answers.
#[test]
fn the_node_answers_arp_for_every_address_but_the_hosts_own() {
    let cases = [
        ("10.0.0.10", "10.0.0.1", true),
        ("10.0.0.10", "10.0.99.99", true),
        ("10.0.0.10", "192.0.2.1", true),
        ("10.0.0.10", "10.0.0.10", false), // An announcement.
        ("0.0.0.0", "10.0.0.10", false),   // A probe for its own address.
        ("0.0.0.0", "10.0.0.1", false),    // A probe for another.
    ];
    for (sender, target, answered) in cases {
        let mut table = row(2, "delay=10ms");
        let ask = arp::Repr {
            operation: arp::Operation::REQUEST,
            sender_mac: Table::host_mac(0),
            sender_ip: sender.parse().expect("an address"),
            target_mac: Mac([0; 6]),
            target_ip: target.parse().expect("an address"),
        };
        let mut payload = [0; arp::LEN];
        ask.emit(&mut payload).expect("room");
        table.send_frame(
            PortId(0),
            &frame(Mac::BROADCAST, Table::host_mac(0), EtherType::ARP, &payload),
        );
        let left = table.drain();
        assert_eq!(left.len(), usize::from(answered), "{sender} asks for {target}");
        assert_eq!(table.engine.ledger()[Reason::Neighbour], 1);
        assert_eq!(table.engine.ledger()[Made::Neighbour], u64::from(answered));
        let Some(answer) = left.first() else { continue };
        let view = arp::Packet::new(answer.ip()).expect("ARP");
        let answer = arp::Repr::parse(&view).expect("ARP for IPv4");
        assert_eq!(answer.operation, arp::Operation::REPLY);
        assert_eq!((answer.sender_ip, answer.target_ip), (ask.target_ip, ask.sender_ip));
        assert_eq!(
            (answer.sender_mac, answer.target_mac),
            (Table::node_mac(0), Table::host_mac(0))
        );
    }
}

/// Frames that are not for the node or that no router forwards, and how they are counted.
#[test]
fn what_is_not_forwarded_is_counted_by_reason() {
    let good = packet("10.0.0.10", "10.1.0.10", 9, IpProtocol::UDP, &[0; 8]);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let to = |address: &str| packet("10.0.0.10", address, 9, IpProtocol::UDP, &[0; 8]);
    let cases = [
        ("a wrong checksum", changed(&|ip| ip[10] ^= 1), Reason::Malformed),
        ("version 5", changed(&|ip| ip[0] = 0x55), Reason::Malformed),
        ("a short header", changed(&|ip| ip[0] = 0x44), Reason::Malformed),
        ("cut", changed(&|ip| ip.truncate(27)), Reason::Malformed),
        ("empty", Vec::from([0x45]), Reason::Malformed),
        ("multicast", to("224.0.0.5"), Reason::Address),
        ("broadcast", to("255.255.255.255"), Reason::Address),
        ("loopback", to("127.0.0.1"), Reason::Address),
        ("no route", to("198.51.100.1"), Reason::NoRoute),
        ("no host", to("10.1.0.11"), Reason::NoHost),
    ];
    for (name, bytes, reason) in cases {
        let mut table = row(2, "delay=10ms");
        table.send(PortId(0), &bytes);
        table.drain();
        assert_eq!(table.engine.ledger()[reason], 1, "{name}: {:?}", table.engine.ledger());
    }
    let mut table = row(2, "delay=10ms");
    table.send_frame(PortId(0), &frame(Mac([8; 6]), Mac([2; 6]), EtherType::IPV4, &good));
    table.send_frame(PortId(0), &[1, 2, 3]);
    table.drain();
    let ledger = table.engine.ledger();
    assert_eq!((ledger[Reason::NotForNode], ledger[Reason::Malformed]), (1, 1));
}

#[test]
fn gateways_are_addresses_of_the_node() {
    let mut table = row(2, "delay=10ms");
    assert_eq!(table.engine.gateway4(PortId(0)), Some(Ipv4Addr::new(10, 0, 0, 1)));
    let ask = packet("10.1.0.10", "10.0.0.1", 2, IpProtocol::ICMP, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
    table.send(PortId(1), &ask);
    table.drain();
    assert_eq!(table.engine.ledger()[Reason::ToNode], 1);
    assert!(ipv4::Packet::new(&ask).is_ok());
}

/// A host about which nothing is known: the first packets are lost, the node asks, and once the host has
/// answered, its packets come.
#[test]
fn the_node_asks_for_a_host_that_it_does_not_know() {
    for (from, to) in [("10.0.0.10", "10.1.0.77"), ("2001:db8::10", "2001:db8:1::77")] {
        let mut table = row(2, "delay=10ms");
        let mac = Mac([2, 0, 0, 0, 0, 9]);
        let net = format!("{to}/{}", if to.contains(':') { 48 } else { 16 });
        let port = table.engine.add_port(crate::NodeId(1), mac, vec![net.parse().expect("a net")]);
        for _ in 0..5 {
            table.send(PortId(0), &super::table::udp(from, to, 64, 9, b"x"));
        }
        let asked = table.drain();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].port, port);
        assert_eq!(table.engine.ledger()[Reason::HostUnknown], 5);
        // Whatever it says, it has a MAC address.
        let host = Mac([2, 0, 0, 0, 7, 7]);
        let answer = super::table::udp(to, from, 64, 9, b"x");
        let kind = if to.contains(':') { EtherType::IPV6 } else { EtherType::IPV4 };
        table.send_frame(port, &frame(mac, host, kind, &answer));
        table.send(PortId(0), &super::table::udp(from, to, 64, 9, b"x"));
        let left = table.drain();
        let to_host = left.iter().find(|left| left.port == port).expect("the packet");
        assert_eq!(to_host.bytes[12..18], host.0);
    }
}

#[test]
fn a_frame_that_its_host_does_not_take_is_counted_as_ended() {
    let mut table = row(3, "delay=10ms");
    for _ in 0..3 {
        table.send(PortId(0), &udp("10.0.0.10", "10.2.0.10", 64, 9, b"x"));
    }
    let mut out = Vec::new();
    table.engine.advance(Nanos(20 * MS), &mut out);
    assert_eq!((out.len(), table.engine.ledger().sent), (3, 3));
    for ((_, frame), is_taken) in out.into_iter().zip([true, false, false]) {
        match is_taken {
            true => table.engine.pool().give_back(frame),
            false => table.engine.refused(frame),
        }
    }
    let ledger = table.engine.ledger();
    assert_eq!((ledger.received, ledger.sent, ledger.in_flight()), (3, 1, 0));
    assert_eq!(ledger[Reason::HostRefused], 2);
}
