//! The token that a request by HTTP must bear (RFC 6750).

use crate::file::{PrivateError, read_private};
use std::path::{Path, PathBuf};

/// The least and the most characters of a token.
const LEAST: usize = 16;
const MOST: usize = 4096;

/// A token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] PrivateError),
    /// What it holds is no token.
    #[error("{} holds no token: {LEAST} to {MOST} printable characters without blanks, such as `openssl rand -hex 32` makes", .0.display())]
    NoToken(PathBuf),
}

/// A token; its value is no business of logs.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Reads a token from a file that only its owner may read.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let content = read_private(path)?;
        let text = str::from_utf8(&content).unwrap_or_default().trim();
        if !(LEAST..=MOST).contains(&text.len()) || !text.bytes().all(|it| it.is_ascii_graphic()) {
            return Err(TokenError::NoToken(path.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether it is this one; takes the same time wherever they differ.
    pub fn is(&self, shown: &str) -> bool {
        let pairs = self.0.bytes().zip(shown.bytes());
        let different = pairs.fold(0, |sum, (one, other)| sum | (one ^ other));
        self.0.len() == shown.len() && std::hint::black_box(different) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_kept_from_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        assert!(matches!(Token::read(&path), Err(TokenError::File(PrivateError::Read { .. }))));
        let write = |text: &str, mode| {
            std::fs::write(&path, text).expect("it is written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
        };
        write("0123456789abcdef\n", 0o644);
        assert!(matches!(Token::read(&path), Err(TokenError::File(PrivateError::Mode { .. }))));
        let long = "0".repeat(MOST + 1);
        for text in ["", "0123456789abcde", "0123456789 abcdef", &long] {
            write(text, 0o600);
            assert!(matches!(Token::read(&path), Err(TokenError::NoToken(_))), "{text:?}");
        }
        write("0123456789abcdef\n", 0o600);
        let token = Token::read(&path).expect("a token");
        assert!(token.is("0123456789abcdef"));
        for other in ["", "0123456789abcdeg", "0123456789abcde", "0123456789abcdef0"] {
            assert!(!token.is(other), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
