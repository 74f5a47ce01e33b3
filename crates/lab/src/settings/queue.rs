//! Where packets wait for the transmitter.

use super::{
    SettingsError, Share, units,
    words::{Given, Parts},
};
use crate::Nanos;
use std::fmt;

/// A router's output queue.
///
/// It holds the packets that wait; the one that is being sent is not among them. So a packet that finds
/// the transmitter idle needs no room in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queue {
    /// What fits into it. A packet that does not fit is dropped, whatever the discipline.
    pub limit: Limit,
    /// What else is dropped or marked.
    pub discipline: Discipline,
}

/// How much fits into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// So many packets.
    Packets(u32),
    /// Packets of so many bytes together, each with its Ethernet header.
    Bytes(u32),
}

/// What a queue drops, or marks, before it is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Discipline {
    /// Nothing.
    #[default]
    DropTail,
    /// Controlled delay.
    CoDel(CoDel),
    /// Random early detection.
    Red(Red),
}

/// Controlled delay, RFC 8289.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoDel {
    /// Longest wait that is no cause to drop, if it lasts (section 4.3).
    pub target: Nanos,
    /// For how long a wait must last, about the longest round trip (section 4.2).
    pub interval: Nanos,
    /// Whether packets that can be marked are marked instead of dropped.
    pub ecn: bool,
}

/// Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
/// Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Red {
    /// Mean queue below which nothing is dropped, in the unit of the queue's limit.
    pub min: u32,
    /// Mean queue from which everything is dropped (with `gentle`: from twice that).
    pub max: u32,
    /// Chance to be dropped as the mean comes up to `max`.
    pub probability: Share,
    /// Weight of the queue that a packet finds in the moving mean.
    pub weight: Share,
    /// Whether the chance rises from `probability` to 1 between `max` and twice `max` (Floyd,
    /// "Recommendations on using the gentle variant of RED", 2000).
    pub gentle: bool,
    /// Whether packets that can be marked are marked instead of dropped below `max` (RFC 3168, section
    /// 7).
    pub ecn: bool,
}

/// Packets in a queue by default, as for Linux's interfaces.
const DEFAULT_PACKETS: u32 = 1_000;
/// RFC 8289, section 4.3.
const TARGET: Nanos = Nanos(5_000_000);
/// RFC 8289, section 4.2.
const INTERVAL: Nanos = Nanos(100_000_000);
/// Floyd, "RED: Discussions of Setting Parameters", 1997: 1/10.
const PROBABILITY: Share = Share(429_496_730);
/// The paper's weight, 0.002 (section VI).
const WEIGHT: Share = Share(8_589_935);

impl Default for Queue {
    fn default() -> Self {
        Self { limit: Limit::Packets(DEFAULT_PACKETS), discipline: Discipline::DropTail }
    }
}

impl Limit {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('p') {
            Some(packets) if !packets.starts_with('+') => {
                packets.parse().ok().filter(|packets| *packets > 0).map(Self::Packets)
            }
            _ => units::size(text).map(Self::Bytes),
        }
    }

    /// The number, in packets or bytes.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Packets(number) | Self::Bytes(number) => number,
        }
    }

    /// Another number of the same unit.
    fn like(self, number: u32) -> Self {
        match self {
            Self::Packets(_) => Self::Packets(number),
            Self::Bytes(_) => Self::Bytes(number),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Bytes(bytes) => f.write_str(&units::size_text(*bytes)),
        }
    }
}

const LIMIT: &str =
    "a limit is packets from 1p, as 1000p, or bytes from 1B to 4GB, as 64KB or 64KiB";
const DISCIPLINE: &str = "disciplines are droptail, codel and red";
const DROPTAIL_PARTS: &str = "a limit; and codel or red with what belongs to them";
const CODEL_PARTS: &str = "with codel a limit, target, interval and ecn";
const RED_PARTS: &str = "with red a limit, min, max, probability, weight, gentle and ecn";

impl Queue {
    pub(super) fn parse(given: &Given) -> Result<Self, SettingsError> {
        let mut parts = Parts::new("queue", given, |word| match word {
            "droptail" | "codel" | "red" => ("discipline", word.to_owned()),
            "ecn" => ("ecn", "true".to_owned()),
            "gentle" => ("gentle", "true".to_owned()),
            word => ("limit", word.to_owned()),
        })?;
        let limit = parts.take("limit", Limit::parse, LIMIT)?;
        let limit = limit.unwrap_or(Limit::Packets(DEFAULT_PACKETS));
        let name = |text: &str| match text {
            "droptail" | "codel" | "red" => Some(text.to_owned()),
            _ => None,
        };
        let discipline = match parts.take("discipline", name, DISCIPLINE)?.as_deref() {
            Some("codel") => Discipline::CoDel(CoDel::parse(parts)?),
            Some("red") => Discipline::Red(Red::parse(parts, limit)?),
            _ => {
                parts.finish(DROPTAIL_PARTS)?;
                Discipline::DropTail
            }
        };
        Ok(Self { limit, discipline })
    }
}

impl CoDel {
    fn parse(mut parts: Parts) -> Result<Self, SettingsError> {
        let target = parts.time("target")?.unwrap_or(TARGET);
        let interval = parts.time("interval")?.unwrap_or(INTERVAL);
        let ecn = parts.flag("ecn")?;
        if target == Nanos::ZERO || interval <= target {
            return Err(parts.error("target must be above 0 and interval above target"));
        }
        parts.finish(CODEL_PARTS)?;
        Ok(Self { target, interval, ecn })
    }
}

impl Red {
    fn parse(mut parts: Parts, limit: Limit) -> Result<Self, SettingsError> {
        let (max, min) =
            (parts.take("max", Limit::parse, LIMIT)?, parts.take("min", Limit::parse, LIMIT)?);
        // The ratios that Linux's tc-red advises.
        let max = max.unwrap_or(limit.like(limit.number() / 4));
        let min = min.unwrap_or(max.like(max.number() / 3));
        let probability = parts.share("probability")?.unwrap_or(PROBABILITY);
        let weight = parts.share("weight")?.unwrap_or(WEIGHT);
        let (gentle, ecn) = (parts.flag("gentle")?, parts.flag("ecn")?);
        if max.like(0) != limit.like(0) || min.like(0) != limit.like(0) {
            return Err(parts.error("min and max must be in the unit of the limit"));
        }
        let (min, max) = (min.number(), max.number());
        if min == 0 || min >= max || max > limit.number() {
            return Err(parts.error(format!(
                "there must be 0 < min < max <= limit, and there is min {min}, max {max}, limit {}",
                limit.number()
            )));
        }
        if probability == Share::NEVER || weight == Share::NEVER {
            return Err(parts.error("probability and weight must be above 0%"));
        }
        parts.finish(RED_PARTS)?;
        Ok(Self { min, max, probability, weight, gentle, ecn })
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limit.fmt(f)?;
        let ecn = |ecn: bool| if ecn { ",ecn" } else { "" };
        match &self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::CoDel(codel) => write!(
                f,
                ",codel,target={},interval={}{}",
                codel.target,
                codel.interval,
                ecn(codel.ecn)
            ),
            Discipline::Red(red) => write!(
                f,
                ",red,min={},max={},probability={},weight={}{}{}",
                self.limit.like(red.min),
                self.limit.like(red.max),
                red.probability,
                red.weight,
                if red.gentle { ",gentle" } else { "" },
                ecn(red.ecn)
            ),
        }
    }
}
