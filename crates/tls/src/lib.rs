//! Set-up of TLS by rustls: certificates and keys from PEM files, and what is built from them. Each
//! error names the file and what to do.
#![forbid(unsafe_code)]

use config::file::{PrivateError, read_private};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(test)]
mod tests;

/// Largest PEM file that is read, in bytes: some hundred certificates.
const FILE_LIMIT: u64 = 1 << 20;

/// Certificates or a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot open {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file with a key cannot be read, or others may use it.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// A file is not in PEM.
    #[error("{} is not in PEM: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        reason: String,
    },
    /// A file has no certificate.
    #[error(
        "{} holds no certificate (BEGIN CERTIFICATE); give certificates in PEM, of a chain its owner's first",
        .0.display()
    )]
    NoCertificate(PathBuf),
    /// A file has no key.
    #[error("{} holds no private key; give one in PEM, as PKCS #8, RSA or EC", .0.display())]
    NoKey(PathBuf),
    /// A key needs a passphrase.
    #[error(
        "the key in {path} is encrypted, and there is nobody to ask for its passphrase; remove it with \
         `openssl pkey -in {path} -out NEWFILE`", path = .0.display()
    )]
    EncryptedKey(PathBuf),
    /// Certificates are not those of authorities.
    #[error("the authorities in {} cannot be used: {reason}; give their certificates in PEM", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What the TLS library says.
        reason: String,
    },
    /// The TLS library refuses the settings.
    #[error("TLS: {0}")]
    Settings(#[from] rustls::Error),
}

/// The cryptography that all of TLS uses.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The certificates in a file, at least one.
///
/// # Errors
/// When the file cannot be read, is not in PEM, or holds none.
pub fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = read(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| not_pem(path, &error))?;
    if chain.is_empty() {
        return Err(Error::NoCertificate(path.to_owned()));
    }
    Ok(chain)
}

/// The authorities in a file, all of them.
///
/// # Errors
/// As [`chain`], and when a certificate cannot be that of an authority.
pub fn roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots.add(certificate).map_err(|error| bad_authority(path, &error))?;
    }
    Ok(roots)
}

/// The authorities in a long list such as the system's: those that can be used.
///
/// # Errors
/// As [`chain`], and when none can be used.
pub fn usable_roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(chain(path)?);
    if roots.is_empty() {
        return Err(bad_authority(path, &"not one can be read"));
    }
    Ok(roots)
}

/// The key in a file, whoever may read the file.
///
/// # Errors
/// When the file cannot be read, or holds no key that can be used without a passphrase.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    parse_key(path, &read(path)?)
}

/// The key in a file that only its owner may use.
///
/// # Errors
/// As [`key`], and when others may use the file.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    parse_key(path, &read_private(path)?)
}

/// Settings of a client that shows no certificate, for TLS 1.2 and 1.3.
///
/// # Errors
/// When the TLS library refuses them.
pub fn client_config(roots: RootCertStore) -> Result<Arc<ClientConfig>, Error> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Verifies clients' certificates by the authorities in a file; `demanded` says whether a client must show
/// one.
///
/// # Errors
/// As [`roots`].
pub fn client_verifier(path: &Path, demanded: bool) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider());
    let verifier = if demanded { verifier } else { verifier.allow_unauthenticated() };
    verifier.build().map(|verifier| verifier as _).map_err(|error| bad_authority(path, &error))
}

fn parse_key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    let mark = b"BEGIN ENCRYPTED PRIVATE KEY";
    PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        pem::Error::NoItemsFound if text.windows(mark.len()).any(|part| part == mark) => {
            Error::EncryptedKey(path.to_owned())
        }
        pem::Error::NoItemsFound => Error::NoKey(path.to_owned()),
        error => not_pem(path, &error),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > FILE_LIMIT {
        let reason = format!("{size} bytes are more than a certificate needs");
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, reason)));
    }
    fs::read(path).map_err(failed)
}

fn not_pem(path: &Path, error: &pem::Error) -> Error {
    Error::Pem { path: path.to_owned(), reason: error.to_string() }
}

fn bad_authority(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::Authority { path: path.to_owned(), reason: reason.to_string() }
}
