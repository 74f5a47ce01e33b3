//! From an address to a value in few dependent loads.
//!
//! A trie whose nodes take many bits at once. A node of n bits stands for 2^n cells; neighbours with
//! the same content share one code in `codes`, and a bit says for each cell whether a code begins
//! there. So the code of a cell is found by counting bits:
//!
//! ```text
//!   slots  bits 1 0 0 1 0 0 0 1 ... (64 cells)   base = codes before this slot, less one
//!   codes        a     b       c                 cell 5: base + 2 set bits up to it: b
//! ```
//!
//! A code below `limit` is a value, any other one is `limit` plus the number of a node below. Where
//! poptrie (Asai and Ohara, SIGCOMM 2015) has a bitmap for children and one for leaves, this has one
//! for both and reads the code before it knows which it is: no branch to guess, and an IPv4 address
//! is down at /24 with two loads. Slots are 16 bytes, so none lies in two cache lines.

use super::{
    address::Address,
    routes::{self, Route},
};

/// The largest value: codes beyond it are left for nodes.
pub(super) const MAX_VALUE: u32 = (1 << 31) - 1;

/// How many addresses a batch has under way at once.
const WAVE: usize = 32;

/// 64 cells of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Bit n: a code begins at cell n.
    bits: u64,
    /// The place of the code of the cell before this slot.
    base: u32,
}

/// Slots of the smallest node, 8 bits; nodes are numbered in units of it.
const UNIT: usize = 4;

/// Longest-prefix match of one family.
#[derive(Debug)]
pub(super) struct Trie<A> {
    slots: Box<[Slot]>,
    codes: Codes,
    limit: u32,
    family: std::marker::PhantomData<A>,
}

/// Codes take two bytes where they can.
#[derive(Debug)]
enum Codes {
    Narrow(Box<[u16]>),
    Wide(Box<[u32]>),
}

/// What codes are read as.
trait Code: Copy {
    fn widen(self) -> u32;
}

impl Code for u16 {
    #[inline]
    fn widen(self) -> u32 {
        u32::from(self)
    }
}

impl Code for u32 {
    #[inline]
    fn widen(self) -> u32 {
        self
    }
}

impl<A: Address> Trie<A> {
    /// From routes that are sorted and of which no two have the same prefix.
    pub(super) fn build(routes: &[Route<A>]) -> Trie<A> {
        let greatest = routes.iter().map(|route| route.value).max().unwrap_or(0);
        assert!(greatest <= MAX_VALUE, "a route has the value {greatest}, more than {MAX_VALUE}");
        let mut maker = Maker {
            slots: Vec::new(),
            // The base of the first slot is the place before its first code.
            codes: vec![0],
            pending: Vec::new(),
            limit: greatest + 1,
            greatest: 0,
        };
        maker.node(0, 0, &routes::runs(routes), 0);
        let Maker { slots, codes, limit, greatest, .. } = maker;
        let codes = if greatest <= u32::from(u16::MAX) {
            Codes::Narrow(codes.iter().map(|&code| code as u16).collect())
        } else {
            Codes::Wide(codes.into())
        };
        Trie { slots: slots.into(), codes, limit, family: std::marker::PhantomData }
    }

    pub(super) fn bytes(&self) -> usize {
        let codes = match &self.codes {
            Codes::Narrow(codes) => size_of_val(&**codes),
            Codes::Wide(codes) => size_of_val(&**codes),
        };
        size_of_val(self) + size_of_val(&*self.slots) + codes
    }

    #[inline]
    pub(super) fn lookup(&self, address: A) -> u32 {
        match &self.codes {
            Codes::Narrow(codes) => self.lookup_in(codes, address),
            Codes::Wide(codes) => self.lookup_in(codes, address),
        }
    }

    pub(super) fn lookup_batch(&self, addresses: &[A], values: &mut [u32]) {
        match &self.codes {
            Codes::Narrow(codes) => self.batch_in(codes, addresses, values),
            Codes::Wide(codes) => self.batch_in(codes, addresses, values),
        }
    }

    #[inline]
    fn lookup_in<C: Code>(&self, codes: &[C], address: A) -> u32 {
        let (mut first, mut shift) = (0, A::BITS);
        for &stride in A::STRIDES {
            shift -= stride;
            let code = codes[self.place(first, cell(address, shift, stride))].widen();
            if code < self.limit {
                return code;
            }
            first = (code - self.limit) as usize * UNIT;
        }
        0
    }

    /// Walks many addresses down level by level. Within a level nothing depends on another address,
    /// so the processor has the loads of all under way together; there is no branch that depends on
    /// an address but the end of each level.
    #[inline]
    fn batch_in<C: Code>(&self, codes: &[C], addresses: &[A], values: &mut [u32]) {
        for (addresses, values) in addresses.chunks(WAVE).zip(values.chunks_mut(WAVE)) {
            let count = addresses.len().min(values.len());
            let (addresses, values) = (&addresses[..count], &mut values[..count]);
            let (mut shift, stride) = (A::BITS - A::STRIDES[0], A::STRIDES[0]);
            // Those that have to go on, and how many they are.
            let (mut going, mut many) = ([0u8; WAVE], 0);
            for (at, (&address, value)) in addresses.iter().zip(&mut *values).enumerate() {
                *value = codes[self.place(0, cell(address, shift, stride))].widen();
                going[many] = at as u8;
                many += usize::from(*value >= self.limit);
            }
            for &stride in &A::STRIDES[1..] {
                if many == 0 {
                    break;
                }
                shift -= stride;
                let mut left = 0;
                for turn in 0..many {
                    let at = usize::from(going[turn]);
                    let first = (values[at] - self.limit) as usize * UNIT;
                    let place = self.place(first, cell(addresses[at], shift, stride));
                    values[at] = codes[place].widen();
                    going[left] = at as u8;
                    left += usize::from(values[at] >= self.limit);
                }
                many = left;
            }
        }
    }

    /// Where the code of a cell is, in the node that begins at this slot.
    #[inline]
    fn place(&self, first: usize, cell: usize) -> usize {
        let slot = &self.slots[first + (cell >> 6)];
        let upto = u64::MAX >> (63 - (cell & 63));
        slot.base as usize + (slot.bits & upto).count_ones() as usize
    }
}

/// The cell of an address in a node of these bits.
#[inline]
fn cell<A: Address>(address: A, shift: u8, stride: u8) -> usize {
    (address.shifted(shift) & ((1 << stride) - 1)) as usize
}

/// A trie under construction.
struct Maker {
    slots: Vec<Slot>,
    codes: Vec<u32>,
    /// The codes of nodes that are not finished, the deepest last.
    pending: Vec<u32>,
    limit: u32,
    /// The greatest code so far.
    greatest: u32,
}

impl Maker {
    /// Makes the node for these runs and all below it, and tells its number. `value` is what holds
    /// where the node begins, if no run begins right there; `depth` tells the level.
    fn node<A: Address>(&mut self, depth: usize, above: u8, runs: &[(A, u32)], value: u32) -> u32 {
        let stride = A::STRIDES[depth];
        let shift = A::BITS - above - stride;
        let first = self.slots.len();
        let pending = self.pending.len();
        self.slots.resize(first + (1 << (stride - 6)), Slot::default());

        let (mut value, mut decided, mut rest) = (value, 0, runs);
        while let Some(&(start, next)) = rest.first() {
            let here = cell(start, shift, stride);
            if here > decided {
                self.begin(first, pending, decided, value);
            }
            let count = rest.iter().take_while(|run| cell(run.0, shift, stride) == here).count();
            let (inside, after) = rest.split_at(count);
            if count == 1 && start.and(A::mask(above + stride)) == start {
                value = next;
                self.begin(first, pending, here, value);
            } else {
                let below = self.node(depth + 1, above + stride, inside, value);
                value = inside.last().map_or(value, |run| run.1);
                self.begin(first, pending, here, self.limit + below);
            }
            decided = here + 1;
            rest = after;
        }
        if decided < 1 << stride {
            self.begin(first, pending, decided, value);
        }

        let mut base = self.codes.len() as u32 - 1;
        self.codes.extend(self.pending.drain(pending..));
        for slot in &mut self.slots[first..][..1 << (stride - 6)] {
            slot.base = base;
            base += slot.bits.count_ones();
        }
        (first / UNIT) as u32
    }

    /// Lets a code begin at a cell of the node that is under construction, unless it is the code of
    /// the cell before.
    fn begin(&mut self, first: usize, pending: usize, cell: usize, code: u32) {
        if self.pending[pending..].last() != Some(&code) {
            self.slots[first + (cell >> 6)].bits |= 1 << (cell & 63);
            self.pending.push(code);
            self.greatest = self.greatest.max(code);
        }
    }
}
