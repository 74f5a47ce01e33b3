//! TLS for the ALTO server: where its certificate comes from, and how a new one is taken over.
//!
//! RFC 7285 section 8.3.5 asks for TLS; TLS 1.2 and 1.3 are offered (RFC 9240 section 11, RFC 9569
//! section 9 through RFC 9325) with HTTP/2 and HTTP/1.1 by ALPN. The certificate and key come from PEM
//! files, or are made once for a first try and kept in the node's state directory. A reload swaps them
//! behind the handshake: open connections go on with the old ones, and files with a mistake change nothing.

use arc_swap::ArcSwap;
use rustls::{
    InconsistentKeys, ServerConfig, SupportedCipherSuite,
    client::verify_server_name,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName},
    server::{
        ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier,
        danger::ClientCertVerifier,
    },
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use std::{
    fmt, fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Name of the self-signed certificate in the state directory.
const OWN_CERTIFICATE: &str = "alto.crt";
/// Name of its key, readable by its owner alone.
const OWN_KEY: &str = "alto.key";

/// Where the certificate and its key come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// PEM files of the operator.
    Files {
        /// The chain, the server's own certificate first.
        certificate: PathBuf,
        /// The key of the first certificate, not encrypted.
        key: PathBuf,
    },
    /// One made here, for a first try.
    SelfMade {
        /// Where it is kept, so that a client that trusts it once need not do so again.
        directory: PathBuf,
        /// The names and addresses it is for.
        names: Vec<String>,
    },
}

/// The certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file with certificates or a key cannot be used.
    #[error(transparent)]
    File(#[from] tls::Error),
    /// The key is of a kind that cannot be used.
    #[error("the key in {} cannot be used: {reason}; give an ECDSA P-256 or P-384, Ed25519 or RSA key", file.display())]
    Key {
        /// Which file.
        file: PathBuf,
        /// What the TLS library says.
        reason: String,
    },
    /// Key and certificate are not a pair.
    #[error(
        "the key in {} does not belong to the first certificate in {}; put the server's own certificate first, \
         or give its key", key.display(), certificate.display()
    )]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The first certificate cannot be read.
    #[error("the first certificate in {} cannot be used: {reason}", file.display())]
    Certificate {
        /// Which file.
        file: PathBuf,
        /// What the TLS library says.
        reason: String,
    },
    /// An authority of clients cannot be used.
    #[error("{0}; see oracle.alto.client_ca")]
    Authority(tls::Error),
    /// A certificate of our own cannot be made.
    #[error("cannot make a certificate for {}: {reason}; see oracle.alto.host", names.join(", "))]
    Make {
        /// For whom.
        names: Vec<String>,
        /// What the certificate library says.
        reason: String,
    },
    /// A certificate of our own cannot be kept.
    #[error("cannot keep the self-signed certificate in {}: {source}; see node.state", file.display())]
    Keep {
        /// Which file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` prints it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Fingerprint {
        let mut fingerprint = [0; 32];
        let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
        if let SupportedCipherSuite::Tls13(suite) = suite {
            let digest = suite.common.hash_provider.hash(certificate);
            fingerprint.copy_from_slice(digest.as_ref());
        }
        Fingerprint(fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The server's certificate and key, which can be replaced while it serves.
#[derive(Debug)]
pub struct Identity {
    source: Source,
    resolver: Arc<Resolver>,
    provider: Arc<CryptoProvider>,
}

impl Identity {
    /// Reads the certificate and key, or makes them.
    ///
    /// # Errors
    ///
    /// A file is missing, broken, or not what it should be; the error says which and what to do.
    pub fn load(source: Source) -> Result<Identity, TlsError> {
        let provider = tls::provider();
        let key = read(&source, &provider)?;
        let resolver = Arc::new(Resolver(ArcSwap::from_pointee(key)));
        Ok(Identity { source, resolver, provider })
    }

    /// Reads them again; what is in use stays.
    ///
    /// # Errors
    ///
    /// As [`Identity::load`].
    pub fn read(&self) -> Result<Pair, TlsError> {
        read(&self.source, &self.provider).map(Pair)
    }

    /// Uses a pair for connections from now on.
    pub fn replace(&self, pair: Pair) -> Fingerprint {
        self.resolver.0.store(Arc::new(pair.0));
        self.fingerprint()
    }

    /// The fingerprint of the certificate in use.
    pub fn fingerprint(&self) -> Fingerprint {
        self.certificate().map_or(Fingerprint([0; 32]), |der| Fingerprint::of(&der))
    }

    /// The server's own certificate in use.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.resolver.0.load().cert.first().cloned()
    }

    /// Whether the certificate in use is for this host, which is written as in a URI.
    pub(super) fn is_for(&self, host: &str) -> bool {
        let Some(certificate) = self.certificate() else { return false };
        let Ok(certificate) = ParsedCertificate::try_from(&certificate) else { return false };
        let name = ServerName::try_from(host.trim_matches(['[', ']']));
        name.is_ok_and(|name| verify_server_name(&certificate, &name).is_ok())
    }

    /// Settings for the TLS library that follow every reload.
    pub(super) fn config(
        &self,
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<ServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13, &TLS12])?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(self.resolver.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Who verifies clients' certificates: nobody without a file with their authorities. `demanded` says whether a
/// client must show one.
///
/// # Errors
///
/// The file is missing, broken, or holds no certificate of an authority.
pub(super) fn clients(
    file: Option<&Path>,
    demanded: bool,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let Some(file) = file else { return Ok(WebPkiClientVerifier::no_client_auth()) };
    tls::client_verifier(file, demanded).map_err(TlsError::Authority)
}

/// A certificate and its key that were read, were found good, and are not in use yet.
#[derive(Debug)]
pub struct Pair(CertifiedKey);

/// Hands the certificate of the moment to each handshake.
#[derive(Debug)]
struct Resolver(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

fn read(source: &Source, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    match source {
        Source::Files { certificate, key } => read_files(certificate, key, provider),
        Source::SelfMade { directory, names } => {
            let (certificate, key) = (directory.join(OWN_CERTIFICATE), directory.join(OWN_KEY));
            if !certificate.exists() || !key.exists() {
                make(&certificate, &key, names)?;
            }
            let pair = read_files(&certificate, &key, provider)?;
            if let Some(own) = pair.cert.first() {
                let fingerprint = Fingerprint::of(own);
                tracing::info!(%fingerprint, file = %certificate.display(),
                    "ALTO serves with a self-signed certificate: clients must be configured to trust it");
            }
            Ok(pair)
        }
    }
}

fn read_files(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain = tls::chain(certificate)?;
    warn_of_permissions(key, "the key of ALTO's certificate");
    let private = tls::key(key)?;
    CertifiedKey::from_der(chain, private, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() }
        }
        rustls::Error::InvalidCertificate(reason) => {
            TlsError::Certificate { file: certificate.to_owned(), reason: reason.to_string() }
        }
        other => TlsError::Key { file: key.to_owned(), reason: other.to_string() },
    })
}

/// A secret that everybody can read is used, but not in silence.
pub(super) fn warn_of_permissions(file: &Path, what: &str) {
    let Ok(metadata) = fs::metadata(file) else { return };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o007 != 0 {
        tracing::warn!(file = %file.display(), mode = %format!("{mode:o}"),
            "{what} is readable by others: chmod 600");
    }
}

/// Makes a certificate for `names` and keeps it with its key.
fn make(certificate: &Path, key: &Path, names: &[String]) -> Result<(), TlsError> {
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| TlsError::Make { names: names.to_vec(), reason: error.to_string() })?;
    keep(key, &made.signing_key.serialize_pem(), config::file::PRIVATE)?;
    keep(certificate, &made.cert.pem(), 0o644)
}

/// Writes a file as a whole, and its folder where there is none.
fn keep(file: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    let write = || config::file::replace(file, mode, |file| file.write_all(text.as_bytes()));
    folder.and_then(|()| write()).map_err(|source| TlsError::Keep { file: file.to_owned(), source })
}
