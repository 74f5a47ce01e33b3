//! Requests to ALTO with any `Authorization`, one a line, among those of a client that knows the password; and any
//! `WWW-Authenticate` as a client reads it.
//!
//! A line that begins with `-` gets another challenge, one with `*` lets so many times ten seconds pass as its second
//! byte says, and one with `+` is an answer to the challenge that its second byte chooses, with the count behind it
//! in hexadecimal digits. Any other line is the value of both fields. Nobody else is let in, no count of a nonce is
//! taken twice or late, and every refusal has one of the reasons.

use axum::http::{HeaderMap, HeaderValue, Method, Uri, header::AUTHORIZATION};
use config::hex;
use oracle::alto::{
    AltoConfig,
    auth::{
        Gate,
        header::{Challenge, Credentials, challenge},
    },
    counters::Refusal,
};
use ring::digest;
use std::{
    collections::BTreeSet,
    str,
    time::{Duration, Instant},
};

const REALM: &str = "http-auth@example.org";
const PATH: &str = "/dir/index.html";
/// Seconds for which a nonce may be used, and how far counts may be behind the highest one.
const LIFETIME: u64 = 600;
const WINDOW: u32 = 64;

/// The user of the RFC's examples, which are among the seeds.
fn gate() -> Gate {
    let text = "[[user]]\nname = \"Mufasa\"\npassword = \"Circle of Life\"";
    let config: AltoConfig = toml::from_str(text).expect("it parses");
    Gate::new(REALM.to_owned(), &config.users).expect("a password")
}

/// What the user answers to a challenge (RFC 7616 section 3.4.1).
fn answer(nonce: &str, count: u32) -> String {
    let hash =
        |text: String| hex::encode(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    let (a1, a2) = (hash(format!("Mufasa:{REALM}:Circle of Life")), hash(format!("GET:{PATH}")));
    let response = hash(format!("{a1}:{nonce}:{count:08x}:c:auth:{a2}"));
    format!(
        "Digest username=\"Mufasa\", realm=\"{REALM}\", uri=\"{PATH}\", algorithm=SHA-256, \
         nonce=\"{nonce}\", nc={count:08x}, cnonce=\"c\", qop=auth, response=\"{response}\""
    )
}

/// A challenge that the client has, and which counts it has used.
struct Given {
    nonce: String,
    second: u64,
    used: BTreeSet<u32>,
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let (gate, begin) = (gate(), Instant::now());
    let (mut second, mut given) = (0, Vec::new());
    let check = |value: &[u8], second| {
        let headers = HeaderValue::from_bytes(value).ok()?;
        let headers = HeaderMap::from_iter([(AUTHORIZATION, headers)]);
        let now = begin + Duration::from_secs(second);
        Some(gate.check(&Method::GET, &Uri::from_static(PATH), &headers, now))
    };
    for line in data.split(|byte| *byte == b'\n').take(256) {
        match line {
            [b'-', ..] => {
                let now = begin + Duration::from_secs(second);
                let text = gate.challenge(Refusal::Anonymous, now);
                let Challenge { nonce, realm, .. } = Challenge::parse(&text).expect("it parses");
                assert_eq!(realm, REALM);
                given.push(Given { nonce, second, used: BTreeSet::new() });
            }
            [b'*', tens, ..] => second += 10 * u64::from(*tens),
            [b'+', which, count @ ..] if !given.is_empty() => {
                let which = usize::from(*which) % given.len();
                let Given { nonce, second: made, used } = &mut given[which];
                let count = str::from_utf8(count).ok();
                let count = count.and_then(|count| u32::from_str_radix(count, 16).ok());
                let Some(count) = count.filter(|count| *count > 0) else { continue };
                let result = check(answer(nonce, count).as_bytes(), second).expect("a value");
                let late = used.last().is_some_and(|last| last.saturating_sub(count) >= WINDOW);
                let right = match () {
                    () if second - *made > LIFETIME || late => Err(Refusal::Nonce),
                    () if used.contains(&count) => Err(Refusal::Replay),
                    () => Ok(()),
                };
                assert_eq!(result, right);
                if right.is_ok() {
                    used.insert(count);
                }
            }
            _ => stranger(line, check(line, second)),
        }
    }
}

/// What somebody without the password says.
fn stranger(line: &[u8], result: Option<Result<(), Refusal>>) {
    if let Some(result) = result {
        let refusal = result.expect_err("refused");
        let reasons = [Refusal::Credentials, Refusal::Uri, Refusal::Password, Refusal::Nonce];
        assert!(reasons.contains(&refusal), "{refusal:?}");
    }
    let Ok(text) = str::from_utf8(line) else { return };
    if let Ok(credentials) = Credentials::parse(text) {
        assert!(credentials.count > 0);
    }
    if let Ok(read) = Challenge::parse(text) {
        assert_eq!(Challenge::parse(&challenge(&read)), Ok(read));
    }
}
