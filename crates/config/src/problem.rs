//! How sections of the configuration report what is wrong with their values.

use std::fmt;

/// What is wrong with a value that parsed: the dotted key and one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Dotted key as in the file, such as `echo.limit.rate` or `anycast.upstream[1].peer`; that of a
    /// table within a section is relative to the table.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Problem {
    /// A problem with the value of `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }

    /// The same problem seen from the table around: `section` goes before the key.
    #[must_use]
    pub fn within(self, section: &str) -> Self {
        Self { key: format!("{section}.{}", self.key), message: self.message }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// Collects problems below one dotted key.
#[derive(Debug)]
pub struct Report<'a> {
    problems: &'a mut Vec<Problem>,
    /// The dotted key with a dot at its end; empty in a report on a table by itself.
    section: String,
}

impl<'a> Report<'a> {
    /// A report into `problems` on the named section; keys of a table by itself (`""`) are
    /// relative to it.
    pub fn new(problems: &'a mut Vec<Problem>, section: &str) -> Self {
        let section = if section.is_empty() { String::new() } else { format!("{section}.") };
        Self { problems, section }
    }

    /// Adds a problem with the value of `key`.
    pub fn add(&mut self, key: &str, message: impl Into<String>) {
        self.problems.push(Problem::new(format!("{}{key}", self.section), message));
    }

    /// The report on a table in this section.
    pub fn within(&mut self, key: &str) -> Report<'_> {
        Report { problems: self.problems, section: format!("{}{key}.", self.section) }
    }

    /// Takes over the problems of a table in this section.
    pub fn take(&mut self, key: &str, problems: Vec<Problem>) {
        let section = format!("{}{key}", self.section);
        self.problems.extend(problems.into_iter().map(|problem| problem.within(&section)));
    }
}
