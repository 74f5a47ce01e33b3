//! The Simple Two-way Active Measurement Protocol (RFC 8762), its extensions (RFC 8972), and TWAMP
//! Light (RFC 5357, appendix I), with which its unauthenticated mode works together.
//!
//! ```text
//!                T1 kernel's time of sending         T2 kernel's time of receiving
//! Session-Sender ─────────────── test packet ──────────────▶ Session-Reflector
//!                ◀────────────── reflected ─────────────────
//!                T4 kernel's time of receiving       T3 kernel's time of sending
//! ```
//!
//! A test packet carries the time at which it was made, shortly before T1, and how far the sender's clock
//! may be off; the kernel reports T1 a moment later, and the sender keeps that for itself. The reflected packet
//! carries T2 and the time at which it was made, shortly before T3. The kernel's T3 comes with the next
//! reflected packet, in a Follow-Up Telemetry TLV; without one, as from the driver's reflector, the time in
//! the packet stands for it.
//!
//! [`packet`] is both packets in both modes, [`tlv`] the extensions, [`time`] and [`estimate`] their
//! fields; [`sender`] and [`reflector`] are the two sides as values: bytes and clock readings in, bytes
//! and samples out. [`crate::delay`] moves the packets.

pub mod estimate;
pub mod key;
pub mod packet;
pub mod reflector;
pub mod refused;
pub mod sender;
pub mod time;
pub mod tlv;

pub use estimate::ErrorEstimate;
pub use key::Key;
pub use packet::{Reflected, Test};
pub use reflector::Reflector;
pub use refused::{Refusals, Refused};
pub use sender::Sender;
pub use time::Timestamp;

use crate::interval::MaximumError;
use std::net::SocketAddr;

/// The reflector's UDP port where nothing else is agreed (RFC 8762, section 4.1).
pub const PORT: u16 = 862;

/// Bytes of UDP payload that no test packet exceeds: an Ethernet frame's, without fragments, over IPv6.
pub const MAX_LENGTH: usize = 1452;

/// A packet as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The UDP payload.
    pub bytes: &'a [u8],
    /// Its sender.
    pub from: SocketAddr,
    /// When it was received: nanoseconds since 1970 by this machine's clock.
    pub at_ns: u64,
    /// Its TTL or hop limit.
    pub ttl: u8,
    /// The byte of its IP header that has DSCP and ECN.
    pub traffic_class: u8,
}

/// The clock's reading.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Nanoseconds since 1970.
    pub ns: u64,
    /// By how much that may be wrong.
    pub error: MaximumError,
}
