//! From prefixes, groups and ranks to the tables that the program ranks with.
//!
//! The copy that is not in force is painted again, whole, no matter what has changed: see
//! [`super::paint`].

use super::arena;
use super::limits::{MAX_GROUPS, MAX_METRICS, MAX_RANKS, PublishError};
use super::paint::Canvas;
use super::skeleton::types;
use super::{OracleProgram, State};
use ipnet::Ipv4Net;
use std::borrow::Cow;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The rank of a group that is not known from a source: after all others.
pub const UNKNOWN: u16 = u16::MAX;

/// 16-bit words before the ranks of a row.
const ROW_HEAD: usize = 4;

/// What one metric says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricRows<'a> {
    /// Rows: for each group its rank, counted from 0 without gaps, or [`UNKNOWN`], as all groups are
    /// for which a row is too short. Group 0, that of addresses without a route, has the last rank.
    pub rows: Vec<Cow<'a, [u16]>>,
    /// For each group, which of the rows ranks for sources in it; `None` leaves them to the sockets.
    pub row_of: Vec<Option<u32>>,
}

/// What was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Prefixes.
    pub routes: usize,
    /// Networks of 256 addresses with longer prefixes in them.
    pub blocks: usize,
    /// Rows of all metrics.
    pub rows: usize,
    /// Rows skipped: they have more than [`MAX_RANKS`] ranks. Their sources go to the sockets.
    pub wide_rows: usize,
    /// Rows skipped for want of room, with the same effect.
    pub skipped_rows: usize,
    /// Bytes of this copy; there are two.
    pub bytes: usize,
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
        let mut copy = self.arena.as_mut().ok_or(PublishError::NoProgram)?.copy(spare);
        let mut published = Published::default();
        let canvas = Canvas { lines: copy.lines, dense: copy.dense, blocks: copy.blocks };
        let painted = canvas.paint(groups.max(1), routes)?;
        (published.routes, published.blocks) = (painted.routes, painted.blocks);
        write_rows(&mut copy, groups, metrics, &mut published)?;
        let mut tables = copy.tables;
        // Version 0, a bit of the servcode for each metric, then Q.
        tables.head = (((1 << metrics.len()) - 1) << 16 | 1_u32 << 15).to_be();
        tables.rows.iter_mut().skip(metrics.len()).for_each(|rows| *rows = 0);
        published.bytes += painted.bytes + metrics.len() * groups * size_of::<u32>();
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
        let mut written = Vec::with_capacity(metric.rows.len());
        for row in &metric.rows {
            if row.len() > groups {
                return Err(PublishError::Inconsistent("a row has ranks for groups not there"));
            }
            let known = row.iter().filter(|rank| **rank != UNKNOWN).max();
            // The last rank is that of the unknown.
            let last = known.map_or(0, |most| most + 1);
            if row.first().is_some_and(|first| *first != UNKNOWN && Some(first) != known) {
                return Err(PublishError::Inconsistent("group 0 does not have the last rank"));
            }
            if usize::from(last) >= MAX_RANKS {
                published.wide_rows += 1;
                written.push(0);
                continue;
            }
            let Some(memory) = room.next() else {
                published.skipped_rows += 1;
                written.push(0);
                continue;
            };
            memory[0] = last + 1;
            let (ranks, rest) = memory[ROW_HEAD..].split_at_mut(row.len());
            for (to, rank) in ranks.iter_mut().zip(row.iter()) {
                *to = 2 * (*rank).min(last);
            }
            rest.fill(2 * last);
            written.push(at);
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
                Some(row) => *written
                    .get(*row as usize)
                    .ok_or(PublishError::Inconsistent("a group names a row that is not there"))?,
            };
        }
    }
    Ok(())
}
