//! HTTP servers: HTTP/1.1, bounded in connections, header size and time.
//!
//! The daemon has one, `nigh lab run --http` too, and a job may. There is no TLS: bind it to an address that only
//! operators reach.
#![forbid(unsafe_code)]

mod local;

use axum::{
    Extension, Json, Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, Version, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{Semaphore, oneshot},
    task::JoinSet,
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

/// The ends of the connection that a request came on: an extension of each request.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    client: SocketAddr,
    server: SocketAddr,
}

/// The HTTP address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}; see {key}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The system's error.
    pub source: io::Error,
    /// Where the address is set.
    pub key: &'static str,
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

/// Serves until dropped; its connections end with it. Requests for other names are refused.
pub async fn serve(listener: TcpListener, names: Names, router: Router) {
    let router = only_named(router, names);
    let slots = Arc::new(Semaphore::new(CONNECTION_LIMIT));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((stream, client)) = listener.accept().await else {
            // Out of file descriptors: what ends meanwhile makes room.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(server) = stream.local_addr() else { continue };
        let router = router.clone().layer(Extension(Ends { client, server }));
        connections.spawn(async move {
            converse(stream, router).await;
            drop(slot);
        });
    }
}

/// The same answers, to requests that call the server by one of its names.
pub fn only_named(router: Router, names: Names) -> Router {
    router.layer(middleware::from_fn_with_state(names, named_rightly))
}

/// Serves one connection; what goes wrong on it is the client's affair.
pub async fn converse<S>(stream: S, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_LIMIT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ = timeout(CONNECTION_TIMEOUT, connection).await;
}

/// What requests that cost something share: one of them at a time, and a pause after each.
#[derive(Clone, Debug)]
pub struct Turns {
    turn: Arc<Semaphore>,
    /// How long the pause is, in times of what the request took.
    pause: u32,
}

impl Turns {
    /// With a pause of `pause` times what a request took.
    pub fn new(pause: u32) -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), pause }
    }
}

/// Lets requests run one after the other, with a pause after each. However many clients ask, they
/// cannot take more than their share of what answers them, and other requests never wait for more than
/// one. A request whose client has gone keeps its turn until it is done.
pub async fn in_turn(State(turns): State<Turns>, request: Request, next: Next) -> Response {
    let turn = turns.turn.acquire_owned().await;
    let (give, response) = oneshot::channel();
    tokio::spawn(async move {
        let begin = Instant::now();
        let _ = give.send(next.run(request).await);
        tokio::time::sleep(begin.elapsed() * turns.pause).await;
        drop(turn);
    });
    // Without a response the handler panicked.
    response.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// The names by which clients may call a server, besides its addresses and `localhost`.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<[String]>);

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl Names {
    /// Whether a Host (RFC 9110 section 7.2) is one of them, an address or `localhost`, with or without a port.
    fn have(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => host,
        };
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        match inner {
            Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
            None => {
                let name = name.strip_suffix('.').unwrap_or(name);
                name.parse::<Ipv4Addr>().is_ok()
                    || name.eq_ignore_ascii_case("localhost")
                    || self.0.iter().any(|known| name.eq_ignore_ascii_case(known))
            }
        }
    }
}

/// Refuses requests for other names.
///
/// A page from anywhere may ask its reader's browser for `http://its-name/`, and have its name resolved to
/// 127.0.0.1 (DNS rebinding). An address cannot be resolved to another one. Browsers always name the host; a
/// health check by HTTP/1.0 need not.
async fn named_rightly(State(names): State<Names>, request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let refused = match (hosts.next(), hosts.next()) {
        (Some(host), None) if host.to_str().is_ok_and(|host| names.have(host)) => None,
        (Some(_), None) => Some((
            StatusCode::MISDIRECTED_REQUEST,
            "this is not a name of this server: use its address or localhost; the daemon also takes its host's name \
             and those of node.http_names",
        )),
        (None, _) if request.version() == Version::HTTP_10 => None,
        _ => Some((StatusCode::BAD_REQUEST, "a request has one header Host")),
    };
    match refused {
        None => next.run(request).await,
        Some((status, error)) => refuse(status, error),
    }
}

/// One file of a page. The policy forbids everything that is not from this server.
pub async fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
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

/// An error, as an object with the field `error`.
pub fn refuse(status: StatusCode, error: impl Into<String>) -> Response {
    fresh((status, Json(serde_json::json!({ "error": error.into() }))).into_response())
}

/// An answer that must not be kept.
pub fn fresh(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::{
        io::{Read, Write},
        sync::mpsc,
    };

    #[test]
    fn addresses_localhost_and_given_names_are_names_of_the_server() {
        let names = Names::from_iter(["node1.example.net".to_owned()]);
        for (host, right) in [
            ("127.0.0.1", true),
            ("127.0.0.1:9161", true),
            ("192.0.2.7:80", true),
            ("localhost", true),
            ("LocalHost:9161", true),
            ("[::1]", true),
            ("[::1]:9161", true),
            ("[2001:db8::7]:9161", true),
            ("node1.example.net", true),
            ("Node1.example.net:9160", true),
            ("node1.example.net.:9160", true),
            ("", false),
            ("::1", false),
            ("[::1", false),
            ("[127.0.0.1]", false),
            ("evil.example", false),
            ("evil.example:9161", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:80", false),
            ("node1.example.net.evil.example", false),
            ("localhost:80:80", false),
            ("127.1", false),
        ] {
            assert_eq!(names.have(host), right, "{host}");
        }
    }

    #[test]
    fn a_request_whose_client_has_gone_keeps_its_turn() {
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Arc::new(std::sync::Mutex::new(ends));
        let handler = move || {
            let (begun, ends) = (begun.clone(), ends.clone());
            let work = move || {
                begun.send(()).expect("the test waits");
                let _ = ends.lock().expect("no panic").recv();
            };
            async move { tokio::task::spawn_blocking(work).await.expect("no panic") }
        };
        let router = Router::new()
            .route("/", get(handler))
            .layer(middleware::from_fn_with_state(Turns::new(0), in_turn));
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let listener = bind("127.0.0.1:0".parse().expect("an address"), "--http").expect("a port");
        let address = listener.local_addr().expect("an address");
        let _guard = runtime.enter();
        let listener = TcpListener::from_std(listener).expect("a listener");
        runtime.spawn(serve(listener, Names::from_iter(["a".to_owned()]), router));
        let ask = || {
            let mut stream = std::net::TcpStream::connect(address).expect("a connection");
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                .expect("a reader");
            stream
        };
        let limit = Duration::from_secs(10);
        let mut gone = ask();
        begins.recv_timeout(limit).expect("the first begins");
        gone.shutdown(std::net::Shutdown::Both).expect("it is open");
        let _ = gone.read(&mut [0]);
        let mut last = ask();
        let early = begins.recv_timeout(Duration::from_millis(500));
        drop(end);
        assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout), "two run at once");
        let mut answer = String::new();
        last.set_read_timeout(Some(limit)).expect("a time");
        last.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
