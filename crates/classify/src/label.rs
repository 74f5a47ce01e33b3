//! What a flow was found to be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt};

/// The application of an unclassified flow.
pub const UNKNOWN: &str = "unknown";

/// The category of an application; policies name these.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// File sharing between hosts that are clients and servers at once.
    PeerToPeer,
    /// HTTP and what runs over it.
    Web,
    /// Messages between people.
    Chat,
    /// Files from a server: FTP, SMB, NFS.
    FileTransfer,
    /// Mail of all protocols.
    Mail,
    /// Live and on-demand audio and video.
    Media,
    /// Calls and conferences.
    Voice,
    /// Games.
    Game,
    /// Tunnels and virtual private networks.
    Tunnel,
    /// Shells and desktops of other hosts.
    RemoteAccess,
    /// What networks need to run: DNS, DHCP, NTP, routing.
    Network,
    /// Everything else that has a name.
    Other,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::PeerToPeer,
        Self::Web,
        Self::Chat,
        Self::FileTransfer,
        Self::Mail,
        Self::Media,
        Self::Voice,
        Self::Game,
        Self::Tunnel,
        Self::RemoteAccess,
        Self::Network,
        Self::Other,
    ];

    /// Its name, as policies write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PeerToPeer => "peer-to-peer",
            Self::Web => "web",
            Self::Chat => "chat",
            Self::FileTransfer => "file-transfer",
            Self::Mail => "mail",
            Self::Media => "media",
            Self::Voice => "voice",
            Self::Game => "game",
            Self::Tunnel => "tunnel",
            Self::RemoteAccess => "remote-access",
            Self::Network => "network",
            Self::Other => "other",
        }
    }
}

/// How sure a label is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// From evidence of the host or the flow's shape; no protocol message was parsed.
    Likely,
    /// A protocol message was parsed.
    Certain,
}

/// Who found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Our parsers of peer-to-peer protocols.
    Parser,
    /// What is known of the two hosts.
    Host,
    /// A signature in the configuration.
    Signature,
    /// nDPI, helped by names in TLS and DNS.
    Ndpi,
}

/// What a flow was found to be, by whom, and why.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Label {
    /// The application's name in lower case, as policies write it: `bittorrent`, `edonkey`, `tls`.
    pub application: Cow<'static, str>,
    /// The part of the application, where there are several: `dht`, `utp`, `tracker`, `youtube`.
    pub detail: Option<Cow<'static, str>>,
    /// The application's category.
    pub category: Category,
    /// How sure that is.
    pub certainty: Certainty,
    /// Who found it.
    pub engine: Engine,
    /// What was seen, for people: `peer wire handshake`, `peer of tracker 192.0.2.1:6969`.
    pub reason: Cow<'static, str>,
}

/// `bittorrent/dht (likely: port announced to the tracker 192.0.2.1:6969)`
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.application)?;
        if let Some(detail) = &self.detail {
            write!(f, "/{detail}")?;
        }
        match self.certainty {
            Certainty::Certain => write!(f, " ({})", self.reason),
            Certainty::Likely => write!(f, " (likely: {})", self.reason),
        }
    }
}

/// What a flow is classified as after a packet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Classification {
    /// More packets may decide it.
    Pending,
    /// The application was found.
    Known(Label),
    /// No further packet will decide it.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_only_likely_says_so() {
        let mut label = Label {
            application: "bittorrent".into(),
            detail: Some("utp".into()),
            category: Category::PeerToPeer,
            certainty: Certainty::Certain,
            engine: Engine::Parser,
            reason: "peer wire handshake".into(),
        };
        assert_eq!(label.to_string(), "bittorrent/utp (peer wire handshake)");
        label.certainty = Certainty::Likely;
        assert_eq!(label.to_string(), "bittorrent/utp (likely: peer wire handshake)");
    }
}
