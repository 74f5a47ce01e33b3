//! The shapers of all internal interfaces, put there with the first limit and taken away with the last.

use super::classes::{Change, Classes};
use crate::config::Rate;
use datapath::shaper::{self, Direction, Error, Shaper, Usage};
use nix::net::if_::if_nametoindex;
use std::collections::{BTreeMap, BTreeSet};

/// The device where packets from internal hosts queue.
const IFB: &str = "nigh-ifb";

/// The shapers.
#[derive(Debug, Default)]
pub(super) struct Shapers {
    interfaces: Vec<u32>,
    open: Vec<Shaper>,
}

impl Shapers {
    pub(super) fn new(interfaces: Vec<u32>) -> Self {
        Self { interfaces, open: Vec::new() }
    }

    /// Puts them on the interfaces, unless they are there; takes over what an earlier process left.
    pub(super) fn open(&mut self) -> Result<(), Error> {
        if self.open.is_empty() {
            let mut open = Vec::new();
            for interface in &self.interfaces {
                match Shaper::open(*interface, IFB) {
                    Ok(shaper) => open.push(shaper),
                    Err(error) => {
                        close(open);
                        return Err(error);
                    }
                }
            }
            self.open = open;
        }
        Ok(())
    }

    /// Whether an earlier process has left some. To put them there only to take them away again would lose
    /// what passes meanwhile.
    pub(super) fn are_left() -> bool {
        if_nametoindex(IFB).is_ok()
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The device where packets from internal hosts queue.
    pub(super) fn queue(&self) -> Option<u32> {
        self.open.first().map(Shaper::ifb)
    }

    pub(super) fn change(&mut self, change: &Change) -> Result<(), Error> {
        self.open.iter_mut().try_for_each(|shaper| match change {
            Change::Set(number, limit) => {
                shaper.class(*number, rate(limit.from_internal), rate(limit.to_internal))
            }
            Change::Remove(number) => shaper.remove(*number),
        })
    }

    /// An interface has appeared, or went and came again with another number.
    pub(super) fn replace(&mut self, from: u32, to: u32, classes: &Classes) -> Result<(), Error> {
        let before = self.interfaces.iter().position(|interface| *interface == from);
        let place = before.unwrap_or(self.interfaces.len());
        match before {
            Some(place) => self.interfaces[place] = to,
            None => self.interfaces.push(to),
        }
        if self.open.is_empty() {
            return Ok(());
        }
        let shaper = Shaper::open(to, IFB)?;
        match self.open.get_mut(place) {
            Some(open) => *open = shaper,
            None => self.open.push(shaper),
        }
        let Some(open) = self.open.get_mut(place) else { return Ok(()) };
        for (number, limit) in classes.limits() {
            open.class(number, rate(limit.from_internal), rate(limit.to_internal))?;
        }
        Ok(())
    }

    /// Removes what an earlier process has left and nobody uses.
    pub(super) fn keep(&mut self, wanted: &BTreeSet<u16>) -> Result<(), Error> {
        self.open.iter_mut().try_for_each(|shaper| shaper.keep(wanted))
    }

    /// What went through each class: bytes from internal hosts, bytes to internal hosts, packets dropped.
    pub(super) fn usage(&mut self) -> BTreeMap<u16, [u64; 3]> {
        let mut sums: BTreeMap<u16, [u64; 3]> = BTreeMap::new();
        for (number, shaper) in self.open.iter_mut().enumerate() {
            for Usage { class, direction, bytes, dropped, .. } in shaper.usage().unwrap_or_default()
            {
                let [up, down, lost] = sums.entry(class).or_default();
                match direction {
                    // All share one device for what comes from internal hosts.
                    Direction::Up if number > 0 => {}
                    Direction::Up => {
                        *up += bytes;
                        *lost += dropped;
                    }
                    Direction::Down => {
                        *down += bytes;
                        *lost += dropped;
                    }
                }
            }
        }
        sums
    }

    /// Takes them away.
    pub(super) fn close(&mut self) {
        close(std::mem::take(&mut self.open));
    }
}

fn rate(rate: Option<Rate>) -> Option<shaper::Rate> {
    rate.map(|rate| shaper::Rate { bytes_a_second: rate.0.div_ceil(8) })
}

fn close(shapers: Vec<Shaper>) {
    for (number, shaper) in shapers.into_iter().enumerate() {
        // The device that all share is gone with the first.
        if let Err(error) = shaper.close()
            && number == 0
        {
            tracing::warn!(%error, "limits were not removed");
        }
    }
}
