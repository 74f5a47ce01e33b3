//! UDP (RFC 768).

use std::net::IpAddr;

use crate::{
    EmitError, Fault, IpProtocol, Layer, ParseError,
    bytes::{need, put_u16, room, u16_at},
    checksum::pseudo,
};

/// Bytes of the header.
pub const HEADER: usize = 8;
/// Where the checksum is.
pub const CHECKSUM: usize = 6;

/// A view over a datagram that may be cut short, as copies of packets are.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks the header; of the payload nothing needs to be there.
    ///
    /// # Errors
    /// When the header is cut short, or the length field is less than the header.
    pub fn new(data: T) -> Result<Self, ParseError> {
        let bytes = data.as_ref();
        need(Layer::Udp, bytes, HEADER)?;
        let length = usize::from(u16_at(bytes, 4));
        // A super-packet of more than 65,535 bytes has none (RFC 2675, section 4).
        if length != 0 && length < HEADER {
            return Err(ParseError { layer: Layer::Udp, offset: 4, fault: Fault::Length(length) });
        }
        Ok(Self(data))
    }

    /// The sender's port.
    pub fn source_port(&self) -> u16 {
        u16_at(self.0.as_ref(), 0)
    }

    /// The receiver's port.
    pub fn destination_port(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }

    /// Bytes of header and payload as the sender has written them; 0 where that does not fit.
    pub fn length(&self) -> u16 {
        u16_at(self.0.as_ref(), 4)
    }

    /// The checksum as it stands; 0 is none.
    pub fn checksum(&self) -> u16 {
        u16_at(self.0.as_ref(), CHECKSUM)
    }

    /// The payload as far as it is there, without what is behind its length.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.0.as_ref();
        let end = match usize::from(self.length()) {
            0 => bytes.len(),
            length => length.min(bytes.len()),
        };
        &bytes[HEADER..end]
    }
}

/// A header as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

impl Repr {
    /// Reads the header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self { source_port: packet.source_port(), destination_port: packet.destination_port() }
    }

    /// Writes the header of a datagram with so many bytes of payload and without checksum (which is none
    /// with IPv4, and for readers that look at none), and returns how long it is.
    ///
    /// # Errors
    /// When the buffer is too short, or the payload too long.
    pub fn emit_header(&self, payload: usize, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let length = HEADER + payload;
        let field =
            u16::try_from(length).map_err(|_| EmitError::TooLong { layer: Layer::Udp, length })?;
        let out = room(Layer::Udp, buffer, HEADER)?;
        put_u16(out, 0, self.source_port);
        put_u16(out, 2, self.destination_port);
        put_u16(out, 4, field);
        put_u16(out, 6, 0);
        Ok(HEADER)
    }

    /// Writes the datagram at the start of `buffer` with its checksum and returns how long it is.
    ///
    /// # Errors
    /// When the buffer is too short, the payload too long, or the addresses are of two families.
    pub fn emit(
        &self,
        (source, destination): (IpAddr, IpAddr),
        payload: &[u8],
        buffer: &mut [u8],
    ) -> Result<usize, EmitError> {
        let length = HEADER + payload.len();
        let field =
            u16::try_from(length).map_err(|_| EmitError::TooLong { layer: Layer::Udp, length })?;
        let sum = pseudo(source, destination, u32::from(field), IpProtocol::UDP)
            .ok_or(EmitError::Families)?;
        let out = room(Layer::Udp, buffer, length)?;
        self.emit_header(payload.len(), out)?;
        out[HEADER..].copy_from_slice(payload);
        // A sum that comes out as zero is written as all ones; zero says that there is none.
        let check = match sum.bytes(out).finish() {
            0 => 0xffff,
            check => check,
        };
        put_u16(out, 6, check);
        Ok(length)
    }
}
