//! What the tests of both programs share: the Ethernet part of a frame, the sum of RFC 1071, and
//! numbers at random.

/// The sum of RFC 1071, as plainly as possible, not inverted.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The 16 bits at an offset, if they are there.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The EtherType behind at most two tags, and where the network header begins.
pub(crate) fn network_header(frame: &[u8]) -> Option<(u16, usize)> {
    let mut at = 12;
    for _ in 0..2 {
        if matches!(word(frame, at)?, 0x8100 | 0x88a8) {
            at += 4;
        }
    }
    Some((word(frame, at)?, at + 2))
}

/// What is around a packet on Ethernet.
#[derive(Clone, Debug)]
pub(crate) struct Ethernet {
    pub(crate) to: [u8; 6],
    pub(crate) from: [u8; 6],
    /// EtherType and tag control information of each VLAN tag.
    pub(crate) tags: Vec<(u16, u16)>,
    /// Instead of the packet's.
    pub(crate) ether_type: Option<u16>,
    /// Bytes behind the packet.
    pub(crate) padding: Vec<u8>,
}

impl Ethernet {
    /// From the gateway to the program's interface, nothing but the packet.
    pub(crate) fn plain() -> Self {
        Self {
            to: [0x02, 0, 0, 0, 0, 0x50],
            from: [0x02, 0, 0, 0, 0, 0x07],
            tags: Vec::new(),
            ether_type: None,
            padding: Vec::new(),
        }
    }

    /// The whole frame around a packet, whose EtherType this is.
    pub(crate) fn around(&self, ether_type: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = [self.to, self.from].concat();
        for (kind, control) in &self.tags {
            frame.extend(kind.to_be_bytes());
            frame.extend(control.to_be_bytes());
        }
        frame.extend(self.ether_type.unwrap_or(ether_type).to_be_bytes());
        frame.extend(packet);
        frame.extend(&self.padding);
        frame
    }
}

/// Reproducible random numbers.
pub(crate) struct Random(splitmix::Random);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(splitmix::Random::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// Evenly from 0 up to but not including `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// Cuts three frames of `many` short, or changes a byte of their headers or a bit of them.
    pub(crate) fn spoil(&mut self, frame: &mut Vec<u8>, many: usize) {
        match self.below(many) {
            0 => frame.truncate(14 + self.below(frame.len() - 13)),
            1 => {
                let at = self.below(frame.len().min(70));
                frame[at] = self.next() as u8;
            }
            2 => {
                let at = self.below(frame.len());
                frame[at] ^= 1 << self.below(8);
            }
            _ => {}
        }
    }
}
