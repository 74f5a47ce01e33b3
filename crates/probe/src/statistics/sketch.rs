//! Ranks of values in bounded memory: exact while they are few, then as fine as the memory allows.
//!
//! Values are counted in cells of one width, a power of two nanoseconds. It begins at one nanosecond, so
//! that each different value has a cell of its own. When there are too many cells the width doubles until
//! there are few enough. So a value of any rank is known to lie within its cell, whose edges are given: who
//! needs a bound takes the edge that keeps it sound. Far outliers have cells of their own and do not
//! make the crowd's cells wider.

/// Cells after a clean-up; between two clean-ups there are at most twice as many.
const CELLS: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Its values, shifted to the right by `Sketch::shift`.
    key: i64,
    count: u64,
}

/// Values of which ranks can be asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Sketch {
    shift: u32,
    total: u64,
    /// In order after [`Sketch::settle`].
    cells: Vec<Cell>,
}

impl Sketch {
    /// Counts a value.
    pub(super) fn add(&mut self, value: i64) {
        self.total += 1;
        self.cells.push(Cell { key: value >> self.shift, count: 1 });
        if self.cells.len() >= 2 * CELLS {
            self.settle();
        }
    }

    /// Values that were counted.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Between which values, both included, the one of a rank from 1 lies.
    pub(super) fn at(&mut self, rank: u64) -> Option<(i64, i64)> {
        self.settle();
        let mut before = 0;
        let cell = self.cells.iter().find(|cell| {
            before += cell.count;
            (1..=before).contains(&rank)
        })?;
        let low = cell.key << self.shift;
        // As many ones as the shift.
        Some((low, low | (i64::MAX >> (63 - self.shift))))
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        (self.shift, self.total) = (0, 0);
    }

    fn settle(&mut self) {
        self.cells.sort_unstable_by_key(|cell| cell.key);
        self.join();
        // At a shift of 63 there are two cells.
        while self.cells.len() > CELLS {
            self.shift += 1;
            for cell in &mut self.cells {
                cell.key >>= 1;
            }
            self.join();
        }
    }

    fn join(&mut self) {
        self.cells.dedup_by(|next, kept| {
            let same = next.key == kept.key;
            if same {
                kept.count += next.count;
            }
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn ranks_are_those_of_sorted_values(
            values in prop::collection::vec(prop_oneof![any::<i64>(), -500..500i64, 1_000_000..2_000_000i64], 0..3000),
        ) {
            let mut sketch = Sketch::default();
            values.iter().for_each(|value| sketch.add(*value));
            let mut sorted = values;
            sorted.sort_unstable();
            prop_assert_eq!(sketch.total(), sorted.len() as u64);
            for (index, value) in sorted.iter().enumerate().step_by(sorted.len() / 40 + 1) {
                let (low, high) = sketch.at(index as u64 + 1).unwrap();
                prop_assert!(low <= *value && *value <= high, "{low} {value} {high}");
                if sorted.len() < 512 {
                    prop_assert_eq!(low, high);
                }
            }
            prop_assert_eq!(sketch.at(0), None);
            prop_assert_eq!(sketch.at(sorted.len() as u64 + 1), None);
            prop_assert!(sketch.cells.len() < 2 * CELLS);
        }
    }

    #[test]
    fn a_crowd_keeps_fine_cells_beside_outliers() {
        let mut sketch = Sketch::default();
        for i in 0..100_000i64 {
            sketch.add(10_000_000 + i % 4096);
        }
        (1..50).for_each(|i| sketch.add(i * 1_000_000_000));
        let (low, high) = sketch.at(50_000).unwrap();
        assert!(high - low < 16, "{low} to {high}");
        sketch.clear();
        assert_eq!((sketch.total(), sketch.at(1)), (0, None));
    }
}
