//! IPv6: from an address to a value.
//!
//! Operators get a /32 or a few of them and announce parts down to a /48. So the first 32 bits, the
//! block, are looked up at once in a hash table, and the next 16 bits in the block's node: where in
//! the block values change, in order, and the values from there on. A node is divided into pages of
//! equal size, as many as it takes so that hardly any has more starts than are compared at once.
//!
//! ```text
//!   hash table   2001:db8 -> node of 2 pages       2a00:1234 -> value 9
//!   node         0000-7fff: page of 2 starts       8000-ffff: page of 1 start
//!   first page   starts:   1000  1010              (16 bits each; the first run has begun before)
//!                codes:  a     b     a             2001:db8:1005:: is in the second run, so b
//! ```
//!
//! A code below `limit` is a value; any other one is the node of 16 more bits, for the few routes
//! beyond a /48. Blocks without a route are in the hash table only if few neighbours have
//! the same value; what is not there is found in the list of the longer stretches.
//!
//! A bucket is one cache line that is compared as a whole, and so are most pages: nearly no branch
//! depends on the address, and the processor has the loads of several lookups in progress together.
//!
//! Nodes and pages are named by their index in [`INDEX`] bits. A table of many times today's routes
//! has indexes beyond that: its nodes have no pages, and what they cost is a longer search.

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

/// Set in what the hash table holds: the rest is a node, not a value.
const NODE: u32 = MAX_VALUE + 1;

/// Bits of the index of a node or a page. Above them a node has how many bits its pages take,
/// and a page how many starts it has.
const INDEX: u32 = 27;

/// A page with more starts than a window has this instead of their number, which is before them.
const LONG: u32 = WINDOW as u32 + 1;

/// Nodes without pages begin at multiples of so many words.
const ALIGN: usize = 8;

/// A node has at most two to this power times as many pages as runs.
const PAGES: u32 = 3;

/// Stretches of so many blocks of one value are in the hash table, block by block: a /29.
const STRETCH: u64 = 8;

/// Blocks that fit in a bucket.
const SLOTS: usize = 8;

/// Blocks a bucket gets on average, so that few are full.
const FILL: usize = 5;

/// So many starts are compared at once.
const WINDOW: usize = 16;

/// How many addresses a batch has in progress at once.
const WAVE: usize = 32;

/// Longest-prefix match of IPv6.
#[derive(Debug)]
pub(super) struct Blocks {
    buckets: Box<[Bucket]>,
    /// Nodes: two words for each page, then for each page its starts and one code more than starts.
    words: Box<[u16]>,
    form: Form,
    /// Where in `words` the nodes are that codes lead to.
    children: Box<[u32]>,
    /// Codes below it are values, the others `limit` plus an index in `children`.
    limit: u32,
    /// What holds outside of the hash table: the first block, and the value up to the next one.
    stretches: Box<[(u32, u32)]>,
}

/// How nodes are written down: the first form that everything fits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A code takes one word.
    Narrow,
    /// A code takes two words.
    Wide,
    /// A code takes two words, and a node is written like a long page.
    Pageless,
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
        Blocks::within(routes, 1 << INDEX)
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
        match self.form {
            Form::Narrow => {
                self.descend::<1>(address, page(&self.words, code, cell(address, BLOCK)))
            }
            Form::Wide => self.descend::<2>(address, page(&self.words, code, cell(address, BLOCK))),
            Form::Pageless => self.pageless(address, code),
        }
    }

    fn lookup_batch(&self, addresses: &[u128], values: &mut [u32]) {
        match self.form {
            Form::Narrow => self.batch::<1>(addresses, values),
            Form::Wide => self.batch::<2>(addresses, values),
            Form::Pageless => {
                for (address, value) in addresses.iter().zip(values) {
                    *value = self.lookup(*address);
                }
            }
        }
    }
}

impl Blocks {
    /// The blocks of these routes, with pages if all indexes are below so many words.
    fn within(routes: &[Route<u128>], words: usize) -> Blocks {
        let limit = routes::greatest(routes) + 1;
        let runs = routes::runs(routes);
        [Form::Narrow, Form::Wide, Form::Pageless]
            .into_iter()
            .find_map(|form| Maker::build(&runs, limit, form, words))
            .expect("the nodes of any number of routes that fits in memory are below 2^34 words")
    }

    /// The value of a whole block, or `NODE` plus the index of its node.
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

    /// The value of an address from the page of its block's node on.
    #[inline]
    fn descend<const WORDS: usize>(&self, address: u128, page: u32) -> u32 {
        let code = code::<WORDS>(&self.words, page, cell(address, BLOCK));
        if code < self.limit { code } else { self.beyond::<WORDS>(address, code) }
    }

    /// The value of an address from a code on that leads beyond a /48.
    #[cold]
    #[inline(never)]
    fn beyond<const WORDS: usize>(&self, address: u128, mut code: u32) -> u32 {
        let mut above = BLOCK;
        while code >= self.limit {
            above += STRIDE;
            let (node, cell) = (self.children[(code - self.limit) as usize], cell(address, above));
            code = self::code::<WORDS>(&self.words, page(&self.words, node, cell), cell);
        }
        code
    }

    /// The value of an address from its block's node on, which has no pages.
    #[cold]
    #[inline(never)]
    fn pageless(&self, address: u128, node: u32) -> u32 {
        let (mut above, mut node) = (BLOCK, node & !NODE);
        loop {
            let code = long::<2>(&self.words, node as usize * ALIGN, cell(address, above));
            if code < self.limit {
                return code;
            }
            node = self.children[(code - self.limit) as usize];
            above += STRIDE;
        }
    }

    /// Takes many addresses through each of two steps together: within a step nothing depends on
    /// another address, so the processor has the loads of all in progress together.
    #[inline]
    fn batch<const WORDS: usize>(&self, addresses: &[u128], values: &mut [u32]) {
        let mut pages = [0_u32; WAVE];
        for (addresses, values) in addresses.chunks(WAVE).zip(values.chunks_mut(WAVE)) {
            let pairs = addresses.iter().zip(&mut *values);
            for (page, (address, value)) in pages.iter_mut().zip(pairs) {
                *value = self.block(block(*address));
                // A block of one value goes through the first node as well, which leads no further:
                // that costs less than a branch.
                let node = select_unpredictable(*value < NODE, NODE, *value);
                *page = self::page(&self.words, node, cell(*address, BLOCK));
            }
            for (page, (address, value)) in pages.iter().zip(addresses.iter().zip(values)) {
                let below = self.descend::<WORDS>(*address, *page);
                *value = select_unpredictable(*value < NODE, *value, below);
            }
        }
    }
}

/// The entry of a cell's page in a node.
#[inline(always)]
fn page(words: &[u16], node: u32, cell: u16) -> u32 {
    let (index, bits) = ((node & ((1 << INDEX) - 1)) as usize, (node & !NODE) >> INDEX);
    let page = (u32::from(cell) >> (u32::from(STRIDE) - bits)) as usize;
    let [low, high] = words[index + 2 * page..][..2] else { return 0 };
    u32::from(high) << 16 | u32::from(low)
}

/// The code of a cell in a page.
#[inline(always)]
fn code<const WORDS: usize>(words: &[u16], page: u32, cell: u16) -> u32 {
    let (first, count) = ((page & ((1 << INDEX) - 1)) as usize, (page >> INDEX) as usize);
    if count > WINDOW {
        return long::<WORDS>(words, first, cell);
    }
    run_code::<WORDS>(words, first + count, passed(words, first, count, cell))
}

/// The code of a cell in a page with more starts than a window.
#[cold]
#[inline(never)]
fn long<const WORDS: usize>(words: &[u16], page: usize, cell: u16) -> u32 {
    let (starts, count) = (page + 1, usize::from(words[page]));
    // Halves what is left until it fits in a window. What is cut off behind begins after the cell.
    let (mut first, mut left) = (starts, count);
    while left > WINDOW {
        let half = left / 2;
        first = select_unpredictable(words[first + half - 1] <= cell, first + half, first);
        left -= half;
    }
    let run = first - starts + passed(words, first, left, cell);
    run_code::<WORDS>(words, starts + count, run)
}

/// How many of these starts, at most a window, the cell has passed.
#[inline(always)]
fn passed(words: &[u16], first: usize, count: usize, cell: u16) -> usize {
    // The window may reach beyond the starts, so their number counts as well.
    let passed = words[first..first + WINDOW]
        .iter()
        .zip(&STARTS[count])
        .map(|(start, counts)| u16::from(*start <= cell) & counts)
        .sum::<u16>();
    passed.into()
}

/// For each number of starts in a window 1 for each of them: compilers make fewer vector instructions
/// of it than of comparing each cell in the window with the number.
static STARTS: [[u16; WINDOW]; WINDOW + 1] = {
    let mut starts = [[0; WINDOW]; WINDOW + 1];
    let mut count = 0;
    while count <= WINDOW {
        let mut at = 0;
        while at < count {
            starts[count][at] = 1;
            at += 1;
        }
        count += 1;
    }
    starts
};

/// The code of a run.
#[inline(always)]
fn run_code<const WORDS: usize>(words: &[u16], codes: usize, run: usize) -> u32 {
    let code = &words[codes + run * WORDS..][..WORDS];
    code.iter().rev().fold(0, |code, word| code << 16 | u32::from(*word))
}

/// Nodes under construction. What it does ends with `None` if a code or index does not fit.
struct Maker {
    words: Vec<u16>,
    form: Form,
    /// Pages begin before this index.
    end: usize,
    children: Vec<u32>,
    limit: u32,
    /// The runs of nodes that are not finished, the deepest last: where they start, and their code.
    pending: Vec<(u16, u32)>,
}

impl Maker {
    fn build(runs: &[(u128, u32)], limit: u32, form: Form, end: usize) -> Option<Blocks> {
        let (words, children, pending) = (Vec::new(), Vec::new(), Vec::new());
        let mut maker = Maker { words, form, end, children, limit, pending };
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
                hashed.push((here as u32, NODE | node));
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
        // So that a window never reaches beyond the end, and there is a node at index 0.
        maker.words.extend([0; WINDOW]);
        Some(Blocks {
            buckets: buckets(&hashed),
            words: maker.words.into(),
            form,
            children: maker.children.into(),
            limit,
            stretches: stretches.into(),
        })
    }

    /// Makes the node of these runs, and returns its index and the value that holds at the end. `value` is
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

    /// Writes down the node whose runs are `pending[first..]`, and returns its entry.
    fn finish(&mut self, first: usize) -> Option<u32> {
        let runs: Vec<(u16, u32)> = self.pending.drain(first..).collect();
        if self.form == Form::Pageless {
            self.words.resize(self.words.len().next_multiple_of(ALIGN), 0);
            let node = u32::try_from(self.words.len() / ALIGN).ok().filter(|node| *node < NODE)?;
            self.page(&runs, true)?;
            return Some(node);
        }
        let (node, bits) = (self.words.len(), page_bits(&runs));
        let (pages, cells) = (1 << bits, 1 << (u32::from(STRIDE) - bits));
        self.words.resize(node + 2 * pages, 0);
        // The run that has begun where the page does; the first one begins at 0.
        let mut begun = 0;
        for page in 0..pages {
            let (from, end) = (page * cells, (page + 1) * cells);
            while runs.get(begun + 1).is_some_and(|run| usize::from(run.0) <= from) {
                begun += 1;
            }
            let inside = runs[begun..].iter().take_while(|run| usize::from(run.0) < end).count();
            let index = self.words.len();
            if index >= self.end {
                return None;
            }
            let count = (inside as u32 - 1).min(LONG);
            self.page(&runs[begun..][..inside], count == LONG)?;
            let entry = index as u32 | count << INDEX;
            let entry = [entry as u16, (entry >> 16) as u16];
            self.words[node + 2 * page..][..2].copy_from_slice(&entry);
        }
        Some(node as u32 | bits << INDEX)
    }

    /// Writes down a page: the number of starts if it is long, the starts, and the codes. The first run
    /// has begun before.
    fn page(&mut self, runs: &[(u16, u32)], long: bool) -> Option<()> {
        if long {
            self.words.push(u16::try_from(runs.len() - 1).ok()?);
        }
        self.words.extend(runs[1..].iter().map(|run| run.0));
        for (_, code) in runs {
            match self.form {
                Form::Narrow => self.words.push(u16::try_from(*code).ok()?),
                _ => self.words.extend([*code as u16, (*code >> 16) as u16]),
            }
        }
        Some(())
    }
}

/// How many bits the pages of a node with these runs take: the fewest with which no page has more
/// starts than a window, unless there would be too many pages.
fn page_bits(runs: &[(u16, u32)]) -> u32 {
    let fits = |bits: &u32| {
        let page = |run: &(u16, u32)| u32::from(run.0) >> (u32::from(STRIDE) - bits);
        runs.chunk_by(|a, b| page(a) == page(b)).all(|runs| runs.len() <= WINDOW)
    };
    // With 12 bits, a page has 16 cells.
    let most = (runs.len().ilog2() + PAGES).min(12);
    (0..most).find(fits).unwrap_or(most)
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

#[cfg(test)]
mod tests {
    use super::*;
    use splitmix::Random;

    /// Random routes that crowd under a few blocks, of any length.
    fn routes(count: usize, greatest: u64) -> Vec<Route<u128>> {
        let mut random = Random::new(4);
        let mut routes: Vec<_> = (0..count)
            .map(|_| {
                let block = u128::from(random.below(40)) << 96 | 0x2a00 << 112;
                let bits = u128::from(random.bits()) << 32 & (u128::MAX >> BLOCK);
                let length = [48, 48, 40, 33, 64, random.below(129) as u8];
                let length = random.pick(&length).copied().unwrap_or_default();
                Route::new(block | bits, length, 1 + random.below(greatest) as u32)
            })
            .collect();
        routes::normalize(&mut routes);
        routes
    }

    #[test]
    fn nodes_beyond_the_reach_of_pages_answer_the_same() {
        for (greatest, form) in [(50_000, Form::Narrow), (1 << 30, Form::Wide)] {
            let routes = routes(3000, greatest);
            let paged = Blocks::build(&routes);
            assert_eq!(paged.form, form);
            for end in [paged.words.len() / 2, 0] {
                let pageless = Blocks::within(&routes, end);
                assert_eq!(pageless.form, Form::Pageless);
                let around = |route: &Route<u128>| {
                    let last = route.address.or_not(u128::mask(route.length));
                    let before = route.address.wrapping_sub(1);
                    [
                        before,
                        route.address,
                        route.address.midpoint(last),
                        last,
                        last.wrapping_add(1),
                    ]
                };
                let addresses: Vec<u128> = routes.iter().flat_map(around).collect();
                let (mut first, mut second) = (vec![0; addresses.len()], vec![0; addresses.len()]);
                paged.lookup_batch(&addresses, &mut first);
                pageless.lookup_batch(&addresses, &mut second);
                assert_eq!(first, second);
                for (address, value) in addresses.iter().zip(first) {
                    assert_eq!(paged.lookup(*address), value, "{address:x}");
                    assert_eq!(pageless.lookup(*address), value, "{address:x}");
                }
            }
        }
    }
}
