//! The token that a request by HTTP must bear.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The longest file that is read, in bytes.
const FILE_LIMIT: u64 = 4096;
/// The least characters of a token.
const LEAST: usize = 16;

/// A token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others than its owner can read it.
    #[error("others than its owner can read {}: run `chmod 600` on it and use another token", .0.display())]
    Mode(PathBuf),
    /// What it holds is no token.
    #[error("{} holds no token: {LEAST} to {FILE_LIMIT} printable characters without blanks, such as `openssl rand -hex 32` makes", .0.display())]
    NoToken(PathBuf),
}

/// A token; its value is no business of logs.
#[derive(Clone)]
pub(super) struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Reads a token from a file that only its owner may read.
    pub(super) fn read(path: &Path) -> Result<Self, TokenError> {
        let error = |source| TokenError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(error)?;
        if file.metadata().map_err(error)?.mode() & 0o077 != 0 {
            return Err(TokenError::Mode(path.to_owned()));
        }
        let mut text = String::new();
        file.take(FILE_LIMIT).read_to_string(&mut text).map_err(error)?;
        let text = text.trim();
        if text.len() < LEAST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::NoToken(path.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether it is this one; takes the same time wherever they differ.
    pub(super) fn is(&self, shown: &str) -> bool {
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
        assert!(matches!(Token::read(&path), Err(TokenError::Read { .. })));
        let write = |text: &str, mode| {
            std::fs::write(&path, text).expect("it is written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
        };
        write("0123456789abcdef\n", 0o640);
        assert!(matches!(Token::read(&path), Err(TokenError::Mode(_))));
        for text in ["", "0123456789abcde", "0123456789 abcdef"] {
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
