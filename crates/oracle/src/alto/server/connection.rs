//! Connections: taken within limits, in all and by source, through TLS, to HTTP/2 or HTTP/1.1.

use super::{
    dispatch::{Peer, Site},
    guard::Guarded,
};
use crate::alto::counters::Refusal;
use arc_swap::ArcSwap;
use hyper::{
    Request,
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use permits::{Full, Permit, Permits, source};
use std::{
    convert::Infallible,
    io,
    net::IpAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;

/// What all connections share.
#[derive(Clone)]
pub(super) struct Connections {
    tls: Arc<ArcSwap<rustls::ServerConfig>>,
    site: Arc<Site>,
    permits: Arc<Permits>,
    closed: Arc<Notify>,
    stop: watch::Receiver<bool>,
}

/// An open connection: its permit, which is free before the end is reported. Fields are dropped in this
/// order.
struct Open {
    _permit: Permit,
    _end: End,
}

/// Reports the end of a connection when it is dropped.
struct End {
    site: Arc<Site>,
    closed: Arc<Notify>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.site.counters().open.down();
        self.closed.notify_one();
    }
}

impl Connections {
    pub(super) fn new(
        tls: Arc<ArcSwap<rustls::ServerConfig>>,
        site: Arc<Site>,
        stop: watch::Receiver<bool>,
    ) -> Connections {
        let limits = site.limits();
        let permits = Permits::new(limits.connections, limits.connections_per_source);
        Connections { tls, site, permits, closed: Arc::default(), stop }
    }

    /// Whether no connection is open.
    pub(super) fn all_closed(&self) -> bool {
        self.permits.is_idle()
    }

    /// Waits until a connection is closed, at most until `end`.
    pub(super) async fn one_closed(&self, end: Instant) {
        let _ = timeout_at(end, self.closed.notified()).await;
    }

    /// Takes connections until the server stops.
    pub(super) async fn accept(self, listener: TcpListener) {
        let mut stop = self.stop.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                stopped = stop.wait_for(|stop| *stop) => {
                    drop(stopped);
                    return;
                }
            };
            let Ok((stream, peer)) = accepted else {
                // Out of file descriptors: what ends meanwhile makes room.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            self.site.counters().connected();
            if let Some(open) = self.open(peer.ip()) {
                tokio::spawn(self.clone().converse(stream, peer.ip().to_canonical(), open));
            }
        }
    }

    /// A connection from `peer` may be open, if the limits allow one more.
    fn open(&self, peer: IpAddr) -> Option<Open> {
        let counters = self.site.counters();
        match self.permits.take(source(peer)) {
            Ok(permit) => {
                counters.open.up();
                let end = End { site: self.site.clone(), closed: self.closed.clone() };
                Some(Open { _permit: permit, _end: end })
            }
            Err(full) => {
                counters.refuse(match full {
                    Full::All => Refusal::Connections,
                    Full::Source => Refusal::Source,
                });
                None
            }
        }
    }

    /// Serves one connection; its errors end it alone.
    async fn converse(self, stream: TcpStream, peer: IpAddr, open: Open) {
        panics::point("alto");
        let limits = self.site.limits();
        let _ = stream.set_nodelay(true);
        // A client that vanished while it waits for an update is found out by the kernel.
        let alive = socket2::TcpKeepalive::new()
            .with_time(Duration::from_secs(60))
            .with_interval(Duration::from_secs(15));
        let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&alive);
        let acceptor = TlsAcceptor::from(self.tls.load_full());
        let shaken = timeout(limits.timeout, acceptor.accept(stream)).await;
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                self.site.counters().refuse(refusal(&error));
                return;
            }
            Err(_) => {
                self.site.counters().refuse(Refusal::Handshake);
                return;
            }
        };
        let session = stream.get_ref().1;
        let http2 = session.alpn_protocol() == Some(b"h2");
        // Only certificates that were verified get here.
        let peer = Peer { address: peer, certified: session.peer_certificates().is_some() };
        let guarded = Guarded::new(stream, self.site.counters().clone(), limits.timeout);
        self.serve(TokioIo::new(guarded), http2, peer).await;
        drop(open);
    }

    async fn serve<I>(&self, io: I, http2: bool, peer: Peer)
    where
        I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
    {
        let limits = self.site.limits();
        let site = self.site.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let site = site.clone();
            async move { Ok::<_, Infallible>(site.serve(request, peer).await) }
        });
        if http2 {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(limits.requests_per_connection)
                .max_header_list_size(limits.head.0.try_into().unwrap_or(u32::MAX))
                .max_send_buf_size(256 << 10)
                .keep_alive_interval(limits.timeout)
                .keep_alive_timeout(limits.timeout)
                .serve_connection(io, service);
            self.until_stopped(connection, http2::Connection::graceful_shutdown).await;
        } else {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.timeout)
                .max_buf_size((limits.head.0 as usize).max(8192))
                .serve_connection(io, service);
            self.until_stopped(connection, http1::Connection::graceful_shutdown).await;
        }
    }

    /// Drives a connection until it ends. When the server stops, requests in flight are still answered.
    async fn until_stopped<C: Future>(&self, connection: C, end: impl FnOnce(Pin<&mut C>)) {
        let mut connection = pin!(connection);
        let mut stop = self.stop.clone();
        tokio::select! {
            _ = connection.as_mut() => return,
            stopped = stop.wait_for(|stop| *stop) => drop(stopped),
        }
        end(connection.as_mut());
        let _ = connection.await;
    }
}

/// Why a handshake failed, as far as it is counted.
fn refusal(error: &io::Error) -> Refusal {
    use rustls::Error::{InvalidCertificate, NoCertificatesPresented};
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    match error {
        Some(InvalidCertificate(_) | NoCertificatesPresented) => Refusal::Certificate,
        _ => Refusal::Handshake,
    }
}
