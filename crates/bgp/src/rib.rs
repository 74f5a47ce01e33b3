//! The routes that are to be advertised to a neighbour and those that have been (Adj-RIB-Out, RFC 4271
//! section 3.2), and the fewest messages from the one to the other.
//!
//! Messages are made one at a time, when the transport has room: however often the routes change while
//! a neighbour reads slowly, nothing piles up and only the last state is sent.

use crate::{
    message::{
        Families, Family,
        update::{self, Terms},
    },
    route::{Attributes, Routes},
};
use ipnet::IpNet;
use std::{collections::BTreeMap, sync::Arc, time::Instant};

/// A route that the neighbour has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The route's attributes.
    pub attributes: Arc<Attributes>,
    /// When the message with it was written; `None` while it is in flight.
    pub written: Option<Instant>,
    /// The neighbour has asked for it again (ROUTE-REFRESH).
    refresh: bool,
}

/// The routes of one session.
#[derive(Clone, Debug, Default)]
pub struct RibOut {
    wanted: Routes,
    advertised: BTreeMap<IpNet, Entry>,
    /// Families whose End-of-RIB marker has not been sent.
    unended: Families,
}

/// The family of a prefix.
fn family(prefix: &IpNet) -> Family {
    match prefix {
        IpNet::V4(_) => Family::Ipv4,
        IpNet::V6(_) => Family::Ipv6,
    }
}

impl RibOut {
    /// Sets the routes that are to be advertised to the neighbour.
    pub fn want(&mut self, routes: Routes) {
        self.wanted = routes;
    }

    /// Families that have prefixes to announce.
    pub fn families(&self) -> Families {
        let mut families = Families::default();
        for prefix in self.wanted.keys() {
            families.insert(family(prefix));
        }
        families
    }

    /// The routes that have been advertised to the neighbour.
    pub fn advertised(&self) -> &BTreeMap<IpNet, Entry> {
        &self.advertised
    }

    /// A session begins: the neighbour has no routes, and gets an End-of-RIB marker when it has all.
    pub fn begin(&mut self, families: Families) {
        self.advertised.clear();
        self.unended = families;
    }

    /// The session is over: the neighbour has forgotten everything.
    pub fn end(&mut self) {
        self.begin(Families::default());
    }

    /// The neighbour asks for everything of a family again (RFC 2918 section 4).
    pub fn again(&mut self, family_asked: Family) {
        let entries = self.advertised.iter_mut();
        for (_, entry) in entries.filter(|(prefix, _)| family(prefix) == family_asked) {
            entry.refresh = true;
        }
        self.unended.insert(family_asked);
    }

    /// Everything that was in flight has been written.
    pub fn written(&mut self, now: Instant) {
        for entry in self.advertised.values_mut() {
            entry.written.get_or_insert(now);
        }
    }

    /// Appends the next UPDATE; `false` when everything has been advertised.
    pub fn next(&mut self, terms: &Terms, out: &mut Vec<u8>) -> bool {
        Family::ALL.into_iter().any(|family| {
            terms.carry(family)
                && (self.next_withdrawal(family, out)
                    || self.next_announcement(family, terms, out)
                    || self.next_end(family, out))
        })
    }

    fn next_withdrawal(&mut self, of: Family, out: &mut Vec<u8>) -> bool {
        let gone: Vec<IpNet> = self
            .advertised
            .keys()
            .filter(|prefix| family(prefix) == of && !self.wanted.contains_key(prefix))
            .copied()
            .collect();
        let count = update::withdraw(&gone, out);
        for prefix in &gone[..count] {
            self.advertised.remove(prefix);
        }
        count > 0
    }

    fn next_announcement(&mut self, of: Family, terms: &Terms, out: &mut Vec<u8>) -> bool {
        let mut pending = self.wanted.iter().filter(|(prefix, attributes)| {
            family(prefix) == of
                && self
                    .advertised
                    .get(prefix)
                    .is_none_or(|entry| entry.refresh || entry.attributes != **attributes)
        });
        let Some((first, attributes)) = pending.next() else { return false };
        let attributes = Arc::clone(attributes);
        let mut prefixes = vec![*first];
        prefixes
            .extend(pending.filter(|(_, other)| **other == attributes).map(|(prefix, _)| *prefix));
        let count = terms.announce(&attributes, &prefixes, out);
        for prefix in &prefixes[..count] {
            let entry =
                Entry { attributes: Arc::clone(&attributes), written: None, refresh: false };
            self.advertised.insert(*prefix, entry);
        }
        count > 0
    }

    fn next_end(&mut self, family: Family, out: &mut Vec<u8>) -> bool {
        let flag = match family {
            Family::Ipv4 => &mut self.unended.ipv4,
            Family::Ipv6 => &mut self.unended.ipv6,
        };
        let due = std::mem::take(flag);
        if due {
            update::end_of_rib(family, out);
        }
        due
    }
}
