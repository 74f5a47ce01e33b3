//! `[gate.scan]`: where clamd is, and what is asked of it.

use config::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

/// Where clamd listens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// An address and a port.
    Tcp(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        let wrong = || format!("{text:?} is neither an absolute path nor an address with a port");
        text.parse().map(Self::Tcp).map_err(|_| wrong())
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(socket) => write!(f, "{socket}"),
        }
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

config::text_schema! {
    Address => "path, or address with port", r"^(/.*|([0-9.]+|\[.+\]):[0-9]+)$", ["/run/clamav/clamd.ctl", "127.0.0.1:3310"];
}

/// The action on a file that could not be scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Failed {
    /// It passes, counted and logged.
    #[default]
    Pass,
    /// Its flow is refused, counted and logged.
    Refuse,
}

/// Virus scan of files by clamd.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where clamd listens: the path of its socket, or an address and a port.
    pub clamd: Address,
    /// Most files that are scanned at once, one connection to clamd each; clamd's `MaxThreads` limits them too.
    #[schemars(range(min = 1, max = 1000))]
    pub connections: usize,
    /// Size of the largest file that is scanned; clamd's `StreamMaxLength` limits it too.
    pub max_size: Size,
    /// Memory for content that waits for clamd, over all files.
    pub waiting: Size,
    /// Memory for content of a file of unknown length, to send it again after a verdict on its beginning.
    pub keep: Size,
    /// Disk space in the state directory in which the files of torrents are assembled.
    pub torrents: Size,
    /// Timeout for connecting to clamd, for sending content, and for the verdict.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub timeout: Duration,
    /// Action on a file that could not be scanned.
    pub on_failure: Failed,
}

impl Default for Config {
    /// Debian's socket and clamd's own limits.
    fn default() -> Self {
        Self {
            clamd: Address::Unix("/run/clamav/clamd.ctl".into()),
            connections: 64,
            max_size: Size(100 << 20),
            waiting: Size(64 << 20),
            keep: Size(8 << 20),
            torrents: Size(4 << 30),
            timeout: Duration::from_secs(30),
            on_failure: Failed::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_or_a_socket() {
        for text in ["/run/clamd", "127.0.0.1:3310", "[::1]:3310"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!("clamd:3310".parse::<Address>().is_err());
    }
}
