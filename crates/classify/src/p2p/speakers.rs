//! Whether one end of a known flow speaks its protocol itself.

use super::{Detection, Protocol, Streams, begins, dht, edonkey, gnutella, kad, peer_wire, utp};

/// Whether the first bytes of an end of a connection, or a datagram of it, are of a protocol that the flow was
/// found to be.
pub(super) fn speaks(protocol: Protocol, bytes: &[u8]) -> bool {
    let alone = Streams { client: bytes, server: &[] };
    let fits = |verdict| verdict != Detection::No;
    !bytes.is_empty()
        && match protocol {
            Protocol::PeerWire => begins(bytes, peer_wire::GREETING) == Some(true),
            Protocol::Utp => utp::is_header(bytes),
            Protocol::Dht => fits(dht::udp(bytes, true)) || fits(dht::udp(bytes, false)),
            Protocol::EdonkeyTcp => bytes.len() >= 6 && fits(edonkey::tcp(alone)),
            Protocol::EdonkeyUdp => edonkey::is_datagram(bytes),
            Protocol::Kad => kad::is_message(bytes),
            Protocol::Gnutella => fits(gnutella::tcp(alone)) || gnutella::is_datagram(bytes),
            // The other end is a server that all use.
            Protocol::TrackerHttp
            | Protocol::TrackerUdp
            | Protocol::LocalDiscovery
            | Protocol::WebSeed
            | Protocol::Soulseek
            | Protocol::Nmdc
            | Protocol::Adc => true,
            Protocol::Mse | Protocol::EmuleObfuscated => false,
        }
}
