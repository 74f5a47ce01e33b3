//! An HTTPS client for the tests, over HTTP/2 or HTTP/1.1.

use axum::{
    body::{Body, BodyDataStream, Bytes},
    http::{HeaderMap, Request},
};
use futures_util::{Stream, StreamExt};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    version::{TLS12, TLS13},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// No test waits longer than this for anything.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) enum Client {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

/// A whole reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Code, field and value of an ALTO error.
    pub(crate) fn problem(&self) -> (String, String, String) {
        assert_eq!(self.header("content-type"), "application/alto-error+json");
        let meta = &self.json()["meta"];
        let text = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
        (text("code"), text("field"), text("value"))
    }
}

/// A TLS connection that trusts one certificate.
pub(crate) async fn tls(
    address: SocketAddr,
    trusted: &[u8],
    alpn: &str,
    newest: bool,
) -> Result<TlsStream<TcpStream>, Box<dyn Error>> {
    tls_as(address, trusted, alpn, newest, None).await
}

/// The same, from a client that can show a certificate.
pub(crate) async fn tls_as(
    address: SocketAddr,
    trusted: &[u8],
    alpn: &str,
    newest: bool,
    shown: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> Result<TlsStream<TcpStream>, Box<dyn Error>> {
    tls_over(TcpStream::connect(address).await?, trusted, alpn, newest, shown).await
}

/// The same over a TCP connection that exists.
pub(crate) async fn tls_over(
    stream: TcpStream,
    trusted: &[u8],
    alpn: &str,
    newest: bool,
    shown: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
) -> Result<TlsStream<TcpStream>, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trusted) {
        roots.add(certificate?)?;
    }
    let versions = if newest { [&TLS13] } else { [&TLS12] };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&versions)?
        .with_root_certificates(roots);
    let mut config = match shown {
        Some((chain, key)) => config.with_client_auth_cert(chain, key)?,
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let name = "localhost".try_into()?;
    Ok(timeout(TIMEOUT, TlsConnector::from(Arc::new(config)).connect(name, stream)).await??)
}

impl Client {
    pub(crate) async fn connect(
        address: SocketAddr,
        trusted: &[u8],
        http2: bool,
    ) -> Result<Client, Box<dyn Error>> {
        Client::over(TcpStream::connect(address).await?, trusted, http2).await
    }

    /// A client with another address of its own.
    pub(crate) async fn from(
        source: IpAddr,
        address: SocketAddr,
        trusted: &[u8],
    ) -> Result<Client, Box<dyn Error>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        Client::over(socket.connect(address).await?, trusted, true).await
    }

    async fn over(
        stream: TcpStream,
        trusted: &[u8],
        http2: bool,
    ) -> Result<Client, Box<dyn Error>> {
        let alpn = if http2 { "h2" } else { "http/1.1" };
        let io = TokioIo::new(tls_over(stream, trusted, alpn, true, None).await?);
        if http2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
            tokio::spawn(connection);
            Ok(Client::Two(sender))
        } else {
            let (sender, connection) = http1::handshake(io).await?;
            tokio::spawn(connection);
            Ok(Client::One(sender))
        }
    }

    /// Sends a request and returns the reply's head and body, unread.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<(u16, HeaderMap, BodyDataStream), Box<dyn Error>> {
        let uri = match self {
            Client::One(_) => path.to_owned(),
            Client::Two(_) => format!("https://localhost{path}"),
        };
        let mut request = Request::builder().method(method).uri(uri);
        if matches!(self, Client::One(_)) {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned()))?;
        let response = match self {
            Client::One(sender) => {
                sender.ready().await?;
                timeout(TIMEOUT, sender.send_request(request)).await??
            }
            Client::Two(sender) => {
                sender.ready().await?;
                timeout(TIMEOUT, sender.send_request(request)).await??
            }
        };
        let (head, body) = response.into_parts();
        Ok((head.status.as_u16(), head.headers, Body::new(body).into_data_stream()))
    }

    /// Sends a body of pieces over HTTP/2, and returns the status.
    pub(crate) async fn upload(
        &mut self,
        path: &str,
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> Option<u16> {
        let Client::Two(sender) = self else { panic!("a client over HTTP/2") };
        let request = Request::post(format!("https://localhost{path}"));
        let request = request.body(Body::from_stream(pieces)).expect("a request");
        Some(sender.send_request(request).await.ok()?.status().as_u16())
    }

    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let sent = self.send(method, path, headers, body).await;
        let (status, headers, mut pieces) = sent.expect("a reply");
        let mut body = Vec::new();
        while let Some(piece) = timeout(TIMEOUT, pieces.next()).await.expect("a body in time") {
            body.extend_from_slice(&piece.expect("a whole body"));
        }
        Reply { status, headers, body }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, &[], "").await
    }

    pub(crate) async fn post(&mut self, path: &str, kind: &str, body: &Value) -> Reply {
        self.request("POST", path, &[("content-type", kind)], &body.to_string()).await
    }

    /// Opens an update stream of made-up maps.
    pub(crate) async fn stream(&mut self, body: &Value) -> Events {
        self.open_at("/stream", body).await
    }

    /// Opens an update stream.
    pub(crate) async fn open_at(&mut self, path: &str, body: &Value) -> Events {
        let kind = oracle::alto::updates::service::PARAMS;
        let headers = [("content-type", kind), ("accept", "text/event-stream")];
        let sent = self.send("POST", path, &headers, &body.to_string()).await;
        let (status, headers, pieces) = sent.expect("a stream");
        assert_eq!(status, 200);
        assert_eq!(headers["content-type"], "text/event-stream");
        Events { pieces, text: Vec::new() }
    }

    /// Controls an update stream by the address in its first event.
    pub(crate) async fn control(&mut self, uri: &str, body: &Value) -> Reply {
        let path = uri.splitn(4, '/').nth(3).expect("a path");
        self.post(&format!("/{path}"), oracle::alto::updates::service::PARAMS, body).await
    }
}

/// An event as it arrived: media type, data-id, data.
#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) media_type: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

/// What a client that applies every update has in the end, by data-id.
pub(crate) type Held = BTreeMap<String, Value>;

impl Event {
    /// Applies it to what the client holds.
    pub(crate) fn apply(&self, held: &mut Held) {
        let held = held.entry(self.id.clone()).or_default();
        match self.media_type.as_str() {
            "application/merge-patch+json" => json_patch::merge(held, &self.data),
            "application/json-patch+json" => {
                let patch: json_patch::Patch =
                    serde_json::from_value(self.data.clone()).expect("a JSON patch");
                json_patch::patch(held, &patch).expect("a patch that fits");
            }
            _ => *held = self.data.clone(),
        }
    }
}

/// An update stream from the client's side.
pub(crate) struct Events {
    pieces: BodyDataStream,
    text: Vec<u8>,
}

impl Events {
    /// The bytes up to the next empty line; none at the end of the stream.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let rest = self.text.split_off(end + 2);
                let block = std::mem::replace(&mut self.text, rest);
                return Some(String::from_utf8(block).expect("UTF-8"));
            }
            let piece = timeout(TIMEOUT, self.pieces.next()).await.expect("an event in time")?;
            self.text.extend_from_slice(&piece.expect("an unbroken stream"));
        }
    }

    /// The next event, past all comments; none at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            if let Some(event) = event(&block) {
                return Some(event);
            }
        }
    }

    /// Whether the next thing that comes is a comment.
    pub(crate) async fn comment(&mut self) -> bool {
        self.block().await.is_some_and(|block| block.starts_with(':'))
    }

    /// The first event's control address.
    pub(crate) async fn control_uri(&mut self) -> String {
        let first = self.next().await.expect("the first event");
        assert_eq!(first.media_type, "application/alto-updatestreamcontrol+json");
        assert_eq!(first.id, "");
        first.data["control-uri"].as_str().expect("an address").to_owned()
    }
}

/// Reads one event as in the SSE specification; none if it is a comment.
pub(crate) fn event(block: &str) -> Option<Event> {
    let mut name = None;
    let mut data = Vec::new();
    for line in block.lines().filter(|line| !line.is_empty() && !line.starts_with(':')) {
        match line.split_once(": ") {
            Some(("event", value)) => assert!(name.replace(value).is_none(), "two names"),
            Some(("data", value)) => data.push(value),
            other => panic!("{other:?} is no field of an event"),
        }
    }
    let name = name?;
    let (media_type, id) = name.split_once(',').unwrap_or((name, ""));
    let data = serde_json::from_str(&data.join("\n")).expect("JSON");
    Some(Event { media_type: media_type.to_owned(), id: id.to_owned(), data })
}
