//! Who is who: TLS 1.3, both sides proven, by certificates or by a key that all stations share.
//!
//! The keys and certificates are used as psock uses them (docs/decisions/143-pre-shared-keys.md). A certificate
//! proves a station's name: it must hold it as a DNS name. A shared key proves that the other side is of
//! the mesh; which station it is follows from its address.

use super::admission::Proof;
use crate::config::SecurityConfig;
use psock::{PresharedKey, Security, SecurityError};
use rustls::{
    ServerConnection,
    pki_types::{CertificateDer, ServerName},
    server::ParsedCertificate,
};
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The protocol's name in ALPN (RFC 7301).
const PROTOCOL: &[u8] = b"nigh-probe/1";

/// What this station shows and expects.
#[derive(Clone)]
pub struct Tls {
    /// For connections to others.
    pub connector: TlsConnector,
    /// For connections of others.
    pub acceptor: TlsAcceptor,
    /// Whether certificates name stations.
    named: bool,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("named", &self.named).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads keys and certificates.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn read(config: &SecurityConfig) -> Result<Self, SecurityError> {
        let (security, named) = match config {
            SecurityConfig {
                authority: Some(authority),
                certificate: Some(certificate),
                key: Some(key),
                ..
            } => {
                let [authority, certificate, key] = [authority, certificate, key].map(Clone::clone);
                (Security::Certificates { authority, certificate, key, name: None }, true)
            }
            SecurityConfig { shared_key: Some(file), .. } => {
                (Security::Key(PresharedKey::from_file(file)?), false)
            }
            // `problems` has refused it.
            _ => (Security::Plain, false),
        };
        let none = || rustls::Error::General("neither certificates nor a shared key".to_owned());
        let client = security.client_config(PROTOCOL)?.ok_or_else(none)?;
        let server = security.server_config(PROTOCOL)?.ok_or_else(none)?;
        let (connector, acceptor) = (Arc::new(client).into(), Arc::new(server).into());
        Ok(Self { connector, acceptor, named })
    }

    /// What the other end of a connection has proven.
    pub fn proof(&self, connection: &ServerConnection) -> Proof {
        if !self.named {
            return Box::new(|_| true);
        }
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        let shown = shown.map(|certificate| CertificateDer::clone(certificate).into_owned());
        Box::new(move |name| shown.as_ref().is_some_and(|shown| is_for(shown, name)))
    }
}

/// Whether a certificate, whose authority was checked, holds a name.
fn is_for(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let (Ok(parsed), Ok(name)) =
        (ParsedCertificate::try_from(certificate), ServerName::try_from(name))
    else {
        return false;
    };
    rustls::client::verify_server_name(&parsed, &name).is_ok()
}
