//! Any bytes on a connection of the daemon's or a lab's HTTP server, whole and cut: requests one after the other, or
//! what is none. A handler runs only for a request that calls the server by a name of its own, with a body within the
//! limit; what is answered is HTTP with a status that the server has, first of all the same however the bytes were cut.

use crate::conversation;
use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Query, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, Version, header::HOST, uri::Authority},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;
use std::net::{Ipv4Addr, Ipv6Addr};
use web::{Names, Turns, converse, fresh, in_turn, only_named, refuse};

/// Longest body.
const BODY: usize = 256;

/// Whether a host is one of those that the server goes by.
fn own(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_end_matches('.');
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    inner.is_some_and(|name| name.parse::<Ipv6Addr>().is_ok())
        || name.parse::<Ipv4Addr>().is_ok()
        || ["localhost", "node"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// What every handler may rely on.
fn check(version: Version, headers: &HeaderMap) {
    let hosts: Vec<_> = headers.get_all(HOST).iter().collect();
    match &hosts[..] {
        [host] => assert!(own(host.to_str().expect("text")), "{host:?}"),
        [] => assert_eq!(version, Version::HTTP_10),
        _ => panic!("{hosts:?}"),
    }
}

async fn page(version: Version, headers: HeaderMap) -> Response {
    check(version, &headers);
    fresh("ok\n".into_response())
}

async fn show(
    version: Version,
    headers: HeaderMap,
    asked: Result<Query<probe::show::Ask>, QueryRejection>,
) -> Response {
    check(version, &headers);
    match asked {
        Ok(Query(ask)) => fresh(Json(json!({ "from": ask.from, "to": ask.to })).into_response()),
        Err(error) => refuse(StatusCode::BAD_REQUEST, error.body_text()),
    }
}

async fn order(version: Version, headers: HeaderMap, body: Bytes) -> Response {
    check(version, &headers);
    assert!(body.len() <= BODY);
    fresh(Json(json!(body.len())).into_response())
}

/// Paths as the daemon has them, each with what its handlers take from a request.
fn router() -> Router {
    let turns = Turns::new(0);
    let router = Router::new()
        .route("/", get(page))
        .route("/show", get(show).layer(from_fn_with_state(turns, in_turn)))
        .route("/run", post(order).layer(DefaultBodyLimit::max(BODY)));
    only_named(router, Names::from_iter(["node".to_owned()]))
}

thread_local! {
    static ROUTER: Router = router();
}

/// The status of the first answer, if there is one.
fn first(answers: &[u8]) -> Option<u16> {
    let head = answers.get(..12)?;
    assert!(head.starts_with(b"HTTP/1.1 ") || head.starts_with(b"HTTP/1.0 "), "{head:?}");
    let status = std::str::from_utf8(&head[9..]).expect("digits").parse().expect("a status");
    let known = [100, 200, 400, 404, 405, 413, 414, 421, 431, 501, 505];
    assert!(known.contains(&status), "{status}");
    Some(status)
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let answers = |size| {
        let router = ROUTER.with(Router::clone);
        conversation(data, size, |stream| converse(stream, router))
    };
    let (whole, cut) = (first(&answers(usize::MAX)), first(&answers(7)));
    // Whether what is no request is refused or closed without an answer depends on how much of it came at once.
    let no_request = [[None, Some(400)], [Some(400), None]];
    assert!(whole == cut || no_request.contains(&[whole, cut]), "{whole:?}, {cut:?}");
}
