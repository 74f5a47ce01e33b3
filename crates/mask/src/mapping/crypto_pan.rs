//! Crypto-PAn: Xu, Fan, Ammar and Moon, "Prefix-Preserving IP Address Anonymization" (ICNP 2002),
//! bit for bit, for IPv4 as its authors wrote it and for IPv6 as yacryptopan does it.
//!
//! Bit n of the result is bit n of the address, flipped by the first bit of AES(the first n bits of the
//! address, then the pad from bit n on). It follows from the address alone, so the blocks of all bits
//! are encrypted together: the processor works on several at once.

use super::block;
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

    /// What takes the place of the bits that are not inspected yet.
    pub(crate) fn pad(&self) -> u128 {
        *self.pad
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
        self.upper4(address) ^ self.lower4(address) ^ address
    }

    /// The same of an IPv6 address as a number.
    pub(crate) fn map6(&self, address: u128) -> u128 {
        self.upper6(address) ^ self.lower6(address) ^ address
    }

    /// Which of an IPv4 address's first 16 bits are flipped: these alone say it.
    pub(crate) fn upper4(&self, address: u32) -> u32 {
        (self.flips::<16>(u128::from(address) << 96, 0) >> 96) as u32
    }

    /// Which of its last 16 bits are.
    pub(crate) fn lower4(&self, address: u32) -> u32 {
        (self.flips::<16>(u128::from(address) << 96, 16) >> 96) as u32
    }

    /// Which of an IPv6 address's first 64 bits are flipped: these alone say it.
    pub(crate) fn upper6(&self, address: u128) -> u128 {
        self.flips::<64>(address, 0)
    }

    /// Which of its last 64 bits are.
    pub(crate) fn lower6(&self, address: u128) -> u128 {
        self.flips::<64>(address, 64)
    }

    /// Which of `N` bits are flipped, from this one on, counted from the most significant.
    fn flips<const N: usize>(&self, address: u128, start: usize) -> u128 {
        let mut blocks: [Block; N] = std::array::from_fn(|n| {
            let rest = u128::MAX >> (start + n);
            block((address & !rest) | (*self.pad & rest))
        });
        self.cipher.encrypt_blocks(&mut blocks);
        let bit = |(n, block): (usize, &Block)| u128::from(block[0] >> 7) << (127 - start - n);
        blocks.iter().enumerate().map(bit).fold(0, |flips, bit| flips | bit)
    }
}
