//! Path attributes of an UPDATE that something is learned from (RFC 4271 section 4.3), and the little of
//! AS_PATH that a distance needs.
//!
//! The walk only needs the lengths to fit. What a value means is read where it is used, and a value that
//! makes no sense spoils its own attribute and nothing behind it (RFC 7606 section 3).

/// AS_PATH (RFC 4271 section 5.1.2).
pub const AS_PATH: u8 = 2;
/// NEXT_HOP (RFC 4271 section 5.1.3).
pub const NEXT_HOP: u8 = 3;
/// MP_REACH_NLRI (RFC 4760 section 3).
pub const MP_REACH: u8 = 14;
/// MP_UNREACH_NLRI (RFC 4760 section 4).
pub const MP_UNREACH: u8 = 15;
/// AS4_PATH (RFC 6793 section 3).
pub const AS4_PATH: u8 = 17;
/// BGP-LS Attribute (RFC 9552 section 5.3).
pub const LINK_STATE: u8 = 29;

/// The flag Extended Length: the length has two octets (RFC 4271 section 4.3).
const EXTENDED: u8 = 0x10;

/// The three parts of an UPDATE's body.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Withdrawn IPv4 prefixes.
    pub withdrawn: &'a [u8],
    /// Path attributes.
    pub attributes: &'a [u8],
    /// Announced IPv4 prefixes.
    pub announced: &'a [u8],
}

/// Takes an UPDATE's body apart; `None` if its lengths do not fit.
pub fn parts(body: &[u8]) -> Option<Parts<'_>> {
    let (withdrawn, rest) = counted(body)?;
    let (attributes, announced) = counted(rest)?;
    Some(Parts { withdrawn, attributes, announced })
}

/// A length of two octets and as many bytes; what is behind them.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its type code.
    pub code: u8,
    /// Its value.
    pub value: &'a [u8],
}

/// The attributes one after the other; `None` once, at the end, where the bytes end too early.
#[derive(Clone, Debug)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = Option<Attribute<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let taken = take(self.0);
        self.0 = taken.map_or(&[], |(_, rest)| rest);
        Some(taken.map(|(attribute, _)| attribute))
    }
}

fn take(bytes: &[u8]) -> Option<(Attribute<'_>, &[u8])> {
    let (&[flags, code], rest) = bytes.split_first_chunk::<2>()?;
    let (value, rest) = if flags & EXTENDED != 0 {
        counted(rest)?
    } else {
        let (&length, rest) = rest.split_first()?;
        rest.split_at_checked(usize::from(length))?
    };
    Some((Attribute { code, value }, rest))
}

/// What a distance needs of an AS path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathLength {
    /// Its length as the decision process counts it: a set is 1, segments of a confederation are 0 (RFC
    /// 4271 section 9.1.2.2 a, RFC 5065 section 5.3).
    pub distance: u16,
    /// The last AS number, 0 if there is none to be named: the path is empty or ends in a set (RFC 6811
    /// section 2, "Route Origin ASN").
    pub origin: u32,
    /// The first AS number, 0 if the path does not begin with a sequence.
    pub first: u32,
}

/// Types of segments (RFC 4271 section 4.3, RFC 5065 section 3).
const SET: u8 = 1;
const SEQUENCE: u8 = 2;
const CONFEDERATION_SEQUENCE: u8 = 3;
const CONFEDERATION_SET: u8 = 4;

/// Reads the value of AS_PATH or AS4_PATH with AS numbers of `width` octets, 2 or 4; `None` if it is
/// malformed (RFC 7606 section 7.2).
pub fn path_length(mut value: &[u8], width: usize) -> Option<PathLength> {
    let mut path = PathLength::default();
    let number = |octets: &[u8]| octets.iter().fold(0, |sum, octet| sum << 8 | u32::from(*octet));
    if let Some((&[SEQUENCE, 1..=255], rest)) = value.split_first_chunk::<2>() {
        path.first = number(rest.get(..width)?);
    }
    while let [kind, count, rest @ ..] = value {
        let (numbers, behind) = rest.split_at_checked(usize::from(*count) * width)?;
        value = behind;
        if *count == 0 {
            return None;
        }
        match *kind {
            SEQUENCE => {
                path.distance = path.distance.saturating_add(u16::from(*count));
                path.origin = number(numbers.rchunks_exact(width).next()?);
            }
            SET => {
                path.distance = path.distance.saturating_add(1);
                path.origin = 0;
            }
            CONFEDERATION_SEQUENCE | CONFEDERATION_SET => {}
            _ => return None,
        }
    }
    value.is_empty().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_walked_with_both_kinds_of_length() {
        let bytes = [0x40, 1, 1, 0, 0xd0, 29, 0, 2, 7, 8];
        let found: Vec<_> = Attributes(&bytes).collect();
        assert_eq!(
            found,
            [
                Some(Attribute { code: 1, value: &[0] }),
                Some(Attribute { code: LINK_STATE, value: &[7, 8] })
            ]
        );
        for end in [1, 2, 3, 5, 6, 7, 8, 9] {
            let cut: Vec<_> = Attributes(&bytes[..end]).collect();
            assert_eq!(cut.last(), Some(&None), "{end} bytes");
        }
    }

    #[test]
    fn an_update_whose_lengths_do_not_fit_has_no_parts() {
        let body = [0, 1, 0, 0, 2, 9, 9, 8];
        let parts = parts(&body).unwrap();
        assert_eq!(
            (parts.withdrawn, parts.attributes, parts.announced),
            (&[0][..], &[9, 9][..], &[8][..])
        );
        for end in 0..7 {
            assert!(super::parts(&body[..end]).is_none(), "{end} bytes");
        }
    }

    /// RFC 4271 section 9.1.2.2 a, RFC 5065 section 5.3, RFC 6811 section 2.
    #[test]
    fn a_path_is_counted_as_the_decision_process_counts_it() {
        type Case = (&'static [u8], usize, Option<(u16, u32)>);
        let cases: &[Case] = &[
            (&[], 4, Some((0, 0))),
            (&[2, 2, 0, 1, 0, 2], 2, Some((2, 2))),
            (&[2, 2, 0, 1, 0, 0, 0, 2, 0, 0], 4, Some((2, 0x0002_0000))),
            // A set of three counts as one, and there is no origin.
            (&[2, 1, 0, 1, 1, 3, 0, 7, 0, 8, 0, 9], 2, Some((2, 0))),
            // What a confederation adds does not count.
            (&[3, 2, 0, 5, 0, 6, 2, 1, 0, 7], 2, Some((1, 7))),
            (&[2, 1, 0, 7, 4, 2, 0, 5, 0, 6], 2, Some((1, 7))),
            // No segment, segment of nothing, unknown segment, cut segment (RFC 7606 section 7.2).
            (&[2], 2, None),
            (&[2, 0], 2, None),
            (&[9, 1, 0, 1], 2, None),
            (&[2, 2, 0, 1, 0], 2, None),
            (&[2, 1, 0, 1], 4, None),
        ];
        for (value, width, expected) in cases {
            let found = path_length(value, *width).map(|path| (path.distance, path.origin));
            assert_eq!(found, *expected, "{value:?}");
        }
        let long: Vec<u8> = [2, 255].into_iter().chain([0; 510]).collect();
        let long = long.repeat(300);
        assert_eq!(path_length(&long, 2).unwrap().distance, u16::MAX, "it does not wrap");
    }
}
