//! The real iperf3 between namespaces, and with a station at one end only.

use super::{anywhere, wait};
use probe::tools::iperf3::{Error, Server, Settings, run};
use std::{sync::mpsc, time::Duration};
use testbed::pair_without_offloads;

fn second() -> Settings {
    Settings { duration: Duration::from_secs(1), ..Settings::default() }
}

#[test]
fn both_ways_over_tcp_and_udp() {
    let (left, right) = pair_without_offloads().unwrap();
    for settings in [
        second(),
        Settings { reverse: true, streams: 2, ..second() },
        Settings { udp: true, rate: Some(5_000_000), ..second() },
        Settings { udp: true, reverse: true, rate: Some(5_000_000), ..second() },
    ] {
        let context = anywhere();
        let (started, address) = mpsc::channel();
        let (client, server) = std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                right.enter(|| {
                    wait(async {
                        let server =
                            Server::start("192.0.2.2".parse().unwrap(), &settings).unwrap();
                        started.send(server.address()).unwrap();
                        server.serve(&context).await
                    })
                })
            });
            let address = address.recv().unwrap();
            let client = left.enter(|| wait(run(address, &settings, &context)));
            (client, server.join().unwrap())
        });
        let (client, server) = (client.unwrap(), server.unwrap());
        assert_eq!(client.transport, "iperf3");
        assert!(client.bytes > 0 && client.bytes_per_second > 0.0, "{settings:?}: {client:?}");
        assert!(!client.samples.is_empty(), "{settings:?}: {client:?}");
        assert!(server.bytes > 0, "{settings:?}: {server:?}");
        if !settings.reverse {
            // The server received, and the client says what that was.
            assert_eq!(client.bytes, server.bytes, "{settings:?}");
        }
        assert_eq!(client.lost.is_some(), settings.udp, "{settings:?}: {client:?}");
    }
}

/// Real iperf3 at the other end knows nothing of stations: a station does the test with it, and serves it.
#[test]
fn a_station_interoperates_with_a_plain_iperf3() {
    let (left, right) = pair_without_offloads().unwrap();
    let _plain = right.spawn(&["iperf3", "-s", "-p", "5201"]).unwrap();
    for to in ["192.0.2.2:5201", "[2001:db8::2]:5201"] {
        let (settings, context) = (second(), anywhere());
        let test = run(to.parse().unwrap(), &settings, &context);
        assert!(left.enter(|| wait(test)).unwrap().bytes > 0);
    }
    let context = anywhere();
    let served = left.enter(|| {
        wait(async {
            let server = Server::start("192.0.2.1".parse().unwrap(), &second()).unwrap();
            let port = server.address().port().to_string();
            let words = ["iperf3", "-c", "192.0.2.1", "-p", &port, "-t", "1"];
            // Until the server listens, the client is refused.
            let client = || right.run(&words, Duration::from_secs(20)).unwrap().success();
            std::thread::scope(|scope| {
                scope.spawn(|| testbed::wait_until("a test", Duration::from_secs(20), client));
            });
            server.serve(&context).await
        })
    });
    assert!(served.unwrap().bytes > 0);
}

#[test]
fn what_the_program_complains_of_is_reported() {
    let (settings, context) = (second(), anywhere());
    // Nobody listens there: the port is bound, and not listened at.
    let held = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = held.local_addr().unwrap();
    let error = wait(run(to, &settings, &context)).unwrap_err();
    assert!(matches!(&error, Error::Reported(words) if words.contains("refused")), "{error}");
}
