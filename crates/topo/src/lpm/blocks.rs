//! IPv6: from an address to a value.
//!
//! Operators get a /32 or a few of them and announce parts down to a /48. So the first 32 bits, the
//! block, are looked up at once in a hash table, and the next 16 bits in the block's node: where in
//! the block values change, in order, and the values from there on.
//!
//! ```text
//!   hash table   2001:db8 -> node                  2a00:1234 -> value 9
//!   node         starts:   1000  1010  f000        (16 bits each; the first one is always 0)
//!                codes:  a     b     a     c       2001:db8:1005:: is in the second run, so b
//! ```
//!
//! A code below `limit` is a value; any other one tells the node of 16 more bits, for the few routes
//! beyond a /48. Blocks that nobody has a part of are in the hash table only if few neighbours have
//! the same value; what is not there is found in the list of the longer stretches.
//!
//! A bucket is one cache line that is compared as a whole, and so are most nodes: nearly no branch
//! depends on the address, and the processor has the loads of several lookups under way together.

use super::{
    Finder, MAX_VALUE,
    address::Address,
    routes::{self, Route},
};
use std::hint::select_unpredictable;

/// Bits of a block, and where its node begins.
const BLOCK: u8 = 32;

/// Bits that a node takes.
const STRIDE: u8 = 16;

/// Set in what the hash table holds: the rest is the place of a node, not a value.
const NODE: u32 = MAX_VALUE + 1;

/// Stretches of so many blocks of one value are in the hash table, block by block: a /29.
const STRETCH: u64 = 8;

/// Blocks that fit in a bucket.
const SLOTS: usize = 8;

/// Blocks a bucket gets on average, so that few are full.
const FILL: usize = 5;

/// So many starts of a node are compared at once.
const WINDOW: usize = 32;

/// How many addresses a batch has under way at once.
const WAVE: usize = 32;

/// Longest-prefix match of IPv6.
#[derive(Debug)]
pub(super) struct Blocks {
    buckets: Box<[Bucket]>,
    /// Nodes: how many starts, the starts, and one code more than starts, of one or two words each.
    words: Box<[u16]>,
    /// Whether codes take two words.
    wide: bool,
    /// Where in `words` the nodes are that codes lead to.
    children: Box<[u32]>,
    /// Codes below it are values, the others `limit` plus a place in `children`.
    limit: u32,
    /// What holds outside of the hash table: the first block, and the value up to the next one.
    stretches: Box<[(u32, u32)]>,
}

/// A cache line of the hash table. A code of 0 means that the slot is free.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    blocks: [u32; SLOTS],
    codes: [u32; SLOTS],
}

impl Bucket {
    /// The code of a block, 0 if it is not here.
    #[inline]
    fn find(&self, block: u32) -> u32 {
        // Written so that no branch comes of it.
        let Bucket { blocks, codes } = *self;
        (0..SLOTS).fold(0, |code, slot| {
            code | codes[slot] & u32::from(blocks[slot] == block).wrapping_neg()
        })
    }

    /// Whether other buckets may hold what belongs here.
    fn is_full(&self) -> bool {
        !self.codes.contains(&0)
    }
}

/// The bucket that a block belongs in. Neighbours come far from each other.
#[inline]
fn home(block: u32, buckets: usize) -> usize {
    ((u64::from(block.wrapping_mul(0x9e37_79b1)) * buckets as u64) >> 32) as usize
}

/// The first 32 bits.
#[inline]
fn block(address: u128) -> u32 {
    address.first(BLOCK) as u32
}

/// The 16 bits that come after so many.
#[inline]
fn cell(address: u128, above: u8) -> u16 {
    address.without(above).first(STRIDE) as u16
}

impl Finder<u128> for Blocks {
    fn build(routes: &[Route<u128>]) -> Blocks {
        let greatest = routes::greatest(routes);
        let runs = routes::runs(routes);
        Maker::build(&runs, greatest + 1, false).unwrap_or_else(|| {
            Maker::build(&runs, greatest + 1, true)
                .expect("the nodes of any number of routes that fits in memory are below 2^31")
        })
    }

    fn bytes(&self) -> usize {
        size_of_val(self)
            + size_of_val(&*self.buckets)
            + size_of_val(&*self.words)
            + size_of_val(&*self.children)
            + size_of_val(&*self.stretches)
    }

    #[inline]
    fn lookup(&self, address: u128) -> u32 {
        let code = self.block(block(address));
        if code < NODE {
            return code;
        }
        let node = (code - NODE) as usize;
        if self.wide {
            self.descend::<2>(address, node, self.words[node])
        } else {
            self.descend::<1>(address, node, self.words[node])
        }
    }

    fn lookup_batch(&self, addresses: &[u128], values: &mut [u32]) {
        if self.wide {
            self.batch::<2>(addresses, values);
        } else {
            self.batch::<1>(addresses, values);
        }
    }
}

impl Blocks {
    /// The value of a whole block, or `NODE` plus the place of its node.
    #[inline]
    fn block(&self, block: u32) -> u32 {
        let home = home(block, self.buckets.len());
        match self.buckets[home].find(block) {
            0 => self.elsewhere(block, home),
            code => code,
        }
    }

    /// The same for a block that is not in its own bucket: in the next one that had room, or nowhere.
    #[cold]
    fn elsewhere(&self, block: u32, mut at: usize) -> u32 {
        while self.buckets[at].is_full() {
            at = (at + 1) % self.buckets.len();
            let code = self.buckets[at].find(block);
            if code != 0 {
                return code;
            }
        }
        let after = self.stretches.partition_point(|(first, _)| *first <= block);
        self.stretches[after - 1].1
    }

    /// The value of an address from the node of its block on, which has so many starts.
    #[inline]
    fn descend<const WORDS: usize>(&self, address: u128, node: usize, starts: u16) -> u32 {
        let mut above = BLOCK;
        let mut code = code::<WORDS>(&self.words, node, starts, cell(address, above));
        while code >= self.limit {
            above += STRIDE;
            let node = self.children[(code - self.limit) as usize] as usize;
            code = self::code::<WORDS>(&self.words, node, self.words[node], cell(address, above));
        }
        code
    }

    /// Takes many addresses through each step together: within a step nothing depends on another
    /// address, so the processor has the loads of all under way together.
    #[inline]
    fn batch<const WORDS: usize>(&self, addresses: &[u128], values: &mut [u32]) {
        let (mut going, mut starts) = ([0_u8; WAVE], [0_u16; WAVE]);
        for (addresses, values) in addresses.chunks(WAVE).zip(values.chunks_mut(WAVE)) {
            // Those that have a node, and how many they are.
            let mut many = 0;
            for (at, (address, value)) in addresses.iter().zip(&mut *values).enumerate() {
                *value = self.block(block(*address));
                going[many % WAVE] = at as u8;
                many += usize::from(*value >= NODE);
            }
            for (starts, at) in starts.iter_mut().zip(&going[..many]) {
                *starts = self.words[(values[usize::from(*at)] - NODE) as usize];
            }
            for (starts, at) in starts.iter().zip(&going[..many]) {
                let at = usize::from(*at);
                let node = (values[at] - NODE) as usize;
                values[at] = self.descend::<WORDS>(addresses[at], node, *starts);
            }
        }
    }
}

/// The code of a cell in the node at this place, which has so many starts.
#[inline]
fn code<const WORDS: usize>(words: &[u16], node: usize, starts: u16, cell: u16) -> u32 {
    let starts = usize::from(starts);
    // Halves what is left until it fits in a window. What is cut off behind begins after the cell.
    let (mut first, mut left) = (node + 1, starts);
    while left > WINDOW {
        let half = left / 2;
        first = select_unpredictable(words[first + half - 1] <= cell, first + half, first);
        left -= half;
    }
    // The window may reach beyond the starts, so their number counts as well.
    let passed = words[first..first + WINDOW]
        .iter()
        .zip(0_u16..)
        .map(|(start, at)| u16::from((*start <= cell) & (at < left as u16)))
        .sum::<u16>();
    let run = first - (node + 1) + usize::from(passed);
    let code = &words[node + 1 + starts + run * WORDS..][..WORDS];
    code.iter().rev().fold(0, |code, word| code << 16 | u32::from(*word))
}

/// Nodes under construction. What it does ends with `None` if a code does not fit.
struct Maker {
    words: Vec<u16>,
    wide: bool,
    children: Vec<u32>,
    limit: u32,
    /// The runs of nodes that are not finished, the deepest last: where they start, and their code.
    pending: Vec<(u16, u32)>,
}

impl Maker {
    fn build(runs: &[(u128, u32)], limit: u32, wide: bool) -> Option<Blocks> {
        let (words, children, pending) = (Vec::new(), Vec::new(), Vec::new());
        let mut maker = Maker { words, wide, children, limit, pending };
        let mut hashed: Vec<(u32, u32)> = Vec::new();
        let mut stretches: Vec<(u32, u32)> = vec![(0, 0)];
        let (mut value, mut rest, mut here) = (0, runs, 0_u64);
        while here < 1 << BLOCK {
            if let [(address, next), after @ ..] = rest
                && *address == u128::from(here) << (128 - BLOCK)
            {
                (value, rest) = (*next, after);
            }
            let next = rest.first().map_or(1 << BLOCK, |run| u64::from(block(run.0)));
            if next == here {
                let count = rest.iter().take_while(|run| u64::from(block(run.0)) == here).count();
                let (inside, after) = rest.split_at(count);
                let (node, left) = maker.node(BLOCK, inside, value)?;
                hashed.push((here as u32, NODE.checked_add(node)?));
                (value, rest) = (left, after);
                here += 1;
                continue;
            }
            // Nothing changes until there.
            if value != 0 && next - here <= STRETCH {
                hashed.extend((here..next).map(|block| (block as u32, value)));
            } else if stretches.last().is_some_and(|(_, before)| *before != value) {
                stretches.push((here as u32, value));
            }
            here = next;
        }
        // So that a window never reaches beyond the end.
        maker.words.extend([0; WINDOW]);
        Some(Blocks {
            buckets: buckets(&hashed),
            words: maker.words.into(),
            wide,
            children: maker.children.into(),
            limit,
            stretches: stretches.into(),
        })
    }

    /// Makes the node of these runs, and tells its place and what value holds at the end. `value` is
    /// what holds at the beginning, if no run begins right there; `above` bits are the same for all
    /// runs.
    fn node(&mut self, above: u8, runs: &[(u128, u32)], mut value: u32) -> Option<(u32, u32)> {
        let (first, mut decided, mut rest) = (self.pending.len(), 0_u32, runs);
        while let Some(run) = rest.first() {
            let here = cell(run.0, above);
            if u32::from(here) > decided {
                self.begin(first, decided as u16, value);
            }
            let count = rest.iter().take_while(|run| cell(run.0, above) == here).count();
            let (inside, after) = rest.split_at(count);
            if count == 1 && run.0.without(above).without(STRIDE) == 0 {
                value = run.1;
                self.begin(first, here, value);
            } else {
                let (child, left) = self.node(above + STRIDE, inside, value)?;
                value = left;
                let code = self.limit.checked_add(u32::try_from(self.children.len()).ok()?)?;
                self.children.push(child);
                self.begin(first, here, code);
            }
            decided = u32::from(here) + 1;
            rest = after;
        }
        if decided < 1 << STRIDE {
            self.begin(first, decided as u16, value);
        }
        Some((self.finish(first)?, value))
    }

    /// Lets a run of a code begin in the node whose runs are `pending[first..]`, unless it is the code
    /// of the run before.
    fn begin(&mut self, first: usize, start: u16, code: u32) {
        if self.pending[first..].last().is_none_or(|(_, last)| *last != code) {
            self.pending.push((start, code));
        }
    }

    /// Writes down the node whose runs are `pending[first..]`, and tells its place.
    fn finish(&mut self, first: usize) -> Option<u32> {
        let place = u32::try_from(self.words.len()).ok()?;
        let (starts, codes): (Vec<u16>, Vec<u32>) = self.pending.drain(first..).unzip();
        // The first run starts at 0.
        self.words.push(u16::try_from(starts.len() - 1).ok()?);
        self.words.extend(&starts[1..]);
        for code in codes {
            if self.wide {
                self.words.extend([code as u16, (code >> 16) as u16]);
            } else {
                self.words.push(u16::try_from(code).ok()?);
            }
        }
        Some(place)
    }
}

/// The hash table of these blocks and their codes.
fn buckets(hashed: &[(u32, u32)]) -> Box<[Bucket]> {
    let mut buckets = vec![Bucket::default(); hashed.len() / FILL + 1];
    for &(block, code) in hashed {
        let mut at = home(block, buckets.len());
        // The next one with room. There is some, as there are more slots than blocks.
        while buckets[at].is_full() {
            at = (at + 1) % buckets.len();
        }
        if let Some(slot) = buckets[at].codes.iter().position(|code| *code == 0) {
            buckets[at].blocks[slot] = block;
            buckets[at].codes[slot] = code;
        }
    }
    buckets.into()
}
