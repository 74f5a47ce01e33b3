//! What feeds report of routers, links, next hops and measurements.

use crate::{
    change::Refusal,
    graph::{Graph, RouterInfo},
    path::{LinkKey, LinkProperties},
    value::{Feed, RouterId},
};
use std::{
    collections::{BTreeMap, btree_map},
    sync::Arc,
};

/// What has been measured on all links from one router to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measurement {
    pub(super) latency: Option<f64>,
    pub(super) loss: Option<f64>,
    pub(super) congestion: Option<f64>,
}

impl Measurement {
    fn is_empty(&self) -> bool {
        self.latency.is_none() && self.loss.is_none() && self.congestion.is_none()
    }
}

/// What each feed reports of one thing.
pub(super) type ByFeed<T> = BTreeMap<Feed, T>;

/// Things of one kind.
#[derive(Debug)]
pub(super) struct Things<K, T> {
    all: BTreeMap<K, ByFeed<T>>,
    what: &'static str,
    limit: usize,
}

/// Which of several feeds' reports counts: the operator's, else that of the feed that came last.
fn counting<T>(reports: &ByFeed<T>) -> Option<&T> {
    reports.get(&Feed::OPERATOR).or_else(|| reports.values().next_back())
}

/// Removes a feed's report, and returns whether there was one. What an operator removes goes from the
/// configuration too.
pub(super) fn take_away<T>(
    reports: &mut ByFeed<T>,
    feed: Feed,
    what: impl FnOnce() -> String,
) -> Result<bool, Refusal> {
    let mut removed = reports.remove(&feed).is_some();
    if feed == Feed::OPERATOR {
        removed |= reports.remove(&Feed::CONFIGURATION).is_some();
        if !removed {
            let what = what();
            return Err(if reports.is_empty() {
                Refusal::NotThere(what)
            } else {
                Refusal::Live(what)
            });
        }
    }
    Ok(removed)
}

impl<K: Ord + Copy, T: PartialEq> Things<K, T> {
    fn new(what: &'static str, limit: usize) -> Self {
        Self { all: BTreeMap::new(), what, limit }
    }

    /// A feed reports something; returns whether that is new.
    pub(super) fn set(&mut self, key: K, feed: Feed, value: T) -> Result<bool, Refusal> {
        if self.all.len() >= self.limit && !self.all.contains_key(&key) {
            return Err(Refusal::TooMany { what: self.what, limit: self.limit });
        }
        let reports = self.all.entry(key).or_default();
        if reports.get(&feed) == Some(&value) {
            return Ok(false);
        }
        reports.insert(feed, value);
        Ok(true)
    }

    /// A feed withdraws its report; returns whether there was one.
    pub(super) fn remove(
        &mut self,
        key: K,
        feed: Feed,
        what: impl FnOnce() -> String,
    ) -> Result<bool, Refusal> {
        let btree_map::Entry::Occupied(mut entry) = self.all.entry(key) else {
            return if feed == Feed::OPERATOR { Err(Refusal::NotThere(what())) } else { Ok(false) };
        };
        let removed = take_away(entry.get_mut(), feed, what);
        if entry.get().is_empty() {
            entry.remove();
        }
        removed
    }

    /// Removes a feed; returns whether it had reported anything.
    fn forget(&mut self, feed: Feed) -> bool {
        let mut any = false;
        self.all.retain(|_, reports| {
            any |= reports.remove(&feed).is_some();
            !reports.is_empty()
        });
        any
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.all.contains_key(key)
    }

    fn count(&self, feed: Feed) -> usize {
        self.all.values().filter(|reports| reports.contains_key(&feed)).count()
    }

    /// What counts, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.all.iter().filter_map(|(key, reports)| Some((key, counting(reports)?)))
    }
}

/// Routers, links and what belongs to them.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) routers: Things<RouterId, Option<Arc<str>>>,
    pub(super) links: Things<LinkKey, LinkProperties>,
    pub(super) hops: Things<(RouterId, RouterId), LinkKey>,
    /// In the order in which they came: the last one counts.
    measured: BTreeMap<(RouterId, RouterId), Vec<(Feed, Measurement)>>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            routers: Things::new("routers", super::ROUTERS),
            links: Things::new("links", super::LINKS),
            hops: Things::new("next hops", super::LINKS),
            measured: BTreeMap::new(),
        }
    }
}

impl Network {
    /// Takes a measurement, or withdraws the feed's last one; returns whether that changes anything.
    pub(super) fn measure(
        &mut self,
        ends: (RouterId, RouterId),
        feed: Feed,
        measurement: Measurement,
    ) -> Result<bool, Refusal> {
        if self.measured.len() >= super::LINKS && !self.measured.contains_key(&ends) {
            return Err(Refusal::TooMany { what: "measured links", limit: super::LINKS });
        }
        let all = self.measured.entry(ends).or_default();
        let same = all.last() == Some(&(feed, measurement));
        let before = all.len();
        all.retain(|(giver, _)| *giver != feed);
        let changed = !same && (before != all.len() || !measurement.is_empty());
        if !measurement.is_empty() {
            all.push((feed, measurement));
        } else if all.is_empty() {
            self.measured.remove(&ends);
        }
        Ok(changed)
    }

    /// Removes a feed; returns whether it had reported anything.
    pub(super) fn forget(&mut self, feed: Feed) -> bool {
        let mut any = self.routers.forget(feed);
        any |= self.links.forget(feed);
        any |= self.hops.forget(feed);
        self.measured.retain(|_, all| {
            let before = all.len();
            all.retain(|(giver, _)| *giver != feed);
            any |= before != all.len();
            !all.is_empty()
        });
        any
    }

    /// How many routers and links a feed knows.
    pub(super) fn counts(&self, feed: Feed) -> (usize, usize) {
        (self.routers.count(feed), self.links.count(feed))
    }

    /// Links with what they are like, measurements included.
    pub(super) fn measured_links(&self) -> impl Iterator<Item = (LinkKey, LinkProperties)> {
        self.links.iter().map(|(key, properties)| {
            let mut properties = *properties;
            for (_, measured) in self.measured.get(&(key.from, key.to)).into_iter().flatten() {
                properties.latency = measured.latency.unwrap_or(properties.latency);
                properties.loss = measured.loss.unwrap_or(properties.loss);
                properties.congestion = measured.congestion.unwrap_or(properties.congestion);
            }
            (*key, properties)
        })
    }

    /// All of it as readers see it.
    pub(super) fn graph(&self) -> Graph {
        Graph::new(
            self.routers
                .iter()
                .map(|(id, name)| RouterInfo { id: *id, name: name.clone() })
                .collect(),
            self.measured_links(),
            self.hops.iter().map(|((at, to), via)| (*at, *to, *via)),
        )
    }
}
