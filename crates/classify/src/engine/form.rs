//! What a flow must contain that nDPI names by its port alone, though it claims to have parsed it.

use crate::dns;

/// Names that nDPI gives, and whether a message has the form of theirs.
type Form = (&'static [&'static str], fn(&[u8]) -> bool);

const FORMS: [Form; 4] = [
    (&["dns", "mdns", "llmnr"], dns::is_message),
    (&["stun"], is_stun),
    (&["teredo"], is_teredo),
    (&NEVER, |_| false),
];

/// Names that rest on nothing but a port.
const NEVER: [&str; 1] = ["targusdataspeed"];

/// Whether any flow has that name by something that it says.
pub(super) fn can_be_read(name: &str) -> bool {
    !NEVER.contains(&name)
}

/// The forms that messages of a flow had.
#[derive(Debug, Default)]
pub(super) struct Seen([bool; FORMS.len()]);

impl Seen {
    /// Inspects a datagram, or all that one end of a connection has sent.
    pub(super) fn look(&mut self, bytes: &[u8], tcp: bool) {
        for ((names, fits), found) in FORMS.iter().zip(&mut self.0) {
            // Over TCP a message's length is before it (RFC 7766, section 8).
            let skipped = if tcp && names.contains(&"dns") { 2 } else { 0 };
            *found |= bytes.get(skipped..).is_some_and(fits);
        }
    }

    /// Whether the bytes can be of this application.
    pub(super) fn fits(&self, name: &str) -> bool {
        FORMS.iter().zip(self.0).all(|((names, _), found)| found || !names.contains(&name))
    }
}

/// A header and as many bytes as it states (RFC 8489, section 5; RFC 3489 has no magic number).
fn is_stun(bytes: &[u8]) -> bool {
    let &[kind, _, high, low, ..] = bytes else { return false };
    let length = u16::from_be_bytes([high, low]);
    kind & 0xc0 == 0 && length % 4 == 0 && usize::from(length) + 20 <= bytes.len()
}

/// A packet of IPv6, or what may come before it (RFC 4380, section 5.1.1).
fn is_teredo(bytes: &[u8]) -> bool {
    matches!(bytes, [0x60..=0x6f, ..] | [0, 0 | 1, ..])
}
