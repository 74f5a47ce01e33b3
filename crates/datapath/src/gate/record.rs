//! What comes over the ring: packets that were copied out or held, and flows that ended.

use super::flow::{Flow, Key, PacketAction, Protocol, Side};
use super::skeleton::types;
use wire::{
    IpProtocol,
    checksum::{self, Sum, pseudo},
};

/// Bytes of Ethernet's addresses, and of a tag.
pub(super) const ADDRESSES: usize = 12;
pub(super) const TAG: usize = 4;

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It came from an internal host.
    FromInternal,
    /// It goes to an internal host.
    ToInternal,
}

/// Why a record was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// One of the flow's first packets with payload, or an end among them; it goes on meanwhile.
    First,
    /// User space manages this side of the flow; it goes on meanwhile.
    Managed,
    /// It is held: [`super::Injector::release`] sends it on, else it never goes.
    Held,
    /// The flow has ended: a new connection between its sockets begins.
    Ended,
}

/// A packet that was copied out, whole or in part.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its flow.
    pub key: Key,
    /// Why it is here.
    pub reason: Reason,
    /// Where it was seen.
    pub direction: Direction,
    /// Nanoseconds of CLOCK_BOOTTIME.
    pub at_ns: u64,
    /// Which side sent it.
    pub from: Side,
    /// Which side began the flow.
    pub client: Option<Side>,
    /// Which side is internal.
    pub internal: Option<Side>,
    /// The internal interface.
    pub ifindex: u32,
    /// The verdict on the flow, if any.
    pub action: Option<PacketAction>,
    /// The number of its label.
    pub label: u32,
    /// How many of the flow's first packets were to be copied before.
    pub number: u32,
    /// TCP's sequence number, acknowledgement number and control bits; zero of UDP and of later
    /// fragments.
    pub sequence: u32,
    /// See there.
    pub acknowledgement: u32,
    /// See there.
    pub tcp_flags: u8,
    /// The sequence number of each side's SYN, lower side first; 0 where it was not seen.
    pub first: [u32; 2],
    /// The Ethernet frame, as far as it was copied: a super-packet of up to 64 KiB if
    /// `segment` is not zero, without the tag that the kernel has taken out. Where only the rest of one
    /// was asked for ([`super::Manage::skip_to`]), the payload from there on, which `sequence`,
    /// `payload_at` and `payload_length` describe then.
    pub frame: &'a [u8],
    /// How long it was.
    pub length: u32,
    /// Bytes of payload in each segment of a super-packet; 0: it is none.
    pub segment: u16,
    /// Tag protocol and control information of the VLAN tag that the kernel has taken out.
    pub vlan: Option<(u16, u16)>,
    /// Whether its transport checksum is still to be finished.
    pub partial: bool,
    /// Whether nobody has looked whether its transport checksum is right.
    pub unverified: bool,
    /// Whether it is a fragment; without a transport header if it is not the first.
    pub fragment: bool,
    /// The acknowledgement number that its receiver has sent last, if any.
    pub taken: Option<u32>,
    /// Where its transport header begins.
    pub transport: usize,
    /// Where its payload begins.
    pub payload_at: usize,
    /// How long its payload was.
    pub payload_length: u32,
    /// The flow as it was: with [`Reason::Ended`].
    pub ended: Option<Flow>,
}

impl<'a> Record<'a> {
    /// The payload, as far as it was copied.
    pub fn payload(&self) -> &'a [u8] {
        let end = self.payload_at.saturating_add(self.payload_length as usize);
        self.frame.get(self.payload_at..end.min(self.frame.len())).unwrap_or_default()
    }

    /// Whether its receiver drops it: a checksum is wrong, or it is a segment without ACK (RFC 9293, section
    /// 3.10.7.4). What was not copied whole is believed, and so is a fragment.
    pub fn is_broken(&self) -> bool {
        const OPENS: u8 = 0x02 | 0x04;
        const ACK: u8 = 0x10;
        if self.fragment {
            return false;
        }
        if self.key.protocol() == Protocol::Tcp && self.tcp_flags & (OPENS | ACK) == 0 {
            return true;
        }
        if self.frame.len() != self.length as usize {
            return false;
        }
        self.header().is_some_and(|header| !checksum::verifies(header))
            || (self.unverified && self.sum().is_some_and(|sum| sum.fold() != u16::MAX))
    }

    /// The IPv4 header, where it was made by who sent it.
    fn header(&self) -> Option<&'a [u8]> {
        if self.segment != 0 || self.key.socket(self.from).is_ipv6() {
            return None;
        }
        let header = self.frame.get(network(self.frame)?..self.transport)?;
        header.first().filter(|first| usize::from(**first & 15) * 4 == header.len())?;
        Some(header)
    }

    /// The sum over which its transport checksum is made, with that; none if that is unknown.
    fn sum(&self) -> Option<Sum> {
        let end = self.payload_at.checked_add(self.payload_length as usize)?;
        let mut segment = self.frame.get(self.transport..end)?;
        let mut protocol = IpProtocol::TCP;
        if self.key.protocol() == Protocol::Udp {
            protocol = IpProtocol::UDP;
            let length = segment.get(4..6)?.try_into().map(u16::from_be_bytes).ok()?;
            segment = segment.get(..length.into())?;
            // RFC 768: the sender has made none.
            if segment.get(6..8)? == [0, 0] {
                return None;
            }
        }
        let [from, to] = [self.from, self.from.other()].map(|side| self.key.socket(side).ip());
        let pseudo = pseudo(from, to, u32::try_from(segment.len()).ok()?, protocol)?;
        Some(pseudo.bytes(segment))
    }

    /// Reads what the program wrote; none if that is not what it should be.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let raw: types::gate_record = super::read(bytes)?;
        let begin = size_of::<types::gate_record>();
        let frame = bytes.get(begin..begin.checked_add(raw.copied as usize)?)?;
        let mut key = [0; super::flow::KEY];
        key.copy_from_slice(bytes.get(..super::flow::KEY)?);
        let reason = [Reason::First, Reason::Managed, Reason::Held, Reason::Ended];
        let reason = *reason.get(usize::from(raw.reason))?;
        let ended = if reason == Reason::Ended { Some(Flow::of(frame)?) } else { None };
        let flag = |flag: types::gate_record_flag| u32::from(raw.flags) & flag.0 != 0;
        Some(Self {
            key: Key(key),
            reason,
            direction: *[Direction::FromInternal, Direction::ToInternal]
                .get(usize::from(raw.hook))?,
            at_ns: raw.at_ns,
            from: Side::of(raw.from)?,
            client: Side::of(raw.client),
            internal: Side::of(raw.internal),
            ifindex: raw.ifindex,
            action: PacketAction::of(raw.action),
            label: raw.label,
            number: raw.number,
            sequence: raw.sequence,
            acknowledgement: raw.acknowledgement,
            tcp_flags: raw.tcp_flags,
            first: raw.first,
            frame: if ended.is_some() { &[] } else { frame },
            length: raw.length,
            segment: raw.gso_size,
            vlan: (raw.vlan_protocol != 0).then(|| (u16::from_be(raw.vlan_protocol), raw.vlan_tci)),
            partial: flag(types::gate_record_flag::GATE_PARTIAL),
            unverified: flag(types::gate_record_flag::GATE_UNVERIFIED),
            fragment: flag(types::gate_record_flag::GATE_FRAGMENT),
            taken: flag(types::gate_record_flag::GATE_TAKEN).then_some(raw.taken),
            transport: raw.transport.into(),
            payload_at: raw.payload as usize,
            payload_length: raw.payload_length,
            ended,
        })
    }
}

const _: () = {
    assert!(types::gate_reason::GATE_FIRST.0 == 0 && types::gate_reason::GATE_MANAGED.0 == 1);
    assert!(types::gate_reason::GATE_AWAITS.0 == 2 && types::gate_reason::GATE_ENDED.0 == 3);
    assert!(
        types::gate_hook::GATE_FROM_INTERNAL.0 == 0 && types::gate_hook::GATE_TO_INTERNAL.0 == 1
    );
};

/// Where a frame's network header begins: behind its tags (IEEE 802.1Q).
pub(super) fn network(frame: &[u8]) -> Option<usize> {
    let mut at = ADDRESSES;
    while matches!(frame.get(at..at + 2)?, [0x81, 0] | [0x88, 0xa8]) {
        at += TAG;
    }
    Some(at + 2)
}
