//! The demo's output: headings, tables, checks and whether they passed.

use std::{io::IsTerminal, time::Duration};

/// Width of lines and tables, in characters.
pub(crate) const WIDTH: usize = 96;

const MAP: &str = "
                                  ┌─────────────┐
                                  │  ISP_Z   1  │
                                  └──┬───────┬──┘
                        ┌────────────┘       └────────────┐
                 ┌──────┴──────┐                   ┌──────┴──────┐
                 │  ISP_X   2  │                   │  ISP_Y   3  │
                 └──────┬──────┘                   └──────┬──────┘
 ┌─────────────┐ ┌──────┴──────┐                   ┌──────┴──────┐
 │ Central  11 ├─┤  ISP_A   4  │                   │  ISP_B   5  │
 └──────┬──────┘ └──┬───────┬──┘                   └──┬───────┬──┘
        │          ┌┘       └──────┐           ┌──────┘       └┐
        │ ┌────────┴───────┐ ┌─────┴─────┐ ┌───┴───────┐ ┌─────┴──────────┐
        │ │ Enterprise_A 20│ │ DINR_A 12 │ │ DINR_B 13 │ │ Enterprise_B 21│
        │ └────────┬───────┘ └─────┬─────┘ └───┬───────┘ └─────┬──────────┘
    11.0.0.10   ENT_A-testPC   50.50.50.50 50.50.50.50   ENT_B-testPC
                 20.0.0.10      «nigh run»  «nigh run»     21.0.0.10";

/// Prints the demo and counts what was as expected.
#[derive(Debug)]
pub(crate) struct Screen {
    colour: bool,
    steps: u32,
    passed: u32,
    failed: u32,
    summed: bool,
}

impl Screen {
    /// A screen; in colour on a terminal that does not ask for none (<https://no-color.org>).
    pub(crate) fn new() -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { colour, steps: 0, passed: 0, failed: 0, summed: false }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// What this is, with the map.
    pub(crate) fn title(&self) {
        println!();
        println!(
            "  {}",
            self.paint("1", "nigh: an anycast address that answers pings at driver speed")
        );
        println!("  The ten autonomous systems of the DINR report, on this machine.");
        println!();
        for line in MAP.lines().skip(1) {
            let line = line.replace("«nigh run»", &self.paint("1;32", " nigh run "));
            println!("  {line}");
        }
    }

    /// Begins the next step.
    pub(crate) fn step(&mut self, title: &str) {
        self.steps += 1;
        let title = format!("{} {title}", self.steps);
        let rule = "─".repeat(WIDTH.saturating_sub(title.chars().count() + 5));
        println!("\n  {} {}\n", self.paint("1;36", &title), self.paint("2", &rule));
    }

    /// A line of text.
    #[expect(clippy::unused_self, reason = "all output goes through the screen")]
    pub(crate) fn line(&self, text: &str) {
        if text.is_empty() { println!() } else { println!("  {text}") }
    }

    /// A line of less weight, such as a table's header.
    pub(crate) fn faint(&self, text: &str) {
        println!("  {}", self.paint("2", text));
    }

    /// The name of what follows.
    pub(crate) fn name(&self, text: &str) {
        println!("  {}", self.paint("1", text));
    }

    /// A check, and whether it passed.
    pub(crate) fn check(&mut self, passed: bool, text: &str) {
        let mark = if passed { self.paint("32", "✓") } else { self.paint("1;31", "✗") };
        *(if passed { &mut self.passed } else { &mut self.failed }) += 1;
        println!("  {mark} {text}");
    }

    /// How many checks passed.
    pub(crate) fn summary(&mut self) {
        self.summed = true;
        let all = self.passed + self.failed;
        println!("\n  {}\n", self.paint("2", &"─".repeat(WIDTH - 4)));
        if self.failed == 0 {
            println!("  {}\n", self.paint("1;32", &format!("All {all} checks passed.")));
        } else {
            let text = format!("{} of {all} checks failed.", self.failed);
            println!("  {}\n", self.paint("1;31", &text));
        }
    }

    /// The last line.
    pub(crate) fn end(&mut self, took: Duration) {
        if !self.summed {
            self.summary();
        }
        println!("  Everything was removed. The demo took {:.0} s.\n", took.as_secs_f64());
    }

    /// The exit code so far: 1 if a check failed.
    pub(crate) fn code(&self) -> u8 {
        u8::from(self.failed > 0)
    }
}

/// A number with its thousands set apart: `1,000,000`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
