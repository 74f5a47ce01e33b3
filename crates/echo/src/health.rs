//! Decides from results of checks what is healthy: a pure core, no clock and no network.
//!
//! Every check counts its results: `fall` failures in a row make it failed, `rise` successes in a row
//! healthy again. An unambiguous result (the link is down, the program is no longer attached) is an
//! [`Outcome::Fault`] and counts at once. A check that has had no result yet is not healthy, so
//! nothing is announced before everything was seen to work.
//!
//! A check belongs to one interface or to the node. An upstream that is reached through one of the
//! interfaces depends on that interface's checks and on the node's; any other depends on all.
//! [`crate::announce`] decides what to announce.

use std::{collections::BTreeMap, fmt, time::Duration};

/// A check. The order is that of the status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The interface is up and has a carrier.
    Link(String),
    /// The program is attached to the interface, and a test run of it answers.
    Program(String),
    /// An IPv4 probe through the interface and its gateway comes back.
    Probe4(String),
    /// An IPv6 probe through the interface and its gateway comes back.
    Probe6(String),
    /// The kernel has the service addresses, if it answers itself.
    Addresses,
    /// Few arrivals are dropped by this node's own limit.
    Drops,
    /// The command of this index in `anycast.health.commands`.
    Command(usize),
}

impl Check {
    /// The interface that is checked; `None` for a check of the node.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Self::Link(name) | Self::Program(name) | Self::Probe4(name) | Self::Probe6(name) => {
                Some(name)
            }
            Self::Addresses | Self::Drops | Self::Command(_) => None,
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(name) => write!(f, "link:{name}"),
            Self::Program(name) => write!(f, "program:{name}"),
            Self::Probe4(name) => write!(f, "probe4:{name}"),
            Self::Probe6(name) => write!(f, "probe6:{name}"),
            Self::Addresses => f.write_str("addresses"),
            Self::Drops => f.write_str("drops"),
            Self::Command(index) => write!(f, "command:{index}"),
        }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Good,
    /// A failure that may be a chance event, such as one lost probe.
    Bad,
    /// An unambiguous failure: it counts at once.
    Fault,
}

/// When a check changes between healthy and failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Successes in a row after which it is healthy.
    pub rise: u32,
    /// Failures in a row after which it is failed.
    pub fall: u32,
}

/// The state of one check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Whether it counts as healthy.
    pub healthy: bool,
    /// Whether the last result was good; `None` before the first.
    pub last: Option<bool>,
    /// The detail of the last result.
    pub detail: String,
    /// How many results in a row were like the last.
    pub streak: u32,
    /// When it last changed between healthy and failed, as time since the start of the service.
    pub since: Option<Duration>,
}

/// All checks of the node.
#[derive(Clone, Debug)]
pub struct Health {
    rules: Rules,
    records: BTreeMap<Check, Record>,
}

impl Health {
    /// Begins without checks.
    pub fn new(rules: Rules) -> Self {
        Self { rules, records: BTreeMap::new() }
    }

    /// Replaces the rules; the records stay.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Sets the checks: new ones have no result yet, others are forgotten.
    pub fn expect(&mut self, checks: impl IntoIterator<Item = Check>) {
        let mut before = std::mem::take(&mut self.records);
        self.records = checks
            .into_iter()
            .map(|check| {
                let record = before.remove(&check).unwrap_or_default();
                (check, record)
            })
            .collect();
    }

    /// Whether there is this check.
    pub fn expects(&self, check: &Check) -> bool {
        self.records.contains_key(check)
    }

    /// Adds one result. An unknown check is ignored: it was removed meanwhile.
    ///
    /// Returns whether the check changed between healthy and failed.
    pub fn report(&mut self, now: Duration, check: &Check, outcome: Outcome, detail: &str) -> bool {
        let Some(record) = self.records.get_mut(check) else { return false };
        let good = outcome == Outcome::Good;
        record.streak = if record.last == Some(good) { record.streak.saturating_add(1) } else { 1 };
        record.last = Some(good);
        record.detail.clear();
        record.detail.push_str(detail);
        let healthy = match outcome {
            Outcome::Good => record.healthy || record.streak >= self.rules.rise,
            Outcome::Bad => record.healthy && record.streak < self.rules.fall,
            Outcome::Fault => false,
        };
        let changed = healthy != record.healthy;
        if changed {
            record.healthy = healthy;
            record.since = Some(now);
        }
        changed
    }

    /// The first failed check on which an upstream depends; `None` if prefixes may be announced to it.
    ///
    /// `through` is the interface towards the upstream, if that is known.
    pub fn obstacle(&self, through: Option<&str>) -> Option<(&Check, &Record)> {
        self.records.iter().find(|(check, record)| {
            let concerns = match (check.interface(), through) {
                (Some(interface), Some(through)) => interface == through,
                _ => true,
            };
            concerns && !record.healthy
        })
    }

    /// All checks, in the order of the status.
    pub fn records(&self) -> impl Iterator<Item = (&Check, &Record)> {
        self.records.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome::*, *};

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn link(name: &str) -> Check {
        Check::Link(name.into())
    }

    /// One check with rise and fall, a row of results, and whether it is healthy after each.
    #[rustfmt::skip]
    const TABLE: &[(u32, u32, &[Outcome], &str)] = &[
        (1, 1, &[Good, Bad, Good, Bad],                   "+-+-"),
        (2, 2, &[Good, Good, Bad, Bad, Good, Good],       "-++--+"),
        (2, 2, &[Good, Bad, Good, Bad, Good, Bad],        "------"),
        (2, 2, &[Good, Good, Bad, Good, Bad, Good],       "-+++++"),
        (3, 1, &[Good, Good, Good, Bad, Good, Good, Good], "--+---+"),
        (1, 3, &[Good, Bad, Bad, Good, Bad, Bad, Bad],    "++++++-"),
        (2, 9, &[Good, Good, Fault, Good, Good],          "-+--+"),
        (2, 9, &[Fault, Fault, Good, Good],               "---+"),
        (2, 2, &[Bad, Good, Good],                        "--+"),
    ];

    #[test]
    fn rise_and_fall() {
        for (rise, fall, results, expected) in TABLE {
            let mut health = Health::new(Rules { rise: *rise, fall: *fall });
            health.expect([link("a")]);
            let seen: String = results
                .iter()
                .enumerate()
                .map(|(i, outcome)| {
                    health.report(at(i as u64), &link("a"), *outcome, "");
                    if health.obstacle(None).is_none() { '+' } else { '-' }
                })
                .collect();
            assert_eq!(seen, *expected, "rise {rise}, fall {fall}: {results:?}");
        }
    }

    #[test]
    fn nothing_is_healthy_before_it_was_seen() {
        let mut health = Health::new(Rules { rise: 1, fall: 1 });
        health.expect([link("a"), Check::Drops]);
        assert_eq!(health.obstacle(None).unwrap().0, &link("a"));
        assert!(health.report(at(5), &link("a"), Good, "up"));
        assert_eq!(health.obstacle(None).unwrap().0, &Check::Drops);
        assert!(health.report(at(6), &Check::Drops, Good, ""));
        assert_eq!(health.obstacle(None), None);
        let (_, record) = health.records().next().unwrap();
        assert_eq!((record.since, record.detail.as_str()), (Some(at(5)), "up"));
    }

    #[test]
    fn an_upstream_depends_on_its_interface_and_the_node() {
        let mut health = Health::new(Rules { rise: 1, fall: 1 });
        health.expect([link("a"), link("b"), Check::Command(0)]);
        for check in [link("a"), link("b"), Check::Command(0)] {
            health.report(at(0), &check, Good, "");
        }
        health.report(at(1), &link("b"), Fault, "down");
        assert_eq!(health.obstacle(Some("a")), None);
        assert_eq!(health.obstacle(Some("b")).unwrap().1.detail, "down");
        assert_eq!(health.obstacle(None).unwrap().0, &link("b"));
        health.report(at(2), &Check::Command(0), Bad, "exit 1");
        assert_eq!(health.obstacle(Some("a")).unwrap().0, &Check::Command(0));
    }

    #[test]
    fn what_is_no_longer_expected_is_forgotten_and_the_rest_kept() {
        let mut health = Health::new(Rules { rise: 1, fall: 1 });
        health.expect([link("a"), link("b")]);
        health.report(at(0), &link("a"), Good, "");
        health.expect([link("a"), link("c")]);
        assert!(!health.report(at(1), &link("b"), Good, ""));
        assert_eq!(health.obstacle(Some("a")), None);
        assert!(health.obstacle(Some("c")).is_some());
        assert_eq!(health.records().count(), 2);
    }
}
