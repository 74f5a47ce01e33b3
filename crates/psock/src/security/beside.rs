//! The same proofs for another protocol that the two ends speak beside psock.

use super::{Security, SecurityError, Tls, accepting, connecting};
use rustls::{ClientConfig, ServerConfig};

impl Security {
    /// TLS 1.3 settings of a connecting end that shows and expects what psock's does, for the protocol
    /// with this ALPN name (RFC 7301); `None` for [`Security::Plain`].
    ///
    /// # Errors
    ///
    /// When keys or certificates cannot be used.
    pub fn client_config(&self, protocol: &[u8]) -> Result<Option<ClientConfig>, SecurityError> {
        let Tls::On { config, .. } = connecting(self)? else { return Ok(None) };
        let mut config = ClientConfig::clone(&config);
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Some(config))
    }

    /// The same for an accepting end.
    ///
    /// # Errors
    ///
    /// When keys or certificates cannot be used.
    pub fn server_config(&self, protocol: &[u8]) -> Result<Option<ServerConfig>, SecurityError> {
        let Tls::On { config, .. } = accepting(self)? else { return Ok(None) };
        let mut config = ServerConfig::clone(&config);
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(Some(config))
    }
}
