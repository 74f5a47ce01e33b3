//! Update streams over TLS, as a client sees them (RFC 8895).

use crate::alto_streams::{
    client::{Client, Events, Held},
    fake::{COST_MAP, FILTERED, Fake, NETWORK_MAP, Served, eventually},
};
use oracle::alto::{limits::Limits, updates::service::PARAMS};
use serde_json::{Value, json};
use std::time::Duration;

async fn stopped(events: &mut Events) -> Value {
    loop {
        let event = events.next().await.expect("an event");
        if event.data.get("stopped").is_some() {
            return event.data["stopped"].clone();
        }
    }
}

/// A client follows both maps over both versions of HTTP, applies what comes, and has what the server has.
#[tokio::test]
async fn a_client_keeps_up() {
    for http2 in [true, false] {
        let served = Served::new(Limits::default());
        let mut client = if http2 { served.client().await } else { served.old_client().await };
        let add = json!({
            "n": { "resource-id": NETWORK_MAP },
            "c": { "resource-id": COST_MAP },
            "f": { "resource-id": FILTERED, "input": { "rows": ["PID3"] } },
        });
        let mut events = client.stream(&json!({ "add": add })).await;
        let uri = events.control_uri().await;
        assert!(uri.starts_with("https://localhost/updates/"), "the host that the client asked");
        let mut held = Held::new();
        for _ in 0..3 {
            events.next().await.expect("a full replacement").apply(&mut held);
        }
        assert_eq!(held["n"], Fake::new().network_map);
        let changed = Fake::new().changed();
        served.publish(changed.clone());
        for _ in 0..3 {
            events.next().await.expect("an update").apply(&mut held);
        }
        assert_eq!(held["n"], changed.network_map);
        assert_eq!(held["c"], changed.cost_map);
        assert_eq!(held["f"]["cost-map"], json!({ "PID3": { "PID1": 20, "PID3": 1 } }));
    }
}

/// Section 7: a second connection controls the stream; removing everything ends it, and its address is dead.
#[tokio::test]
async fn a_stream_is_controlled_and_ended() {
    let served = Served::new(Limits::default());
    let (mut client, mut other) = (served.client().await, served.old_client().await);
    let add = json!({ "n": { "resource-id": NETWORK_MAP } });
    let mut events = client.stream(&json!({ "add": add })).await;
    let uri = events.control_uri().await;
    assert_eq!(events.next().await.expect("the map").id, "n");

    let more = json!({ "add": { "c": { "resource-id": COST_MAP } } });
    assert_eq!(other.control(&uri, &more).await.status, 204);
    assert_eq!(events.next().await.expect("an event").data, json!({ "started": ["c"] }));
    assert_eq!(events.next().await.expect("the cost map").id, "c");

    let reply = other.control(&uri, &json!({ "remove": ["x"] })).await;
    assert_eq!(reply.status, 400);
    let expected = ("E_INVALID_FIELD_VALUE".into(), "remove".into(), r#"["x"]"#.into());
    assert_eq!(reply.problem(), expected);

    assert_eq!(other.control(&uri, &json!({ "remove": [] })).await.status, 204);
    assert_eq!(stopped(&mut events).await, json!(["c", "n"]));
    assert!(events.next().await.is_none(), "the stream is closed");
    eventually("the stream is forgotten", || served.server.figures().streams_open == 0).await;
    assert_eq!(other.control(&uri, &json!({ "remove": [] })).await.status, 404);
    assert_eq!(served.refused("control"), 1);
}

/// Section 6.6: nothing is opened if anything is wrong, and an error of a resource's input is the resource's own.
#[tokio::test]
async fn wrong_requests_open_nothing() {
    let served = Served::new(Limits::default());
    let mut client = served.client().await;
    let invalid = "E_INVALID_FIELD_VALUE";
    for (add, code, field, value) in [
        (json!({ "a": { "resource-id": "none" } }), invalid, "add/a/resource-id", "none"),
        (json!({ "a": { "resource-id": "unrelated" } }), invalid, "add/a/resource-id", "unrelated"),
        (
            json!({ "a": { "resource-id": NETWORK_MAP }, "b": { "resource-id": "stream" } }),
            invalid,
            "add/b/resource-id",
            "stream",
        ),
        (json!({ "a": { "resource-id": FILTERED } }), "E_SYNTAX", "", ""),
        (json!({ "a": { "resource-id": FILTERED, "input": {} } }), "E_MISSING_FIELD", "rows", ""),
        (json!({}), "E_MISSING_FIELD", "add", ""),
    ] {
        let reply = client.post("/stream", PARAMS, &json!({ "add": add })).await;
        assert_eq!(reply.status, 400, "{add}");
        assert_eq!(reply.problem(), (code.into(), field.into(), value.into()), "{add}");
    }
    assert_eq!(served.server.figures().streams_open, 0);
    assert_eq!(served.server.followed(), 0);

    let body = json!({ "add": { "a": { "resource-id": NETWORK_MAP } } });
    let reply = client.post("/stream", "application/json", &body).await;
    assert_eq!(reply.status, 415);
    let headers = [("content-type", PARAMS), ("accept", "application/json")];
    assert_eq!(client.request("POST", "/stream", &headers, &body.to_string()).await.status, 406);
    let reply = client.get("/stream").await;
    assert_eq!((reply.status, reply.header("allow")), (405, "POST"));
}

/// Section 10.1: limits on streams, in all and by source, with 503; a stream that ends makes room.
#[tokio::test]
async fn too_many_streams() {
    let served = Served::new(Limits { streams_per_source: 2, substreams: 2, ..Limits::default() });
    let mut client = served.client().await;
    let body = json!({ "add": { "a": { "resource-id": NETWORK_MAP } } });
    let mut one = client.stream(&body).await;
    let _two = client.stream(&body).await;
    let reply = client.post("/stream", PARAMS, &body).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "30"));
    let uri = one.control_uri().await;
    let entry = json!({ "resource-id": COST_MAP });
    let reply = client.control(&uri, &json!({ "add": { "b": entry, "c": entry } })).await;
    assert_eq!(reply.status, 503, "a stream's substreams are limited too");
    assert_eq!(served.refused("streams"), 2);
    assert_eq!(client.control(&uri, &json!({ "remove": [] })).await.status, 204);
    stopped(&mut one).await;
    assert!(one.next().await.is_none());
    eventually("one stream is left", || served.server.figures().streams_open == 1).await;
    client.stream(&body).await.control_uri().await;
}

/// Where addresses together have all streams, the one with the most gives way: its oldest stream ends in order.
#[tokio::test]
async fn streams_are_shared_fairly() {
    let limits = Limits { streams: 3, streams_per_source: 2, ..Limits::default() };
    let served = Served::new(limits);
    let (mut one, mut two) = (served.client_from(2).await, served.client_from(3).await);
    let body = json!({ "add": { "a": { "resource-id": NETWORK_MAP } } });
    let mut oldest = one.stream(&body).await;
    let _newer = one.stream(&body).await;
    let _only = two.stream(&body).await;
    assert_eq!(two.post("/stream", PARAMS, &body).await.status, 503);
    let mut newcomer = served.client_from(4).await;
    newcomer.stream(&body).await.control_uri().await;
    assert_eq!((served.refused("evicted"), served.refused("streams")), (1, 1));
    oldest.control_uri().await;
    while let Some(event) = oldest.next().await {
        if event.id.is_empty() {
            assert_eq!(event.data["description"], "it makes room for other clients");
        }
    }
}

/// Section 6.8: a comment keeps a quiet stream open.
#[tokio::test]
async fn a_quiet_stream_has_comments() {
    let keep_alive = Duration::from_millis(30);
    let served = Served::new(Limits { keep_alive, ..Limits::default() });
    let mut client = served.client().await;
    let add = json!({ "a": { "resource-id": NETWORK_MAP, "tag": "t1" } });
    let mut events = client.stream(&json!({ "add": add })).await;
    events.control_uri().await;
    assert!(events.comment().await && events.comment().await);
}

/// A client that goes away frees its slot, and a stop notifies those who stay.
#[tokio::test]
async fn gone_clients_and_a_stopped_server() {
    let served = Served::new(Limits::default());
    let body = json!({ "add": { "a": { "resource-id": NETWORK_MAP } } });
    for http2 in [true, false] {
        let address = served.server.addresses()[0];
        let mut client =
            Client::connect(address, &served.trusted(), http2).await.expect("a connection");
        let mut events = client.stream(&body).await;
        events.control_uri().await;
        drop((client, events));
        eventually("the stream is forgotten", || served.server.figures().streams_open == 0).await;
        assert_eq!(served.server.followed(), 0);
    }
    let mut client = served.client().await;
    let mut events = client.stream(&body).await;
    let (_, found) = tokio::join!(served.server.stop(), async {
        let found = stopped(&mut events).await;
        assert!(events.next().await.is_none());
        found
    });
    assert_eq!(found, json!(["a"]));
}
