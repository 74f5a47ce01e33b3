//! Constraints on costs (RFC 7285, 11.3.2.3; RFC 8189, 4.1.2): `[index] operator number`.

/// How a cost is compared with the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Gt,
    Lt,
    Ge,
    Le,
    Eq,
}

/// One constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraint {
    /// Which of the testable cost types it is about.
    pub index: usize,
    operator: Operator,
    target: f64,
}

impl Constraint {
    /// Parses one; none if it is not written as in the RFCs. An index is allowed only if
    /// `extended` is set.
    pub fn parse(text: &str, extended: bool) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let mut word = words.next()?;
        let mut index = 0;
        if let Some(number) = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if !extended || number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            index = number.parse().ok()?;
            word = words.next()?;
        }
        let operator = match word {
            "gt" => Operator::Gt,
            "lt" => Operator::Lt,
            "ge" => Operator::Ge,
            "le" => Operator::Le,
            "eq" => Operator::Eq,
            _ => return None,
        };
        let target = number(words.next()?)?;
        words.next().is_none().then_some(Self { index, operator, target })
    }

    /// Whether this cost meets it.
    pub fn holds(&self, cost: f64) -> bool {
        match self.operator {
            Operator::Gt => cost > self.target,
            Operator::Lt => cost < self.target,
            Operator::Ge => cost >= self.target,
            Operator::Le => cost <= self.target,
            Operator::Eq => cost == self.target,
        }
    }
}

/// A finite number in digits; names such as `inf` and `nan`, which Rust would take, are none.
fn number(text: &str) -> Option<f64> {
    let plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    if !text.bytes().all(plain) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Alternatives of which one must hold whole: RFC 8189's `or-constraints`. Plain `constraints` are
/// one alternative; none at all always hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraints(pub Vec<Vec<Constraint>>);

impl Constraints {
    /// Whether the costs, by index, meet them. An undefined cost meets none.
    pub fn hold(&self, cost: impl Fn(usize) -> Option<f64>) -> bool {
        let one = |constraint: &Constraint| {
            cost(constraint.index).is_some_and(|cost| constraint.holds(cost))
        };
        self.0.is_empty() || self.0.iter().any(|all| all.iter().all(one))
    }

    /// Whether there is nothing to test.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_constraint_and_what_is_not() {
        for text in ["gt 1", "lt -2.5", "ge\t1e3", " le  0 ", "eq 10"] {
            assert!(Constraint::parse(text, false).is_some(), "{text}");
        }
        for text in [
            "", "le", "10", "le ten", "le 1 2", "le1", "LE 1", "ne 1", "le nan", "le inf",
            "le 1e999", "[0] le 1", "=< 1",
        ] {
            assert_eq!(Constraint::parse(text, false), None, "{text}");
        }
    }

    #[test]
    fn an_index_stands_before_an_extended_one() {
        let parse = |text| Constraint::parse(text, true);
        assert_eq!(parse("[2] le 1").map(|constraint| constraint.index), Some(2));
        assert_eq!(parse("le 1").map(|constraint| constraint.index), Some(0));
        for text in [
            "[] le 1",
            "[+1] le 1",
            "[-1] le 1",
            "[x] le 1",
            "[1]",
            "[1]le 1",
            "[99999999999999999999] le 1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn and_within_or_between() {
        let all = |texts: &[&str]| -> Vec<Constraint> {
            texts.iter().filter_map(|text| Constraint::parse(text, true)).collect()
        };
        let constraints =
            Constraints(vec![all(&["[0] le 100", "[1] le 2"]), all(&["[0] le 10", "[1] le 6"])]);
        for (costs, holds) in [
            ([Some(100.0), Some(2.0)], true),
            ([Some(100.0), Some(3.0)], false),
            ([Some(10.0), Some(6.0)], true),
            ([Some(10.0), None], false),
        ] {
            assert_eq!(constraints.hold(|index| costs[index]), holds, "{costs:?}");
        }
        assert!(Constraints::default().hold(|_| None));
    }
}
