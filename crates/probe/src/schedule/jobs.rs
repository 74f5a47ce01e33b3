//! The jobs of a configuration: every pair of every test of the mesh.

use super::{Class, Job, scatter};
use crate::config::{ProbeConfig, TestConfig, What};
use std::collections::BTreeMap;

/// A job and what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The test, an index into the configuration's.
    pub test: usize,
    /// The station that measures.
    pub from: String,
    /// Where to, as the configuration names it.
    pub to: String,
    /// When it runs and what it shares.
    pub job: Job,
}

/// How a test gets along with others.
pub fn class(test: &TestConfig) -> Class {
    kind(test.what, test.continuous())
}

/// As [`class`], of a test that is asked for.
pub fn kind(what: What, continuous: bool) -> Class {
    match what {
        What::Throughput => Class::Exclusive,
        What::Clock => Class::Background,
        What::Owd if continuous => Class::Background,
        What::Owd | What::Ping | What::Trace | What::Http | What::Dns => Class::Normal,
    }
}

/// The jobs of all stations, in an order that is the same everywhere. Tests that measure all the time
/// have none.
pub fn jobs(config: &ProbeConfig) -> Vec<Planned> {
    let mut jobs = Vec::new();
    for (index, test) in config.tests.iter().enumerate().filter(|(_, test)| !test.continuous()) {
        for (from, to) in test.pairs() {
            let ns = |duration: std::time::Duration| {
                u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
            };
            let job = Job {
                interval_ns: ns(test.interval),
                spread_ns: ns(test.spread()),
                length_ns: ns(test.takes()),
                class: class(test),
                uses: Vec::new(),
                seed: seed(&[&test.name, from, to]),
            };
            jobs.push(Planned { test: index, from: from.to_owned(), to: to.to_owned(), job });
        }
    }
    let mut numbers = BTreeMap::new();
    for planned in &mut jobs {
        planned.job.uses = uses(config, &planned.from, &planned.to)
            .into_iter()
            .map(|used| {
                let next = numbers.len() as u32;
                *numbers.entry(used).or_insert(next)
            })
            .collect();
    }
    jobs
}

/// The stations and links that a test from one station to another, or to an address, uses.
pub fn uses(config: &ProbeConfig, from: &str, to: &str) -> Vec<Used> {
    let mut used = vec![Used::Station(from.to_owned())];
    if config.station(to).is_some() {
        used.push(Used::Station(to.to_owned()));
        for link in &config.links {
            let on = |side: &[String], name: &str| side.iter().any(|station| station == name);
            if on(&link.between, from) && on(&link.and, to)
                || on(&link.and, from) && on(&link.between, to)
            {
                used.push(Used::Link(link.name.clone()));
            }
        }
    }
    used
}

/// What a test shares with others.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Used {
    /// A station.
    Station(String),
    /// A link, by its name in the configuration.
    Link(String),
}

/// A number that follows from some words.
fn seed(words: &[&str]) -> u64 {
    let mut state = 0;
    for word in words {
        for byte in word.bytes().chain([0]) {
            state = scatter(state ^ u64::from(byte));
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_share_what_the_configuration_says() {
        let config: ProbeConfig = toml::from_str(
            r#"
            [[station]]
            name = "a"
            addresses = ["192.0.2.1"]
            [[station]]
            name = "b"
            addresses = ["192.0.2.2"]
            [[station]]
            name = "c"
            addresses = ["192.0.2.3"]
            [[link]]
            name = "l"
            between = ["c"]
            and = ["a", "b"]
            [[test]]
            name = "bulk"
            what = "throughput"
            mesh = ["a", "b", "c"]
            interval = "1h"
            [[test]]
            name = "always"
            what = "owd"
            mesh = ["a", "b"]
            interval = "1m"
            "#,
        )
        .expect("it parses");
        let jobs = jobs(&config);
        assert_eq!(jobs.len(), 6, "what measures all the time is not planned");
        let shares = |one: (&str, &str), other: (&str, &str)| {
            let find = |(from, to): (&str, &str)| {
                jobs.iter().find(|job| job.from == from && job.to == to).expect("a job")
            };
            find(one).job.uses.iter().any(|used| find(other).job.uses.contains(used))
        };
        assert!(shares(("a", "b"), ("b", "a")));
        assert!(shares(("a", "c"), ("c", "b")));
        assert_eq!(
            uses(&config, "a", "c"),
            [Used::Station("a".into()), Used::Station("c".into()), Used::Link("l".into())]
        );
        assert_eq!(uses(&config, "a", "b").len(), 2);
        assert_eq!(uses(&config, "a", "198.51.100.1").len(), 1);
        let seeds: std::collections::HashSet<u64> = jobs.iter().map(|job| job.job.seed).collect();
        assert_eq!(seeds.len(), 6);
    }
}
