//! What is in flight: packets from node to node, and frames on wires.

use crate::{
    LinkId, Nanos, PortId,
    pool::{Frame, IP, VIRTIO},
};

/// A packet in flight.
#[derive(Debug)]
pub(super) enum InFlight {
    /// From node to node.
    Packet(RoutedPacket),
    /// On a wire.
    Frame(WireFrame),
}

impl InFlight {
    pub(super) fn frame(&self) -> &Frame {
        match self {
            Self::Packet(routed) => &routed.frame,
            Self::Frame(wired) => &wired.frame,
        }
    }

    /// Bytes of the IP packet; of a frame on a wire, those behind its Ethernet header.
    pub(super) fn length(&self) -> u32 {
        match self {
            Self::Packet(routed) => routed.progress.length,
            Self::Frame(wired) => wired.frame.packet_length() as u32,
        }
    }

    /// Whether its sender allows marks of congestion.
    pub(super) fn ect(&self) -> bool {
        match self {
            Self::Packet(routed) => routed.progress.ect,
            Self::Frame(wired) => wired.ect,
        }
    }

    /// Where the frame's payload begins.
    pub(super) fn payload(&self) -> usize {
        match self {
            Self::Packet(_) => IP,
            Self::Frame(wired) => wired.payload,
        }
    }

    /// What a capture keeps of it.
    pub(super) fn part(&self) -> Part {
        match self {
            Self::Packet(routed) => Part::packet(&routed.progress),
            Self::Frame(wired) => Part::frame(&wired.frame),
        }
    }
}

/// A packet in flight from node to node.
#[derive(Debug)]
pub(super) struct RoutedPacket {
    pub frame: Frame,
    pub progress: Progress,
}

/// Where a packet is and what matters of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// When this leg began.
    pub began: Nanos,
    /// What comes first among equal times: [`PARTS`] squared for each packet that set out, so that there
    /// is room for the parts of a packet and for the parts of those.
    pub order: u64,
    /// Its path.
    pub path: u32,
    /// The state of the network for which the path was worked out.
    pub generation: u32,
    /// Bytes of the packet, and of the packets that it stands for.
    pub length: u32,
    pub segment: u32,
    /// Where it came from to where the path begins.
    pub origin: Origin,
    /// Where on it this leg began.
    pub from: u16,
    /// Where the leg ends: the next position at which something happens to the packet.
    pub stop: u16,
    pub ttl: u8,
    pub ect: bool,
    /// Whether it stands for several packets.
    pub is_super: bool,
    /// Whether it is an IPv4 packet that may be fragmented.
    pub may_fragment: bool,
    /// Whether a link has flipped a bit of it, so that the next node must read it again.
    pub damaged: bool,
    /// Whether captures have it as coming to the node where it is.
    pub captured: bool,
}

/// So many parts of a packet keep their order among equal times; more are rare.
pub(super) const PARTS: u64 = 1 << 10;

impl Progress {
    /// The progress of a part of this packet with so many bytes, which is no super-packet.
    pub(super) fn part(self, index: usize, bytes: usize) -> Self {
        let index = (index as u64 + 1).min(PARTS - 1);
        let order = match self.order {
            order if order % (PARTS * PARTS) == 0 => order + index * PARTS,
            order if order % PARTS == 0 => order + index,
            order => order,
        };
        let length = bytes as u32;
        Self { order, length, segment: length, is_super: false, ..self }
    }
}

/// How a packet came to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// From the host of a port.
    Port(PortId),
    /// By a link.
    Link(LinkId),
    /// The node made it.
    Node,
}

/// A frame that is on a wire.
#[derive(Debug)]
pub(super) struct WireFrame {
    pub frame: Frame,
    /// The link that it was put on.
    pub link: LinkId,
    /// The port where it leaves.
    pub to: PortId,
    /// Where its payload begins, behind tags.
    pub payload: usize,
    /// Whether its sender allows marks of congestion.
    pub ect: bool,
    /// What comes first among equal times.
    pub order: u64,
}

/// What a capture keeps of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Where it begins.
    pub(super) from: usize,
    /// How many bytes it has.
    pub(super) length: u32,
    /// Whether it stands for several packets.
    pub(super) is_super: bool,
}

impl Part {
    /// The packet in it.
    pub(super) fn packet(progress: &Progress) -> Self {
        Self { from: IP, length: progress.length, is_super: progress.is_super }
    }

    /// All of it.
    pub(super) fn frame(frame: &Frame) -> Self {
        // A super-packet's checksum cannot be finished, which is seen when that is tried.
        Self { from: VIRTIO, length: (frame.length() - VIRTIO) as u32, is_super: false }
    }
}
