//! The files of the server, read again while it serves: its certificate and key, the authorities of clients'
//! certificates, and passwords. All are read and found good before any of them is applied.

use super::{Site, UserConfig};
use crate::alto::{
    auth::{Users, config::PasswordError},
    tls::{self, Identity, Pair, TlsError},
};
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use std::{fmt, sync::Arc};

/// A file of the server cannot be used; those in force still are.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// The certificate, its key, or an authority of clients.
    #[error(transparent)]
    Certificate(#[from] TlsError),
    /// There is no usable password for a user.
    #[error("a user: {0}")]
    Password(#[from] PasswordError),
    /// The TLS library refuses its settings.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Reads the files of a server again.
#[derive(Clone)]
pub struct Renewal {
    pub(super) identity: Arc<Identity>,
    pub(super) tls: Arc<ArcSwap<ServerConfig>>,
    pub(super) site: Arc<Site>,
}

/// The content of the files now, checked and not in force yet.
pub struct Renewed {
    to: Renewal,
    pair: Pair,
    tls: ServerConfig,
    users: Option<Users>,
}

impl fmt::Debug for Renewed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewed").field("pair", &self.pair).finish_non_exhaustive()
    }
}

impl Renewal {
    /// Reads all files; nothing is in force yet.
    ///
    /// # Errors
    ///
    /// A file is missing, broken, or not what it should be.
    pub fn read(self) -> Result<Renewed, RenewError> {
        let access = self.site.access();
        let users: &[UserConfig] = &access.users;
        let pair = self.identity.read()?;
        let clients = tls::clients(access.client_ca.as_deref(), users.is_empty())?;
        let tls = self.identity.config(clients)?;
        let users = match users {
            [] => None,
            users => Some(Users::read(&access.realm, users)?),
        };
        Ok(Renewed { to: self, pair, tls, users })
    }
}

impl Renewed {
    /// Serves connections from now on with what was read, and requests on all connections by the passwords.
    pub fn put_in_force(self) {
        let Renewed { to, pair, tls, users } = self;
        to.identity.replace(pair);
        to.tls.store(Arc::new(tls));
        if let (Some(gate), Some(users)) = (to.site.gate(), users) {
            gate.replace(users);
        }
    }
}
