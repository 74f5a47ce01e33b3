//! The operations that need a key.
//!
//! All numbers come from AES-128 under a key that is derived from the data set's (HMAC-SHA256, so that it
//! reveals nothing of it). Each field has a number of its own (`tag`), so that equal values of different
//! fields give different results.

use crate::{
    application::Treatment,
    layer::address_meaning,
    mapping::{CryptoPan, EqualHalves, IpcryptPfx},
    program::{Instruction, Operation},
};
use aes::{
    Aes128, Block,
    cipher::{BlockCipherEncrypt, KeyInit},
};
use ring::hmac;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// What the derived key is for.
const LABEL: &[u8] = b"nigh mask: numbers, 1";
/// Rounds of a permutation: four make one of Luby and Rackoff's that stands inversions, too; the further
/// ones are for halves of few bits.
const ROUNDS: u8 = 8;

/// What a number is for: the same value gives another one for each.
#[derive(Clone, Copy, Debug)]
pub(super) enum Domain {
    /// [`Operation::Random`].
    Random = 1,
    /// [`Operation::Hash`].
    Hash,
    /// Which of the permutations is taken.
    Tweak,
    /// Values of any length.
    Spread,
}

/// How addresses are mapped so that prefixes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum MappingName {
    /// Crypto-PAn: prefixes are kept exactly (Xu and others, 2002)
    CryptoPan,
    /// ipcrypt-pfx: prefixes are kept exactly (draft-denis-ipcrypt)
    IpcryptPfx,
}

impl fmt::Display for MappingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CryptoPan => "crypto-pan",
            Self::IpcryptPfx => "ipcrypt-pfx",
        })
    }
}

#[derive(Debug)]
enum Mapping {
    CryptoPan(Box<CryptoPan>),
    IpcryptPfx(Box<IpcryptPfx>),
}

/// The keys of a data set, expanded. They and the addresses that were mapped last are wiped from memory
/// when it is dropped.
pub struct Secrets {
    numbers: Aes128,
    mapping: Mapping,
    /// The last address of each slot with its result; zeros are mapped when there is no slot for them.
    cache4: Box<[(u32, u32)]>,
    cache6: Box<[(u128, u128)]>,
    /// Which of the upper bits are flipped, of Crypto-PAn: networks are few where hosts are many.
    upper4: Box<[Option<u32>]>,
    upper6: Box<[Option<(u64, u128)>]>,
    /// The last value of each slot for what is not a mapping: whose it was, the value and its result.
    others: Box<[(Option<Whose>, u128, u128)]>,
}

/// A tag, an operation and how many bits stay: what decides a result beside the value.
type Whose = (u16, std::mem::Discriminant<Operation>, u8);

fn whose(instruction: &Instruction) -> Whose {
    let kept = match instruction.operation {
        Operation::Permute(kept) => kept,
        _ => 0,
    };
    (instruction.tag, std::mem::discriminant(&instruction.operation), kept)
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.cache4.zeroize();
        self.cache6.zeroize();
        self.upper4.zeroize();
        self.upper6.zeroize();
        for (_, value, result) in &mut self.others {
            value.zeroize();
            result.zeroize();
        }
    }
}

/// Slots of the caches, as powers of two.
const SLOTS6: u32 = 16;
const SLOTS_OTHERS: u32 = 14;
const SLOTS_UPPER6: u32 = 14;

impl Secrets {
    /// Of a data set's key.
    ///
    /// # Errors
    /// When the mapping is ipcrypt-pfx and both halves of the key are the same.
    pub fn new(key: &[u8; 32], mapping: MappingName) -> Result<Self, EqualHalves> {
        let mapping = match mapping {
            MappingName::CryptoPan => Mapping::CryptoPan(CryptoPan::new(key).into()),
            MappingName::IpcryptPfx => Mapping::IpcryptPfx(IpcryptPfx::new(key)?.into()),
        };
        let mut secrets = Self {
            numbers: Aes128::new((&*Self::derived(key)).into()),
            mapping,
            cache4: vec![(0, 0); 1 << 16].into(),
            cache6: vec![(0, 0); 1 << SLOTS6].into(),
            upper4: vec![None; 1 << 16].into(),
            upper6: vec![None; 1 << SLOTS_UPPER6].into(),
            others: vec![(None, 0, 0); 1 << SLOTS_OTHERS].into(),
        };
        // An empty slot says that zero is mapped to zero, so zero's own slots are filled.
        secrets.cache4[slot4(0)] = (0, secrets.fresh4(0));
        secrets.cache6[slot6(0)] = (0, secrets.fresh6(0));
        Ok(secrets)
    }

    /// The key of numbers that is derived from a data set's.
    pub(crate) fn derived(key: &[u8; 32]) -> Zeroizing<[u8; 16]> {
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), LABEL);
        let mut numbers = Zeroizing::new([0; 16]);
        numbers.copy_from_slice(&derived.as_ref()[..16]);
        numbers
    }

    /// The mapping of an IPv4 address.
    pub(super) fn prefix4(&mut self, address: u32) -> u32 {
        let slot = slot4(address);
        let (known, mapped) = self.cache4[slot];
        if known == address {
            return mapped;
        }
        let mapped = self.fresh4(address);
        // Zero's slot stays zero's.
        if slot != slot4(0) {
            self.cache4[slot] = (address, mapped);
        }
        mapped
    }

    /// The mapping of an IPv6 address.
    pub(super) fn prefix6(&mut self, address: u128) -> u128 {
        let slot = slot6(address);
        let (known, mapped) = self.cache6[slot];
        if known == address {
            return mapped;
        }
        let mapped = self.fresh6(address);
        if slot != slot6(0) {
            self.cache6[slot] = (address, mapped);
        }
        mapped
    }

    /// What this instruction made of this value, if it is the last one in its slot.
    #[inline]
    pub(super) fn remembered(&self, instruction: &Instruction, value: u128) -> Option<u128> {
        let (whose_it_is, known, result) = self.others[slot_other(instruction.tag, value)];
        (known == value && whose_it_is == Some(whose(instruction))).then_some(result)
    }

    pub(super) fn remember(&mut self, instruction: &Instruction, value: u128, result: u128) {
        let slot = slot_other(instruction.tag, value);
        self.others[slot] = (Some(whose(instruction)), value, result);
    }

    fn fresh4(&mut self, address: u32) -> u32 {
        match &self.mapping {
            Mapping::CryptoPan(mapping) => {
                let upper = &mut self.upper4[(address >> 16) as usize];
                let upper = *upper.get_or_insert_with(|| mapping.upper4(address));
                address ^ upper ^ mapping.lower4(address)
            }
            Mapping::IpcryptPfx(mapping) => mapping.map4(address),
        }
    }

    fn fresh6(&mut self, address: u128) -> u128 {
        match &self.mapping {
            Mapping::CryptoPan(mapping) => {
                let network = (address >> 64) as u64;
                let slot = &mut self.upper6[slot6(address >> 64 << 64) >> (SLOTS6 - SLOTS_UPPER6)];
                let upper = match slot {
                    Some((known, upper)) if *known == network => *upper,
                    _ => slot.insert((network, mapping.upper6(address))).1,
                };
                address ^ upper ^ mapping.lower6(address)
            }
            Mapping::IpcryptPfx(mapping) => mapping.map6(address),
        }
    }

    fn aes(&self, value: u128) -> u128 {
        let mut block = Block::from(value.to_be_bytes());
        self.numbers.encrypt_block(&mut block);
        u128::from_be_bytes(block.into())
    }

    /// A number of 128 bits that only the key and these decide.
    pub(super) fn number(&self, domain: Domain, tag: u16, value: u128) -> u128 {
        // Two encryptions, so that all of the value's bits, the domain and the tag fit.
        self.aes(self.aes(value) ^ ((domain as u128) << 16 | u128::from(tag)))
    }

    /// Fills a buffer with pseudo-random bytes that only the key, these bytes and the tag decide: CBC-MAC
    /// with the length first (Bellare, Kilian and Rogaway, 2000), then as many blocks as it takes.
    pub(crate) fn spread(&self, tag: u16, from: &[u8], to: &mut [u8]) {
        let mut state = self.number(Domain::Spread, tag, from.len() as u128);
        for chunk in from.chunks(16) {
            let mut block = [0; 16];
            block[..chunk.len()].copy_from_slice(chunk);
            state = self.aes(state ^ u128::from_be_bytes(block));
        }
        for (number, part) in (1..).zip(to.chunks_mut(16)) {
            let bytes = self.number(Domain::Spread, tag, state ^ number).to_be_bytes();
            part.copy_from_slice(&bytes[..part.len()]);
        }
    }

    /// Another address of 4, 6 or 16 bytes, the same that it becomes in a header.
    pub(crate) fn address(&mut self, treatment: Treatment, from: &[u8], to: &mut [u8]) {
        let value = from.iter().fold(0_u128, |all, byte| all << 8 | u128::from(*byte));
        let (tag, bits) = (address_meaning(from.len()), from.len() as u32 * 8);
        let result = match (treatment, bits) {
            (Treatment::Keep, _) => value,
            (Treatment::Prefix, 32) => self.prefix4(value as u32).into(),
            (Treatment::Prefix, 128) => self.prefix6(value),
            (Treatment::Encrypt, _) => self.permute(tag, 0, value, bits),
            (Treatment::Prefix | Treatment::Hash, _) => self.number(Domain::Hash, tag, value),
        };
        let bytes = result.to_be_bytes();
        to.copy_from_slice(&bytes[16 - to.len()..]);
    }

    /// A permutation of the numbers of so many bits, 1 to 128: an unbalanced Feistel network of
    /// alternating halves. `tweak` chooses among many of them.
    pub(super) fn permute(&self, tag: u16, tweak: u128, value: u128, bits: u32) -> u128 {
        if bits < 2 {
            // The only permutations of one bit: it stays or flips.
            return value ^ (self.number(Domain::Tweak, tag, tweak) & u128::from(bits));
        }
        let right_bits = bits / 2;
        let left_bits = bits - right_bits;
        let (left_mask, right_mask) = (ones(left_bits), ones(right_bits));
        let (mut left, mut right) = (value >> right_bits, value & right_mask);
        let tweak = self.number(Domain::Tweak, tag, tweak);
        for round in 0..ROUNDS {
            let salt = tweak ^ u128::from(round) << 120 ^ u128::from(bits) << 112;
            if round % 2 == 0 {
                left ^= self.aes(salt ^ right) & left_mask;
            } else {
                right ^= self.aes(salt ^ left) & right_mask;
            }
        }
        left << right_bits | right
    }
}

/// So many ones at the end.
pub(super) fn ones(bits: u32) -> u128 {
    u128::MAX.checked_shr(128 - bits).unwrap_or(0)
}

/// Addresses of a network of 16 bits have slots of their own, neighbours beside each other: the busy hosts of a
/// network share lines of the processor's cache.
fn slot4(address: u32) -> usize {
    let (network, host) = (address >> 16, address & 0xffff);
    ((network.wrapping_mul(0x9e37) ^ host) & 0xffff) as usize
}

fn slot_other(tag: u16, value: u128) -> usize {
    slot6(value ^ u128::from(tag) << 48) >> (SLOTS6 - SLOTS_OTHERS)
}

fn slot6(address: u128) -> usize {
    let folded = (address >> 64) as u64 ^ (address as u64).rotate_left(32);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS6)) as usize
}
