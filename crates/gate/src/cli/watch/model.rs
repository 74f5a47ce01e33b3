//! The view's state: the last answer, and what changed since the one before.

use crate::{
    control::By,
    status::{Packets, Status, TopRow, TopStatus},
};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Instant,
};
use terminal::screen::{Key, KeyCode, scroll};

/// Looks whose rates are kept: at two a second, half a minute.
pub(super) const KEPT: usize = 60;

/// An application or a host, and what it does at the moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) top: TopRow,
    /// Its rates at the last looks, bits a second, the newest last.
    pub(super) rates: VecDeque<u64>,
    /// Flows refused since the start; of applications only.
    pub(super) refused: u64,
}

/// A rate of the gate as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// Packets a second that it saw.
    pub(super) packets: f64,
    /// Packets a second that it refused.
    pub(super) refused: f64,
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) status: Option<Status>,
    pub(super) rows: Vec<Row>,
    /// By place, such as `from_internal`.
    pub(super) rates: BTreeMap<String, Rates>,
    /// Bits a second through each limit, to and from internal hosts, in the status' order.
    pub(super) limits: Vec<[f64; 2]>,
    /// The first row that is shown.
    pub(super) scrolled: usize,
    by: By,
    paused: bool,
    updated: Option<Instant>,
}

/// Refused packets, summed over the outcomes.
fn refused(packets: &Packets) -> u64 {
    let refused = |word: &str| {
        ["dropped_", "reset_"].iter().any(|prefix| word.starts_with(prefix))
            || word == "unreachable"
    };
    packets.outcomes.iter().filter(|(word, _)| refused(word)).map(|(_, count)| count).sum()
}

impl Model {
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(super) fn by(&self) -> By {
        self.by
    }

    /// Takes the gate's answer of `now`. Differences to the last one are shown per second.
    pub(super) fn update(&mut self, now: Instant, status: Status, top: TopStatus) {
        let last = self.status.take();
        let seconds = self.updated.replace(now).map_or(0.0, |before| (now - before).as_secs_f64());
        let rate = |now: u64, before: Option<u64>| match before {
            Some(before) if seconds > 0.0 => now.saturating_sub(before) as f64 / seconds,
            _ => 0.0,
        };
        self.rates = status
            .packets
            .iter()
            .map(|(place, packets)| {
                let before = last.as_ref().and_then(|last| last.packets.get(place));
                let rates = Rates {
                    packets: rate(packets.received, before.map(|before| before.received)),
                    refused: rate(refused(packets), before.map(refused)),
                };
                (place.clone(), rates)
            })
            .collect();
        self.limits = status
            .limits
            .iter()
            .map(|limit| {
                let before = last.iter().flat_map(|last| &last.limits);
                let before = before
                    .filter(|other| (&other.limit, &other.share) == (&limit.limit, &limit.share))
                    .map(|other| [other.bytes_to_internal, other.bytes_from_internal])
                    .next();
                let bits = |bytes, i: usize| rate(bytes, before.map(|before| before[i])) * 8.0;
                [bits(limit.bytes_to_internal, 0), bits(limit.bytes_from_internal, 1)]
            })
            .collect();
        let mut known: BTreeMap<_, _> = std::mem::take(&mut self.rows)
            .into_iter()
            .map(|row| (row.top.name, row.rates))
            .collect();
        self.rows = top
            .rows
            .into_iter()
            .map(|top| {
                let mut rates = known.remove(&top.name).unwrap_or_default();
                rates.push_back(top.bits_per_second);
                if rates.len() > KEPT {
                    rates.pop_front();
                }
                let refused = status.refused.get(&top.name).copied().unwrap_or_default();
                Row { top, rates, refused }
            })
            .collect();
        self.status = Some(status);
        self.scrolled = self.scrolled.min(self.rows.len().saturating_sub(1));
    }

    /// Does what a key says; true if that is to end.
    pub(super) fn press(&mut self, key: Key) -> bool {
        match key {
            Key::Quit => return true,
            Key::Pause => self.paused = !self.paused,
            Key::Other(KeyCode::Char('h' | 'a') | KeyCode::Tab) => {
                self.by = match self.by {
                    By::Application => By::Host,
                    By::Host => By::Application,
                };
                self.rows.clear();
                self.paused = false;
            }
            key => {
                self.scrolled =
                    scroll(self.scrolled, self.rows.len(), key).unwrap_or(self.scrolled);
            }
        }
        false
    }
}
