//! JA4: what a TLS client looks like, whatever order it shuffles its extensions into.
//!
//! ```text
//! t13d1516h2_8daaf6152771_e5627efa2ab1
//! |||| | |   |            +- extensions sorted, without SNI and ALPN, and signature algorithms in order
//! |||| | |   +- cipher suites, sorted
//! |||| | +- first and last character of the first ALPN
//! |||| +- number of extensions        (both hashes: SHA-256, the first 12 hexadecimal digits)
//! |||+- number of cipher suites
//! ||+- d: names the server, i: does not
//! +- t: TCP, q: QUIC; then the highest version
//! ```

use super::ClientHello;
use config::hex;
use ring::digest::{SHA256, digest};
use std::fmt::Write as _;

/// Extensions that are omitted from the hash, for they change with the server: SNI and ALPN.
const LEFT_OUT: [u16; 2] = [0x0000, 0x0010];

/// What carries the hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TLS over TCP.
    Tcp,
    /// QUIC (RFC 9001).
    Quic,
}

/// The fingerprint of a hello.
pub fn ja4(hello: &ClientHello, carrier: Carrier) -> String {
    let mut out = String::with_capacity(36);
    out.push(match carrier {
        Carrier::Tcp => 't',
        Carrier::Quic => 'q',
    });
    let version = hello.versions.iter().copied().max().unwrap_or(hello.legacy_version);
    out.push_str(version_text(version));
    out.push(if hello.named { 'd' } else { 'i' });
    let count = |list: &[u16]| list.len().min(99);
    let _ = write!(out, "{:02}{:02}", count(&hello.ciphers), count(&hello.extensions));
    out.push_str(&alpn_text(hello.alpn.as_deref()));
    out.push('_');
    let mut ciphers = hello.ciphers.clone();
    ciphers.sort_unstable();
    out.push_str(&short_hash(&listed(&ciphers)));
    out.push('_');
    let mut extensions = hello.extensions.clone();
    extensions.retain(|kind| !LEFT_OUT.contains(kind));
    extensions.sort_unstable();
    let mut text = listed(&extensions);
    if !hello.signatures.is_empty() && !text.is_empty() {
        text.push('_');
        text.push_str(&listed(&hello.signatures));
    }
    out.push_str(&short_hash(&text));
    out
}

const fn version_text(version: u16) -> &'static str {
    match version {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        0xfeff => "d1",
        0xfefd => "d2",
        0xfefc => "d3",
        _ => "00",
    }
}

/// `h2`, `h1` of http/1.1; the hexadecimal digits of bytes that are neither letters nor digits.
fn alpn_text(alpn: Option<&[u8]>) -> String {
    let Some((Some(&first), Some(&last))) = alpn.map(|name| (name.first(), name.last())) else {
        return "00".into();
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return [char::from(first), char::from(last)].iter().collect();
    }
    format!("{:x}{:x}", first >> 4, last & 15)
}

/// `002f,0035`
fn listed(numbers: &[u16]) -> String {
    let mut text = String::with_capacity(numbers.len() * 5);
    for (at, number) in numbers.iter().enumerate() {
        let _ = write!(text, "{}{number:04x}", if at == 0 { "" } else { "," });
    }
    text
}

/// The first 12 hexadecimal digits of SHA-256; zeros for nothing.
fn short_hash(text: &str) -> String {
    if text.is_empty() {
        return "000000000000".into();
    }
    let hash = digest(&SHA256, text.as_bytes());
    hex::encode(&hash.as_ref()[..6])
}
