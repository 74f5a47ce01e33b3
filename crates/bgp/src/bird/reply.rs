//! Replies of BIRD's control socket, taken apart without a socket.
//!
//! A reply is lines of `NNNN-text` (more follows), ` text` (goes on under the last number) and, at its
//! end, `NNNN text`. Lines that begin with `+` are log messages, which are skipped
//! (BIRD 2 programmer's documentation, "Command line interface"; nest/cli.c). Numbers from 8000 on are
//! errors while running, from 9000 on errors in the command.

/// The longest line that is taken.
const LINE_MAX: usize = 4096;
/// The longest reply that is taken: what is asked for here is a few lines.
const REPLY_MAX: usize = 256 * 1024;

/// A reply is not what BIRD sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// A line does not begin as a reply's lines do.
    #[error("line {line} of the reply is not a line of BIRD's control protocol")]
    Line {
        /// Counted from 1.
        line: usize,
    },
    /// A line or the whole reply is too long.
    #[error("line {line} makes the reply too long")]
    TooLong {
        /// Counted from 1.
        line: usize,
    },
}

/// A whole reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Each line's number and text, in order, the last one too.
    pub lines: Vec<(u16, String)>,
}

impl Reply {
    /// The number of the last line.
    pub fn code(&self) -> u16 {
        self.lines.last().map_or(0, |(code, _)| *code)
    }

    /// The last line as an error, if it is one.
    pub fn error(&self) -> Option<&str> {
        self.lines.last().filter(|(code, _)| *code >= 8000).map(|(_, text)| text.as_str())
    }

    /// The texts with one number.
    pub fn texts(&self, code: u16) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(move |(number, _)| *number == code).map(|(_, text)| text.as_str())
    }
}

/// Puts replies together from the bytes of the socket.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    reply: Reply,
    size: usize,
}

impl Parser {
    /// Takes bytes up to the end of the first reply; gives it and how many bytes it took. After an error
    /// the connection is of no more use.
    ///
    /// # Errors
    /// A line that is too long or is none of BIRD's.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(usize, Option<Reply>), ReplyError> {
        for (position, byte) in bytes.iter().enumerate() {
            let line = self.reply.lines.len() + 1;
            if *byte != b'\n' {
                self.size += 1;
                if self.line.len() == LINE_MAX || self.size > REPLY_MAX {
                    return Err(ReplyError::TooLong { line });
                }
                self.line.push(*byte);
                continue;
            }
            // Empty lines are counted too, so that no flood of them goes on for ever.
            self.size += 1;
            let text = std::mem::take(&mut self.line);
            if self.take(&text).ok_or(ReplyError::Line { line })? {
                self.size = 0;
                return Ok((position + 1, Some(std::mem::take(&mut self.reply))));
            }
        }
        Ok((bytes.len(), None))
    }

    /// Takes one line; returns whether it was the last one, or `None` where it is not a line of a reply.
    fn take(&mut self, line: &[u8]) -> Option<bool> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match line {
            [b'+', ..] => Some(false),
            [b' ', rest @ ..] => {
                let code = self.reply.lines.last()?.0;
                self.reply.lines.push((code, text(rest)));
                Some(false)
            }
            [a, b, c, d, mark @ (b'-' | b' '), rest @ ..] => {
                let mut code = 0;
                for digit in [a, b, c, d] {
                    code = code * 10 + u16::from(digit.is_ascii_digit().then(|| digit - b'0')?);
                }
                self.reply.lines.push((code, text(rest)));
                Some(*mark == b' ')
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Recorded from BIRD 2.0.12.
    const PROTOCOLS: &str = "2002-Name       Proto      Table      State  Since         Info\n\
        1002-isp_a      BGP        ---        up     22:13:19.932  Established   \n0000 \n";
    const ROUTE: &str = "1007-Table master4:\n 50.0.0.0/8           blackhole [nigh 22:13:22.092] * (200)\n\
        1008-\tType: static univ\n1012-\tBGP.community: (65535,0)\n \tBGP.med: 5\n0000 \n";

    fn whole(text: &str) -> Reply {
        let (used, reply) = Parser::default().push(text.as_bytes()).unwrap();
        assert_eq!(used, text.len());
        reply.unwrap()
    }

    #[test]
    fn recorded_replies_are_read() {
        let reply = whole(PROTOCOLS);
        assert_eq!(reply.lines.len(), 3);
        assert!(reply.texts(1002).next().unwrap().contains("Established"));
        assert_eq!((reply.code(), reply.error()), (0, None));
        let reply = whole(ROUTE);
        assert_eq!(reply.texts(1007).count(), 2);
        assert_eq!(reply.texts(1012).last(), Some("\tBGP.med: 5"));
        let reply = whole("9001 No valid tables\n");
        assert_eq!(reply.error(), Some("No valid tables"));
        assert_eq!(whole("0001 BIRD 2.0.12 ready.\n").code(), 1);
    }

    #[test]
    fn what_bird_never_sends_is_refused() {
        for text in ["\n", " first\n", "000\n", "00000 x\n", "0000x\n", "abcd x\n", "-001 x\n"] {
            let error = Parser::default().push(text.as_bytes()).unwrap_err();
            assert_eq!(error, ReplyError::Line { line: 1 }, "{text:?}");
        }
        let long = vec![b'1'; LINE_MAX + 1];
        assert_eq!(Parser::default().push(&long), Err(ReplyError::TooLong { line: 1 }));
        let mut parser = Parser::default();
        let line = format!("1000-{}\n", "x".repeat(1000));
        let error = (0..1000).find_map(|_| parser.push(line.as_bytes()).err()).unwrap();
        assert!(matches!(error, ReplyError::TooLong { line } if line > 200));
    }

    #[test]
    fn log_lines_are_skipped() {
        let reply = whole("+<INFO> reconfigured\n0013 up\n");
        assert_eq!(reply.lines, [(13, "up".to_owned())]);
    }

    proptest! {
        /// However the bytes are cut, the reply is the same.
        #[test]
        fn chunks_do_not_matter(cuts in prop::collection::vec(1usize..40, 1..20)) {
            let text = format!("{PROTOCOLS}{ROUTE}");
            let expected = [whole(PROTOCOLS), whole(ROUTE)];
            let mut parser = Parser::default();
            let mut found = Vec::new();
            let mut rest = text.as_bytes();
            for size in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let chunk = &rest[..(*size).min(rest.len())];
                let (used, reply) = parser.push(chunk).unwrap();
                found.extend(reply);
                rest = &rest[used..];
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut parser = Parser::default();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                match parser.push(rest) {
                    Ok((used, _)) => rest = &rest[used..],
                    Err(_) => break,
                }
            }
        }
    }
}
