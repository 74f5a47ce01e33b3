//! Super-packets as a TAP would give them, built by hand.

use lab::gso::{HEADER, Segmentation, VirtioHeader};

/// What a super-packet is made of.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) v4: bool,
    pub(crate) tcp: bool,
    /// Bytes of options, a multiple of 4, up to 40; none with UDP.
    pub(crate) options: usize,
    /// TCP's flags.
    pub(crate) flags: u8,
    /// IPv4's identification.
    pub(crate) id: u16,
    /// TCP's sequence number.
    pub(crate) number: u32,
    pub(crate) size: u16,
    pub(crate) payload: Vec<u8>,
}

/// Addresses of either end, as the last octet.
pub(crate) const ENDS: [u8; 2] = [1, 2];
/// Ethernet addresses of either end.
pub(crate) const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

impl Made {
    /// Bytes before the payload, from Ethernet on.
    pub(crate) fn headers(&self) -> usize {
        14 + self.network() + self.transport()
    }

    fn network(&self) -> usize {
        if self.v4 { 20 } else { 40 }
    }

    fn transport(&self) -> usize {
        if self.tcp { 20 + self.options } else { 8 }
    }

    /// The frame with its virtio header, the checksum left to be filled in.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let upper = self.transport() + self.payload.len();
        let protocol = if self.tcp { 6 } else { 17 };
        let mut frame = self.virtio().bytes().to_vec();
        frame.extend(MACS[1]);
        frame.extend(MACS[0]);
        let mut pseudo = wire::checksum::Sum::default().word(protocol);
        if self.v4 {
            frame.extend([0x08, 0x00]);
            let mut ip = vec![0x45, 0];
            ip.extend(((20 + upper) as u16).to_be_bytes());
            ip.extend(self.id.to_be_bytes());
            ip.extend([0, 0, 64, protocol as u8, 0, 0]);
            for end in ENDS {
                ip.extend([192, 0, 2, end]);
            }
            let check = wire::checksum::checksum(&ip);
            ip[10..12].copy_from_slice(&check.to_be_bytes());
            pseudo = pseudo.bytes(&ip[12..20]);
            frame.extend(ip);
        } else {
            frame.extend([0x86, 0xdd]);
            let mut ip = vec![0x60, 1, 2, 3];
            ip.extend((upper as u16).to_be_bytes());
            ip.extend([protocol as u8, 64]);
            for end in ENDS {
                ip.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
            }
            pseudo = pseudo.bytes(&ip[8..40]);
            frame.extend(ip);
        }
        let partial = pseudo.word(upper as u16).fold().to_be_bytes();
        frame.extend([0x12, 0x34, 0x56, 0x78]);
        if self.tcp {
            frame.extend(self.number.to_be_bytes());
            frame.extend([9, 8, 7, 6, (self.transport() as u8 / 4) << 4, self.flags, 1, 0]);
            frame.extend(partial);
            frame.extend([0, 0]);
            // No-operation options.
            frame.extend(std::iter::repeat_n(1, self.options));
        } else {
            frame.extend((upper as u16).to_be_bytes());
            frame.extend(partial);
        }
        frame.extend(&self.payload);
        frame
    }

    fn virtio(&self) -> VirtioHeader {
        let ecn = self.flags & 0x80 != 0;
        VirtioHeader {
            needs_csum: true,
            data_valid: false,
            segmentation: Some(match (self.tcp, self.v4) {
                (true, true) => Segmentation::Tcp4 { ecn },
                (true, false) => Segmentation::Tcp6 { ecn },
                (false, _) => Segmentation::Udp,
            }),
            hdr_len: self.headers() as u16,
            gso_size: self.size,
            csum_start: 14 + self.network() as u16,
            csum_offset: if self.tcp { 16 } else { 6 },
        }
    }
}

/// A frame in two pieces, as it lies in a pool.
pub(crate) fn pieces(frame: &[u8], first: usize) -> [&[u8]; 2] {
    let (first, second) = frame.split_at(first.clamp(HEADER, frame.len().max(HEADER)));
    [first, second]
}

/// Bytes that are not regular, the same each time.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = splitmix::Random::new(seed);
    std::iter::repeat_with(|| random.bits() as u8).take(length).collect()
}
