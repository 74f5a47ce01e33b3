//! The settings of the mask's programs at load.

use super::skeleton::types;
use zeroize::Zeroize;

/// Kinds of headers, in the order of `enum mask_kind` of bpf/abi/mask.h.
pub const KINDS: usize = types::mask_kind::MASK_KINDS.0 as usize;
/// Most instructions of a kind.
pub const MOST: usize = types::mask_limits::MASK_MOST.0 as usize;
/// Bytes of the longest fixed part of a header.
pub const HEADER: usize = types::mask_limits::MASK_HEADER.0 as usize;
/// Most bytes of a packet that are inspected.
pub const SNAP: u32 = types::mask_limits::MASK_SNAP.0;
/// Most instructions of a filter.
pub const FILTER: usize = types::mask_limits::MASK_FILTER.0 as usize;

/// What an instruction makes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The field itself.
    Keep,
    /// A constant.
    Constant,
    /// The field and a constant, added bit by bit.
    Xor,
    /// The field and a constant, added.
    Shift,
    /// A pseudo-random number, another one in each packet.
    Random,
    /// A pseudo-random number under the key, the same for the same value.
    Hash,
    /// A permutation under the key.
    Encrypt,
    /// The mapping that keeps prefixes.
    Prefix,
    /// The first bits, then zeros.
    Truncate,
    /// The first bits, then the rest permuted.
    Permute,
}

impl Operation {
    fn code(self) -> types::mask_operation {
        use types::mask_operation as code;
        match self {
            Self::Keep => code::MASK_KEEP,
            Self::Constant => code::MASK_CONSTANT,
            Self::Xor => code::MASK_XOR,
            Self::Shift => code::MASK_SHIFT,
            Self::Random => code::MASK_RANDOM,
            Self::Hash => code::MASK_HASH,
            Self::Encrypt => code::MASK_ENCRYPT,
            Self::Prefix => code::MASK_PREFIX,
            Self::Truncate => code::MASK_TRUNCATE,
            Self::Permute => code::MASK_PERMUTE,
        }
    }
}

/// An instruction on one field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The field's first byte in the header.
    pub at: u8,
    /// Bytes it lies in: 1, 2, 4, 6 or 16.
    pub bytes: u8,
    /// Its bits, where these are four bytes or fewer.
    pub mask: u32,
    /// Its width in bits.
    pub bits: u8,
    /// How it is treated.
    pub operation: Operation,
    /// Bits that truncation and permutation leave.
    pub kept: u8,
    /// The constant of those operations that have one.
    pub constant: u32,
    /// Which permutation or sequence of numbers.
    pub tag: u16,
}

/// The treatment of a kind of header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The bits that are kept of one that is wholly there.
    pub kept: Vec<u8>,
    /// All instructions.
    pub instructions: Vec<Instruction>,
}

/// How addresses are mapped so that prefixes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Crypto-PAn.
    CryptoPan,
    /// ipcrypt-pfx.
    IpcryptPfx,
}

/// Where packets begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// With an Ethernet header.
    Ethernet,
    /// With an IP header.
    Ip,
}

impl Link {
    pub(super) fn code(self) -> u32 {
        match self {
            Self::Ethernet => types::mask_link::MASK_LINK_ETHERNET.0,
            Self::Ip => types::mask_link::MASK_LINK_IP.0,
        }
    }
}

/// An instruction of classic BPF (linux/filter.h, `struct sock_filter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterInstruction {
    /// What is done.
    pub code: u16,
    /// How many to omit if a condition is true.
    pub jt: u8,
    /// The same if it is not.
    pub jf: u8,
    /// A number.
    pub k: u32,
}

/// What the programs do with packets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The treatment of each kind of header.
    pub headers: [Header; KINDS],
    /// Whether what lies above the transport is kept.
    pub payload: bool,
    /// How addresses are mapped.
    pub mapping: Mapping,
    /// Where packets begin.
    pub link: Link,
    /// Which packets are taken; without instructions all are.
    pub filter: Vec<FilterInstruction>,
    /// Bytes of a packet that are inspected, [`SNAP`] at most.
    pub snap: u32,
    /// One of so many packets is taken, at random.
    pub sample: u32,
    /// Bytes of the ring: a power of two.
    pub ring_bytes: u32,
}

impl Settings {
    /// As the programs read them.
    pub(super) fn write(&self, to: &mut types::mask_settings) {
        for (from, to) in self.headers.iter().zip(&mut to.headers) {
            let length = from.kept.len().min(HEADER);
            to.kept[..length].copy_from_slice(&from.kept[..length]);
            to.words = length.div_ceil(8) as u32;
            // Those that do more than keep come first.
            let mut list: Vec<&Instruction> = from.instructions.iter().collect();
            list.sort_by_key(|it| it.operation == Operation::Keep);
            let others = list.iter().filter(|it| it.operation != Operation::Keep).count();
            to.others = others as u32;
            to.count = list.len().min(MOST) as u32;
            let ends = list.iter().map(|it| u32::from(it.at) + u32::from(it.bytes));
            to.length = ends.max().unwrap_or(0);
            for (from, to) in list.into_iter().zip(&mut to.list) {
                let shift = if from.bytes <= 4 { from.mask.trailing_zeros() as u8 } else { 0 };
                *to = types::mask_instruction {
                    at: from.at,
                    bytes: from.bytes,
                    operation: from.operation.code().0 as u8,
                    kept: from.kept,
                    bits: from.bits,
                    shift,
                    tag: from.tag,
                    mask: from.mask,
                    constant: from.constant,
                };
            }
        }
        for (from, to) in self.filter.iter().zip(&mut to.filter) {
            *to = types::mask_filter { code: from.code, jt: from.jt, jf: from.jf, k: from.k };
        }
        to.filters = self.filter.len() as u32;
        to.payload = u32::from(self.payload);
        to.mapping = match self.mapping {
            Mapping::CryptoPan => types::mask_mapping::MASK_CRYPTO_PAN.0,
            Mapping::IpcryptPfx => types::mask_mapping::MASK_IPCRYPT_PFX.0,
        };
        to.link = self.link.code();
        to.snap = self.snap.min(SNAP);
        to.sample = u32::MAX / self.sample.max(1);
    }
}

/// The keys of a period; they are wiped when dropped.
#[derive(Clone, Default)]
pub struct Keys {
    /// Of numbers and permutations.
    pub numbers: [u8; 16],
    /// Of the mapping.
    pub first: [u8; 16],
    /// Its second one, if it has two ([`Mapping::IpcryptPfx`]).
    pub second: [u8; 16],
    /// Its pad ([`Mapping::CryptoPan`]).
    pub pad: u128,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.numbers.zeroize();
        self.first.zeroize();
        self.second.zeroize();
        self.pad.zeroize();
    }
}
