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
    /// Says for each place by its index to which position of the order it belongs. Known places are
    /// below `distinct`; all others go last.
    pub(super) fn sort(
        &mut self,
        places: &[u16],
        distinct: usize,
        mut put: impl FnMut(usize, usize),
    ) {
        if places.len() <= FEW {
            // With the index in its lower half, no two keys are equal: the sort need not be stable.
            self.keys.clear();
            self.keys.extend((0..).zip(places).map(|(from, &place)| u32::from(place) << 16 | from));
            self.keys.sort_unstable();
            for (to, key) in self.keys.iter().enumerate() {
                put(usize::from(*key as u16), to);
            }
            return;
        }
        if places.len() > MOST {
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.sort_by_key(|&from| places[from]);
            return order.into_iter().enumerate().for_each(|(to, from)| put(from, to));
        }
        let last = distinct.min(MOST) as u16;
        if distinct < ONE_PASS {
            let begin = self.count(distinct + 1, places.iter().map(|&place| place.min(last)));
            for (from, &place) in places.iter().enumerate() {
                if let Some(next) = begin.get_mut(usize::from(place.min(last))) {
                    put(from, usize::from(*next));
                    *next += 1;
                }
            }
            return;
        }
        // First by the lower byte, then by the upper one.
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.resize(places.len(), 0);
        let begin = self.count(256, places.iter().map(|&place| place & 0xff));
        for (from, &place) in (0..).zip(places) {
            let next = &mut begin[usize::from(place & 0xff)];
            order[usize::from(*next)] = from;
            *next += 1;
        }
        let begin = self.count(256, places.iter().map(|&place| place >> 8));
        for &from in &order {
            let from = usize::from(from);
            let next = &mut begin[usize::from(places[from] >> 8)];
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

    fn order(places: &[u16], distinct: usize) -> Vec<usize> {
        let mut order = vec![usize::MAX; places.len()];
        Sorter::default().sort(places, distinct, |from, to| order[to] = from);
        order
    }

    fn naive(places: &[u16]) -> Vec<usize> {
        let mut order: Vec<_> = (0..places.len()).collect();
        order.sort_by_key(|&from| places[from]);
        order
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(
            (distinct, places) in prop_oneof![0usize..20, 0usize..3000, 65_000usize..65_536]
                .prop_flat_map(|distinct| {
                    let known = 0..distinct.max(1) as u16;
                    let unknown = if distinct == 0 { 1 } else { 0 };
                    let place = (known, 0u8..8).prop_map(move |(place, odd)| {
                        if odd < unknown * 8 || odd == 7 { u16::MAX } else { place }
                    });
                    (Just(distinct), proptest::collection::vec(place, 0..400))
                })
        ) {
            prop_assert_eq!(order(&places, distinct), naive(&places));
        }
    }

    #[test]
    fn more_than_a_counter_counts_are_sorted_too() {
        let places: Vec<u16> =
            (0..70_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u16).collect();
        assert_eq!(order(&places, 256), naive(&places));
    }
}
