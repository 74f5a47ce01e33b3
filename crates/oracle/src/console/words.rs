//! A line as words: blanks part them, quotes hold them together, as in a shell.

/// A quote is opened and not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the quote {0} is not closed")]
pub(super) struct OpenQuote(char);

/// The words of a line.
pub(super) fn split(line: &str) -> Result<Vec<String>, OpenQuote> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.map_or(Ok(words), |open| Err(OpenQuote(open)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_part_and_quotes_join() {
        for (line, expected) in [
            ("", vec![]),
            (" a  b\t", vec!["a", "b"]),
            ("a \"b c\" d", vec!["a", "b c", "d"]),
            ("a'b c'd", vec!["ab cd"]),
            ("'\"' \"'\"", vec!["\"", "'"]),
            ("\"\"", vec![""]),
        ] {
            assert_eq!(split(line).unwrap(), expected, "{line}");
        }
        assert_eq!(split("a 'b"), Err(OpenQuote('\'')));
    }
}
