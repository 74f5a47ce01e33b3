//! The messages between stations: JSON objects, one a line.
//!
//! The connecting station asks, the other answers each request in turn. The first request is `hello`.
//! A line has at most [`LINE_LIMIT`] bytes; unknown keys are refused, so that nothing is accepted that one
//! side understands and the other does not.

use crate::{
    config::{Service, Transport},
    schedule::{Class, jobs::Used},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, net::SocketAddr};

/// The version of these messages.
pub const VERSION: u32 = 1;
/// Longest line, in bytes with its end.
pub const LINE_LIMIT: usize = 16 << 10;
/// Most links that a request names.
pub const MAX_USES: usize = 64;

/// What one station asks of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The station that asks, and the one that is asked; first on a connection, and again to keep it alive.
    Hello {
        /// The version that is spoken.
        version: u32,
        /// The station that asks.
        name: String,
        /// The station that it wants.
        to: String,
    },
    /// To reflect STAMP packets.
    Delay {
        /// How, and for how long.
        session: DelayAsk,
        /// What it shares with other tests.
        slot: Slot,
    },
    /// To be the other end of one throughput test.
    Throughput {
        /// Which, and for how long.
        test: ThroughputAsk,
        /// What it shares with other tests.
        slot: Slot,
    },
    /// To reserve time for a test that needs no other end here.
    Slot {
        /// What it shares with other tests.
        slot: Slot,
        /// How long it takes.
        duration_ms: u64,
    },
    /// To go on with what was accepted.
    Renew {
        /// What was accepted.
        lease: u64,
        /// For how much longer from now on.
        duration_ms: u64,
    },
    /// To end what was accepted.
    End {
        /// What was accepted.
        lease: u64,
    },
}

/// Which run asks for a slot, and what it shares with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// The test's name, `request` for what was asked for.
    pub test: String,
    /// How it gets along with others.
    pub class: Class,
    /// The stations and links that it uses.
    pub uses: BTreeSet<Used>,
}

/// A STAMP session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayAsk {
    /// From where packets come; an address of the station that asks.
    pub from: SocketAddr,
    /// Session-Sender Identifier (RFC 8972, section 3).
    pub ssid: u16,
    /// Packets a second.
    pub rate: u32,
    /// For how long from now on.
    pub duration_ms: u64,
    /// Whether packets are authenticated (RFC 8762, section 4.2.2).
    pub authenticated: bool,
}

/// A throughput test from the station that asks to the one that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughputAsk {
    /// With what it is measured.
    pub transport: Transport,
    /// How long data is sent.
    pub duration_ms: u64,
    /// The rate over UDP.
    pub bandwidth: Option<config::Bandwidth>,
    /// Whether IPv6 is used.
    pub ipv6: bool,
}

/// The state of the sender's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockReport {
    /// Its maximum error in nanoseconds; none when it is not known.
    pub maximum_error_ns: Option<u64>,
}

/// What the station that is asked answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// To a hello.
    Welcome {
        /// The version that is spoken.
        version: u32,
        /// The station that answers.
        name: String,
        /// What the one that asks may ask for.
        offers: Vec<Service>,
        /// How good its clock is.
        clock: ClockReport,
    },
    /// The request is accepted.
    Accepted {
        /// By this number it is renewed and ended.
        lease: u64,
        /// For how long from now on.
        duration_ms: u64,
        /// What the one that asked needs for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<Grant>,
    },
    /// It is done.
    Done {},
    /// It is refused.
    Refused {
        /// Why, for programs.
        reason: Reason,
        /// Why, a sentence.
        text: String,
        /// When it may be accepted, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_ms: Option<u64>,
    },
}

/// What is needed for what was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Grant {
    /// For a STAMP session.
    Delay {
        /// Where the reflector listens.
        to: SocketAddr,
        /// The key of the authenticated mode, in hexadecimal digits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// For a throughput test.
    Throughput {
        /// Where the other end listens.
        to: SocketAddr,
        /// What the one that connects must show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
}

/// Why a station refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The handshake failed: no certificate, or one of another authority, or another key.
    Handshake,
    /// More connections than are taken.
    Connections,
    /// Nothing came for too long.
    Silent,
    /// A line that is no request.
    Malformed,
    /// A line that is too long.
    TooLong,
    /// Another version.
    Version,
    /// A name that is not a station's, or not of who says it.
    UnknownPeer,
    /// A request before the first hello.
    NoHello,
    /// An address that is not the asking station's.
    Address,
    /// Something that this station may not ask for.
    NotPermitted,
    /// More requests than are taken.
    Requests,
    /// It would take too long.
    TooLongTest,
    /// It would send too fast.
    TooFast,
    /// More at once than is permitted.
    TooMany,
    /// It would disturb, or be disturbed by, another test.
    Busy,
    /// Nothing was accepted under this number.
    NoLease,
    /// It is not possible here.
    Impossible,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Handshake,
        Self::Connections,
        Self::Silent,
        Self::Malformed,
        Self::TooLong,
        Self::Version,
        Self::UnknownPeer,
        Self::NoHello,
        Self::Address,
        Self::NotPermitted,
        Self::Requests,
        Self::TooLongTest,
        Self::TooFast,
        Self::TooMany,
        Self::Busy,
        Self::NoLease,
        Self::Impossible,
    ];

    /// The word for it, as in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Connections => "connections",
            Self::Silent => "silent",
            Self::Malformed => "malformed",
            Self::TooLong => "too-long",
            Self::Version => "version",
            Self::UnknownPeer => "unknown-peer",
            Self::NoHello => "no-hello",
            Self::Address => "address",
            Self::NotPermitted => "not-permitted",
            Self::Requests => "requests",
            Self::TooLongTest => "too-long-test",
            Self::TooFast => "too-fast",
            Self::TooMany => "too-many",
            Self::Busy => "busy",
            Self::NoLease => "no-lease",
            Self::Impossible => "impossible",
        }
    }

    /// Whether the connection ends with it.
    pub const fn ends(self) -> bool {
        matches!(
            self,
            Self::Handshake
                | Self::Connections
                | Self::Silent
                | Self::Malformed
                | Self::TooLong
                | Self::Version
                | Self::UnknownPeer
                | Self::NoHello
        )
    }
}

/// A request or an answer as a line.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    // Messages have only keys that are texts and always serializes.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_reason() {
        let manual = include_str!("../../../../docs/probe.md");
        let (_, reasons) = manual.split_once(" Reasons: ").expect("the reasons");
        let reasons = reasons.lines().next().unwrap_or_default();
        let (ending, others) =
            reasons.split_once(" (the connection ends)").expect("those that end a connection");
        let words = |text: &'static str| text.split('`').skip(1).step_by(2);
        let listed = words(ending).map(|word| (word, true));
        let listed: Vec<_> = listed.chain(words(others).map(|word| (word, false))).collect();
        assert_eq!(listed, Reason::ALL.map(|reason| (reason.word(), reason.ends())));
    }
}
