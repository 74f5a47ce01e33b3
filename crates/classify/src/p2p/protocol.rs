//! The protocols of which applications consist.

use crate::{application::Application, flow::Transport};

/// The parts of applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    PeerWire,
    Utp,
    Dht,
    TrackerHttp,
    TrackerUdp,
    LocalDiscovery,
    WebSeed,
    Mse,
    EdonkeyTcp,
    EdonkeyUdp,
    Kad,
    EmuleObfuscated,
    Gnutella,
    Nmdc,
    Adc,
    Soulseek,
}

/// The parts that an application's labels may name; none if it is not one of those read here.
pub fn parts(application: &str) -> Option<impl Iterator<Item = &'static str>> {
    let application = Application::ALL.into_iter().find(|one| one.name() == application)?;
    let of = move |one: &Protocol| one.application() == application;
    Some(Protocol::ALL.into_iter().filter(of).filter_map(Protocol::detail))
}

impl Protocol {
    const ALL: [Self; 16] = [
        Self::PeerWire,
        Self::Utp,
        Self::Dht,
        Self::TrackerHttp,
        Self::TrackerUdp,
        Self::LocalDiscovery,
        Self::WebSeed,
        Self::Mse,
        Self::EdonkeyTcp,
        Self::EdonkeyUdp,
        Self::Kad,
        Self::EmuleObfuscated,
        Self::Gnutella,
        Self::Nmdc,
        Self::Adc,
        Self::Soulseek,
    ];

    pub(super) const fn application(self) -> Application {
        match self {
            Self::PeerWire
            | Self::Utp
            | Self::Dht
            | Self::TrackerHttp
            | Self::TrackerUdp
            | Self::LocalDiscovery
            | Self::WebSeed
            | Self::Mse => Application::BitTorrent,
            Self::EdonkeyTcp | Self::EdonkeyUdp | Self::Kad | Self::EmuleObfuscated => {
                Application::Edonkey
            }
            Self::Gnutella => Application::Gnutella,
            Self::Nmdc | Self::Adc => Application::DirectConnect,
            Self::Soulseek => Application::Soulseek,
        }
    }

    /// The label's detail, where the application has several.
    pub(super) const fn detail(self) -> Option<&'static str> {
        match self {
            Self::PeerWire => Some("peer-wire"),
            Self::Utp => Some("utp"),
            Self::Dht => Some("dht"),
            Self::TrackerHttp | Self::TrackerUdp => Some("tracker"),
            Self::LocalDiscovery => Some("lsd"),
            Self::WebSeed => Some("web-seed"),
            Self::Mse => Some("mse"),
            Self::EdonkeyTcp => Some("tcp"),
            Self::EdonkeyUdp => Some("udp"),
            Self::Kad => Some("kad"),
            Self::EmuleObfuscated => Some("obfuscated"),
            Self::Nmdc => Some("nmdc"),
            Self::Adc => Some("adc"),
            Self::Gnutella | Self::Soulseek => None,
        }
    }

    /// The transport at whose port those listen whom it names; none when over both with one number.
    pub(super) const fn listens(self) -> Option<Transport> {
        match self.application() {
            Application::BitTorrent | Application::Gnutella => None,
            Application::Edonkey | Application::DirectConnect | Application::Soulseek => {
                Some(Transport::Tcp)
            }
        }
    }

    /// How many peers one packet may name: more than programs write into one.
    pub(super) const fn most_named(self) -> u16 {
        match self {
            Self::Dht | Self::Kad => 64,
            _ => 200,
        }
    }

    /// Whether the one who is called is a peer too, and not a server that all use.
    pub(super) const fn is_between_peers(self) -> bool {
        matches!(
            self,
            Self::PeerWire
                | Self::Utp
                | Self::Dht
                | Self::EdonkeyTcp
                | Self::EdonkeyUdp
                | Self::Kad
                | Self::Gnutella
        )
    }
}
