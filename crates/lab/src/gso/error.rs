//! What can be wrong with a frame and its virtio header.

/// A frame that its virtio header does not fit, or a buffer that a segment does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GsoError {
    /// There is less than there must be.
    #[error("{what} takes {need} bytes and there are {have}")]
    Short {
        /// Of what.
        what: &'static str,
        /// Bytes that it takes.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// The header has flags about which nothing is known.
    #[error("unknown flags {0:#04x} in the virtio header")]
    Flags(u8),
    /// The header names a segmentation that was not offered, or of another protocol than the packet's.
    #[error("segmentation type {0:#04x} was not offered or does not fit the packet")]
    Type(u8),
    /// The header asks for segments of no bytes.
    #[error("segments of 0 bytes")]
    SegmentSize,
    /// The header places the checksum where the packet has none.
    #[error("the checksum is to be from {start} at {offset}, which the packet does not have")]
    Checksum {
        /// Where summing starts.
        start: u16,
        /// Where the checksum is, from there.
        offset: u16,
    },
    /// The packet's own length does not fit the frame's.
    #[error("the IP packet says that it has {says} bytes and has {has}")]
    Length {
        /// What its header says.
        says: usize,
        /// What the frame holds.
        has: usize,
    },
    /// Headers that cannot be in a super-packet.
    #[error("a super-packet of {0}")]
    Unsupported(&'static str),
}
