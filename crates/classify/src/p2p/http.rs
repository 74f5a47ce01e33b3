//! HTTP/1 heads (RFC 9112) as far as the parsers here need them: of requests and answers that carry
//! peer-to-peer protocols.

/// The head of a message with its body as far as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// The first line without its end.
    pub(crate) line: &'a [u8],
    fields: &'a [u8],
    /// What follows the empty line.
    pub(crate) body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a head that came whole.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let (head, body) = (bytes.get(..head)?, bytes.get(head + 4..)?);
        let (line, fields) = match head.windows(2).position(|window| window == b"\r\n") {
            Some(end) => (head.get(..end)?, head.get(end + 2..)?),
            None => (head, &[][..]),
        };
        Some(Self { line, fields, body })
    }

    /// The fields in order, names as they are written.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.fields.split(|byte| *byte == b'\n').filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b':')?;
            Some((line.get(..at)?, line.get(at + 1..)?.trim_ascii()))
        })
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields().find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v)
    }

    /// Whether it is an answer of HTTP/1 with status 200.
    pub(crate) fn is_ok(&self) -> bool {
        self.line.starts_with(b"HTTP/1.") && self.line.get(8..12) == Some(b" 200")
    }

    /// The body, with the chunks of a chunked one (RFC 9112, section 7.1) put together as far as they
    /// came.
    pub(crate) fn content(&self) -> std::borrow::Cow<'a, [u8]> {
        let chunked = self
            .field("Transfer-Encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case(b"chunked"));
        if !chunked {
            return self.body.into();
        }
        let mut content = Vec::new();
        let mut rest = self.body;
        while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
            let (line, after) = rest.split_at(end);
            let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let length = std::str::from_utf8(digits.trim_ascii())
                .ok()
                .and_then(|digits| usize::from_str_radix(digits, 16).ok());
            let Some(length) = length.filter(|length| *length > 0) else { break };
            let after = after.get(2..).unwrap_or_default();
            content.extend_from_slice(after.get(..length).unwrap_or(after));
            rest = length.checked_add(2).and_then(|end| after.get(end..)).unwrap_or_default();
        }
        content.into()
    }
}

/// The target of a request line `METHOD target HTTP/1.x`.
pub(crate) fn target<'a>(line: &'a [u8], method: &str) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(method.as_bytes())?.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b' ')?;
    let version = rest.get(end + 1..)?;
    (version == b"HTTP/1.1" || version == b"HTTP/1.0").then(|| rest.get(..end)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together_as_far_as_they_came() {
        let text =
            b"HTTP/1.1 200 OK\r\nTransfer-encoding: Chunked\r\nX: y\r\n\r\n4;a=b\r\nspam\r\n\
            3\r\nnigh";
        let message = Message::read(text).unwrap();
        assert!(message.is_ok());
        assert_eq!(message.field("x"), Some(&b"y"[..]));
        assert_eq!(*message.content(), *b"spamnig");
        assert_eq!(Message::read(b"HTTP/1.1 200 OK\r\n\r"), None);
        let huge = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx";
        assert_eq!(*Message::read(huge).unwrap().content(), *b"x");
        assert_eq!(target(b"GET /a?b HTTP/1.1", "GET"), Some(&b"/a?b"[..]));
        assert_eq!(target(b"GET /a HTTP/2", "GET"), None);
    }
}
