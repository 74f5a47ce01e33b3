//! Text in HTML and SVG.

use std::fmt::Display;

/// Text as it may appear in HTML and XML, also in an attribute; what no document may hold is dropped.
pub fn escape(text: impl Display) -> String {
    let text = text.to_string();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("<a b='c'>\u{1b}[31m&\""), "&lt;a b=&#39;c&#39;&gt;[31m&amp;&quot;");
        assert_eq!(escape("caf\u{e9}\u{ffff}"), "caf\u{e9}");
        assert_eq!(escape(7), "7");
    }
}
