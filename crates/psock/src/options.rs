//! Options by name and text, as environment variables and C programs give them.
//!
//! | name | text | without it |
//! |---|---|---|
//! | `path` | a [`Path`]; given again, it is another one | |
//! | `key` | file with the key of both ends | |
//! | `authority`, `certificate`, `private-key` | PEM files, instead of a key | |
//! | `name` | what the peer's certificate must hold | the address connected to |
//! | `plain` | `yes`: neither encryption nor authentication | `no` |
//! | `driver` | `adaptive`, `poll-all`, `round-robin` | `adaptive` |
//! | `connections` | data connections on each path, 1 to 64 | 1 |
//! | `congestion` | such as `cubic` or `bbr` | the system's |
//! | `window` | reorder memory, such as `64MB`; a number alone is MiB | 32MiB |
//! | `survive` | how long without any path, such as `2m` | 60s |
//! | `connect-timeout` | how long until the first path has answered | 10s |
//! | `path-timeout` | silence after which a path is dead | 3s |
//! | `follow-announced` | `yes`: paths also to the addresses that the listener announces | `no` |

use crate::{Config, DriverName, Path, PresharedKey, Security, SecurityError};
use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

/// Data connections on each path.
pub(crate) const CONNECTIONS: RangeInclusive<u16> = 1..=64;
/// Bytes of reorder memory.
const WINDOW: RangeInclusive<u64> = 1_000_000..=4 << 30;
/// Times that can be set: up to a year.
const TIMES: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(366 * 86_400);

/// What was set so far.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) paths: Vec<Path>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) private_key: Option<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) plain: bool,
    pub(crate) driver: Option<DriverName>,
    pub(crate) connections: Option<u16>,
    pub(crate) congestion: Option<String>,
    pub(crate) window_bytes: Option<usize>,
    pub(crate) survive: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) path_timeout: Option<Duration>,
    pub(crate) follow_announced: bool,
}

/// An option cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// There is none of this name.
    #[error("there is no option {0:?}")]
    Unknown(String),
    /// Its text cannot be read.
    #[error("{name}: {text:?}: {why}")]
    Text {
        /// The option.
        name: &'static str,
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Neither a key nor certificates nor `plain`, or more than one of them.
    #[error(
        "give one of: `key` (a file that `nigh psock key` made), `authority` with `certificate` and \
         `private-key`, or `plain`"
    )]
    Security,
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] SecurityError),
}

impl Options {
    /// The names of all options.
    pub const NAMES: [&str; 15] = [
        "path",
        "key",
        "authority",
        "certificate",
        "private-key",
        "name",
        "plain",
        "driver",
        "connections",
        "congestion",
        "window",
        "survive",
        "connect-timeout",
        "path-timeout",
        "follow-announced",
    ];

    /// Sets an option.
    ///
    /// # Errors
    ///
    /// When there is none of this name or its text cannot be read; nothing is changed then.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match name {
            "path" => {
                let path = text.parse().map_err(|error| wrong("path", text, error))?;
                self.paths.push(path);
            }
            "key" => self.key = Some(text.into()),
            "authority" => self.authority = Some(text.into()),
            "certificate" => self.certificate = Some(text.into()),
            "private-key" => self.private_key = Some(text.into()),
            "name" => self.name = Some(text.into()),
            "plain" => self.plain = yes("plain", text)?,
            "driver" => {
                let driver = text.parse().map_err(|error| wrong("driver", text, error))?;
                self.driver = Some(driver);
            }
            "connections" => self.connections = Some(number("connections", text, &CONNECTIONS)?),
            "congestion" => self.congestion = Some(text.into()),
            "window" => {
                let bytes = window(text).map_err(|error| wrong("window", text, error))?;
                self.window_bytes = Some(bytes);
            }
            "survive" => self.survive = Some(time("survive", text)?),
            "connect-timeout" => self.connect_timeout = Some(time("connect-timeout", text)?),
            "path-timeout" => self.path_timeout = Some(time("path-timeout", text)?),
            "follow-announced" => self.follow_announced = yes("follow-announced", text)?,
            _ => return Err(OptionError::Unknown(name.to_owned())),
        }
        Ok(())
    }

    /// Adds a path.
    pub fn add_path(&mut self, path: Path) {
        self.paths.push(path);
    }

    /// The paths so far.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// The configuration that they choose.
    ///
    /// # Errors
    ///
    /// When security is not or twice configured, or the key cannot be read.
    pub fn config(&self) -> Result<Config, OptionError> {
        let certificates = (&self.authority, &self.certificate, &self.private_key);
        let security = match (self.plain, &self.key, certificates) {
            (true, None, (None, None, None)) => Security::Plain,
            (false, Some(file), (None, None, None)) => {
                Security::Key(PresharedKey::from_file(file)?)
            }
            (false, None, (Some(authority), Some(certificate), Some(key))) => {
                Security::Certificates {
                    authority: authority.clone(),
                    certificate: certificate.clone(),
                    key: key.clone(),
                    name: self.name.clone(),
                }
            }
            _ => return Err(OptionError::Security),
        };
        let mut config = Config::new(security);
        config.paths = self.paths.clone();
        config.congestion = self.congestion.clone();
        config.driver = self.driver.unwrap_or(config.driver);
        config.connections_per_path = self.connections.unwrap_or(config.connections_per_path);
        if let Some(bytes) = self.window_bytes {
            (config.window_bytes, config.send_bytes) = (bytes, bytes);
        }
        config.survive = self.survive.unwrap_or(config.survive);
        config.connect_timeout = self.connect_timeout.unwrap_or(config.connect_timeout);
        config.path_timeout = self.path_timeout.unwrap_or(config.path_timeout);
        config.follow_announced = self.follow_announced;
        Ok(config)
    }
}

fn wrong(name: &'static str, text: &str, why: impl ToString) -> OptionError {
    OptionError::Text { name, text: text.to_owned(), why: why.to_string() }
}

fn yes(name: &'static str, text: &str) -> Result<bool, OptionError> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(wrong(name, text, "expected yes or no")),
    }
}

fn number(name: &'static str, text: &str, range: &RangeInclusive<u16>) -> Result<u16, OptionError> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    let why = || format!("expected a number from {} to {}", range.start(), range.end());
    number.ok_or_else(|| wrong(name, text, why()))
}

fn time(name: &'static str, text: &str) -> Result<Duration, OptionError> {
    let time = config::duration(text).map_err(|error| wrong(name, text, error))?;
    let why = "expected a time from 1ms to 366days";
    if TIMES.contains(&time) { Ok(time) } else { Err(wrong(name, text, why)) }
}

/// Bytes of a window, such as 32M; a number alone is MiB.
pub(crate) fn window(text: &str) -> Result<usize, String> {
    let bytes = match text.parse() {
        Ok(mib) => u64::saturating_mul(mib, 1 << 20),
        Err(_) => text.parse::<config::Size>().map_err(|error| error.to_string())?.0,
    };
    match usize::try_from(bytes) {
        Ok(window) if WINDOW.contains(&bytes) => Ok(window),
        _ => Err(format!("a window is from 1M to {}", config::Size(*WINDOW.end()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_in_the_configuration() {
        let mut options = Options::default();
        for (name, text) in [
            ("path", "192.0.2.1:7000"),
            ("path", "10.0.1.1>192.0.2.2:7000"),
            ("plain", "yes"),
            ("driver", "poll-all"),
            ("connections", "4"),
            ("congestion", "bbr"),
            ("window", "8MiB"),
            ("survive", "2.5s"),
            ("connect-timeout", "3s"),
            ("path-timeout", "500ms"),
            ("follow-announced", "yes"),
        ] {
            options.set(name, text).unwrap();
        }
        let config = options.config().unwrap();
        assert_eq!(config.paths, options.paths());
        assert_eq!(config.paths.len(), 2);
        assert!(matches!(config.security, Security::Plain));
        assert_eq!(config.driver, DriverName::PollAll);
        assert_eq!(config.connections_per_path, 4);
        assert_eq!(config.congestion.as_deref(), Some("bbr"));
        assert_eq!((config.window_bytes, config.send_bytes), (8 << 20, 8 << 20));
        assert_eq!(config.survive, Duration::from_millis(2500));
        assert_eq!(config.connect_timeout, Duration::from_secs(3));
        assert_eq!(config.path_timeout, Duration::from_millis(500));
        assert!(config.follow_announced);
    }

    #[test]
    fn what_cannot_be_used_is_refused_and_changes_nothing() {
        let mut options = Options::default();
        for (name, text) in [
            ("path", "192.0.2.1"),
            ("plain", "perhaps"),
            ("driver", "fastest"),
            ("connections", "0"),
            ("connections", "65"),
            ("window", "-1"),
            ("window", "5GiB"),
            ("survive", "nan"),
            ("survive", "-1"),
            ("survive", "2"),
            ("connect-timeout", "10"),
            ("connect-timeout", "10y"),
            ("path-timeout", "0"),
            ("follow-announced", "1"),
            ("colour", "blue"),
        ] {
            assert!(options.set(name, text).is_err(), "{name}={text}");
        }
        options.set("plain", "yes").unwrap();
        let config = options.config().unwrap();
        assert_eq!(config.connections_per_path, 1);
        assert!(config.paths.is_empty());
    }

    #[test]
    fn every_name_is_known() {
        for name in Options::NAMES {
            let result = Options::default().set(name, "\u{7f}");
            assert!(!matches!(result, Err(OptionError::Unknown(_))), "{name}");
        }
    }

    #[test]
    fn security_is_chosen_and_only_once() {
        let some = |all: &[(&str, &str)]| {
            let mut options = Options::default();
            for (name, text) in all {
                options.set(name, text).unwrap();
            }
            options.config()
        };
        for all in [
            &[][..],
            &[("plain", "no")],
            &[("plain", "yes"), ("key", "/nonexistent")],
            &[("authority", "a"), ("certificate", "c")],
            &[("key", "/nonexistent"), ("authority", "a")],
        ] {
            assert!(matches!(some(all), Err(OptionError::Security)), "{all:?}");
        }
        assert!(matches!(some(&[("key", "/nonexistent")]), Err(OptionError::Key(_))));
        let certificates = [("authority", "a"), ("certificate", "c"), ("private-key", "p")];
        let config = some(&certificates).unwrap();
        assert!(matches!(config.security, Security::Certificates { name: None, .. }));
    }
}
