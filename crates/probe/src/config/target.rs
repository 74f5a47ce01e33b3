//! Where a test goes: a station, an address outside the mesh, a page, or a question for a name server.

use super::{ProbeConfig, What};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

/// Longest text that names a target, in bytes.
const MAX_TEXT: usize = 2048;

/// Where a test goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A station of the mesh.
    Station(String),
    /// An address.
    Address(IpAddr),
    /// A reflector of STAMP or TWAMP-Light outside the mesh.
    Reflector(SocketAddr),
    /// A page.
    Page(String),
    /// A name, and the server that is asked for its addresses.
    Question {
        /// The name.
        name: String,
        /// The server.
        server: IpAddr,
    },
}

/// A text does not name a target of a test.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No such station, and no address.
    #[error("there is no station {0}, and it is not an address")]
    Unknown(String),
    /// A test that only a station can be the other end of.
    #[error("{0} is not a station, and {1} is measured only between stations")]
    NoStation(String, What),
    /// An address that is not on the allow list.
    #[error("{0} is not on the allow list: tests do not send there; see probe.allow")]
    NotAllowed(IpAddr),
    /// No URL.
    #[error("{0:?} is not a page: write http://HOST/PATH or https://HOST/PATH")]
    NoPage(String),
    /// No question.
    #[error("{0:?} is not a DNS query: write NAME@SERVER, such as www.example.com@192.0.2.53")]
    NoQuestion(String),
    /// Too long.
    #[error("a target has at most {MAX_TEXT} bytes")]
    TooLong,
}

impl Target {
    /// What `text` names, for a test of this kind. Addresses must be on the allow list; the address of
    /// a page is checked when it is known.
    ///
    /// # Errors
    ///
    /// See [`TargetError`].
    pub fn parse(text: &str, what: What, config: &ProbeConfig) -> Result<Self, TargetError> {
        if text.len() > MAX_TEXT {
            return Err(TargetError::TooLong);
        }
        let owned = || text.to_owned();
        match what {
            What::Http => {
                let good = ["http://", "https://"].iter().any(|scheme| {
                    let rest = text.strip_prefix(scheme);
                    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']))
                });
                let plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
                return if good && plain {
                    Ok(Self::Page(owned()))
                } else {
                    Err(TargetError::NoPage(owned()))
                };
            }
            What::Dns => {
                let parts = text.split_once('@').filter(|(name, _)| is_domain(name));
                let Some((name, server)) = parts else {
                    return Err(TargetError::NoQuestion(owned()));
                };
                let server = server.parse().map_err(|_| TargetError::NoQuestion(owned()))?;
                allowed(server, config)?;
                return Ok(Self::Question { name: name.to_owned(), server });
            }
            What::Owd | What::Ping | What::Trace | What::Throughput | What::Clock => {}
        }
        if what != What::Clock && config.station(text).is_some() {
            return Ok(Self::Station(owned()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            if what == What::Throughput {
                return Err(TargetError::NoStation(owned(), what));
            }
            if !(what == What::Clock && config.clock.servers.contains(&address)) {
                allowed(address, config)?;
            }
            return Ok(match what {
                What::Owd => Self::Reflector(SocketAddr::new(address, super::STAMP_PORT)),
                _ => Self::Address(address),
            });
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if what == What::Owd => {
                allowed(address.ip(), config)?;
                Ok(Self::Reflector(address))
            }
            _ => Err(TargetError::Unknown(owned())),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Station(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
            Self::Reflector(address) => address.fmt(f),
            Self::Page(page) => f.write_str(page),
            Self::Question { name, server } => write!(f, "{name}@{server}"),
        }
    }
}

fn allowed(address: IpAddr, config: &ProbeConfig) -> Result<(), TargetError> {
    if config.allows(address) { Ok(()) } else { Err(TargetError::NotAllowed(address)) }
}

/// Whether a text can be a domain name (RFC 1035, section 2.3.4), as far as its length goes.
fn is_domain(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    text.len() <= 253 && text.split('.').all(label)
}
