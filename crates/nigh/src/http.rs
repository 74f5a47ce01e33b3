//! The HTTP server: read-only, HTTP/1.1, bounded in connections, header size and time.
//!
//! | path | what |
//! |---|---|
//! | `/` | status page; everything it needs comes from this binary |
//! | `/metrics` | OpenMetrics text |
//! | `/healthz` | 200 `ok`, or 503 and a sentence for each ailment |
//! | `/api/v1/status` | what `nigh status --json` prints |
//! | `/api/v1/echo/ledger` | the responder's ledger |
//! | `/api/v1/echo/top` | the busiest source prefixes |
//!
//! There is no TLS and no login: bind it to an address that only operators reach.

use crate::{metrics, node::Node};
use axum::{
    Json, Router,
    extract::{self, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use echo::control::Request;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

/// Most connections at once; further ones wait in the kernel's queue.
const CONNECTION_LIMIT: usize = 64;
/// How long a client may take to send its request's head, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may last in all; a client that does not read is gone then.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest head of a request, in bytes.
const HEAD_LIMIT: usize = 16 << 10;
/// Rows of `/api/v1/echo/top`.
const TOP_ROWS: usize = 10;

/// The HTTP address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; see node.http")]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
}

/// Listens on `address`; inside a tokio runtime.
///
/// # Errors
///
/// The address is taken, or not this host's, or needs a capability.
pub fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let listen = || {
        let socket = if address.is_ipv4() {
            tokio::net::TcpSocket::new_v4()?
        } else {
            tokio::net::TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(128)
    };
    listen().map_err(|source| BindError { address, source })
}

/// Serves until dropped.
pub async fn serve(listener: TcpListener, node: Arc<Node>) {
    let slots = Arc::new(Semaphore::new(CONNECTION_LIMIT));
    let router = router(node);
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors: what ends meanwhile makes room.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let router = router.clone();
        tokio::spawn(async move {
            converse(stream, router).await;
            drop(slot);
        });
    }
}

/// Serves one connection; what goes wrong on it is the client's affair.
async fn converse(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_LIMIT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ = timeout(CONNECTION_TIMEOUT, connection).await;
}

fn router(node: Arc<Node>) -> Router {
    let counted = Router::new()
        .route("/metrics", get(metrics))
        .route("/api/v1/status", get(status))
        .route("/api/v1/echo/ledger", get(|node| echo(node, Request::Ledger)))
        .route("/api/v1/echo/top", get(|node| echo(node, Request::Top { count: TOP_ROWS })))
        .layer(middleware::from_fn_with_state(Arc::new(Semaphore::new(1)), in_turn));
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
        .merge(counted)
        .with_state(node)
}

/// Lets requests that read the program's maps run one after the other, with a pause after each as
/// long as it took.
///
/// The daemon has one thread. However many clients ask, it spends at most half of its time on them,
/// and health checks never wait for more than one.
async fn in_turn(
    extract::State(turn): extract::State<Arc<Semaphore>>,
    request: extract::Request,
    next: Next,
) -> Response {
    let turn = turn.acquire_owned().await;
    let begin = Instant::now();
    let response = next.run(request).await;
    let took = begin.elapsed();
    tokio::spawn(async move {
        tokio::time::sleep(took).await;
        drop(turn);
    });
    response
}

/// One file of the status page. The policy forbids everything that is not from this server.
async fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}

/// An answer that must not be kept.
fn fresh(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn metrics(State(node): State<Arc<Node>>) -> Response {
    fresh(match metrics::render(&node) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    })
}

async fn healthz(State(node): State<Arc<Node>>) -> Response {
    let ailments = node.features().ailments();
    fresh(if ailments.is_empty() {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, ailments.join("\n") + "\n").into_response()
    })
}

async fn status(State(node): State<Arc<Node>>) -> Response {
    fresh(Json(node.status()).into_response())
}

/// What the responder answers to a request that changes nothing.
async fn echo(State(node): State<Arc<Node>>, request: Request) -> Response {
    fresh(match node.features().echo(request).await {
        Ok(value) => Json(value).into_response(),
        Err(error) => {
            let body = Json(serde_json::json!({ "error": error.to_string() }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    })
}
