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
use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    net::{IpAddr, Ipv6Addr},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
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
    open: Arc<Open>,
    stop: watch::Receiver<bool>,
}

/// The connections that are open, by source.
#[derive(Default)]
struct Open {
    by_source: Mutex<HashMap<IpAddr, usize>>,
    closed: Notify,
}

/// A permit for one connection; released when dropped.
struct Permit {
    source: IpAddr,
    open: Arc<Open>,
    site: Arc<Site>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut by_source = self.open.by_source.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_source.get_mut(&self.source) {
            *count -= 1;
            if *count == 0 {
                by_source.remove(&self.source);
            }
        }
        self.site.counters().open.down();
        self.open.closed.notify_one();
    }
}

/// What counts as one source: an IPv4 address, or the /64 of an IPv6 address.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !0 << 64)),
        v4 => v4,
    }
}

impl Connections {
    pub(super) fn new(
        tls: Arc<ArcSwap<rustls::ServerConfig>>,
        site: Arc<Site>,
        stop: watch::Receiver<bool>,
    ) -> Connections {
        Connections { tls, site, open: Arc::default(), stop }
    }

    /// Whether no connection is open.
    pub(super) fn all_closed(&self) -> bool {
        self.open.by_source.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Waits until a connection is closed, at most until `end`.
    pub(super) async fn one_closed(&self, end: Instant) {
        let _ = timeout_at(end, self.open.closed.notified()).await;
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
            if let Some(permit) = self.permit(source(peer.ip())) {
                tokio::spawn(self.clone().converse(stream, peer.ip().to_canonical(), permit));
            }
        }
    }

    /// A permit for a connection from `source`, if the limits allow one.
    fn permit(&self, source: IpAddr) -> Option<Permit> {
        let limits = self.site.limits();
        let mut by_source = self.open.by_source.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = by_source.values().sum();
        let own = by_source.get(&source).copied().unwrap_or(0);
        let refusal = if all >= limits.connections {
            Some(Refusal::Connections)
        } else if own >= limits.connections_per_source {
            Some(Refusal::Source)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.site.counters().refuse(refusal);
            return None;
        }
        by_source.insert(source, own + 1);
        self.site.counters().open.up();
        Some(Permit { source, open: self.open.clone(), site: self.site.clone() })
    }

    /// Serves one connection; its errors end it alone.
    async fn converse(self, stream: TcpStream, peer: IpAddr, permit: Permit) {
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
        drop(permit);
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
                .max_header_list_size(limits.head)
                .max_send_buf_size(256 << 10)
                .keep_alive_interval(limits.timeout)
                .keep_alive_timeout(limits.timeout)
                .serve_connection(io, service);
            self.until_stopped(connection, http2::Connection::graceful_shutdown).await;
        } else {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.timeout)
                .max_buf_size((limits.head as usize).max(8192))
                .serve_connection(io, service);
            self.until_stopped(connection, http1::Connection::graceful_shutdown).await;
        }
    }

    /// Drives a connection until it ends. When the server stops, requests on their way are still answered.
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

#[cfg(test)]
mod tests {
    use super::source;
    use std::net::IpAddr;

    #[test]
    fn a_source_is_an_ipv4_address_or_an_ipv6_64() {
        let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (address, counted) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(source(parse(address)), parse(counted), "{address}");
        }
    }
}
