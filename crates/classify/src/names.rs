//! The names of addresses, by the DNS answers that hosts got.
//!
//! Bounded in number; a name is forgotten with its time to live, or earlier when later ones need
//! its room. What one host got is its own: another one may have asked a server that lies.

use crate::{
    bounded::{Bounded, bounded},
    dns::Answer,
};
use std::{net::IpAddr, sync::Arc};

/// A name holds at least this long: programs keep addresses longer than resolvers do.
const SHORTEST_S: u64 = 300;
/// And at most this long, whatever the answer says.
const LONGEST_S: u64 = 86_400;

/// Names by address.
#[derive(Debug)]
pub struct Names {
    most: usize,
    /// By host and address.
    by_host: Bounded<(IpAddr, IpAddr), Entry>,
    /// What any host got last.
    last: Bounded<IpAddr, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    name: Arc<str>,
    until_ns: u64,
}

/// The name of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// As it was asked for, in lower case.
    pub name: Arc<str>,
    /// Whether the host itself got it, or only another one.
    pub own: bool,
}

impl Names {
    /// Room for so many addresses.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, by_host: bounded(most), last: bounded(most) }
    }

    /// Takes note of an answer to a host, seen at a time of the packets' clock.
    pub fn learn(&mut self, host: IpAddr, answer: &Answer, at_ns: u64) {
        if answer.name.is_empty() || self.most == 0 {
            return;
        }
        let name: Arc<str> = answer.name.as_str().into();
        for &(address, seconds) in &answer.addresses {
            let seconds = u64::from(seconds).clamp(SHORTEST_S, LONGEST_S);
            let until_ns = at_ns.saturating_add(seconds * 1_000_000_000);
            let entry = Entry { name: name.clone(), until_ns };
            self.by_host.put((host, address), entry.clone());
            self.last.put(address, entry);
        }
    }

    /// The name that a host last got for an address, else the one that another host got.
    pub fn of(&self, host: IpAddr, address: IpAddr, at_ns: u64) -> Option<Named> {
        let fresh = |entry: &&Entry| at_ns <= entry.until_ns;
        let named = |own| move |entry: &Entry| Named { name: entry.name.clone(), own };
        let own = self.by_host.peek(&(host, address)).filter(fresh).map(named(true));
        own.or_else(|| self.last.peek(&address).filter(fresh).map(named(false)))
    }

    /// How many addresses have a name.
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// Whether no address has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 5));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 6));

    fn answer(name: &str, number: u32, seconds: u32) -> Answer {
        Answer { id: 0, name: name.into(), addresses: vec![(address(number), seconds)] }
    }

    #[test]
    fn the_last_answer_holds_for_its_time() {
        let mut names = Names::new(10);
        names.learn(HOST, &answer("a.example", 1, 1000), 0);
        names.learn(HOST, &answer("b.example", 1, 1000), 5);
        let name = names.of(HOST, address(1), 999_000_000_000).unwrap();
        assert_eq!((&*name.name, name.own), ("b.example", true));
        assert_eq!(names.of(HOST, address(1), 1_001_000_000_000), None);
        assert_eq!(names.of(HOST, address(2), 0), None);
    }

    #[test]
    fn what_another_host_received_is_not_one_s_own() {
        let mut names = Names::new(10);
        names.learn(HOST, &answer("a.example", 1, 1000), 0);
        names.learn(OTHER, &answer("b.example", 1, 1000), 5);
        names.learn(OTHER, &answer("c.example", 2, 1000), 5);
        let name = |number| names.of(HOST, address(number), 9).map(|named| (named.name, named.own));
        assert_eq!(name(1), Some(("a.example".into(), true)));
        assert_eq!(name(2), Some(("c.example".into(), false)));
    }

    #[test]
    fn the_latest_stay() {
        let mut names = Names::new(3);
        for number in 0..100 {
            names.learn(HOST, &answer("a.example", number, 60), 0);
            // The same again and again pushes no others out.
            for _ in 0..1000 {
                names.learn(HOST, &answer("a.example", 1000, 60), 0);
            }
        }
        assert_eq!(names.len(), 3);
        let has = |number| names.of(HOST, address(number), 0).is_some();
        assert!(has(99) && has(98) && has(1000) && !has(97));
    }
}
