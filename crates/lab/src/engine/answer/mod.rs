//! What nodes say themselves: ICMP errors, echo replies, resets, and answers to their neighbours.
//!
//! An answer is written over the packet that it answers, in the same buffer. It is what a router that
//! runs Linux says, bit for bit where the bits are not random: `tests/it/root/linux` compares them.

mod icmp4;
mod icmp6;
pub(crate) mod limit;
pub(crate) mod neighbour;
mod reply;

use std::net::{IpAddr, Ipv4Addr};

pub(crate) use reply::{Reply, reply};

/// TTL and hop limit of what a node sends. A packet loses one at every node that forwards it; the
/// engine lets a packet set out as if the node forwarded it to itself, so one is added.
const TTL: u8 = 64 + 1;

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpError {
    /// Its TTL or hop limit ran out.
    TimeExceeded,
    /// There is no route to its destination.
    NoRoute,
    /// The network is reached, but no host there has the address.
    NoHost,
    /// Its destination does not take the protocol; the byte that names it is at this offset.
    NoProtocol(u16),
    /// Its destination does not take the port.
    NoPort,
    /// It may not pass.
    Prohibited,
    /// It is larger than the next link's MTU.
    TooBig(u32),
}

/// Writes an ICMP error about the packet at the start of `ip` over it, and gives its length. `ip` is
/// all the room that there is; `length` are the packet's bytes in it.
///
/// None if no error is sent about such a packet, or if it is not allowed, which is asked only then.
pub(crate) fn error(
    ip: &mut [u8],
    length: usize,
    error: IcmpError,
    source: Option<IpAddr>,
    identification: u16,
    allowed: impl FnOnce() -> bool,
) -> Option<usize> {
    let packet = ip.get(..length)?;
    let deserves = match ip.first()? >> 4 {
        4 => icmp4::deserves(packet),
        _ => icmp6::deserves(packet) && source.is_some(),
    };
    if !deserves || !allowed() {
        return None;
    }
    match (ip.first()? >> 4, source) {
        (4, Some(IpAddr::V4(source))) => icmp4::error(ip, length, error, source, identification),
        // A router that has no IPv4 address speaks with this one (RFC 7600, section 4.8).
        (4, _) => icmp4::error(ip, length, error, Ipv4Addr::new(192, 0, 0, 8), identification),
        (6, Some(IpAddr::V6(source))) => icmp6::error(ip, length, error, source),
        _ => None,
    }
}

/// Two bytes in network order.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// Writes bytes at an offset; false if they do not fit.
#[must_use]
fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> bool {
    match bytes.get_mut(at..at + value.len()) {
        Some(slot) => {
            slot.copy_from_slice(value);
            true
        }
        None => false,
    }
}
