//! IPv6 (RFC 8200): header and the walk over extension headers.

use std::net::Ipv6Addr;

use crate::{
    EmitError, Fault, IpProtocol, Layer, ParseError,
    bytes::{array_at, need, put_u16, room, u16_at, u32_at},
};

/// Bytes of the header.
pub const HEADER: usize = 40;

/// A view over a packet; bytes behind its payload length (Ethernet padding) are not part of it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks version and payload length against the bytes.
    ///
    /// A jumbogram (RFC 2675, payload length 0) has an empty payload here.
    pub fn new(data: T) -> Result<Self, ParseError> {
        let bytes = data.as_ref();
        need(Layer::Ipv6, bytes, 1)?;
        if bytes[0] >> 4 != 6 {
            let fault = Fault::Version(bytes[0] >> 4);
            return Err(ParseError { layer: Layer::Ipv6, offset: 0, fault });
        }
        need(Layer::Ipv6, bytes, HEADER)?;
        need(Layer::Ipv6, bytes, HEADER + usize::from(u16_at(bytes, 4)))?;
        Ok(Self(data))
    }

    /// Differentiated services and congestion bits.
    pub fn traffic_class(&self) -> u8 {
        (u16_at(self.0.as_ref(), 0) >> 4) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32_at(self.0.as_ref(), 0) & 0x000f_ffff
    }

    /// Bytes behind the header.
    pub fn payload_len(&self) -> usize {
        usize::from(u16_at(self.0.as_ref(), 4))
    }

    /// The header that follows.
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.0.as_ref()[6])
    }

    /// Hops that are left.
    pub fn hop_limit(&self) -> u8 {
        self.0.as_ref()[7]
    }

    /// Where the packet comes from.
    pub fn source(&self) -> Ipv6Addr {
        array_at::<16>(self.0.as_ref(), 8).into()
    }

    /// Where it goes.
    pub fn destination(&self) -> Ipv6Addr {
        array_at::<16>(self.0.as_ref(), 24).into()
    }

    /// What follows the header, extension headers included.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..HEADER + self.payload_len()]
    }

    /// Walks over the extension headers to what the packet carries.
    ///
    /// The walk ends early at a fragment that is not the first: what follows it is data.
    ///
    /// # Errors
    /// When an extension header reaches beyond the payload.
    pub fn upper(&self) -> Result<Upper, ParseError> {
        let bytes = &self.0.as_ref()[..HEADER + self.payload_len()];
        let mut upper =
            Upper { protocol: self.next_header(), offset: HEADER, extensions: 0, fragment: None };
        while is_extension(upper.protocol) {
            let at = upper.offset;
            need(Layer::Ipv6, bytes, at + EXTENSION)?;
            let Some(extension) = Extension::read(upper.protocol, &bytes[at..]) else { break };
            need(Layer::Ipv6, bytes, at + extension.length)?;
            upper.fragment = extension.fragment.or(upper.fragment);
            upper.protocol = extension.next;
            upper.offset += extension.length;
            upper.extensions += 1;
            if upper.fragment.is_some_and(|fragment| fragment.offset != 0) {
                break;
            }
        }
        Ok(upper)
    }
}

/// Whether a next header is an extension header that can be walked over.
///
/// Those of RFC 8200, section 4.1, and RFC 7045, section 4, without ESP, which hides what follows.
pub fn is_extension(protocol: IpProtocol) -> bool {
    matches!(
        protocol,
        IpProtocol::HOP_BY_HOP
            | IpProtocol::ROUTING
            | IpProtocol::FRAGMENT
            | IpProtocol::AUTHENTICATION
            | IpProtocol::DESTINATION_OPTIONS
            | IpProtocol::MOBILITY
            | IpProtocol::HIP
            | IpProtocol::SHIM6
    )
}

/// Bytes of the shortest extension header, which are enough to read what a walk needs of any.
pub const EXTENSION: usize = 8;

/// What a walk needs of an extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The header behind it.
    pub next: IpProtocol,
    /// Its bytes, at least [`EXTENSION`]; perhaps more than there are.
    pub length: usize,
    /// What it says as a fragment header.
    pub fragment: Option<Fragment>,
}

impl Extension {
    /// Reads the extension header of this kind at the beginning of bytes whose end may be cut off; none if
    /// it is no extension header ([`is_extension`]), or its first [`EXTENSION`] bytes are not there.
    pub fn read(kind: IpProtocol, bytes: &[u8]) -> Option<Self> {
        let head: &[u8; EXTENSION] = bytes.first_chunk().filter(|_| is_extension(kind))?;
        let length = Self::length(kind, head[1]);
        let fragment = (kind == IpProtocol::FRAGMENT).then(|| {
            let field = u16_at(head, 2);
            let identification = u32_at(head, 4);
            Fragment { offset: field & 0xfff8, more: field & 1 == 1, identification }
        });
        Some(Self { next: IpProtocol(head[0]), length, fragment })
    }

    /// The bytes of the extension header of this kind; `field` is its second byte.
    pub fn length(kind: IpProtocol, field: u8) -> usize {
        match kind {
            IpProtocol::FRAGMENT => EXTENSION,
            // In units of four bytes, less two (RFC 4302, section 2.2).
            IpProtocol::AUTHENTICATION => (usize::from(field) + 2) * 4,
            // In units of eight bytes, the first eight not counted (RFC 8200, section 4).
            _ => (usize::from(field) + 1) * 8,
        }
    }
}

/// What a packet carries, behind its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// The protocol; that of the whole packet where this is a fragment.
    pub protocol: IpProtocol,
    /// Where it begins, in bytes from the start of the packet.
    pub offset: usize,
    /// Extension headers that were walked over.
    pub extensions: usize,
    /// The fragment header, if there is one.
    pub fragment: Option<Fragment>,
}

/// A fragment header (RFC 8200, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where the fragment belongs, in bytes.
    pub offset: u16,
    /// Whether fragments follow this one.
    pub more: bool,
    /// What joins fragments.
    pub identification: u32,
}

/// An IPv6 header as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Where the packet comes from.
    pub source: Ipv6Addr,
    /// Where it goes.
    pub destination: Ipv6Addr,
    /// The header that follows.
    pub next_header: IpProtocol,
    /// Hops that are left.
    pub hop_limit: u8,
    /// Differentiated services and congestion bits.
    pub traffic_class: u8,
    /// Flow label; only the lower 20 bits are written.
    pub flow_label: u32,
    /// Bytes behind the header.
    pub payload_len: usize,
}

impl Repr {
    /// Reads the header. Every packet that has a view is valid.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            source: packet.source(),
            destination: packet.destination(),
            next_header: packet.next_header(),
            hop_limit: packet.hop_limit(),
            traffic_class: packet.traffic_class(),
            flow_label: packet.flow_label(),
            payload_len: packet.payload_len(),
        }
    }

    /// Writes the header at the start of `buffer` and returns how long it is.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let length = self.payload_len;
        let payload =
            u16::try_from(length).map_err(|_| EmitError::TooLong { layer: Layer::Ipv6, length })?;
        let out = room(Layer::Ipv6, buffer, HEADER)?;
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | (self.flow_label & 0x000f_ffff);
        out[..4].copy_from_slice(&first.to_be_bytes());
        put_u16(out, 4, payload);
        out[6] = self.next_header.0;
        out[7] = self.hop_limit;
        out[8..24].copy_from_slice(&self.source.octets());
        out[24..40].copy_from_slice(&self.destination.octets());
        Ok(HEADER)
    }
}
