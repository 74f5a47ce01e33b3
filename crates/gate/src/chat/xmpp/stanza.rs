//! What a stanza says (RFC 6120, section 8; RFC 6121, section 5).

use quick_xml::{
    XmlVersion,
    events::{BytesStart, Event as Xml},
    reader::Reader,
};

/// Longest text of an element that is kept, in bytes.
const LONGEST: usize = super::super::MAX_TEXT;

/// The parts of a stanza that are inspected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stanza {
    /// The name of its element, without a prefix.
    pub(super) name: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) kind: String,
    /// Its own body, not one that is forwarded in it.
    pub(super) body: Option<String>,
    pub(super) subject: Option<String>,
    /// The client's address, as the server gives it (RFC 6120, section 7.6).
    pub(super) bound: Option<String>,
    /// Somebody enters or leaves a room (XEP-0045).
    pub(super) room: bool,
    /// A file is offered (XEP-0096, XEP-0234): its name and size.
    pub(super) file: Option<(String, Option<u64>)>,
}

impl Stanza {
    /// Reads a whole stanza; none where it is not XML.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut reader = Reader::from_str(text);
        let mut stanza = Self::default();
        // Names of the elements that are open, the stanza's own first. Frames bound their number.
        let mut path: Vec<String> = Vec::new();
        loop {
            match reader.read_event().ok()? {
                Xml::Start(tag) => stanza.enter(&mut path, &tag),
                Xml::Empty(tag) => {
                    stanza.enter(&mut path, &tag);
                    path.pop();
                }
                Xml::End(_) => {
                    path.pop();
                }
                Xml::Text(text) => stanza.text(&path, &text.xml10_content()),
                Xml::CData(text) => stanza.text(&path, &text.xml10_content()),
                Xml::GeneralRef(name) => match name.resolve_char_ref().ok()? {
                    Some(c) => stanza.text(&path, c.encode_utf8(&mut [0; 4])),
                    // Others than the five that XML defines are forbidden (section 11.1).
                    None => stanza.text(&path, predefined(&name.xml10_content())?),
                },
                Xml::Eof => return (!stanza.name.is_empty()).then_some(stanza),
                Xml::Comment(_) | Xml::Decl(_) | Xml::PI(_) | Xml::DocType(_) => {}
            }
        }
    }

    fn enter(&mut self, path: &mut Vec<String>, tag: &BytesStart<'_>) {
        path.push(tag.local_name().into_inner().to_owned());
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names.as_slice() {
            [name] => {
                self.name = (*name).to_owned();
                self.from = attribute(tag, "from");
                self.to = attribute(tag, "to");
                self.kind = attribute(tag, "type");
            }
            ["message", "body"] => self.body = Some(String::new()),
            ["message", "subject"] => self.subject = Some(String::new()),
            ["iq", "bind", "jid"] => self.bound = Some(String::new()),
            ["presence", "x"] => {
                self.room |= attribute(tag, "xmlns") == "http://jabber.org/protocol/muc"
            }
            ["iq", "si", "file"] => {
                self.file = Some((attribute(tag, "name"), attribute(tag, "size").parse().ok()));
            }
            ["iq", "jingle", "content", "description", "file"] => {
                self.file = Some((String::new(), None));
            }
            _ => {}
        }
    }

    fn text(&mut self, path: &[String], text: &str) {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["message", "body"] => append(&mut self.body, text),
            ["message", "subject"] => append(&mut self.subject, text),
            ["iq", "bind", "jid"] => append(&mut self.bound, text),
            ["iq", "jingle", "content", "description", "file", "name"] => {
                if let Some((name, _)) = &mut self.file {
                    push(name, text);
                }
            }
            ["iq", "jingle", "content", "description", "file", "size"] => {
                if let Some((_, size)) = &mut self.file {
                    *size = text.trim().parse().ok();
                }
            }
            _ => {}
        }
    }
}

fn append(to: &mut Option<String>, text: &str) {
    push(to.get_or_insert_default(), text);
}

/// Appends what there is room for, by whole characters.
fn push(to: &mut String, text: &str) {
    let room = LONGEST.saturating_sub(to.len());
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|&end| end <= room).last().unwrap_or_default();
    to.push_str(text.get(..end).unwrap_or_default());
}

/// The value of an attribute, empty where it is not there.
fn attribute(tag: &BytesStart<'_>, name: &str) -> String {
    let found = tag.attributes().flatten().find(|it| it.key.into_inner() == name);
    let value = found.and_then(|it| it.normalized_value(XmlVersion::Implicit1_0).ok());
    let mut out = String::new();
    push(&mut out, &value.unwrap_or_default());
    out
}

/// XML 1.0, section 4.6.
fn predefined(name: &str) -> Option<&'static str> {
    Some(match name {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "apos" => "'",
        "quot" => "\"",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_body_of_its_own() {
        let text = "<message from='a@b/c' to=\"d@e\" type='chat' id='1'>\
            <forwarded xmlns='urn:xmpp:forward:0'><message><body>not this</body></message></forwarded>\
            <body>&lt;b&gt; &#x263a; <![CDATA[&amp;]]></body><active/></message>";
        let stanza = Stanza::read(text.as_bytes()).unwrap();
        assert_eq!(stanza.body.as_deref(), Some("<b> \u{263a} &amp;"));
        assert_eq!((stanza.from.as_str(), stanza.to.as_str()), ("a@b/c", "d@e"));
        assert_eq!(stanza.kind, "chat");
    }

    #[test]
    fn what_xmpp_forbids_and_what_is_no_xml_is_none() {
        for text in [
            "<message><body>&unknown;</body></message>",
            "<message><body></message>",
            "no tags",
            "",
            "<message a='\u{1}'><b></message>",
        ] {
            assert_eq!(Stanza::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Stanza::read(b"<message>\xff</message>"), None);
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let text = format!("<message><body>{}</body></message>", "\u{263a}".repeat(LONGEST));
        let body = Stanza::read(text.as_bytes()).unwrap().body.unwrap();
        assert!(body.len() <= LONGEST && body.len() > LONGEST - 3);
    }

    #[test]
    fn offered_files_have_their_names() {
        let si = "<iq type='set'><si xmlns='http://jabber.org/protocol/si'>\
            <file name='a.iso' size='700'/></si></iq>";
        assert_eq!(Stanza::read(si.as_bytes()).unwrap().file, Some(("a.iso".into(), Some(700))));
        let jingle = "<iq type='set'><jingle action='session-initiate'><content><description>\
            <file><size>700</size><name>b.iso</name></file></description></content></jingle></iq>";
        assert_eq!(
            Stanza::read(jingle.as_bytes()).unwrap().file,
            Some(("b.iso".into(), Some(700)))
        );
    }
}
