//! The two base packets in both modes (RFC 8762, sections 4.2 and 4.3; RFC 8972, section 3, for the SSID).
//!
//! Both modes have the same fields at other offsets; what lies between them is zero when it is sent and
//! nobody's concern when it is received. Extensions follow the base packet, see [`super::tlv`].

use super::{
    Key, Refused,
    estimate::ErrorEstimate,
    key::TAG,
    time::{Format, Timestamp},
};

/// Where the fields of a mode are.
#[derive(Debug)]
struct Layout {
    /// Bytes of the base packet.
    length: usize,
    timestamp: usize,
    error: usize,
    ssid: usize,
    // From here on only reflected packets have something there.
    received: usize,
    sender_sequence: usize,
    sender_timestamp: usize,
    sender_error: usize,
    ttl: usize,
}

/// Figures 2 and 5; figures 1 and 2 of RFC 8972.
const PLAIN: Layout = Layout {
    length: 44,
    timestamp: 4,
    error: 12,
    ssid: 14,
    received: 16,
    sender_sequence: 24,
    sender_timestamp: 28,
    sender_error: 36,
    ttl: 40,
};

/// Figures 4 and 6; figures 3 and 4 of RFC 8972.
const AUTHENTICATED: Layout = Layout {
    length: 112,
    timestamp: 16,
    error: 24,
    ssid: 26,
    received: 32,
    sender_sequence: 48,
    sender_timestamp: 64,
    sender_error: 72,
    ttl: 80,
};

/// Six blocks of sixteen bytes are authenticated (RFC 8762, section 4.4); the code follows.
const PROTECTED: usize = 96;

/// Bytes of a reflected packet up to its last field: TWAMP Light's ends there (RFC 5357, section 4.2.1).
pub const TWAMP_REFLECTED: usize = 41;

/// Bytes of a base packet, with and without a key.
pub const fn base_length(authenticated: bool) -> usize {
    if authenticated { AUTHENTICATED.length } else { PLAIN.length }
}

const fn layout(key: Option<&Key>) -> &'static Layout {
    if key.is_some() { &AUTHENTICATED } else { &PLAIN }
}

/// A Session-Sender's test packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// From zero, one more with each packet of the session.
    pub sequence: u32,
    /// When it was sent (T1).
    pub timestamp: Timestamp,
    /// How far that may be off.
    pub error: ErrorEstimate,
    /// The session's number, zero without one.
    pub ssid: u16,
}

/// A Session-Reflector's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reflected {
    /// Of a stateful reflector, from zero, one more with each packet reflected in the session; a
    /// stateless one copies the sender's.
    pub sequence: u32,
    /// When it was sent (T3).
    pub timestamp: Timestamp,
    /// How far this and `received` may be off.
    pub error: ErrorEstimate,
    /// Copied from the test packet.
    pub ssid: u16,
    /// When the test packet was received (T2).
    pub received: Timestamp,
    /// The test packet's number, copied.
    pub sender_sequence: u32,
    /// The test packet's timestamp, copied.
    pub sender_timestamp: Timestamp,
    /// The test packet's Error Estimate, copied.
    pub sender_error: ErrorEstimate,
    /// TTL or hop limit with which the test packet arrived.
    pub sender_ttl: u8,
}

impl Test {
    /// Reads a test packet; one with a key is verified before anything else of it is checked.
    ///
    /// # Errors
    /// When it is too short, not authentic, or its Error Estimate is corrupt.
    pub fn parse(bytes: &[u8], key: Option<&Key>) -> Result<Self, Refused> {
        let at = layout(key);
        // TWAMP Light's test packets end where they like, as short as the reflected one's fields: what
        // is behind the fields of a test packet is padding there.
        let least = if key.is_some() { at.length } else { TWAMP_REFLECTED };
        let packet = Fields(bytes.get(..least).ok_or(Refused::TooShort)?);
        packet.verify(key)?;
        let error = ErrorEstimate(packet.u16(at.error));
        if error.is_corrupt() {
            return Err(Refused::Corrupt);
        }
        Ok(Self {
            sequence: packet.u32(0),
            timestamp: Timestamp(packet.u64(at.timestamp)),
            error,
            ssid: packet.u16(at.ssid),
        })
    }

    /// Writes the base packet in place of whatever the buffer held.
    pub fn emit(&self, key: Option<&Key>, out: &mut Vec<u8>) {
        let at = layout(key);
        out.clear();
        out.resize(at.length, 0);
        put(out, 0, &self.sequence.to_be_bytes());
        put(out, at.timestamp, &self.timestamp.0.to_be_bytes());
        put(out, at.error, &self.error.0.to_be_bytes());
        put(out, at.ssid, &self.ssid.to_be_bytes());
        sign(key, out);
    }
}

/// The SSID of an unauthenticated test packet, by which its session is found before it is read.
pub fn plain_ssid(bytes: &[u8]) -> Option<u16> {
    bytes.get(PLAIN.ssid..PLAIN.ssid + 2).map(|field| u16::from_be_bytes([field[0], field[1]]))
}

/// The SSID of an authenticated test packet; nothing is to be believed of it until it is verified.
pub fn authenticated_ssid(bytes: &[u8]) -> Option<u16> {
    let at = AUTHENTICATED.ssid;
    bytes.get(at..at + 2).map(|field| u16::from_be_bytes([field[0], field[1]]))
}

impl Reflected {
    /// Reads a reflected packet; one with a key is verified before anything else of it is checked.
    /// One without may be TWAMP Light's, three bytes shorter.
    ///
    /// # Errors
    /// When it is too short or not authentic.
    pub fn parse(bytes: &[u8], key: Option<&Key>) -> Result<Self, Refused> {
        let at = layout(key);
        let least = if key.is_some() { at.length } else { TWAMP_REFLECTED };
        let packet = Fields(bytes.get(..least).ok_or(Refused::TooShort)?);
        packet.verify(key)?;
        Ok(Self {
            sequence: packet.u32(0),
            timestamp: Timestamp(packet.u64(at.timestamp)),
            error: ErrorEstimate(packet.u16(at.error)),
            ssid: packet.u16(at.ssid),
            received: Timestamp(packet.u64(at.received)),
            sender_sequence: packet.u32(at.sender_sequence),
            sender_timestamp: Timestamp(packet.u64(at.sender_timestamp)),
            sender_error: ErrorEstimate(packet.u16(at.sender_error)),
            sender_ttl: packet.0[at.ttl],
        })
    }

    /// Writes the base packet in place of whatever the buffer held.
    pub fn emit(&self, key: Option<&Key>, out: &mut Vec<u8>) {
        let at = layout(key);
        out.clear();
        out.resize(at.length, 0);
        put(out, 0, &self.sequence.to_be_bytes());
        put(out, at.timestamp, &self.timestamp.0.to_be_bytes());
        put(out, at.error, &self.error.0.to_be_bytes());
        put(out, at.ssid, &self.ssid.to_be_bytes());
        put(out, at.received, &self.received.0.to_be_bytes());
        put(out, at.sender_sequence, &self.sender_sequence.to_be_bytes());
        put(out, at.sender_timestamp, &self.sender_timestamp.0.to_be_bytes());
        put(out, at.sender_error, &self.sender_error.0.to_be_bytes());
        put(out, at.ttl, &[self.sender_ttl]);
        sign(key, out);
    }

    /// Whether the reflector's moments can be compared with ours: PTP's scale is not certain.
    pub fn is_comparable(&self) -> bool {
        self.error.format() == Format::Ntp
    }
}

/// A base packet whose length was checked once; offsets are those of its layout, which lie within.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.0[at..at + N]);
        field
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.take(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.take(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.take(at))
    }

    fn verify(&self, key: Option<&Key>) -> Result<(), Refused> {
        let Some(key) = key else { return Ok(()) };
        let (text, tag) = self.0.split_at(PROTECTED);
        if key.verifies(&[text], tag) { Ok(()) } else { Err(Refused::NotAuthentic) }
    }
}

fn put(packet: &mut [u8], at: usize, field: &[u8]) {
    packet[at..at + field.len()].copy_from_slice(field);
}

/// Writes the code of a packet that has a key behind what it protects.
fn sign(key: Option<&Key>, packet: &mut [u8]) {
    if let Some(key) = key {
        let tag: [u8; TAG] = key.tag(&[&packet[..PROTECTED]]);
        put(packet, PROTECTED, &tag);
    }
}

#[cfg(test)]
mod tests;
