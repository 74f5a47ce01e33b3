//! BitTorrent's transport over UDP (BEP 29).
//!
//! ```text
//! u4 type (0 data, 1 fin, 2 state, 3 reset, 4 syn), u4 version 1 | u8 extension | u16 connection |
//! u32 microseconds | u32 difference | u32 window | u16 sequence | u16 acknowledgement | extensions
//! ```
//! One header says little (WireGuard's first message begins like data of connection 0), so two that belong
//! together are wanted: a syn and the state that acknowledges it, or one of each end whose connections
//! differ by one and whose sequence and acknowledgement agree. A datagram of data that begins with the
//! greeting of the peer wire is enough alone.

use super::{Detection, Match, Protocol, peer_wire};
use crate::flow::Side;
use wire::Reader;

/// Type of a packet with payload.
pub const DATA: u8 = 0;
/// Type of a connection's last packet.
pub const FIN: u8 = 1;
/// Type of an acknowledgement.
pub const STATE: u8 = 2;
/// Type of a packet that ends a connection at once.
pub const RESET: u8 = 3;
/// Type of a connection's first packet.
pub const SYN: u8 = 4;

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// [`DATA`], [`FIN`], [`STATE`], [`RESET`] or [`SYN`].
    pub kind: u8,
    /// The connection's identifier.
    pub connection: u16,
    /// The packet's number.
    pub sequence: u16,
    /// The last packet that came in order.
    pub acknowledgement: u16,
}

/// Reads header and extensions; what is left is payload.
pub fn read(datagram: &[u8]) -> Option<(Header, &[u8])> {
    let mut reader = Reader::new(datagram);
    let first = reader.u8()?;
    let kind = first >> 4;
    let mut extension = reader.u8()?;
    if first & 0x0f != 1 || kind > SYN || extension > 3 {
        return None;
    }
    let connection = reader.u16()?;
    // Clocks of two hosts: any number. A window beyond a gigabyte nobody has.
    let window = (reader.u64()?, reader.u32()?).1;
    let header =
        Header { kind, connection, sequence: reader.u16()?, acknowledgement: reader.u16()? };
    while extension != 0 {
        extension = reader.u8()?;
        let length = usize::from(reader.u8()?);
        reader.take(length)?;
    }
    let payload = reader.rest();
    let fits = window < 1 << 30 && (kind == DATA || payload.is_empty());
    fits.then_some((header, payload))
}

/// Whether a datagram may be one.
pub(super) fn is_header(datagram: &[u8]) -> bool {
    read(datagram).is_some()
}

/// The last header of each end.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    last: [Option<Header>; 2],
}

impl State {
    /// Whether two headers belong together.
    pub(super) fn udp(&mut self, from: Side, datagram: &[u8]) -> Detection {
        let Some((header, payload)) = read(datagram) else { return Detection::No };
        if header.kind == DATA && payload.starts_with(peer_wire::GREETING) {
            return Match::certain(Protocol::Utp, "peer wire handshake over uTP");
        }
        if let Some(other) = self.last[from.other() as usize]
            && agree(header, other)
        {
            return Match::certain(Protocol::Utp, "uTP headers of both ends that agree");
        }
        // The syn has the number that the other end's packets will have: it is not forgotten for data.
        let last = &mut self.last[from as usize];
        if last.is_none_or(|last| last.kind != SYN) {
            *last = Some(header);
        }
        Detection::Perhaps
    }

    /// Whether an end's header was read.
    pub(super) fn is_plausible(&self) -> bool {
        self.last.iter().any(Option::is_some)
    }
}

/// Whether a header answers the one before it from the other end.
fn agree(header: Header, other: Header) -> bool {
    if header.kind == SYN {
        return false;
    }
    // Bytes are not counted, packets are: what was sent last is acknowledged soon.
    let near = |sent: u16, acknowledged: u16| sent.wrapping_sub(acknowledged) < 512;
    if other.kind == SYN {
        return header.connection == other.connection
            && (header.kind == RESET || header.acknowledgement == other.sequence);
    }
    let one = header.connection.wrapping_sub(other.connection);
    (one == 1 || one == u16::MAX)
        && near(other.sequence, header.acknowledgement)
        && near(header.sequence, other.acknowledgement)
}
