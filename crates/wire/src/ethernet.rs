//! Ethernet II with up to two VLAN tags (IEEE 802.1Q, 802.1ad).
//!
//! ```text
//! 0           6           12      14
//! destination | source    | type | payload                       untagged
//! destination | source    | 8100 | tag | type | payload          802.1Q
//! destination | source    | 88a8 | tag | 8100 | tag | type | ... QinQ; 8100 twice occurs as well
//! ```
//!
//! A third tag is not read: its EtherType is then the type of the frame.

use crate::{
    EmitError, EtherType, Layer, Mac, ParseError,
    bytes::{array_at, need, put_u16, room, u16_at},
};

/// Bytes of a header without tags.
pub const HEADER: usize = 14;
/// Bytes of one tag.
pub const TAG: usize = 4;
/// Bytes of the frame check sequence, which follows the payload on the wire.
pub const FCS: usize = 4;
/// Tags that are read at most.
pub const MAX_TAGS: usize = 2;

/// A VLAN tag: its EtherType and the 16 bits of priority, drop eligibility and VLAN identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// [`EtherType::VLAN`] or [`EtherType::SERVICE_VLAN`].
    pub kind: EtherType,
    /// Tag control information.
    pub control: u16,
}

impl VlanTag {
    /// A customer tag (802.1Q) with the lower 12 bits of `id` and priority 0.
    pub fn customer(id: u16) -> Self {
        Self { kind: EtherType::VLAN, control: id & 0x0fff }
    }

    /// A service tag (802.1ad) with the lower 12 bits of `id` and priority 0.
    pub fn service(id: u16) -> Self {
        Self { kind: EtherType::SERVICE_VLAN, control: id & 0x0fff }
    }

    /// The VLAN identifier, 12 bits.
    pub fn id(self) -> u16 {
        self.control & 0x0fff
    }
}

/// A view over a frame without its check sequence.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    data: T,
    tags: usize,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header with its tags is there.
    pub fn new(data: T) -> Result<Self, ParseError> {
        let bytes = data.as_ref();
        need(Layer::Ethernet, bytes, HEADER)?;
        let mut tags = 0;
        while tags < MAX_TAGS && EtherType(u16_at(bytes, 12 + tags * TAG)).is_vlan() {
            tags += 1;
            need(Layer::Ethernet, bytes, HEADER + tags * TAG)?;
        }
        Ok(Self { data, tags })
    }

    /// Where the frame goes.
    pub fn destination(&self) -> Mac {
        Mac(array_at(self.data.as_ref(), 0))
    }

    /// Where it comes from.
    pub fn source(&self) -> Mac {
        Mac(array_at(self.data.as_ref(), 6))
    }

    /// The tags, outermost first.
    pub fn tags(&self) -> impl Iterator<Item = VlanTag> + '_ {
        let bytes = self.data.as_ref();
        (0..self.tags).map(|tag| VlanTag {
            kind: EtherType(u16_at(bytes, 12 + tag * TAG)),
            control: u16_at(bytes, 14 + tag * TAG),
        })
    }

    /// The type behind the tags.
    pub fn ether_type(&self) -> EtherType {
        EtherType(u16_at(self.data.as_ref(), 12 + self.tags * TAG))
    }

    /// Bytes of the header with its tags: where the payload begins.
    pub fn header_len(&self) -> usize {
        HEADER + self.tags * TAG
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        &self.data.as_ref()[self.header_len()..]
    }
}

/// An Ethernet header as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Where the frame goes.
    pub destination: Mac,
    /// Where it comes from.
    pub source: Mac,
    /// The tags, outermost first.
    pub tags: Vec<VlanTag>,
    /// The type behind the tags.
    pub ether_type: EtherType,
}

impl Repr {
    /// Reads the header. Every frame with a header is valid.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Self {
        Self {
            destination: packet.destination(),
            source: packet.source(),
            tags: packet.tags().collect(),
            ether_type: packet.ether_type(),
        }
    }

    /// Bytes that [`Repr::emit`] writes.
    pub fn len(&self) -> usize {
        HEADER + self.tags.len() * TAG
    }

    /// Never: a header has 14 bytes at least.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes the header at the start of `buffer` and returns how long it is.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let out = room(Layer::Ethernet, buffer, self.len())?;
        out[..6].copy_from_slice(&self.destination.0);
        out[6..12].copy_from_slice(&self.source.0);
        for (tag, at) in self.tags.iter().zip((12..).step_by(TAG)) {
            put_u16(out, at, tag.kind.0);
            put_u16(out, at + 2, tag.control);
        }
        put_u16(out, self.len() - 2, self.ether_type.0);
        Ok(self.len())
    }
}
