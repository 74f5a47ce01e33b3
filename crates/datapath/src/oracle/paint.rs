//! From prefixes to what each /24 is, in runs: the tables between an address and its group.
//!
//! ```text
//! 10.0.0.0/17:   /24s of its first /20    A A A A B B C C C C C C C C C C   begins 3, 5; last 2
//!                of its second            C D D D D D D D D D D D D D D D   begins 0;    last 3
//! its line:      runs of its /20s   values A B C D ...
//! ```
//!
//! A run is /24s in a row that have one value, a group or a block. With the million routes of today's
//! internet a /17 has some 15 runs, and a line has room for 20: 8 MB, and one line of a processor's
//! cache to a lookup. One value for each /24 takes 32 MB, which miss its caches and its translations
//! of addresses. Of a line with more runs the /19s that have most are kept elsewhere, as a value for
//! each /24.
//!
//! Prefixes come in order, so everything is written once, from the first address to the last, with a
//! stack of the prefixes that cover the present one.

use super::limits::{MAX_BLOCKS, MAX_GROUPS, PublishError, limit};
use super::skeleton::types::{oracle_limits, oracle_line};
use ipnet::Ipv4Net;

/// Addresses of a block.
pub(super) const BLOCK: usize = 256;
/// IPv4 networks of 256 addresses.
pub(super) const NETWORKS: usize = 1 << 24;
/// Lines of 128 of these.
pub(super) const LINES: usize = NETWORKS / LINE;

/// /24s of a line.
const LINE: usize = 128;
/// /24s that share a number in it, those of a /20.
const PART: usize = 16;
/// /24s that are kept together where a line has no room, those of a /19.
const QUARTER: usize = 32;
/// Runs that a line has room for.
const ROOM: usize = limit(oracle_limits::ORACLE_LINE_VALUES);
/// `ORACLE_DENSE` of bpf/abi/oracle.h.
const DENSE: u32 = 1 << 23;

/// What is painted on.
pub(super) struct Canvas<'a> {
    /// The values of each /17, [`LINES`].
    pub(super) lines: &'a mut [oracle_line],
    /// Room for a value for each of [`NETWORKS`].
    pub(super) dense: &'a mut [u16],
    /// [`MAX_BLOCKS`] blocks of the groups of 256 addresses.
    pub(super) blocks: &'a mut [u16],
}

/// What was painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Painted {
    /// Prefixes.
    pub(super) routes: usize,
    /// Blocks that are used.
    pub(super) blocks: usize,
    /// Bytes of lines and of what is kept elsewhere.
    pub(super) bytes: usize,
}

impl Canvas<'_> {
    /// Writes the group, below `count`, of each address.
    pub(super) fn paint(
        self,
        count: usize,
        routes: impl IntoIterator<Item = (Ipv4Net, u16)>,
    ) -> Result<Painted, PublishError> {
        let bytes = size_of_val(self.lines);
        let mut painter = Painter {
            lines: Lines {
                lines: self.lines,
                dense: self.dense,
                quarters: 0,
                at: 0,
                values: [0; LINE],
            },
            blocks: self.blocks,
            used: 0,
            at: 0,
            block: [0; BLOCK],
        };
        // The prefixes that cover the present address, each with its end and group.
        let mut cover: Vec<(u64, u16)> = Vec::with_capacity(33);
        let mut number = 0;
        for (prefix, group) in routes {
            number += 1;
            if usize::from(group) >= count {
                return Err(PublishError::Inconsistent("a prefix is in a group that is not there"));
            }
            let start = u64::from(u32::from(prefix.network()));
            let end = u64::from(u32::from(prefix.broadcast())) + 1;
            while let Some((until, group)) = cover.pop_if(|(until, _)| *until <= start) {
                painter.paint(until, group)?;
            }
            if start < painter.at || cover.last().is_some_and(|(until, _)| *until < end) {
                return Err(PublishError::Order(prefix));
            }
            painter.paint(start, cover.last().map_or(0, |(_, group)| *group))?;
            cover.push((end, group));
        }
        while let Some((until, group)) = cover.pop() {
            painter.paint(until, group)?;
        }
        painter.paint((NETWORKS * BLOCK) as u64, 0)?;
        Ok(Painted {
            routes: number,
            blocks: painter.used,
            bytes: bytes + painter.lines.quarters * QUARTER * size_of::<u16>(),
        })
    }
}

/// Writes from the lowest address to the highest.
struct Painter<'a> {
    lines: Lines<'a>,
    blocks: &'a mut [u16],
    /// Blocks that are used.
    used: usize,
    /// The next address.
    at: u64,
    /// The groups of the /24 of that address, as far as it.
    block: [u16; BLOCK],
}

impl Painter<'_> {
    /// Gives a group all addresses from the present one up to but not including `until`.
    fn paint(&mut self, until: u64, group: u16) -> Result<(), PublishError> {
        while self.at < until {
            let (network, from) = (self.at / 256, (self.at % 256) as usize);
            if from == 0 && until - self.at >= 256 {
                self.lines.push((until / 256 - network) as usize, group);
                self.at = until / 256 * 256;
                continue;
            }
            let end = (network + 1) * 256;
            let to = until.min(end);
            self.block[from..from + (to - self.at) as usize].fill(group);
            self.at = to;
            if to == end {
                let value = self.close()?;
                self.lines.push(1, value);
            }
        }
        Ok(())
    }

    /// The value for a /24 that was not painted in one piece.
    fn close(&mut self) -> Result<u16, PublishError> {
        let first = self.block[0];
        if self.block.iter().all(|group| *group == first) {
            return Ok(first);
        }
        if self.used == MAX_BLOCKS {
            return Err(PublishError::Blocks);
        }
        let at = self.used * BLOCK;
        self.blocks[at..at + BLOCK].copy_from_slice(&self.block);
        self.used += 1;
        Ok((MAX_GROUPS + self.used - 1) as u16)
    }
}

/// Writes lines.
struct Lines<'a> {
    lines: &'a mut [oracle_line],
    dense: &'a mut [u16],
    /// Quarters of lines that are kept there.
    quarters: usize,
    /// The next /24.
    at: usize,
    /// The values of its line, as far as it.
    values: [u16; LINE],
}

impl Lines<'_> {
    /// Gives so many /24s a value.
    fn push(&mut self, mut count: usize, value: u16) {
        while count > 0 {
            let (line, offset) = (self.at / LINE, self.at % LINE);
            if offset == 0 && count >= LINE {
                let whole = count / LINE;
                let mut one = oracle_line::default();
                one.values[0] = value;
                self.lines[line..line + whole].fill(one);
                self.at += whole * LINE;
                count -= whole * LINE;
                continue;
            }
            let taken = count.min(LINE - offset);
            self.values[offset..offset + taken].fill(value);
            self.at += taken;
            count -= taken;
            if offset + taken == LINE {
                self.lines[line] = self.close();
            }
        }
    }

    /// The line of the values.
    fn close(&mut self) -> oracle_line {
        let dense = self.choose();
        let mut line = oracle_line::default();
        let (mut used, mut last) = (0, None);
        for (number, values) in self.values.as_chunks::<PART>().0.iter().enumerate() {
            let quarter = number * PART / QUARTER;
            let runs = if dense[quarter] {
                if (number * PART).is_multiple_of(QUARTER) {
                    self.dense[self.quarters * QUARTER..][..QUARTER]
                        .copy_from_slice(&self.values[quarter * QUARTER..][..QUARTER]);
                    self.quarters += 1;
                }
                DENSE | (self.quarters as u32 - 1)
            } else {
                let mut begins = 0;
                for (offset, value) in values.iter().enumerate() {
                    if last != Some(*value) {
                        last = Some(*value);
                        line.values[used] = *value;
                        used += 1;
                        begins |= 1 << offset;
                    }
                }
                begins >> 1 | (used as u32 - 1) << 15
            };
            line.runs[3 * number..3 * number + 3].copy_from_slice(&runs.to_le_bytes()[..3]);
        }
        line
    }

    /// The quarters of the line that are to be kept elsewhere, so that there is room for the others.
    fn choose(&self) -> [bool; LINE / QUARTER] {
        let (quarters, _) = self.values.as_chunks::<QUARTER>();
        let begin =
            |quarter: &[u16; QUARTER]| quarter.windows(2).filter(|two| two[0] != two[1]).count();
        let mut runs = [0; LINE / QUARTER];
        for (runs, quarter) in runs.iter_mut().zip(quarters) {
            *runs = begin(quarter) + 1;
        }
        let mut dense = [false; LINE / QUARTER];
        loop {
            // At the most: a run may go on from the quarter before.
            let first = |quarter: usize| {
                let before = quarter.checked_sub(1).filter(|before| !dense[*before]);
                before.is_some_and(|before| quarters[before].last() == quarters[quarter].first())
            };
            let needed = (0..runs.len())
                .map(|quarter| runs[quarter] - usize::from(runs[quarter] > 0 && first(quarter)));
            if needed.sum::<usize>() <= ROOM {
                return dense;
            }
            let most = (0..runs.len()).max_by_key(|quarter| runs[*quarter]).unwrap_or(0);
            (dense[most], runs[most]) = (true, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    /// A seeded generator.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as u32
        }
    }

    /// Paints and looks addresses up as `oracle_runs`, `oracle_value` and `oracle_group` do.
    fn lookup(
        routes: &[(Ipv4Net, u16)],
    ) -> Result<(impl Fn(Ipv4Addr) -> u16 + use<>, Painted), PublishError> {
        let mut lines = vec![oracle_line { runs: [7; 24], values: [7; ROOM] }; LINES];
        let mut dense = vec![7; NETWORKS];
        let mut blocks = vec![7; MAX_BLOCKS * BLOCK];
        let canvas = Canvas { lines: &mut lines, dense: &mut dense, blocks: &mut blocks };
        let painted = canvas.paint(MAX_GROUPS, routes.iter().copied())?;
        let find = move |address: Ipv4Addr| {
            let address = u32::from(address) as usize;
            let line = &lines[address >> 15];
            let runs = &line.runs[(address >> 12 & 7) * 3..][..3];
            let runs = u32::from_le_bytes([runs[0], runs[1], runs[2], 0]);
            let value = if runs & DENSE != 0 {
                dense[(runs as usize & 0x7ffff) << 5 | address >> 8 & 31]
            } else {
                let back = u64::from((runs & 0x7fff) >> (address >> 8 & 15));
                let counted = ((back * 0x2000_4000_8001) & 0x0111_1111_1111_1111)
                    .wrapping_mul(0x1111_1111_1111_1111)
                    >> 60;
                assert_eq!(counted as u32, back.count_ones());
                line.values[(runs >> 15 & 31) as usize - counted as usize]
            };
            match usize::from(value) {
                group @ 0..MAX_GROUPS => group as u16,
                block => blocks[(block - MAX_GROUPS) * BLOCK + address % BLOCK],
            }
        };
        Ok((find, painted))
    }

    /// The group of the longest prefix, of equal prefixes the last.
    fn scan(routes: &[(Ipv4Net, u16)], address: Ipv4Addr) -> u16 {
        let best = routes.iter().filter(|(prefix, _)| prefix.contains(&address));
        best.max_by_key(|(prefix, _)| prefix.prefix_len()).map_or(0, |(_, group)| *group)
    }

    #[test]
    fn painted_tables_agree_with_a_linear_scan() {
        let mut random = Random(1);
        // Close together, so that prefixes cover each other, and of all lengths.
        let mut routes: Vec<_> = (0..600)
            .map(|group| {
                let address =
                    Ipv4Addr::from(random.next() & 0x0003_ffff | (random.next() % 3) << 30);
                let prefix = Ipv4Net::new(address, (random.next() % 33) as u8).unwrap().trunc();
                (prefix, group)
            })
            .collect();
        routes.sort_by_key(|(prefix, _)| (prefix.network(), prefix.prefix_len()));
        let (find, _) = lookup(&routes).unwrap();
        for _ in 0..20_000 {
            let address = Ipv4Addr::from(random.next() & 0x0003_ffff | (random.next() % 4) << 30);
            assert_eq!(find(address), scan(&routes, address), "{address}");
        }
    }

    /// The first and last address of each /24 of sixteen /17s, in which runs are of all lengths: sparse
    /// lines, lines with one to four dense quarters, runs over several lines. Few groups, so that
    /// many /24s in a row are alike though their prefixes are not.
    #[test]
    fn every_run_agrees_with_a_linear_scan() {
        let mut random = Random(2);
        let mut routes = Vec::new();
        let (mut at, end) = (0x0afc_0000_u32, 0x0b04_0000_u32);
        while at < end {
            // Half of the lines are mostly /24s, but of some only a part.
            let dense = at & 0x8000 == 0 && (at & 0x7fff) < (at >> 16 & 3 | 1) << 13;
            let longest = 32 - at.trailing_zeros().min(15);
            let length = if dense { [24, 24, 24, 23] } else { [24, 22, 20, 18] };
            let length = length[random.next() as usize % 4].max(longest);
            let group = random.next() % if at & 0x1_0000 == 0 { 3 } else { 9000 };
            // Some are skipped: group 0.
            if !random.next().is_multiple_of(8) {
                routes.push((Ipv4Net::new(at.into(), length as u8).unwrap(), group as u16));
            }
            at += 1 << (32 - length);
        }
        let (find, painted) = lookup(&routes).unwrap();
        let mut rest = &routes[..];
        for network in 0x0a_fbf0..0x0b_0410_u32 {
            let (first, last) = (Ipv4Addr::from(network << 8), Ipv4Addr::from(network << 8 | 255));
            while rest.first().is_some_and(|(prefix, _)| prefix.broadcast() < first) {
                rest = &rest[1..];
            }
            let group = scan(&rest[..rest.len().min(1)], first);
            assert_eq!([find(first), find(last)], [group; 2], "{first}");
        }
        let quarters = (painted.bytes - LINES * size_of::<oracle_line>()) / (QUARTER * 2);
        assert!((8..64).contains(&quarters), "{quarters} of 64");
    }

    #[test]
    fn a_group_for_each_network_fits() {
        // The first and the last octet.
        let networks = || (0..0x1_0000).chain(0xff_0000..0x100_0000_u32);
        let routes: Vec<_> = networks()
            .map(|network| {
                (Ipv4Net::new_assert((network << 8).into(), 24), (network % 1009) as u16)
            })
            .collect();
        let (find, painted) = lookup(&routes).unwrap();
        let dense = networks().count() * size_of::<u16>();
        assert_eq!(painted.bytes, LINES * size_of::<oracle_line>() + dense);
        for network in networks() {
            assert_eq!(u32::from(find((network << 8 | 77).into())), network % 1009);
        }
    }

    #[test]
    fn the_edges_of_the_address_space_are_painted() {
        let (find, _) = lookup(&[(net("0.0.0.0/32"), 1), (net("255.255.255.255/32"), 2)]).unwrap();
        let at = |text: &str| find(text.parse().unwrap());
        assert_eq!([at("0.0.0.0"), at("0.0.0.1"), at("255.255.255.254")], [1, 0, 0]);
        assert_eq!([at("255.255.255.255"), at("128.0.0.1")], [2, 0]);
        let (find, painted) = lookup(&[(net("0.0.0.0/0"), 3)]).unwrap();
        assert_eq!(find(Ipv4Addr::BROADCAST), 3);
        assert_eq!((painted.routes, painted.blocks), (1, 0));
    }

    #[test]
    fn refuses_prefixes_out_of_order_and_too_many_blocks() {
        let refusal = |routes: &[_]| lookup(routes).err();
        let wrong = [(net("10.0.0.0/24"), 1), (net("10.0.0.0/8"), 2)];
        assert_eq!(refusal(&wrong), Some(PublishError::Order(wrong[1].0)));
        let wrong = [(net("10.0.1.0/24"), 1), (net("10.0.0.0/24"), 2)];
        assert_eq!(refusal(&wrong), Some(PublishError::Order(wrong[1].0)));
        let hosts = |count: u32| -> Vec<_> {
            (0..count).map(|i| (Ipv4Net::new_assert((i << 8 | 1).into(), 32), 1)).collect()
        };
        assert_eq!(refusal(&hosts(MAX_BLOCKS as u32)), None);
        assert_eq!(refusal(&hosts(MAX_BLOCKS as u32 + 1)), Some(PublishError::Blocks));
    }
}
