//! Programs of the transformation unit: what to do with each header's fields.
//!
//! A program has a list of instructions for each kind of header. The unit walks down a packet and runs,
//! at each header, the list of its kind: an instruction reads one field, transforms it and writes it to
//! the same offset of the result, **which is zero before**. So what no instruction writes is removed, and
//! one look at a program shows what it keeps.

#[cfg(test)]
mod tests;

use crate::{
    application::{PARTS, Ports, Protocol, Treatment},
    layer::{FIELDS, Field, KINDS, Kind},
};
use std::fmt;

/// What an instruction makes of a field of `w` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The field itself.
    Keep,
    /// A constant.
    Constant(u32),
    /// The field and a constant, added bit by bit.
    Xor(u32),
    /// The field and a constant, added modulo 2^w.
    Shift(u32),
    /// A pseudo-random number, another one in each packet.
    Random,
    /// A pseudo-random number under the key, the same for the same value.
    Hash,
    /// Another value under the key, and no other value's (a permutation).
    Encrypt,
    /// An address under the data set's mapping, which keeps prefixes.
    Prefix,
    /// The first bits, then zeros.
    Truncate(u8),
    /// The first bits, then the rest permuted under the key, in each prefix differently.
    Permute(u8),
}

impl Operation {
    /// Whether the result depends on what the field was.
    pub fn reads(self) -> bool {
        !matches!(self, Self::Constant(_) | Self::Random)
    }

    /// Whether it needs the data set's key.
    pub fn needs_key(self) -> bool {
        use Operation::{Encrypt, Hash, Permute, Prefix, Random};
        matches!(self, Random | Hash | Encrypt | Prefix | Permute(_))
    }
}

/// The treatment of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The field's first byte in its header.
    pub at: u8,
    /// Bytes it lies in: 1, 2, 4, 6 or 16.
    pub bytes: u8,
    /// Which bits of these, where they are four bytes or fewer; adjoining ones.
    pub mask: u32,
    /// How it is treated.
    pub operation: Operation,
    /// Which permutation or sequence of numbers is used: [`Field::meaning`].
    pub tag: u16,
}

impl Instruction {
    /// The treatment of this field.
    pub fn new(field: &Field, operation: Operation) -> Self {
        Self { at: field.at, bytes: field.bytes, mask: field.mask, operation, tag: field.meaning() }
    }

    /// The treatment of one or two bytes of a header, whichever fields they are of.
    pub fn slice(kind: Kind, at: u8, bytes: u8, operation: Operation) -> Self {
        let mask = if bytes == 1 { 0xff } else { 0xffff };
        // Numbers of their own: fields have lower ones, parts of protocols higher.
        let tag = 0x1000 + kind as u16 * HEADER as u16 + u16::from(at);
        Self { at, bytes, mask, operation, tag }
    }

    /// Its width in bits.
    pub fn bits(&self) -> u32 {
        if self.bytes <= 4 { self.mask.count_ones() } else { u32::from(self.bytes) * 8 }
    }

    /// The bits of a header that it covers: bit n is bit n % 8 of byte n / 8, first bit first.
    pub(crate) fn covers(&self) -> impl Iterator<Item = usize> + use<> {
        covered(self.at, self.bytes, self.mask)
    }
}

fn covered(at: u8, bytes: u8, mask: u32) -> impl Iterator<Item = usize> {
    let width = usize::from(bytes) * 8;
    (0..width)
        .filter(move |bit| width > 32 || mask >> (width - 1 - bit) & 1 == 1)
        .map(move |bit| usize::from(at) * 8 + bit)
}

/// Eight bytes of a header, or what it has of them: where they begin, and which of their bits are kept.
pub(crate) type Word = (u8, [u8; 8]);

/// A mask of the bits that are kept of a header.
pub(crate) fn kept_bits(list: &[Instruction]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let kept = list.iter().filter(|it| it.operation == Operation::Keep);
    for bit in kept.flat_map(Instruction::covers) {
        bytes.resize(bytes.len().max(bit / 8 + 1), 0);
        bytes[bit / 8] |= 0x80 >> (bit % 8);
    }
    bytes
}

/// A mask of bytes as words, without those of which nothing is kept.
fn words(mask: &[u8]) -> Vec<Word> {
    // The last one begins earlier, so that it ends where the mask does.
    let offsets = (0..mask.len()).step_by(8).map(|at| at.min(mask.len().saturating_sub(8)));
    let word =
        |at: usize| (at as u8, std::array::from_fn(|n| mask.get(at + n).map_or(0, |it| *it)));
    offsets.map(word).filter(|word| word.1 != [0; 8]).collect()
}

/// Most instructions of a kind.
pub const MOST: usize = 16;
/// The longest fixed part of a header.
const HEADER: usize = 40;

/// A program that [`Program::verify`] has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    lists: [Vec<Instruction>; KINDS],
    /// The bits that [`Operation::Keep`] keeps of each kind's fixed part.
    kept: [Vec<Word>; KINDS],
    /// The instructions that do something else.
    others: [Vec<Instruction>; KINDS],
    /// Whether payload is kept.
    payload: bool,
    /// What to do with the parts of application-layer protocols.
    parts: [Option<Treatment>; PARTS.len()],
}

/// Why a program is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Too many for the unit.
    #[error("{kind:?} has {count} instructions: there is room for {MOST}")]
    Long {
        /// The header.
        kind: Kind,
        /// How many there are.
        count: usize,
    },
    /// Its width is none of the unit's, or its bits do not lie in its bytes, or apart.
    #[error("{kind:?}, byte {at}: {what}")]
    Instruction {
        /// The header.
        kind: Kind,
        /// The instruction's first byte.
        at: u8,
        /// What is wrong with it.
        what: &'static str,
    },
    /// What is to be removed could be read from the result.
    #[error("{field} is to be removed, but an instruction at byte {at} reads it")]
    Leak {
        /// The field.
        field: &'static str,
        /// The instruction's first byte.
        at: u8,
    },
    /// What a part of a protocol holds cannot become that.
    #[error("{0} can be kept or hashed, and addresses encrypted; only those of IP have prefixes")]
    Part(&'static str),
    /// The result could not be read.
    #[error("{0} is structure and must be kept")]
    Structure(&'static str),
}

impl Program {
    /// Takes the lists for a program if nothing can get through that is to be removed: each bit of a field
    /// that the policy does not name, counted from the first of the header.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify(
        lists: [Vec<Instruction>; KINDS],
        payload: bool,
        parts: [Option<Treatment>; PARTS.len()],
        is_removed: impl Fn(&Field, usize) -> bool,
    ) -> Result<Self, Refusal> {
        for kind in kinds() {
            let list = &lists[kind as usize];
            if list.len() > MOST {
                return Err(Refusal::Long { kind, count: list.len() });
            }
            // Bits of no field are checksums, which are computed, and what is reserved.
            let mut named = [false; HEADER * 8];
            let fields = FIELDS.iter().filter(|field| field.kind == kind);
            for bit in fields.flat_map(|it| covered(it.at, it.bytes, it.mask)) {
                named[bit] = true;
            }
            let mut written = [false; HEADER * 8];
            for instruction in list {
                check(kind, instruction)?;
                for bit in instruction.covers() {
                    if !named[bit] {
                        let (at, what) = (instruction.at, "there is no field");
                        return Err(Refusal::Instruction { kind, at, what });
                    }
                    if std::mem::replace(&mut written[bit], true) {
                        let (at, what) = (instruction.at, "another instruction also writes there");
                        return Err(Refusal::Instruction { kind, at, what });
                    }
                }
            }
        }
        for (part, treatment) in PARTS.iter().zip(&parts) {
            if treatment.is_some_and(|treatment| !part.holds.allows(treatment)) {
                return Err(Refusal::Part(part.name));
            }
        }
        for field in FIELDS {
            let list = &lists[field.kind as usize];
            if field.is_structure {
                if is_there(&lists, field.kind)
                    && !list.contains(&Instruction::new(field, Operation::Keep))
                {
                    return Err(Refusal::Structure(field.name));
                }
            } else {
                let own = covered(field.at, field.bytes, field.mask);
                let own: Vec<usize> = own.filter(|bit| is_removed(field, *bit)).collect();
                let reads = |it: &&Instruction| {
                    it.operation.reads() && it.covers().any(|bit| own.contains(&bit))
                };
                if let Some(reader) = list.iter().find(reads) {
                    return Err(Refusal::Leak { field: field.name, at: reader.at });
                }
            }
        }
        let kept = std::array::from_fn(|kind| words(&kept_bits(&lists[kind])));
        let others = std::array::from_fn(|kind| {
            lists[kind].iter().filter(|it| it.operation != Operation::Keep).copied().collect()
        });
        Ok(Self { lists, kept, others, payload, parts })
    }

    /// The instructions of a kind; where there are none the header is removed.
    pub fn of(&self, kind: Kind) -> &[Instruction] {
        &self.lists[kind as usize]
    }

    /// The same as masks of the bits that are kept and the instructions that do more, for headers that
    /// are wholly there: one step instead of one for each field.
    pub(crate) fn steps(&self, kind: Kind) -> (&[Word], &[Instruction]) {
        (&self.kept[kind as usize], &self.others[kind as usize])
    }

    /// SHA-256 of the program as it is written by `Display`, in hexadecimal digits.
    pub fn digest(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.to_string().as_bytes());
        config::hex::encode(digest.as_ref())
    }

    /// Whether an instruction needs the data set's key.
    pub fn needs_key(&self) -> bool {
        let is_keyed = |treatment: &Treatment| *treatment != Treatment::Keep;
        self.lists.iter().flatten().any(|it| it.operation.needs_key())
            || self.parts.iter().flatten().any(is_keyed)
    }

    /// The treatment of a part of an application-layer protocol; nothing where it is removed.
    pub fn treatment(&self, part: usize) -> Option<Treatment> {
        self.parts.get(part).copied().flatten()
    }

    /// The application-layer parts of which something is kept.
    pub(crate) fn named_parts(&self) -> impl Iterator<Item = &'static str> {
        let parts = PARTS.iter().zip(&self.parts);
        parts.filter(|(_, treatment)| treatment.is_some()).map(|(part, _)| part.name)
    }

    /// The protocol that is spoken on these ports, if anything of it is named.
    pub(crate) fn looks_into(&self, ports: Ports) -> Option<Protocol> {
        Protocol::of(ports).filter(|protocol| {
            let mut parts = PARTS.iter().zip(&self.parts);
            parts.any(|(part, treatment)| {
                part.protocol == protocol.named_as() && treatment.is_some()
            })
        })
    }

    /// Whether payload is kept.
    pub fn keeps_payload(&self) -> bool {
        self.payload
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in kinds().filter(|kind| !self.of(*kind).is_empty()) {
            writeln!(f, "{kind:?}")?;
            for it in self.of(kind) {
                write!(f, "  {:>3}+{:<2}", it.at, it.bytes)?;
                match it.bytes {
                    1 => write!(f, "       {:02x}", it.mask)?,
                    2 => write!(f, "     {:04x}", it.mask)?,
                    4 => write!(f, " {:08x}", it.mask)?,
                    _ => write!(f, "         ")?,
                }
                writeln!(f, "  {:?}", it.operation)?;
            }
        }
        for (part, treatment) in PARTS.iter().zip(&self.parts) {
            if let Some(treatment) = treatment {
                writeln!(f, "{:24} {treatment:?}", part.name)?;
            }
        }
        writeln!(f, "payload {}", if self.payload { "Keep" } else { "Remove" })
    }
}

/// Whether a header of this kind is in the result: an option of which nothing is named is removed
/// with its structure.
pub(crate) fn is_there(lists: &[Vec<Instruction>; KINDS], kind: Kind) -> bool {
    let is_named = |kind: Kind| !lists[kind as usize].is_empty();
    !kind.is_option() || is_named(kind) || kind.inner().is_some_and(is_named)
}

/// All kinds.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    // Each kind has a field.
    let mut kinds: Vec<Kind> = FIELDS.iter().map(|field| field.kind).collect();
    kinds.dedup();
    kinds.into_iter()
}

fn check(kind: Kind, instruction: &Instruction) -> Result<(), Refusal> {
    let at = instruction.at;
    let wrong = |what| Err(Refusal::Instruction { kind, at, what });
    let Instruction { bytes, mask, operation, .. } = *instruction;
    if !matches!(bytes, 1 | 2 | 4 | 6 | 16) {
        return wrong("fields lie in 1, 2, 4, 6 or 16 bytes");
    }
    if usize::from(at) + usize::from(bytes) > fixed(kind) {
        return wrong("it reaches beyond the header's fixed part");
    }
    if bytes <= 4 {
        let all = u32::MAX >> (32 - 8 * u32::from(bytes));
        let adjoining = mask >> mask.trailing_zeros().min(31);
        if mask == 0 || mask & !all != 0 || adjoining & adjoining.wrapping_add(1) != 0 {
            return wrong("its bits must be contiguous");
        }
    }
    if kind == Kind::TcpSackPermitted && operation != Operation::Keep {
        return wrong("it has no value: it can be kept or removed");
    }
    let bits = instruction.bits();
    match operation {
        Operation::Constant(value) | Operation::Xor(value) | Operation::Shift(value) => {
            if bits > 32 {
                return wrong("constants have 32 bits at most: this field has more");
            }
            if bits < 32 && value >> bits != 0 {
                return wrong("the constant has more bits than the field");
            }
        }
        Operation::Truncate(kept) | Operation::Permute(kept) if u32::from(kept) > bits => {
            return wrong("more bits would be kept than the field has");
        }
        Operation::Prefix if !matches!(bits, 32 | 128) => {
            return wrong("only addresses of 32 or 128 bits have prefixes");
        }
        _ => {}
    }
    Ok(())
}

/// Bytes of a kind's fixed part: up to the end of its last field.
fn fixed(kind: Kind) -> usize {
    let ends = FIELDS.iter().filter(|field| field.kind == kind);
    ends.map(|field| usize::from(field.at) + usize::from(field.bytes)).max().unwrap_or(0)
}
