//! The names that hosts were told for addresses, by DNS answers that passed.
//!
//! Bounded in number; a name is forgotten with its time to live, or earlier when newer ones need its place.

use crate::dns::Answer;
use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::Arc,
};

/// A name holds at least this long: programs keep addresses longer than resolvers do.
const SHORTEST_S: u64 = 300;
/// And at most this long, whatever the answer says.
const LONGEST_S: u64 = 86_400;

/// Names by address.
#[derive(Debug)]
pub struct Names {
    most: usize,
    by_address: HashMap<IpAddr, Entry>,
    /// Oldest first; an entry that was replaced since is told by its number.
    order: VecDeque<(IpAddr, u64)>,
    number: u64,
}

#[derive(Debug)]
struct Entry {
    name: Arc<str>,
    until_ns: u64,
    number: u64,
}

impl Names {
    /// Room for so many addresses.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, by_address: HashMap::new(), order: VecDeque::new(), number: 0 }
    }

    /// Takes note of an answer seen at a time of the packets' clock.
    pub fn learn(&mut self, answer: &Answer, at_ns: u64) {
        if answer.name.is_empty() || self.most == 0 {
            return;
        }
        let name: Arc<str> = answer.name.as_str().into();
        for &(address, seconds) in &answer.addresses {
            let seconds = u64::from(seconds).clamp(SHORTEST_S, LONGEST_S);
            let until_ns = at_ns.saturating_add(seconds * 1_000_000_000);
            self.number += 1;
            let entry = Entry { name: name.clone(), until_ns, number: self.number };
            self.order.push_back((address, self.number));
            self.by_address.insert(address, entry);
            self.make_room();
        }
    }

    /// The name that an address was last said to have.
    pub fn of(&self, address: IpAddr, at_ns: u64) -> Option<&Arc<str>> {
        let entry = self.by_address.get(&address)?;
        (at_ns <= entry.until_ns).then_some(&entry.name)
    }

    /// How many addresses have a name.
    pub fn len(&self) -> usize {
        self.by_address.len()
    }

    /// Whether no address has one.
    pub fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    fn make_room(&mut self) {
        // Replaced entries stay in the order until their turn; twice the room bounds them.
        while self.by_address.len() > self.most || self.order.len() > 2 * self.most {
            let Some((address, number)) = self.order.pop_front() else { return };
            if self.by_address.get(&address).is_some_and(|entry| entry.number == number) {
                self.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    fn told(name: &str, number: u32, seconds: u32) -> Answer {
        Answer { name: name.into(), addresses: vec![(address(number), seconds)] }
    }

    #[test]
    fn the_last_answer_holds_for_its_time() {
        let mut names = Names::new(10);
        names.learn(&told("a.example", 1, 1000), 0);
        names.learn(&told("b.example", 1, 1000), 5);
        assert_eq!(names.of(address(1), 999_000_000_000).map(|name| &**name), Some("b.example"));
        assert_eq!(names.of(address(1), 1_001_000_000_000), None);
        assert_eq!(names.of(address(2), 0), None);
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let mut names = Names::new(3);
        for number in 0..100 {
            names.learn(&told("a.example", number, 60), 0);
            // The same again and again must not push others out for nothing.
            names.learn(&told("a.example", 1000, 60), 0);
        }
        assert_eq!(names.len(), 3);
        assert!(names.of(address(99), 0).is_some() && names.of(address(1000), 0).is_some());
        assert!(names.of(address(0), 0).is_none());
        assert!(names.order.len() <= 6);
    }
}
