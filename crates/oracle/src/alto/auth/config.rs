//! The users of the configuration: `[[oracle.alto.user]]`.

use crate::alto::tls::warn_of_permissions;
use schemars::JsonSchema;
use serde::Deserialize;
use std::{fmt, fs, io, path::PathBuf};

/// Longest name of a user and longest password, in bytes.
const LONGEST: usize = 256;

/// A password. It is never shown: [`fmt::Debug`] prints stars.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Secret {
    /// Why this is no password.
    fn fault(&self) -> Option<&'static str> {
        match self.0.len() {
            0 => Some("the password is empty"),
            1..=LONGEST if self.0.chars().any(char::is_control) => {
                Some("the password has a control character, such as a second line")
            }
            1..=LONGEST => None,
            _ => Some("the password is longer than 256 bytes"),
        }
    }
}

/// A user of HTTP Digest (RFC 7616).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// The user's name, in any script; composed characters (NFC), as clients send them.
    pub name: String,
    /// The user's password, 1 to 256 bytes; required unless `password_file` is given.
    pub password: Option<Secret>,
    /// File with the password as its only line, instead of `password`.
    pub password_file: Option<PathBuf>,
}

/// A file with a password cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// It cannot be read.
    #[error("password_file {}: {source}; create it with the password as its only line", file.display())]
    Read {
        /// Which file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its content is no password.
    #[error("password_file {}: {fault}; write a password of 1 to 256 bytes into it", file.display())]
    Unusable {
        /// Which file.
        file: PathBuf,
        /// What is wrong with it.
        fault: &'static str,
    },
}

impl UserConfig {
    /// Everything that is wrong with the values.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let name = &self.name;
        let bad = |c: char| c == ':' || c.is_control();
        if !(1..=LONGEST).contains(&name.len()) || name.contains(bad) {
            let message = format!(
                "{name:?} must be 1 to {LONGEST} bytes without colons and control characters"
            );
            problems.push(("name", message));
        }
        match (&self.password, &self.password_file) {
            (Some(_), Some(_)) => {
                let message = "password is given too; keep one of the two";
                problems.push(("password_file", message.to_owned()));
            }
            (None, None) => {
                problems.push(("password", "is needed, or `password_file`".to_owned()));
            }
            (Some(password), None) => {
                problems.extend(password.fault().map(|fault| ("password", fault.to_owned())));
            }
            (None, Some(_)) => {}
        }
        problems
    }

    /// The password, from the configuration or from its file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds no password.
    pub(super) fn secret(&self) -> Result<Secret, PasswordError> {
        let Some(file) = &self.password_file else {
            return Ok(self.password.clone().unwrap_or(Secret(String::new())));
        };
        warn_of_permissions(file, "a password of ALTO's users");
        let text = fs::read_to_string(file)
            .map_err(|source| PasswordError::Read { file: file.clone(), source })?;
        let secret = Secret(text.strip_suffix('\n').unwrap_or(&text).to_owned());
        match secret.fault() {
            Some(fault) => Err(PasswordError::Unusable { file: file.clone(), fault }),
            None => Ok(secret),
        }
    }
}
