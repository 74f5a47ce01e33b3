//! The daemon's HTTP server: read-only except for tests requested with a token.
//!
//! [`routes`] is the table of everything that it answers; `docs/http.md` describes each route.

use crate::{
    metrics,
    node::Node,
    viewers::{Viewers, bearer, permitted, unauthorized},
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use echo::control::Request;
use job::Service;
use serde::Deserialize;
use std::sync::Arc;
use web::{Turns, file, fresh, in_turn, refuse};

/// Rows of `/api/v1/echo/top` and `/api/v1/gate/top`.
const TOP_ROWS: usize = 10;

/// The longest body of a request to run a test, in bytes.
const ORDER_LIMIT: usize = 16 << 10;

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Whoever reaches the address.
    Anyone,
    /// See [`viewers`](crate::viewers).
    Viewers,
    /// Who bears the token of `[probe.request]`.
    Requesters,
}

/// A route: its method, its path, who may ask, and what answers.
pub type Route = (&'static str, &'static str, Who, MethodRouter<Arc<Node>>);

/// Everything that the daemon serves.
pub fn routes() -> Vec<Route> {
    // Requests that read the program's maps. The daemon has one thread: it spends at most half of its
    // time on them, and health checks never wait for more than one.
    let counted = Turns::new(1);
    // The archive is read outside the daemon's thread.
    let archive = Turns::new(1);
    let page = || file("text/html; charset=utf-8", include_str!("../../../web/index.html"));
    let style = || file("text/css", include_str!("../../../web/status.css"));
    let script = || file("text/javascript", include_str!("../../../web/status.js"));
    let ledger = |node| echo(node, Request::Ledger);
    let echo_top = |node| echo(node, Request::Top { count: TOP_ROWS });
    let run_route = post(run).layer(DefaultBodyLimit::max(ORDER_LIMIT));
    vec![
        ("GET", "/", Who::Anyone, get(page)),
        ("GET", "/status.css", Who::Anyone, get(style)),
        ("GET", "/status.js", Who::Anyone, get(script)),
        ("GET", "/healthz", Who::Anyone, get(healthz)),
        ("GET", "/metrics", Who::Anyone, take_turns(&counted, get(metrics))),
        ("GET", "/api/v1/status", Who::Viewers, take_turns(&counted, get(status))),
        ("GET", "/api/v1/echo/ledger", Who::Anyone, take_turns(&counted, get(ledger))),
        ("GET", "/api/v1/echo/top", Who::Viewers, take_turns(&counted, get(echo_top))),
        ("GET", "/api/v1/gate", Who::Viewers, take_turns(&counted, get(gate_status))),
        ("GET", "/api/v1/gate/top", Who::Viewers, take_turns(&counted, get(gate_top))),
        ("GET", "/api/v1/probe/show", Who::Viewers, take_turns(&archive, get(show))),
        ("POST", "/api/v1/probe/run", Who::Requesters, run_route),
    ]
}

/// A handler whose requests run one after the other with all that have the same turns.
fn take_turns(turns: &Turns, handler: MethodRouter<Arc<Node>>) -> MethodRouter<Arc<Node>> {
    handler.layer(middleware::from_fn_with_state(turns.clone(), in_turn))
}

/// Routes requests to what answers them.
pub fn router(node: Arc<Node>, viewers: &Viewers) -> Router {
    let mut router = Router::new();
    for (_, path, who, handler) in routes() {
        let handler = match who {
            Who::Viewers => {
                handler.layer(middleware::from_fn_with_state(viewers.clone(), permitted))
            }
            Who::Anyone | Who::Requesters => handler,
        };
        router = router.route(path, handler);
    }
    router.with_state(node)
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
    ask::<echo::service::Service>(&node, request).await
}

/// The gate's answer to a read-only request.
async fn gate(State(node): State<Arc<Node>>, request: gate::control::Request) -> Response {
    ask::<gate::service::Service>(&node, request).await
}

/// A job's answer; 404 if the job is not configured.
async fn ask<S: Service>(node: &Node, request: S::Request) -> Response {
    let (status, error) = match node.jobs().get::<S>() {
        None => {
            (StatusCode::NOT_FOUND, "this job is not in the configuration of this node".to_owned())
        }
        Some(job) => match job.ask(|job| job.control(request)).await {
            Ok(Ok(value)) => return fresh(Json(value).into_response()),
            Ok(Err(error)) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            Err(failed) => (StatusCode::SERVICE_UNAVAILABLE, failed.to_string()),
        },
    };
    refuse(status, error)
}

async fn gate_status(State(node): State<Arc<Node>>) -> Response {
    fresh(match node.jobs().of("gate").await {
        Ok(gate) => Json(gate.status()).into_response(),
        Err(error) => refuse(StatusCode::NOT_FOUND, error.to_string()),
    })
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
        Err(error) => refuse(StatusCode::BAD_REQUEST, error.body_text()),
    }
}

/// Shows measurements.
async fn show(
    State(node): State<Arc<Node>>,
    asked: Result<Query<probe::show::Ask>, QueryRejection>,
) -> Response {
    let ask = match asked {
        Ok(Query(ask)) => ask,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error.body_text()),
    };
    let Some(station) = node.jobs().get::<probe::service::Service>() else {
        let why = "this node is not a measuring station".to_owned();
        return refuse(StatusCode::NOT_FOUND, why);
    };
    fresh(match station.ask(|station| station.show(ask)).await {
        Ok(Ok(answer)) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Ok(Err(error)) => refuse(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        Err(failed) => refuse(StatusCode::SERVICE_UNAVAILABLE, failed.to_string()),
    })
}

/// Runs a test for a client with the station's token.
async fn run(State(node): State<Arc<Node>>, headers: HeaderMap, body: Bytes) -> Response {
    use probe::service::RequestError;
    let token = bearer(&headers);
    let result = match node.jobs().get::<probe::service::Service>() {
        None => Err(RequestError::Off),
        Some(station) => match station.ask(|station| station.request(token, &body)).await {
            Ok(result) => result,
            Err(failed) => {
                return refuse(StatusCode::SERVICE_UNAVAILABLE, failed.to_string());
            }
        },
    };
    fresh(match result {
        Ok(record) => Json(record).into_response(),
        Err(error) => {
            let status = match &error {
                RequestError::Off => StatusCode::NOT_FOUND,
                RequestError::Token => return unauthorized("nigh probe", error.to_string()),
                RequestError::Malformed(_) => StatusCode::BAD_REQUEST,
                RequestError::NotPermitted(_) => StatusCode::FORBIDDEN,
                RequestError::Control(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            refuse(status, error.to_string())
        }
    })
}
