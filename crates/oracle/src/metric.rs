//! Cost expressions over the properties of a path, compiled once.
//!
//! An operator writes what a path costs as an expression over its properties (*The P2P-Oracle Server*, section 4.5.5
//! lists them), with numbers, parentheses and, from the loosest to the tightest binding:
//!
//! ```text
//! <  <=  >  >=  ==  !=      1 where it holds, else 0; not chained
//! +  -
//! *  /  %
//! -                         the sign
//! ^                         from the right: 2 ^ 3 ^ 2 is 2 ^ 9; -2 ^ 2 is -4
//! min(a, b, ...)  max(a, b, ...)
//! abs(a)  sqrt(a)  exp(a)  log(a), to base e  log2(a)  log10(a)  floor(a)  ceil(a)  round(a)
//! ```
//!
//! The bandwidth of a path within one router is infinite, and `10 / min_bandwidth` is 0 there. What is
//! not a number, as `0 / 0` or `sqrt(-1)`, is a path about which nothing is known.
//!
//! `metric/syntax.rs` reads the expression, names the offset of a mistake, and writes it again in a form that crate
//! exmex cannot take for another one; exmex compiles and evaluates that.

mod syntax;

use exmex::{BinOp, Express, FlatEx, MakeOperators, Operator};
use topo::PathProperties;

/// The cost of *The P2P-Oracle Server*, equation 3: used where nothing else is configured.
pub const DEFAULT_COST: &str = "8 * as_distance + 0.5 * internal_hops + 10 / min_bandwidth";

/// The properties that an expression can name, in alphabetical order.
pub const VARIABLES: [&str; 8] = [
    "as_distance",
    "as_number",
    "congestion",
    "internal_hops",
    "latency",
    "loss",
    "min_bandwidth",
    "weight",
];

/// Where an expression is wrong, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {problem}")]
pub struct ExpressionError {
    /// Offset in bytes from the start of the expression.
    pub offset: usize,
    /// What is wrong there, as the end of a sentence.
    pub problem: String,
}

/// A cost of paths: the lower, the better.
#[derive(Clone, Debug)]
pub struct Metric {
    /// The name, by which it is listed.
    pub name: String,
    expression: String,
    program: FlatEx<f64, Operators>,
    /// The index in [`VARIABLES`] of each value that the program takes.
    variables: Vec<usize>,
}

/// Two metrics are equal when they have the same name and expression.
impl PartialEq for Metric {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.expression) == (&other.name, &other.expression)
    }
}

impl Metric {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The first offset where it is wrong.
    pub fn compile(name: &str, expression: &str) -> Result<Self, ExpressionError> {
        let text = syntax::explicit(expression)?;
        // Nothing that `explicit` writes is refused; if it were, no offset could be named.
        let foreign = |error: exmex::ExError| ExpressionError {
            offset: 0,
            problem: format!("the expression cannot be compiled: {error}"),
        };
        let program = FlatEx::parse(&text).map_err(foreign)?;
        let variables = program
            .var_names()
            .iter()
            .filter_map(|used| VARIABLES.iter().position(|variable| variable == used))
            .collect();
        Ok(Self { name: name.to_owned(), expression: expression.to_owned(), program, variables })
    }

    /// The expression as it was written.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The cost of a path; not a number where it is not defined.
    pub fn cost(&self, path: &PathProperties) -> f64 {
        let mut values = [0.0; VARIABLES.len()];
        for (value, &variable) in values.iter_mut().zip(&self.variables) {
            *value = property(path, variable);
        }
        let used = &values[..self.variables.len()];
        self.program.eval(used).unwrap_or(f64::NAN)
    }

    /// Whether prefixes of different origin can differ in cost for that alone.
    pub fn uses_as_number(&self) -> bool {
        self.variables.iter().any(|&variable| VARIABLES[variable] == "as_number")
    }
}

/// The property at an index of [`VARIABLES`].
fn property(path: &PathProperties, variable: usize) -> f64 {
    match variable {
        0 => path.as_distance.into(),
        1 => path.as_number.into(),
        2 => path.congestion,
        3 => path.internal_hops.into(),
        4 => path.latency,
        5 => path.loss,
        6 => path.min_bandwidth,
        _ => path.weight as f64,
    }
}

/// The operators that [`syntax::explicit`] writes. Their precedence does not matter: it writes
/// parentheses around each.
#[derive(Clone, Debug)]
struct Operators;

impl MakeOperators<f64> for Operators {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        let binary =
            |name, apply| Operator::make_bin(name, BinOp { apply, prio: 0, is_commutative: false });
        vec![
            binary("+", |a, b| a + b),
            binary("-", |a, b| a - b),
            binary("*", |a, b| a * b),
            binary("/", |a, b| a / b),
            binary("%", |a, b| a % b),
            binary("^", f64::powf),
            binary("<", |a, b| f64::from(u8::from(a < b))),
            binary("<=", |a, b| f64::from(u8::from(a <= b))),
            binary(">", |a, b| f64::from(u8::from(a > b))),
            binary(">=", |a, b| f64::from(u8::from(a >= b))),
            binary("==", |a, b| f64::from(u8::from(a == b))),
            binary("!=", |a, b| f64::from(u8::from(a != b))),
            binary("min", f64::min),
            binary("max", f64::max),
            Operator::make_unary("negative", |a| -a),
            Operator::make_unary("abs", f64::abs),
            Operator::make_unary("sqrt", f64::sqrt),
            Operator::make_unary("exp", f64::exp),
            Operator::make_unary("log", f64::ln),
            Operator::make_unary("log2", f64::log2),
            Operator::make_unary("log10", f64::log10),
            Operator::make_unary("floor", f64::floor),
            Operator::make_unary("ceil", f64::ceil),
            Operator::make_unary("round", f64::round),
        ]
    }
}

#[cfg(test)]
mod tests;
