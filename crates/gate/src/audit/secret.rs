//! What may not be written even where a protocol puts it into a name.

use std::borrow::Cow;

/// A name without the user and password of a URL (RFC 3986, section 3.2.1): `ftp://ann:secret@host/a`
/// becomes `ftp://host/a`.
pub(super) fn without_login(name: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = name.split_once("://") else { return Cow::Borrowed(name) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => Cow::Owned(format!("{scheme}://{host}{path}")),
        None => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_logs_in_is_taken_out_of_urls_alone() {
        for (name, expected) in [
            ("ftp://ann:hunter2@host/a@b", "ftp://host/a@b"),
            ("http://ann:p@ss@host", "http://host"),
            ("http://host/x?y=a@b", "http://host/x?y=a@b"),
            ("a@b.txt", "a@b.txt"),
            ("", ""),
        ] {
            assert_eq!(without_login(name), expected);
        }
    }
}
