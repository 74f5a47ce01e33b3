//! Where stanzas begin and end in the bytes of an XML stream (RFC 6120, section 4).
//!
//! A stanza is a child of the stream's root. It is kept until it is whole and then handed to a parser;
//! one that is too large or too deep is passed over. After a gap nobody knows how deep the stream is:
//! the next tag by the name of a stanza is taken for one.

/// Longest stanza, in bytes. RFC 6120, section 13.12: servers take at least 10,000.
const LONGEST: usize = 64 << 10;
/// Deepest nesting of elements in a stanza.
const DEEPEST: u32 = 32;
/// Longest tag that is inspected while nothing of a stanza is kept.
const LONGEST_TAG: usize = 4096;
/// What is between such brackets holds no tags.
const BRACKETS: [(&str, &str); 3] = [("<![CDATA[", "]]>"), ("<!--", "-->"), ("<?", "?>")];

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The stream begins, also again after authentication (section 4.3.3).
    Stream,
    /// A whole stanza.
    Stanza(Vec<u8>),
}

/// One side's stream.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// What is kept of the stanza, or the tag outside of one.
    kept: Vec<u8>,
    /// Where in `kept` the tag begins that is being read.
    tag: Option<usize>,
    /// The quotation mark that must come before the tag can end.
    quote: Option<u8>,
    /// Elements that are open within the stream's root; the stanza's is the first.
    depth: u32,
    /// The stanza is passed over to its end.
    skip: bool,
    /// It is not known where in the stream this is.
    lost: bool,
}

impl Frames {
    /// Bytes were missed.
    pub(super) fn gap(&mut self) {
        *self = Self { lost: true, ..Self::default() };
    }

    /// Takes one byte.
    pub(super) fn push(&mut self, byte: u8) -> Option<Found> {
        let Some(tag) = self.tag else {
            if byte == b'<' {
                if self.skip || self.depth == 0 {
                    self.kept.clear();
                }
                self.tag = Some(self.kept.len());
                self.keep(byte);
            } else if self.depth > 0 && !self.skip {
                self.keep(byte);
            }
            return None;
        };
        self.keep(byte);
        // A tag that was too long is none any more.
        self.tag?;
        let text = self.kept.get(tag..).unwrap_or_default();
        if let Some((_, end)) =
            BRACKETS.iter().find(|(begin, _)| text.starts_with(begin.as_bytes()))
        {
            if text.ends_with(end.as_bytes()) {
                self.tag = None;
            }
            return None;
        }
        match self.quote {
            Some(quote) if byte == quote => self.quote = None,
            Some(_) => {}
            None if byte == b'"' || byte == b'\'' => self.quote = Some(byte),
            None if byte == b'>' => return self.end_of_tag(tag),
            None => {}
        }
        None
    }

    fn keep(&mut self, byte: u8) {
        let longest = if self.skip || self.depth == 0 { LONGEST_TAG } else { LONGEST };
        if self.kept.len() < longest {
            self.kept.push(byte);
        } else if self.depth > 0 && !self.skip {
            // The stanza is too long. What is kept of the tag decides how deep it is.
            self.skip = true;
            let tag = self.tag.unwrap_or(self.kept.len());
            self.kept.drain(..tag.min(self.kept.len()));
            if self.tag.is_some() {
                self.tag = Some(0);
                self.keep(byte);
            }
        } else {
            self.gap();
        }
    }

    /// A tag is whole; `tag` is where it begins.
    fn end_of_tag(&mut self, tag: usize) -> Option<Found> {
        let text = self.kept.get(tag..).unwrap_or_default();
        let (name, kind) = Tag::of(text);
        let is_stream = name == b"stream";
        let is_stanza = matches!(name, b"message" | b"presence" | b"iq");
        self.tag = None;
        self.quote = None;
        if kind == Tag::Other {
            return None;
        }
        if is_stream && kind == Tag::Start && self.depth == 0 {
            *self = Self::default();
            return Some(Found::Stream);
        }
        if self.lost {
            if !is_stanza || kind == Tag::End {
                self.kept.clear();
                self.depth = 0;
                return None;
            }
            self.lost = false;
            self.skip = false;
            self.kept.drain(..tag.min(self.kept.len()));
            self.depth = 0;
        }
        match kind {
            Tag::Start => self.depth += 1,
            // The end of the stream itself.
            Tag::End if self.depth == 0 => return None,
            Tag::End => self.depth -= 1,
            Tag::Empty | Tag::Other => {}
        }
        if self.depth > DEEPEST {
            self.skip = true;
        }
        if self.depth > 0 {
            return None;
        }
        let stanza = std::mem::take(&mut self.kept);
        (!std::mem::take(&mut self.skip)).then_some(Found::Stanza(stanza))
    }
}

/// Kinds of what stands between `<` and `>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Start,
    End,
    Empty,
    /// Declarations and what XMPP forbids (section 11.1).
    Other,
}

impl Tag {
    /// The name without its prefix, and the kind.
    fn of(text: &[u8]) -> (&[u8], Self) {
        let inner = text.strip_prefix(b"<").unwrap_or(text);
        let inner = inner.strip_suffix(b">").unwrap_or(inner);
        let (inner, kind) = match inner.first() {
            Some(b'/') => (inner.get(1..).unwrap_or_default(), Self::End),
            Some(b'?' | b'!') | None => return (b"", Self::Other),
            Some(_) if inner.ends_with(b"/") => (inner, Self::Empty),
            Some(_) => (inner, Self::Start),
        };
        let end = inner.iter().position(|it| it.is_ascii_whitespace() || *it == b'/');
        let name = inner.get(..end.unwrap_or(inner.len())).unwrap_or_default();
        let local = name.rsplit(|&byte| byte == b':').next().unwrap_or_default();
        (local, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(frames: &mut Frames, text: &str) -> Vec<String> {
        let found = text.bytes().filter_map(|byte| frames.push(byte));
        found
            .map(|it| match it {
                Found::Stream => "stream".to_owned(),
                Found::Stanza(stanza) => String::from_utf8(stanza).unwrap(),
            })
            .collect()
    }

    #[test]
    fn a_stream_is_cut_into_its_children() {
        let text = "<?xml version='1.0'?><stream:stream to='a' x='>'> <iq a='>'/>\n\
            <message><body>a &gt; b</body><![CDATA[ isn't </message> ]]></message>\
            <stream:stream><a><stream:stream></stream:stream></a></stream:stream>";
        let expected = [
            "stream",
            "<iq a='>'/>",
            "<message><body>a &gt; b</body><![CDATA[ isn't </message> ]]></message>",
            "stream",
            "<a><stream:stream></stream:stream></a>",
        ];
        assert_eq!(frames(&mut Frames::default(), text), expected);
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_passed_over_to_its_end() {
        let long = format!("<iq><a>{}</a></iq><iq/>", "x".repeat(LONGEST));
        assert_eq!(frames(&mut Frames::default(), &long), ["<iq/>"]);
        let attribute = format!("<iq><a b='{}'/></iq><iq/>", "x".repeat(LONGEST - 100));
        assert_eq!(frames(&mut Frames::default(), &attribute).len(), 2);
        let deep = "<a>".repeat(40) + &"</a>".repeat(40) + "<iq/>";
        assert_eq!(frames(&mut Frames::default(), &deep), ["<iq/>"]);
    }

    #[test]
    fn a_tag_without_an_end_is_given_up_and_stanzas_are_found_again() {
        let text = format!("<iq a='{}'><iq/>'/><b/><message/>", "x".repeat(2 * LONGEST));
        assert_eq!(frames(&mut Frames::default(), &text).last().unwrap(), "<message/>");
    }

    #[test]
    fn after_a_gap_the_next_stanza_is_found() {
        let mut it = Frames::default();
        assert_eq!(frames(&mut it, "<stream:stream><message><bo"), ["stream"]);
        it.gap();
        let text = "dy>a</body></message><r/><message><body>b</body></message><a/>";
        assert_eq!(frames(&mut it, text), ["<message><body>b</body></message>", "<a/>"]);
    }
}
