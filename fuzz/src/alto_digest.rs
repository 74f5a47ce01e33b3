//! Any `Authorization` of a request to ALTO, and any `WWW-Authenticate` as a client reads it. Nobody is let in, every
//! refusal has one of the reasons, and a challenge that is read is the same when it is written and read again.

use axum::http::{HeaderMap, HeaderValue, Method, Uri, header::AUTHORIZATION};
use oracle::alto::{
    AltoConfig,
    auth::{
        Gate,
        header::{Challenge, Credentials, challenge},
    },
    counters::Refusal,
};
use std::{sync::LazyLock, time::Instant};

/// The user of the seeds; without the server's nonce the right password is no good either.
static GATE: LazyLock<Gate> = LazyLock::new(|| {
    let text = "[[user]]\nname = \"Mufasa\"\npassword = \"Circle of Life\"";
    let config: AltoConfig = toml::from_str(text).expect("it parses");
    Gate::new("http-auth@example.org".to_owned(), &config.users).expect("a password")
});

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(data) {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        let uri = Uri::from_static("/dir/index.html");
        let refusal =
            GATE.check(&Method::GET, &uri, &headers, Instant::now()).expect_err("refused");
        let reasons = [Refusal::Credentials, Refusal::Uri, Refusal::Password, Refusal::Nonce];
        assert!(reasons.contains(&refusal), "{refusal:?}");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(credentials) = Credentials::parse(text) {
        assert!(credentials.count > 0);
    }
    if let Ok(read) = Challenge::parse(text) {
        assert_eq!(Challenge::parse(&challenge(&read)), Ok(read));
    }
}
