//! Certificates: what is wrong with a file, a reload under traffic, the self-signed one.

use crate::alto_streams::{
    client::{Client, tls},
    fake::Served,
};
use oracle::alto::{
    limits::Limits,
    server::RenewError,
    tls::{Fingerprint, Identity, Source, TlsError},
};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Files {
        Files { folder: tempfile::tempdir().expect("a folder") }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        fs::write(&file, text).expect("a file");
        file
    }

    fn load(&self, certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Identity::load(Source::Files { certificate, key })
    }
}

fn made() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate")
}

/// Each mistake is reported with the file, what is wrong and what to do.
#[test]
fn mistakes_in_files() {
    let files = Files::new();
    let (one, two) = (made(), made());
    let certificate = files.write("good.crt", &one.cert.pem());
    let key = files.write("good.key", &one.signing_key.serialize_pem());
    files.load(&certificate, &key).expect("a pair");

    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for (certificate, key, parts) in [
        (files.folder.path().join("none"), key.clone(), ["none", "cannot open"]),
        (key.clone(), key.clone(), ["good.key", "no certificate"]),
        (files.write("1", broken), key.clone(), ["/1", "not in PEM"]),
        (files.write("2", empty), key.clone(), ["/2", "cannot be used"]),
        (certificate.clone(), certificate.clone(), ["good.crt", "no private key"]),
        (certificate.clone(), files.write("3", encrypted), ["/3", "openssl pkey -in"]),
        (certificate.clone(), files.write("4", no_key), ["/4", "give an ECDSA"]),
        (
            certificate.clone(),
            files.write("5", &two.signing_key.serialize_pem()),
            ["/5", "does not belong to"],
        ),
        (files.write("6", &"x".repeat(2 << 20)), key.clone(), ["/6", "more than a certificate"]),
    ] {
        let error = files.load(&certificate, &key).expect_err("an error").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

/// The self-signed certificate: made once, the key for its owner alone, known by its fingerprint.
#[test]
fn the_self_made_certificate_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let load = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Identity::load(Source::SelfMade { directory: folder.path().join("state"), names })
    };
    let first = load(&["localhost", "192.0.2.1"]).expect("made");
    let key = folder.path().join("state/alto.key");
    let mode = fs::metadata(&key).expect("a key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = load(&["localhost"]).expect("read");
    assert_eq!(first.fingerprint(), again.fingerprint());
    let certificate = first.certificate().expect("a certificate");
    assert_eq!(first.fingerprint(), Fingerprint::of(&certificate));
    assert_eq!(first.fingerprint().to_string().len(), 32 * 3 - 1);
    fs::remove_file(&key).expect("removed");
    assert_ne!(load(&["localhost"]).expect("made").fingerprint(), first.fingerprint());
    fs::remove_file(&key).expect("removed");
    assert!(matches!(load(&["ä"]), Err(TlsError::Make { .. })));
}

/// SHA-256 as FIPS 180 gives it for "abc".
#[test]
fn the_fingerprint_is_sha_256() {
    let expected = "BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:\
                    B0:03:61:A3:96:17:7A:9C:B4:10:FF:61:F2:00:15:AD";
    assert_eq!(Fingerprint::of(b"abc").to_string(), expected);
}

/// RFC 7285 section 8.3.5, RFC 9240 section 11: TLS 1.2 and 1.3, and the version of HTTP by ALPN.
#[tokio::test]
async fn versions_of_tls_and_http() {
    let served = Served::new(Limits::default());
    let address = served.server.addresses()[0];
    for newest in [true, false] {
        for alpn in ["h2", "http/1.1"] {
            let stream = tls(address, &served.trusted(), alpn, newest).await.expect("TLS");
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn.as_bytes()));
        }
    }
    assert!(tls(address, &served.trusted(), "spdy/3", true).await.is_err());
}

/// A reload serves the new certificate to new connections, open ones go on, and a mistake changes nothing.
#[tokio::test]
async fn a_reload_keeps_connections() {
    let served = Served::new(Limits::default());
    let address = served.server.addresses()[0];
    let (old, before) = (served.trusted(), served.server.fingerprint());
    let mut client = served.client().await;
    assert_eq!(client.get("/net").await.status, 200);

    let new = made();
    fs::write(served.folder.path().join("alto.crt"), new.cert.pem()).expect("written");
    let error = served.server.renewal().read().expect_err("the key is the old one");
    assert!(matches!(error, RenewError::Certificate(TlsError::Mismatch { .. })));
    assert_eq!(served.server.fingerprint(), before);
    Client::connect(address, &old, true).await.expect("the old certificate is served");

    let key = new.signing_key.serialize_pem();
    fs::write(served.folder.path().join("alto.key"), key).expect("written");
    let renewed = served.server.renewal().read().expect("a pair");
    assert_eq!(served.server.fingerprint(), before, "what was read is not in use yet");
    renewed.put_in_force();
    assert_eq!(served.server.fingerprint(), Fingerprint::of(new.cert.der()));
    assert!(Client::connect(address, &old, true).await.is_err());
    served.client().await;
    assert_eq!(client.get("/net").await.status, 200, "the open connection goes on");
    testbed::wait_until("a refused handshake", std::time::Duration::from_secs(5), || {
        served.refused("handshake") == 1
    })
    .expect("the client's alert");
}
