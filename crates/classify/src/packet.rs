//! A packet of a flow, as far as it was copied out of the kernel or read from a capture.

use crate::flow::Side;
use serde::{Deserialize, Serialize};

/// One packet with its transport header read. The payload may be cut short and may be that of a
/// super-packet of up to 64 KiB, as the kernel joins segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Packet<'a> {
    /// When it was seen, nanoseconds of the capture's clock (live: since boot, CLOCK_BOOTTIME).
    pub at_ns: u64,
    /// Which end of its flow sent it.
    pub from: Side,
    /// TCP's header; none for UDP.
    pub tcp: Option<Tcp>,
    /// What follows the transport header, as far as it was copied.
    #[serde(borrow, with = "serde_bytes")]
    pub payload: &'a [u8],
    /// Bytes that followed it on the wire, at least `payload.len()`.
    pub length: u32,
}

/// What of TCP's header is needed (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Tcp {
    /// Sequence number of the first byte of the payload, or of the SYN.
    pub sequence: u32,
    /// Acknowledgement number; means nothing without the flag ACK.
    pub acknowledgement: u32,
    /// The control bits FIN (1), SYN (2), RST (4), PSH (8), ACK (16), URG (32), ECE, CWR.
    pub flags: u8,
}

impl Tcp {
    /// No more data from its sender.
    pub const FIN: u8 = 1;
    /// Begins a connection.
    pub const SYN: u8 = 2;
    /// Ends a connection at once.
    pub const RST: u8 = 4;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 16;

    /// Whether a control bit is set.
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
