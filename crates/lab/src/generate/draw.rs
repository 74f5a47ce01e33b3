//! Numbers that follow from the seed and what they are for.

use splitmix::Random;

/// What is drawn, so that one use of a seed does not show in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    City = 1,
    Size,
    Position,
    Router,
    Links,
    Inside,
    Prefixes,
    Longer,
}

/// The sequence for that use, AS and whatever else.
pub(super) fn draw(seed: u64, what: Use, number: u32, more: u32) -> Random {
    let mut random = Random::new(seed ^ ((what as u64) << 56));
    Random::new(random.bits() ^ (u64::from(number) << 32 | u64::from(more)))
}

/// A whole number from `least` with that mean: each further one is as likely as the one before.
pub(super) fn about(random: &mut Random, least: u32, mean: f64) -> u32 {
    let more = (mean - f64::from(least)).max(0.0);
    let again = more / (1.0 + more);
    let mut number = least;
    while number < 50_000 && random.share() < again {
        number += 1;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_what_was_asked_for() {
        for mean in [1.0, 1.5, 6.0, 50.0] {
            let mut random = draw(1, Use::Size, 0, 0);
            let sum: f64 = (0..100_000).map(|_| f64::from(about(&mut random, 1, mean))).sum();
            let error = (sum / 100_000.0 - mean).abs();
            assert!(error < mean / 50.0, "{mean}: off by {error}");
        }
    }

    #[test]
    fn sequences_of_different_things_differ() {
        let first = |what, number, more| draw(7, what, number, more).bits();
        let all = [
            first(Use::Size, 0, 0),
            first(Use::Size, 1, 0),
            first(Use::Size, 0, 1),
            first(Use::Position, 0, 0),
        ];
        for (position, one) in all.iter().enumerate() {
            assert!(!all[position + 1..].contains(one));
        }
    }
}
