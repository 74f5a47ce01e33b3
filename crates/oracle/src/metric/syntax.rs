//! Reads an expression, by recursive descent, and writes it with a pair of parentheses around each
//! operation: operators between their operands, functions before one.

use super::{ExpressionError, VARIABLES};

/// Operations within operations; a program that is deeper than this was not written by a person.
const DEEPEST: usize = 64;

const ONE: [&str; 9] = ["abs", "ceil", "exp", "floor", "log", "log10", "log2", "round", "sqrt"];
const MANY: [&str; 2] = ["max", "min"];
/// Longer ones first, so that `<=` is not read as `<`.
const COMPARISONS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];

/// The same expression, with nothing in it left to precedence. Variables are in braces.
///
/// # Errors
/// The first offset where it is wrong.
pub(super) fn explicit(text: &str) -> Result<String, ExpressionError> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let out = reader.comparison()?;
    match reader.rest().chars().next() {
        None => Ok(out),
        Some(')') => reader.wrong("there is no opening parenthesis for this one"),
        Some(c) if COMPARISONS.iter().any(|sign| sign.starts_with(c)) => {
            reader.wrong("comparisons are < <= > >= == != and cannot be chained: use parentheses")
        }
        Some(c) if c.is_alphanumeric() || "_(.".contains(c) => {
            reader.wrong("an operator is missing before this")
        }
        Some(c) => reader.wrong(format!("{c:?} is not allowed here")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

type Text = Result<String, ExpressionError>;

impl<'t> Reader<'t> {
    fn wrong<T>(&self, problem: impl Into<String>) -> Result<T, ExpressionError> {
        Err(ExpressionError { offset: self.at, problem: problem.into() })
    }

    /// What has not been read yet, without space before it.
    fn rest(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Reads the first of these that comes next.
    fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let rest = self.rest();
        let found = signs.iter().find(|sign| rest.starts_with(**sign))?;
        self.at += found.len();
        Some(found)
    }

    fn comparison(&mut self) -> Text {
        let left = self.sum()?;
        let Some(sign) = self.sign(&COMPARISONS) else { return Ok(left) };
        let right = self.sum()?;
        Ok(format!("(({left}){sign}({right}))"))
    }

    fn sum(&mut self) -> Text {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&["+", "-"]) {
            let right = self.product()?;
            left = format!("(({left}){sign}({right}))");
        }
        Ok(left)
    }

    fn product(&mut self) -> Text {
        let mut left = self.signed()?;
        while let Some(sign) = self.sign(&["*", "/", "%"]) {
            let right = self.signed()?;
            left = format!("(({left}){sign}({right}))");
        }
        Ok(left)
    }

    fn signed(&mut self) -> Text {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.wrong(format!("more than {DEEPEST} nested operations"));
        }
        let out = match self.sign(&["-", "+"]) {
            Some("-") => format!("negative({})", self.signed()?),
            Some(_) => self.signed()?,
            None => self.power()?,
        };
        self.depth -= 1;
        Ok(out)
    }

    fn power(&mut self) -> Text {
        let base = self.operand()?;
        if self.sign(&["^"]).is_none() {
            return Ok(base);
        }
        let exponent = self.signed()?;
        Ok(format!("(({base})^({exponent}))"))
    }

    fn operand(&mut self) -> Text {
        let rest = self.rest();
        match rest.chars().next() {
            None => self.wrong("the expression ends where a value is needed"),
            Some('(') => {
                let open = self.at;
                self.at += 1;
                let out = self.comparison()?;
                self.close(open)?;
                Ok(out)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(rest),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.word(rest),
            Some(c) => self.wrong(format!("a value is needed here, not {c:?}")),
        }
    }

    /// Reads a closing parenthesis.
    fn close(&mut self, open: usize) -> Result<(), ExpressionError> {
        if self.sign(&[")"]).is_some() {
            return Ok(());
        }
        if self.rest().is_empty() {
            self.at = open;
            return self.wrong("this parenthesis is not closed");
        }
        if self.sign(&[","]).is_some() {
            self.at -= 1;
            return self.wrong("a comma is only allowed between the arguments of min and max");
        }
        self.wrong("an operator or a closing parenthesis is needed here")
    }

    fn number(&mut self, rest: &str) -> Text {
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut length = digits(rest);
        if rest[length..].starts_with('.') {
            length += 1 + digits(&rest[length + 1..]);
        }
        // An exponent, if digits follow: 1e3, 2.5e-3.
        if let Some(exponent) = rest[length..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let count = digits(&exponent[sign..]);
            if count > 0 {
                length += 1 + sign + count;
            }
        }
        match rest[..length].parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.at += length;
                // Display writes no exponent, which exmex would not read.
                Ok(format!("({value})"))
            }
            Ok(_) => self.wrong("this number is too large"),
            Err(_) => self.wrong("this is not a number"),
        }
    }

    fn word(&mut self, rest: &str) -> Text {
        let length =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = &rest[..length];
        let many = MANY.contains(&word);
        if many || ONE.contains(&word) {
            self.at += length;
            return self.call(word, many);
        }
        if !VARIABLES.contains(&word) {
            return self.wrong(format!(
                "{word:?} is not known; properties of a path are {}; functions are {} and {}",
                VARIABLES.join(", "),
                ONE.join(", "),
                MANY.join(", ")
            ));
        }
        self.at += length;
        Ok(format!("{{{word}}}"))
    }

    fn call(&mut self, name: &str, many: bool) -> Text {
        let open = self.at;
        if self.sign(&["("]).is_none() {
            return self.wrong(format!("{name} needs its argument in parentheses"));
        }
        let first = self.comparison()?;
        if !many {
            self.close(open)?;
            return Ok(format!("{name}({first})"));
        }
        let mut out = first;
        let mut count = 1;
        while self.sign(&[","]).is_some() {
            let next = self.comparison()?;
            out = format!("(({out}){name}({next}))");
            count += 1;
        }
        if count < 2 && self.rest().starts_with(')') {
            return self.wrong(format!("{name} needs at least two arguments, separated by commas"));
        }
        self.close(open)?;
        Ok(out)
    }
}
