//! One connection's records: bytes of the socket on one side, bytes of the protocol on the other.
//!
//! rustls is used without its own buffers: records are decrypted from where the socket's bytes lie,
//! and encrypted to where the socket takes them from.

use crate::{buffer::Buffer, error::PathError, security::Tls};
use rustls::{
    ClientConfig, Error, ServerConfig,
    client::UnbufferedClientConnection,
    pki_types::ServerName,
    server::UnbufferedServerConnection,
    unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus},
};
use std::sync::Arc;

/// Bytes that a record has besides what it carries: header, type, tag (RFC 8446, section 5.2).
const RECORD_OVERHEAD: usize = 5 + 1 + 16;

/// Bytes that a record carries at most (RFC 8446, section 5.1).
pub(crate) const RECORD_BYTES: usize = 16 * 1024;

/// How bytes of the protocol become bytes of the socket and back.
pub(crate) enum Records {
    /// As they are.
    Plain,
    /// The connecting end of TLS.
    Client(Box<UnbufferedClientConnection>),
    /// The accepting end of TLS.
    Server(Box<UnbufferedServerConnection>),
}

/// What a look at the socket's bytes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The handshake goes on when more has come and what is to be sent was sent.
    Handshake,
    /// Everything that was there is taken.
    Open,
    /// The peer has announced that nothing more comes.
    Closed,
}

/// Takes all that `incoming` holds; the two types of connection have no common trait.
macro_rules! take {
    ($connection:expr, $incoming:expr, $out:expr, $sink:expr) => {{
        loop {
            let UnbufferedStatus { mut discard, state } =
                $connection.process_tls_records($incoming.filled());
            let mut done = None;
            let mut failed = None;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        $sink(record.payload)?;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(|to| data.encode(to), $out)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::BlockedHandshake) => done = Some(Progress::Handshake),
                Ok(ConnectionState::WriteTraffic(_)) => done = Some(Progress::Open),
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    done = Some(Progress::Closed);
                }
                Ok(_) => failed = Some(Error::General("early data was not asked for".to_owned())),
                Err(error) => failed = Some(error),
            }
            $incoming.consume(discard);
            if let Some(error) = failed {
                // The alert with the reason for the peer, if there is one. rustls remembers places in the
                // bytes that it saw, so it must see what is left of them, and it must not be asked more
                // than once after an error.
                if let Ok(ConnectionState::EncodeTlsData(mut data)) =
                    $connection.process_tls_records($incoming.filled()).state
                {
                    encode(|to| data.encode(to), $out)?;
                }
                break Err(error.into());
            }
            if let Some(progress) = done {
                break Ok(progress);
            }
        }
    }};
}

/// Encrypts `bytes` into `out`, after what the handshake still has to say. All whole records of
/// `incoming` were taken before.
macro_rules! put {
    ($connection:expr, $bytes:expr, $incoming:expr, $out:expr) => {{
        loop {
            let UnbufferedStatus { discard, state } =
                $connection.process_tls_records($incoming.filled());
            let mut done = None;
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    done = Some(encrypt(|to| traffic.encrypt($bytes, to), $bytes.len(), $out));
                }
                ConnectionState::EncodeTlsData(mut data) => encode(|to| data.encode(to), $out)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                _ => done = Some(Err(Error::HandshakeNotComplete.into())),
            }
            $incoming.consume(discard);
            if let Some(done) = done {
                break done;
            }
        }
    }};
}

impl Records {
    /// The connecting end; `name` is whom it expects when the configuration does not say.
    pub(crate) fn connecting(
        tls: &Tls<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, PathError> {
        let Tls::On { config, name: wanted } = tls else { return Ok(Self::Plain) };
        let name = wanted.clone().unwrap_or(name);
        let connection = UnbufferedClientConnection::new(Arc::clone(config), name)?;
        Ok(Self::Client(Box::new(connection)))
    }

    /// The accepting end.
    pub(crate) fn accepting(tls: &Tls<ServerConfig>) -> Result<Self, PathError> {
        let Tls::On { config, .. } = tls else { return Ok(Self::Plain) };
        Ok(Self::Server(Box::new(UnbufferedServerConnection::new(Arc::clone(config))?)))
    }

    /// Takes the socket's bytes that are whole records, gives what they carry to `sink`, and puts
    /// what TLS has to answer into `out`.
    pub(crate) fn take(
        &mut self,
        incoming: &mut Buffer,
        out: &mut Buffer,
        mut sink: impl FnMut(&[u8]) -> Result<(), PathError>,
    ) -> Result<Progress, PathError> {
        match self {
            Self::Plain => {
                let count = incoming.len();
                if count > 0 {
                    sink(incoming.filled())?;
                    incoming.consume(count);
                }
                Ok(Progress::Open)
            }
            Self::Client(connection) => take!(connection, incoming, out, sink),
            Self::Server(connection) => take!(connection, incoming, out, sink),
        }
    }

    /// Puts bytes of the protocol into `out` for the socket; `incoming` is what [`Records::take`] has
    /// left.
    pub(crate) fn put(
        &mut self,
        bytes: &[u8],
        incoming: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<(), PathError> {
        match self {
            Self::Plain => {
                out.extend(bytes);
                Ok(())
            }
            Self::Client(connection) => put!(connection, bytes, incoming, out),
            Self::Server(connection) => put!(connection, bytes, incoming, out),
        }
    }

    /// Whether the peer's certificate holds `name`.
    pub(crate) fn peer_is(&self, name: &ServerName<'_>) -> Result<(), Error> {
        let Self::Server(connection) = self else { return Ok(()) };
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.ok_or(Error::NoCertificatesPresented)?;
        let parsed = rustls::server::ParsedCertificate::try_from(certificate)?;
        rustls::client::verify_server_name(&parsed, name)
    }
}

fn encode(
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
    out: &mut Buffer,
) -> Result<(), Error> {
    let mut room = RECORD_BYTES;
    loop {
        match encode(out.room(room)) {
            Ok(count) => {
                out.fill(count);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(error)) if error.required_size > room => {
                room = error.required_size;
            }
            Err(error) => return Err(Error::General(error.to_string())),
        }
    }
}

fn encrypt(
    mut encrypt: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
    length: usize,
    out: &mut Buffer,
) -> Result<(), PathError> {
    let mut room = length + (length / RECORD_BYTES + 1) * RECORD_OVERHEAD;
    loop {
        match encrypt(out.room(room)) {
            Ok(count) => {
                out.fill(count);
                return Ok(());
            }
            // New keys are announced before what they encrypt.
            Err(EncryptError::InsufficientSize(error)) if error.required_size > room => {
                room = error.required_size;
            }
            Err(EncryptError::InsufficientSize(_)) => room += RECORD_BYTES,
            Err(error) => return Err(Error::General(error.to_string()).into()),
        }
    }
}
