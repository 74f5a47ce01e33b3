//! Any datagrams, one after the other, to a Proxidor server with a small network that is reconfigured meanwhile.
//!
//! Each begins with a byte that chooses the settings, from where it is, whether a ranking is loaded, and whether it
//! gets the right tag, which no fuzzer guesses. Then come two bytes for its length. Whatever came before, the reply
//! is that of a new server.

use oracle::{
    metric::{DEFAULT_COST, Metric},
    proxidor::{
        Authentication, Key, MAX_MIXED_REPLY, Outcome, Query, Rcode, Reply, Request, Server,
        Settings,
    },
    tables::{Policy, Tables},
};
use std::{
    net::SocketAddr,
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
    let mut server = Server::new(settings(0));
    let mut rest = data;
    while let [choice, high, low, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (datagram, later) = more.split_at(length);
        rest = later;
        server.set_settings(&settings(*choice));
        exchange(&mut server, *choice, datagram.to_vec());
    }
}

/// What a byte chooses.
fn chosen(choice: u8, bit: u8) -> bool {
    choice & 1 << bit != 0
}

fn from(choice: u8) -> SocketAddr {
    let address = if chosen(choice, 0) { [192, 0, 2, 1].into() } else { [0; 16].into() };
    SocketAddr::new(address, 9)
}

fn settings(choice: u8) -> Arc<Settings> {
    let sources = if chosen(choice, 1) { vec![from(choice).ip().into()] } else { Vec::new() };
    let required = chosen(choice, 3);
    let authentication =
        chosen(choice, 2).then(|| Authentication { key: Key::new([7; 16]), required });
    Arc::new(Settings { ttl: 60, sources, authentication })
}

/// One datagram and its reply.
fn exchange(server: &mut Server, choice: u8, mut datagram: Vec<u8>) {
    let (key, from) = (Key::new([7; 16]), from(choice));
    let tables = (!chosen(choice, 4)).then(|| &*TABLES);
    if chosen(choice, 5) {
        key.sign(&mut datagram);
    }
    let (mut bytes, mut same) = (vec![1, 2, 3], Vec::new());
    let outcome = server.answer(&datagram, from, tables, &mut bytes);
    Server::new(settings(choice)).answer(&datagram, from, tables, &mut same);
    assert_eq!(bytes, same);
    let Outcome::Reply(rcode) = outcome else {
        assert!(bytes.is_empty());
        assert!(datagram.len() < 12 || datagram[2] & 0x80 != 0);
        return;
    };
    let reply = Reply::parse(&bytes, None).expect("a client reads it");
    assert_eq!(reply.header.rcode, rcode);
    assert_eq!(bytes[4..8], datagram[4..8]);
    // A server answers no reply.
    let again = server.answer(&bytes, from, tables, &mut Vec::new());
    assert!(matches!(again, Outcome::Drop(_)));
    if !rcode.has_ranking() {
        assert_eq!(bytes.len(), 12);
        return;
    }
    if chosen(choice, 2) && reply.header.block {
        Reply::parse(&bytes, Some(&key)).expect("the tag is right");
    }
    let request = Request::parse(&datagram).expect("what is ranked is a request");
    if request.has_tag() && request.lists.only().is_none() {
        assert!(bytes.len() <= MAX_MIXED_REPLY);
    } else {
        assert!(bytes.len() <= datagram.len(), "more for a third party than was sent");
    }
    let mut asked: Vec<_> = request.lists.candidates().collect();
    let mut given = reply.candidates.clone();
    // Asked again in the order of the reply, nothing moves.
    if request.source4.is_none() && request.source6.is_none() && !chosen(choice, 3) {
        let metric = (request.header.servcode != 0).then(|| request.metric() as u8);
        let query = Query { metric, candidates: &given, ..Query::default() };
        let mut second = Vec::new();
        if query.emit(&mut second).is_ok() {
            server.answer(&second, from, tables, &mut bytes);
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
