//! Throughput between namespaces.

use super::{anywhere, wait};
use probe::{
    record::Throughput,
    tools::{
        Context, Refusal,
        throughput::{Accepted, Error, Server, Settings, Token, Transport, run},
    },
};
use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpStream},
    sync::mpsc,
    time::Duration,
};
use testbed::{Namespace, pair_without_offloads};

/// Half a second.
fn short(transport: Transport) -> Settings {
    let duration = Duration::from_millis(500);
    Settings { transport, duration, ..Settings::default() }
}

/// Serves a test in one namespace and does it from the other; what the client and the server say.
fn between(
    namespaces: &(Namespace, Namespace),
    v6: bool,
    accepted: &Settings,
    wanted: &Settings,
    context: &Context,
) -> (Result<Throughput, Error>, Result<Throughput, Error>) {
    let (left, right) = namespaces;
    let [from, to]: [IpAddr; 2] = match v6 {
        false => ["192.0.2.1", "192.0.2.2"],
        true => ["2001:db8::1", "2001:db8::2"],
    }
    .map(|address| address.parse().unwrap());
    let token = Token::random();
    let (bound, address) = mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            right.enter(|| {
                wait(async {
                    let accepted = Accepted { token, settings: accepted.clone(), from };
                    let server = Server::bind(to, accepted).await.unwrap();
                    bound.send(server.address()).unwrap();
                    server.serve(context).await
                })
            })
        });
        let address = address.recv().unwrap();
        let client = left.enter(|| wait(run(address, &token, wanted, context)));
        (client, server.join().unwrap())
    })
}

/// What holds of every test, whatever the machine is busy with.
fn plausible(figures: &Throughput, transport: &str) {
    assert_eq!(figures.transport, transport);
    assert!(figures.bytes > 0 && figures.bytes_per_second > 0.0, "{figures:?}");
    assert!(!figures.samples.is_empty(), "{figures:?}");
    let pairs = figures.samples.iter().zip(figures.samples.iter().skip(1));
    for (one, next) in pairs {
        assert!(one.at_ns <= next.at_ns && one.bytes <= next.bytes, "{figures:?}");
    }
}

#[test]
fn tcp_both_ways_in_both_families_over_one_connection_and_several() {
    let namespaces = pair_without_offloads().unwrap();
    for (v6, reverse, streams) in [(false, false, 1), (true, true, 1), (false, true, 4)] {
        let settings = Settings { reverse, streams, ..short(Transport::Tcp) };
        let context = anywhere();
        let (client, server) = between(&namespaces, v6, &settings, &settings, &context);
        let (client, server) = (client.unwrap(), server.unwrap());
        plausible(&client, "tcp");
        assert_eq!(client, server, "both ends say the same");
        assert!(client.samples.last().unwrap().window_bytes > 0, "the sender's kernel was asked");
        assert_eq!(client.lost, None);
    }
}

#[test]
fn psock_both_ways() {
    let namespaces = pair_without_offloads().unwrap();
    for (v6, reverse) in [(false, false), (true, true)] {
        let settings = Settings { reverse, streams: 2, ..short(Transport::Psock) };
        let context = anywhere();
        let (client, server) = between(&namespaces, v6, &settings, &settings, &context);
        let (client, server) = (client.unwrap(), server.unwrap());
        plausible(&client, "psock");
        assert_eq!(client, server, "both ends say the same");
    }
}

#[test]
fn a_rate_is_not_exceeded() {
    let namespaces = pair_without_offloads().unwrap();
    for (transport, streams) in [(Transport::Tcp, 2), (Transport::Psock, 1), (Transport::Udp, 1)] {
        let settings = Settings { rate: Some(8_000_000), streams, ..short(transport) };
        let context = anywhere();
        let (client, server) = between(&namespaces, false, &settings, &settings, &context);
        let (client, server) = (client.unwrap(), server.unwrap());
        assert_eq!(client.bytes, server.bytes);
        // A million bytes a second. On a busy machine the receiver may begin late and find what was sent
        // until then; without the limit it would be hundreds of millions.
        assert!(client.bytes_per_second < 4_000_000.0, "{transport:?}: {client:?}");
        assert!(client.bytes > 10_000, "{transport:?}: {client:?}");
    }
}

#[test]
fn every_datagram_is_counted_or_lost() {
    let namespaces = pair_without_offloads().unwrap();
    for (v6, reverse) in [(false, false), (true, true)] {
        let settings = Settings { rate: Some(20_000_000), reverse, ..short(Transport::Udp) };
        let context = anywhere();
        let (client, server) = between(&namespaces, v6, &settings, &settings, &context);
        let (client, server) = (client.unwrap(), server.unwrap());
        plausible(&client, "udp");
        assert_eq!(client, server, "both ends say the same");
        let (lost, sent) = client.lost.unwrap();
        assert_eq!((sent - lost) * 1400, client.bytes);
        assert_eq!(client.duplicated, Some(0));
        assert!(client.reordered.is_some());
        assert_eq!(context.counters.refused(Refusal::UnknownPeer), 0);
    }
}

#[test]
fn only_the_test_that_was_agreed_is_done() {
    let namespaces = pair_without_offloads().unwrap();
    let accepted = short(Transport::Tcp);
    let wanted = Settings { duration: Duration::from_secs(60), ..accepted.clone() };
    let context = anywhere();
    let (client, server) = between(&namespaces, false, &accepted, &wanted, &context);
    let client = client.unwrap_err();
    assert!(
        matches!(&client, Error::Refused { reason } if reason.contains("accepted")),
        "{client}"
    );
    assert!(matches!(server.unwrap_err(), Error::NotAccepted));
    assert_eq!(context.counters.refused(Refusal::Control), 1);
    let unknown = Settings { reverse: true, congestion: Some("none_such".to_owned()), ..accepted };
    let (client, server) = between(&namespaces, false, &unknown, &unknown, &context);
    assert!(matches!(client.unwrap_err(), Error::Refused { .. }));
    assert!(matches!(server.unwrap_err(), Error::Congestion { .. }));
}

/// Others connect first: without a token, with another one, from another address; the test goes on.
#[test]
fn unknown_peers_are_counted_and_the_test_goes_on() {
    let (token, other) = (Token::random(), Token::random());
    let (context, local) = (anywhere(), IpAddr::from([127, 0, 0, 1]));
    let settings = Settings { duration: Duration::from_millis(100), ..Settings::default() };
    wait(async {
        let accepted = Accepted { token, settings: settings.clone(), from: local };
        let server = Server::bind(local, accepted).await.unwrap();
        let address = server.address();
        let serving = server.serve(&context);
        let testing = async {
            let unknown_peers = tokio::task::spawn_blocking(move || unknown_peers(address));
            unknown_peers.await.unwrap();
            let error = run(address, &other, &settings, &context).await.unwrap_err();
            assert!(matches!(error, Error::Control(_)), "{error}");
            run(address, &token, &settings, &context).await
        };
        let (served, tested) = tokio::join!(serving, testing);
        assert_eq!(served.unwrap().bytes, tested.unwrap().bytes);
    });
    assert_eq!(context.counters.refused(Refusal::UnknownPeer), 3);
}

/// One says what nobody understands, one comes from another address; both are closed.
fn unknown_peers(address: SocketAddr) {
    let mut garbage = TcpStream::connect(address).unwrap();
    garbage.write_all(&[b'x'; 64]).unwrap();
    let far = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    far.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
    far.connect(&address.into()).unwrap();
    let mut far = TcpStream::from(far);
    for stream in [&mut garbage, &mut far] {
        // The end, or a reset.
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
}
