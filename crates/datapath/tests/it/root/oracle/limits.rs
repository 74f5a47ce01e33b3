//! The rate limits: in the driver, at the sockets, and both on one bucket.

use super::frame::Frame;
use super::network::Network;
use crate::root::common::Random;
use datapath::oracle::{Limit, OracleProgram, Settings, SourceLimit, Verdict};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

fn limited(rate: u64, burst: u64) -> Settings {
    let limit = Limit { rate, burst };
    Settings { source: SourceLimit { limit, prefix4: 24, prefix6: 56 }, ..super::settings() }
}

fn program(settings: &Settings) -> Option<OracleProgram> {
    super::program(settings, &Network::random(&mut Random::new(5), 9))
}

fn request(source: [u8; 4]) -> Vec<u8> {
    Frame { source, ..Frame::request(&[[1, 2, 3, 4], [5, 6, 7, 8]]) }.bytes()
}

#[test]
fn a_flood_from_one_prefix_leaves_another_alone() {
    let Some(program) = program(&limited(1, 4)) else { return };
    // All of them are in group 1, for which there is a row.
    let answered = |last| match program.run(&request([192, 0, 2, last])).unwrap().0 {
        Verdict::Tx => true,
        Verdict::Drop => false,
        other => panic!("{other:?}"),
    };
    let flood = (0..200).filter(|last| answered(*last)).count();
    assert!((4..=6).contains(&flood), "{flood}");
    let ledger = program.ledger().unwrap();
    assert_eq!((ledger.answered, ledger.over_rate), (flood as u64, 200 - flood as u64));

    let prefixes = Settings {
        source: SourceLimit { prefix4: 32, ..limited(1, 4).source },
        ..super::settings()
    };
    program.configure(&prefixes).unwrap();
    // Each address is a prefix of its own now.
    assert!((201..=220).all(answered));
}

/// What is left to the sockets is not charged in the driver.
#[test]
fn what_is_passed_is_not_charged() {
    let Some(program) = program(&limited(1, 4)) else { return };
    let mut not_plain = Frame::request(&[[1, 2, 3, 4]]);
    not_plain.payload[10] = 1;
    for _ in 0..100 {
        assert_eq!(program.run(&not_plain.bytes()).unwrap().0, Verdict::Pass);
    }
    for _ in 0..4 {
        assert_eq!(program.run(&request(super::CLIENT)).unwrap().0, Verdict::Tx);
    }
}

/// Sockets in a namespace of their own, so that nobody else's datagrams count.
#[test]
fn the_filter_drops_what_is_over_its_rate_before_it_is_queued() {
    let program = super::loaded(&limited(1, 8));
    let space = testbed::Namespace::new("oracle").unwrap();
    for second in ["127.0.1.1/32", "fd00::1/128", "fd00:1::1/128"] {
        space.check(&["ip", "address", "add", second, "dev", "lo"]).unwrap();
    }
    space.enter(|| {
        for (server, clients) in [
            ("127.0.0.1:0", ["127.0.0.1:0", "127.0.1.1:0"]),
            ("[::1]:0", ["[fd00::1]:0", "[fd00:1::1]:0"]),
        ] {
            let before = program.ledger().unwrap();
            let server = UdpSocket::bind(server).unwrap();
            server.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            program.attach_filter(server.as_fd()).unwrap();
            let [heavy, quiet] = clients.map(|client| UdpSocket::bind(client).unwrap());
            for _ in 0..500 {
                heavy.send_to(&[1; 100], server.local_addr().unwrap()).unwrap();
            }
            for _ in 0..8 {
                quiet.send_to(&[2; 100], server.local_addr().unwrap()).unwrap();
            }
            let mut got = [0_u64; 3];
            let mut datagram = [0; 200];
            while let Ok(length) = server.recv(&mut datagram) {
                assert_eq!(length, 100, "a datagram is let in whole");
                got[usize::from(datagram[0])] += 1;
            }
            assert!((8..=11).contains(&got[1]), "{got:?}");
            assert_eq!(got[2], 8);
            let after = program.ledger().unwrap();
            assert_eq!(after.socket_taken - before.socket_taken, got[1] + 8);
            assert_eq!(after.socket_over_rate - before.socket_over_rate, 500 - got[1]);
        }
    });
}

/// The driver's packets and the sockets' are charged to the same buckets.
#[test]
fn driver_and_sockets_share_the_rate() {
    let mut settings = limited(1, 8);
    let source = Ipv4Addr::new(192, 0, 2, 7);
    settings.services.push(SocketAddrV4::new(source, 1));
    let Some(program) = program(&settings) else { return };
    let space = testbed::Namespace::new("oracle").unwrap();
    space.check(&["ip", "address", "add", "192.0.2.7/32", "dev", "lo"]).unwrap();
    for _ in 0..8 {
        assert_eq!(program.run(&request(source.octets())).unwrap().0, Verdict::Tx);
    }
    space.enter(|| {
        let server = UdpSocket::bind("192.0.2.7:0").unwrap();
        program.attach_filter(server.as_fd()).unwrap();
        let client = UdpSocket::bind("192.0.2.7:0").unwrap();
        for _ in 0..100 {
            client.send_to(&[0; 20], server.local_addr().unwrap()).unwrap();
        }
    });
    let ledger = program.ledger().unwrap();
    assert_eq!(ledger.socket_taken + ledger.socket_over_rate, 100);
    assert!(ledger.socket_taken <= 3, "{ledger:?}");
}
