//! The leases of a station: what it does for others, what it does itself, and for how long.
//!
//! A pure value; times are nanoseconds of a clock that only runs forward. Each lease ends by itself.

use super::message::Slot;
use std::collections::BTreeMap;

/// By how much a lease may reach into a slot of the timetable: runs follow each other without a gap there,
/// and none begins to the nanosecond. A run that ends in time leaves more than that.
const SLACK_NS: u64 = 2_000_000_000;

/// The number of a lease, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lease(pub u64);

/// One lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// For which station; `None` for a test of this one.
    pub holder: Option<String>,
    /// Which connection it was accepted over; leases of one that is gone end.
    pub connection: u64,
    /// What was accepted.
    pub what: Accepted,
    /// What it shares with others.
    pub slot: Slot,
    /// When it ends.
    pub until_ns: u64,
}

/// What can be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Accepted {
    /// To reflect.
    Delay,
    /// To be the other end of a throughput test.
    Throughput,
    /// A reservation without a test here, or a test of this station itself.
    Slot,
}

impl Accepted {
    /// The word for it, as in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Throughput => "throughput",
            Self::Slot => "slot",
        }
    }
}

/// A slot that the timetable has given to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The station that will ask for it; `None` for this one.
    pub holder: Option<String>,
    /// What for.
    pub slot: Slot,
    /// When it begins.
    pub begin_ns: u64,
    /// When it ends.
    pub until_ns: u64,
}

/// The time is reserved until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// When it may be free.
    pub until_ns: u64,
}

/// All leases of a station.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    leases: BTreeMap<u64, Entry>,
    last: u64,
    planned: Vec<Planned>,
}

impl Reservations {
    /// Gives a lease until a moment, unless it would disturb another or a run that is planned.
    ///
    /// # Errors
    /// When another test has the time.
    pub fn give(&mut self, entry: Entry, now_ns: u64) -> Result<Lease, Busy> {
        let leases = self.leases.values().filter(|other| other.until_ns > now_ns);
        let held = leases.filter(|other| disturb(&entry.slot, &other.slot)).map(|o| o.until_ns);
        let planned = self.planned.iter().filter(|other| {
            let own = other.holder == entry.holder && other.slot == entry.slot;
            let meets =
                other.begin_ns + SLACK_NS < entry.until_ns && other.until_ns > now_ns + SLACK_NS;
            !own && meets && disturb(&entry.slot, &other.slot)
        });
        match held.chain(planned.map(|other| other.until_ns)).max() {
            Some(until_ns) => Err(Busy { until_ns }),
            None => {
                self.last += 1;
                self.leases.insert(self.last, entry);
                Ok(Lease(self.last))
            }
        }
    }

    /// The timetable's plan for the near future, in place of the one before.
    pub fn plan(&mut self, planned: Vec<Planned>) {
        self.planned = planned;
    }

    /// A lease of a connection.
    pub fn get(&self, lease: Lease, connection: u64) -> Option<&Entry> {
        self.leases.get(&lease.0).filter(|entry| entry.connection == connection)
    }

    /// Lets a lease of a connection end later, or earlier; whether there is one.
    pub fn renew(&mut self, lease: Lease, connection: u64, until_ns: u64) -> bool {
        let entry = self.leases.get_mut(&lease.0).filter(|entry| entry.connection == connection);
        entry.map(|entry| entry.until_ns = until_ns).is_some()
    }

    /// Ends a lease of a connection; whether there was one.
    pub fn end(&mut self, lease: Lease, connection: u64) -> bool {
        self.get(lease, connection).is_some() && self.leases.remove(&lease.0).is_some()
    }

    /// Ends all leases that were accepted over a connection.
    pub fn gone(&mut self, connection: u64) -> Vec<Lease> {
        self.take(|entry| entry.connection == connection)
    }

    /// Ends the leases whose time has come.
    pub fn expire(&mut self, now_ns: u64) -> Vec<Lease> {
        self.take(|entry| entry.until_ns <= now_ns)
    }

    /// When the next lease ends.
    pub fn next_end_ns(&self) -> Option<u64> {
        self.leases.values().map(|entry| entry.until_ns).min()
    }

    /// How many leases a station has that fit.
    pub fn count(&self, holder: &str, fits: impl Fn(&Entry) -> bool) -> usize {
        let held = |entry: &&Entry| entry.holder.as_deref() == Some(holder) && fits(entry);
        self.leases.values().filter(held).count()
    }

    /// All leases.
    pub fn entries(&self) -> impl Iterator<Item = (Lease, &Entry)> {
        self.leases.iter().map(|(number, entry)| (Lease(*number), entry))
    }

    fn take(&mut self, ends: impl Fn(&Entry) -> bool) -> Vec<Lease> {
        let mut ended = Vec::new();
        self.leases.retain(|number, entry| {
            let end = ends(entry);
            if end {
                ended.push(Lease(*number));
            }
            !end
        });
        ended
    }
}

/// Whether two tests must not run at once.
fn disturb(one: &Slot, other: &Slot) -> bool {
    one.class.disturbs(other.class) && one.uses.iter().any(|used| other.uses.contains(used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Class, jobs::Used};

    const SECOND: u64 = 1_000_000_000;

    fn slot(class: Class, stations: &[&str]) -> Slot {
        let uses = stations.iter().map(|name| Used::Station((*name).to_owned())).collect();
        Slot { test: "t".into(), class, uses }
    }

    fn entry(holder: Option<&str>, class: Class, stations: &[&str], until_ns: u64) -> Entry {
        let holder = holder.map(str::to_owned);
        Entry { holder, connection: 1, what: Accepted::Slot, slot: slot(class, stations), until_ns }
    }

    #[test]
    fn what_disturbs_is_refused_until_it_ends() {
        let mut reservations = Reservations::default();
        let exclusive = entry(Some("a"), Class::Exclusive, &["a", "b"], 100);
        let lease = reservations.give(exclusive.clone(), 0).expect("the time is free");
        let again = entry(None, Class::Normal, &["b", "c"], 150);
        assert_eq!(reservations.give(again.clone(), 50), Err(Busy { until_ns: 100 }));
        assert!(reservations.give(entry(None, Class::Background, &["b"], 900), 50).is_ok());
        assert!(reservations.give(entry(None, Class::Exclusive, &["c", "d"], 90), 50).is_ok());
        assert!(reservations.give(again.clone(), 100).is_ok(), "its end has come");
        assert_eq!(reservations.expire(100), [lease, Lease(3)]);
        assert_eq!(reservations.next_end_ns(), Some(150));
        assert_eq!(reservations.count("a", |_| true), 0);
    }

    #[test]
    fn a_lease_belongs_to_its_connection() {
        let mut reservations = Reservations::default();
        let lease = reservations.give(entry(Some("a"), Class::Normal, &["b"], 9), 0).expect("free");
        assert!(!reservations.end(lease, 2) && !reservations.renew(lease, 2, 99));
        assert!(reservations.renew(lease, 1, 20));
        assert_eq!(reservations.expire(9), []);
        assert_eq!(reservations.gone(2), []);
        assert_eq!(reservations.gone(1), [lease]);
        assert!(!reservations.end(lease, 1));
    }

    #[test]
    fn what_is_planned_is_kept_free_for_whom_it_was_planned() {
        let mut reservations = Reservations::default();
        let planned = Planned {
            holder: Some("a".into()),
            slot: slot(Class::Exclusive, &["a", "b"]),
            begin_ns: 50 * SECOND,
            until_ns: 80 * SECOND,
        };
        reservations.plan(vec![planned]);
        let until = |seconds| entry(None, Class::Normal, &["b"], seconds * SECOND);
        assert!(reservations.give(until(52), 0).is_ok(), "it ends before, or as good as");
        assert_eq!(reservations.give(until(53), 0), Err(Busy { until_ns: 80 * SECOND }));
        reservations.expire(52 * SECOND);
        let planned = entry(Some("a"), Class::Exclusive, &["a", "b"], 80 * SECOND);
        assert!(reservations.give(planned, 52 * SECOND).is_ok());
        assert!(reservations.give(until(90), 80 * SECOND).is_ok());
    }
}
