//! Packets that were held, and how such that follow each other become one.

use super::flow::{Key, Protocol, Side};
use super::record::{ADDRESSES, Direction, Reason, Record, TAG, network};
use wire::{IpProtocol, checksum};

/// Bytes of `struct virtio_net_hdr`.
const HEADER: usize = 10;
/// linux/virtio_net.h, VIRTIO_NET_HDR_*.
const NEEDS_CHECKSUM: u8 = 1;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
const ECN: u8 = 0x80;
/// TCP's control bits (RFC 9293, section 3.1).
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;
/// Where they stand, behind the begin of TCP's header; and the sequence number and the checksum.
const FLAGS: usize = 13;
const SEQUENCE: usize = 4;
const CHECK: usize = 16;
/// Bytes of IP's headers without more.
const IP4: usize = 20;
const IP6: usize = 40;

/// A packet that was held, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    key: Key,
    pub(super) direction: Direction,
    pub(super) ifindex: u32,
    /// The Ethernet frame, with its tags.
    pub(super) frame: Vec<u8>,
    /// Where its headers of network and transport and its payload begin.
    network: usize,
    transport: usize,
    payload: usize,
    /// Bytes of payload in each segment of a super-packet; 0: it is none.
    segment: u16,
    /// Whether its checksum is of the pseudo header alone.
    partial: bool,
}

impl Held {
    /// Of a record that says that it is held; `None` of others.
    pub fn of(record: &Record<'_>) -> Option<Self> {
        if record.reason != Reason::Held || record.frame.len() != record.length as usize {
            return None;
        }
        let mut frame = Vec::with_capacity(record.frame.len() + TAG);
        let (addresses, rest) =
            record.frame.split_at_checked(ADDRESSES).unwrap_or((record.frame, &[]));
        frame.extend_from_slice(addresses);
        if let Some((protocol, control)) = record.vlan {
            frame.extend_from_slice(&protocol.to_be_bytes());
            frame.extend_from_slice(&control.to_be_bytes());
        }
        frame.extend_from_slice(rest);
        let shift = frame.len() - record.frame.len();
        Some(Self {
            key: record.key,
            direction: record.direction,
            ifindex: record.ifindex,
            network: network(&frame).unwrap_or_default(),
            transport: record.transport + shift,
            payload: record.payload_at + shift,
            frame,
            segment: record.segment,
            partial: record.segment != 0 || record.partial,
        })
    }

    /// Its flow.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// Bytes that it takes.
    pub const fn bytes(&self) -> usize {
        self.frame.len()
    }

    /// Its header for a packet socket: `struct virtio_net_hdr`.
    pub(super) fn header(&self) -> [u8; HEADER] {
        let tcp = self.key.protocol() == Protocol::Tcp;
        let mut header = [0; HEADER];
        let mut put = |at: usize, value: usize| {
            header[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
        };
        if self.partial {
            put(6, self.transport);
            put(8, if tcp { CHECK } else { 6 });
        }
        if self.segment != 0 {
            put(2, self.payload);
            put(4, self.segment.into());
        }
        header[0] = if self.partial { NEEDS_CHECKSUM } else { 0 };
        if self.segment != 0 {
            header[1] = match (tcp, self.six()) {
                (true, false) => TCP4,
                (true, true) => TCP6,
                (false, _) => UDP,
            };
            if tcp && self.flags() & CWR != 0 {
                header[1] |= ECN;
            }
        }
        header
    }

    /// Makes one super-packet of segments of TCP that follow each other, as the kernel does with what it
    /// receives, so that they go on at once. Others stay as they are: whose bytes do not follow, whose
    /// headers say what one cannot say for both, or whose checksum is whole, which might be wrong and
    /// would be made again.
    ///
    /// Where the bytes are cut into segments may change; no segment is longer than one was before.
    pub fn join_all(held: Vec<Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        for next in held {
            let rest = match joined.last_mut() {
                Some(last) => last.join(next),
                None => Some(next),
            };
            joined.extend(rest);
        }
        joined
    }

    /// Takes the segment in that follows this one; gives it back where that cannot be.
    fn join(&mut self, next: Self) -> Option<Self> {
        let (length, more) = (self.length(), next.length());
        let total = length + more + self.payload.saturating_sub(self.network);
        let follows = next.key == self.key
            && length > 0
            && more > 0
            && next.direction == self.direction
            && next.ifindex == self.ifindex
            && self.partial
            && next.partial
            && self.below().is_some()
            && self.below() == next.below()
            && self.payload == next.payload
            && (self.flags() | next.flags()) & !(PSH | ACK) == 0
            && next.sequence() == self.sequence().wrapping_add(length as u32)
            && total <= usize::from(u16::MAX);
        if !follows || self.key.protocol() != Protocol::Tcp {
            return Some(next);
        }
        let size = |held: &Self, length: usize| match held.segment {
            0 => length,
            segment => segment.into(),
        };
        let segment = size(self, length).max(size(&next, more));
        // The later header says more of the other direction.
        let (sequence, flags) = (self.sequence(), self.flags() | next.flags());
        self.frame[..self.payload].copy_from_slice(&next.frame[..next.payload]);
        self.frame.extend_from_slice(&next.frame[next.payload..]);
        let (network, transport) = (self.network, self.transport);
        self.put(transport + SEQUENCE, &sequence.to_be_bytes());
        self.put(transport + FLAGS, &[flags]);
        self.segment = if length + more > segment { segment as u16 } else { 0 };
        if self.six() {
            self.put(network + 4, &((total - IP6) as u16).to_be_bytes());
        } else {
            self.put(network + 2, &(total as u16).to_be_bytes());
            self.put(network + 10, &[0, 0]);
            let check = checksum::checksum(self.part(network, IP4));
            self.put(network + 10, &check.to_be_bytes());
        }
        let tcp = total - (transport - network);
        // The same whichever address comes first.
        let [one, other] = [Side::Lower, Side::Higher].map(|side| self.key.socket(side).ip());
        let pseudo = checksum::pseudo(one, other, tcp as u32, IpProtocol::TCP);
        let check = pseudo.map(|sum| sum.fold()).unwrap_or_default();
        self.put(transport + CHECK, &check.to_be_bytes());
        None
    }

    /// Bytes of payload.
    const fn length(&self) -> usize {
        self.frame.len().saturating_sub(self.payload)
    }

    fn flags(&self) -> u8 {
        self.frame.get(self.transport + FLAGS).copied().unwrap_or_default()
    }

    fn sequence(&self) -> u32 {
        let bytes = self.part(self.transport + SEQUENCE, 4).try_into();
        bytes.map_or(0, u32::from_be_bytes)
    }

    /// What the headers below TCP's say but lengths, numbers and checksum; none where there are more of
    /// them than an IP header.
    fn below(&self) -> Option<[&[u8]; 3]> {
        let (at, length) = (self.network, self.transport.checked_sub(self.network)?);
        let [begin, rest, addresses] = match (self.six(), length) {
            (true, IP6) => [at + 4, at + 6, at + 8],
            (false, IP4) => [at + 2, at + 6, at + 12],
            _ => return None,
        };
        let middle = if self.six() { 2 } else { 4 };
        Some([
            self.part(0, begin),
            self.part(rest, middle),
            self.part(addresses, self.transport - addresses),
        ])
    }

    fn six(&self) -> bool {
        self.key.socket(Side::Lower).is_ipv6()
    }

    fn part(&self, at: usize, length: usize) -> &[u8] {
        self.frame.get(at..at + length).unwrap_or_default()
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(field) = self.frame.get_mut(at..at + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use wire::{ipv4, tcp};

    const SYN: u8 = 0x02;

    /// A segment of a connection of either family whose payload is `length` bytes from its number on.
    fn held(six: bool, sequence: u32, length: usize, flags: u8) -> Held {
        let sockets: [SocketAddr; 2] = if six {
            ["[2001:db8::1]:80".parse().unwrap(), "[2001:db8::2]:4000".parse().unwrap()]
        } else {
            ["192.0.2.1:80".parse().unwrap(), "198.51.100.2:4000".parse().unwrap()]
        };
        let mut frame = vec![2; ADDRESSES];
        if six {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(((20 + length) as u16).to_be_bytes());
            frame.extend([6, 64]);
        } else {
            frame.extend([0x08, 0, 0x45, 0]);
            frame.extend(((40 + length) as u16).to_be_bytes());
            frame.extend([0, 7, 0x40, 0, 64, 6, 0, 0]);
        }
        for socket in sockets {
            match socket.ip() {
                std::net::IpAddr::V4(ip) => frame.extend(ip.octets()),
                std::net::IpAddr::V6(ip) => frame.extend(ip.octets()),
            }
        }
        let transport = frame.len();
        frame.extend([0, 80, 0x0f, 0xa0]);
        frame.extend(sequence.to_be_bytes());
        frame.extend(9_u32.to_be_bytes());
        frame.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        let payload = frame.len();
        frame.extend((0..length as u32).map(|at| sequence.wrapping_add(at) as u8));
        Held {
            key: Key::new(Protocol::Tcp, sockets[0], sockets[1]),
            direction: Direction::ToInternal,
            ifindex: 3,
            frame,
            network: 14,
            transport,
            payload,
            segment: 0,
            partial: true,
        }
    }

    #[test]
    fn segments_that_follow_become_one_with_all_their_bytes() {
        for six in [false, true] {
            let begin = u32::MAX - 50;
            let mut whole = held(six, begin, 104, PSH | ACK);
            let mut long = held(six, begin.wrapping_add(104), 3000, ACK);
            long.segment = 1448;
            assert_eq!(whole.join(long), None);
            assert_eq!(whole.join(held(six, begin.wrapping_add(3104), 7, PSH | ACK)), None);
            let mut expected = held(six, begin, 3111, PSH | ACK);
            expected.segment = 1448;
            let header = tcp::Packet::new(&whole.frame[whole.transport..]).unwrap();
            assert_eq!((header.sequence(), header.payload().len()), (begin, 3111));
            let [from, to] = [Side::Lower, Side::Higher].map(|side| whole.key.socket(side).ip());
            let pseudo = checksum::pseudo(from, to, 3131, IpProtocol::TCP).unwrap();
            assert_eq!(header.checksum(), pseudo.fold());
            assert!(six || checksum::verifies(&whole.frame[14..34]));
            assert!(six || ipv4::Packet::new(&whole.frame[14..]).is_ok());
            // What is left is what one long segment has.
            for held in [&mut whole, &mut expected] {
                held.put(held.transport + CHECK, &[0, 0]);
                held.put(if six { 0 } else { 14 + 10 }, &[0, 0]);
            }
            assert_eq!(whole, expected);
        }
    }

    #[test]
    fn two_that_fit_into_one_segment_are_no_super_packet() {
        let mut whole = held(false, 5, 100, ACK);
        assert_eq!(whole.join(held(false, 105, 100, ACK)), None);
        assert_eq!((whole.segment, whole.bytes()), (100, 14 + 40 + 200));
        let mut long = held(false, 5, 100, ACK);
        long.segment = 1448;
        assert_eq!(long.join(held(false, 105, 100, ACK)), None);
        assert_eq!(long.segment, 0);
    }

    #[test]
    fn what_does_not_fit_stays_as_it_was() {
        let change = |change: fn(&mut Held)| {
            let mut next = held(false, 105, 10, ACK);
            change(&mut next);
            next
        };
        let others = [
            held(false, 106, 10, ACK),
            held(false, 104, 10, ACK),
            held(false, 105, 10, ACK | SYN),
            held(true, 105, 10, ACK),
            held(false, 105, 65_450, ACK),
            change(|next| next.partial = false),
            change(|next| next.direction = Direction::FromInternal),
            change(|next| next.ifindex = 4),
            change(|next| next.put(14 + 1, &[3])),
            change(|next| next.put(14 + 8, &[63])),
            change(|next| next.put(0, &[7])),
        ];
        for other in others {
            let mut one = held(false, 5, 100, ACK);
            assert_eq!(one.join(other.clone()), Some(other));
            assert_eq!(one, held(false, 5, 100, ACK));
        }
    }

    #[test]
    fn the_network_header_is_behind_all_tags() {
        let frame = |types: &[u8]| [&[0; ADDRESSES][..], types].concat();
        assert_eq!(network(&frame(&[8, 0])), Some(14));
        assert_eq!(network(&frame(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0])), Some(22));
        assert_eq!(network(&frame(&[0x81, 0, 0])), None);
    }
}
