//! Packets made of packets: segments, fragments, copies; and what leaves for a host.

use super::{
    Engine, Made, Reason,
    in_flight::{Progress, RoutedPacket},
};
use crate::{
    Nanos, PortId,
    gso::{self, Checksums, SuperPacket},
    packet,
    pool::{ETHERNET, Frame, IP, VIRTIO},
};

/// Bytes of fragments, but for the last, are multiples of this: RFC 791, section 3.1.
const UNIT: usize = 8;

impl Engine {
    /// Puts the packets in a super-packet's place that it stands for. `then` goes on with each.
    pub(super) fn split(&mut self, routed: RoutedPacket, then: impl Fn(&mut Self, RoutedPacket)) {
        let whole = routed.progress;
        let cut = self.cut(&routed.frame, |engine, index, frame| {
            engine.paths.hold(whole.path);
            let progress = whole.part(index, frame.packet_length());
            then(engine, RoutedPacket { frame, progress });
        });
        self.finish(routed, if cut { Reason::Split } else { Reason::Malformed });
    }

    /// Makes the packets that a super-packet stands for; `then` goes on with each. False if it is none.
    pub(super) fn cut(&mut self, frame: &Frame, then: impl Fn(&mut Self, usize, Frame)) -> bool {
        let Ok(Some(whole)) = SuperPacket::parse(self.pool.head(frame), frame.length()) else {
            return false;
        };
        let length = IP + whole.largest() as usize;
        for index in 0..whole.segments() {
            self.ledger[Made::Segment] += 1;
            let Some(mut part) = self.pool.take_long(length) else {
                self.ledger[Reason::NoBuffer] += 1;
                continue;
            };
            let (from, to) = self.pool.both(frame, &part);
            let Ok(length) = whole.write(index, from, to, Checksums::Left) else {
                self.end(part, Reason::Malformed);
                continue;
            };
            self.pool.cut(&mut part, length);
            then(self, index as usize, part);
        }
        true
    }

    /// Puts fragments of at most `mtu` bytes in a packet's place, at the same node.
    pub(super) fn fragment(&mut self, at: Nanos, routed: RoutedPacket, mtu: u32) {
        self.finish_checksum(&routed.frame);
        let Some(shape) = packet::Shape::read(self.pool.head(&routed.frame)) else {
            return self.finish(routed, Reason::Malformed);
        };
        let each = (mtu as usize).saturating_sub(shape.header) / UNIT * UNIT;
        if each == 0 {
            return self.finish(routed, Reason::TooBig);
        }
        let payload = routed.progress.length as usize - shape.header;
        for start in (0..payload).step_by(each) {
            let bytes = each.min(payload - start);
            self.ledger[Made::Fragment] += 1;
            let Some(part) = self.pool.take_long(IP + shape.header + bytes) else {
                self.ledger[Reason::NoBuffer] += 1;
                continue;
            };
            self.pool.copy(&routed.frame, 0, &part, 0, IP + shape.header);
            let from = IP + shape.header + start;
            self.pool.copy(&routed.frame, from, &part, IP + shape.header, bytes);
            let last = start + bytes == payload;
            if let Some(ip) = self.pool.head_mut(&part).get_mut(IP..) {
                shape.write(ip, start, bytes, last);
            }
            self.paths.hold(routed.progress.path);
            let progress = routed.progress.part(start / each, shape.header + bytes);
            let progress = Progress { from: progress.stop, began: at, ..progress };
            self.leave(RoutedPacket { frame: part, progress });
        }
        self.finish(routed, Reason::Fragmented);
    }

    /// A second frame with the same bytes, if there is room.
    pub(super) fn twin(&mut self, frame: &Frame) -> Option<Frame> {
        let twin = self.pool.take_long(frame.length())?;
        self.pool.copy(frame, 0, &twin, 0, frame.length());
        Some(twin)
    }

    /// Flips a bit behind a frame's Ethernet header, if it has that bit.
    pub(super) fn flip_bit(&mut self, frame: &Frame, bit: u32) -> bool {
        self.finish_checksum(frame);
        let at = IP + bit as usize / 8;
        let [head, rest] = self.pool.pieces_mut(frame);
        let in_head = head.len();
        let byte = head.get_mut(at).or_else(|| rest.get_mut(at.checked_sub(in_head)?));
        let Some(byte) = byte else { return false };
        *byte ^= 1 << (bit % 8);
        true
    }

    /// Computes a checksum that the sending host has left to its network card.
    pub(super) fn finish_checksum(&mut self, frame: &Frame) {
        // What cannot be computed was wrong when it came and stays so.
        let _ = gso::finish_checksum(self.pool.pieces_mut(frame));
    }

    /// Hands a packet to its host.
    pub(super) fn deliver(&mut self, at: Nanos, id: PortId, routed: RoutedPacket) {
        let port = self.ports.get(usize::from(id.0));
        let Some((host, mac, plain)) =
            port.and_then(|port| Some((port.host?, port.mac, port.plain)))
        else {
            self.ask_for_host(at, id, &routed.frame);
            return self.finish(routed, Reason::HostUnknown);
        };
        if plain {
            if routed.progress.is_super {
                return self.split(routed, |engine, part| engine.deliver(at, id, part));
            }
            self.finish_checksum(&routed.frame);
        }
        if let Some(header) = self.pool.head_mut(&routed.frame).get_mut(..VIRTIO + ETHERNET) {
            if plain {
                header[..VIRTIO].fill(0);
            }
            header[VIRTIO..VIRTIO + 6].copy_from_slice(&host.0);
            header[VIRTIO + 6..VIRTIO + 12].copy_from_slice(&mac.0);
        }
        self.paths.release(routed.progress.path);
        self.ready.push((id, routed.frame));
    }
}
