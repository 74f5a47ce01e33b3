//! Extensions behind the base packet (RFC 8972, section 4).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+---------+---------------+-------------------------------+
//! |U|M|I|  zero   |     Type      |        Length of Value        |
//! +-+-+-+---------+---------------+-------------------------------+
//! |                             Value                             |
//! ```
//!
//! A sender sets U; a reflector clears it in what it understood, and sets M in what is malformed and I in
//! all of them when their authentication code is wrong. Which types are answered and asked for, and why
//! the others are not, is in docs/decisions/151.

use super::{Key, key::TAG, time::Timestamp};

/// The reflector has not understood it.
pub const UNRECOGNISED: u8 = 0x80;
/// The reflector found it malformed, and inspected nothing behind it.
pub const MALFORMED: u8 = 0x40;
/// The reflector found that the extensions' authentication code is wrong.
pub const NOT_AUTHENTIC: u8 = 0x20;

/// Types (section 5.1).
pub mod kind {
    /// Bytes that only make the packet longer.
    pub const EXTRA_PADDING: u8 = 1;
    /// How the reflector came by its timestamps.
    pub const TIMESTAMP_INFORMATION: u8 = 3;
    /// DSCP and ECN as they arrived.
    pub const CLASS_OF_SERVICE: u8 = 4;
    /// How many packets each side sent and received.
    pub const DIRECT_MEASUREMENT: u8 = 5;
    /// When the reflected packet before this one really left.
    pub const FOLLOW_UP_TELEMETRY: u8 = 7;
    /// The authentication code of the extensions before it.
    pub const HMAC: u8 = 8;
}

/// A timestamp from software on the same machine (section 5.5).
pub const SOFTWARE: u8 = 2;
/// A clock that follows NTP (section 5.4).
pub const SYNCHRONISED_BY_NTP: u8 = 1;
/// A clock that follows nothing (section 5.4).
pub const FREE_RUNNING: u8 = 5;

const HEADER: usize = 4;

/// What a reflector reports by extensions about one packet.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The byte that has DSCP and ECN of the test packet's IP header.
    pub traffic_class: u8,
    /// Whether the reflector's clock is synchronised.
    pub synchronised: bool,
    /// Test packets of the session that were received, this one too.
    pub received: u32,
    /// Those that were reflected before this one.
    pub reflected: u32,
    /// The last reflected packet of which the kernel reported when it left.
    pub left: Option<(u32, Timestamp)>,
}

/// The outcome of a test packet's extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// The DSCP that the sender wants in the reflected packet's IP header.
    pub dscp: Option<u8>,
}

/// Where a TLV is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    at: usize,
    end: usize,
    kind: u8,
}

/// The TLVs of bytes one by one; at the end, where one does not fit.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for Walk<'_> {
    /// A place, or the offset of a malformed one.
    type Item = Result<Extent, usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty())?;
        self.at = self.bytes.len();
        let Some(&[_, kind, high, low]) = rest.first_chunk() else { return Some(Err(at)) };
        let end = HEADER + usize::from(u16::from_be_bytes([high, low]));
        if end > rest.len() {
            return Some(Err(at));
        }
        self.at = at + end;
        Some(Ok(Extent { at, end: at + end, kind }))
    }
}

fn walk(bytes: &[u8]) -> Walk<'_> {
    Walk { bytes, at: 0 }
}

/// What is right about the code of extensions.
enum Authentic {
    /// There is none, and none is needed.
    NotAsked,
    /// It is right.
    Yes,
    /// It is wrong, missing or in the wrong place.
    No,
}

/// Looks for the code: behind all but padding, over the packet's number and all before it (section 4.8).
fn authentic(sequence: u32, bytes: &[u8], key: Option<&Key>, must: bool) -> Authentic {
    let Some(key) = key else { return Authentic::NotAsked };
    let mut extents = walk(bytes).filter_map(Result::ok);
    let Some(code) = extents.find(|extent| extent.kind == kind::HMAC) else {
        let mut extents = walk(bytes);
        let alone = matches!(extents.next(), Some(Ok(extent)) if extent.kind == kind::EXTRA_PADDING)
            && extents.next().is_none();
        return if must && !alone { Authentic::No } else { Authentic::NotAsked };
    };
    let padding_only = walk(&bytes[code.end..])
        .all(|extent| extent.is_ok_and(|extent| extent.kind == kind::EXTRA_PADDING));
    let right = padding_only
        && key.verifies(
            &[&sequence.to_be_bytes(), &bytes[..code.at]],
            &bytes[code.at + HEADER..code.end],
        );
    if right { Authentic::Yes } else { Authentic::No }
}

/// Makes what came behind a test packet what goes behind the reflected one, in place and at the same
/// length (section 4). `must` is for authenticated mode, which needs a code on extensions too.
pub fn answer(
    bytes: &mut [u8],
    (received, reflected): (u32, u32),
    key: Option<&Key>,
    must: bool,
    reported: &Report,
) -> Answered {
    let mut answered = Answered::default();
    if bytes.is_empty() {
        return answered;
    }
    let authenticity = authentic(received, bytes, key, must);
    if matches!(authenticity, Authentic::No) {
        let extents: Vec<_> =
            walk(bytes).map(|extent| extent.map_or_else(|at| at, |p| p.at)).collect();
        for at in extents {
            bytes[at] = (bytes[at] & (UNRECOGNISED | MALFORMED)) | NOT_AUTHENTIC;
        }
        return answered;
    }
    let mut at = 0;
    while at < bytes.len() {
        let next = Walk { bytes, at }.next();
        let Some(Ok(extent)) = next else {
            bytes[at] |= MALFORMED;
            return answered;
        };
        let (before, rest) = bytes.split_at_mut(extent.at);
        let (header, rest) = rest.split_at_mut(HEADER);
        let value = &mut rest[..extent.end - extent.at - HEADER];
        match understood(extent.kind, value, reported, &mut answered) {
            Some(true) => header[0] = 0,
            Some(false) => {
                header[0] = MALFORMED;
                return answered;
            }
            None if extent.kind == kind::HMAC && matches!(authenticity, Authentic::Yes) => {
                header[0] = 0;
                if let Some(key) = key {
                    value.copy_from_slice(&key.tag(&[&reflected.to_be_bytes(), before]));
                }
            }
            None => header[0] = UNRECOGNISED,
        }
        at = extent.end;
    }
    answered
}

/// Fills a value in: whether it is well formed, `None` for a type that is not answered.
fn understood(
    kind: u8,
    value: &mut [u8],
    reported: &Report,
    answered: &mut Answered,
) -> Option<bool> {
    match kind {
        kind::EXTRA_PADDING => {}
        kind::TIMESTAMP_INFORMATION => {
            let Some(fields) = value.first_chunk_mut() else { return Some(false) };
            let source = if reported.synchronised { SYNCHRONISED_BY_NTP } else { FREE_RUNNING };
            *fields = [source, SOFTWARE, source, SOFTWARE];
        }
        kind::CLASS_OF_SERVICE => {
            let Ok(fields) = <&mut [u8; 4]>::try_from(value) else { return Some(false) };
            // DSCP1, DSCP2, ECN, RP: six, six, two and two bits.
            let wanted = fields[0] >> 2;
            let (dscp, ecn) = (reported.traffic_class >> 2, reported.traffic_class & 3);
            // The reverse path may use what the forward path used, or nothing special.
            let permitted = wanted == dscp || wanted == 0;
            answered.dscp = Some(if permitted { wanted } else { dscp });
            *fields = [wanted << 2 | dscp >> 4, dscp << 4 | ecn << 2 | u8::from(!permitted), 0, 0];
        }
        kind::DIRECT_MEASUREMENT => {
            let Ok(fields) = <&mut [u8; 12]>::try_from(value) else { return Some(false) };
            fields[4..8].copy_from_slice(&reported.received.to_be_bytes());
            fields[8..].copy_from_slice(&reported.reflected.to_be_bytes());
        }
        kind::FOLLOW_UP_TELEMETRY => {
            let well_formed = value.len() == 16;
            value.fill(0);
            if let (true, Some((sequence, left))) = (well_formed, reported.left) {
                value[..4].copy_from_slice(&sequence.to_be_bytes());
                value[4..12].copy_from_slice(&left.0.to_be_bytes());
                value[12] = SOFTWARE;
            }
            return Some(well_formed);
        }
        _ => return None,
    }
    Some(true)
}

/// Which extensions a sender asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// When each reflected packet really left, reported by the next one.
    pub follow_up: bool,
    /// The outcome of DSCP and ECN on the path.
    pub class_of_service: bool,
    /// How the reflector stamps.
    pub timestamp_information: bool,
    /// The reflector's numbers of packets.
    pub direct_measurement: bool,
}

impl Ask {
    /// Bytes that the extensions take, without padding; with a key there is a code behind them.
    pub fn length(self, authenticated: bool) -> usize {
        let some = [
            (self.follow_up, 16),
            (self.class_of_service, 4),
            (self.timestamp_information, 4),
            (self.direct_measurement, 12),
        ];
        let length: usize =
            some.iter().filter(|(asked, _)| *asked).map(|(_, value)| HEADER + value).sum();
        if authenticated && length > 0 { length + HEADER + TAG } else { length }
    }
}

/// Writes what is asked for behind a test packet, then padding up to `length` bytes of packet where there
/// is room for a header of it. Padding is of zeros.
pub fn ask(
    ask: Ask,
    (sequence, sent): (u32, u32),
    dscp: u8,
    key: Option<&Key>,
    length: usize,
    out: &mut Vec<u8>,
) {
    let begin = out.len();
    let mut add = |asked: bool, kind: u8, value: &[u8]| {
        if asked {
            out.extend([UNRECOGNISED, kind, 0, value.len() as u8]);
            out.extend(value);
        }
    };
    add(ask.follow_up, kind::FOLLOW_UP_TELEMETRY, &[0; 16]);
    add(ask.class_of_service, kind::CLASS_OF_SERVICE, &[dscp << 2, 0, 0, 0]);
    add(ask.timestamp_information, kind::TIMESTAMP_INFORMATION, &[0; 4]);
    let mut counters = [0; 12];
    counters[..4].copy_from_slice(&sent.to_be_bytes());
    add(ask.direct_measurement, kind::DIRECT_MEASUREMENT, &counters);
    if let (Some(key), true) = (key, out.len() > begin) {
        let tag = key.tag(&[&sequence.to_be_bytes(), &out[begin..]]);
        out.extend([UNRECOGNISED, kind::HMAC, 0, TAG as u8]);
        out.extend(tag);
    }
    if let Some(padding) = length.checked_sub(out.len() + HEADER) {
        let [high, low] = (padding.min(0xffff) as u16).to_be_bytes();
        out.extend([UNRECOGNISED, kind::EXTRA_PADDING, high, low]);
        out.resize(out.len() + padding.min(0xffff), 0);
    }
}

/// What the extensions of a reflected packet report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// The number of an earlier reflected packet, and when it left.
    pub left: Option<(u32, Timestamp)>,
    /// The byte that has DSCP and ECN, as the test packet arrived with it.
    pub traffic_class: Option<u8>,
    /// The clock's source and how the time was taken, on arrival.
    pub timestamp_information: Option<[u8; 2]>,
    /// Test packets received, and reflected before this one, by the reflector's account.
    pub counted: Option<(u32, u32)>,
}

/// Reads the extensions of a reflected packet; what the reflector has not understood is passed over, and
/// nothing is believed behind what is malformed or if their code is wrong (section 4).
pub fn read(bytes: &[u8], sequence: u32, key: Option<&Key>, must: bool) -> Reported {
    let mut reported = Reported::default();
    if matches!(authentic(sequence, bytes, key, must), Authentic::No) {
        return reported;
    }
    let all_well = walk(bytes).all(|extent| extent.is_ok_and(|p| bytes[p.at] & NOT_AUTHENTIC == 0));
    if !all_well {
        return reported;
    }
    for extent in walk(bytes).flatten() {
        let (flags, value) = (bytes[extent.at], &bytes[extent.at + HEADER..extent.end]);
        if flags & MALFORMED != 0 {
            break;
        }
        if flags & UNRECOGNISED != 0 {
            continue;
        }
        match (extent.kind, value) {
            (kind::FOLLOW_UP_TELEMETRY, &[a, b, c, d, ref rest @ ..]) => {
                if let Some(left) = rest.first_chunk()
                    && rest.len() == 12
                    && rest[8] != 0
                {
                    let left = Timestamp(u64::from_be_bytes(*left));
                    reported.left = Some((u32::from_be_bytes([a, b, c, d]), left));
                }
            }
            (kind::CLASS_OF_SERVICE, &[first, second, _, _]) => {
                let dscp = (first & 3) << 4 | second >> 4;
                reported.traffic_class = Some(dscp << 2 | second >> 2 & 3);
            }
            (kind::TIMESTAMP_INFORMATION, &[source, method, ..]) => {
                reported.timestamp_information = Some([source, method]);
            }
            (kind::DIRECT_MEASUREMENT, &[_, _, _, _, a, b, c, d, e, f, g, h]) => {
                let count = |bytes| u32::from_be_bytes(bytes);
                reported.counted = Some((count([a, b, c, d]), count([e, f, g, h])));
            }
            _ => {}
        }
    }
    reported
}

#[cfg(test)]
mod tests;
