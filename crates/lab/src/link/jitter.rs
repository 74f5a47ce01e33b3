//! By how much delays jitter from the link's: the distributions of [`Distribution`], each with mean 0 and
//! measured in spreads, as quantile functions. One random number a packet is enough for any of them.

use crate::{
    Nanos,
    settings::{Distribution, Jitter},
};

/// Mean and standard deviation of the Pareto distribution with shape 3 and least value 1.
const PARETO_MEAN: f64 = 1.5;
const PARETO_DEVIATION: f64 = 0.866_025_403_784_438_6;
/// Standard deviation of N / 4 + 3 P / 4, where N and P are a normal and a Pareto value of the same rank,
/// each with deviation 1; their correlation is 0.678 352 789 549 995 7 (integrated numerically).
const MIXED_DEVIATION: f64 = 0.937_753_856_873_565_9;

/// The delay of a packet, never below zero; `random` is any number, each as likely.
pub(super) fn delay(mean: Nanos, jitter: &Jitter, random: u32) -> Nanos {
    // Between 0 and 1, without either end.
    let rank = (f64::from(random) + 0.5) / 4_294_967_296.0;
    let jitter = quantile(jitter.distribution, rank) * jitter.spread.0 as f64;
    // The conversion stops at zero and at the greatest time.
    Nanos((mean.0 as f64 + jitter).round() as u64)
}

/// The value below which such a part of all values is.
fn quantile(distribution: Distribution, rank: f64) -> f64 {
    match distribution {
        Distribution::Uniform => 2.0 * rank - 1.0,
        Distribution::Normal => normal(rank),
        Distribution::Pareto => pareto(rank),
        Distribution::ParetoNormal => (0.25 * normal(rank) + 0.75 * pareto(rank)) / MIXED_DEVIATION,
    }
}

/// The inverse of 1 - x^-3.
fn pareto(rank: f64) -> f64 {
    ((1.0 - rank).cbrt().recip() - PARETO_MEAN) / PARETO_DEVIATION
}

/// Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics
/// 37(3), 1988, without the part for ranks below 1.4e-11, which 32 random bits do not reach.
fn normal(rank: f64) -> f64 {
    let from_middle = rank - 0.5;
    if from_middle.abs() <= 0.425 {
        let r = 0.180_625 - from_middle * from_middle;
        return from_middle * polynomial(&MIDDLE[0], r) / polynomial(&MIDDLE[1], r);
    }
    let from_end = if from_middle < 0.0 { rank } else { 1.0 - rank };
    let r = (-from_end.ln()).sqrt() - 1.6;
    (polynomial(&TAIL[0], r) / polynomial(&TAIL[1], r)).copysign(from_middle)
}

/// The value of a polynomial whose coefficients are given from the highest power down.
fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Numerator and denominator for ranks within 0.425 of the middle.
const MIDDLE: [[f64; 8]; 2] = [
    [
        2.509_080_928_730_122_7e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
];

/// Numerator and denominator for ranks further out.
const TAIL: [[f64; 8]; 2] = [
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of the normal distribution from a table, and of the others by hand.
    #[test]
    fn quantiles_are_those_of_the_distributions() {
        let near = |distribution, rank: f64, value: f64| {
            let found = quantile(distribution, rank);
            assert!((found - value).abs() < 1e-9, "{distribution} {rank}: {found}, not {value}");
        };
        for (rank, value) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.9, 1.281_551_565_544_600_4),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813_5),
            (0.000_001, -4.753_424_308_822_899),
        ] {
            near(Distribution::Normal, rank, value);
            near(Distribution::Normal, 1.0 - rank, -value);
        }
        near(Distribution::Uniform, 0.25, -0.5);
        // 1 - 8^-1: x = 2.
        near(Distribution::Pareto, 0.875, 0.5 / PARETO_DEVIATION);
        near(Distribution::Pareto, 0.999, 8.5 / PARETO_DEVIATION);
        let mixed = (0.25 * 1.281_551_565_544_600_4 + 0.75 * pareto(0.9)) / MIXED_DEVIATION;
        near(Distribution::ParetoNormal, 0.9, mixed);
    }

    #[test]
    fn no_delay_is_below_zero() {
        let jitter =
            Jitter { spread: Nanos(1_000), distribution: Distribution::Normal, keep_order: true };
        assert_eq!(delay(Nanos(10), &jitter, 0), Nanos::ZERO);
        assert!(delay(Nanos(10), &jitter, u32::MAX) > Nanos(6_000));
    }
}
