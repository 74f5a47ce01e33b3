//! The daemon's HTTP server: read-only except for measurements requested with a token.
//!
//! | path | content |
//! |---|---|
//! | `/` | status page; everything it needs comes from this binary |
//! | `/metrics` | OpenMetrics text |
//! | `/healthz` | 200 `ok`, or 503 and a sentence for each problem |
//! | `/api/v1/status` | what `nigh status --json` prints |
//! | `/api/v1/echo/ledger` | the responder's ledger |
//! | `/api/v1/echo/top` | the busiest source prefixes |
//! | `/api/v1/gate` | the gate: flows, applications by rate, refusals, rules, limits |
//! | `/api/v1/gate/top` | the applications, or with `by=host` the hosts, with the highest rates now |
//! | `/api/v1/probe/show` | measurements, with the filters of `nigh probe show` as parameters |
//! | `POST /api/v1/probe/run` | runs a test and returns its record; off unless `[probe.request]` sets a token |

use crate::{metrics, node::Node};
use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Query, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use echo::control::Request;
use job::Service;
use serde::Deserialize;
use std::sync::Arc;
use web::{Turns, file, fresh, in_turn};

/// Rows of `/api/v1/echo/top` and `/api/v1/gate/top`.
const TOP_ROWS: usize = 10;

/// The longest body of a request to run a test, in bytes.
const ORDER_LIMIT: usize = 16 << 10;

/// Everything that the daemon serves.
pub fn router(node: Arc<Node>) -> Router {
    // Requests that read the program's maps. The daemon has one thread: it spends at most half of its
    // time on them, and health checks never wait for more than one.
    let counted = Router::new()
        .route("/metrics", get(metrics))
        .route("/api/v1/status", get(status))
        .route("/api/v1/echo/ledger", get(|node| echo(node, Request::Ledger)))
        .route("/api/v1/echo/top", get(|node| echo(node, Request::Top { count: TOP_ROWS })))
        .route("/api/v1/gate", get(|node| gate(node, gate::control::Request::Status)))
        .route("/api/v1/gate/top", get(gate_top))
        .layer(middleware::from_fn_with_state(Turns::new(1), in_turn));
    // The archive is read outside the daemon's thread.
    let read = Router::new()
        .route("/api/v1/probe/show", get(show))
        .layer(middleware::from_fn_with_state(Turns::new(1), in_turn));
    Router::new()
        .route(
            "/",
            get(|| file("text/html; charset=utf-8", include_str!("../../../web/index.html"))),
        )
        .route("/status.css", get(|| file("text/css", include_str!("../../../web/status.css"))))
        .route(
            "/status.js",
            get(|| file("text/javascript", include_str!("../../../web/status.js"))),
        )
        .route("/healthz", get(healthz))
        .route("/api/v1/probe/run", post(run).layer(DefaultBodyLimit::max(ORDER_LIMIT)))
        .merge(counted)
        .merge(read)
        .with_state(node)
}

async fn metrics(State(node): State<Arc<Node>>) -> Response {
    fresh(match metrics::render(&node) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    })
}

async fn healthz(State(node): State<Arc<Node>>) -> Response {
    let problems = node.jobs().problems();
    fresh(if problems.is_empty() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, problems.join("\n") + "\n").into_response()
    })
}

async fn status(State(node): State<Arc<Node>>) -> Response {
    fresh(Json(node.status()).into_response())
}

/// The responder's answer to a read-only request.
async fn echo(State(node): State<Arc<Node>>, request: Request) -> Response {
    ask::<echo::service::Service>(&node, StatusCode::SERVICE_UNAVAILABLE, request).await
}

/// The gate's answer to a read-only request.
async fn gate(State(node): State<Arc<Node>>, request: gate::control::Request) -> Response {
    ask::<gate::service::Service>(&node, StatusCode::NOT_FOUND, request).await
}

/// A job's answer; `absent` is the status if there is no such job.
async fn ask<S: Service>(node: &Node, absent: StatusCode, request: S::Request) -> Response {
    let (status, error) = match node.jobs().get::<S>() {
        None => (absent, "this job is not in the configuration of this node".to_owned()),
        Some(job) => match job.control(request).await {
            Ok(value) => return fresh(Json(value).into_response()),
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        },
    };
    fresh((status, Json(serde_json::json!({ "error": error }))).into_response())
}

/// What `/api/v1/gate/top` ranks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ranked {
    #[serde(default)]
    by: gate::control::By,
}

async fn gate_top(
    node: State<Arc<Node>>,
    asked: Result<Query<Ranked>, QueryRejection>,
) -> Response {
    match asked {
        Ok(Query(Ranked { by })) => {
            let order = gate::control::TopOrder { by, count: TOP_ROWS };
            gate(node, gate::control::Request::Top(order)).await
        }
        Err(error) => {
            let body = Json(serde_json::json!({ "error": error.body_text() }));
            fresh((StatusCode::BAD_REQUEST, body).into_response())
        }
    }
}

/// Shows measurements.
async fn show(
    State(node): State<Arc<Node>>,
    asked: Result<Query<probe::show::Ask>, QueryRejection>,
) -> Response {
    let refuse = |status: StatusCode, error: String| {
        (status, Json(serde_json::json!({ "error": error }))).into_response()
    };
    let ask = match asked {
        Ok(Query(ask)) => ask,
        Err(error) => return fresh(refuse(StatusCode::BAD_REQUEST, error.body_text())),
    };
    let station = node.jobs().get::<probe::service::Service>();
    let shown = match station {
        None => None,
        Some(station) => Some(station.show(ask).await),
    };
    fresh(match shown {
        None => refuse(StatusCode::NOT_FOUND, "this node is not a measuring station".to_owned()),
        Some(Ok(answer)) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Some(Err(error)) => refuse(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    })
}

/// Runs a test for a client with the station's token.
async fn run(State(node): State<Arc<Node>>, headers: HeaderMap, body: Bytes) -> Response {
    use probe::service::RequestError;
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer "));
    let result = match node.jobs().get::<probe::service::Service>() {
        None => Err(RequestError::Off),
        Some(station) => station.request(token, &body).await,
    };
    fresh(match result {
        Ok(record) => Json(record).into_response(),
        Err(error) => {
            let status = match &error {
                RequestError::Off => StatusCode::NOT_FOUND,
                RequestError::Token => StatusCode::UNAUTHORIZED,
                RequestError::Malformed(_) => StatusCode::BAD_REQUEST,
                RequestError::NotPermitted(_) => StatusCode::FORBIDDEN,
                RequestError::Control(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            let body = Json(serde_json::json!({ "error": error.to_string() }));
            let mut response = (status, body).into_response();
            if status == StatusCode::UNAUTHORIZED {
                let challenge = HeaderValue::from_static("Bearer realm=\"nigh probe\"");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            }
            response
        }
    })
}
