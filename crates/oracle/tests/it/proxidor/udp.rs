//! The threads behind the sockets.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::Arc,
    thread,
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use oracle::{
    candidate::Candidate,
    proxidor::udp::{Listen, Sockets, Workers},
    proxidor::{Query, Rcode, Reason, Reply, Settings},
    tables::Tables,
};

use crate::proxidor::vectors::networks;

/// Long enough for a reply that comes at all.
const TIMEOUT: Duration = Duration::from_secs(10);

struct Site {
    tables: Arc<ArcSwapOption<Tables>>,
    settings: Arc<ArcSwap<Settings>>,
    workers: Workers,
}

fn table(name: &str) -> Arc<Tables> {
    Arc::new(networks().remove(name).unwrap())
}

fn site(addresses: &[&str], threads: usize) -> Site {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let sockets = Sockets::bind(&Listen { addresses, threads }, &[]).unwrap();
    assert_eq!(sockets.fds().count(), sockets.addresses().len() * threads);
    let tables = Arc::new(ArcSwapOption::from(Some(table("row with a default router"))));
    let settings = Arc::new(ArcSwap::from_pointee(Settings::default()));
    let workers = sockets.start(&tables, &settings, &job::Pulse::default()).unwrap();
    Site { tables, settings, workers }
}

fn client(server: SocketAddr) -> UdpSocket {
    let any: IpAddr = if server.is_ipv4() { "0.0.0.0" } else { "::" }.parse().unwrap();
    let socket = UdpSocket::bind((any, 0)).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

fn request(identification: u32) -> Vec<u8> {
    let candidates: Vec<Candidate> =
        ["192.0.2.1", "192.0.2.65", "192.0.2.129"].map(|text| text.parse().unwrap()).into();
    let mut out = Vec::new();
    Query { identification, candidates: &candidates, ..Query::default() }.emit(&mut out).unwrap();
    out
}

fn reply(socket: &UdpSocket) -> Reply {
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).expect("a reply");
    Reply::parse(&buffer[..length], None).unwrap()
}

/// The ranking from router 3, the default router: what a client on loopback gets.
fn from_router_3() -> Vec<Candidate> {
    ["192.0.2.129", "192.0.2.65", "192.0.2.1"].map(|text| text.parse().unwrap()).into()
}

#[test]
fn replies_leave_from_the_address_that_was_asked() {
    let site = site(&["0.0.0.0:0", "[::]:0", "127.0.0.5:0"], 2);
    let [any4, any6, one] = [0, 1, 2].map(|at| site.workers.addresses()[at].port());
    for server in [
        SocketAddr::new("127.0.0.1".parse().unwrap(), any4),
        SocketAddr::new("127.0.0.77".parse().unwrap(), any4),
        SocketAddr::new("::1".parse().unwrap(), any6),
        SocketAddr::new("127.0.0.5".parse().unwrap(), one),
    ] {
        // A connected socket takes replies from that address only.
        let socket = client(server);
        socket.send(&request(7)).unwrap();
        let reply = reply(&socket);
        assert_eq!((reply.header.identification, reply.candidates), (7, from_router_3()));
    }
    assert_eq!(site.workers.stop().replies(Rcode::NO_ERROR), 4);
}

#[test]
fn every_datagram_is_counted_once() {
    let site = site(&["127.0.0.1:0"], 2);
    let server = site.workers.addresses()[0];
    let sockets: Vec<_> = (0..8).map(|_| client(server)).collect();
    for socket in &sockets {
        socket.send(&request(1)).unwrap();
        socket.send(&[0; 12]).unwrap();
        socket.send(&[0x10; 12]).unwrap();
        socket.send(&[0; 11]).unwrap();
        let mut answer = request(1);
        answer[2] |= 0x80;
        socket.send(&answer).unwrap();
        // Far longer than a request may be, and than is read of it.
        socket.send(&[0; 5000]).unwrap();
        let codes: Vec<_> = (0..4).map(|_| reply(socket).header.rcode).collect();
        let [fine, bad] = [Rcode::NO_ERROR, Rcode::MALFORMED];
        assert_eq!(codes, [fine, bad, Rcode::NOT_SUPPORTED, bad]);
    }
    site.tables.store(None);
    sockets[0].send(&request(2)).unwrap();
    assert_eq!(reply(&sockets[0]).header.rcode, Rcode::BUSY);
    let counters = site.workers.stop();
    assert_eq!(counters.received, 6 * 8 + 1);
    assert_eq!(counters.replied, [8, 16, 8, 0, 0, 1, 0]);
    assert_eq!((counters.drops(Reason::Short), counters.drops(Reason::Reply)), (8, 8));
    assert_eq!(counters.unsent, 0);
}

#[test]
fn clients_are_shared_among_the_threads() {
    let site = site(&["127.0.0.1:0"], 2);
    for _ in 0..64 {
        let socket = client(site.workers.addresses()[0]);
        socket.send(&request(1)).unwrap();
        reply(&socket);
    }
    let each: Vec<_> = site.workers.each().map(|(_, counters)| counters.received).collect();
    assert!(each.len() == 2 && each.iter().all(|&received| received > 0), "{each:?}");
}

#[test]
fn a_swap_loses_no_reply_and_each_is_wholly_of_one_state() {
    let site = site(&["127.0.0.1:0"], 2);
    let server = site.workers.addresses()[0];
    let before = from_router_3();
    let after: Vec<Candidate> = before.iter().copied().rev().collect();
    // Without a default router all are equal for a client on loopback: the order of the request.
    let other = table("row with one metric");
    let asked = 40_000;
    thread::scope(|scope| {
        let clients = [0, 1, 2, 3u32].map(|number| {
            let (before, after) = (&before, &after);
            scope.spawn(move || {
                let socket = client(server);
                let mut seen = BTreeSet::new();
                for round in 0..asked / 4 {
                    let identification = number << 24 | round;
                    socket.send(&request(identification)).unwrap();
                    let reply = reply(&socket);
                    assert_eq!(reply.header.identification, identification);
                    let old = reply.header.servcode == 3;
                    assert_eq!(&reply.candidates, if old { before } else { after });
                    assert!([60, 61].contains(&reply.header.ttl), "{}", reply.header.ttl);
                    seen.insert((old, reply.header.ttl));
                }
                assert!(seen.len() > 1, "no swap was seen: {seen:?}");
            })
        });
        let first = site.tables.load_full();
        let mut even = false;
        while !clients.iter().all(|client| client.is_finished()) {
            even = !even;
            site.tables.store(if even { Some(other.clone()) } else { first.clone() });
            let ttl = 60 + u16::from(even);
            site.settings.store(Arc::new(Settings { ttl, ..Settings::default() }));
            thread::yield_now();
        }
    });
    let counters = site.workers.stop();
    assert_eq!((counters.received, counters.replied[0]), (asked.into(), asked.into()));
}

#[test]
fn counters_add_up_whenever_they_are_read() {
    let site = site(&["127.0.0.1:0"], 2);
    let socket = client(site.workers.addresses()[0]);
    let mut last = 0;
    while last < 2_000 {
        for identification in 0..50 {
            socket.send(&request(identification)).unwrap();
            let counters = site.workers.counters();
            let sum: u64 = counters.replied.iter().chain(&counters.dropped).sum();
            assert_eq!(counters.received, sum + counters.unsent);
            assert!(counters.received >= last);
            last = counters.received;
        }
        for _ in 0..50 {
            reply(&socket);
        }
    }
}

#[test]
fn what_has_arrived_is_answered_before_the_threads_end() {
    let listen = Listen { addresses: vec!["127.0.0.1:0".parse().unwrap()], threads: 1 };
    let sockets = Sockets::bind(&listen, &[]).unwrap();
    let socket = client(sockets.addresses()[0]);
    // All of it is in the socket's queue before a thread runs.
    for identification in 0..150 {
        socket.send(&request(identification)).unwrap();
    }
    let tables = Arc::new(ArcSwapOption::from(Some(table("row"))));
    let settings = Arc::new(ArcSwap::from_pointee(Settings::default()));
    let counters = sockets.start(&tables, &settings, &job::Pulse::default()).unwrap().stop();
    assert_eq!((counters.received, counters.replied[0]), (150, 150));
    for identification in 0..150 {
        assert_eq!(reply(&socket).header.identification, identification);
    }
}

#[test]
fn a_second_site_has_the_port_only_after_the_first() {
    let first = site(&["127.0.0.1:0"], 2);
    let address = first.workers.addresses()[0];
    for threads in [1, 2] {
        let second = Sockets::bind(&Listen { addresses: vec![address], threads }, &[]);
        let error = second.unwrap_err().to_string();
        assert!(error.ends_with("stop it or choose another port"), "{error}");
    }
    // This process changes its threads without a gap, at wildcards too.
    let any = SocketAddr::from(([0, 0, 0, 0], address.port()));
    for held in [address, any] {
        Sockets::bind(&Listen { addresses: vec![address], threads: 1 }, &[held]).unwrap();
    }
    first.workers.stop();
    let second = site(&[&address.to_string()], 1);
    let socket = client(address);
    socket.send(&request(5)).unwrap();
    assert_eq!(reply(&socket).header.identification, 5);
    assert_eq!(second.workers.stop().received, 1);
}

#[test]
fn a_socket_that_cannot_be_bound_is_named() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = Sockets::bind(&Listen { addresses: vec![address], threads: 1 }, &[]).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!("listening on UDP {address}: ")), "{text}");
    assert!(text.ends_with("stop it or choose another port"), "{text}");
}
