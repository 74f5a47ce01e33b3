//! Counts of flows: what they are, and what they were called.

use classify::{
    flow::Flow,
    label::{Certainty, Label},
    truth::{How, OTHER, Truth},
};
use std::{collections::BTreeMap, fmt};

/// What the gate's own parsers know.
const FILE_SHARING: [&str; 5] = ["bittorrent", "directconnect", "edonkey", "gnutella", "soulseek"];

/// So many of so many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub(crate) are: u32,
    pub(crate) of: u32,
}

impl Part {
    pub(crate) fn share(self) -> f64 {
        f64::from(self.are) / f64::from(self.of.max(1))
    }

    /// Upper bound of the true share at 95 % confidence, for this many flows (Wilson and Hilferty's
    /// approximation for the Poisson distribution).
    pub(crate) fn at_most(self) -> f64 {
        let n = f64::from(2 * self.are + 2);
        let root = 1.0 - 2.0 / (9.0 * n) + 1.645 * (2.0 / (9.0 * n)).sqrt();
        n * root.powi(3) / 2.0 / f64::from(self.of.max(1))
    }

    fn add(&mut self, other: Self) {
        self.are += other.are;
        self.of += other.of;
    }
}

/// What was counted of the flows of one truth in one capture.
#[derive(Debug, Default)]
struct Row {
    flows: u32,
    certain: u32,
    likely: u32,
    /// Found only when the flow ended or after too many packets.
    late: u32,
    /// Called some other file sharing, for certain and only likely.
    wrong: [u32; 2],
    /// The first flows that were not as they should be.
    examples: Vec<String>,
}

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Score {
    rows: BTreeMap<(String, String, How), Row>,
}

impl Score {
    /// Counts a flow of a capture: what it is, what it was called, and whether in time.
    pub(crate) fn count(
        &mut self,
        capture: &str,
        flow: &Flow,
        truth: &Truth,
        label: Option<&Label>,
        in_time: bool,
    ) {
        let application = truth.application.as_str();
        // A client that prefers to hide falls back to plain text with those who cannot.
        let certain = label.is_some_and(|label| {
            label.certainty == Certainty::Certain && label.application == application
        });
        let how = if certain { How::Plain } else { truth.how };
        let row = (capture.to_owned(), application.to_owned(), how);
        let row = self.rows.entry(row).or_default();
        row.flows += 1;
        let called = label.map_or("unknown", |label| &label.application);
        let good = if called == application {
            match label.map(|label| label.certainty) {
                _ if !in_time => row.late += 1,
                Some(Certainty::Likely) => row.likely += 1,
                _ => row.certain += 1,
            }
            in_time
        } else if FILE_SHARING.contains(&called) {
            let likely = label.is_some_and(|label| label.certainty == Certainty::Likely);
            row.wrong[usize::from(likely)] += 1;
            false
        } else {
            application == OTHER
        };
        if !good && row.examples.len() < 12 {
            let label = label.map_or_else(|| called.to_owned(), ToString::to_string);
            row.examples.push(format!("{flow}: {label}"));
        }
    }

    /// Flows of file sharing that were called what they are.
    pub(crate) fn found(&self, how: How) -> Part {
        self.sum(|row| row.1 != OTHER && row.2 == how, |row| row.certain + row.likely)
    }

    /// The same of one application.
    pub(crate) fn found_application(&self, how: How, application: &str) -> Part {
        self.sum(|row| row.1 == application && row.2 == how, |row| row.certain + row.likely)
    }

    /// The flows of file sharing of each capture, application and method that were labelled correctly.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&str, &str, How, Part)> {
        let rows = self.rows.iter().filter(|(key, _)| key.1 != OTHER);
        rows.map(|((capture, application, how), row)| {
            let part = Part { are: row.certain + row.likely, of: row.flows };
            (capture.as_str(), application.as_str(), *how, part)
        })
    }

    /// Flows that were called file sharing that they are not, for certain: others, and file sharing of
    /// another kind.
    pub(crate) fn wrong_for_certain(&self) -> Part {
        self.sum(|_| true, |row| row.wrong[0])
    }

    /// Only flows that are no file sharing at all, and were called it for certain.
    pub(crate) fn others_wrong_for_certain(&self) -> Part {
        self.sum(|row| row.1 == OTHER, |row| row.wrong[0])
    }

    /// All that were called file sharing that they are not, only likely.
    pub(crate) fn wrong_likely(&self) -> Part {
        self.sum(|_| true, |row| row.wrong[1])
    }

    fn sum(
        &self,
        which: impl Fn(&(String, String, How)) -> bool,
        are: impl Fn(&Row) -> u32,
    ) -> Part {
        let mut sum = Part::default();
        for (_, row) in self.rows.iter().filter(|(key, _)| which(key)) {
            sum.add(Part { are: are(row), of: row.flows });
        }
        sum
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<22} {:<14} {:<7} {:>6} {:>8} {:>7} {:>5} {:>6} {:>6} {:>7}",
            "capture", "is", "", "flows", "certain", "likely", "late", "wrong", "likely", "found"
        )?;
        for ((capture, application, how), row) in &self.rows {
            let how = if *how == How::Plain { "plain" } else { "hidden" };
            let found = Part { are: row.certain + row.likely, of: row.flows }.share() * 100.0;
            let found = if application == OTHER { String::new() } else { format!("{found:.1}%") };
            writeln!(
                f,
                "{capture:<22} {application:<14} {how:<7} {:>6} {:>8} {:>7} {:>5} {:>6} {:>6} {found:>7}",
                row.flows, row.certain, row.likely, row.late, row.wrong[0], row.wrong[1]
            )?;
            for example in &row.examples {
                writeln!(f, "    {example}")?;
            }
        }
        for (what, wrong) in [
            ("certain", self.wrong_for_certain()),
            ("certain, others", self.others_wrong_for_certain()),
            ("likely", self.wrong_likely()),
        ] {
            let (share, most) = (wrong.share() * 100.0, wrong.at_most() * 100.0);
            writeln!(
                f,
                "wrong, {what}: {} of {}, {share:.3} %, at most {most:.3} % at 95 % confidence",
                wrong.are, wrong.of
            )?;
        }
        Ok(())
    }
}
