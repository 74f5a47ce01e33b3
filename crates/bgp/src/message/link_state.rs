//! What an UPDATE carries of the BGP-LS address family (RFC 9552 section 5.2): the NLRIs as bytes, and the
//! BGP-LS Attribute.

use super::{
    attributes::{self, Attributes},
    learned::Unreadable,
};

/// AFI 16388, SAFI 71 (RFC 9552 section 5.2).
const FAMILY: [u8; 3] = [0x40, 0x04, 71];

/// The parts of an UPDATE that belong to the family.
#[derive(Default)]
pub(crate) struct Content<'a> {
    pub(crate) reached: Option<&'a [u8]>,
    pub(crate) unreached: Option<&'a [u8]>,
    /// The BGP-LS Attribute.
    pub(crate) about: &'a [u8],
}

/// Checks that all lengths in the body of an UPDATE fit, down to those of NLRIs.
///
/// # Errors
/// They do not (RFC 7606 section 3 item j).
pub fn check(body: &[u8]) -> Result<(), Unreadable> {
    content(body).map(drop)
}

/// Finds the parts of the BGP-LS address family in the body of an UPDATE.
///
/// # Errors
/// Its lengths do not fit.
pub(crate) fn content(body: &[u8]) -> Result<Content<'_>, Unreadable> {
    let parts = attributes::parts(body).ok_or(Unreadable::Lengths)?;
    let mut content = Content::default();
    for attribute in Attributes(parts.attributes) {
        let attribute = attribute.ok_or(Unreadable::Lengths)?;
        match attribute.code {
            attributes::MP_REACH => content.reached = reach(attribute.value)?,
            attributes::MP_UNREACH => content.unreached = attribute.value.strip_prefix(&FAMILY),
            attributes::LINK_STATE => content.about = attribute.value,
            _ => {}
        }
    }
    let mut nlris = [content.reached, content.unreached].into_iter().flatten().flat_map(Nlris);
    if nlris.all(|nlri| nlri.is_some()) { Ok(content) } else { Err(Unreadable::Lengths) }
}

/// MP_REACH_NLRI of our family: the NLRIs (RFC 4760 section 3). Other families are skipped.
fn reach(value: &[u8]) -> Result<Option<&[u8]>, Unreadable> {
    let Some(rest) = value.strip_prefix(&FAMILY) else { return Ok(None) };
    let (&length, rest) = rest.split_first().ok_or(Unreadable::Lengths)?;
    // The next hop and the reserved octet.
    rest.get(usize::from(length) + 1..).map(Some).ok_or(Unreadable::Lengths)
}

/// NLRIs one after the other: type, value, and both with the length between them; `None` once, at the
/// end, where the bytes end too early (RFC 9552 section 5.2).
pub(crate) struct Nlris<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Nlris<'a> {
    type Item = Option<(u16, &'a [u8], &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let &[a, b, c, d, ..] = self.0 else {
            let rest = std::mem::take(&mut self.0);
            return if rest.is_empty() { None } else { Some(None) };
        };
        let length = 4 + usize::from(u16::from_be_bytes([c, d]));
        let Some((whole, rest)) = self.0.split_at_checked(length) else {
            self.0 = &[];
            return Some(None);
        };
        self.0 = rest;
        Some(Some((u16::from_be_bytes([a, b]), whole.get(4..).unwrap_or_default(), whole)))
    }
}
