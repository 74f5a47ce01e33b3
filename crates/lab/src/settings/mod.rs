//! What a directed link does to packets, and its words.
//!
//! A link is a router's output queue, a transmitter and a wire, in this order. [`LinkSettings`] says
//! what each of them does; [`crate::link`] does it. The same words stand in a scene (`delay = "10ms"`,
//! `queue = { limit = "64KB", discipline = "codel" }`) and on a command line (`delay=10ms
//! queue=64KB,codel`); both are read by `change`, so they mean the same and fail with the same
//! message. What [`Display`](std::fmt::Display) writes parses to the same value again.
//!
//! # Which bytes count
//!
//! Rates, and queues in bytes, count Ethernet frames as `tc` does: the IP packet and
//! [`ETHERNET_HEADER`] bytes, without frame check sequence, preamble and gap. A full-sized packet of
//! 1,500 bytes is 1,514; at 100 Mbit/s TCP with timestamps carries 95.6 Mbit/s of payload. The MTU is of
//! the IP packet, as `ip link` shows it.

mod change;
mod queue;
mod serial;
mod units;
mod wire;
mod words;

#[cfg(test)]
mod tests;

pub use change::{KEYS, SettingsChange};
pub use queue::{CoDel, Discipline, Limit, Queue, Red};
pub use units::Share;
pub use wire::{Distribution, Jitter, Loss, Reorder};

use crate::Nanos;
use std::{fmt, str::FromStr};

/// Bytes that a frame has before its IP packet; they count for rates and for queues in bytes.
pub const ETHERNET_HEADER: u32 = 14;

/// MTU of a link by default, bytes of IP packet.
pub const DEFAULT_MTU: u32 = 1_500;

/// What one directed link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkSettings {
    /// From the end of a packet's transmission to its arrival.
    pub delay: Nanos,
    /// How much the delay varies from packet to packet.
    pub jitter: Option<Jitter>,
    /// Packets that the wire loses, after they have taken their time of the transmitter.
    pub loss: Loss,
    /// Packets that arrive twice.
    pub duplicate: Share,
    /// Packets that are late, so that others overtake them.
    pub reorder: Option<Reorder>,
    /// Packets that arrive with one bit flipped.
    pub corrupt: Share,
    /// Bits a second of Ethernet frames (see the head of this file); without one a packet takes no time
    /// to send.
    pub rate: Option<u64>,
    /// Where packets wait for the transmitter. Without a rate none ever waits.
    pub queue: Queue,
    /// Bytes of the largest IP packet.
    pub mtu: u32,
    /// Whether it carries anything.
    pub up: bool,
}

impl Default for LinkSettings {
    /// Up, and does nothing to packets of at most 1,500 bytes.
    fn default() -> Self {
        Self {
            delay: Nanos::ZERO,
            jitter: None,
            loss: Loss::None,
            duplicate: Share::NEVER,
            reorder: None,
            corrupt: Share::NEVER,
            rate: None,
            queue: Queue::default(),
            mtu: DEFAULT_MTU,
            up: true,
        }
    }
}

impl LinkSettings {
    /// Whether all that befalls a packet here is that it comes later, always by the same time. The MTU
    /// is no matter of this: a path knows its smallest one.
    pub fn only_delays(&self) -> bool {
        self.up && !self.one_by_one()
    }

    /// Whether it treats packets one by one, so that a super-packet must be split before it. A link that
    /// is down loses super-packets whole.
    pub fn one_by_one(&self) -> bool {
        self.jitter.is_some()
            || self.loss != Loss::None
            || self.duplicate != Share::NEVER
            || self.reorder.is_some()
            || self.corrupt != Share::NEVER
            || self.rate.is_some()
    }
}

impl fmt::Display for LinkSettings {
    /// What differs from the default, as words that parse back; the delay always.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut change = SettingsChange::between(&Self::default(), self);
        change.delay = Some(self.delay);
        change.fmt(f)
    }
}

impl FromStr for LinkSettings {
    type Err = SettingsError;

    /// The default with what is named changed.
    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        text.parse::<SettingsChange>()?.apply(&mut settings);
        Ok(settings)
    }
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}={value}`: {allowed}")]
pub struct SettingsError {
    /// Which setting.
    pub key: String,
    /// What was given.
    pub value: String,
    /// What is wrong with it and what is allowed.
    pub allowed: String,
}
