//! A real client's socket over a veth, natively and generically, with the sockets behind.

use super::frame::question;
use super::network::Network;
use super::random::candidate;
use super::{CLIENT, PORT, SERVICE};
use crate::root::common::Random;
use datapath::oracle::AttachMode;
use std::net::UdpSocket;
use std::time::Duration;
use testbed::{End, Namespace, Receiver, link};

/// Asks once over a socket; the candidates of the reply.
fn ask(socket: &UdpSocket, candidates: &[[u8; 4]]) -> Vec<[u8; 4]> {
    socket.send(&question(7, candidates)).unwrap();
    let mut reply = [0; 2000];
    let length = socket.recv(&mut reply).expect("a reply");
    assert_eq!(reply[2], 0x80);
    reply[16..length].as_chunks().0.to_vec()
}

#[test]
fn a_client_over_a_link_is_answered_in_either_mode() {
    let mut random = Random::new(11);
    let network = Network::random(&mut random, 50);
    let Some(program) = super::program(&super::settings(), &network) else { return };
    let (asker, site) = (Namespace::new("asker").unwrap(), Namespace::new("site").unwrap());
    // The client's kernel finishes its checksums: nothing would do it behind a veth.
    link(
        End::new(&asker, "eth0").address("192.0.2.7/24").no_offloads(),
        End::new(&site, "eth0").address("192.0.2.1/24"),
    )
    .unwrap();
    asker.check(&["ip", "route", "add", "default", "via", "192.0.2.1"]).unwrap();
    site.check(&["ip", "address", "add", "50.50.50.50/32", "dev", "lo"]).unwrap();
    let _receiver = Receiver::new(&asker, "eth0").unwrap();
    let index = site.enter(|| nix::net::if_::if_nametoindex("eth0")).unwrap();
    let lists: Vec<Vec<_>> = [1, 2, 5, 100, 363]
        .map(|count| (0..count).map(|_| candidate(&mut random, &network)).collect())
        .into();
    let mut answered = 0;
    for mode in [AttachMode::Native, AttachMode::Generic] {
        let attachment = site.enter(|| program.attach(index, mode)).unwrap();
        assert!(attachment.is_attached());
        asker.enter(|| {
            let socket = UdpSocket::bind((std::net::Ipv4Addr::from(CLIENT), 0)).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            socket.connect((std::net::Ipv4Addr::from(SERVICE), PORT)).unwrap();
            for list in &lists {
                assert_eq!(Some(ask(&socket, list)), network.rank(0, CLIENT, list), "{mode}");
                answered += 1;
            }
        });
        assert_eq!(program.ledger().unwrap().answered, answered, "{mode}");
    }
}

/// A client on this machine leaves its checksums to hardware that a veth does not have: such requests
/// go to the sockets, where the kernel knows what they lack.
#[test]
fn an_unfinished_checksum_reaches_the_sockets() {
    let network = Network::random(&mut Random::new(12), 9);
    let Some(program) = super::program(&super::settings(), &network) else { return };
    let (asker, site) = (Namespace::new("asker").unwrap(), Namespace::new("site").unwrap());
    link(
        End::new(&asker, "eth0").address("192.0.2.7/24"),
        End::new(&site, "eth0").address("192.0.2.1/24"),
    )
    .unwrap();
    asker.check(&["ip", "route", "add", "default", "via", "192.0.2.1"]).unwrap();
    site.check(&["ip", "address", "add", "50.50.50.50/32", "dev", "lo"]).unwrap();
    let index = site.enter(|| nix::net::if_::if_nametoindex("eth0")).unwrap();
    let _attachment = site.enter(|| program.attach(index, AttachMode::Native)).unwrap();
    let server = site.enter(|| UdpSocket::bind("50.50.50.50:8899")).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    asker.enter(|| {
        let socket = UdpSocket::bind("192.0.2.7:0").unwrap();
        socket.send_to(&question(7, &[[1, 2, 3, 4]]), "50.50.50.50:8899").unwrap();
    });
    let mut datagram = [0; 100];
    assert_eq!(server.recv(&mut datagram).unwrap(), 20);
    let ledger = program.ledger().unwrap();
    assert_eq!((ledger.answered, ledger.passed_sum), (0, 1));
}
