//! The server itself: limits, methods, media types, entity tags, counters.

use crate::alto_streams::{
    client::{Client, tls},
    fake::{Fake, Served, eventually},
};
use config::Size;
use futures_util::StreamExt;
use oracle::alto::{limits::Limits, tips, updates::service::PARAMS};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Of servers whose timeout expires in a test. It bounds the test's own handshake too, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Before there are maps everything is 503; with them resources answer.
#[tokio::test]
async fn before_and_after_the_first_maps() {
    let served = Served::empty(Limits::default());
    let mut client = served.client().await;
    let reply = client.get("/net").await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
    served.publish(Fake::new());
    let reply = client.get("/net").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "application/alto-networkmap+json");
    assert_eq!(reply.json(), Fake::new().network_map);
    assert_eq!(client.get("/none").await.status, 404);
}

/// RFC 9110: HEAD is GET without a body, an unchanged map is 304, other methods 405.
#[tokio::test]
async fn methods_and_entity_tags() {
    let served = Served::new(Limits::default());
    for mut client in [served.client().await, served.old_client().await] {
        let whole = client.get("/net").await;
        let tag = whole.header("etag").to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"'));
        let head = client.request("HEAD", "/net", &[], "").await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.header("content-length"), whole.body.len().to_string());
        assert_eq!(head.header("etag"), tag);
        let weak = format!("\"x\", W/{tag}");
        for (known, status) in
            [(tag.as_str(), 304), (weak.as_str(), 304), ("*", 304), ("\"x\"", 200)]
        {
            let reply = client.request("GET", "/net", &[("if-none-match", known)], "").await;
            assert_eq!((reply.status, reply.header("etag")), (status, tag.as_str()), "{known}");
            assert_eq!(reply.body.is_empty(), status == 304);
        }
        served.publish(Fake::new().changed());
        let reply = client.request("GET", "/net", &[("if-none-match", &tag)], "").await;
        assert_eq!(reply.status, 200);
        served.publish(Fake::new());
        for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
            assert_eq!(client.request(method, "/net", &[], "").await.status, 405, "{method}");
        }
        let reply = client.request("GET", "/net", &[("accept", "text/html")], "").await;
        assert_eq!(reply.status, 406);
        let accept = [("accept", "text/html"), ("accept", "application/*;q=0.1")];
        assert_eq!(client.request("GET", "/net", &accept, "").await.status, 200);
    }
}

/// A body that is too large is refused in ALTO's terms, with its length given and without.
#[tokio::test]
async fn large_bodies() {
    let served = Served::new(Limits { body: Size(1000), ..Limits::default() });
    for mut client in [served.client().await, served.old_client().await] {
        let kind = [("content-type", PARAMS)];
        let reply = client.request("POST", "/stream", &kind, &"x".repeat(1001)).await;
        assert_eq!(reply.status, 413);
        assert_eq!(reply.problem().0, "E_SYNTAX");
    }
    let mut client = served.old_client().await;
    let reply =
        client.request("POST", "/stream", &[("content-type", PARAMS)], &"x".repeat(1000)).await;
    assert_eq!((reply.status, reply.problem().0.as_str()), (400, "E_SYNTAX"));
    let mut raw = raw(&served).await;
    let chunks = "3e8\r\n".to_owned() + &"x".repeat(1000) + "\r\n1\r\nx\r\n";
    let head = "POST /stream HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    raw.write_all((head.to_owned() + &chunks).as_bytes()).await.expect("sent");
    assert!(status_line(&mut raw).await.starts_with("HTTP/1.1 413"));
    assert_eq!(served.refused("body"), 3);
}

/// A body that does not come is answered 408, a head that does not come ends the connection, and so does a
/// handshake that does not.
#[tokio::test]
async fn slow_clients() {
    let served = Served::new(Limits { timeout: TIMEOUT, ..Limits::default() });
    let mut slow = raw(&served).await;
    let head = "POST /stream HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab";
    slow.write_all(head.as_bytes()).await.expect("sent");
    let mut slower = raw(&served).await;
    slower.write_all(b"GET /net HTT").await.expect("sent");
    let mut slowest =
        tokio::net::TcpStream::connect(served.server.addresses()[0]).await.expect("connected");

    // All three at once, so that the timeout is waited for once.
    let (mut rest, mut none) = (Vec::new(), Vec::new());
    let (line, ..) = tokio::join!(
        status_line(&mut slow),
        slower.read_to_end(&mut rest),
        slowest.read_to_end(&mut none)
    );
    assert!(line.starts_with("HTTP/1.1 408"));
    eventually("body and head are counted", || served.refused("slow") == 2).await;
    eventually("the handshake is given up", || served.refused("handshake") == 1).await;
}

/// A client that takes nothing of a large stream loses its connection.
#[tokio::test]
async fn a_client_that_does_not_read() {
    let keep_alive = Duration::from_millis(50);
    let served = Served::new(Limits { timeout: TIMEOUT, keep_alive, ..Limits::default() });
    let mut large = Fake::new();
    large.cost_map["cost-map"] = (0..200_000)
        .map(|pid| (format!("PID{pid}"), serde_json::json!({ "PID1": pid })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    served.publish(large);
    let mut client = raw(&served).await;
    let body = r#"{"add":{"a":{"resource-id":"costs"}}}"#;
    let head = format!(
        "POST /stream HTTP/1.1\r\nhost: a\r\ncontent-type: {PARAMS}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all((head + body).as_bytes()).await.expect("sent");
    eventually("the stream is open", || served.server.figures().streams_open == 1).await;
    eventually("the stream is given up", || served.server.figures().streams_open == 0).await;
    eventually("the connection is closed", || served.server.figures().connections_open == 0).await;
}

/// A connection on which nothing is asked any more ends, and is not counted as slow; one that waits for an answer
/// goes on.
#[tokio::test]
async fn idle_connections() {
    let served = Served::new(Limits { timeout: TIMEOUT, ..Limits::default() });
    let (mut one, mut two) = (served.client().await, served.old_client().await);
    let _silent = raw(&served).await;
    let mut waiting = served.client().await;
    let view = json!({ "resource-id": "costs" });
    let reply = waiting.post("/pull", tips::PARAMS, &view).await.json();
    let uri = reply["tips-view-uri"].as_str().expect("an address").to_owned();
    let path = format!("/{}/ug/1/2", uri.splitn(4, '/').nth(3).expect("a path"));
    let waits = tokio::spawn(async move { waiting.get(&path).await });
    for client in [&mut one, &mut two] {
        assert_eq!(client.get("/net").await.status, 200);
    }
    eventually("idle connections end", || served.server.figures().connections_open == 1).await;
    assert_eq!(served.refused("slow"), 0);
    served.publish(Fake::new().with_cost(7));
    assert_eq!(waits.await.expect("a reply").status, 200);
}

/// A client that takes nothing of its answer loses its connection, and the answer is freed.
#[tokio::test]
async fn answers_that_are_not_taken() {
    let served = Served::new(Limits { timeout: TIMEOUT, ..Limits::default() });
    let mut large = Fake::new();
    large.large = 16 << 20;
    served.publish(large);
    let mut one = raw(&served).await;
    one.write_all(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("sent");
    let mut two = served.client().await;
    // Its window is smaller than the answer, and nobody reads.
    let _unread = two.send("GET", "/large", &[], "").await.expect("a head");
    eventually("both answers wait", || served.server.figures().memory_bytes == 32 << 20).await;
    eventually("they are given up", || served.server.figures().memory_bytes == 0).await;
    eventually("the connections end", || served.server.figures().connections_open == 0).await;
    assert_eq!(served.refused("slow"), 2);
}

/// Bodies that wait are limited for each source, with 503; what one held is free when its client has gone.
#[tokio::test]
async fn bodies_that_wait() {
    let served = Served::new(Limits { memory: Size(800), ..Limits::default() });
    let mut slow = raw(&served).await;
    let head = "POST /stream HTTP/1.1\r\nhost: a\r\ncontent-length: 101\r\n\r\n".to_owned();
    slow.write_all((head + &"x".repeat(100)).as_bytes()).await.expect("sent");
    eventually("the source has used its share", || served.server.figures().memory_bytes == 100)
        .await;
    let mut client = served.client().await;
    let reply = client.request("POST", "/stream", &[("content-type", PARAMS)], "{}").await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, "1"));
    assert_eq!(client.get("/net").await.status, 503, "there is no room for the answer");
    assert_eq!(served.refused("memory"), 2);
    let mut other = served.client_from(2).await;
    assert_eq!(other.get("/net").await.status, 200);
    drop(slow);
    eventually("nothing is in use", || served.server.figures().memory_bytes == 0).await;
    assert_eq!(client.get("/net").await.status, 200);
}

/// A source that uses all memory gives way to one that uses less.
#[tokio::test]
async fn memory_is_shared_fairly() {
    let served = Served::new(Limits { memory: Size(800), ..Limits::default() });
    let mut slow = Vec::new();
    for host in 2..10 {
        let mut client = served.client_from(host).await;
        let body = futures_util::stream::iter([Ok::<_, std::io::Error>(vec![b'x'; 100].into())])
            .chain(futures_util::stream::pending());
        slow.push(tokio::spawn(async move { client.upload("/stream", body).await }));
    }
    eventually("all memory is used", || served.server.figures().memory_bytes == 800).await;
    let mut client = served.client().await;
    assert_eq!(client.get("/net").await.status, 200);
    assert_eq!(served.refused("evicted"), 1);
    eventually("one upload has ended", || slow.iter().any(|upload| upload.is_finished())).await;
    eventually("the others go on", || served.server.figures().memory_bytes == 700).await;
}

/// What a client writes as its host is only believed if the certificate is for it.
#[tokio::test]
async fn hosts_of_others() {
    let served = Served::new(Limits::default());
    let address = served.server.addresses()[0];
    let own = format!("localhost:{}", address.port());
    for (host, base) in [
        ("evil.example", address.to_string()),
        ("user@localhost", address.to_string()),
        ("192.0.2.1", address.to_string()),
        ("localhost", "localhost".to_owned()),
        (&own, own.clone()),
    ] {
        let mut client = raw(&served).await;
        let body = r#"{"resource-id":"costs"}"#;
        let request = format!(
            "POST /pull HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: {}\r\n\
             content-length: {}\r\n\r\n{body}",
            tips::PARAMS,
            body.len()
        );
        client.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.contains(&format!("\"https://{base}/tips/")), "{host}: {answer}");
        assert!(!answer.contains("evil") && !answer.contains("192.0.2.1"));
    }
}

/// Connections are limited by source; one that ends makes room.
#[tokio::test]
async fn too_many_connections() {
    let served = Served::new(Limits { connections_per_source: 2, ..Limits::default() });
    let (mut one, two) = (served.client().await, served.client().await);
    let address = served.server.addresses()[0];
    assert!(Client::connect(address, &served.trusted(), true).await.is_err());
    assert_eq!(served.refused("source"), 1);
    drop(two);
    eventually("one connection is left", || served.server.figures().connections_open == 1).await;
    served.client().await;
    assert_eq!(one.get("/net").await.status, 200);

    let served = Served::new(Limits { connections: 1, ..Limits::default() });
    let _one = served.client().await;
    let address = served.server.addresses()[0];
    assert!(Client::connect(address, &served.trusted(), false).await.is_err());
    assert_eq!(served.refused("connections"), 1);
}

/// Heads are limited too.
#[tokio::test]
async fn large_heads() {
    let served = Served::new(Limits { head: Size(8192), ..Limits::default() });
    let mut client = served.old_client().await;
    let long = "x".repeat(9000);
    let reply = client.request("GET", "/net", &[("x-long", &long)], "").await;
    assert_eq!(reply.status, 431);
    let mut client = served.client().await;
    let refused = client.send("GET", "/net", &[("x-long", &long)], "").await;
    assert!(refused.is_err() || refused.is_ok_and(|(status, ..)| status == 431));
}

/// Every request is counted once, under a name that is not the client's text.
#[tokio::test]
async fn requests_are_counted() {
    let served = Served::new(Limits::default());
    let mut client = served.client().await;
    for path in ["/net", "/net", "/costs", "/none", "/also/none", "/tips/x/ug/0/1"] {
        client.get(path).await;
    }
    client.request("DELETE", "/net", &[], "").await;
    client.post("/stream", PARAMS, &serde_json::json!({})).await;
    let figures = served.server.figures();
    let counted: Vec<_> =
        figures.requests.iter().map(|row| (row.resource.as_str(), row.status, row.count)).collect();
    let expected = [
        ("costs", 200, 1),
        ("net", 200, 2),
        ("net", 405, 1),
        ("none", 404, 2),
        ("stream", 400, 1),
        ("view", 404, 1),
    ];
    assert_eq!(counted, expected);
    assert_eq!((figures.connections, figures.connections_open), (1, 1));
    assert!(figures.bytes_in > 0 && figures.bytes_out > 0);
}

/// A connection over TLS for bytes of the test's own.
async fn raw(served: &Served) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    tls(served.server.addresses()[0], &served.trusted(), "http/1.1", true).await.expect("TLS")
}

async fn status_line(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(stream.read_u8().await.expect("a status line"));
    }
    String::from_utf8(line).expect("UTF-8")
}
