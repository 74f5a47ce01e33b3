//! Crypto-PAn: Xu, Fan, Ammar and Moon, "Prefix-Preserving IP Address Anonymization" (ICNP 2002),
//! bit for bit, for IPv4 as its authors wrote it and for IPv6 as yacryptopan does it.
//!
//! Bit n of the result is bit n of the address, flipped by the first bit of AES(the first n bits of the
//! address, then the pad from bit n on). It follows from the address alone, so the blocks of all bits
//! are encrypted together: the processor works on several at once.

use super::{BITS, block};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zeroize::Zeroizing;

/// Crypto-PAn under one key.
pub struct CryptoPan {
    cipher: Aes128,
    pad: Zeroizing<u128>,
}

impl fmt::Debug for CryptoPan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CryptoPan(..)")
    }
}

impl CryptoPan {
    /// The mapping of a key: 16 bytes for AES, and 16 that become the pad when encrypted.
    pub fn new(key: &[u8; 32]) -> Self {
        let (key, pad) = key.split_at(16);
        let cipher = Aes128::new_from_slice(key).expect("16 bytes are a key");
        let mut pad = Block::try_from(pad).expect("16 bytes are a block");
        cipher.encrypt_block(&mut pad);
        Self { cipher, pad: Zeroizing::new(u128::from_be_bytes(pad.into())) }
    }

    /// What the address is mapped to, of the same family.
    pub fn map(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(self.map4(address.to_bits())).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(self.map6(address.to_bits())).into(),
        }
    }

    /// The same of an IPv4 address as a number.
    pub(crate) fn map4(&self, address: u32) -> u32 {
        address ^ (self.flips::<32>(u128::from(address) << 96) >> 96) as u32
    }

    /// The same of an IPv6 address as a number.
    pub(crate) fn map6(&self, address: u128) -> u128 {
        address ^ self.flips::<BITS>(address)
    }

    /// Which of the first `N` bits are flipped, from the most significant on.
    fn flips<const N: usize>(&self, address: u128) -> u128 {
        let mut blocks: [Block; N] = std::array::from_fn(|n| {
            let rest = u128::MAX >> n;
            block((address & !rest) | (*self.pad & rest))
        });
        self.cipher.encrypt_blocks(&mut blocks);
        let bit = |(n, block): (usize, &Block)| u128::from(block[0] >> 7) << (127 - n);
        blocks.iter().enumerate().map(bit).fold(0, |flips, bit| flips | bit)
    }
}
