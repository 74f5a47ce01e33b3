//! A path: from where, to where.
//!
//! In text: `192.0.2.1:7000`, `10.0.1.1>192.0.2.1:7000` (from a local address),
//! `%eth0>[2001:db8::1]:7000` (from an interface).

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

/// An interface's name is at most this long (IFNAMSIZ less its final zero).
const INTERFACE_BYTES: usize = 15;

/// The local end of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Local {
    /// Connections come from this address.
    Address(IpAddr),
    /// Connections leave through this interface.
    Interface(String),
}

/// One path from the connecting end to the accepting end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// From where; the system chooses without it.
    pub local: Option<Local>,
    /// Where the peer listens.
    pub remote: SocketAddr,
}

impl From<SocketAddr> for Path {
    fn from(remote: SocketAddr) -> Self {
        Self { local: None, remote }
    }
}

/// Where an end listens. In text: `192.0.2.1:7000`, or `%eth0>0.0.0.0:7000` (only for what comes in through
/// an interface).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The interface through which connections must come; any without it.
    pub interface: Option<String>,
    /// The address; port 0 is one that is free.
    pub address: SocketAddr,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { interface: None, address }
    }
}

impl FromStr for Endpoint {
    type Err = ParsePathError;

    fn from_str(text: &str) -> Result<Self, ParsePathError> {
        let (interface, address) = match text.split_once('>') {
            Some((local, address)) => match local.parse()? {
                Local::Interface(name) => (Some(name), address),
                Local::Address(_) => {
                    let why = "expected % and an interface's name before >";
                    return Err(ParsePathError { offset: 0, why });
                }
            },
            None => (None, text),
        };
        let why = "expected an address and a port, such as 192.0.2.1:7000 or [2001:db8::1]:7000";
        let offset = text.len() - address.len();
        let address = address.parse().map_err(|_| ParsePathError { offset, why })?;
        Ok(Self { interface, address })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.interface {
            Some(interface) => write!(f, "%{interface}>{}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

/// A text is no path or endpoint; `offset` is where in the text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {why}")]
pub struct ParsePathError {
    /// Where in the text the part begins that cannot be read.
    pub offset: usize,
    /// What was expected there.
    pub why: &'static str,
}

impl FromStr for Path {
    type Err = ParsePathError;

    fn from_str(text: &str) -> Result<Self, ParsePathError> {
        let (local, remote, offset) = match text.split_once('>') {
            Some((local, remote)) => (Some(local.parse()?), remote, local.len() + 1),
            None => (None, text, 0),
        };
        let Ok(remote) = remote.parse::<SocketAddr>() else {
            let why =
                "expected an address and a port, such as 192.0.2.1:7000 or [2001:db8::1]:7000";
            return Err(ParsePathError { offset, why });
        };
        if remote.port() == 0 {
            return Err(ParsePathError { offset, why: "port 0 cannot be connected to" });
        }
        if let Some(Local::Address(address)) = &local
            && address.is_ipv4() != remote.is_ipv4()
        {
            let why = "the remote address is of another family than the local one";
            return Err(ParsePathError { offset, why });
        }
        Ok(Self { local, remote })
    }
}

impl FromStr for Local {
    type Err = ParsePathError;

    fn from_str(text: &str) -> Result<Self, ParsePathError> {
        if let Some(name) = text.strip_prefix('%') {
            let fits = (1..=INTERFACE_BYTES).contains(&name.len())
                && !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
            return match fits {
                true => Ok(Self::Interface(name.to_owned())),
                false => Err(ParsePathError {
                    offset: 1,
                    why: "expected an interface's name of 1 to 15 bytes",
                }),
            };
        }
        text.parse().map(Self::Address).map_err(|_| ParsePathError {
            offset: 0,
            why: "expected a local address, or % and an interface's name",
        })
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Interface(name) => write!(f, "%{name}"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.local {
            Some(local) => write!(f, "{local}>{}", self.remote),
            None => write!(f, "{}", self.remote),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_back_as_it_was_written() {
        for text in [
            "192.0.2.1:7000",
            "10.0.1.1>192.0.2.1:7000",
            "%eth0>192.0.2.1:7000",
            "%eth0>[2001:db8::1]:7000",
            "2001:db8::2>[2001:db8::1]:7000",
            "[fe80::1%2]:7000",
        ] {
            let path: Path = text.parse().unwrap();
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn a_place_reads_back_as_it_was_written() {
        for text in ["0.0.0.0:0", "%eth0>0.0.0.0:7000", "%eth0>[::]:7000"] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        for (text, offset) in [("192.0.2.1", 0), ("192.0.2.1>0.0.0.0:1", 0), ("%eth0>0.0.0.0", 6)] {
            assert_eq!(text.parse::<Endpoint>().unwrap_err().offset, offset, "{text}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_place() {
        for (text, offset) in [
            ("", 0),
            ("192.0.2.1", 0),
            ("192.0.2.1:0", 0),
            ("10.0.1.1>192.0.2.1", 9),
            ("10.0.1>192.0.2.1:7000", 0),
            ("%>192.0.2.1:7000", 1),
            ("%a name>192.0.2.1:7000", 1),
            ("%sixteen-letters->192.0.2.1:7000", 1),
            ("2001:db8::2>192.0.2.1:7000", 12),
            ("10.0.1.1>[2001:db8::1]:7000", 9),
            ("example.org:7000", 0),
        ] {
            assert_eq!(text.parse::<Path>().unwrap_err().offset, offset, "{text}");
        }
    }
}
