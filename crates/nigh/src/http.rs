//! The HTTP server: read-only, HTTP/1.1, bounded in connections, header size and time.
//!
//! What it serves is in [`node`] for the daemon and in [`lab`] for `nigh lab run --http`. There is no
//! TLS and no login: bind it to an address that only operators reach.

pub mod lab;
pub mod node;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::Response,
};
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

/// The HTTP address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; see {key}")]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
    key: &'static str,
}

/// Listens on `address`, which came from `key`.
///
/// # Errors
///
/// The address is taken, or not this host's, or needs a capability.
pub fn bind(address: SocketAddr, key: &'static str) -> Result<std::net::TcpListener, BindError> {
    let listen = || {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|source| BindError { address, source, key })
}

/// Serves until dropped.
pub async fn serve(listener: TcpListener, router: Router) {
    let slots = Arc::new(Semaphore::new(CONNECTION_LIMIT));
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

/// What requests that cost something share: one of them at a time, and a pause after each.
#[derive(Clone, Debug)]
struct Turns {
    turn: Arc<Semaphore>,
    /// How long the pause is, in times of what the request took.
    pause: u32,
}

impl Turns {
    fn new(pause: u32) -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), pause }
    }
}

/// Lets requests run one after the other, with a pause after each. However many clients ask, they
/// cannot take more than their share of what answers them, and other requests never wait for more than
/// one.
async fn in_turn(State(turns): State<Turns>, request: Request, next: Next) -> Response {
    let turn = turns.turn.acquire_owned().await;
    let begin = Instant::now();
    let response = next.run(request).await;
    let pause = begin.elapsed() * turns.pause;
    tokio::spawn(async move {
        tokio::time::sleep(pause).await;
        drop(turn);
    });
    response
}

/// An answer that must not be kept.
fn fresh(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
