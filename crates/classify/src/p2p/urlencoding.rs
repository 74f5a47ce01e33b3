//! The query of a URL (RFC 3986, sections 2.1 and 3.4): `name=value` pairs with bytes written as `%XX`.

/// The pairs of a query, values still encoded.
pub(super) fn pairs(query: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    query.split(|byte| *byte == b'&').filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        Some((pair.get(..at)?, pair.get(at + 1..)?))
    })
}

/// How many bytes a value stands for; none if it is not encoded well.
pub(super) fn decoded_length(value: &[u8]) -> Option<usize> {
    let mut length = 0;
    let mut rest = value;
    while let Some((first, more)) = rest.split_first() {
        rest = match first {
            b'%' => {
                let (digits, more) = more.split_at_checked(2)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                more
            }
            _ => more,
        };
        length += 1;
    }
    Some(length)
}
