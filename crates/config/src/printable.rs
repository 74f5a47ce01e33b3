//! Text from outside, for terminals and logs.

/// Text on one line, without what a terminal would obey or a reader would not see: control characters,
/// marks of the direction of writing, ends of lines and invisible characters (Unicode, UAX 9 and 14).
/// Each becomes U+FFFD; tabs and line breaks become blanks.
pub fn printable(text: impl IntoIterator<Item = char>) -> String {
    let clean = |c| match c {
        '\t' | '\n' | '\r' => ' ',
        '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.into_iter().map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        for (text, right) in [
            ("busy\u{1b}[2J ok", "busy\u{fffd}[2J ok"),
            ("a\tb\r\nc", "a b  c"),
            ("\u{0}\u{7f}\u{9b}1m", "\u{fffd}\u{fffd}\u{fffd}1m"),
            ("\u{61c}\u{200b}\u{200f}\u{2028}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{202e}live\u{2066}\u{feff}", "\u{fffd}live\u{fffd}\u{fffd}"),
            (
                "caf\u{e9} \u{65e5}\u{672c} \u{1f600} `x`",
                "caf\u{e9} \u{65e5}\u{672c} \u{1f600} `x`",
            ),
        ] {
            assert_eq!(printable(text.chars()), right, "{text:?}");
        }
    }
}
