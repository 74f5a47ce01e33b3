//! Why a packet is refused, and how often that happened.

use std::fmt;

/// Why a packet was refused: by a reflector, which then does not answer, or by a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// It belongs to no session: its sender or its SSID is unknown.
    UnknownSession,
    /// It ends before the base packet of its session's mode does.
    TooShort,
    /// The message authentication code of the base packet is wrong.
    NotAuthentic,
    /// The multiplier of its Error Estimate is zero (RFC 4656, section 4.1.2).
    Corrupt,
    /// An authenticated packet that came before.
    Replayed,
    /// More packets than its session may send.
    OverRate,
    /// A reflected packet to no test packet that is being waited for.
    Unexpected,
    /// A reflected packet whose copy of the test packet is not what was sent.
    Altered,
}

impl Refused {
    /// All reasons, in the order of [`Refusals`].
    pub const ALL: [Self; 8] = [
        Self::UnknownSession,
        Self::TooShort,
        Self::NotAuthentic,
        Self::Corrupt,
        Self::Replayed,
        Self::OverRate,
        Self::Unexpected,
        Self::Altered,
    ];

    /// The name in JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownSession => "unknown-session",
            Self::TooShort => "too-short",
            Self::NotAuthentic => "not-authentic",
            Self::Corrupt => "corrupt",
            Self::Replayed => "replayed",
            Self::OverRate => "over-rate",
            Self::Unexpected => "unexpected",
            Self::Altered => "altered",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refused::ALL.len()]);

impl Refusals {
    /// Counts one.
    pub(crate) fn add(&mut self, reason: Refused) {
        self.0[reason as usize] += 1;
    }

    /// Those of one reason.
    pub fn of(&self, reason: Refused) -> u64 {
        self.0[reason as usize]
    }

    /// All.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each reason with its number, those with none too.
    pub fn iter(&self) -> impl Iterator<Item = (Refused, u64)> {
        Refused::ALL.into_iter().zip(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_their_order() {
        for (index, reason) in Refused::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            let mut refusals = Refusals::default();
            refusals.add(reason);
            assert_eq!((refusals.of(reason), refusals.total()), (1, 1));
            assert_eq!(refusals.iter().nth(index), Some((reason, 1)));
        }
    }

    #[test]
    fn the_manual_has_every_reason() {
        let manual = include_str!("../../../../docs/probe-stamp.md");
        let (_, socket) = manual.split_once("At the socket: ").expect("the reasons");
        let (socket, _) = socket.split_once(" In the driver: ").expect("those of the driver");
        let listed: Vec<&str> = socket.split('`').skip(1).step_by(2).collect();
        assert_eq!(listed, Refused::ALL.map(Refused::name));
    }
}
