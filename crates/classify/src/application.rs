//! The peer-to-peer applications that are read here.

/// A peer-to-peer application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Application {
    /// The BEPs.
    BitTorrent,
    /// eDonkey, eMule and Kad.
    Edonkey,
    /// Gnutella 0.4 and 0.6.
    Gnutella,
    /// NMDC and ADC.
    DirectConnect,
    /// Soulseek.
    Soulseek,
}

impl Application {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::BitTorrent, Self::Edonkey, Self::Gnutella, Self::DirectConnect, Self::Soulseek];

    /// The name that labels and policies have.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitTorrent => "bittorrent",
            Self::Edonkey => "edonkey",
            Self::Gnutella => "gnutella",
            Self::DirectConnect => "directconnect",
            Self::Soulseek => "soulseek",
        }
    }
}
