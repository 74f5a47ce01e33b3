//! Names of files as they appear in heads, paths and commands.
//!
//! Content-Disposition: RFC 6266 (parameters `filename` and `filename*`), RFC 8187 (extended values).
//! What follows the last slash or backslash is taken, as RFC 6266, section 4.3, asks.

use std::borrow::Cow;

/// Bytes of a name that are kept; file systems allow 255.
pub const MAX: usize = 255;

/// Bytes as text: UTF-8, else ISO 8859-1; control characters become U+FFFD. Rules match on it, so
/// marks of writing direction stay until it is shown.
pub fn text(bytes: &[u8]) -> String {
    let text: Cow<'_, str> = match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// The last part of a path, cut to [`MAX`] bytes; none when nothing is left.
pub fn last_part(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).trim();
    if name.is_empty() || name == "." || name == ".." {
        return None;
    }
    let mut end = name.len().min(MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).map(str::to_owned)
}

/// A request target without its query, in which what lets people in may stand.
pub fn without_query(target: &[u8]) -> String {
    text(target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or(target))
}

/// A request target's file name: the last part of its path, percent-decoded (RFC 3986, section 2.1).
pub fn of_target(target: &[u8]) -> Option<String> {
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or(target);
    let path = match path.windows(3).position(|three| three == b"://") {
        // Absolute form, as proxies get it: what follows the authority.
        Some(at) => {
            let rest = path.get(at + 3..).unwrap_or_default();
            let slash = rest.iter().position(|byte| *byte == b'/')?;
            rest.get(slash..).unwrap_or_default()
        }
        None => path,
    };
    let part = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    last_part(&text(&percent_decoded(part)))
}

/// Bytes with `%XX` replaced; what is no such escape stays as it is.
pub fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

/// Base 32 without padding (RFC 4648, section 6), upper or lower case.
pub fn base32(digits: &[u8]) -> Option<Vec<u8>> {
    let (mut value, mut bits, mut bytes) = (0_u32, 0, Vec::with_capacity(digits.len() * 5 / 8));
    for digit in digits {
        let digit = match digit.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => letter - b'A',
            number @ b'2'..=b'7' => number - b'2' + 26,
            _ => return None,
        };
        value = (value << 5 | u32::from(digit)) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((value >> bits) as u8);
        }
    }
    Some(bytes)
}

/// The file name of a Content-Disposition field's value.
pub fn of_disposition(value: &[u8]) -> Option<String> {
    let mut plain = None;
    for (name, value) in Parameters(value) {
        if name.eq_ignore_ascii_case(b"filename*") {
            // RFC 6266, section 4.3: this one is preferred.
            if let Some(name) = extended(&value).as_deref().and_then(last_part) {
                return Some(name);
            }
        } else if name.eq_ignore_ascii_case(b"filename") && plain.is_none() {
            plain = last_part(&text(&value));
        }
    }
    plain
}

/// RFC 8187, section 3.2: `charset'language'percent-encoded`.
fn extended(value: &[u8]) -> Option<String> {
    let mut parts = value.splitn(3, |byte| *byte == b'\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = percent_decoded(encoded);
    if charset.eq_ignore_ascii_case(b"utf-8") {
        return Some(text(String::from_utf8_lossy(&bytes).as_bytes()));
    }
    Some(text(&bytes))
}

/// The parameters of a field's value behind its first `;`: name and value, quotes taken off.
pub(crate) struct Parameters<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Parameters<'a> {
    type Item = (&'a [u8], Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.0.iter().position(|byte| *byte == b';')?;
            let rest = self.0.get(at + 1..)?.trim_ascii_start();
            let Some(equals) = rest.iter().position(|byte| matches!(byte, b'=' | b';')) else {
                self.0 = &[];
                return None;
            };
            if rest.get(equals) == Some(&b';') {
                self.0 = rest.get(equals..)?;
                continue;
            }
            let name = rest.get(..equals)?.trim_ascii();
            let value = rest.get(equals + 1..)?.trim_ascii_start();
            let (value, rest) = match value.strip_prefix(b"\"") {
                Some(quoted) => unquoted(quoted),
                None => {
                    let end = value.iter().position(|b| *b == b';').unwrap_or(value.len());
                    let (value, rest) = value.split_at_checked(end)?;
                    (value.trim_ascii().to_vec(), rest)
                }
            };
            self.0 = rest;
            return Some((name, value));
        }
    }
}

/// A quoted string's text and what follows it. Browsers send paths of Windows unescaped, so that a
/// backslash escapes only what needs it.
fn unquoted(quoted: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            b'\\' if matches!(quoted.get(at + 1), Some(b'"' | b'\\')) => {
                value.extend(bytes.next().map(|(_, byte)| *byte));
            }
            _ => value.push(*byte),
        }
    }
    (value, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_download_is_what_the_server_calls_it() {
        for (value, name) in [
            (r#"attachment; filename="a b.exe""#, Some("a b.exe")),
            ("attachment; filename=plain.txt; size=5", Some("plain.txt")),
            ("inline; FILENAME = x.pdf", Some("x.pdf")),
            (
                r#"attachment; filename="e.txt"; filename*=UTF-8''%e2%82%ac%20rates.txt"#,
                Some("€ rates.txt"),
            ),
            ("attachment; filename*=iso-8859-1'de'Gr%FC%DFe.txt", Some("Grüße.txt")),
            (r#"attachment; filename="quo\"te;d.txt""#, Some("quo\"te;d.txt")),
            (r#"attachment; filename="..\..\evil.exe""#, Some("evil.exe")),
            (r#"attachment; filename="/etc/passwd""#, Some("passwd")),
            ("attachment", None),
            (r#"attachment; filename="""#, None),
            (r#"attachment; filename="open"#, Some("open")),
            ("; = ; ;;", None),
        ] {
            assert_eq!(of_disposition(value.as_bytes()).as_deref(), name, "{value}");
        }
    }

    #[test]
    fn the_name_of_a_target_is_the_last_part_of_its_path() {
        for (target, name) in [
            ("/pub/a%20b.iso?x=/y", Some("a b.iso")),
            ("http://h.example/dir/f.zip", Some("f.zip")),
            ("http://h.example", None),
            ("/", None),
            ("*", Some("*")),
            ("/%2e%2e%2fetc%2fpasswd", Some("passwd")),
            ("/a%zz%4", Some("a%zz%4")),
        ] {
            assert_eq!(of_target(target.as_bytes()).as_deref(), name, "{target}");
        }
    }

    #[test]
    fn base_32_is_that_of_the_standard() {
        assert_eq!(base32(b"MZXW6YTB").as_deref(), Some(&b"fooba"[..]));
        assert_eq!(base32(b"mzxw6ytboi").as_deref(), Some(&b"foobar"[..]));
        assert_eq!(base32(b"MZ1"), None);
    }

    #[test]
    fn a_name_is_cut_at_a_character_and_loses_its_control_characters() {
        let long = "ü".repeat(200);
        assert_eq!(last_part(&long).map(|name| name.len()), Some(254));
        assert_eq!(text(b"a\r\n\x1b[31mb"), "a\u{fffd}\u{fffd}\u{fffd}[31mb");
    }
}
