//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use crate::{
    EmitError, EtherType, Fault, Layer, Mac, ParseError,
    bytes::{array_at, need, put_u16, room, u16_at},
};

/// Bytes of a packet.
pub const LEN: usize = 28;

/// What the packet asks or says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation(pub u16);

impl Operation {
    /// Who has the target address?
    pub const REQUEST: Self = Self(1);
    /// The sender has the sender address.
    pub const REPLY: Self = Self(2);
}

/// A view over an ARP packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T>(T);

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks the length; an Ethernet frame may have padding behind it.
    pub fn new(data: T) -> Result<Self, ParseError> {
        need(Layer::Arp, data.as_ref(), LEN)?;
        Ok(Self(data))
    }

    /// Hardware type, protocol type, and the two address lengths, as one for comparison.
    fn format(&self) -> [u8; 6] {
        array_at(self.0.as_ref(), 0)
    }

    /// What the packet asks or says.
    pub fn operation(&self) -> Operation {
        Operation(u16_at(self.0.as_ref(), 6))
    }

    /// The sender's MAC address.
    pub fn sender_mac(&self) -> Mac {
        Mac(array_at(self.0.as_ref(), 8))
    }

    /// The sender's IP address.
    pub fn sender_ip(&self) -> Ipv4Addr {
        array_at(self.0.as_ref(), 14).into()
    }

    /// The target's MAC address.
    pub fn target_mac(&self) -> Mac {
        Mac(array_at(self.0.as_ref(), 18))
    }

    /// The target's IP address.
    pub fn target_ip(&self) -> Ipv4Addr {
        array_at(self.0.as_ref(), 24).into()
    }
}

/// An ARP packet as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// What the packet asks or says.
    pub operation: Operation,
    /// The sender's MAC address.
    pub sender_mac: Mac,
    /// The sender's IP address.
    pub sender_ip: Ipv4Addr,
    /// The target's MAC address.
    pub target_mac: Mac,
    /// The target's IP address.
    pub target_ip: Ipv4Addr,
}

/// Ethernet (1), IPv4, and their address lengths.
const FORMAT: [u8; 6] = [0, 1, (EtherType::IPV4.0 >> 8) as u8, EtherType::IPV4.0 as u8, 6, 4];

impl Repr {
    /// Reads the packet.
    ///
    /// # Errors
    /// When it is not for IPv4 over Ethernet.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, ParseError> {
        let format = packet.format();
        if let Some(offset) = (0..6).find(|&at| format[at] != FORMAT[at]) {
            let fault =
                Fault::Unexpected { what: "the address format", value: format[offset].into() };
            return Err(ParseError { layer: Layer::Arp, offset, fault });
        }
        Ok(Self {
            operation: packet.operation(),
            sender_mac: packet.sender_mac(),
            sender_ip: packet.sender_ip(),
            target_mac: packet.target_mac(),
            target_ip: packet.target_ip(),
        })
    }

    /// Writes the packet at the start of `buffer` and returns how long it is.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let out = room(Layer::Arp, buffer, LEN)?;
        out[..6].copy_from_slice(&FORMAT);
        put_u16(out, 6, self.operation.0);
        out[8..14].copy_from_slice(&self.sender_mac.0);
        out[14..18].copy_from_slice(&self.sender_ip.octets());
        out[18..24].copy_from_slice(&self.target_mac.0);
        out[24..28].copy_from_slice(&self.target_ip.octets());
        Ok(LEN)
    }
}
