//! What the wire does: jitter, loss, reordering.

use super::{
    SettingsError, Share, units,
    words::{Given, Parts},
};
use crate::Nanos;
use std::fmt;

/// How far delays vary around the link's delay.
///
/// A delay is never below zero: where the spread is not small beside the delay, what would be below is
/// zero, and the mean is above the link's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Jitter {
    /// Half the width of the uniform distribution, the standard deviation of the others.
    pub spread: Nanos,
    /// How delays are distributed.
    pub distribution: Distribution,
    /// Whether a packet waits for those before it, as in the queue of another router. Then a packet is
    /// never earlier than the one before it, and where packets come closer than the spread delays are
    /// longer than the distribution says.
    pub keep_order: bool,
}

/// How delays vary. Every distribution has the link's delay as its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Between delay - spread and delay + spread, all as likely.
    Uniform,
    /// The bell curve, with the spread as standard deviation.
    Normal,
    /// Pareto with shape 3, shifted to the link's delay and scaled to the spread as standard deviation:
    /// most packets are early, by up to 0.58 spreads, few are very late (one in a thousand by more than
    /// 9.8 spreads). Netem's table has the same shape 1.15 times as wide, cut off at 4 spreads.
    Pareto,
    /// A quarter of a normal and three quarters of a Pareto value of the same rank, as in netem's table,
    /// which follows measurements; scaled to the spread as standard deviation.
    ParetoNormal,
}

const DISTRIBUTIONS: [(&str, Distribution); 4] = [
    ("uniform", Distribution::Uniform),
    ("normal", Distribution::Normal),
    ("pareto", Distribution::Pareto),
    ("pareto-normal", Distribution::ParetoNormal),
];

impl Distribution {
    fn parse(text: &str) -> Option<Self> {
        DISTRIBUTIONS.iter().find(|(name, _)| *name == text).map(|(_, it)| *it)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = DISTRIBUTIONS.iter().find(|(_, it)| it == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

const JITTER: &str = "a spread, as 2ms; a distribution (uniform, normal, pareto, pareto-normal), uniform \
                      if none is given; and keep_order (with commas: reorder for its contrary), or none";

impl Jitter {
    pub(super) fn parse(given: &Given) -> Result<Option<Self>, SettingsError> {
        if *given == Given::Text("none".to_owned()) {
            return Ok(None);
        }
        let mut parts = Parts::new("jitter", given, |word| match word {
            "reorder" => ("keep_order", "false".to_owned()),
            "keep_order" => ("keep_order", "true".to_owned()),
            word if Distribution::parse(word).is_some() => ("distribution", word.to_owned()),
            word => ("spread", word.to_owned()),
        })?;
        let spread = parts.need("spread", units::time, units::TIME)?;
        let distribution = parts.take(
            "distribution",
            Distribution::parse,
            "distributions are uniform, normal, pareto and pareto-normal",
        )?;
        let keep_order = parts.take("keep_order", |text| text.parse().ok(), "true or false")?;
        if spread == Nanos::ZERO {
            return Err(parts.error("a spread of nothing is no jitter; for that, none"));
        }
        parts.finish(JITTER)?;
        Ok(Some(Self {
            spread,
            distribution: distribution.unwrap_or(Distribution::Uniform),
            keep_order: keep_order.unwrap_or(true),
        }))
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.spread, self.distribution)?;
        if self.keep_order { Ok(()) } else { f.write_str(",reorder") }
    }
}

/// Which packets the wire loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with the same chance, whatever befell the others.
    Independent(Share),
    /// In bursts: the wire is good or bad (good at first). A packet is lost by the chance of the state
    /// that it finds; then the state changes by its chance. Netem's `gemodel p r 1-h 1-k`.
    GilbertElliott {
        /// Chance, for each packet, that a good wire turns bad after it.
        to_bad: Share,
        /// Chance, for each packet, that a bad wire turns good after it.
        to_good: Share,
        /// Chance that a good wire loses a packet.
        in_good: Share,
        /// Chance that a bad wire loses a packet.
        in_bad: Share,
    },
}

const LOSS: &str = "a share, as 1%; or to_bad and to_good, in_good (0% if it is not given) and in_bad \
                    (100%), all shares; or none";

impl Loss {
    pub(super) fn parse(given: &Given) -> Result<Self, SettingsError> {
        if *given == Given::Text("none".to_owned()) {
            return Ok(Self::None);
        }
        let mut parts = Parts::new("loss", given, |word| ("share", word.to_owned()))?;
        if let Some(share) = parts.share("share")? {
            parts.finish(LOSS)?;
            return Ok(if share == Share::NEVER { Self::None } else { Self::Independent(share) });
        }
        let (to_bad, to_good) = (parts.share("to_bad")?, parts.share("to_good")?);
        let (Some(to_bad), Some(to_good)) = (to_bad, to_good) else {
            return Err(parts.error(format!("allowed are {LOSS}")));
        };
        let in_good = parts.share("in_good")?.unwrap_or(Share::NEVER);
        let in_bad = parts.share("in_bad")?.unwrap_or(Share::ALWAYS);
        parts.finish(LOSS)?;
        Ok(Self::GilbertElliott { to_bad, to_good, in_good, in_bad })
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Independent(share) => share.fmt(f),
            Self::GilbertElliott { to_bad, to_good, in_good, in_bad } => {
                write!(f, "to_bad={to_bad},to_good={to_good},in_good={in_good},in_bad={in_bad}")
            }
        }
    }
}

/// Which packets are late, and by how much.
///
/// A chosen packet arrives `late` after the link's delay, and those behind it that come within that time
/// overtake it; every other packet arrives when it would without reordering. So the share is that of the
/// packets that others may overtake, the delay of the others is the link's, and nothing is faster than
/// the link.
///
/// Netem's `reorder 25% gap 5` turns it round: every packet waits for the delay except the chosen ones,
/// which leave at once and overtake all that wait. With `late` as the delay and no delay of the link's
/// own, `share` is netem's percentage less than 100 %: netem's `delay 10ms reorder 25%` orders packets as
/// `reorder=75%,late=10ms` does here. The gap means the same: of each `gap` packets at most one is
/// chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reorder {
    /// The chance to be chosen.
    pub share: Share,
    /// How much later a chosen packet arrives.
    pub late: Nanos,
    /// After a chosen packet, this many less one are not. With a share of 100 % every `gap`-th packet is
    /// chosen, with a gap of 1 every packet by its chance.
    pub gap: u32,
}

const REORDER: &str = "a share, as 1%; late, the time by which a packet is late; and a gap from 1 (if not given), or none";

impl Reorder {
    pub(super) fn parse(given: &Given) -> Result<Option<Self>, SettingsError> {
        if *given == Given::Text("none".to_owned()) {
            return Ok(None);
        }
        let mut parts = Parts::new("reorder", given, |word| ("share", word.to_owned()))?;
        let share = parts.need("share", |text| text.parse().ok(), units::SHARE)?;
        let late = parts.need("late", units::time, units::TIME)?;
        let positive = |text: &str| text.parse().ok().filter(|gap| *gap > 0u32);
        let gap = parts.take("gap", positive, "a gap is a number of packets from 1")?.unwrap_or(1);
        if share == Share::NEVER || late == Nanos::ZERO {
            return Err(parts.error("that reorders nothing; for that, none"));
        }
        parts.finish(REORDER)?;
        Ok(Some(Self { share, late, gap }))
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},late={}", self.share, self.late)?;
        if self.gap == 1 { Ok(()) } else { write!(f, ",gap={}", self.gap) }
    }
}
