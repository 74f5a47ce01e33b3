//! A stable sort of small numbers: short lists by comparing, others by counting.

/// Lists of up to so many are sorted faster by comparing than by counting.
const FEW: usize = 20;
/// Up to so many buckets one pass is faster than two with a byte each.
const ONE_PASS: usize = 1024;
/// More candidates than a counter can count are sorted by comparing.
const MOST: usize = u16::MAX as usize;

/// The memory that sorting takes.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    counts: Vec<u16>,
    order: Vec<u16>,
    keys: Vec<u32>,
}

impl Sorter {
    /// Gives for each rank by its index the position of the order to which it belongs. Known ranks are
    /// below `distinct`; all others go last.
    pub(super) fn sort(
        &mut self,
        ranks: &[u16],
        distinct: usize,
        mut put: impl FnMut(usize, usize),
    ) {
        if ranks.len() <= FEW {
            // With the index in its lower 16 bits, no two keys are equal: the sort need not be stable.
            self.keys.clear();
            self.keys.extend((0..).zip(ranks).map(|(from, &rank)| u32::from(rank) << 16 | from));
            self.keys.sort_unstable();
            for (to, key) in self.keys.iter().enumerate() {
                put(usize::from(*key as u16), to);
            }
            return;
        }
        if ranks.len() > MOST {
            let mut order: Vec<usize> = (0..ranks.len()).collect();
            order.sort_by_key(|&from| ranks[from]);
            return order.into_iter().enumerate().for_each(|(to, from)| put(from, to));
        }
        let last = distinct.min(MOST) as u16;
        if distinct < ONE_PASS {
            let begin = self.count(distinct + 1, ranks.iter().map(|&rank| rank.min(last)));
            for (from, &rank) in ranks.iter().enumerate() {
                if let Some(next) = begin.get_mut(usize::from(rank.min(last))) {
                    put(from, usize::from(*next));
                    *next += 1;
                }
            }
            return;
        }
        // First by the lower byte, then by the upper one.
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.resize(ranks.len(), 0);
        let begin = self.count(256, ranks.iter().map(|&rank| rank & 0xff));
        for (from, &rank) in (0..).zip(ranks) {
            let next = &mut begin[usize::from(rank & 0xff)];
            order[usize::from(*next)] = from;
            *next += 1;
        }
        let begin = self.count(256, ranks.iter().map(|&rank| rank >> 8));
        for &from in &order {
            let from = usize::from(from);
            let next = &mut begin[usize::from(ranks[from] >> 8)];
            put(from, usize::from(*next));
            *next += 1;
        }
        self.order = order;
    }

    /// For each bucket how many keys are in those before it.
    fn count(&mut self, buckets: usize, keys: impl Iterator<Item = u16>) -> &mut [u16] {
        self.counts.clear();
        self.counts.resize(buckets, 0);
        for key in keys {
            if let Some(count) = self.counts.get_mut(usize::from(key)) {
                *count += 1;
            }
        }
        let mut before = 0;
        for count in &mut self.counts {
            before += std::mem::replace(count, before);
        }
        &mut self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(ranks: &[u16], distinct: usize) -> Vec<usize> {
        let mut order = vec![usize::MAX; ranks.len()];
        Sorter::default().sort(ranks, distinct, |from, to| order[to] = from);
        order
    }

    fn naive(ranks: &[u16]) -> Vec<usize> {
        let mut order: Vec<_> = (0..ranks.len()).collect();
        order.sort_by_key(|&from| ranks[from]);
        order
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(
            (distinct, ranks) in prop_oneof![0usize..20, 0usize..3000, 65_000usize..65_536]
                .prop_flat_map(|distinct| {
                    let known = 0..distinct.max(1) as u16;
                    let unknown = if distinct == 0 { 1 } else { 0 };
                    let rank = (known, 0u8..8).prop_map(move |(rank, dice)| {
                        if dice < unknown * 8 || dice == 7 { u16::MAX } else { rank }
                    });
                    (Just(distinct), proptest::collection::vec(rank, 0..400))
                })
        ) {
            prop_assert_eq!(order(&ranks, distinct), naive(&ranks));
        }
    }

    #[test]
    fn more_than_a_counter_counts_are_sorted_too() {
        let ranks: Vec<u16> =
            (0..70_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u16).collect();
        assert_eq!(order(&ranks, 256), naive(&ranks));
    }
}
