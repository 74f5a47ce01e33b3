//! IPv4: from an address to a value in few dependent loads from few bytes.
//!
//! A directory of the first 18 bits leads to records, each of which stands for the next 6 bits, 64
//! cells. Neighbours with the same content share a code, and a bit for each cell is set where a code
//! begins there, so the code of a cell is found by counting bits:
//!
//! ```text
//!   record  bits: 1 0 0 1 0 0 0 1 ...  codes: a b c ...     cell 5: 2 bits up to it, so b
//! ```
//!
//! A code below `limit` is a value; any other one is `limit` plus the index of a record of 6 more
//! bits. An address is down at /24 with the directory and one record. This is poptrie (Asai and Ohara,
//! SIGCOMM 2015) but for two things: there is one bitmap for children and leaves, so that nothing has
//! to be guessed before the code is read, and the codes lie right behind it, mostly in the same cache
//! line.

use super::{
    Finder,
    address::Address,
    routes::{self, Route},
};

/// Bits that the directory takes.
const DIRECTORY: u8 = 18;

/// Bits that a record takes. Where an address has fewer left, they count as its first ones.
const STRIDE: u8 = 6;

/// How many addresses a batch has in progress at once.
const WAVE: usize = 32;

/// Longest-prefix match of IPv4.
#[derive(Debug)]
pub(super) struct Trie {
    parts: Width,
}

/// Codes take two bytes where they can.
#[derive(Debug)]
enum Width {
    Narrow(Parts<u16>),
    Wide(Parts<u32>),
}

#[derive(Debug)]
struct Parts<C> {
    /// Where in `upper` the record is, for each combination of the first bits.
    directory: Box<[u32]>,
    /// Records that the directory leads to.
    upper: Box<[C]>,
    /// Records that codes lead to.
    lower: Box<[C]>,
    /// What is below it is a value.
    limit: u32,
}

/// What records are made of.
trait Code: Copy + TryFrom<u32> + 'static {
    /// How many codes the bitmap of a record replaces.
    const HEAD: usize;
    fn widen(self) -> u32;
    /// The bitmap that a record begins with.
    fn bits(record: &[Self]) -> u64;
    fn push_bits(bits: u64, records: &mut Vec<Self>);
}

impl Code for u16 {
    const HEAD: usize = 4;

    #[inline]
    fn widen(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn bits(record: &[u16]) -> u64 {
        let [a, b, c, d] = record[..4] else { return 0 };
        u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
    }

    fn push_bits(bits: u64, records: &mut Vec<u16>) {
        records.extend([0, 16, 32, 48].map(|shift| (bits >> shift) as u16));
    }
}

impl Code for u32 {
    const HEAD: usize = 2;

    #[inline]
    fn widen(self) -> u32 {
        self
    }

    #[inline]
    fn bits(record: &[u32]) -> u64 {
        let [a, b] = record[..2] else { return 0 };
        u64::from(a) | u64::from(b) << 32
    }

    fn push_bits(bits: u64, records: &mut Vec<u32>) {
        records.extend([bits as u32, (bits >> 32) as u32]);
    }
}

/// Where the code of a cell is, in a record with this bitmap.
#[inline]
fn position<C: Code>(record: usize, bits: u64, cell: usize) -> usize {
    // The first bit is always set, so at least one is counted.
    record + C::HEAD - 1 + (bits << (63 - cell)).count_ones() as usize
}

impl Finder<u32> for Trie {
    fn build(routes: &[Route<u32>]) -> Trie {
        let greatest = routes::greatest(routes);
        let runs = routes::runs(routes);
        let parts =
            match Maker::build(&runs, greatest + 1) {
                Some(parts) => Width::Narrow(parts),
                None => Width::Wide(Maker::build(&runs, greatest + 1).expect(
                    "the records of any number of routes that fits in memory are below 2^31",
                )),
            };
        Trie { parts }
    }

    fn bytes(&self) -> usize {
        let parts = match &self.parts {
            Width::Narrow(parts) => parts.bytes(),
            Width::Wide(parts) => parts.bytes(),
        };
        size_of_val(self) + parts
    }

    #[inline]
    fn lookup(&self, address: u32) -> u32 {
        match &self.parts {
            Width::Narrow(parts) => parts.lookup(address),
            Width::Wide(parts) => parts.lookup(address),
        }
    }

    fn lookup_batch(&self, addresses: &[u32], values: &mut [u32]) {
        match &self.parts {
            Width::Narrow(parts) => parts.lookup_batch(addresses, values),
            Width::Wide(parts) => parts.lookup_batch(addresses, values),
        }
    }
}

impl<C: Code> Parts<C> {
    fn bytes(&self) -> usize {
        size_of_val(&*self.directory) + size_of_val(&*self.upper) + size_of_val(&*self.lower)
    }

    #[inline]
    fn lookup(&self, address: u32) -> u32 {
        let record = self.directory[address.first(DIRECTORY)] as usize;
        let mut rest = address.without(DIRECTORY);
        let mut code = code(&self.upper, record, rest.first(STRIDE));
        while code >= self.limit {
            rest = rest.without(STRIDE);
            code = self::code(&self.lower, (code - self.limit) as usize, rest.first(STRIDE));
        }
        code
    }

    /// Walks many addresses down level by level. Within a step nothing depends on another address, so
    /// the processor has the loads of all in progress together; no branch depends on an address but
    /// the end of each level.
    #[inline]
    fn lookup_batch(&self, addresses: &[u32], values: &mut [u32]) {
        let (mut records, mut bitmaps, mut going) = ([0_u32; WAVE], [0_u64; WAVE], [0_u8; WAVE]);
        for (addresses, values) in addresses.chunks(WAVE).zip(values.chunks_mut(WAVE)) {
            let count = addresses.len().min(values.len());
            let (addresses, values) = (&addresses[..count], &mut values[..count]);
            for (record, address) in records.iter_mut().zip(addresses) {
                *record = self.directory[address.first(DIRECTORY)];
            }
            for (bits, record) in bitmaps.iter_mut().zip(&records[..count]) {
                *bits = C::bits(&self.upper[*record as usize..]);
            }
            // Those that have to go on, and how many they are.
            let mut many = 0;
            for (at, value) in values.iter_mut().enumerate() {
                let cell = addresses[at].without(DIRECTORY).first(STRIDE);
                let index = position::<C>(records[at % WAVE] as usize, bitmaps[at % WAVE], cell);
                *value = self.upper[index].widen();
                going[many % WAVE] = at as u8;
                many += usize::from(*value >= self.limit);
            }
            let mut above = DIRECTORY + STRIDE;
            while many > 0 {
                for (bits, at) in bitmaps.iter_mut().zip(&going[..many]) {
                    *bits =
                        C::bits(&self.lower[(values[usize::from(*at)] - self.limit) as usize..]);
                }
                let mut left = 0;
                for turn in 0..many {
                    let at = usize::from(going[turn]);
                    let cell = addresses[at].without(above).first(STRIDE);
                    let record = (values[at] - self.limit) as usize;
                    let code = self.lower[position::<C>(record, bitmaps[turn], cell)].widen();
                    values[at] = code;
                    going[left] = at as u8;
                    left += usize::from(code >= self.limit);
                }
                many = left;
                above += STRIDE;
            }
        }
    }
}

/// The code of a cell of the record at this index.
#[inline]
fn code<C: Code>(records: &[C], record: usize, cell: usize) -> u32 {
    records[position::<C>(record, C::bits(&records[record..]), cell)].widen()
}

/// A trie under construction. What it does ends with `None` if a code does not fit.
struct Maker<C> {
    lower: Vec<C>,
    /// The codes of records that are not finished, the deepest last.
    pending: Vec<u32>,
    limit: u32,
}

impl<C: Code> Maker<C> {
    fn build(runs: &[(u32, u32)], limit: u32) -> Option<Parts<C>> {
        let mut maker = Maker { lower: Vec::new(), pending: Vec::new(), limit };
        let mut directory = Vec::with_capacity(1 << DIRECTORY);
        let mut upper = Vec::new();
        let (mut value, mut rest) = (0, runs);
        // The last record of one value only, which the next ones with the same value share.
        let mut uniform = None;
        while directory.len() < 1 << DIRECTORY {
            let here = directory.len();
            let next = rest.first().map_or(1 << DIRECTORY, |run| run.0.first(DIRECTORY));
            if next > here {
                // Nothing changes until there.
                let record = match uniform {
                    Some((record, shared)) if shared == value => record,
                    _ => {
                        let record = u32::try_from(upper.len()).ok()?;
                        C::push_bits(1, &mut upper);
                        upper.push(C::try_from(value).ok()?);
                        uniform = Some((record, value));
                        record
                    }
                };
                directory.resize(next, record);
                continue;
            }
            let count = rest.iter().take_while(|run| run.0.first(DIRECTORY) == here).count();
            let (inside, after) = rest.split_at(count);
            let (bits, left) = maker.cells(DIRECTORY, inside, value)?;
            (value, rest) = (left, after);
            directory.push(u32::try_from(upper.len()).ok()?);
            C::push_bits(bits, &mut upper);
            maker.finish(0, &mut upper)?;
        }
        Some(Parts {
            directory: directory.into(),
            upper: upper.into(),
            lower: maker.lower.into(),
            limit,
        })
    }

    /// Leaves the codes of the cells of a record in `pending`, and returns the bitmap and the value that
    /// holds at the end. `value` is what holds at the beginning, if no run begins right there;
    /// `above` bits are the same for all runs.
    fn cells(&mut self, above: u8, runs: &[(u32, u32)], mut value: u32) -> Option<(u64, u32)> {
        let cell = |run: &(u32, u32)| run.0.without(above).first(STRIDE);
        let (first, mut bits, mut decided, mut rest) = (self.pending.len(), 0, 0, runs);
        while let Some(run) = rest.first() {
            let here = cell(run);
            if here > decided {
                self.begin(first, &mut bits, decided, value);
            }
            let count = rest.iter().take_while(|run| cell(run) == here).count();
            let (inside, after) = rest.split_at(count);
            if count == 1 && run.0.without(above).without(STRIDE) == 0 {
                value = run.1;
                self.begin(first, &mut bits, here, value);
            } else {
                let start = self.pending.len();
                let (below, next) = self.cells(above + STRIDE, inside, value)?;
                value = next;
                let record = u32::try_from(self.lower.len()).ok()?;
                let mut lower = std::mem::take(&mut self.lower);
                C::push_bits(below, &mut lower);
                let finished = self.finish(start, &mut lower);
                self.lower = lower;
                finished?;
                self.begin(first, &mut bits, here, self.limit.checked_add(record)?);
            }
            decided = here + 1;
            rest = after;
        }
        if decided < 1 << STRIDE {
            self.begin(first, &mut bits, decided, value);
        }
        Some((bits, value))
    }

    /// Lets a code begin at a cell of the record whose codes are `pending[first..]`, unless it is the
    /// code of the cell before.
    fn begin(&mut self, first: usize, bits: &mut u64, cell: usize, code: u32) {
        if self.pending[first..].last() != Some(&code) {
            *bits |= 1 << cell;
            self.pending.push(code);
        }
    }

    /// Moves the codes of a record behind its bitmap.
    fn finish(&mut self, first: usize, records: &mut Vec<C>) -> Option<()> {
        for code in self.pending.drain(first..) {
            records.push(C::try_from(code).ok()?);
        }
        Some(())
    }
}
