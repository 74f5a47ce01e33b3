//! Who the peer is: a pre-shared key or certificates, always over TLS 1.3 (RFC 8446).
//!
//! rustls takes no external pre-shared keys. Both ends derive from the 32 bytes that they share, by
//! HKDF (RFC 5869), one Ed25519 key for the connecting end and one for the accepting end, and show
//! them to each other as raw public keys (RFC 7250). Each expects exactly the other's key, so who
//! does not hold the 32 bytes cannot sign the handshake. The stream's keys come from the ephemeral
//! key exchange: who learns the 32 bytes later cannot read what was recorded before.

use config::{
    file::{PrivateError, create_private, read_private},
    hex,
};
use ring::{
    hkdf,
    rand::{SecureRandom, SystemRandom},
};
use rustls::{
    ClientConfig, ServerConfig,
    client::AlwaysResolvesClientRawPublicKeys,
    crypto::{CryptoProvider, ring::sign::any_eddsa_type},
    pki_types::{CertificateDer, InvalidDnsNameError, PrivatePkcs8KeyDer, ServerName},
    server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage},
    sign::CertifiedKey,
    version::TLS13,
};
use std::{
    fmt, io,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};
use verify::Expected;
use zeroize::Zeroizing;

mod beside;
#[cfg(test)]
mod tests;
mod verify;

/// Bytes of a pre-shared key.
const KEY_BYTES: usize = 32;

/// What is before the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410, section 7).
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// What the two derived keys are for, and that they are of this version of the protocol.
const CONNECTING: &[u8] = b"psock 1 connecting end";
const ACCEPTING: &[u8] = b"psock 1 accepting end";

/// How the connections of a session are protected.
#[derive(Clone, Debug)]
pub enum Security {
    /// Not at all: who sees the packets reads the stream, and who can change them can change it and
    /// take it over.
    Plain,
    /// TLS 1.3; both ends hold the same key and nothing else is needed.
    Key(PresharedKey),
    /// TLS 1.3; both ends show a certificate of one authority.
    Certificates {
        /// The authority's certificates (PEM).
        authority: PathBuf,
        /// This end's certificate, then those between it and the authority (PEM).
        certificate: PathBuf,
        /// This end's private key (PEM); readable by its owner only.
        key: PathBuf,
        /// The name (DNS name or address) that the peer's certificate must hold. Without one a
        /// connecting end expects the address it connects to, and a listener takes every
        /// certificate of the authority.
        name: Option<String>,
    },
}

/// A key that both ends hold: 32 random bytes, as text 64 hexadecimal digits.
///
/// It is wiped from memory when dropped and never shown by `Debug`. Someone who connects sees a
/// public key that follows from it, so it must be random ([`PresharedKey::generate`]): a pass phrase
/// could be guessed from there.
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey(Zeroizing<[u8; KEY_BYTES]>);

impl PresharedKey {
    /// A new random key.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn generate() -> io::Result<Self> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        SystemRandom::new().fill(&mut *key).map_err(|_| io::Error::other("no random bytes"))?;
        Ok(Self(key))
    }

    /// The key of these bytes, which must be random.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads a key from a file that holds its 64 hexadecimal digits and that only its owner can read.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, others can read it, or what it holds is no key.
    pub fn from_file(path: &Path) -> Result<Self, SecurityError> {
        let text = read_private(path)?;
        let text = std::str::from_utf8(&text).unwrap_or_default().trim();
        text.parse().map_err(|why| SecurityError::Key { path: path.to_owned(), why })
    }

    /// Writes the key to a new file that only its owner can read (mode 0600).
    ///
    /// # Errors
    ///
    /// When the file is there already or cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = self.to_hex();
        text.push('\n');
        create_private(path, text.as_bytes())
    }

    /// The key as 64 hexadecimal digits: keep it as secret as the key.
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex::encode(&*self.0))
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(..)")
    }
}

/// A text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseKeyError {
    /// It has another length.
    #[error("{0} characters, but a key has 64 hexadecimal digits (make one with `nigh psock key`)")]
    Length(usize),
    /// It has something else than digits.
    #[error("character {0} is not a hexadecimal digit")]
    Digit(usize),
}

impl FromStr for PresharedKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let count = text.chars().count();
        if count != 2 * KEY_BYTES {
            return Err(ParseKeyError::Length(count));
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        for (at, digit) in text.chars().enumerate() {
            let value = digit.to_digit(16).ok_or(ParseKeyError::Digit(at + 1))?;
            if let Some(byte) = key.get_mut(at / 2) {
                *byte = *byte << 4 | value as u8;
            }
        }
        Ok(Self(key))
    }
}

/// Keys or certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// The file of a pre-shared key cannot be used.
    #[error(transparent)]
    File(#[from] PrivateError),
    /// What a file holds is no pre-shared key.
    #[error("{} holds no key: {why}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        why: ParseKeyError,
    },
    /// The file of certificates or of a private key cannot be used.
    #[error(transparent)]
    Pem(#[from] tls::Error),
    /// A name is no DNS name and no address.
    #[error("{name:?} is no DNS name and no address")]
    Name {
        /// The name.
        name: String,
    },
    /// They cannot be used for TLS.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// The TLS configuration of the connecting or the accepting end; none for plain connections.
#[derive(Clone, Debug)]
pub(crate) enum Tls<C> {
    Off,
    On {
        config: Arc<C>,
        /// The name that the peer's certificate must hold.
        name: Option<ServerName<'static>>,
    },
}

/// What a connecting end shows and expects.
pub(crate) fn connecting(security: &Security) -> Result<Tls<ClientConfig>, SecurityError> {
    connecting_with(security, tls::provider())
}

fn connecting_with(
    security: &Security,
    provider: Arc<CryptoProvider>,
) -> Result<Tls<ClientConfig>, SecurityError> {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13])
    };
    let (mut config, name) = match security {
        Security::Plain => return Ok(Tls::Off),
        Security::Key(key) => {
            let (ours, theirs) = (derive(key, CONNECTING)?, derive(key, ACCEPTING)?);
            let config = builder()?
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Expected::new(&theirs, &provider)?))
                .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(ours)));
            (config, None)
        }
        Security::Certificates { authority, certificate, key, name } => {
            let config = builder()?
                .with_root_certificates(tls::roots(authority)?)
                .with_client_auth_cert(tls::chain(certificate)?, tls::private_key(key)?)?;
            (config, name.as_deref().map(server_name).transpose()?)
        }
    };
    // Every connection proves who it is again; there is nothing to resume from.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Tls::On { config: Arc::new(config), name })
}

/// What an accepting end shows and expects.
pub(crate) fn accepting(security: &Security) -> Result<Tls<ServerConfig>, SecurityError> {
    accepting_with(security, tls::provider())
}

fn accepting_with(
    security: &Security,
    provider: Arc<CryptoProvider>,
) -> Result<Tls<ServerConfig>, SecurityError> {
    let builder = || {
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13])
    };
    let (mut config, name) = match security {
        Security::Plain => return Ok(Tls::Off),
        Security::Key(key) => {
            let (ours, theirs) = (derive(key, ACCEPTING)?, derive(key, CONNECTING)?);
            let config = builder()?
                .with_client_cert_verifier(Arc::new(Expected::new(&theirs, &provider)?))
                .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(ours)));
            (config, None)
        }
        Security::Certificates { authority, certificate, key, name } => {
            let config = builder()?
                .with_client_cert_verifier(tls::client_verifier(authority, true)?)
                .with_single_cert(tls::chain(certificate)?, tls::private_key(key)?)?;
            (config, name.as_deref().map(server_name).transpose()?)
        }
    };
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(Tls::On { config: Arc::new(config), name })
}

/// The key pair of one role.
fn derive(key: &PresharedKey, role: &[u8]) -> Result<Arc<CertifiedKey>, SecurityError> {
    let failed = |_| rustls::Error::General("deriving a key".to_owned());
    let mut pkcs8 = Zeroizing::new([0; PKCS8.len() + KEY_BYTES]);
    let (head, seed) = pkcs8.split_at_mut(PKCS8.len());
    head.copy_from_slice(&PKCS8);
    hkdf::Salt::new(hkdf::HKDF_SHA256, b"")
        .extract(&*key.0)
        .expand(&[role], hkdf::HKDF_SHA256)
        .and_then(|okm| okm.fill(seed))
        .map_err(failed)?;
    let signing = any_eddsa_type(&PrivatePkcs8KeyDer::from(&pkcs8[..]))?;
    let Some(public) = signing.public_key() else {
        return Err(rustls::Error::General("a key pair without a public key".to_owned()).into());
    };
    let public = CertificateDer::from(public.to_vec());
    Ok(Arc::new(CertifiedKey::new(vec![public], signing)))
}

fn server_name(name: &str) -> Result<ServerName<'static>, SecurityError> {
    let error = |_: InvalidDnsNameError| SecurityError::Name { name: name.to_owned() };
    ServerName::try_from(name.to_owned()).map_err(error)
}
