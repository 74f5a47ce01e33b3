//! IPv4 (RFC 791): header with options, fragments seen but not put together.

use std::net::Ipv4Addr;

use crate::{
    EmitError, Fault, IpProtocol, Layer, ParseError,
    bytes::{array_at, need, put_u16, room, u16_at},
    checksum,
};

/// Bytes of a header without options.
pub const HEADER: usize = 20;

/// Bytes of a header with its options, by its first byte (RFC 791, section 3.1: IHL); less than
/// [`HEADER`] if that is wrong.
#[inline]
pub const fn header_len(first: u8) -> usize {
    (first & 0x0f) as usize * 4
}

/// Flags and fragment offset: bytes 6 and 7 of a header (RFC 791, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentField(pub u16);

impl FragmentField {
    /// The field of a whole packet that routers may not fragment.
    pub const DONT_FRAGMENT: Self = Self(0x4000);
    const MORE: u16 = 0x2000;

    /// The field of a fragment that routers may fragment further; the offset, in bytes, is a multiple of 8.
    #[inline]
    pub const fn of_fragment(offset: u16, more: bool) -> Self {
        Self(offset >> 3 | if more { Self::MORE } else { 0 })
    }

    /// Where the fragment belongs, in bytes.
    #[inline]
    pub const fn offset(self) -> u16 {
        // The shift drops the flags.
        self.0 << 3
    }

    /// Whether fragments follow this one.
    #[inline]
    pub const fn more_fragments(self) -> bool {
        self.0 & Self::MORE != 0
    }

    /// Whether routers may not fragment.
    #[inline]
    pub const fn dont_fragment(self) -> bool {
        self.0 & Self::DONT_FRAGMENT.0 != 0
    }

    /// Whether the packet is one of several fragments.
    #[inline]
    pub const fn is_fragment(self) -> bool {
        self.more_fragments() || self.offset() != 0
    }
}

/// A view over a packet; bytes behind its total length (Ethernet padding) are not part of it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks version, header length and total length against each other and the bytes.
    pub fn new(data: T) -> Result<Self, ParseError> {
        let bytes = data.as_ref();
        let wrong = |offset, fault| ParseError { layer: Layer::Ipv4, offset, fault };
        need(Layer::Ipv4, bytes, 1)?;
        if bytes[0] >> 4 != 4 {
            return Err(wrong(0, Fault::Version(bytes[0] >> 4)));
        }
        let header = header_len(bytes[0]);
        if header < HEADER {
            return Err(wrong(0, Fault::Length(header)));
        }
        need(Layer::Ipv4, bytes, header)?;
        let total = usize::from(u16_at(bytes, 2));
        if total < header {
            return Err(wrong(2, Fault::Length(total)));
        }
        need(Layer::Ipv4, bytes, total)?;
        Ok(Self(data))
    }

    /// Bytes of the header with its options.
    pub fn header_len(&self) -> usize {
        header_len(self.0.as_ref()[0])
    }

    /// Differentiated services and congestion bits.
    pub fn traffic_class(&self) -> u8 {
        self.0.as_ref()[1]
    }

    /// Bytes of header and payload.
    pub fn total_len(&self) -> usize {
        usize::from(u16_at(self.0.as_ref(), 2))
    }

    /// What joins fragments.
    pub fn identification(&self) -> u16 {
        u16_at(self.0.as_ref(), 4)
    }

    /// Flags and fragment offset.
    pub fn fragment_field(&self) -> FragmentField {
        FragmentField(u16_at(self.0.as_ref(), 6))
    }

    /// Whether the packet is one of several fragments.
    pub fn is_fragment(&self) -> bool {
        self.fragment_field().is_fragment()
    }

    /// Hops that are left.
    pub fn ttl(&self) -> u8 {
        self.0.as_ref()[8]
    }

    /// What the packet carries.
    pub fn protocol(&self) -> IpProtocol {
        IpProtocol(self.0.as_ref()[9])
    }

    /// The header's checksum as it stands.
    pub fn checksum(&self) -> u16 {
        u16_at(self.0.as_ref(), 10)
    }

    /// Whether the header's checksum is right.
    pub fn checksum_ok(&self) -> bool {
        checksum::verifies(&self.0.as_ref()[..self.header_len()])
    }

    /// Where the packet comes from.
    pub fn source(&self) -> Ipv4Addr {
        array_at(self.0.as_ref(), 12).into()
    }

    /// Where it goes.
    pub fn destination(&self) -> Ipv4Addr {
        array_at(self.0.as_ref(), 16).into()
    }

    /// The options, not interpreted.
    pub fn options(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..self.header_len()]
    }

    /// What follows the header, up to the total length.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_len()..self.total_len()]
    }
}

/// An IPv4 header without options as a value, of a packet that is no fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Where the packet comes from.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// What it carries.
    pub protocol: IpProtocol,
    /// Hops that are left.
    pub ttl: u8,
    /// Differentiated services and congestion bits.
    pub traffic_class: u8,
    /// What joins fragments.
    pub identification: u16,
    /// Whether routers may not fragment.
    pub dont_fragment: bool,
    /// Bytes behind the header.
    pub payload_len: usize,
}

impl Repr {
    /// Reads the header.
    ///
    /// # Errors
    /// When the checksum is wrong, there are options, or the packet is a fragment.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, ParseError> {
        let wrong = |offset, fault| ParseError { layer: Layer::Ipv4, offset, fault };
        if !packet.checksum_ok() {
            let mut header = packet.0.as_ref()[..packet.header_len()].to_vec();
            put_u16(&mut header, 10, 0);
            let right = checksum::checksum(&header);
            return Err(wrong(10, Fault::Checksum { found: packet.checksum(), right }));
        }
        if let Some(&first) = packet.options().first() {
            let fault = Fault::Unexpected { what: "an option", value: first.into() };
            return Err(wrong(HEADER, fault));
        }
        if packet.is_fragment() {
            let value = packet.fragment_field().0.into();
            return Err(wrong(6, Fault::Unexpected { what: "the fragment field", value }));
        }
        Ok(Self {
            source: packet.source(),
            destination: packet.destination(),
            protocol: packet.protocol(),
            ttl: packet.ttl(),
            traffic_class: packet.traffic_class(),
            identification: packet.identification(),
            dont_fragment: packet.fragment_field().dont_fragment(),
            payload_len: packet.payload().len(),
        })
    }

    /// Writes the header with its checksum at the start of `buffer` and returns how long it is.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let length = HEADER + self.payload_len;
        let total =
            u16::try_from(length).map_err(|_| EmitError::TooLong { layer: Layer::Ipv4, length })?;
        let out = room(Layer::Ipv4, buffer, HEADER)?;
        out[0] = 0x45;
        out[1] = self.traffic_class;
        put_u16(out, 2, total);
        put_u16(out, 4, self.identification);
        put_u16(out, 6, if self.dont_fragment { FragmentField::DONT_FRAGMENT.0 } else { 0 });
        out[8] = self.ttl;
        out[9] = self.protocol.0;
        put_u16(out, 10, 0);
        out[12..16].copy_from_slice(&self.source.octets());
        out[16..20].copy_from_slice(&self.destination.octets());
        let check = checksum::checksum(out);
        put_u16(out, 10, check);
        Ok(HEADER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_length_is_in_units_of_four_bytes() {
        assert_eq!([0x45, 0x4f, 0x40, 0x65].map(header_len), [20, 60, 0, 20]);
    }

    #[test]
    fn the_fragment_field_has_flags_and_an_offset_in_units_of_eight_bytes() {
        for (bits, offset, more, dont, fragment) in [
            (0x0000, 0, false, false, false),
            (0x4000, 0, false, true, false),
            // The reserved bit says nothing.
            (0x8000, 0, false, false, false),
            (0x2000, 0, true, false, true),
            (0x2001, 8, true, false, true),
            (0x00b9, 1480, false, false, true),
            (0x5fff, 65_528, false, true, true),
        ] {
            let field = FragmentField(bits);
            let read = (field.offset(), field.more_fragments(), field.dont_fragment());
            assert_eq!((read, field.is_fragment()), ((offset, more, dont), fragment), "{bits:#x}");
            let again = FragmentField::of_fragment(offset, more);
            assert_eq!(again.0, bits & 0x3fff, "{bits:#x}");
        }
    }
}
