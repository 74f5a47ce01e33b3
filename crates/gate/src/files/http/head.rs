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

/// The longest word that a message begins with: `UPDATEREDIRECTREF` (RFC 4437) has 17 letters.
const LONGEST: usize = 20;

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

/// What a first line says.
struct First<'a> {
    start: Start<'a>,
    /// Whether its version is 1.0.
    old: bool,
    /// Whether all clients that take it read the same.
    plain: bool,
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
        let word = bytes.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        word.len() <= LONGEST && word.iter().all(u8::is_ascii_graphic)
    }

    /// Whether more bytes could make these a response's beginning.
    pub(super) fn may_answer(bytes: &[u8]) -> bool {
        begin_alike(bytes.trim_ascii_start(), b"HTTP/", |one, other| {
            one.eq_ignore_ascii_case(&other)
        })
    }

    /// Whether these bytes begin like a response to all clients: wget takes anything else for one of
    /// HTTP/0.9.
    pub(super) fn answers_plainly(bytes: &[u8]) -> bool {
        begin_alike(bytes, b"HTTP/", |one, other| *one == other)
    }

    fn read(line: &'a [u8]) -> Option<First<'a>> {
        if let Some(version) = line.get(..5)
            && version.eq_ignore_ascii_case(b"HTTP/")
        {
            return Some(Self::status_line(line));
        }
        let plain = |start| First { start, old: false, plain: true };
        if line.starts_with(b"GNUTELLA") {
            return Some(plain(Self::Other));
        }
        let method = word(line)?;
        if method == b"GIV" {
            return Some(plain(Self::Giv));
        }
        let rest = line.get(method.len() + 1..)?.trim_ascii();
        let version = rest.iter().rposition(|byte| *byte == b' ')?;
        let (target, version) = rest.split_at_checked(version)?;
        let version = version.trim_ascii();
        let request = Self::Request { method, target: target.trim_ascii() };
        let known = version.starts_with(b"HTTP/1.") && method.iter().all(u8::is_ascii_graphic);
        known.then(|| First { old: version == b"HTTP/1.0", ..plain(request) })
    }

    /// RFC 9112, section 4. Where the status is none, it is 200 for Chromium.
    fn status_line(line: &'a [u8]) -> First<'a> {
        let blank = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        let (version, rest) = line.split_at_checked(blank).unwrap_or((line, &[]));
        let rest = rest.trim_ascii_start();
        let (digits, reason) = rest.split_at_checked(3).unwrap_or((rest, &[]));
        let status = decimal(digits).filter(|_| matches!(reason.first(), None | Some(b' ')));
        let status = status.filter(|status| (100..1000).contains(status));
        First {
            start: Self::Response {
                status: status.and_then(|it| it.try_into().ok()).unwrap_or(200),
            },
            old: version == b"HTTP/1.0",
            plain: status.is_some()
                && [b"HTTP/1.0", b"HTTP/1.1"].iter().any(|known| version == *known)
                && !line.contains(&b'\t'),
        }
    }
}

/// What is before the first space.
fn word(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(..bytes.iter().take(LONGEST + 1).position(|byte| *byte == b' ')?)
}

/// Whether what both have is the same.
fn begin_alike(bytes: &[u8], other: &[u8], same: impl Fn(&u8, u8) -> bool) -> bool {
    bytes.iter().zip(other).all(|(one, other)| same(one, *other))
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
    /// Whether clients differ on what its body is.
    pub(super) ambiguous: bool,
    old: bool,
    fields: &'a [u8],
}

impl<'a> Head<'a> {
    /// That of a response of HTTP/0.9, which has none.
    pub(super) const NONE: Self =
        Self { start: Start::Response { status: 200 }, ambiguous: false, old: true, fields: &[] };

    /// Reads a whole head.
    pub(super) fn read(head: &'a [u8]) -> Option<Self> {
        let message = head.trim_ascii_start();
        let end = message.iter().position(|byte| *byte == b'\n').unwrap_or(message.len());
        let (line, fields) = message.split_at_checked(end)?;
        let First { start, old, plain } = Start::read(line.trim_ascii_end())?;
        let late = matches!(start, Start::Response { .. }) && !Start::answers_plainly(head);
        let mut read = Self { start, ambiguous: false, old, fields };
        read.ambiguous = !plain
            || late
            || doubtful(head)
            || read.lines().any(malformed)
            || read.length_and_doubt().1;
        Some(read)
    }

    /// The first value of a field, named in lower case.
    pub(super) fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    /// All values of a field.
    pub(super) fn values<'b>(
        &self,
        name: &'b [u8],
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, 'b> {
        self.untrimmed(name).map(trim)
    }

    /// The members of a field that is a list, in all its lines.
    pub(super) fn members<'b>(
        &self,
        name: &'b [u8],
    ) -> impl Iterator<Item = &'a [u8]> + use<'a, 'b> {
        self.values(name).flat_map(|value| value.split(|byte| *byte == b',')).map(trim)
    }

    fn untrimmed<'b>(&self, name: &'b [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'b> {
        self.lines().filter_map(move |line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (own, value) = line.split_at_checked(colon)?;
            // A space before the colon is no field (RFC 9112, section 5.1), but clients read it as one.
            trim(own).eq_ignore_ascii_case(name).then(|| value.get(1..).unwrap_or_default())
        })
    }

    /// The lines behind the first.
    fn lines(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let lines = self.fields.split(|byte| *byte == b'\n');
        lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// RFC 9112, section 6.3, without what the request and the status say.
    pub(super) fn length(&self) -> Body {
        self.length_and_doubt().0
    }

    /// The same, and whether clients differ on it.
    fn length_and_doubt(&self) -> (Body, bool) {
        // A coding overrides a length (point 3). Of HTTP/1.0 Chromium reads no chunks, curl undoes other
        // codings, Python wants nothing but that word, not even a blank behind it.
        let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
        let mut codings = self.untrimmed(b"transfer-encoding");
        let doubt = codings.any(|coding| self.old || !is_chunked(trim_start(coding)));
        if self.members(b"transfer-encoding").any(is_chunked) {
            return (Body::Chunked, doubt);
        }
        // Lengths that differ are no length (point 5); what comes then is read to the end.
        let mut lengths = self.members(b"content-length").map(decimal);
        let Some(first) = lengths.next() else { return (Body::UntilClose, doubt) };
        let list = self.values(b"content-length").any(|value| value.contains(&b','));
        match first {
            Some(length) if lengths.all(|other| other == first) => {
                (Body::Counted(length), doubt || list)
            }
            _ => (Body::UntilClose, true),
        }
    }

    /// A request's body: none without a length (point 7).
    pub(super) fn request_body(&self) -> Body {
        match self.length() {
            Body::UntilClose => Body::Counted(0),
            body => body,
        }
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

/// Whether clients differ on where a line or the head ends in these bytes of one: curl, Chromium and
/// Python each see an end in some CR without LF, and a zero byte ends what curl and wget read of a line.
pub(super) fn doubtful(bytes: &[u8]) -> bool {
    bytes.contains(&0)
        || bytes.windows(2).any(|pair| matches!(pair, [b'\r', next] if *next != b'\n'))
}

/// Whether a line is no field: some clients skip it, for Python it ends the head. With a blank before
/// the colon or at its beginning (RFC 9112, section 5.2) it is a field to some, to others the rest of
/// the line before.
fn malformed(line: &[u8]) -> bool {
    let mark = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let colon = line.iter().position(|byte| *byte == b':');
    let name = colon.and_then(|colon| line.get(..colon)).unwrap_or_default();
    !line.is_empty() && (name.is_empty() || !name.iter().all(mark))
}

/// Whether these bytes, which are no response of HTTP/1, are one of HTTP/0.9 to all clients that know
/// it: Chromium looks for `HTTP` at the first five places, Firefox for `HTTP/1.` in eleven bytes and at the
/// beginning for ICY (SHOUTcast).
pub(super) fn is_old(bytes: &[u8]) -> bool {
    let begins = bytes.get(..AHEAD).unwrap_or(bytes);
    let mut ends = (0..begins.len()).filter_map(|at| begins.get(at..));
    !ends.any(|end| begin_alike(end, b"HTTP", |one, other| one.eq_ignore_ascii_case(&other)))
        && !bytes.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"ICY"))
}

/// Bytes by which [`is_old`] judges.
pub(super) const AHEAD: usize = 16;

/// A chunk's size; none when it is no number of at most 15 hexadecimal digits behind its zeros.
pub(super) fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?.trim_ascii();
    let zeros = size.iter().take_while(|byte| **byte == b'0').count();
    let digits = size.get(zeros..)?;
    if size.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    // None behind zeros are zero.
    u64::from_str_radix(std::str::from_utf8(size.get(zeros.saturating_sub(1)..)?).ok()?, 16).ok()
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

/// A number that clients can count to.
fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = trim(digits);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    number.try_into().ok()
}

/// Without the blanks around it: no other byte is one to all clients.
fn trim(bytes: &[u8]) -> &[u8] {
    let mut bytes = trim_start(bytes);
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

fn trim_start(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}
