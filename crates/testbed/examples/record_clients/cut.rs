//! Keeps the beginning of each flow of a capture: what a classifier sees.
//!
//! Classic pcap, Ethernet, IPv4. Of a flow stay the first packets, of those the first with payload,
//! and of their bytes the first; the lengths on the wire stay as they were.

use std::collections::HashMap;

/// Packets of a flow that are kept.
const PACKETS: u32 = 24;
/// Packets with payload among them; half as many again as are classified by.
const WITH_PAYLOAD: u32 = 12;
/// Bytes of the earlier and of the later packets.
const BYTES: [usize; 2] = [400, 120];
/// How many packets with payload are earlier ones.
const EARLIER: u32 = 5;

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
const ETHERNET: usize = 14;

/// A capture cut down, and how many flows it has.
pub(crate) fn cut(capture: &[u8]) -> Result<(Vec<u8>, usize), String> {
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
        let Some((flow, payload)) = read(packet) else { continue };
        let (packets, with_payload) = flows.entry(flow).or_default();
        if *packets == PACKETS || (payload > 0 && *with_payload == WITH_PAYLOAD) {
            continue;
        }
        *packets += 1;
        *with_payload += u32::from(payload > 0);
        let limit = BYTES[usize::from(*with_payload > EARLIER)];
        let packet = &packet[..packet.len().min(limit)];
        out.extend_from_slice(&header[..8]);
        out.extend_from_slice(&u32::try_from(packet.len()).unwrap_or_default().to_le_bytes());
        out.extend_from_slice(&header[12..]);
        out.extend_from_slice(packet);
    }
    Ok((out, flows.len()))
}

/// Protocol and the two sockets, the lower one first.
type Flow = (u8, [[u8; 6]; 2]);

/// The flow of a packet, and the bytes of its payload on the wire.
fn read(packet: &[u8]) -> Option<(Flow, usize)> {
    let ip = packet.get(ETHERNET..)?;
    if packet.get(12..14)? != [8, 0] {
        return None;
    }
    let header = usize::from(ip.first()? & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?]));
    let transport = ip.get(header..)?;
    let protocol = *ip.get(9)?;
    let own = if protocol == 6 { usize::from(transport.get(12)? >> 4) * 4 } else { 8 };
    let socket = |address: usize, port: usize| {
        let mut socket = [0; 6];
        socket[..4].copy_from_slice(ip.get(address..address + 4)?);
        socket[4..].copy_from_slice(transport.get(port..port + 2)?);
        Some(socket)
    };
    let mut ends = [socket(12, 0)?, socket(16, 2)?];
    ends.sort_unstable();
    Some(((protocol, ends), total.saturating_sub(header + own)))
}
