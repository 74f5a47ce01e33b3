//! Bencoding as BEP 3 has it, read strictly, without copies and without recursion.
//!
//! [`read`] walks once over one whole value with a stack of constant depth and so checks all of it;
//! [`Value`]s are views of what was checked. Dictionaries and lists are walked lazily: a key is found by
//! passing over the values before it.
//!
//! Strict means: integers and lengths without leading zeros, no `-0`, integers of 64 bits, keys that are
//! strings. [`read`] also wants the keys in ascending order and none twice, as BEP 3 does, so that two
//! readers never see two values for one key; [`read_unordered`] does not, for messages of programs that
//! do not sort (they exist in the DHT).

use thiserror::Error;

/// Lists and dictionaries within each other.
pub const DEPTH: usize = 32;

/// What of a text is not bencoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("at byte {offset}: {kind}")]
pub struct Error {
    /// Where.
    pub offset: usize,
    /// What.
    pub kind: Kind,
}

/// Why a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Kind {
    /// The rest may still come.
    #[error("the text ends within a value")]
    Cut,
    /// No value begins with this byte.
    #[error("no value begins so")]
    Unexpected,
    /// Leading zeros, `-0`, no digits, more than 64 bits.
    #[error("not an integer")]
    Integer,
    /// A length with leading zeros or beyond 32 bits.
    #[error("not a length")]
    Length,
    /// A key that is not a string, or one without a value.
    #[error("a dictionary's key without string or value")]
    Key,
    /// A key that is not greater than the one before.
    #[error("keys out of order")]
    Order,
    /// More than [`DEPTH`].
    #[error("nested too deeply")]
    Depth,
}

/// A value that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `i42e`
    Integer(i64),
    /// `4:spam`
    Bytes(&'a [u8]),
    /// `l...e`
    List(List<'a>),
    /// `d...e`
    Dict(Dict<'a>),
}

impl<'a> Value<'a> {
    /// The number, if it is one.
    #[must_use]
    pub const fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            _ => None,
        }
    }

    /// The bytes, if it is a string.
    #[must_use]
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The list, if it is one.
    #[must_use]
    pub const fn list(self) -> Option<List<'a>> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The dictionary, if it is one.
    #[must_use]
    pub const fn dict(self) -> Option<Dict<'a>> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }
}

/// A list that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<'a> {
    raw: &'a [u8],
}

impl<'a> List<'a> {
    /// Its text with the `l` and the `e`.
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Its values in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let mut rest = inside(self.raw);
        std::iter::from_fn(move || next(&mut rest))
    }
}

/// A dictionary that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dict<'a> {
    raw: &'a [u8],
}

impl<'a> Dict<'a> {
    /// Its text with the `d` and the `e`; that of a torrent's `info` is what its info-hash is made of.
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Value<'a>)> + use<'a> {
        let mut rest = inside(self.raw);
        std::iter::from_fn(move || Some((next(&mut rest)?.bytes()?, next(&mut rest)?)))
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Value<'a>> {
        self.iter().find_map(|(found, value)| (found == key).then_some(value))
    }

    /// The string of a key.
    #[must_use]
    pub fn bytes(&self, key: &[u8]) -> Option<&'a [u8]> {
        self.get(key)?.bytes()
    }

    /// The number of a key.
    #[must_use]
    pub fn integer(&self, key: &[u8]) -> Option<i64> {
        self.get(key)?.integer()
    }

    /// The list of a key.
    #[must_use]
    pub fn list(&self, key: &[u8]) -> Option<List<'a>> {
        self.get(key)?.list()
    }

    /// The dictionary of a key.
    #[must_use]
    pub fn dict(&self, key: &[u8]) -> Option<Dict<'a>> {
        self.get(key)?.dict()
    }
}

/// Reads the value that the text begins with, and returns how many bytes it takes.
///
/// # Errors
/// The first thing that is not bencoding; [`Kind::Cut`] if more bytes could make it a value.
pub fn read(text: &[u8]) -> Result<(Value<'_>, usize), Error> {
    whole(text, true)
}

/// [`read`] for dictionaries in any order.
///
/// # Errors
/// As [`read`].
pub fn read_unordered(text: &[u8]) -> Result<(Value<'_>, usize), Error> {
    whole(text, false)
}

fn whole(text: &[u8], ordered: bool) -> Result<(Value<'_>, usize), Error> {
    let end = check(text, ordered)?;
    let cut = Error { offset: end, kind: Kind::Cut };
    let mut rest = text.get(..end).ok_or(cut)?;
    Ok((next(&mut rest).ok_or(cut)?, end))
}

/// A list or a dictionary that is open.
#[derive(Clone, Copy, Default)]
struct Open<'a> {
    dict: bool,
    /// A dictionary's key that waits for its value.
    pending: bool,
    last: Option<&'a [u8]>,
}

/// Walks over one value; the offset of its end.
fn check(text: &[u8], ordered: bool) -> Result<usize, Error> {
    let mut stack = [Open::default(); DEPTH];
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        let offset = at;
        let fail = |kind| Error { offset, kind };
        let byte = *text.get(at).ok_or(fail(Kind::Cut))?;
        let mut top = depth.checked_sub(1).and_then(|top| stack.get_mut(top));
        let key = top.as_ref().is_some_and(|open| open.dict && !open.pending);
        match byte {
            b'0'..=b'9' => {
                let (string, end) = string(text, at)?;
                at = end;
                if let (true, Some(open)) = (key, &mut top) {
                    if ordered && open.last.is_some_and(|last| last >= string) {
                        return Err(fail(Kind::Order));
                    }
                    open.last = Some(string);
                    open.pending = true;
                    continue;
                }
            }
            b'e' => {
                let open = top.ok_or(fail(Kind::Unexpected))?;
                if open.pending {
                    return Err(fail(Kind::Key));
                }
                depth -= 1;
                at += 1;
            }
            _ if key => return Err(fail(Kind::Key)),
            b'i' => at = integer(text, at)?.1,
            b'l' | b'd' => {
                *stack.get_mut(depth).ok_or(fail(Kind::Depth))? =
                    Open { dict: byte == b'd', pending: false, last: None };
                depth += 1;
                at += 1;
                continue;
            }
            _ => return Err(fail(Kind::Unexpected)),
        }
        // A value ended here.
        match depth.checked_sub(1).and_then(|top| stack.get_mut(top)) {
            None => return Ok(at),
            Some(open) => open.pending = false,
        }
    }
}

/// The string that begins at an offset, and the offset of its end.
fn string(text: &[u8], at: usize) -> Result<(&[u8], usize), Error> {
    let fail = |kind| Error { offset: at, kind };
    let mut length = 0_usize;
    let mut digits = 0;
    let mut end = at;
    loop {
        match *text.get(end).ok_or(fail(Kind::Cut))? {
            digit @ b'0'..=b'9' => {
                if digits == 9 || (digits > 0 && length == 0) {
                    return Err(fail(Kind::Length));
                }
                length = length * 10 + usize::from(digit - b'0');
                digits += 1;
                end += 1;
            }
            b':' => break,
            _ => return Err(fail(Kind::Length)),
        }
    }
    let from = end + 1;
    let bytes = text.get(from..from + length).ok_or(fail(Kind::Cut))?;
    Ok((bytes, from + length))
}

/// The integer that begins at an offset, and the offset of its end.
fn integer(text: &[u8], at: usize) -> Result<(i64, usize), Error> {
    let fail = |kind| Error { offset: at, kind };
    let rest = text.get(at + 1..).unwrap_or_default();
    // 19 digits, a sign, and the end.
    let rest = rest.get(..21).unwrap_or(rest);
    let Some(length) = rest.iter().position(|byte| *byte == b'e') else {
        let cut = rest.len() < 21 && rest.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        return Err(fail(if cut { Kind::Cut } else { Kind::Integer }));
    };
    let number = rest.get(..length).unwrap_or_default();
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let plain = match digits {
        [b'0'] => digits.len() == number.len(),
        [b'1'..=b'9', more @ ..] => more.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let value = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    match (plain, value) {
        (true, Some(value)) => Ok((value, at + 1 + length + 1)),
        _ => Err(fail(Kind::Integer)),
    }
}

/// What is between a container's first and last byte.
fn inside(raw: &[u8]) -> &[u8] {
    raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default()
}

/// Takes one value off a text that was checked.
fn next<'a>(rest: &mut &'a [u8]) -> Option<Value<'a>> {
    let text = *rest;
    let (value, end) = match text.first()? {
        b'i' => integer(text, 0).map(|(number, end)| (Value::Integer(number), end)).ok()?,
        b'0'..=b'9' => string(text, 0).map(|(bytes, end)| (Value::Bytes(bytes), end)).ok()?,
        first => {
            let end = check(text, false).ok()?;
            let raw = text.get(..end)?;
            let value =
                if *first == b'd' { Value::Dict(Dict { raw }) } else { Value::List(List { raw }) };
            (value, end)
        }
    };
    *rest = text.get(end..)?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(text: &[u8]) -> Kind {
        read(text).expect_err("not bencoding").kind
    }

    #[test]
    fn values_of_all_kinds_are_read() {
        let text = b"d3:agei-7e4:listl4:spami0ee4:name5:nigh!4:restd1:aleee rest";
        let (value, end) = read(text).unwrap();
        assert_eq!(&text[end..], b" rest");
        let dict = value.dict().unwrap();
        assert_eq!(dict.raw(), &text[..end]);
        assert_eq!((dict.integer(b"age"), dict.bytes(b"name")), (Some(-7), Some(&b"nigh!"[..])));
        let list: Vec<_> = dict.list(b"list").unwrap().iter().collect();
        assert_eq!(list, [Value::Bytes(b"spam"), Value::Integer(0)]);
        assert_eq!(dict.dict(b"rest").unwrap().raw(), b"d1:alee");
        assert_eq!(dict.get(b"none"), None);
        assert_eq!(dict.integer(b"name"), None);
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        for (text, why) in [
            (&b""[..], Kind::Cut),
            (b"d", Kind::Cut),
            (b"5:spam", Kind::Cut),
            (b"i12", Kind::Cut),
            (b"i-", Kind::Cut),
            (b"i-0e", Kind::Integer),
            (b"i01e", Kind::Integer),
            (b"ie", Kind::Integer),
            (b"i--1e", Kind::Integer),
            (b"i1x", Kind::Integer),
            (b"i9223372036854775808e", Kind::Integer),
            (b"04:spam", Kind::Length),
            (b"4294967296:", Kind::Length),
            (b"4spam", Kind::Length),
            (b"di1ei2ee", Kind::Key),
            (b"d1:ae", Kind::Key),
            (b"d1:bi1e1:ai1ee", Kind::Order),
            (b"d1:ai1e1:ai1ee", Kind::Order),
            (b"e", Kind::Unexpected),
            (b"x", Kind::Unexpected),
        ] {
            assert_eq!(kind(text), why, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(read(b"i-9223372036854775808e").unwrap().0, Value::Integer(i64::MIN));
        assert!(read_unordered(b"d1:bi1e1:ai1ee").is_ok());
    }

    #[test]
    fn depth_is_bounded() {
        let nest = |depth| [b"l".repeat(depth), b"e".repeat(depth)].concat();
        assert!(read(&nest(DEPTH)).is_ok());
        assert_eq!(kind(&nest(DEPTH + 1)), Kind::Depth);
        assert_eq!(kind(&b"d1:a".repeat(100_000)), Kind::Depth);
    }

    /// A tree to be written.
    #[derive(Clone, Debug)]
    enum Tree {
        Integer(i64),
        Bytes(Vec<u8>),
        List(Vec<Tree>),
        Dict(std::collections::BTreeMap<Vec<u8>, Tree>),
    }

    fn write(tree: &Tree, out: &mut Vec<u8>) {
        let string = |bytes: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(format!("{}:", bytes.len()).as_bytes());
            out.extend_from_slice(bytes);
        };
        match tree {
            Tree::Integer(number) => out.extend_from_slice(format!("i{number}e").as_bytes()),
            Tree::Bytes(bytes) => string(bytes, out),
            Tree::List(list) => {
                out.push(b'l');
                list.iter().for_each(|tree| write(tree, out));
                out.push(b'e');
            }
            Tree::Dict(dict) => {
                out.push(b'd');
                for (key, tree) in dict {
                    string(key, out);
                    write(tree, out);
                }
                out.push(b'e');
            }
        }
    }

    fn same(tree: &Tree, value: Value<'_>) -> bool {
        match (tree, value) {
            (Tree::Integer(a), Value::Integer(b)) => *a == b,
            (Tree::Bytes(a), Value::Bytes(b)) => a == b,
            (Tree::List(a), Value::List(b)) => {
                b.iter().count() == a.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b))
            }
            (Tree::Dict(a), Value::Dict(b)) => {
                b.iter().count() == a.len()
                    && a.iter().zip(b.iter()).all(|((x, a), (y, b))| x == y && same(a, b))
            }
            _ => false,
        }
    }

    fn tree() -> impl Strategy<Value = Tree> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
        let leaf = prop_oneof![any::<i64>().prop_map(Tree::Integer), bytes().prop_map(Tree::Bytes)];
        leaf.prop_recursive(6, 64, 8, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(Tree::List),
                proptest::collection::btree_map(bytes(), inner, 0..8).prop_map(Tree::Dict),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(tree in tree()) {
            let mut text = Vec::new();
            write(&tree, &mut text);
            let (value, end) = read(&text).unwrap();
            prop_assert_eq!(end, text.len());
            prop_assert!(same(&tree, value));
            for cut in 0..text.len() {
                prop_assert_eq!(read(&text[..cut]).unwrap_err().kind, Kind::Cut);
            }
        }
    }
}
