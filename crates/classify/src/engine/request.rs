//! How a connection begins that carries HTTP/1 (RFC 9112): the head of its first request.

use crate::{
    p2p::{KEPT, http::Message},
    tls,
};

/// The methods of RFC 9110 and RFC 5789, but CONNECT: what that carries is another protocol.
const METHODS: [&[u8]; 8] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"TRACE ", b"PATCH "];
/// Bytes of the longest request line that servers take (RFC 9112, section 3, wants 8000).
const LONGEST: usize = KEPT;

/// What was found at the beginning of a client's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    /// It may be one.
    More,
    /// It is none, or one whose head is too long.
    Not,
    /// The head is whole.
    Head(Message<'a>),
}

pub(super) fn read(bytes: &[u8]) -> Request<'_> {
    let begins = |method: &&&[u8]| method.iter().zip(bytes).all(|(method, bytes)| method == bytes);
    let Some(method) = METHODS.iter().find(begins) else { return Request::Not };
    let room = bytes.len() < LONGEST;
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return if room { Request::More } else { Request::Not };
    };
    let line = bytes.get(method.len()..end).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.ends_with(b" HTTP/1.1") && !line.ends_with(b" HTTP/1.0") {
        return Request::Not;
    }
    match Message::read(bytes) {
        Some(head) => Request::Head(head),
        None if room => Request::More,
        None => Request::Not,
    }
}

/// The name of a host in a field `Host` (RFC 9110, section 7.2).
pub(super) fn host(field: &[u8]) -> Option<String> {
    tls::host_name(field.split(|byte| *byte == b':').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_once_they_are_whole() {
        let whole = b"GET /a HTTP/1.1\r\nhost: a.example:8080\r\n\r\nbody";
        for cut in 0..whole.len() - 4 {
            assert_eq!(read(&whole[..cut]), Request::More, "{cut}");
        }
        let Request::Head(head) = read(whole) else { panic!("no head") };
        assert_eq!(head.field("Host").and_then(host).as_deref(), Some("a.example"));
        for not in ["GETS", "get / HTTP/1.1\r\n", "GET / HTTP/2\r\n", "GET /\r\n", "CONNECT a"] {
            assert_eq!(read(not.as_bytes()), Request::Not, "{not}");
        }
        let long = [b"GET /".to_vec(), vec![b'a'; LONGEST]].concat();
        assert_eq!(read(&long), Request::Not);
    }
}
