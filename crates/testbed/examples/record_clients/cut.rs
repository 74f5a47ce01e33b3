//! Keeps the beginning of each flow of a capture: what a classifier sees.
//!
//! Classic pcap, Ethernet, IPv4 and IPv6. Of a flow stay the first packets, of those the first with payload,
//! and of their bytes the first; the lengths on the wire stay as they were. Where nothing but the count
//! of flows matters, also bare acknowledgements go, which no classifier looks at.

use std::collections::HashMap;

/// How much of a flow is kept.
#[derive(Clone, Copy)]
pub(crate) struct Keep {
    /// Packets, also without payload.
    packets: u32,
    /// Packets with payload among them; at least as many as are classified by.
    with_payload: u32,
    /// Bytes of the earlier and of the later packets.
    bytes: [usize; 2],
    /// How many packets with payload are earlier ones.
    earlier: u32,
    /// Whether bare acknowledgements are kept.
    acknowledgements: bool,
}

/// Half as many packets again as are classified by, with enough of their bytes to read what they say.
pub(crate) const MUCH: Keep =
    Keep { packets: 24, with_payload: 12, bytes: [400, 120], earlier: 5, acknowledgements: true };
/// What tells that a flow is not file sharing, for recordings of thousands of flows.
pub(crate) const LITTLE: Keep =
    Keep { packets: 10, with_payload: 8, bytes: [128, 70], earlier: 2, acknowledgements: false };

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
const ETHERNET: usize = 14;

/// A capture cut down, and how many flows it has.
pub(crate) fn cut(capture: &[u8], keep: Keep) -> Result<(Vec<u8>, usize), String> {
    let (head, mut rest) = capture.split_at_checked(FILE_HEADER).ok_or("no capture")?;
    if head[..4] != 0xa1b2_c3d4_u32.to_le_bytes() {
        return Err("not a capture of this machine's byte order with microseconds".to_owned());
    }
    let mut out = head.to_vec();
    let mut flows: HashMap<Flow, (u32, u32)> = HashMap::new();
    while let Some((header, after)) = rest.split_at_checked(PACKET_HEADER) {
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (packet, after) = after.split_at_checked(word(8) as usize).ok_or("ends in a packet")?;
        rest = after;
        let Some(Read { flow, payload, bare }) = read(packet) else { continue };
        let (packets, with_payload) = flows.entry(flow).or_default();
        if *packets == keep.packets
            || (payload > 0 && *with_payload == keep.with_payload)
            || (bare && !keep.acknowledgements)
        {
            continue;
        }
        *packets += 1;
        *with_payload += u32::from(payload > 0);
        let limit = keep.bytes[usize::from(*with_payload > keep.earlier)];
        let packet = &packet[..packet.len().min(limit)];
        out.extend_from_slice(&header[..8]);
        out.extend_from_slice(&u32::try_from(packet.len()).unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&header[12..]);
        out.extend_from_slice(packet);
    }
    Ok((out, flows.len()))
}

/// Protocol and the two sockets, the lower one first.
type Flow = (u8, [(Vec<u8>, [u8; 2]); 2]);

/// What is read of a packet.
struct Read {
    flow: Flow,
    /// Bytes on the wire.
    payload: usize,
    /// Whether it only acknowledges.
    bare: bool,
}

fn read(packet: &[u8]) -> Option<Read> {
    let ip = packet.get(ETHERNET..)?;
    let word = |at: usize| Some(usize::from(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?])));
    // Headers of IPv6 beside the first do not come here.
    let (header, total, protocol, addresses, width) = match packet.get(12..14)? {
        [8, 0] => (wire::ipv4::header_len(*ip.first()?), word(2)?, *ip.get(9)?, 12, 4),
        [0x86, 0xdd] => (40, word(4)? + 40, *ip.get(6)?, 8, 16),
        _ => return None,
    };
    let transport = ip.get(header..)?;
    let own = if protocol == 6 { usize::from(transport.get(12)? >> 4) * 4 } else { 8 };
    let socket = |number: usize| {
        let address = ip.get(addresses + number * width..)?.get(..width)?;
        Some((address.to_vec(), transport.get(number * 2..)?.first_chunk().copied()?))
    };
    let mut ends = [socket(0)?, socket(1)?];
    ends.sort_unstable();
    let payload = total.saturating_sub(header + own);
    // SYN, FIN and RST (RFC 9293, section 3.1).
    let bare = protocol == 6 && payload == 0 && transport.get(13)? & 0b111 == 0;
    Some(Read { flow: (protocol, ends), payload, bare })
}
