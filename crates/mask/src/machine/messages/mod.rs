//! Masks messages of the application layer, whose fields have no fixed offset.
//!
//! ```text
//! policy   "dns.name" = "hash", "dns.address" = "prefix"
//! message  | header | www.example.org | A | 192.0.2.1 |
//! result   | header | kqz.ufwacyb.mgu | A | 77.4.91.6 |
//! ```
//!
//! A message keeps its length and its structure: types, lengths, counts. A protocol of which a policy
//! names nothing is removed, like all others; so is a message that is cut, or not understood to its end:
//! nothing is guessed. What the policy does not name is zero, or letters `x` where it is text.

mod dhcp;
mod dhcpv6;
mod dns;
mod lines;
mod message;
mod radius;
mod snmp;
#[cfg(test)]
mod tests;

use super::Secrets;
use crate::{application::Protocol, program::Program};
use message::Message;
use wire::IpProtocol;

/// Writes what a policy makes of a message into a result of the same length, which is zero before; whether
/// it is kept. Where it is not, the result may hold anything.
pub(crate) fn treat(
    program: &Program,
    secrets: &mut Secrets,
    protocol: Protocol,
    transport: IpProtocol,
    message: &[u8],
    out: &mut [u8],
) -> bool {
    let mut message = Message { program, secrets, from: message, to: out };
    let done = match protocol {
        Protocol::Dns => dns::mask(&mut message, transport),
        Protocol::Dhcp => dhcp::mask(&mut message),
        Protocol::Dhcpv6 => dhcpv6::mask(&mut message),
        Protocol::Radius => radius::mask(&mut message),
        Protocol::Snmp => snmp::mask(&mut message),
        Protocol::Http => lines::mask(&mut message, &lines::HTTP),
        Protocol::Sip => lines::mask(&mut message, &lines::SIP),
    };
    done.is_some()
}

/// A part's own pseudo-random values; fields of headers have lower ones.
fn tag(part: usize) -> u16 {
    0x4000 + part as u16
}
