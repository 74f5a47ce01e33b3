//! Connections: taken within limits, in all and by source, through TLS, to HTTP/2 or HTTP/1.1.

use super::{
    counted::Counted,
    dispatch::{Peer, Site},
    places::{Place, Places},
    progress::{Over, Progress, paced},
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
use permits::{Full, source};
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
    sync::watch,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

/// How long a connection that ends may take to answer what is in flight.
const CLOSE: Duration = Duration::from_secs(5);
/// Bytes of bodies that an HTTP/2 client may send before they are read: on a stream and on a connection.
const WINDOWS: (u32, u32) = (64 << 10, 256 << 10);

/// What all connections share.
#[derive(Clone)]
pub(super) struct Connections {
    tls: Arc<ArcSwap<rustls::ServerConfig>>,
    site: Arc<Site>,
    stop: watch::Receiver<bool>,
}

impl Connections {
    pub(super) fn new(
        tls: Arc<ArcSwap<rustls::ServerConfig>>,
        site: Arc<Site>,
        stop: watch::Receiver<bool>,
    ) -> Connections {
        Connections { tls, site, stop }
    }

    fn places(&self) -> &Arc<Places> {
        self.site.places()
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
            match self.places().take(source(peer.ip())) {
                Ok(place) => {
                    tokio::spawn(self.clone().hold(stream, peer.ip().to_canonical(), place));
                }
                Err(full) => self.site.counters().refuse(match full {
                    Full::All => Refusal::Connections,
                    Full::Source => Refusal::Source,
                }),
            }
        }
    }

    /// Serves one connection until it ends or has to make room for others.
    async fn hold(self, stream: TcpStream, peer: IpAddr, place: Place) {
        panics::point("alto");
        let progress = &place.progress;
        tokio::select! {
            () = progress.evicted() => {}
            () = self.converse(stream, peer, progress) => {}
        }
    }

    /// Serves one connection; its errors end it alone.
    async fn converse(&self, stream: TcpStream, peer: IpAddr, progress: &Arc<Progress>) {
        let limits = self.site.limits();
        let _ = stream.set_nodelay(true);
        // A client that vanished while it waits for an update is found out by the kernel.
        let alive = socket2::TcpKeepalive::new()
            .with_time(Duration::from_secs(60))
            .with_interval(Duration::from_secs(15));
        let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&alive);
        let Ok(local) = stream.local_addr() else { return };
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
        let certified = session.peer_certificates().is_some();
        let peer = Peer { address: peer, source: progress.source, local, certified };
        let heads = (!http2).then(|| progress.clone());
        let counted = Counted::new(stream, self.site.counters().clone(), heads);
        progress.touch();
        self.serve(TokioIo::new(counted), http2, peer, progress).await;
    }

    async fn serve<I>(&self, io: I, http2: bool, peer: Peer, progress: &Arc<Progress>)
    where
        I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
    {
        let limits = self.site.limits();
        let (site, exchanges) = (self.site.clone(), progress.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (site, exchange) = (site.clone(), exchanges.begin());
            async move { Ok::<_, Infallible>(paced(site.serve(request, peer).await, exchange)) }
        });
        if http2 {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(limits.requests_per_connection)
                .max_header_list_size(limits.head.0.try_into().unwrap_or(u32::MAX))
                .initial_stream_window_size(WINDOWS.0)
                .initial_connection_window_size(WINDOWS.1)
                .max_send_buf_size(256 << 10)
                .keep_alive_interval(limits.timeout)
                .keep_alive_timeout(limits.timeout)
                .serve_connection(io, service);
            self.until_over(connection, http2::Connection::graceful_shutdown, progress).await;
        } else {
            // Slow heads are found by their progress, which tells them from idle connections.
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(None)
                .max_buf_size((limits.head.0 as usize).max(8192))
                .serve_connection(io, service);
            self.until_over(connection, http1::Connection::graceful_shutdown, progress).await;
        }
    }

    /// Drives a connection until it ends, makes no progress, or is idle for too long. In the last case, and when
    /// the server stops, requests in flight are still answered.
    async fn until_over<C: Future>(
        &self,
        connection: C,
        end: impl FnOnce(Pin<&mut C>),
        progress: &Progress,
    ) {
        let mut connection = pin!(connection);
        let mut stop = self.stop.clone();
        tokio::select! {
            _ = connection.as_mut() => return,
            over = progress.over(self.site.limits().timeout) => {
                if over == Over::Slow {
                    self.site.counters().refuse(Refusal::Slow);
                    return;
                }
            }
            stopped = stop.wait_for(|stop| *stop) => drop(stopped),
        }
        end(connection.as_mut());
        let _ = timeout(CLOSE, connection).await;
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
