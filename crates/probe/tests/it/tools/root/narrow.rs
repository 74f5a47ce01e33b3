//! Throughput through a link of the lab: what it carries is what is measured. The bounds are wide, for a
//! machine that is busy with other tests.

use super::{anywhere, lab::lab, wait};
use probe::{
    record::Throughput,
    tools::throughput::{Accepted, Server, Settings, Token, Transport, run},
};
use std::{net::IpAddr, sync::mpsc, time::Duration};
use testbed::{
    Lab,
    lab::{HOSTS, row},
};

/// Two hosts and a link that carries 8 Mbit/s of frames: a million bytes a second.
fn narrow() -> Lab {
    lab(&row(["", ""], ["delay = \"5ms\"\nrate = \"8Mbit\"\nqueue = \"32KB\""], HOSTS))
}

/// Serves a test in one host and does it from the other.
fn through(lab: &Lab, settings: &Settings) -> Throughput {
    let (token, context) = (Token::random(), anywhere());
    let (bound, address) = mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let serve = async {
                let from: IpAddr = "20.0.0.10".parse().unwrap();
                let accepted = Accepted { token, settings: settings.clone(), from };
                let server = Server::bind("30.0.0.10".parse().unwrap(), accepted).await.unwrap();
                bound.send(server.address()).unwrap();
                server.serve(&context).await
            };
            lab.enter("server", || wait(serve)).unwrap().unwrap()
        });
        let address = address.recv().unwrap();
        let test = run(address, &token, settings, &context);
        let client = lab.enter("pc", || wait(test)).unwrap().unwrap();
        assert_eq!(client, server.join().unwrap());
        client
    })
}

#[test]
fn tcp_and_psock_find_what_the_link_carries_both_ways() {
    let lab = narrow();
    for transport in [Transport::Tcp, Transport::Psock] {
        for reverse in [false, true] {
            let duration = Duration::from_secs(3);
            let settings = Settings { transport, reverse, duration, ..Settings::default() };
            let figures = through(&lab, &settings);
            let rate = figures.bytes_per_second;
            assert!(
                (400_000.0..1_300_000.0).contains(&rate),
                "{transport:?} {reverse}: {figures:?}"
            );
            if transport == Transport::Tcp {
                // The link's delay, there and back, is in every round trip.
                assert!(figures.samples.iter().any(|at| at.srtt_ns >= 10_000_000), "{figures:?}");
            }
        }
    }
}

#[test]
fn of_twice_as_many_datagrams_half_arrive() {
    let lab = narrow();
    let duration = Duration::from_secs(3);
    let rate = Some(16_000_000);
    let settings = Settings { transport: Transport::Udp, rate, duration, ..Settings::default() };
    let figures = through(&lab, &settings);
    let (lost, sent) = figures.lost.unwrap();
    // Nearly all of what the clock owes is sent, even if late.
    assert!(sent > 1000, "{figures:?}");
    // What the link carries in that time and holds in its queue is at most some 2,400 of them.
    assert!((lost > 0 || sent < 2500) && lost < sent * 4 / 5, "{figures:?}");
    assert!((400_000.0..1_300_000.0).contains(&figures.bytes_per_second), "{figures:?}");
    assert_eq!(figures.bytes, (sent - lost) * 1400);
    assert_eq!(figures.duplicated, Some(0));
}
