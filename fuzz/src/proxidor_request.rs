//! Any bytes as a Proxidor request to a server with a small network.
//!
//! The first byte chooses the server's settings, whether a ranking is loaded, and whether the datagram
//! gets the right tag, which no fuzzer guesses.

use oracle::{
    metric::{DEFAULT_COST, Metric},
    proxidor::{
        Authentication, Key, MAX_MIXED_REPLY, Outcome, Query, Rcode, Reply, Request, Server,
        Settings,
    },
    tables::{Policy, Tables},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, LazyLock},
};
use topo::{Options, generate};

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let network = generate::mesh(1, 12, 3, generate::realistic_table(1, 300, 60));
    let metric = |name, cost| Metric::compile(name, cost).expect("an expression");
    let policy = Policy {
        metrics: vec![metric("default", DEFAULT_COST), metric("latency", "latency")],
        ..Policy::default()
    };
    Tables::build(network.builder(Options::default()).view(), Arc::new(policy), None)
});

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&choice, datagram)) = data.split_first() else { return };
    let chosen = |bit: u8| choice & 1 << bit != 0;
    let key = Key::new([7; 16]);
    let from: IpAddr = if chosen(0) { [192, 0, 2, 1].into() } else { [0; 16].into() };
    let settings = Settings {
        ttl: 60,
        sources: if chosen(1) { vec![from.into()] } else { Vec::new() },
        authentication: chosen(2).then(|| Authentication { key: key.clone(), required: chosen(3) }),
    };
    let tables = (!chosen(4)).then(|| &*TABLES);
    let mut datagram = datagram.to_vec();
    if chosen(5) {
        key.sign(&mut datagram);
    }
    let mut server = Server::new(Arc::new(settings));
    let mut bytes = vec![1, 2, 3];
    let outcome = server.answer(&datagram, SocketAddr::new(from, 9), tables, &mut bytes);
    let Outcome::Reply(rcode) = outcome else {
        assert!(bytes.is_empty());
        assert!(datagram.len() < 12 || datagram[2] & 0x80 != 0);
        return;
    };
    let reply = Reply::parse(&bytes, None).expect("a client reads it");
    assert_eq!(reply.header.rcode, rcode);
    assert_eq!(bytes[4..8], datagram[4..8]);
    // A server answers no reply.
    let again = server.answer(&bytes, SocketAddr::new(from, 9), tables, &mut Vec::new());
    assert!(matches!(again, Outcome::Drop(_)));
    if !rcode.has_ranking() {
        assert_eq!(bytes.len(), 12);
        return;
    }
    if chosen(2) && reply.header.block {
        Reply::parse(&bytes, Some(&key)).expect("the tag is right");
    }
    let request = Request::parse(&datagram).expect("what is ranked is a request");
    if request.lists.only().is_some() {
        assert!(bytes.len() <= datagram.len());
    } else {
        assert!(bytes.len() <= MAX_MIXED_REPLY);
    }
    let mut asked: Vec<_> = request.lists.candidates().collect();
    let mut given = reply.candidates.clone();
    // Asked again in the order of the reply, nothing moves.
    if request.source4.is_none() && request.source6.is_none() && !chosen(3) {
        let metric = (request.header.servcode != 0).then(|| request.metric() as u8);
        let query = Query { metric, candidates: &given, ..Query::default() };
        let mut second = Vec::new();
        if query.emit(&mut second).is_ok() {
            server.answer(&second, SocketAddr::new(from, 9), tables, &mut bytes);
            let same = Reply::parse(&bytes, None).expect("a client reads it");
            assert!(given.starts_with(&same.candidates));
        }
    }
    asked.sort_unstable();
    given.sort_unstable();
    if rcode == Rcode::NO_ERROR {
        assert_eq!(asked, given);
    } else {
        // What is there was asked for, each as often at most.
        let mut rest = asked.iter();
        assert!(given.iter().all(|candidate| rest.any(|other| other == candidate)));
        assert!(given.len() < asked.len());
    }
}
