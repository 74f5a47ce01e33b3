//! TCP's header (RFC 9293, section 3.1). Options are seen as bytes; connections are nothing of this crate.

use std::net::IpAddr;

use crate::{
    EmitError, Fault, IpProtocol, Layer, ParseError,
    bytes::{need, put_u16, room, u16_at, u32_at},
    checksum::pseudo,
};

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// Where the checksum is.
pub const CHECKSUM: usize = 16;

/// The control bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from its sender.
    pub const FIN: Self = Self(1);
    /// Begins a connection.
    pub const SYN: Self = Self(2);
    /// Ends a connection at once.
    pub const RST: Self = Self(4);
    /// To be given to the program at once.
    pub const PSH: Self = Self(8);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(16);
    /// Its sender has reduced its congestion window (RFC 3168, section 6.1).
    pub const CWR: Self = Self(128);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A view over a segment that may be cut short behind its header, as copies of packets are.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header with its options is there.
    ///
    /// # Errors
    /// When it is cut short, or the data offset lies within it.
    pub fn new(data: T) -> Result<Self, ParseError> {
        let bytes = data.as_ref();
        need(Layer::Tcp, bytes, HEADER)?;
        let header = usize::from(bytes[12] >> 4) * 4;
        if header < HEADER {
            let fault = Fault::Length(header);
            return Err(ParseError { layer: Layer::Tcp, offset: 12, fault });
        }
        need(Layer::Tcp, bytes, header)?;
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

    /// Number of the first byte of the payload, or of the SYN.
    pub fn sequence(&self) -> u32 {
        u32_at(self.0.as_ref(), 4)
    }

    /// Number of the byte that is expected next; means nothing without [`Flags::ACK`].
    pub fn acknowledgement(&self) -> u32 {
        u32_at(self.0.as_ref(), 8)
    }

    /// Bytes of the header with its options.
    pub fn header_len(&self) -> usize {
        usize::from(self.0.as_ref()[12] >> 4) * 4
    }

    /// The control bits.
    pub fn flags(&self) -> Flags {
        Flags(self.0.as_ref()[13])
    }

    /// The receive window as it stands, not scaled.
    pub fn window(&self) -> u16 {
        u16_at(self.0.as_ref(), 14)
    }

    /// The checksum as it stands.
    pub fn checksum(&self) -> u16 {
        u16_at(self.0.as_ref(), CHECKSUM)
    }

    /// The options, not interpreted.
    pub fn options(&self) -> &[u8] {
        &self.0.as_ref()[HEADER..self.header_len()]
    }

    /// The payload as far as it is there. The bytes must end where the IP packet ends.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_len()..]
    }
}

/// A header without options as a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Number of the first byte of the payload, or of the SYN.
    pub sequence: u32,
    /// Number of the byte that is expected next.
    pub acknowledgement: u32,
    /// The control bits.
    pub flags: Flags,
    /// The receive window, not scaled.
    pub window: u16,
}

impl Repr {
    /// Reads the header; options are omitted.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            source_port: packet.source_port(),
            destination_port: packet.destination_port(),
            sequence: packet.sequence(),
            acknowledgement: packet.acknowledgement(),
            flags: packet.flags(),
            window: packet.window(),
        }
    }

    /// Writes the header without its checksum, for readers that look at none, and returns how long it is.
    ///
    /// # Errors
    /// When the buffer is too short.
    pub fn emit_header(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let out = room(Layer::Tcp, buffer, HEADER)?;
        put_u16(out, 0, self.source_port);
        put_u16(out, 2, self.destination_port);
        out[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        out[8..12].copy_from_slice(&self.acknowledgement.to_be_bytes());
        out[12] = (HEADER as u8 / 4) << 4;
        out[13] = self.flags.0;
        put_u16(out, 14, self.window);
        out[16..HEADER].fill(0);
        Ok(HEADER)
    }

    /// Writes the segment at the start of `buffer` with its checksum and returns how long it is.
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
            u16::try_from(length).map_err(|_| EmitError::TooLong { layer: Layer::Tcp, length })?;
        let sum = pseudo(source, destination, u32::from(field), IpProtocol::TCP)
            .ok_or(EmitError::Families)?;
        let out = room(Layer::Tcp, buffer, length)?;
        self.emit_header(out)?;
        out[HEADER..].copy_from_slice(payload);
        let check = sum.bytes(out).finish();
        put_u16(out, 16, check);
        Ok(length)
    }
}
