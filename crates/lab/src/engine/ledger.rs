//! The outcome of every packet, in counters.
//!
//! What came in and what was made inside equals what went out, what ended inside by reason, and what
//! is still there; exact between any two calls of the engine.

use std::ops::{Index, IndexMut};

use crate::link::DropReason;

/// Declares an enum whose variants index a table of counters, each with its name.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($(#[$line:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$line])* $variant),* }

        impl $name {
            /// All of them, in the order of the tables.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// One word, as in tables and metrics.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }
    };
}

kinds! {
    /// Why a packet ended in the lab.
    Reason {
        /// It reached the node that it was for, which may have answered.
        ToNode = "to_node",
        /// ARP or neighbour discovery between a host and its node.
        Neighbour = "neighbour",
        /// Its parts go on in its place: segments of a super-packet.
        Split = "split",
        /// Its fragments go on in its place.
        Fragmented = "fragmented",
        /// A frame that carries no IP packet, or one for another MAC address.
        NotForNode = "not_for_node",
        /// A damaged header.
        Malformed = "malformed",
        /// A source or destination that never leaves a link: multicast, loopback, link-local.
        Address = "address",
        /// Its TTL or hop limit ran out.
        TtlExceeded = "ttl_exceeded",
        /// A node knew no route.
        NoRoute = "no_route",
        /// No host has the address in the network where it would be.
        NoHost = "no_host",
        /// A node does not let it pass.
        Prohibited = "prohibited",
        /// Larger than a link's MTU, and not to be fragmented.
        TooBig = "too_big",
        /// A link was down.
        LinkDown = "link_down",
        /// A node was down.
        NodeDown = "node_down",
        /// A link lost it by chance.
        Loss = "loss",
        /// A link's queue was full.
        QueueFull = "queue_full",
        /// A link's queue was managed: dropped early.
        QueueManaged = "queue_managed",
        /// The host's MAC address is not known.
        HostUnknown = "host_unknown",
        /// The host did not take it: its interface was down, or had no room.
        HostRefused = "host_refused",
        /// No buffer was free, or none for so long a frame.
        NoBuffer = "no_buffer",
    }
}

kinds! {
    /// What the network made itself.
    Made {
        /// ARP and neighbour discovery from a node.
        Neighbour = "neighbour",
        /// Answers of nodes to what reached them: echo replies, resets.
        Reply = "reply",
        /// ICMP errors.
        Error = "error",
        /// Segments of super-packets.
        Segment = "segment",
        /// Fragments.
        Fragment = "fragment",
        /// Copies by links that duplicate.
        Copy = "copy",
    }
}

impl From<DropReason> for Reason {
    fn from(reason: DropReason) -> Self {
        match reason {
            DropReason::Down => Self::LinkDown,
            DropReason::QueueFull => Self::QueueFull,
            DropReason::QueueDiscipline => Self::QueueManaged,
            DropReason::Lost => Self::Loss,
        }
    }
}

/// Counters in packets. A super-packet is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// Frames from hosts.
    pub received: u64,
    /// Frames to hosts.
    pub sent: u64,
    ended: [u64; Reason::ALL.len()],
    made: [u64; Made::ALL.len()],
}

impl Default for Ledger {
    fn default() -> Self {
        Self { received: 0, sent: 0, ended: [0; Reason::ALL.len()], made: [0; Made::ALL.len()] }
    }
}

impl Ledger {
    /// Packets in flight.
    pub fn in_flight(&self) -> u64 {
        let more = self.received + self.made.iter().sum::<u64>();
        more - self.sent - self.ended.iter().sum::<u64>()
    }
}

impl Index<Reason> for Ledger {
    type Output = u64;

    fn index(&self, reason: Reason) -> &u64 {
        &self.ended[reason as usize]
    }
}

impl IndexMut<Reason> for Ledger {
    fn index_mut(&mut self, reason: Reason) -> &mut u64 {
        &mut self.ended[reason as usize]
    }
}

impl Index<Made> for Ledger {
    type Output = u64;

    fn index(&self, made: Made) -> &u64 {
        &self.made[made as usize]
    }
}

impl IndexMut<Made> for Ledger {
    fn index_mut(&mut self, made: Made) -> &mut u64 {
        &mut self.made[made as usize]
    }
}
