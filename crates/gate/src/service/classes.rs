//! Classes of limits: which number the packets of a flow carry, and which rate is behind it.
//!
//! A class is made with the first flow that needs it and goes with the last. There are at most
//! [`LIMIT`]; when all are in use, further hosts or applications share the limit's rate with each other.

use crate::config::LimitConfig;
use std::collections::{BTreeMap, HashMap};

/// Most classes at once.
pub(super) const LIMIT: u16 = 4000;

/// Who share a rate as there is no class left for each.
const OTHERS: &str = "all others";

/// Which limit, and who has its rate for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) limit: String,
    pub(super) share: String,
}

/// What the shaper is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A class is made, or has another rate.
    Set(u16, LimitConfig),
    /// A class is not needed any more.
    Remove(u16),
}

#[derive(Debug)]
struct Class {
    number: u16,
    flows: u64,
    limit: LimitConfig,
}

/// The classes in use.
#[derive(Debug, Default)]
pub(super) struct Classes {
    classes: HashMap<Name, Class>,
    names: BTreeMap<u16, Name>,
    next: u16,
    /// Flows that share a rate as there were too many classes.
    pub(super) shared: u64,
}

impl Classes {
    /// One flow more under a limit; the class's name and number, which is 0 when there is none left.
    pub(super) fn take(
        &mut self,
        limit: &LimitConfig,
        share: String,
        changes: &mut Vec<Change>,
    ) -> (Name, u16) {
        let mut name = Name { limit: limit.name.clone(), share };
        if !self.classes.contains_key(&name) && self.names.len() >= usize::from(LIMIT) {
            self.shared += 1;
            name.share = OTHERS.to_owned();
        }
        if let Some(class) = self.classes.get_mut(&name) {
            class.flows += 1;
            if class.limit != *limit {
                class.limit = limit.clone();
                changes.push(Change::Set(class.number, limit.clone()));
            }
            return (name, class.number);
        }
        let Some(number) = self.free() else { return (name, 0) };
        changes.push(Change::Set(number, limit.clone()));
        self.names.insert(number, name.clone());
        self.classes.insert(name.clone(), Class { number, flows: 1, limit: limit.clone() });
        (name, number)
    }

    /// One flow less.
    pub(super) fn give_back(&mut self, name: &Name) {
        if let Some(class) = self.classes.get_mut(name) {
            class.flows = class.flows.saturating_sub(1);
        }
    }

    /// Removes the classes without flows; not at once, so that one that comes and goes keeps its queue.
    pub(super) fn sweep(&mut self, changes: &mut Vec<Change>) {
        let classes = &mut self.classes;
        self.names.retain(|number, name| {
            let used = classes.get(name).is_some_and(|class| class.flows > 0);
            if !used {
                classes.remove(name);
                changes.push(Change::Remove(*number));
            }
            used
        });
    }

    /// The classes by number: the name, the flows.
    pub(super) fn list(&self) -> impl Iterator<Item = (u16, &Name, u64)> {
        self.names
            .iter()
            .filter_map(|(number, name)| Some((*number, name, self.classes.get(name)?.flows)))
    }

    /// What each class is limited to.
    pub(super) fn limits(&self) -> impl Iterator<Item = (u16, &LimitConfig)> {
        self.classes.values().map(|class| (class.number, &class.limit))
    }

    /// A number that is not in use. Numbers go round, so that one that was given back rests.
    fn free(&mut self) -> Option<u16> {
        // Room for the shared class of a limit is left when all others are taken.
        for _ in 0..=2 * u32::from(LIMIT) {
            self.next = if self.next >= 2 * LIMIT { 1 } else { self.next + 1 };
            if !self.names.contains_key(&self.next) {
                return Some(self.next);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Each, Rate};

    fn limit(rate: u64) -> LimitConfig {
        LimitConfig {
            name: "slow".into(),
            to_internal: Some(Rate(rate)),
            from_internal: None,
            each: Some(Each::Host),
        }
    }

    #[test]
    fn a_class_lives_as_long_as_its_flows() {
        let (mut classes, mut changes) = (Classes::default(), Vec::new());
        let (name, number) = classes.take(&limit(1_000_000), "10.0.0.1".into(), &mut changes);
        let (_, again) = classes.take(&limit(1_000_000), "10.0.0.1".into(), &mut changes);
        let (_, other) = classes.take(&limit(1_000_000), "10.0.0.2".into(), &mut changes);
        assert_eq!((number, again, other), (1, 1, 2));
        let set = |number| Change::Set(number, limit(1_000_000));
        assert_eq!(changes, [set(1), set(2)]);
        changes.clear();
        classes.give_back(&name);
        classes.sweep(&mut changes);
        assert_eq!(changes, []);
        classes.give_back(&name);
        classes.sweep(&mut changes);
        assert_eq!(changes, [Change::Remove(1)]);
        let (_, number) = classes.take(&limit(1_000_000), "10.0.0.1".into(), &mut changes);
        assert_eq!(number, 3, "a number rests");
    }

    #[test]
    fn another_rate_is_set_in_place() {
        let (mut classes, mut changes) = (Classes::default(), Vec::new());
        classes.take(&limit(1_000_000), "a".into(), &mut changes);
        changes.clear();
        classes.take(&limit(2_000_000), "a".into(), &mut changes);
        assert_eq!(changes, [Change::Set(1, limit(2_000_000))]);
    }

    #[test]
    fn when_all_are_in_use_the_rest_share() {
        let (mut classes, mut changes) = (Classes::default(), Vec::new());
        for host in 0..LIMIT {
            classes.take(&limit(1_000_000), host.to_string(), &mut changes);
        }
        let (name, number) = classes.take(&limit(1_000_000), "one more".into(), &mut changes);
        let (_, again) = classes.take(&limit(1_000_000), "and another".into(), &mut changes);
        assert_eq!((name.share.as_str(), classes.shared), (OTHERS, 2));
        assert!(number > 0 && number == again);
    }
}
