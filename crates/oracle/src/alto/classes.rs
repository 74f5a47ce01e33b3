//! Rounding of numerical costs into a few classes.
//!
//! A cost is rounded to the next multiple of a step, and what lies outside a range to its ends. The
//! step is 1, 2 or 5 times a power of ten, so that classes stay where they are while the network
//! changes a little; it is the smallest with which the range has no more multiples than the operator
//! allows classes. Rounding never turns an order round: of two costs the lower is never in the higher
//! class. The range begins at the lowest cost and ends where all but the highest hundredth of costs
//! lie, so that a few costs with a penalty do not push all others into one class.

use super::cost::Cost;
use crate::tables::Class;

/// Share of the costs that may lie above the range.
const ABOVE: f64 = 0.01;

/// The classes of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Classes {
    step: Step,
    /// The lowest and the highest class, in steps.
    low: f64,
    high: f64,
}

/// `mantissa` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    mantissa: f64,
    exponent: i32,
}

impl Step {
    /// The smallest step of at least this size.
    fn at_least(size: f64) -> Self {
        let mut step = Self { mantissa: 1.0, exponent: size.log10().floor() as i32 - 1 };
        while step.size() < size {
            step = step.next();
        }
        step
    }

    fn next(self) -> Self {
        match self.mantissa {
            1.0 => Self { mantissa: 2.0, ..self },
            2.0 => Self { mantissa: 5.0, ..self },
            _ => Self { mantissa: 1.0, exponent: self.exponent + 1 },
        }
    }

    fn size(self) -> f64 {
        self.times(1.0)
    }

    /// A multiple, as exactly as a decimal number can be: ten times 0.1 is 1.
    fn times(self, count: f64) -> f64 {
        let product = count * self.mantissa;
        if self.exponent < 0 {
            product / 10_f64.powi(-self.exponent)
        } else {
            product * 10_f64.powi(self.exponent)
        }
    }

    fn round(self, value: f64) -> f64 {
        (value / self.size()).round()
    }
}

impl Classes {
    /// At most `count` classes for costs like these.
    pub(super) fn new(mut values: Vec<f64>, count: u16) -> Self {
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let count = f64::from(count.max(1));
        let below = ((values.len() as f64) * (1.0 - ABOVE)).ceil() as usize;
        let lowest = values.first().copied().unwrap_or_default();
        let highest = values.get(below.saturating_sub(1)).copied().unwrap_or_default();
        // With one cost alone, the step is a fair part of it.
        let largest = lowest.abs().max(highest.abs());
        let size = (highest - lowest).max(largest / 10.0) / count;
        // Outside of this a step would not be a finite number; real costs are inside.
        let mut step = Step::at_least(if size > 0.0 { size.clamp(1e-200, 1e200) } else { 1.0 });
        while step.round(highest) - step.round(lowest) + 1.0 > count {
            step = step.next();
        }
        Self { step, low: step.round(lowest), high: step.round(highest) }
    }

    /// A cost as clients see it; none where there is only an order. The preferred and the avoided are in
    /// the outermost classes.
    pub(super) fn round(&self, cost: Cost) -> Option<f64> {
        cost.is_cost.then(|| self.scaled(cost, 1.0))
    }

    /// The same, of a cost that is multiplied by a calendar's factor.
    pub(super) fn scaled(&self, cost: Cost, factor: f64) -> f64 {
        let class = match cost.class {
            Class::Preferred => self.low,
            Class::Ordinary => self.step.round(cost.value * factor).clamp(self.low, self.high),
            Class::Avoided => self.high,
        };
        // No minus before a zero.
        self.step.times(class) + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Classes {
        fn of(&self, cost: Cost) -> f64 {
            self.round(cost).expect("a cost")
        }
    }

    fn plain(value: f64) -> Cost {
        Cost { class: Class::Ordinary, value, is_cost: true }
    }

    #[test]
    fn steps_are_1_2_or_5_of_a_power_of_ten() {
        let classes = |values: &[f64], count| Classes::new(values.to_vec(), count);
        assert_eq!(classes(&[0.0, 75.0], 16).of(plain(12.0)), 10.0);
        assert_eq!(classes(&[0.0, 0.75], 16).of(plain(0.12)), 0.1);
        assert_eq!(classes(&[1000.0, 8000.0], 4).of(plain(4321.0)), 4000.0);
        // Decimal numbers, not nearly so.
        assert_eq!(classes(&[0.0, 1.5], 16).of(plain(0.3)).to_string(), "0.3");
    }

    #[test]
    fn a_few_high_costs_do_not_hide_the_others() {
        let mut values: Vec<f64> = (0..1000).map(|i| f64::from(i) / 10.0).collect();
        values.push(1e9);
        let classes = Classes::new(values, 16);
        assert!(classes.of(plain(10.0)) < classes.of(plain(60.0)));
        assert!(classes.of(plain(1e9)) <= 110.0);
    }

    #[test]
    fn any_costs_at_all_have_classes() {
        for values in
            [vec![], vec![0.0], vec![7.0], vec![-3.0; 5], vec![1e300, -1e300], vec![1e-300]]
        {
            let classes = Classes::new(values.clone(), 4);
            for value in values {
                assert!(classes.of(plain(value)).is_finite(), "{value}");
            }
        }
        assert_eq!(Classes::new(vec![0.0], 1).of(plain(-0.0)).to_string(), "0");
    }

    proptest! {
        /// At most so many classes, and of two costs the lower is never in the higher one.
        #[test]
        fn few_classes_in_the_order_of_costs(
            mut values in proptest::collection::vec(-1e6..1e6_f64, 1..200),
            count in 1..40_u16,
        ) {
            let classes = Classes::new(values.clone(), count);
            values.sort_unstable_by(f64::total_cmp);
            let mut rounded: Vec<f64> =
                values.iter().map(|value| classes.scaled(plain(*value), 1.0)).collect();
            prop_assert!(rounded.is_sorted());
            rounded.dedup();
            prop_assert!(rounded.len() <= usize::from(count));
            let (first, last) = (rounded[0], rounded[rounded.len() - 1]);
            let preferred = Cost { class: Class::Preferred, value: 1e9, is_cost: true };
            let avoided = Cost { class: Class::Avoided, value: -1e9, is_cost: true };
            prop_assert!(classes.of(preferred) <= first);
            prop_assert!(classes.of(avoided) >= last);
        }
    }
}
