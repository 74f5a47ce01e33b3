//! `struct virtio_net_hdr_v1`, as TAP devices have it: in the machine's byte order (`TUNSETVNETLE` is
//! not used).

use super::GsoError;

/// Bytes of the header.
pub const HEADER: usize = 12;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM and VIRTIO_NET_HDR_F_DATA_VALID.
const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
/// VIRTIO_NET_HDR_GSO_*.
const TCPV4: u8 = 1;
const TCPV6: u8 = 4;
const UDP_L4: u8 = 5;
const ECN: u8 = 0x80;

/// How a super-packet is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segmentation {
    /// TCP over IPv4.
    Tcp4 {
        /// Whether its first segment carries CWR.
        ecn: bool,
    },
    /// TCP over IPv6.
    Tcp6 {
        /// Whether its first segment carries CWR.
        ecn: bool,
    },
    /// UDP over either.
    Udp,
}

/// What is before each frame of a TAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtioHeader {
    /// Whether a checksum is to be filled in: the sum from `csum_start` to the end, into the field at
    /// `csum_start + csum_offset`, which holds the sum of the pseudo header.
    pub needs_csum: bool,
    /// Whether the kernel has found the checksum right.
    pub data_valid: bool,
    /// How it is to be cut, if it is a super-packet.
    pub segmentation: Option<Segmentation>,
    /// A hint of how long the headers are.
    pub hdr_len: u16,
    /// Payload bytes of a segment.
    pub gso_size: u16,
    /// Where summing starts, from the frame's first byte.
    pub csum_start: u16,
    /// Where the checksum is, from there.
    pub csum_offset: u16,
}

impl VirtioHeader {
    /// Reads the header at the start of a frame's first piece.
    ///
    /// # Errors
    /// There are not enough bytes, or what they say is unknown.
    pub fn parse(frame: &[u8]) -> Result<Self, GsoError> {
        let short = GsoError::Short { what: "a virtio header", need: HEADER, have: frame.len() };
        let header: &[u8; HEADER] = frame.first_chunk().ok_or(short)?;
        let [flags, kind, rest @ ..] = header;
        let word = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
        if flags & !(NEEDS_CSUM | DATA_VALID) != 0 {
            return Err(GsoError::Flags(*flags));
        }
        let ecn = kind & ECN != 0;
        let segmentation = match kind & !ECN {
            0 if !ecn => None,
            TCPV4 => Some(Segmentation::Tcp4 { ecn }),
            TCPV6 => Some(Segmentation::Tcp6 { ecn }),
            UDP_L4 if !ecn => Some(Segmentation::Udp),
            _ => return Err(GsoError::Type(*kind)),
        };
        Ok(Self {
            needs_csum: flags & NEEDS_CSUM != 0,
            data_valid: flags & DATA_VALID != 0,
            segmentation,
            hdr_len: word(0),
            gso_size: word(2),
            csum_start: word(4),
            csum_offset: word(6),
        })
    }

    /// The header as bytes. The last field, of use only to drivers that merge buffers, is 0.
    pub fn bytes(&self) -> [u8; HEADER] {
        let flags = if self.needs_csum { NEEDS_CSUM } else { 0 }
            | if self.data_valid { DATA_VALID } else { 0 };
        let mut bytes = [0; HEADER];
        (bytes[0], bytes[1]) = (flags, self.kind());
        for (at, word) in
            [(2, self.hdr_len), (4, self.gso_size), (6, self.csum_start), (8, self.csum_offset)]
        {
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// The byte that defines how to cut.
    pub(super) fn kind(&self) -> u8 {
        let with = |ecn: bool| if ecn { ECN } else { 0 };
        match self.segmentation {
            None => 0,
            Some(Segmentation::Tcp4 { ecn }) => TCPV4 | with(ecn),
            Some(Segmentation::Tcp6 { ecn }) => TCPV6 | with(ecn),
            Some(Segmentation::Udp) => UDP_L4,
        }
    }
}
