//! TIPS over TLS (RFC 9569).

use crate::alto_streams::{
    client::Client,
    fake::{COST_MAP, FILTERED, Fake, NETWORK_MAP, Served, eventually},
};
use config::Size;
use oracle::alto::{limits::Limits, tips::PARAMS};
use serde_json::{Value, json};
use std::time::Duration;

/// Opens a view and returns its path and summary.
async fn open(client: &mut Client, request: &Value) -> (String, Value) {
    let reply = client.post("/pull", PARAMS, request).await;
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    assert_eq!(reply.header("content-type"), "application/alto-tips+json");
    let answer = reply.json();
    let uri = answer["tips-view-uri"].as_str().expect("an address");
    assert!(uri.starts_with("https://") && uri.is_ascii());
    let path = format!("/{}", uri.splitn(4, '/').nth(3).expect("a path"));
    (path, answer["tips-view-summary"]["updates-graph-summary"].clone())
}

fn edge(summary: &Value) -> (u64, u64) {
    let number = |name: &str| summary["start-edge-rec"][name].as_u64().expect("a number");
    (number("seq-i"), number("seq-j"))
}

/// Figure 3: open, take the recommended edge, then each next one; the client holds what the server has.
#[tokio::test]
async fn a_client_pulls_and_waits() {
    for http2 in [true, false] {
        let served = Served::new(Limits::default());
        let mut client = if http2 { served.client().await } else { served.old_client().await };
        let (path, summary) = open(&mut client, &json!({ "resource-id": COST_MAP })).await;
        let (from, to) = edge(&summary);
        assert_eq!((from, Some(to)), (0, summary["end-seq"].as_u64()));
        let reply = client.get(&format!("{path}/ug/{from}/{to}")).await;
        assert_eq!(reply.header("content-type"), "application/alto-costmap+json");
        let mut held = reply.json();

        // Section 7.2: the next edge does not exist yet; the request waits for it.
        let mut waiting = served.client().await;
        let next = format!("{path}/ug/{to}/{}", to + 1);
        let cost = u32::try_from(to).expect("small") + 100;
        let (reply, ()) = tokio::join!(waiting.get(&next), async {
            eventually("the request waits", || served.server.figures().polls_open == 1).await;
            served.publish(Fake::new().with_cost(cost));
        });
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, "application/merge-patch+json")
        );
        json_patch::merge(&mut held, &reply.json());
        assert_eq!(held, Fake::new().with_cost(cost).cost_map);
        eventually("nothing waits any longer", || served.server.figures().polls_open == 0).await;
        // What is on an edge stays (section 3.1).
        assert_eq!(client.get(&next).await.body, reply.body);
    }
}

/// Sections 6.2 and 8.3: the same request has the same view, another one another, and its address comes from the
/// request body alone.
#[tokio::test]
async fn views_are_shared() {
    let served = Served::new(Limits::default());
    let (mut one, mut two) = (served.client().await, served.old_client().await);
    let request = |row: &str| json!({ "resource-id": FILTERED, "input": { "rows": [row] } });
    let (first, _) = open(&mut one, &request("PID1")).await;
    let (again, _) = open(&mut two, &request("PID1")).await;
    let (other, _) = open(&mut two, &request("PID2")).await;
    let (map, _) = open(&mut two, &json!({ "resource-id": COST_MAP })).await;
    assert_eq!(first, again);
    assert!(first != other && first != map && other != map);
    assert_eq!((served.server.views(), served.server.followed()), (3, 3));
}

/// Section 6.2: the errors of a request for a view.
#[tokio::test]
async fn wrong_requests_open_nothing() {
    let served = Served::new(Limits::default());
    let mut client = served.client().await;
    let invalid = "E_INVALID_FIELD_VALUE";
    for (request, code, field, value) in [
        (json!({}), "E_MISSING_FIELD", "resource-id", ""),
        (json!([]), "E_SYNTAX", "", ""),
        (json!({ "resource-id": 1 }), "E_INVALID_FIELD_TYPE", "resource-id", ""),
        (json!({ "resource-id": "none/#" }), invalid, "resource-id", "none/#"),
        (json!({ "resource-id": "unrelated" }), invalid, "resource-id", "unrelated"),
        (json!({ "resource-id": NETWORK_MAP, "tag": 1 }), "E_INVALID_FIELD_TYPE", "tag", ""),
        // The resource's own errors.
        (json!({ "resource-id": FILTERED }), "E_SYNTAX", "", ""),
        (json!({ "resource-id": FILTERED, "input": {} }), "E_MISSING_FIELD", "rows", ""),
    ] {
        let reply = client.post("/pull", PARAMS, &request).await;
        assert_eq!(reply.status, 400, "{request}");
        let (got_code, got_field, got_value) = reply.problem();
        assert_eq!((&*got_code, &*got_field, &*got_value), (code, field, value), "{request}");
    }
    assert_eq!(served.server.views(), 0);
}

/// Section 7.2: the statuses of edges that are not there.
#[tokio::test]
async fn edges_that_are_not_there() {
    let served = Served::new(Limits { versions: 4, ..Limits::default() });
    let mut client = served.client().await;
    let (path, summary) = open(&mut client, &json!({ "resource-id": COST_MAP })).await;
    assert_eq!(summary["end-seq"], 1);
    for cost in 1..=9 {
        served.publish(Fake::new().with_cost(cost * 100));
        let edge = format!("{path}/ug/{cost}/{}", cost + 1);
        assert_eq!(client.get(&edge).await.status, 200);
    }
    let (_, summary) = open(&mut client, &json!({ "resource-id": COST_MAP })).await;
    let (start, end) = (&summary["start-seq"], &summary["end-seq"]);
    let (start, end) = (start.as_u64().expect("a number"), end.as_u64().expect("a number"));
    assert_eq!(end, 10);
    assert!(start > 5 && start <= end);
    for (edge, status) in [
        (format!("{}/{start}", start - 1), 410),
        (format!("0/{}", start - 1), 410),
        (format!("{end}/{}", end + 2), 404),
        (format!("{}/{}", end + 1, end + 2), 425),
        (format!("0/{}", end + 1), 425),
        ("x/1".to_owned(), 404),
        (format!("0{end}/{}", end + 1), 404),
        ("1".to_owned(), 404),
        (format!("0/{end}/1"), 404),
        (format!("0/{end}"), 200),
    ] {
        let reply = client.get(&format!("{path}/ug/{edge}")).await;
        assert_eq!(reply.status, status, "{edge}");
        if status != 200 {
            reply.problem();
        }
    }
    // 415: the client does not take what is on the edge.
    let only = |kind: &'static str| [("accept", kind)];
    let patch = format!("{path}/ug/{}/{end}", end - 1);
    let reply = client.request("GET", &patch, &only("application/alto-costmap+json"), "").await;
    assert_eq!(reply.status, 415);
    reply.problem();
    let reply = client.request("GET", &patch, &only("application/merge-patch+json"), "").await;
    assert_eq!(reply.status, 200);
    // Section 4.2: updates are fetched with GET.
    let reply = client.request("POST", &patch, &[], "").await;
    assert_eq!((reply.status, reply.header("allow")), (405, "GET"));
    for unknown in ["/tips/0123/ug/0/1", "/tips/0123/ug", "/tips/0123", "/tips/"] {
        let reply = match unknown {
            "/tips/0123/ug" => client.post(unknown, PARAMS, &json!({ "resource-id": "x" })).await,
            other => client.get(other).await,
        };
        assert_eq!(reply.status, 404, "{unknown}");
    }
}

/// Section 7.4: the next edge for a client that lost the thread.
#[tokio::test]
async fn the_next_edge() {
    let served = Served::new(Limits::default());
    let mut client = served.client().await;
    let (path, _) = open(&mut client, &json!({ "resource-id": NETWORK_MAP })).await;
    served.publish(Fake::new().changed());
    assert_eq!(client.get(&format!("{path}/ug/1/2")).await.status, 200);
    let ug = format!("{path}/ug");
    for (tag, expected) in
        [(None, (0, 2)), (Some("t0"), (0, 2)), (Some("t1"), (1, 2)), (Some("t2"), (2, 3))]
    {
        let mut request = json!({ "resource-id": NETWORK_MAP });
        if let Some(tag) = tag {
            request["tag"] = tag.into();
        }
        let reply = client.post(&ug, PARAMS, &request).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), "application/merge-patch+json");
        // A patch of the answer to the opening: the address is not in it.
        let patch = reply.json();
        assert_eq!(patch.as_object().map(|members| members.len()), Some(1));
        let summary = &patch["tips-view-summary"]["updates-graph-summary"];
        assert_eq!((edge(summary), &summary["start-seq"]), (expected, &json!(1)), "{tag:?}");
        // Opening with the tag recommends the same (section 6.2).
        let (same, summary) = open(&mut client, &request).await;
        assert_eq!((&same, edge(&summary)), (&path, expected), "{tag:?}");
    }
    for (request, field) in [
        (json!({ "resource-id": COST_MAP }), "resource-id"),
        (json!({ "resource-id": NETWORK_MAP, "input": {} }), "input"),
    ] {
        let reply = client.post(&ug, PARAMS, &request).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.problem().1, field);
    }
}

/// Section 9.1: views and waiting requests are limited, with 429.
#[tokio::test]
async fn too_many_views_and_polls() {
    let served = Served::new(Limits { views: 1, polls: 1, ..Limits::default() });
    let mut client = served.client().await;
    let (path, _) = open(&mut client, &json!({ "resource-id": COST_MAP })).await;
    let mut waiting = served.client().await;
    let next = format!("{path}/ug/1/2");
    let again = next.clone();
    let waits = tokio::spawn(async move { waiting.get(&next).await });
    eventually("the request waits", || served.server.figures().polls_open == 1).await;

    let request = json!({ "resource-id": NETWORK_MAP });
    let reply = client.post("/pull", PARAMS, &request).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, "30"));
    let reply = client.get(&again).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, "30"));
    assert_eq!((served.refused("views"), served.refused("polls")), (1, 1));
    served.publish(Fake::new().with_cost(7));
    assert_eq!(waits.await.expect("a reply").status, 200);
}

/// One address cannot open all views, follow all resources or wait for all updates; where addresses together have
/// all views, the one with the most gives way with the view that has been idle for longest.
#[tokio::test]
async fn shares_of_addresses() {
    let filtered = |host: u8, row: u8| {
        let row = format!("PID{row}");
        json!({ "resource-id": FILTERED, "input": { "rows": [row], "host": host } })
    };
    let served = Served::new(Limits { views: 16, polls: 8, ..Limits::default() });
    let mut paths = Vec::new();
    for host in 2..10 {
        let mut client = served.client_from(host).await;
        for row in 0..2 {
            paths.push(open(&mut client, &filtered(host, row)).await.0);
        }
        let reply = client.post("/pull", PARAMS, &filtered(host, 2)).await;
        assert_eq!((reply.status, reply.header("retry-after")), (429, "30"));
        // Those that it has are answered again.
        assert_eq!(open(&mut client, &filtered(host, 1)).await.0, paths[paths.len() - 1]);
    }
    assert_eq!((served.refused("views"), served.server.views()), (8, 16));
    let mut waiting = served.client_from(2).await;
    let edge = format!("{}/ug/1/2", paths[0]);
    let waits = tokio::spawn(async move { waiting.get(&edge).await });
    eventually("the request waits", || served.server.figures().polls_open == 1).await;
    let mut client = served.client_from(2).await;
    assert_eq!(client.get(&format!("{}/ug/1/2", paths[1])).await.status, 429);

    let mut newcomer = served.client_from(10).await;
    open(&mut newcomer, &filtered(10, 0)).await;
    assert_eq!((served.refused("evicted"), served.server.views()), (1, 16));
    let mut gone = Vec::new();
    for path in &paths {
        if newcomer
            .post(&format!("{path}/ug"), PARAMS, &json!({ "resource-id": FILTERED }))
            .await
            .status
            == 404
        {
            gone.push(path);
        }
    }
    assert_eq!(gone, [&paths[2]], "the idle one that was read least lately");
    waits.abort();

    for limits in [
        Limits { followed: 8, ..Limits::default() },
        Limits { versions_size: Size(64), ..Limits::default() },
    ] {
        let served = Served::new(limits);
        let mut one = served.client_from(2).await;
        open(&mut one, &filtered(2, 1)).await;
        let reply = one.post("/pull", PARAMS, &filtered(2, 2)).await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, "30"));
        assert_eq!(served.refused("followed"), 1);
        // What has no input is shared by all and followed in any case.
        open(&mut one, &json!({ "resource-id": COST_MAP })).await;
    }
}

/// Section 4.1: an idle view is closed, one that is waited at is not; the address of a closed one is
/// 404 and is not used again (section 6.2).
#[tokio::test]
async fn the_life_of_views() {
    let view_idle = Duration::from_millis(1);
    let served = Served::new(Limits { view_idle, ..Limits::default() });
    let mut client = served.client().await;
    let next = loop {
        // The view may be closed before the request waits at it.
        let (path, _) = open(&mut client, &json!({ "resource-id": COST_MAP })).await;
        let next = format!("{path}/ug/1/2");
        let (mut waiting, path) = (served.client().await, next.clone());
        let waits = tokio::spawn(async move { waiting.get(&path).await });
        eventually("the request waits or is refused", || {
            waits.is_finished() || served.server.figures().polls_open == 1
        })
        .await;
        if !waits.is_finished() {
            break (next, waits);
        }
    };
    let (next, waits) = next;
    open(&mut client, &json!({ "resource-id": NETWORK_MAP })).await;
    eventually("the idle view is closed", || served.server.views() == 1).await;
    served.publish(Fake::new().with_cost(7));
    assert_eq!(waits.await.expect("a reply").status, 200);
    eventually("the other view is closed", || served.server.views() == 0).await;
    assert_eq!(client.get(&next).await.status, 404);
    let (other, _) = open(&mut client, &json!({ "resource-id": COST_MAP })).await;
    assert!(!next.starts_with(&format!("{other}/")));
}

/// A client that goes away no longer waits; a stop lets those who wait go.
#[tokio::test]
async fn gone_clients_and_a_stopped_server() {
    let served = Served::new(Limits::default());
    let mut client = served.client().await;
    let (path, _) = open(&mut client, &json!({ "resource-id": COST_MAP })).await;
    let next = format!("{path}/ug/1/2");
    for http2 in [true, false] {
        let address = served.server.addresses()[0];
        let mut waiting =
            Client::connect(address, &served.trusted(), http2).await.expect("a connection");
        let path = next.clone();
        let gone = tokio::spawn(async move { waiting.get(&path).await });
        eventually("the request waits", || served.server.figures().polls_open == 1).await;
        gone.abort();
        eventually("nothing waits", || served.server.figures().polls_open == 0).await;
    }
    let waits = tokio::spawn(async move { client.get(&next).await });
    eventually("the request waits", || served.server.figures().polls_open == 1).await;
    served.server.stop().await;
    assert_eq!(waits.await.expect("a reply").status, 503);
}
