//! Headers and a body (RFC 2045, as far as MSN Messenger used it).

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use std::borrow::Cow;

/// Most headers that are looked at.
const MOST_HEADERS: usize = 64;

/// BASE64 as clients wrote it: padded or not.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The headers and the body of a payload.
#[derive(Debug)]
pub(super) struct Mime<'a> {
    headers: Vec<(String, &'a [u8])>,
    body: &'a [u8],
}

impl<'a> Mime<'a> {
    /// Takes bytes apart; without an empty line all are headers.
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let mut headers = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() && headers.len() < MOST_HEADERS {
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            let line = line.trim_ascii();
            if line.is_empty() {
                break;
            }
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (name, value) = line.split_at(colon);
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            headers.push((name, value.get(1..).unwrap_or_default().trim_ascii()));
        }
        Self { headers, body: rest }
    }

    /// The value of a header, its name in lower case.
    pub(super) fn value(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|(it, _)| it == name).map(|&(_, value)| value)
    }

    /// The type of the body, in lower case and without parameters; empty where it is not said.
    pub(super) fn kind(&self) -> String {
        let value = self.value("content-type").unwrap_or_default();
        let kind = value.split(|&byte| byte == b';').next().unwrap_or_default();
        String::from_utf8_lossy(kind.trim_ascii()).to_ascii_lowercase()
    }

    /// The body, decoded if it is in BASE64; what cannot be decoded stays as it is.
    pub(super) fn body(&self) -> Cow<'a, [u8]> {
        let encoding = self.value("content-transfer-encoding").unwrap_or_default();
        if encoding.eq_ignore_ascii_case(b"base64") {
            let text: Vec<u8> =
                self.body.iter().copied().filter(|it| !it.is_ascii_whitespace()).collect();
            if let Ok(bytes) = BASE64.decode(text) {
                return Cow::Owned(bytes);
            }
        }
        Cow::Borrowed(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_with_an_empty_line() {
        let mime =
            Mime::read(b"A: 1\r\nContent-Type: Text/Plain; charset=UTF-8\r\n\r\nbody\r\n\r\nB: 2");
        assert_eq!(mime.value("a"), Some(&b"1"[..]));
        assert_eq!(mime.value("b"), None);
        assert_eq!(mime.kind(), "text/plain");
        assert_eq!(&*mime.body(), b"body\r\n\r\nB: 2");
        assert_eq!(&*Mime::read(b"A: 1").body(), b"");
    }

    #[test]
    fn a_body_in_base64_is_decoded_with_and_without_padding() {
        for (body, expected) in [
            ("aGVsbG8gd29ybGQ=", &b"hello world"[..]),
            ("aGVsbG8g\r\nd29ybGQ", b"hello world"),
            ("not base64!", b"not base64!"),
        ] {
            let text = format!("Content-Transfer-Encoding: BASE64\r\n\r\n{body}");
            assert_eq!(&*Mime::read(text.as_bytes()).body(), expected);
        }
    }
}
