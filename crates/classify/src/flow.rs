//! A flow: all packets of one transport protocol between two sockets, in both directions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, net::SocketAddr};

/// The transport protocols that have flows here; all others are counted and passed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

/// One of the two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The side that sent the first packet seen; with TCP the SYN, if it was seen.
    Client,
    /// The other side.
    Server,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A flow's two sockets, as internal hosts see them: before source NAT, after destination NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Flow {
    /// The transport protocol.
    pub transport: Transport,
    /// Where the first packet came from.
    pub client: SocketAddr,
    /// Where it went.
    pub server: SocketAddr,
}

impl Flow {
    /// The socket of one end.
    pub const fn socket(&self, side: Side) -> SocketAddr {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }
}

/// `tcp 10.0.0.5:51413 > 192.0.2.7:6881`
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} > {}", self.transport, self.client, self.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_reads_as_who_called_whom() {
        let flow = Flow {
            transport: Transport::Udp,
            client: "10.0.0.5:51413".parse().unwrap(),
            server: "[2001:db8::7]:6881".parse().unwrap(),
        };
        assert_eq!(flow.to_string(), "udp 10.0.0.5:51413 > [2001:db8::7]:6881");
        assert_eq!(flow.socket(Side::Client.other()), flow.server);
    }
}
