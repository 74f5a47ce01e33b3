//! Shares and means over 10^5 packets, each within three standard deviations of what was set. Seeds are
//! fixed, so the tests always see the same packets.

use super::*;
use std::collections::HashSet;

const PACKETS: u32 = 100_000;

/// The outcomes of packets that come a millisecond apart.
fn outcomes(text: &str, seed: u64, link: u32) -> Vec<Outcome> {
    let (settings, mut state) = (settings(text), LinkState::new(seed, LinkId(link)));
    let mut next = |n: u32| offer(&mut state, &settings, u64::from(n) * 1_000_000, 1_000);
    (0..PACKETS).map(&mut next).collect()
}

fn count(outcomes: &[Outcome], what: impl Fn(&Outcome) -> bool) -> f64 {
    outcomes.iter().filter(|outcome| what(outcome)).count() as f64
}

/// `found` of `of` must be within three standard deviations of what independent chances give.
fn assert_share(found: f64, of: f64, share: f64, what: &str) {
    let deviation = (share * (1.0 - share) * of).sqrt();
    let off = (found - share * of).abs() / deviation;
    assert!(off < 3.0, "{what}: {found} of {of}, {off:.2} deviations from {share}");
}

fn lost(outcome: &Outcome) -> bool {
    *outcome == Outcome::Drop(DropReason::Lost)
}

#[test]
fn independent_loss_has_its_share() {
    for (text, share) in [("0.1%", 0.001), ("1%", 0.01), ("12.5%", 0.125), ("90%", 0.9)] {
        for (seed, link) in [(1, 0), (1, 1), (2, 0), (u64::MAX, u32::MAX)] {
            let outcomes = outcomes(&format!("loss={text}"), seed, link);
            assert_share(count(&outcomes, lost), PACKETS.into(), share, text);
            // One loss does not predict that of the next packet, nor of the one after.
            for apart in [1, 2] {
                let both =
                    outcomes.windows(apart + 1).filter(|pair| lost(&pair[0]) && lost(&pair[apart]));
                let pairs = f64::from(PACKETS) - apart as f64;
                assert_share(both.count() as f64, pairs, share * share, "two losses");
            }
        }
    }
    assert!(outcomes("loss=100%", 1, 1).iter().all(lost));
}

#[test]
fn links_and_seeds_are_independent() {
    let sets =
        [(1, 0), (1, 1), (2, 0), (2, 1)].map(|(seed, link)| outcomes("loss=10%", seed, link));
    for (i, one) in sets.iter().enumerate() {
        for two in sets.iter().skip(i + 1) {
            let both = one.iter().zip(two).filter(|(one, two)| lost(one) && lost(two)).count();
            assert_share(both as f64, PACKETS.into(), 0.01, "lost on both");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_outcomes_and_effects_do_not_shift_each_other() {
    let all = "loss=1% jitter=1ms,normal duplicate=2% corrupt=3% reorder=4%,late=5ms delay=10ms";
    assert_eq!(outcomes(all, 3, 4), outcomes(all, 3, 4));
    let numbers = |text: &str, what: fn(&Outcome) -> bool| -> HashSet<usize> {
        let outcomes = outcomes(text, 3, 4);
        outcomes.iter().enumerate().filter(|(_, outcome)| what(outcome)).map(|(n, _)| n).collect()
    };
    assert_eq!(numbers(all, lost), numbers("loss=1%", lost));
    assert!(numbers("loss=2%", lost).is_superset(&numbers("loss=1%", lost)));
    let doubled = |outcome: &Outcome| matches!(outcome, Outcome::Pass { copy: Some(_), .. });
    let expected = &numbers("duplicate=2%", doubled) - &numbers("loss=1%", lost);
    assert_eq!(numbers(all, doubled), expected);
}

#[test]
fn duplicates_and_flipped_bits_have_their_shares() {
    let outcomes = outcomes("duplicate=2% corrupt=5%", 5, 6);
    let doubled =
        count(&outcomes, |outcome| matches!(outcome, Outcome::Pass { copy: Some(_), .. }));
    assert_share(doubled, PACKETS.into(), 0.02, "doubled");
    let bit = |outcome: &Outcome| match outcome {
        Outcome::Pass { corrupt, .. } => *corrupt,
        Outcome::Drop(_) => None,
    };
    let corrupted = count(&outcomes, |outcome| bit(outcome).is_some());
    assert_share(corrupted, PACKETS.into(), 0.05, "corrupted");
    let bits: Vec<u32> = self::outcomes("corrupt=100%", 5, 6).iter().filter_map(bit).collect();
    assert_eq!(bits.len(), PACKETS as usize);
    // Every bit of 1,000 bytes is as likely: each tenth of the packet, and each position in a byte.
    let among = |what: &dyn Fn(u32) -> bool| bits.iter().filter(|bit| what(**bit)).count() as f64;
    assert!(bits.iter().all(|bit| *bit < 8_000));
    for part in 0..10 {
        assert_share(among(&|bit| bit / 800 == part), bits.len() as f64, 0.1, "in a tenth");
    }
    for position in 0..8 {
        assert_share(among(&|bit| bit % 8 == position), bits.len() as f64, 0.125, "at a position");
    }
}

/// The model's chain has a known share, and known lengths of bad times.
#[test]
fn gilbert_and_elliott_lose_in_bursts() {
    let (to_bad, to_good) = (0.01, 0.25);
    let outcomes = outcomes("loss=to_bad=1%,to_good=25%", 8, 9);
    let share = to_bad / (to_bad + to_good);
    // The losses of a chain are not independent: its mean deviations more by this factor (the correlation of
    // neighbours is 1 - to_bad - to_good).
    let memory: f64 = 1.0 - to_bad - to_good;
    let found = count(&outcomes, lost);
    let deviation =
        (share * (1.0 - share) * f64::from(PACKETS) * (1.0 + memory) / (1.0 - memory)).sqrt();
    let off = (found - share * f64::from(PACKETS)).abs() / deviation;
    assert!(off < 3.0, "{found} lost, {off:.2} deviations from {share}");
    let bursts =
        outcomes.windows(2).filter(|pair| !lost(&pair[0]) && lost(&pair[1])).count() as f64;
    let off = (found / bursts - 4.0).abs() / ((1.0 - to_good).sqrt() / to_good / bursts.sqrt());
    assert!(off < 3.0, "{:.2} packets a burst, {off:.2} deviations from 4", found / bursts);
}

#[test]
fn gilbert_and_elliott_lose_in_both_states() {
    let outcomes = outcomes("loss=to_bad=2%,to_good=2%,in_good=1%,in_bad=50%", 10, 11);
    // Half of the time bad; the states' memory is 0.96, and half the losses' spread is from them.
    let (share, memory) = (0.255, 0.96f64);
    let states = 0.25 * 0.49 * 0.49 * (1.0 + memory) / (1.0 - memory);
    let deviation = ((states + share * (1.0 - share)) * f64::from(PACKETS)).sqrt();
    let found = count(&outcomes, lost);
    let off = (found - share * f64::from(PACKETS)).abs() / deviation;
    assert!(off < 3.0, "{found} lost, {off:.2} deviations from {share}");
}

#[test]
fn jitter_has_its_mean_and_its_quantiles() {
    let delay = 1e9;
    let spread = 1e6;
    // Standard deviation in spreads, then the values below which 10, 25, 50, 75, 90 and 99 % are: of the
    // normal distribution by table, of Pareto's and of the mixture by their definitions.
    let pareto = |rank: f64| ((1.0 - rank).powf(-1.0 / 3.0) - 1.5) / 0.75f64.sqrt();
    let normal = [-1.281_552, -0.674_490, 0.0, 0.674_490, 1.281_552, 2.326_348];
    let ranks = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99];
    let mixed = |i: usize| (0.25 * normal[i] + 0.75 * pareto(ranks[i])) / 0.937_753_856_873_566;
    let expected = [
        ("uniform", 3f64.sqrt().recip(), [-0.8, -0.5, 0.0, 0.5, 0.8, 0.98]),
        ("normal", 1.0, normal),
        ("pareto", 1.0, ranks.map(pareto)),
        ("pareto-normal", 1.0, [0, 1, 2, 3, 4, 5].map(mixed)),
    ];
    for (name, deviation, quantiles) in expected {
        let outcomes = outcomes(&format!("delay=1s jitter=1ms,{name},reorder"), 12, 13);
        let deviations: Vec<f64> = outcomes
            .into_iter()
            .zip(0u64..)
            .map(|(outcome, n)| {
                let at = at(outcome).unwrap_or_else(|| panic!("{outcome:?}"));
                ((at - n * 1_000_000) as f64 - delay) / spread
            })
            .collect();
        let mean = deviations.iter().sum::<f64>() / f64::from(PACKETS);
        let off = mean.abs() / (deviation / f64::from(PACKETS).sqrt());
        assert!(off < 3.0, "{name}: mean {mean}, {off:.2} deviations from 0");
        for (rank, quantile) in ranks.into_iter().zip(quantiles) {
            let below = deviations.iter().filter(|jitter| **jitter < quantile).count() as f64;
            assert_share(below, PACKETS.into(), rank, name);
        }
    }
}

#[test]
fn a_share_of_packets_is_late() {
    let late = |text: &str| -> Vec<usize> {
        let outcomes = outcomes(text, 14, 15);
        let late = outcomes.into_iter().zip(0u64..).map(|(outcome, n)| {
            match at(outcome).unwrap_or_else(|| panic!("{outcome:?}")) - n * 1_000_000 {
                10_000_000 => false,
                15_000_000 => true,
                other => panic!("{other} ns"),
            }
        });
        late.enumerate().filter(|(_, late)| *late).map(|(n, _)| n).collect()
    };
    let found = late("delay=10ms reorder=5%,late=5ms").len() as f64;
    assert_share(found, PACKETS.into(), 0.05, "late");
    let every_tenth: Vec<usize> = (9..PACKETS as usize).step_by(10).collect();
    assert_eq!(late("delay=10ms reorder=100%,late=5ms,gap=10"), every_tenth);
    // With a gap the mean distance is what chance takes beyond it.
    let spaced = late("delay=10ms reorder=50%,late=5ms,gap=10");
    let distances = spaced.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(distances.clone().all(|distance| distance >= 10));
    let mean = distances.sum::<usize>() as f64 / (spaced.len() - 1) as f64;
    let off = (mean - 11.0).abs() / (2f64.sqrt() / (spaced.len() as f64).sqrt());
    assert!(off < 3.0, "{mean:.3} packets apart, {off:.2} deviations from 11");
}
