//! Lines of the log that strangers can cause.

use std::time::{Duration, Instant};

/// So many are written in a second.
const MOST: u32 = 10;

/// What was written lately.
#[derive(Debug, Default)]
pub struct Lines {
    /// The second that is counted.
    since: Option<Instant>,
    lines: u32,
    /// Lines since the last one that were not written.
    left_out: u64,
}

impl Lines {
    /// The line to write, unless there were ten in this second; the next one says how many were left out.
    pub fn line(&mut self, now: Instant, line: String) -> Option<String> {
        let over = |since| now.duration_since(since) >= Duration::from_secs(1);
        if self.since.is_none_or(over) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines == MOST {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(match std::mem::take(&mut self.left_out) {
            0 => line,
            left_out => format!("{line} (and {left_out} before that are not shown)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_cause_so_many_lines_a_second_and_the_rest_is_counted() {
        let (begin, mut lines) = (Instant::now(), Lines::default());
        let mut line = |ms| lines.line(begin + Duration::from_millis(ms), "refused".to_owned());
        let written = (0..25).filter_map(&mut line).collect::<Vec<_>>();
        assert_eq!(written, vec!["refused"; 10]);
        assert_eq!(line(1000).unwrap(), "refused (and 15 before that are not shown)");
        assert_eq!(line(1001).unwrap(), "refused");
    }
}
