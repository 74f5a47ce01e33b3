//! Heads of HTTP/1 messages: the start line, and the fields that say what body follows.

use crate::file_name;

/// Methods that distinguish a request from anything else (RFC 9110, section 9; WebDAV, RFC 4918).
const METHODS: [&[u8]; 17] = [
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"DELETE",
    b"CONNECT",
    b"OPTIONS",
    b"TRACE",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"REPORT",
];

/// The longest word that a message begins with.
const LONGEST: usize = 10;

/// A message's first line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start<'a> {
    /// Of a request.
    Request { method: &'a [u8], target: &'a [u8] },
    /// Of a response.
    Response { status: u16 },
    /// Gnutella: the other side shall ask for a file.
    Giv,
    /// Gnutella's handshake, behind which no HTTP follows.
    Other,
}

impl<'a> Start<'a> {
    /// Whether these bytes begin like a message.
    pub(super) fn begins(bytes: &[u8]) -> bool {
        bytes.starts_with(b"HTTP/1.") || METHODS.iter().any(|method| word(bytes) == Some(method))
    }

    /// Whether more bytes could make these a message's beginning.
    pub(super) fn may_begin(bytes: &[u8]) -> bool {
        // RFC 9112, section 2.2: empty lines before a request are ignored.
        let bytes = bytes.trim_ascii_start();
        match bytes.get(..LONGEST) {
            Some(long) => {
                Self::begins(long) || long.starts_with(b"GNUTELLA") || word(long) == Some(b"GIV")
            }
            None => !bytes.iter().any(|byte| !byte.is_ascii_graphic() && !b" \r\n".contains(byte)),
        }
    }

    fn read(line: &'a [u8]) -> Option<Self> {
        if let Some(rest) = line.strip_prefix(b"HTTP/1.") {
            let status = rest.get(2..5)?;
            let status = std::str::from_utf8(status).ok()?.parse().ok()?;
            return Some(Self::Response { status });
        }
        if line.starts_with(b"GNUTELLA") {
            return Some(Self::Other);
        }
        let method = word(line)?;
        if method == b"GIV" {
            return Some(Self::Giv);
        }
        let rest = line.get(method.len() + 1..)?.trim_ascii();
        let version = rest.iter().rposition(|byte| *byte == b' ')?;
        let (target, version) = rest.split_at_checked(version)?;
        if !version.trim_ascii().starts_with(b"HTTP/1.") {
            return None;
        }
        METHODS.contains(&method).then_some(Self::Request { method, target: target.trim_ascii() })
    }
}

/// What is before the first space.
fn word(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(..bytes.iter().take(LONGEST).position(|byte| *byte == b' ')?)
}

/// How a body's end is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// By its length.
    Counted(u64),
    /// By its last chunk.
    Chunked,
    /// By the connection's end.
    UntilClose,
}

/// A head whose first line was understood.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) start: Start<'a>,
    fields: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads a whole head.
    pub(super) fn read(head: &'a [u8]) -> Option<Self> {
        let head = head.trim_ascii_start();
        let end = head.iter().position(|byte| *byte == b'\n').unwrap_or(head.len());
        let (line, fields) = head.split_at_checked(end)?;
        Some(Self { start: Start::read(line.trim_ascii_end())?, fields })
    }

    /// The first value of a field, named in lower case.
    pub(super) fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    fn values<'b>(&self, name: &'b [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'b> {
        self.fields.split(|byte| *byte == b'\n').filter_map(move |line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (own, value) = line.split_at_checked(colon)?;
            // A space before the colon is no field (RFC 9112, section 5.1), but clients read it as one.
            own.trim_ascii_end()
                .eq_ignore_ascii_case(name)
                .then(|| value.get(1..).unwrap_or_default().trim_ascii())
        })
    }

    /// RFC 9112, section 6.3, without what the request and the status say.
    pub(super) fn length(&self) -> Body {
        // A coding overrides a length (point 3).
        let mut codings =
            self.values(b"transfer-encoding").flat_map(|value| value.split(|b| *b == b','));
        if codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked")) {
            return Body::Chunked;
        }
        let mut lengths =
            self.values(b"content-length").flat_map(|value| value.split(|b| *b == b','));
        let first = lengths.next().and_then(decimal);
        match first {
            // Lengths that differ are no length (point 5); what comes then is read to the end.
            Some(length) if lengths.all(|other| decimal(other) == first) => Body::Counted(length),
            _ => Body::UntilClose,
        }
    }

    /// A request's body: none without a length (point 7).
    pub(super) fn request_body(&self) -> Body {
        match self.length() {
            Body::UntilClose => Body::Counted(0),
            body => body,
        }
    }

    /// A response's body (points 4 to 8).
    pub(super) fn response_body(&self) -> Body {
        self.length()
    }

    /// Whether the body is a form with files (RFC 7578).
    pub(super) fn form(&self) -> bool {
        const FORM: &[u8] = b"multipart/form-data";
        matches!(self.start, Start::Request { .. })
            && self
                .value(b"content-type")
                .and_then(|media| media.get(..FORM.len()))
                .is_some_and(|media| media.eq_ignore_ascii_case(FORM))
    }
}

/// Gathers a head, which ends with an empty line; how many bytes were taken and whether it is whole.
pub(super) fn gather(head: &mut Vec<u8>, bytes: &[u8], limit: usize) -> (usize, bool) {
    let before = head.len();
    // The end may lie on both sides of the seam.
    let from = before.saturating_sub(3);
    let room = limit.saturating_sub(before).min(bytes.len());
    head.extend_from_slice(bytes.get(..room).unwrap_or_default());
    let begins = head.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let from = from.max(begins);
    let tail = head.get(from..).unwrap_or_default();
    let end = tail.iter().enumerate().find_map(|(at, byte)| match tail.get(at + 1..) {
        Some([b'\n', ..]) if *byte == b'\n' => Some(at + 2),
        Some([b'\r', b'\n', ..]) if *byte == b'\n' => Some(at + 3),
        _ => None,
    });
    match end.map(|end| from + end) {
        Some(end) => {
            head.truncate(end);
            (end - before, true)
        }
        None => (room, false),
    }
}

/// A chunk's size; none when it is no number of at most 15 hexadecimal digits.
pub(super) fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?.trim_ascii();
    if size.is_empty() || size.len() > 15 || !size.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
}

/// RFC 9110, section 14.4: `bytes 0-499/1234`, as the first byte and the one behind the last, and the
/// whole length.
pub(super) fn content_range(value: &[u8]) -> Option<((u64, u64), Option<u64>)> {
    let rest = value.get(..5).filter(|unit| unit.eq_ignore_ascii_case(b"bytes"));
    let rest = rest.and_then(|_| value.get(5..))?;
    let rest = rest.strip_prefix(b"=").unwrap_or(rest).trim_ascii();
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    let (range, total) = rest.split_at_checked(slash)?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (first, last) = range.split_at_checked(dash)?;
    let (first, last) = (decimal(first)?, decimal(last.get(1..)?)?);
    let end = last.checked_add(1).filter(|end| first < *end)?;
    Some(((first, end), decimal(total.get(1..)?)))
}

/// `urn:sha1:` and 32 digits of base 32 (RFC 4648), anywhere in these bytes.
pub(super) fn sha1_urn(bytes: &[u8]) -> Option<[u8; 20]> {
    const URN: &[u8] = b"urn:sha1:";
    let at = bytes.windows(URN.len()).position(|part| part.eq_ignore_ascii_case(URN))?;
    file_name::base32(bytes.get(at + URN.len()..)?.get(..32)?)?.try_into().ok()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = digits.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
