//! The outcome of numbered datagrams: RFC 4737 and RFC 5560, in bounded memory.

use super::control::Datagrams;

/// Datagrams back from the latest of which copies are known.
const WINDOW: u64 = 1 << 16;
/// Bits of a word.
const WORD: u64 = 64;

/// Counts datagrams by their numbers.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    counts: Datagrams,
    /// One more than the highest number so far.
    next: u64,
    /// A bit for each of the last [`WINDOW`] numbers: whether it has come.
    seen: Box<[u64]>,
}

impl Tally {
    pub(super) fn new() -> Self {
        let seen = vec![0; (WINDOW / WORD) as usize].into();
        Self { counts: Datagrams::default(), next: 0, seen }
    }

    pub(super) fn counts(&self) -> Datagrams {
        self.counts
    }

    /// A datagram came; returns whether it is not a copy. One from before the window counts as none.
    pub(super) fn arrived(&mut self, number: u64) -> bool {
        if number < self.next {
            if self.next - number <= WINDOW && self.mark(number) {
                self.counts.duplicated += 1;
                return false;
            }
            self.counts.reordered += 1;
        } else {
            self.forget_until(number);
            self.mark(number);
            self.next = number.saturating_add(1);
        }
        self.counts.received += 1;
        true
    }

    /// Sets a number's bit; returns whether it was set.
    fn mark(&mut self, number: u64) -> bool {
        let bit = 1 << (number % WORD);
        match self.seen.get_mut((number % WINDOW / WORD) as usize) {
            Some(word) => {
                let was = *word & bit != 0;
                *word |= bit;
                was
            }
            None => false,
        }
    }

    /// Clears the bits of all numbers from the next one to this one.
    fn forget_until(&mut self, number: u64) {
        if number - self.next >= WINDOW {
            self.seen.fill(0);
            return;
        }
        for number in self.next..=number {
            if let Some(word) = self.seen.get_mut((number % WINDOW / WORD) as usize) {
                *word &= !(1 << (number % WORD));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn late_ones_and_copies_are_distinguished() {
        let mut tally = Tally::new();
        for number in [0, 1, 3, 2, 3, 3, 200_000, 1, u64::MAX, 5] {
            tally.arrived(number);
        }
        // The second 1 came long after its window, so nobody knows that it is a copy.
        let right = Datagrams { received: 8, reordered: 3, duplicated: 2 };
        assert_eq!(tally.counts(), right);
    }

    proptest! {
        /// The bits against a set, within the window.
        #[test]
        fn the_window_knows_what_a_set_knows(
            numbers in proptest::collection::vec(0..WINDOW, 0..400),
            base in 0..u64::MAX - WINDOW,
        ) {
            let (mut tally, mut set, mut highest) = (Tally::new(), HashSet::new(), None);
            let mut right = Datagrams::default();
            for number in numbers {
                let number = base + number;
                if !set.insert(number) {
                    right.duplicated += 1;
                } else {
                    right.received += 1;
                    right.reordered += u64::from(highest.is_some_and(|highest| number < highest));
                }
                highest = highest.max(Some(number));
                tally.arrived(number);
            }
            prop_assert_eq!(tally.counts(), right);
        }
    }
}
