//! Numbers that look random and are the same each time, whatever becomes of other crates: for jitter,
//! searches, networks made by rule and tests, never for secrets.
#![forbid(unsafe_code)]

/// Odd, and near 2^64 divided by the golden ratio: multiples of it are far apart.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// All 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number below `bound`, which is not 0; 0 if it is.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product is even enough for any bound that is used here.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to just under 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// One of these, if there are any.
    pub fn pick<'s, T>(&mut self, of: &'s [T]) -> Option<&'s T> {
        of.get(self.below(of.len() as u64) as usize)
    }
}

/// Makes neighbouring numbers differ in all bits.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567, as the authors' own program gives them.
    #[test]
    fn numbers_are_those_of_the_paper() {
        let mut random = Random::new(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.bits(), random.bits()], first);
    }

    #[test]
    fn nothing_is_out_of_range() {
        let mut random = Random::new(1);
        for bound in [1, 2, 3, 1000, u64::MAX] {
            assert!(random.below(bound) < bound);
            assert!((0.0..1.0).contains(&random.share()));
        }
        assert_eq!((random.below(0), random.pick::<u8>(&[])), (0, None));
    }
}
