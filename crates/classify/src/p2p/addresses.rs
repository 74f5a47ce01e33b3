//! Sockets as messages write them: compact (BEP 5, BEP 7, BEP 11, BEP 23: address and port in network
//! order, one after the other).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use wire::Reader;

/// IPv4 sockets of 6 bytes each, if the length fits.
pub(super) fn compact_v4(bytes: &[u8]) -> impl Iterator<Item = SocketAddr> + '_ {
    bytes.chunks_exact(6).filter_map(|chunk| v4(&mut Reader::new(chunk)))
}

/// IPv6 sockets of 18 bytes each, if the length fits.
pub(super) fn compact_v6(bytes: &[u8]) -> impl Iterator<Item = SocketAddr> + '_ {
    bytes.chunks_exact(18).filter_map(|chunk| v6(&mut Reader::new(chunk)))
}

/// The socket of 6 bytes.
pub(super) fn v4(reader: &mut Reader<'_>) -> Option<SocketAddr> {
    let ip = reader.array::<4>()?;
    Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), reader.u16()?))
}

/// The socket of 18 bytes.
pub(super) fn v6(reader: &mut Reader<'_>) -> Option<SocketAddr> {
    let ip = reader.array::<16>()?;
    Some(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(ip)), reader.u16()?))
}
