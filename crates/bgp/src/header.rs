//! Fields of the IP header of what sessions send.

use socket2::{Domain, Socket};
use std::io;

/// Internetwork control, precedence 6: what BGP has always been sent with (RFC 4271 appendix E).
const CLASS: u32 = 0xc0;

/// The TTL of a packet that no router has forwarded (RFC 5082 section 3).
pub(crate) const TTL: u32 = 255;

/// Sets the traffic class of routing protocols.
pub(crate) fn set_class(socket: &Socket, domain: Domain) -> io::Result<()> {
    if domain == Domain::IPV4 { socket.set_tos_v4(CLASS) } else { socket.set_tclass_v6(CLASS) }
}

/// Sets the TTL to [`TTL`].
pub(crate) fn set_ttl(socket: &Socket, domain: Domain) -> io::Result<()> {
    if domain == Domain::IPV4 { socket.set_ttl_v4(TTL) } else { socket.set_unicast_hops_v6(TTL) }
}
