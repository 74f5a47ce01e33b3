//! Clocks of hosts in the timestamps of TCP (RFC 7323, section 5.4): how fast they run, and since when.
//!
//! Some systems count from their start for all connections, so a timestamp is their uptime; others begin each
//! connection at a number of its own. Two connections of a host whose clocks agree reveal which it is.

use super::outline::{Host, Outline};
use crate::counted::counted;
use rustc_hash::FxHashMap;
use std::{collections::hash_map::Entry, fmt};

/// Most connections whose clocks are inspected.
const CONNECTIONS: usize = 1 << 16;
/// A clock is only read over this many of its ticks, since each reading may be wrong by one.
const TICKS: f64 = 10.0;
/// Clocks that differ by fewer seconds are one.
const SAME: f64 = 1.0;
/// Rates of clocks in hertz that systems have (RFC 7323 allows 1 Hz to 1 kHz).
const RATES: [f64; 5] = [1.0, 10.0, 100.0, 250.0, 1000.0];

/// One direction of a connection.
type Connection = (Host, Option<Host>, [u16; 2]);

/// A timestamp at a time, in nanoseconds.
type Reading = (u64, u32);

/// The clocks of a capture.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// Packets with a timestamp.
    pub(super) packets: u64,
    /// The first and the last reading of each.
    connections: FxHashMap<Connection, (Reading, Reading)>,
}

impl Clocks {
    pub(super) fn add(&mut self, packet: &Outline) {
        let value = packet.tcp.as_ref().and_then(|tcp| tcp.timestamp);
        let Some(value) = value.filter(|value| *value != 0) else { return };
        self.packets += 1;
        let Some(host) = packet.host() else { return };
        let reading = (packet.time, value);
        let room = self.connections.len() < CONNECTIONS;
        let connection = (host, packet.destination.map(Host::Address), packet.ports);
        match self.connections.entry(connection) {
            Entry::Occupied(mut known) => known.get_mut().1 = reading,
            Entry::Vacant(new) if room => {
                new.insert((reading, reading));
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Rates of the clocks in hertz, and uptimes in seconds of hosts with one clock for all connections.
    fn read(&self) -> (Vec<f64>, Vec<f64>) {
        let mut rates = Vec::new();
        let mut starts: FxHashMap<Host, Vec<(f64, f64)>> = FxHashMap::default();
        for ((host, ..), (first, last)) in &self.connections {
            let Some(rate) = rate(*first, *last) else { continue };
            rates.push(rate);
            let uptime = f64::from(last.1) / rate;
            starts.entry(*host).or_default().push((last.0 as f64 / 1e9 - uptime, uptime));
        }
        let mut uptimes = Vec::new();
        for mut of_host in starts.into_values() {
            of_host.sort_by(|a, b| a.0.total_cmp(&b.0));
            let same = of_host.windows(2).find(|pair| pair[1].0 - pair[0].0 < SAME);
            uptimes.extend(same.map(|pair| pair[1].1));
        }
        rates.sort_by(f64::total_cmp);
        uptimes.sort_by(f64::total_cmp);
        (rates, uptimes)
    }
}

/// The rate of [`RATES`] that is near, if one is: others are no clocks, but numbers that were replaced.
fn rate(first: Reading, last: Reading) -> Option<f64> {
    let seconds = last.0.checked_sub(first.0)? as f64 / 1e9;
    let ticks = f64::from(last.1.wrapping_sub(first.1));
    let seen = (seconds > 0.0 && ticks >= TICKS).then_some(ticks / seconds)?;
    let is_near = |rate: &&f64| (seen - **rate).abs() <= 0.2 * **rate;
    RATES.iter().find(is_near).copied()
}

impl fmt::Display for Clocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = counted(self.packets, "packet", "packets");
        write!(f, "TCP timestamps are left in {packets}")?;
        let (rates, uptimes) = self.read();
        if self.connections.len() == CONNECTIONS {
            write!(f, " (of which {CONNECTIONS} connections were inspected)")?;
        }
        match rates.get(rates.len() / 2) {
            None => f.write_str(", in which no running clock can be read")?,
            Some(rate) => {
                let clocks = counted(rates.len(), "clock that runs", "clocks that run");
                write!(f, ", of {clocks}, most at {rate} Hz")?;
            }
        }
        if let Some(longest) = uptimes.last() {
            let (count, days) = (uptimes.len(), longest / 86_400.0);
            write!(f, "; hosts whose uptime shows: {count} (the longest: {days:.1} days)")?;
        } else if !rates.is_empty() {
            f.write_str("; no two connections share one, so no uptime is certain")?;
        }
        Ok(())
    }
}
