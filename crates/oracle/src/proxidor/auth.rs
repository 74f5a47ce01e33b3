//! Authentication of type 1: SipHash-2-4 with a key that client and server share.
//!
//! The tag is the hash's 64 bits in network byte order, over the whole datagram with the eight bytes
//! of the block zero. SipHash: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012).

use std::{fmt, hash::Hasher, hint::black_box, str::FromStr};

use siphasher::sip::SipHasher24;

use super::header::HEADER;

/// Bytes of the block.
pub const BLOCK: usize = 8;

/// A key of 128 bits. It shows nothing of itself when it is printed.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Key([u8; 16]);

/// A key was not written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key is 32 hexadecimal digits")]
pub struct NotAKey;

impl Key {
    /// A key from its bytes.
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The tag of a datagram whose block, if it is as long as to have one, counts as zero.
    pub fn tag(&self, datagram: &[u8]) -> [u8; BLOCK] {
        let mut hash = SipHasher24::new_with_key(&self.0);
        let (header, rest) = datagram.split_at(datagram.len().min(HEADER));
        let (block, rest) = rest.split_at(rest.len().min(BLOCK));
        hash.write(header);
        hash.write(&[0; BLOCK][..block.len()]);
        hash.write(rest);
        hash.finish().to_be_bytes()
    }

    /// Whether the block of a datagram is its tag. Takes the same time wherever they differ.
    pub fn verifies(&self, datagram: &[u8]) -> bool {
        let Some(found) = datagram.get(HEADER..).and_then(<[u8]>::first_chunk::<BLOCK>) else {
            return false;
        };
        let difference = u64::from_be_bytes(*found) ^ u64::from_be_bytes(self.tag(datagram));
        black_box(difference) == 0
    }

    /// Writes the tag into the block of a datagram that has one.
    pub fn sign(&self, datagram: &mut [u8]) {
        let tag = self.tag(datagram);
        if let Some(block) = datagram.get_mut(HEADER..HEADER + BLOCK) {
            block.copy_from_slice(&tag);
        }
    }
}

impl FromStr for Key {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        config::hex::array(text).map(Self).ok_or(NotAKey)
    }
}

impl TryFrom<String> for Key {
    type Error = NotAKey;

    fn try_from(text: String) -> Result<Self, NotAKey> {
        text.parse()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

config::text_schema! {
    Key => "32 hexadecimal digits", r"^[0-9A-Fa-f]{32}$", ["00112233445566778899aabbccddeeff"];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        "000102030405060708090a0b0c0d0e0f".parse().unwrap()
    }

    #[test]
    fn the_hash_is_that_of_the_paper_and_the_block_counts_as_zero() {
        // Appendix A of the paper: the tag of the bytes 0 to 14.
        let mut paper = SipHasher24::new_with_key(&key().0);
        paper.write(&(0..15).collect::<Vec<u8>>());
        assert_eq!(paper.finish(), 0xa129_ca61_49be_45e5);
        // vectors_sip64 of the reference code: the bytes 0 to 11.
        assert_eq!(
            key().tag(&(0..12).collect::<Vec<u8>>()),
            0x751e_8fbc_860e_e5fb_u64.to_be_bytes()
        );
        // The bytes 0 to 23 with eight of them zero, by a program of its own.
        assert_eq!(
            key().tag(&(0..24).collect::<Vec<u8>>()),
            0x47ff_611e_e400_6714_u64.to_be_bytes()
        );
    }

    #[test]
    fn a_signed_datagram_verifies_until_a_bit_is_changed() {
        let mut datagram: Vec<u8> = (0..40).collect();
        key().sign(&mut datagram);
        assert!(key().verifies(&datagram));
        for at in 0..datagram.len() {
            datagram[at] ^= 1;
            assert!(!key().verifies(&datagram), "byte {at}");
            datagram[at] ^= 1;
        }
    }

    #[test]
    fn what_has_no_room_for_a_block_does_not_verify() {
        assert!(!key().verifies(&[]));
        assert!(!key().verifies(&[0; 19]));
    }

    #[test]
    fn a_key_is_32_hexadecimal_digits_and_is_not_shown() {
        assert_eq!(key(), Key::new(std::array::from_fn(|i| i as u8)));
        for wrong in
            ["", "00", "+00102030405060708090a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0g"]
        {
            assert_eq!(wrong.parse::<Key>(), Err(NotAKey), "{wrong}");
        }
        assert_eq!(format!("{:?}", key()), "Key(..)");
    }
}
