//! Every rule of the Proxidor protocol as a vector of testdata/proxidor: what the server answers, what
//! a client writes, and what a client reads.

mod udp;
mod vectors;

use std::{net::SocketAddr, sync::Arc};

use config::hex;
use oracle::proxidor::{
    Authentication, Key, Outcome, Query, Rcode, Reply, Server, Settings, server,
};
use vectors::{Vector, networks, vectors};

fn key(digits: &str) -> Key {
    digits.parse().unwrap()
}

fn settings(vector: &Vector) -> Settings {
    let settings = &vector.settings;
    let required = settings.required;
    Settings {
        ttl: settings.ttl,
        sources: settings.sources.clone(),
        authentication: settings
            .key
            .as_deref()
            .map(key)
            .map(|key| Authentication { key, required }),
    }
}

#[test]
fn the_server_answers_as_each_vector_says() {
    let networks = networks();
    let mut reply = Vec::new();
    for vector in vectors() {
        let name = &vector.name;
        let mut server = Server::new(Arc::new(settings(&vector)));
        let tables = vector.network.as_ref().map(|network| &networks[network]);
        let from = SocketAddr::new(vector.from, 40_000);
        let request = vector.request();
        let outcome = server.answer(&request, from, tables, &mut reply);
        match vector.rcode {
            Some(rcode) => assert_eq!(outcome, Outcome::Reply(Rcode(rcode)), "{name}"),
            None => {
                let reasons = server::Reason::ALL.into_iter();
                let mut named = reasons.filter(|r| Some(r.name()) == vector.drop.as_deref());
                assert_eq!(outcome, Outcome::Drop(named.next().unwrap()), "{name}");
            }
        }
        assert_eq!(hex::encode(&reply), vector.reply.clone().unwrap_or_default(), "{name}");
        let signed = reply.get(11) == Some(&1);
        assert!(signed || reply.len() <= request.len(), "{name}: the reply is longer");
    }
}

#[test]
fn a_server_that_has_answered_all_vectors_still_does() {
    // What one request leaves in a server's memory must not show in the next one's reply.
    let networks = networks();
    let vectors: Vec<_> = vectors().collect();
    let mut server = Server::new(Arc::new(Settings::default()));
    let mut reply = Vec::new();
    for vector in vectors.iter().chain(vectors.iter().rev()) {
        server.set_settings(&Arc::new(settings(vector)));
        let tables = vector.network.as_ref().map(|network| &networks[network]);
        server.answer(&vector.request(), SocketAddr::new(vector.from, 1), tables, &mut reply);
        assert_eq!(
            hex::encode(&reply),
            vector.reply.clone().unwrap_or_default(),
            "{}",
            vector.name
        );
    }
}

#[test]
fn a_client_writes_what_each_vector_says() {
    let mut out = Vec::new();
    let mut count = 0;
    for vector in vectors() {
        let Some(query) = &vector.query else { continue };
        let key = query.key.as_deref().map(key);
        Query {
            identification: query.identification,
            metric: query.metric,
            source4: query.source4,
            source6: query.source6,
            key: key.as_ref(),
            candidates: &vectors::candidates(&query.candidates),
        }
        .emit(&mut out)
        .unwrap();
        assert_eq!(hex::encode(&out), vector.request, "{}", vector.name);
        count += 1;
    }
    assert!(count > 40, "{count} vectors have a query");
}

#[test]
fn a_client_reads_the_ranking_of_each_vector() {
    for vector in vectors() {
        let Some(bytes) = vector.reply_bytes() else { continue };
        // Where a ranking is signed, it is read with the key; an error never is.
        let signed = bytes.get(11) == Some(&1);
        let key = vector.settings.key.as_deref().map(key).filter(|_| signed);
        let reply = Reply::parse(&bytes, key.as_ref()).unwrap();
        assert_eq!(Some(reply.header.rcode.0), vector.rcode, "{}", vector.name);
        let ranking = vector.ranking.as_deref().map(vectors::candidates).unwrap_or_default();
        assert_eq!(reply.candidates, ranking, "{}", vector.name);
    }
}
