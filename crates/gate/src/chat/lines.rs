//! Lines of one side of a flow, as its bytes come.

/// Puts lines together. What is longer than a line can be is passed over to its end.
#[derive(Debug)]
pub(super) struct Lines {
    line: Vec<u8>,
    longest: usize,
    /// What comes up to the next end of a line belongs to one that is not whole.
    broken: bool,
}

impl Lines {
    pub(super) const fn new(longest: usize) -> Self {
        Self { line: Vec::new(), longest, broken: false }
    }

    /// Bytes were missed.
    pub(super) fn gap(&mut self) {
        self.line.clear();
        self.broken = true;
    }

    /// Takes bytes up to the end of a line. Gives what is left of them, and the line without its end
    /// if it is whole.
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8]) -> (&'a [u8], Option<Vec<u8>>) {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
            self.keep(bytes);
            return (&[], None);
        };
        let (head, rest) = bytes.split_at(end);
        self.keep(head);
        let mut line = std::mem::take(&mut self.line);
        let whole = !std::mem::take(&mut self.broken);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        (rest.get(1..).unwrap_or_default(), whole.then_some(line))
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.broken || self.line.len() + bytes.len() > self.longest {
            self.gap();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        while !bytes.is_empty() {
            let (rest, line) = lines.next(bytes);
            out.extend(line);
            bytes = rest;
        }
        out
    }

    #[test]
    fn lines_end_with_either_end_and_may_come_in_pieces() {
        let mut lines = Lines::new(10);
        assert_eq!(all(&mut lines, b"one\r\ntwo\nth"), [b"one", b"two"]);
        assert_eq!(all(&mut lines, b"ree\n\n"), [&b"three"[..], b""]);
    }

    #[test]
    fn what_is_too_long_or_was_missed_costs_that_line_alone() {
        let mut lines = Lines::new(4);
        assert_eq!(all(&mut lines, b"too long\nfits\n"), [b"fits"]);
        assert_eq!(all(&mut lines, b"ab"), [b""; 0]);
        lines.gap();
        assert_eq!(all(&mut lines, b"cd\nef\n"), [b"ef"]);
    }
}
