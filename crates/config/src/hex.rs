//! Bytes as hexadecimal digits.

/// The digits of bytes, in lower case. There is room for the end of a line, so that the digits of a secret
/// are not moved when it is added.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len() + 1);
    for digit in bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        text.extend(char::from_digit(digit.into(), 16));
    }
    text
}

/// Reads exactly as many digits as `bytes` takes, in upper or lower case; false if they are not that.
#[must_use]
pub fn decode(digits: &[u8], bytes: &mut [u8]) -> bool {
    let value = |digit: &u8| char::from(*digit).to_digit(16);
    digits.len() == 2 * bytes.len()
        && bytes.iter_mut().zip(digits.as_chunks::<2>().0).all(|(byte, [high, low])| {
            let pair = value(high).zip(value(low));
            pair.map(|(high, low)| *byte = (high << 4 | low) as u8).is_some()
        })
}

/// The bytes that exactly `2 * N` digits spell.
pub fn array<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    decode(digits.as_bytes(), &mut bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_read_as_they_are_written() {
        let bytes: [u8; 256] = std::array::from_fn(|n| n as u8);
        let text = encode(&bytes);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"), "{text}");
        assert!(text.capacity() > text.len());
        assert_eq!(array(&text), Some(bytes));
        assert_eq!(array(&text.to_ascii_uppercase()), Some(bytes));
        assert_eq!((encode(&[]), array("")), (String::new(), Some([])));
    }

    #[test]
    fn what_is_not_exactly_so_many_digits_is_refused() {
        for text in ["", "0", "00ff0", "00ff0g", "+0ff00", "00ff0011", "00f\u{e9}0", " 0ff00"] {
            assert_eq!(array::<3>(text), None, "{text}");
        }
    }
}
