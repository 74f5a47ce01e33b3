//! Who may ask (RFC 7285 section 8.3.5): HTTP Digest with curl and with a client here, and certificates of clients.

use crate::alto_streams::{
    client::{Client, Reply, tls_as},
    fake::{Served, eventually},
};
use oracle::alto::{
    auth::header::Challenge, server::Access, tls::Fingerprint, updates::service::PARAMS,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use std::{net::SocketAddr, process::Command};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A user whose name and password need care.
fn access() -> Access {
    let users = toml::Table::try_from(json!({ "user": [
        { "name": "cache", "password": "open sesame" },
        { "name": "Jäsøn Doe", "password": "Secret, or \"not\"?" },
    ] }));
    let config: oracle::alto::AltoConfig = users.expect("a table").try_into().expect("users");
    assert_eq!(config.problems(), []);
    Access { users: config.users, realm: "alto@example.net".to_owned(), client_ca: None }
}

/// SHA-256 in hexadecimal digits, by the library's fingerprints.
fn h(text: &str) -> String {
    Fingerprint::of(text.as_bytes()).to_string().replace(':', "").to_lowercase()
}

/// A client's answer to a challenge (RFC 7616 section 3.4.1).
fn answer(reply: &Reply, password: &str, method: &str, uri: &str, count: u32) -> String {
    let challenge = Challenge::parse(reply.header("www-authenticate")).expect("a challenge");
    let Challenge { realm, nonce, opaque, .. } = challenge;
    let (a1, a2) = (h(&format!("cache:{realm}:{password}")), h(&format!("{method}:{uri}")));
    let response = h(&format!("{a1}:{nonce}:{count:08x}:c:auth:{a2}"));
    format!(
        "Digest username=\"cache\", realm=\"{realm}\", uri=\"{uri}\", algorithm=SHA-256, \
         nonce=\"{nonce}\", nc={count:08x}, cnonce=\"c\", qop=auth, response=\"{response}\", \
         opaque=\"{opaque}\""
    )
}

/// Over HTTP/2 and HTTP/1.1: each refusal is a status, a challenge and a reason that is counted.
#[tokio::test]
async fn digest_from_a_client() {
    let served = Served::guarded(access());
    for mut client in [served.client().await, served.old_client().await] {
        let asked = client.get("/net").await;
        assert_eq!(asked.status, 401);
        let challenge = asked.header("www-authenticate");
        assert!(challenge.starts_with("Digest realm=\"alto@example.net\", qop=\"auth\", "));
        assert!(!Challenge::parse(challenge).expect("a challenge").stale);
        for (password, uri, count, status, stale) in [
            ("open sesame", "/net", 1, 200, false),
            ("open sesame", "/net", 1, 401, true),
            ("open sesame", "/net", 2, 200, false),
            ("Open Sesame", "/net", 3, 401, false),
            ("open sesame", "/costs", 3, 400, false),
        ] {
            let credentials = answer(&asked, password, "GET", uri, count);
            let reply = client.request("GET", "/net", &[("authorization", &credentials)], "").await;
            assert_eq!(reply.status, status, "{credentials}");
            let challenge = Challenge::parse(reply.header("www-authenticate"));
            assert_eq!(challenge.is_ok(), status != 200);
            assert_eq!(challenge.is_ok_and(|challenge| challenge.stale), stale);
        }
        for garbage in ["Basic Y2FjaGU6b3BlbiBzZXNhbWU=", "Digest", "Digest \"", "\"", "Digest a=b"]
        {
            let reply = client.request("GET", "/net", &[("authorization", garbage)], "").await;
            assert_eq!(reply.status, 401, "{garbage}");
        }
        assert_eq!(client.get("/none").await.status, 401, "what there is, is not disclosed either");
    }
    for (reason, count) in
        [("anonymous", 4), ("credentials", 10), ("password", 2), ("uri", 2), ("replay", 2)]
    {
        assert_eq!(served.refused(reason), count, "{reason}");
    }
}

/// A nonce of the server's life before: the client asks again with the new one, without asking its user.
#[tokio::test]
async fn a_nonce_does_not_outlive_its_server() {
    let asked = Served::guarded(access()).client().await.get("/net").await;
    let served = Served::guarded(access());
    let mut client = served.client().await;
    let credentials = answer(&asked, "open sesame", "GET", "/net", 1);
    let stale = client.request("GET", "/net", &[("authorization", &credentials)], "").await;
    assert_eq!((stale.status, served.refused("nonce")), (401, 1));
    assert!(Challenge::parse(stale.header("www-authenticate")).expect("a challenge").stale);
    let credentials = answer(&stale, "open sesame", "GET", "/net", 1);
    let reply = client.request("GET", "/net", &[("authorization", &credentials)], "").await;
    assert_eq!(reply.status, 200);
}

/// No body of an unauthenticated client is read, not even one that is too large; a user's stream is opened and controlled.
#[tokio::test]
async fn unauthenticated_clients_and_streams() {
    let served = Served::guarded(access());
    let mut client = served.client().await;
    let large = "x".repeat(2 << 20);
    let sent = client.send("POST", "/stream", &[("content-type", PARAMS)], &large).await;
    assert!(sent.is_err() || sent.is_ok_and(|(status, ..)| status == 401));
    assert_eq!(served.refused("body"), 0);
    let mut client = served.client().await;
    let body = json!({ "add": { "net": { "resource-id": "net" } } }).to_string();
    let asked = client.request("POST", "/stream", &[("content-type", PARAMS)], &body).await;
    assert_eq!(asked.status, 401);
    let credentials = answer(&asked, "open sesame", "POST", "/stream", 1);
    let headers = [("content-type", PARAMS), ("authorization", &credentials)];
    let (status, ..) = client.send("POST", "/stream", &headers, &body).await.expect("a stream");
    assert_eq!(status, 200);
}

/// curl's result for a resource: its status, over this version of HTTP.
fn curl(address: SocketAddr, version: &str, user: &str, more: &[&str]) -> String {
    let url = format!("https://{address}/net");
    let curl = Command::new("curl")
        .args(["--digest", "-k", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20"])
        .args([version, "--noproxy", "*", "-u", user])
        .args(more)
        .arg(url)
        .output()
        .expect("curl, which scripts/setup test installs");
    String::from_utf8(curl.stdout).expect("a status")
}

/// curl, another's implementation of RFC 7616, is let in with the right password alone.
#[tokio::test(flavor = "multi_thread")]
async fn digest_from_curl() {
    let served = Served::guarded(access());
    let address = served.server.addresses()[0];
    for version in ["--http2", "--http1.1"] {
        for (user, status) in [
            ("cache:open sesame", "200"),
            ("cache:open", "401"),
            ("nobody:open sesame", "401"),
            ("Jäsøn Doe:Secret, or \"not\"?", "200"),
        ] {
            assert_eq!(curl(address, version, user, &[]), status, "{version} {user}");
        }
        let body = ["-X", "PUT", "-d", "a body"];
        assert_eq!(curl(address, version, "cache:open sesame", &body), "405");
    }
    assert_eq!(served.refused("password"), 4);
}

/// An authority, and a client's certificate from it.
struct Authority {
    pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(vec![]).expect("an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().expect("a key");
        let params =
            CertificateParams::new(vec!["cache.example.net".to_owned()]).expect("a client");
        let own = params.signed_by(&key, &issuer).expect("a certificate");
        Authority { pem, chain: vec![own.der().clone()], key: key.serialize_der() }
    }

    /// What a client shows.
    fn shown(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain.clone(), PrivateKeyDer::try_from(self.key.clone()).expect("a key"))
    }
}

/// The status line for a client with this certificate; none if the connection is not taken.
async fn status(served: &Served, shown: Option<&Authority>) -> Option<String> {
    let address = served.server.addresses()[0];
    let shown = shown.map(Authority::shown);
    let mut stream = tls_as(address, &served.trusted(), "http/1.1", true, shown).await.ok()?;
    let request = b"GET /net HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.ok()?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.ok()?;
    Some(String::from_utf8_lossy(&reply).lines().next()?.to_owned())
}

/// With authorities alone a certificate is demanded, and one of another authority is no good.
#[tokio::test]
async fn certificates_of_clients() {
    let (known, other) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("clients.pem");
    std::fs::write(&file, &known.pem).expect("written");
    let client_ca = Some(file.clone());
    let served = Served::guarded(Access { client_ca: client_ca.clone(), ..Access::default() });
    assert_eq!(status(&served, Some(&known)).await.as_deref(), Some("HTTP/1.1 200 OK"));
    assert_eq!(status(&served, None).await, None);
    assert_eq!(status(&served, Some(&other)).await, None);
    eventually("both are counted", || served.refused("certificate") == 2).await;
    assert_eq!(served.refused("handshake"), 0);

    // With users too either is enough.
    let served = Served::guarded(Access { client_ca, ..access() });
    assert_eq!(status(&served, Some(&known)).await.as_deref(), Some("HTTP/1.1 200 OK"));
    let asked = status(&served, None).await;
    assert_eq!(asked.as_deref(), Some("HTTP/1.1 401 Unauthorized"));
    assert_eq!(status(&served, Some(&other)).await, None);
    let mut client: Client = served.client().await;
    let credentials = answer(&client.get("/net").await, "open sesame", "GET", "/net", 1);
    let reply = client.request("GET", "/net", &[("authorization", &credentials)], "").await;
    assert_eq!(reply.status, 200);
}

/// At a reload passwords and authorities are read again behind the same paths; a mistake changes nothing.
#[tokio::test]
async fn changed_files_count_after_a_reload() {
    let (old, new) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().expect("a folder");
    let (authorities, password) = (folder.path().join("ca.pem"), folder.path().join("password"));
    std::fs::write(&authorities, &old.pem).expect("written");
    std::fs::write(&password, "open sesame\n").expect("written");
    let users = toml::Table::try_from(json!({ "user": [
        { "name": "cache", "password_file": password.to_str() },
    ] }));
    let config: oracle::alto::AltoConfig = users.expect("a table").try_into().expect("users");
    let access = Access { client_ca: Some(authorities.clone()), users: config.users, ..access() };
    let served = Served::guarded(access);
    let mut client = served.client().await;
    let asked = client.get("/net").await;
    let mut count = 0;
    let mut try_password = async |password: &str| {
        count += 1;
        let credentials = answer(&asked, password, "GET", "/net", count);
        client.request("GET", "/net", &[("authorization", &credentials)], "").await.status
    };
    assert_eq!(try_password("open sesame").await, 200);

    std::fs::write(&password, "new sesame\n").expect("written");
    std::fs::write(&authorities, "nothing").expect("written");
    served.server.renewal().read().expect_err("no authority");
    assert_eq!(try_password("open sesame").await, 200);

    std::fs::write(&authorities, &new.pem).expect("written");
    let renewed = served.server.renewal().read().expect("good files");
    assert_eq!(try_password("open sesame").await, 200, "not in force yet");
    renewed.put_in_force();
    assert_eq!(try_password("open sesame").await, 401);
    assert_eq!(try_password("new sesame").await, 200, "with the nonce from before");
    assert_eq!(status(&served, Some(&new)).await.as_deref(), Some("HTTP/1.1 200 OK"));
    assert_eq!(status(&served, Some(&old)).await, None);
}
