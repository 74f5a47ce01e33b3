//! TLS for tokio-postgres by rustls: the server's certificate must be signed by the configured authority
//! and bear the name that was asked for. Without channel binding (RFC 5929), which SCRAM-PLUS would need.

use rustls::pki_types::ServerName;
use std::{
    future::Future,
    io,
    path::Path,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::TlsConnector;

/// Makes connections over TLS.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// With the certificates of who signs the server's.
    pub(super) fn new(authority: &Path) -> Result<Self, tls::Error> {
        tls::client_config(tls::roots(authority)?).map(|config| Self(config.into()))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Connect;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connect, Self::Error> {
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Connect { connector: self.0.clone(), name })
    }
}

/// One handshake.
pub(super) struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Connect {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(Stream(self.connector.connect(self.name, socket).await?)) })
    }
}

/// A stream over TLS.
pub(super) struct Stream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
