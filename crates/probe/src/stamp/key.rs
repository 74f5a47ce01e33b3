//! The key of authenticated mode: HMAC-SHA-256, truncated to 128 bits (RFC 8762, section 4.4).

use ring::hmac;

/// Bytes of the truncated code.
pub const TAG: usize = 16;

/// A key that both ends of a session have.
#[derive(Clone)]
pub struct Key(hmac::Key);

impl Key {
    /// The key of these bytes; at least 16 of them, or it protects less than its code is long.
    pub fn new(secret: &[u8]) -> Option<Self> {
        (secret.len() >= TAG).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// The code of parts that follow each other.
    pub(super) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG] {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(part);
        }
        let mut tag = [0; TAG];
        tag.copy_from_slice(&context.sign().as_ref()[..TAG]);
        tag
    }

    /// Whether this is the code of the parts; takes the same time wherever it is wrong.
    pub(super) fn verifies(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        let right = self.tag(parts);
        let different = right.iter().zip(tag).fold(0, |sum, (a, b)| sum | (a ^ b));
        tag.len() == TAG && std::hint::black_box(different) == 0
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_that_of_rfc_4231_truncated() {
        // RFC 4231, section 4.6, test case 5 is truncated to 128 bits.
        let key = Key::new(&[0x0c; 20]).unwrap();
        let tag = key.tag(&[b"Test With ", b"Truncation"]);
        let right = [
            0xa3, 0xb6, 0x16, 0x74, 0x73, 0x10, 0x0e, 0xe0, 0x6e, 0x0c, 0x79, 0x6c, 0x29, 0x55,
            0x55, 0x2b,
        ];
        assert_eq!(tag, right);
        assert!(key.verifies(&[b"Test With Truncation"], &right));
        assert!(!key.verifies(&[b"Test With Truncation"], &right[..15]));
        assert!(!key.verifies(&[b"Test with Truncation"], &right));
    }

    #[test]
    fn a_short_key_is_none_and_a_key_is_not_shown() {
        assert!(Key::new(&[1; 15]).is_none());
        assert_eq!(format!("{:?}", Key::new(&[1; 16]).unwrap()), "Key(..)");
    }
}
