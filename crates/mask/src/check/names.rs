//! Names of hosts: those in plain text in a capture, and the search for them.
//!
//! They are read from DNS, multicast DNS and LLMNR (RFC 1035, section 4), from the server's name of a TLS
//! ClientHello (RFC 6066, section 3) and from `Host` of HTTP (RFC 9110, section 7.2), each from one packet:
//! what of a hello or of a head stands in a later segment is not read.

use crate::layer::Kind;
use aho_corasick::{AhoCorasick, MatchKind};
use rustc_hash::FxHashSet;
use std::net::IpAddr;
use wire::Reader;

/// Most names that are looked for.
const NAMES: usize = 10_000;
/// Bytes of the longest name with its labels' lengths (RFC 1035, section 2.3.4).
const LONGEST: usize = 255;
/// Ports of DNS, multicast DNS (RFC 6762) and LLMNR (RFC 4795).
const DNS: [u16; 3] = [53, 5353, 5355];
/// Bytes of an HTTP request in which its `Host` is looked for.
const HEAD: usize = 4096;

/// The names of a capture.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// As DNS writes them, in lower case: each label behind its length, without the root.
    known: FxHashSet<Vec<u8>>,
    /// How often a name found no room.
    pub(super) skipped: u64,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Takes the names in the payload of TCP or UDP with these ports.
    pub(super) fn read(&mut self, transport: Kind, ports: [u16; 2], payload: &[u8]) {
        let is_dns = ports.iter().any(|port| DNS.contains(port));
        if is_dns && transport == Kind::Udp {
            self.message(payload);
        } else if is_dns {
            // Each message is behind its length (RFC 1035, section 4.2.2).
            let mut rest = payload;
            while let Some((length, behind)) = rest.split_first_chunk() {
                let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
                let (message, next) = behind.split_at(length);
                self.message(message);
                rest = next;
            }
        }
        for text in [server_name(payload), http_host(payload)].into_iter().flatten() {
            self.add(labels(text).unwrap_or_default());
        }
    }

    /// Takes the names of a message of DNS, as far as it can be read.
    fn message(&mut self, message: &[u8]) -> Option<()> {
        let mut counts = Reader::new(message.get(4..)?);
        let questions = counts.u16()?;
        let mut records = 0;
        for _ in 0..3 {
            records += u32::from(counts.u16()?);
        }
        let mut at = 12;
        for _ in 0..questions {
            let (asked, end) = name(message, at)?;
            self.add(asked);
            at = end + 4;
        }
        for _ in 0..records {
            let (owner, end) = name(message, at)?;
            self.add(owner);
            let mut fields = Reader::new(message.get(end..)?);
            let data = end + 10;
            // NS, CNAME, SOA, PTR and DNAME begin with a name; before MX's and SRV's stand numbers.
            let before = match fields.u16()? {
                2 | 5 | 6 | 12 | 39 => Some(0),
                15 => Some(2),
                33 => Some(6),
                _ => None,
            };
            if let Some((target, _)) = before.and_then(|before| name(message, data + before)) {
                self.add(target);
            }
            // Class and TTL.
            fields.take(6)?;
            at = data + usize::from(fields.u16()?);
        }
        Some(())
    }

    /// Short words without a dot are in many texts that have nothing to do with a host.
    fn add(&mut self, name: Vec<u8>) {
        let text = text(&name);
        let is_telling = text.len() >= if text.contains(&b'.') { 4 } else { 8 };
        if !is_telling || self.known.contains(&name) {
            return;
        }
        if self.known.len() < NAMES {
            self.known.insert(name);
        } else {
            self.skipped += 1;
        }
    }
}

/// The name at an offset as [`Names`] keeps it, and where what follows it begins.
fn name(message: &[u8], at: usize) -> Option<(Vec<u8>, usize)> {
    let mut name = Vec::new();
    let end = wire::dns::name(message, at, |_, label| {
        if name.len() + label.len() + 1 >= LONGEST {
            return None;
        }
        name.push(label.len() as u8);
        name.extend(label.iter().map(u8::to_ascii_lowercase));
        Some(())
    })?;
    Some((name, end))
}

/// The server's name in a ClientHello that begins here.
fn server_name(payload: &[u8]) -> Option<&[u8]> {
    // A record of handshake with a ClientHello: its length, version and random number.
    let [22, 3, _, _, _, 1, rest @ ..] = payload else { return None };
    let mut hello = Reader::new(rest);
    hello.take(3 + 2 + 32)?;
    // Session, cipher suites and compression; then all extensions behind their length.
    hello.block8()?;
    hello.block16()?;
    hello.block8()?;
    hello.u16()?;
    loop {
        let (kind, mut data) = (hello.u16()?, hello.block16()?);
        if kind == 0 {
            // A list, whose first entry is of type 0: the name of a host.
            data.u16()?;
            return (data.u8()? == 0).then_some(data.block16()?.rest());
        }
    }
}

/// The host of an HTTP request that begins here, if it is a name.
fn http_host(payload: &[u8]) -> Option<&[u8]> {
    let mut lines = payload[..payload.len().min(HEAD)].split(|byte| *byte == b'\n');
    let request = lines.next()?.trim_ascii_end();
    if !request.ends_with(b"HTTP/1.1") && !request.ends_with(b"HTTP/1.0") {
        return None;
    }
    let is_host = |line: &&[u8]| line.get(..5).is_some_and(|it| it.eq_ignore_ascii_case(b"host:"));
    let host = lines.find(is_host)?[5..].trim_ascii();
    let host = host.split(|byte| *byte == b':').next()?;
    let is_address = std::str::from_utf8(host).is_ok_and(|text| text.parse::<IpAddr>().is_ok());
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    (host.iter().all(is_part) && !is_address).then_some(host)
}

/// A name in text as [`Names`] keeps it.
fn labels(text: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    for label in text.strip_suffix(b".").unwrap_or(text).split(|byte| *byte == b'.') {
        name.push(u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?);
        name.extend(label.iter().map(u8::to_ascii_lowercase));
    }
    (name.len() < LONGEST).then_some(name)
}

/// The reverse of [`labels`].
fn text(name: &[u8]) -> Vec<u8> {
    let (mut text, mut rest) = (Vec::new(), name);
    while let Some((length, behind)) = rest.split_first() {
        let (label, next) = behind.split_at(usize::from(*length).min(behind.len()));
        if !text.is_empty() {
            text.push(b'.');
        }
        text.extend(label);
        rest = next;
    }
    text
}

/// What looks for names.
#[derive(Debug)]
pub(super) struct Search {
    /// Each name as text, then as DNS writes it.
    forwards: AhoCorasick,
    backwards: AhoCorasick,
    /// How often one is found at an offset of random bytes.
    pub(super) by_chance: f64,
}

impl Search {
    /// None where there is nothing to look for.
    pub(super) fn new(names: &Names) -> Option<Self> {
        if names.known.is_empty() {
            return None;
        }
        let patterns: Vec<Vec<u8>> =
            names.known.iter().flat_map(|name| [text(name), name.clone()]).collect();
        // A letter has two forms of 256.
        let chance = |pattern: &Vec<u8>| {
            let letters = pattern.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
            2f64.powi(letters as i32 - 8 * pattern.len() as i32)
        };
        let by_chance = patterns.iter().map(chance).sum();
        let backwards = patterns.iter().map(|pattern| pattern.iter().rev().copied().collect());
        let backwards: Vec<Vec<u8>> = backwards.collect();
        let search = |patterns: &[Vec<u8>]| {
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .build(patterns)
                .expect("names are too few and too short for its limit")
        };
        Some(Self { forwards: search(&patterns), backwards: search(&backwards), by_chance })
    }

    /// Says of each name in these bytes whether it is as DNS writes it.
    pub(super) fn find(&self, bytes: &[u8], reversed: bool) -> impl Iterator<Item = bool> {
        let search = if reversed { &self.backwards } else { &self.forwards };
        search.find_iter(bytes).map(|found| found.pattern().as_usize() % 2 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response about `WWW.Example.org` with an alias and a mail server, which point back at it.
    fn response() -> Vec<u8> {
        let mut out = vec![0x12, 0x34, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0];
        out.extend(b"\x03WWW\x07Example\x03org\x00\x00\x01\x00\x01");
        out.extend(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x09\x00\x06\x03cdn\xc0\x10");
        out.extend(b"\xc0\x10\x00\x0f\x00\x01\x00\x00\x00\x09\x00\x09\x00\x0a\x04mail\xc0\x10");
        out
    }

    fn hello(name: &[u8]) -> Vec<u8> {
        let block = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
        let list = block(&[&[0][..], &block(name)].concat());
        let extensions = [&[0, 10][..], &block(&[0; 4]), &[0, 0], &block(&list)].concat();
        let body = [&[3, 3][..], &[7; 32], &[2, 9, 9], &block(&[0x13, 1]), &[1, 0]].concat();
        let body = [body, block(&extensions)].concat();
        [&[22, 3, 1][..], &block(&[&[1, 0, 0, 0][..], &body].concat()), b"more"].concat()
    }

    fn read(transport: Kind, port: u16, payload: &[u8]) -> Vec<String> {
        let mut names = Names::default();
        names.read(transport, [40_000, port], payload);
        let texts = names.known.iter().map(|name| text(name));
        let mut texts: Vec<_> =
            texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect();
        texts.sort();
        texts
    }

    #[test]
    fn names_are_read_from_dns_tls_and_http() {
        let all = ["cdn.example.org", "example.org", "mail.example.org", "www.example.org"];
        assert_eq!(read(Kind::Udp, 53, &response()), all);
        let mut two = Vec::new();
        for message in [response(), response()] {
            two.extend((message.len() as u16).to_be_bytes());
            two.extend(message);
        }
        assert_eq!(read(Kind::Tcp, 53, &two), all);
        assert!(read(Kind::Udp, 54, &response()).is_empty());
        assert_eq!(read(Kind::Tcp, 443, &hello(b"Shop.Example.net")), ["shop.example.net"]);
        let request = b"GET / HTTP/1.1\r\nAccept: */*\r\nhOsT: a.example:8080 \r\n\r\n";
        assert_eq!(read(Kind::Tcp, 80, request), ["a.example"]);
        assert_eq!(read(Kind::Tcp, 80, b"GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n"), [""; 0]);
        assert_eq!(read(Kind::Tcp, 80, b"hello HTTP\r\nHost: a.example\r\n"), [""; 0]);
    }

    #[test]
    fn what_is_cut_or_damaged_gives_what_is_whole() {
        for whole in [response(), hello(b"shop.example.net")] {
            for cut in 0..whole.len() {
                read(Kind::Udp, 53, &whole[..cut]);
                read(Kind::Tcp, 53, &whole[..cut]);
            }
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 0xff;
                read(Kind::Udp, 53, &damaged);
            }
        }
        // The question stays when the answers are missing.
        assert_eq!(read(Kind::Udp, 53, &response()[..40]), ["www.example.org"]);
        // A name that points at itself.
        let mut circle = response();
        circle[12..14].copy_from_slice(&[0xc0, 12]);
        assert!(read(Kind::Udp, 53, &circle).is_empty());
    }

    #[test]
    fn names_are_bounded() {
        let mut names = Names::default();
        for number in 0..NAMES + 7 {
            names.add(labels(format!("h{number}.example").as_bytes()).expect("a name"));
            names.add(labels(b"h0.example").expect("a name"));
        }
        assert_eq!((names.len(), names.skipped), (NAMES, 7));
        // Words that are anywhere are none.
        names.known.clear();
        names.add(labels(b"com").expect("a name"));
        names.add(labels(b"policy").expect("a name"));
        assert_eq!(names.len(), 0);
    }
}
