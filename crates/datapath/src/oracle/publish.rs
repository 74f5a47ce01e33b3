//! From prefixes, groups and places to the tables that the program ranks with.
//!
//! The copy that is not in force is painted anew, whole: prefixes come in order, so each /24 is
//! written once, from the first to the last, with a stack of the prefixes that cover the present
//! address. That is a sweep over 32 MB and takes some ten milliseconds, no matter what has changed.

use super::arena::{self, NETWORKS};
use super::skeleton::types;
use super::{OracleProgram, State};
use ipnet::Ipv4Net;
use std::borrow::Cow;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

const fn limit(value: types::oracle_limits) -> usize {
    value.0 as usize
}

/// Candidates in a request, at the most.
pub const MAX_CANDIDATES: usize = limit(types::oracle_limits::ORACLE_CANDIDATES);
/// Groups, group 0 included, at the most.
pub const MAX_GROUPS: usize = limit(types::oracle_limits::ORACLE_FIRST_BLOCK);
/// Networks of 256 addresses with longer prefixes in them, at the most.
pub const MAX_BLOCKS: usize = u16::MAX as usize + 1 - MAX_GROUPS;
/// Metrics, at the most.
pub const MAX_METRICS: usize = limit(types::oracle_limits::ORACLE_METRICS);
/// Different places in a row, the last one of the unknown included, at the most.
pub const MAX_PLACES: usize = limit(types::oracle_limits::ORACLE_PLACES);

/// Addresses of a block.
pub(super) const BLOCK: usize = 256;

/// The place of a group that is not known from a source: after all others.
pub const UNKNOWN: u16 = u16::MAX;

/// 16-bit words before the places of a row.
const ROW_HEAD: usize = 4;

/// What one metric says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricRows<'a> {
    /// Rows: for each group its place, counted from 0 without gaps, or [`UNKNOWN`], as all groups are
    /// for which a row is too short. Group 0, that of addresses without a route, has the last place.
    pub rows: Vec<Cow<'a, [u16]>>,
    /// For each group, which of the rows ranks for sources in it; `None` leaves them to the sockets.
    pub row_of: Vec<Option<u32>>,
}

/// What was put in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Prefixes.
    pub routes: usize,
    /// Networks of 256 addresses with longer prefixes in them.
    pub blocks: usize,
    /// Rows of all metrics.
    pub rows: usize,
    /// Rows left out: they have more than [`MAX_PLACES`] places. Their sources go to the sockets.
    pub wide_rows: usize,
    /// Rows left out for want of room, with the same effect.
    pub unplaced_rows: usize,
    /// Bytes of this copy; there are two.
    pub bytes: usize,
}

/// The tables cannot be put in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Too many groups.
    #[error("{0} groups of prefixes; the driver ranks among at most {MAX_GROUPS}")]
    Groups(usize),
    /// Too many /24 networks with longer prefixes.
    #[error(
        "more than {MAX_BLOCKS} networks of 256 addresses have prefixes longer than /24; that is the most that the driver keeps"
    )]
    Blocks,
    /// Too many metrics.
    #[error("{0} metrics; the driver ranks by at most {MAX_METRICS}")]
    Metrics(usize),
    /// A prefix stands before one that begins before it or covers it.
    #[error("the prefix {0} is out of order; this is a defect, please report it")]
    Order(Ipv4Net),
    /// A group or row that there is none of, or group 0 not last.
    #[error("{0}; this is a defect, please report it")]
    Inconsistent(&'static str),
}

impl OracleProgram {
    /// Puts tables in force for every packet that arrives after this returns, all at once: `routes`
    /// in order of address, then length, each with its group. Of equal prefixes the last counts.
    ///
    /// # Errors
    /// When the tables do not fit. Then none are in force: what is not as the sockets have it must
    /// not be answered.
    pub fn publish(
        &self,
        routes: impl IntoIterator<Item = (Ipv4Net, u16)>,
        groups: usize,
        metrics: &[MetricRows<'_>],
    ) -> Result<Published, PublishError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let active = state.active().load(Ordering::Relaxed);
        let ready = types::oracle_state::ORACLE_READY.0;
        match state.write(active, routes, groups, metrics) {
            Ok(published) => {
                state.activate((active ^ types::oracle_state::ORACLE_TABLES.0) | ready);
                Ok(published)
            }
            Err(error) => {
                state.activate(active & !ready);
                Err(error)
            }
        }
    }
}

impl State {
    /// Writes the copy that is not in force.
    fn write(
        &mut self,
        active: u32,
        routes: impl IntoIterator<Item = (Ipv4Net, u16)>,
        groups: usize,
        metrics: &[MetricRows<'_>],
    ) -> Result<Published, PublishError> {
        if groups > MAX_GROUPS {
            return Err(PublishError::Groups(groups));
        }
        if metrics.len() > MAX_METRICS {
            return Err(PublishError::Metrics(metrics.len()));
        }
        let spare = usize::from(active & types::oracle_state::ORACLE_TABLES.0 == 0);
        let mut copy = self.arena.copy(spare);
        let mut published = Published::default();
        (published.routes, published.blocks) =
            paint(copy.groups, copy.blocks, groups.max(1), routes)?;
        write_rows(&mut copy, groups, metrics, &mut published)?;
        let mut tables = copy.tables;
        // Version 0, a bit of the servcode for each metric, then Q.
        tables.head = (((1 << metrics.len()) - 1) << 16 | 1_u32 << 15).to_be();
        tables.rows.iter_mut().skip(metrics.len()).for_each(|rows| *rows = 0);
        published.bytes += size_of_val(copy.groups)
            + published.blocks * BLOCK * size_of::<u16>()
            + metrics.len() * groups * size_of::<u32>();
        self.data.oracle_tables[spare] = tables;
        Ok(published)
    }
}

fn write_rows(
    copy: &mut arena::Copy<'_>,
    groups: usize,
    metrics: &[MetricRows<'_>],
    published: &mut Published,
) -> Result<(), PublishError> {
    let stride = (ROW_HEAD + groups).next_multiple_of(32);
    let mut room = copy.rows.chunks_exact_mut(stride);
    let mut at = copy.rows_at;
    for (metric, rows_of) in metrics.iter().zip(copy.rows_of.chunks_exact_mut(MAX_GROUPS)) {
        let mut placed = Vec::with_capacity(metric.rows.len());
        for row in &metric.rows {
            if row.len() > groups {
                return Err(PublishError::Inconsistent("a row has places for groups not there"));
            }
            let known = row.iter().filter(|place| **place != UNKNOWN).max();
            // The last place is that of the unknown.
            let last = known.map_or(0, |most| most + 1);
            if row.first().is_some_and(|first| *first != UNKNOWN && Some(first) != known) {
                return Err(PublishError::Inconsistent("group 0 does not have the last place"));
            }
            if usize::from(last) >= MAX_PLACES {
                published.wide_rows += 1;
                placed.push(0);
                continue;
            }
            let Some(memory) = room.next() else {
                published.unplaced_rows += 1;
                placed.push(0);
                continue;
            };
            memory[0] = last + 1;
            let (places, rest) = memory[ROW_HEAD..].split_at_mut(row.len());
            for (to, place) in places.iter_mut().zip(row.iter()) {
                *to = (*place).min(last);
            }
            rest.fill(last);
            placed.push(at);
            at = at.wrapping_add((stride * size_of::<u16>()) as u32);
            published.rows += 1;
            published.bytes += stride * size_of::<u16>();
        }
        if metric.row_of.len() != groups {
            return Err(PublishError::Inconsistent("not each group has its row named"));
        }
        for (to, row) in rows_of.iter_mut().zip(&metric.row_of) {
            *to = match row {
                None => 0,
                Some(row) => *placed
                    .get(*row as usize)
                    .ok_or(PublishError::Inconsistent("a group names a row that is not there"))?,
            };
        }
    }
    Ok(())
}

/// Writes what each /24 is. Gives how many prefixes there were and how many blocks it took.
fn paint(
    groups: &mut [u16],
    blocks: &mut [u16],
    count: usize,
    routes: impl IntoIterator<Item = (Ipv4Net, u16)>,
) -> Result<(usize, usize), PublishError> {
    let mut painter = Painter { groups, blocks, used: 0, at: 0, block: [0; BLOCK] };
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
    Ok((number, painter.used))
}

/// Writes from the lowest address to the highest.
struct Painter<'a> {
    groups: &'a mut [u16],
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
            let (network, from) = ((self.at / 256) as usize, (self.at % 256) as usize);
            if from == 0 && until - self.at >= 256 {
                let next = (until / 256) as usize;
                self.groups[network..next].fill(group);
                self.at = next as u64 * 256;
                continue;
            }
            let end = (network as u64 + 1) * 256;
            let to = until.min(end);
            self.block[from..from + (to - self.at) as usize].fill(group);
            self.at = to;
            if to == end {
                self.groups[network] = self.close()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn net(text: &str) -> Ipv4Net {
        text.parse().unwrap()
    }

    /// Paints and looks addresses up as the program does.
    fn lookup(routes: &[(Ipv4Net, u16)]) -> Result<impl Fn(Ipv4Addr) -> u16 + use<>, PublishError> {
        let mut groups = vec![7; NETWORKS];
        let mut blocks = vec![7; MAX_BLOCKS * BLOCK];
        paint(&mut groups, &mut blocks, MAX_GROUPS, routes.iter().copied())?;
        Ok(move |address: Ipv4Addr| {
            let address = u32::from(address) as usize;
            match usize::from(groups[address / 256]) {
                group @ 0..MAX_GROUPS => group as u16,
                block => blocks[(block - MAX_GROUPS) * BLOCK + address % 256],
            }
        })
    }

    #[test]
    fn painted_tables_agree_with_a_linear_scan() {
        let mut seed = 1_u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u32
        };
        // Close together, so that prefixes cover each other, and of all lengths.
        let mut routes: Vec<_> = (0..600)
            .map(|group| {
                let address = Ipv4Addr::from(random() & 0x0003_ffff | (random() % 3) << 30);
                let prefix = Ipv4Net::new(address, (random() % 33) as u8).unwrap().trunc();
                (prefix, group)
            })
            .collect();
        routes.sort_by_key(|(prefix, _)| (prefix.network(), prefix.prefix_len()));
        let find = lookup(&routes).unwrap();
        for _ in 0..20_000 {
            let address = Ipv4Addr::from(random() & 0x0003_ffff | (random() % 4) << 30);
            let best = routes.iter().filter(|(prefix, _)| prefix.contains(&address));
            // Of equal prefixes the last.
            let best = best.max_by_key(|(prefix, _)| prefix.prefix_len());
            assert_eq!(find(address), best.map_or(0, |(_, group)| *group), "{address}");
        }
    }

    #[test]
    fn the_edges_of_the_address_space_are_painted() {
        let find = lookup(&[(net("0.0.0.0/32"), 1), (net("255.255.255.255/32"), 2)]).unwrap();
        let at = |text: &str| find(text.parse().unwrap());
        assert_eq!([at("0.0.0.0"), at("0.0.0.1"), at("255.255.255.254")], [1, 0, 0]);
        assert_eq!([at("255.255.255.255"), at("128.0.0.1")], [2, 0]);
        let find = lookup(&[(net("0.0.0.0/0"), 3)]).unwrap();
        assert_eq!(find(Ipv4Addr::BROADCAST), 3);
    }

    #[test]
    fn refuses_prefixes_out_of_order_and_too_many_blocks() {
        let wrong = [(net("10.0.0.0/24"), 1), (net("10.0.0.0/8"), 2)];
        assert_eq!(lookup(&wrong).err(), Some(PublishError::Order(wrong[1].0)));
        let wrong = [(net("10.0.1.0/24"), 1), (net("10.0.0.0/24"), 2)];
        assert_eq!(lookup(&wrong).err(), Some(PublishError::Order(wrong[1].0)));
        let hosts = |count: u32| -> Vec<_> {
            (0..count).map(|i| (Ipv4Net::new_assert((i << 8 | 1).into(), 32), 1)).collect()
        };
        assert!(lookup(&hosts(MAX_BLOCKS as u32)).is_ok());
        assert_eq!(lookup(&hosts(MAX_BLOCKS as u32 + 1)).err(), Some(PublishError::Blocks));
    }
}
