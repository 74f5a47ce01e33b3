//! BitTorrent's local service discovery (BEP 14): an announcement in the form of HTTP to 239.192.152.143
//! or ff15::efc0:988f, port 6771, with the port at which its sender listens.

use super::{Context, Detection, Match, Protocol, http::Message};
use crate::hosts::Hosts;

/// The announced port, if it is one.
fn port(datagram: &[u8]) -> Option<u16> {
    let message = Message::read(datagram).filter(|m| m.line == b"BT-SEARCH * HTTP/1.1")?;
    let hash = message.field("Infohash")?;
    if hash.len() != 40 || !hash.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    std::str::from_utf8(message.field("Port")?).ok()?.parse().ok()
}

/// Whether it is an announcement.
pub(super) fn udp(datagram: &[u8]) -> Detection {
    match port(datagram) {
        Some(_) => Match::certain(Protocol::LocalDiscovery, "local service discovery"),
        None => Detection::No,
    }
}

/// The sender listens where it says.
pub(super) fn learn(datagram: &[u8], context: &Context<'_>, hosts: &mut Hosts) {
    if let Some(port) = port(datagram) {
        context.announces(hosts, port, Protocol::LocalDiscovery);
    }
}
