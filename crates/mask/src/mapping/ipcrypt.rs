//! ipcrypt: draft-denis-ipcrypt, its deterministic and its prefix-preserving variant.

use super::{BITS, as_v6, block, from_v6};
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// ipcrypt-deterministic: the address, as one of IPv6, is one block of AES-128.
#[derive(Debug)]
pub struct IpcryptDeterministic(Aes128);

impl IpcryptDeterministic {
    /// The mapping of a key.
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Aes128::new(key.into()))
    }

    /// What the address is mapped to: nearly always an address of IPv6.
    pub fn map(&self, address: IpAddr) -> IpAddr {
        let mut block = block(as_v6(address));
        self.0.encrypt_block(&mut block);
        from_v6(u128::from_be_bytes(block.into()))
    }

    /// The address that was mapped to this one.
    pub fn unmap(&self, address: IpAddr) -> IpAddr {
        let mut block = block(as_v6(address));
        self.0.decrypt_block(&mut block);
        from_v6(u128::from_be_bytes(block.into()))
    }
}

/// ipcrypt-pfx: a bit is flipped by the last bit of the sum of two ciphers of the bits before it. An
/// IPv4 address stays one.
#[derive(Debug)]
pub struct IpcryptPfx([Aes128; 2]);

/// Both halves of a key of ipcrypt-pfx are the same, so that nothing would be flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("both halves of the key are the same: it would map each address to itself")]
pub struct EqualHalves;

impl IpcryptPfx {
    /// The mapping of a key.
    ///
    /// # Errors
    ///
    /// When both halves of the key are the same.
    pub fn new(key: &[u8; 32]) -> Result<Self, EqualHalves> {
        let (one, two) = key.split_at(16);
        if one == two {
            return Err(EqualHalves);
        }
        let cipher = |half| Aes128::new_from_slice(half).expect("16 bytes are a key");
        Ok(Self([cipher(one), cipher(two)]))
    }

    /// What the address is mapped to, of the same family.
    pub fn map(&self, address: IpAddr) -> IpAddr {
        let bits = as_v6(address);
        from_v6(bits ^ self.flips(bits, first_bit(address)))
    }

    /// The same of an IPv4 address as a number.
    pub(crate) fn map4(&self, address: u32) -> u32 {
        let bits = as_v6(Ipv4Addr::from_bits(address).into());
        (bits ^ self.flips(bits, 96)) as u32
    }

    /// The same of an IPv6 address as a number; one that holds an IPv4 address is mapped like this one.
    pub(crate) fn map6(&self, address: u128) -> u128 {
        address ^ self.flips(address, first_bit(Ipv6Addr::from_bits(address).into()))
    }

    /// Which bits are flipped, from this one on.
    fn flips(&self, bits: u128, start: usize) -> u128 {
        let mut flips = [Block::default(); BITS];
        let flips = &mut flips[start..];
        for (n, flip) in (start..).zip(flips.iter_mut()) {
            *flip = block(prefix(bits, n));
        }
        let mut others = [Block::default(); BITS];
        let others = &mut others[start..];
        others.copy_from_slice(flips);
        self.0[0].encrypt_blocks(flips);
        self.0[1].encrypt_blocks(others);
        let flipped = flips.iter().zip(others.iter());
        flipped.fold(0, |all, (a, b)| (all << 1) | u128::from((a[15] ^ b[15]) & 1))
    }

    /// The address that was mapped to this one. Each bit needs those before it, so it takes longer.
    pub fn unmap(&self, address: IpAddr) -> IpAddr {
        let mut bits = as_v6(address);
        for n in first_bit(address)..BITS {
            let mut pair = [block(prefix(bits, n)); 2];
            for (cipher, block) in self.0.iter().zip(&mut pair) {
                cipher.encrypt_block(block);
            }
            bits ^= u128::from((pair[0][15] ^ pair[1][15]) & 1) << (127 - n);
        }
        from_v6(bits)
    }
}

/// The first bit that may be flipped: what marks a mapped IPv4 address is kept.
fn first_bit(address: IpAddr) -> usize {
    if address.to_canonical().is_ipv4() { 96 } else { 0 }
}

/// The first `n` bits, moved to the end behind a one, which distinguishes prefixes of different lengths.
fn prefix(bits: u128, n: usize) -> u128 {
    let bits = bits.checked_shr((BITS - n) as u32).unwrap_or(0);
    bits | 1 << n
}
