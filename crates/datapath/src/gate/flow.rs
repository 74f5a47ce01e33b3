//! Flows as the program has them: keys, verdicts, counters.

use super::skeleton::types;
use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// The transport protocols that have flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Protocol {
    /// RFC 9293.
    Tcp = 6,
    /// RFC 768.
    Udp = 17,
}

/// One of a key's two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Lower => Self::Higher,
            Self::Higher => Self::Lower,
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// Of the program's number; none for `GATE_NOBODY`.
    pub(super) const fn of(index: u8) -> Option<Self> {
        match index {
            0 => Some(Self::Lower),
            1 => Some(Self::Higher),
            _ => None,
        }
    }
}

/// Bytes of a key.
pub(super) const KEY: usize = size_of::<types::gate_key>();

/// What a flow is found by: its two sockets, the lower one first, and its protocol. Both directions
/// have the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(super) [u8; KEY]);

impl Key {
    /// The key of the flow between two sockets, given in either order.
    pub fn new(protocol: Protocol, one: SocketAddr, other: SocketAddr) -> Self {
        let mut ends = [one, other].map(|end| (address(end.ip()), end.port().to_be_bytes()));
        ends.sort_unstable();
        let mut key = [0; KEY];
        for (index, (address, port)) in ends.iter().enumerate() {
            key[16 * index..16 * index + 16].copy_from_slice(address);
            key[32 + 2 * index..34 + 2 * index].copy_from_slice(port);
        }
        key[36] = protocol as u8;
        Self(key)
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        if self.0[36] == Protocol::Tcp as u8 { Protocol::Tcp } else { Protocol::Udp }
    }

    /// One of the two sockets.
    pub fn socket(&self, side: Side) -> SocketAddr {
        let (at, port) = (16 * side.index(), 32 + 2 * side.index());
        let mut address = [0; 16];
        address.copy_from_slice(&self.0[at..at + 16]);
        let address = Ipv6Addr::from(address).to_canonical();
        SocketAddr::new(address, u16::from_be_bytes([self.0[port], self.0[port + 1]]))
    }

    /// Which of the two a socket is.
    pub fn side_of(&self, socket: SocketAddr) -> Option<Side> {
        let is = |side: &Side| self.socket(*side) == socket;
        [Side::Lower, Side::Higher].into_iter().find(is)
    }
}

/// `tcp 10.0.0.5:51413 - 192.0.2.7:6881`
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol() {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        write!(f, "{protocol} {} - {}", self.socket(Side::Lower), self.socket(Side::Higher))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// What is refused: connections of one host to a port of another, whatever port they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// Who begins.
    pub source: IpAddr,
    /// With whom.
    pub target: SocketAddr,
    /// The protocol.
    pub protocol: Protocol,
}

impl CacheKey {
    pub(super) fn bytes(&self) -> [u8; size_of::<types::gate_refusal_key>()] {
        let mut key = [0; 40];
        key[..16].copy_from_slice(&address(self.source));
        key[16..32].copy_from_slice(&address(self.target.ip()));
        key[32..34].copy_from_slice(&self.target.port().to_be_bytes());
        key[34] = self.protocol as u8;
        key
    }
}

/// An address as IPv6 writes it.
fn address(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
        IpAddr::V6(six) => six.octets(),
    }
}

/// The outcome of a flow's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PacketAction {
    /// They go on.
    #[default]
    Pass,
    /// They are dropped without a word.
    Drop,
    /// They are dropped and their sender is informed: TCP by a reset, UDP by an ICMP error.
    Reset,
}

impl PacketAction {
    pub(super) fn number(self) -> types::gate_action {
        match self {
            Self::Pass => types::gate_action::GATE_PASS,
            Self::Drop => types::gate_action::GATE_DROP,
            Self::Reset => types::gate_action::GATE_RESET,
        }
    }

    /// None of what is undecided.
    pub(super) fn of(number: u8) -> Option<Self> {
        let all = [Self::Pass, Self::Drop, Self::Reset];
        all.into_iter().find(|action| action.number().0 == u32::from(number))
    }
}

/// What user space says of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowVerdict {
    /// The outcome of its packets.
    pub action: PacketAction,
    /// The class that its packets queue in, 1 to 65535; 0: none.
    pub limit: u16,
    /// A number of user space's for what it is.
    pub label: u32,
}

/// Bytes behind [`Manage::skip_to`] of which packets are copied whole.
pub const WINDOW: u32 = types::gate_limits::GATE_WINDOW.0;

/// What is done with the packets of one side of a flow that may pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Manage {
    /// They are copied whole.
    pub copy: bool,
    /// But not what ends at or before this sequence number (TCP), and of a super-packet that reaches
    /// beyond it only what is behind.
    pub skip_to: Option<u32>,
    /// A message begins soon behind `skip_to`: of super-packets that do not begin within [`WINDOW`] bytes
    /// behind it only the beginning is copied, some two kilobytes; without `skip_to` of all.
    pub brief: bool,
    /// What reaches beyond this sequence number is held until it is released; a FIN counts as a byte.
    /// Of UDP everything is held, whatever the number.
    pub hold_from: Option<u32>,
}

/// One side of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets that it sent, as on the wire: the segments of a super-packet count each.
    pub packets: u64,
    /// Bytes of IP packets, headers included.
    pub bytes: u64,
    /// The sequence number of its SYN, if that was seen.
    pub first: Option<u32>,
    /// All of TCP's control bits that were seen.
    pub tcp_flags: u8,
    /// What user space wants to see of it.
    pub manage: Manage,
}

/// A flow as it is in the program's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The verdict of user space, if any.
    pub verdict: Option<FlowVerdict>,
    /// Which side began it.
    pub client: Option<Side>,
    /// Which side is internal.
    pub internal: Option<Side>,
    /// The internal interface where it was seen first.
    pub ifindex: u32,
    /// When its first packet was seen: time of CLOCK_MONOTONIC, to within some milliseconds.
    pub began: Duration,
    /// The same of its last packet.
    pub seen: Duration,
    /// First packets with payload that were to be copied out.
    pub copied: u32,
    /// How many of them are copied, at most.
    pub budget: u32,
    /// What each side has sent.
    pub sent: [Sent; 2],
}

impl Flow {
    /// What a side has sent.
    pub fn sent(&self, side: Side) -> &Sent {
        &self.sent[side.index()]
    }

    /// Reads the program's struct; none if the bytes are not as many.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        super::read::<types::gate_flow>(bytes).as_ref().map(Self::from)
    }
}

impl From<&types::gate_flow> for Flow {
    fn from(raw: &types::gate_flow) -> Self {
        let verdict = PacketAction::of(raw.action).map(|action| FlowVerdict {
            action,
            limit: raw.limit,
            label: raw.label,
        });
        Self {
            verdict,
            client: Side::of(raw.client),
            internal: Side::of(raw.internal),
            ifindex: raw.ifindex,
            began: Duration::from_nanos(raw.began_ns),
            seen: Duration::from_nanos(raw.seen_ns),
            copied: raw.copied,
            budget: raw.budget,
            sent: raw.side.map(sent),
        }
    }
}

fn sent(raw: types::gate_side) -> Sent {
    const SYN: u32 = 2;
    let has = |bit: types::gate_manage| raw.manage & bit.0 != 0;
    Sent {
        packets: raw.packets,
        bytes: raw.bytes,
        first: (raw.tcp_flags & SYN != 0).then_some(raw.first),
        tcp_flags: raw.tcp_flags as u8,
        manage: Manage {
            copy: has(types::gate_manage::GATE_COPY),
            skip_to: has(types::gate_manage::GATE_SKIP).then_some(raw.skip_to),
            brief: has(types::gate_manage::GATE_BRIEF),
            hold_from: has(types::gate_manage::GATE_HOLD).then_some(raw.hold_from),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_have_one_key_and_the_sockets_come_back() {
        for [one, other] in [
            ["10.0.0.5:51413", "192.0.2.7:6881"],
            ["192.0.2.7:7000", "192.0.2.7:6881"],
            ["[2001:db8::7]:1", "[2001:db8::6]:2"],
        ] {
            let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
            let key = Key::new(Protocol::Tcp, one, other);
            assert_eq!(key, Key::new(Protocol::Tcp, other, one));
            assert_ne!(key, Key::new(Protocol::Udp, one, other));
            let (side, back) = (key.side_of(one).unwrap(), key.side_of(other).unwrap());
            assert_eq!((side.other(), key.socket(side), key.socket(back)), (back, one, other));
        }
        let key = Key::new(
            Protocol::Udp,
            "192.0.2.7:6881".parse().unwrap(),
            "10.0.0.5:9".parse().unwrap(),
        );
        assert_eq!(key.to_string(), "udp 10.0.0.5:9 - 192.0.2.7:6881");
        assert_eq!(key.side_of("10.0.0.5:10".parse().unwrap()), None);
    }
}
