//! What the view knows: the last answers, and what changed since the answers before.

use crate::{
    Nanos,
    control::{Event, LinkView, Links, Sort, Status},
};
use rustc_hash::FxHashMap;
use std::{cmp::Reverse, collections::VecDeque};
use terminal::screen::{Key, KeyCode, scroll};

/// So many events are kept.
const EVENTS: usize = 200;

/// A link and what it does at the moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) link: LinkView,
    /// Bits a second of IP packets.
    pub(super) bits: f64,
    /// Packets a second.
    pub(super) packets: f64,
    /// Packets a second that it did not carry.
    pub(super) drops: f64,
}

impl Row {
    /// The share of its rate that is used; nothing if it has no rate.
    pub(super) fn load(&self) -> Option<f64> {
        self.link.settings.rate.map(|rate| (self.bits / rate as f64).min(1.0))
    }
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) status: Option<Status>,
    pub(super) rows: Vec<Row>,
    pub(super) total: usize,
    pub(super) events: VecDeque<Event>,
    /// Packets a second from hosts and to hosts.
    pub(super) rates: [f64; 2],
    /// The first row that is shown.
    pub(super) top: usize,
    sort: Sort,
    paused: bool,
    before: FxHashMap<u32, [u64; 3]>,
}

impl Model {
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(super) fn sort(&self) -> Sort {
        self.sort
    }

    /// Takes the lab's answers. What is new since the last time counts per second.
    pub(super) fn update(&mut self, status: Status, links: Links) {
        let last = self.status.as_ref();
        let seconds = status.runs.since(last.map_or(Nanos::ZERO, |last| last.runs)).0 as f64 / 1e9;
        let rate = |now: u64, before: Option<u64>| match before {
            Some(before) if seconds > 0.0 => now.saturating_sub(before) as f64 / seconds,
            _ => 0.0,
        };
        let packets = |status: &Status| [status.packets.received, status.packets.sent];
        let [received, sent] = packets(&status);
        let before = last.map(packets);
        self.rates = [rate(received, before.map(|b| b[0])), rate(sent, before.map(|b| b[1]))];
        let known = std::mem::take(&mut self.before);
        self.rows = links
            .links
            .into_iter()
            .map(|link| {
                let now = [link.bytes, link.packets, link.dropped];
                // What was not shown before had nothing worth showing.
                let before = known.get(&link.number);
                self.before.insert(link.number, now);
                let at = |i: usize| rate(now[i], before.map(|before| before[i]));
                Row { bits: at(0) * 8.0, packets: at(1), drops: at(2), link }
            })
            .collect();
        self.total = links.total;
        self.status = Some(status);
        self.order();
    }

    /// Takes what has happened.
    pub(super) fn happened(&mut self, events: impl Iterator<Item = Event>) {
        for event in events {
            self.events.push_front(event);
            self.events.truncate(EVENTS);
        }
    }

    /// Does what a key says; true if that is to end.
    pub(super) fn press(&mut self, key: Key) -> bool {
        match key {
            Key::Quit => return true,
            Key::Pause => self.paused = !self.paused,
            Key::Other(KeyCode::Char('b')) => self.sort = Sort::Bytes,
            Key::Other(KeyCode::Char('k')) => self.sort = Sort::Packets,
            Key::Other(KeyCode::Char('d')) => self.sort = Sort::Drops,
            key => self.top = scroll(self.top, self.rows.len(), key).unwrap_or(self.top),
        }
        self.order();
        false
    }

    /// What happens now comes before what has happened so far.
    fn order(&mut self) {
        let key = |row: &Row| match self.sort {
            Sort::Packets => (row.packets as u64, row.link.packets),
            Sort::Drops => (row.drops as u64, row.link.dropped),
            Sort::Bytes | Sort::Number => (row.bits as u64, row.link.bytes),
        };
        self.rows.sort_by_key(|row| Reverse(key(row)));
        self.top = self.top.min(self.rows.len().saturating_sub(1));
    }
}
