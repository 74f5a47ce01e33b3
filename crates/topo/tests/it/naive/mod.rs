//! The same as the builder, as plainly as can be: lists, and scans of them.

use std::collections::{BTreeMap, BTreeSet};
use topo::{
    Change, ExitChoice, ExternalPath, Feed, IpNet, LinkKey, LinkProperties, Mark, Options,
    PathProperties, RouterId, View,
};

/// What a feed has measured.
type Measured = (Option<f64>, Option<f64>, Option<f64>);

/// What makes a group: exits, mark, whether it is internal.
pub(crate) type Group = (Vec<(RouterId, ExternalPath)>, Mark, bool);

/// Paths with what they are like.
pub(crate) type Paths = BTreeMap<(RouterId, RouterId), (Vec<RouterId>, PathProperties)>;

/// What all feeds have reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    routers: BTreeMap<(RouterId, Feed), Option<String>>,
    links: BTreeMap<(LinkKey, Feed), LinkProperties>,
    measured: Vec<(Feed, RouterId, RouterId, Measured)>,
    hops: BTreeMap<(RouterId, RouterId, Feed), LinkKey>,
    internal: BTreeSet<(IpNet, RouterId, Feed)>,
    routes: BTreeMap<(IpNet, RouterId, Feed), ExternalPath>,
    pub(crate) options: Options,
}

/// Which feeds lose a report when this feed withdraws it.
fn losers(feed: Feed) -> Vec<Feed> {
    if feed == Feed::OPERATOR { vec![feed, Feed::CONFIGURATION] } else { vec![feed] }
}

impl Naive {
    /// Takes a change that the builder has taken.
    pub(crate) fn apply(&mut self, feed: Feed, change: Change) {
        match change {
            Change::Router { id, name } => {
                self.routers.insert((id, feed), name);
            }
            Change::RemoveRouter(id) => {
                for feed in losers(feed) {
                    self.routers.remove(&(id, feed));
                }
            }
            Change::Link { key, properties } => {
                self.links.insert((key, feed), properties);
            }
            Change::RemoveLink(key) => {
                for feed in losers(feed) {
                    self.links.remove(&(key, feed));
                }
            }
            Change::Measured { from, to, latency, loss, congestion } => {
                self.measured.retain(|known| (known.0, known.1, known.2) != (feed, from, to));
                self.measured.push((feed, from, to, (latency, loss, congestion)));
            }
            Change::Internal { prefix, router } => {
                self.internal.insert((prefix.trunc(), router, feed));
            }
            Change::RemoveInternal { prefix, router } => {
                for feed in losers(feed) {
                    self.internal.remove(&(prefix.trunc(), router, feed));
                }
            }
            Change::Route { prefix, exit, path } => {
                self.routes.insert((prefix.trunc(), exit, feed), path);
            }
            Change::Withdraw { prefix, exit } => {
                for feed in losers(feed) {
                    self.routes.remove(&(prefix.trunc(), exit, feed));
                }
            }
            Change::NextHop { at, to, via } => {
                self.hops.insert((at, to, feed), via);
            }
            Change::RemoveNextHop { at, to } => {
                for feed in losers(feed) {
                    self.hops.remove(&(at, to, feed));
                }
            }
        }
    }

    pub(crate) fn drop_feed(&mut self, feed: Feed) {
        self.routers.retain(|key, _| key.1 != feed);
        self.links.retain(|key, _| key.1 != feed);
        self.measured.retain(|known| known.0 != feed);
        self.hops.retain(|key, _| key.2 != feed);
        self.internal.retain(|key| key.2 != feed);
        self.routes.retain(|key, _| key.2 != feed);
    }

    /// All reports that still hold, to be made again.
    pub(crate) fn changes(&self) -> Vec<(Feed, Change)> {
        let mut changes = Vec::new();
        for ((prefix, exit, feed), path) in &self.routes {
            changes.push((*feed, Change::Route { prefix: *prefix, exit: *exit, path: *path }));
        }
        for (prefix, router, feed) in &self.internal {
            changes.push((*feed, Change::Internal { prefix: *prefix, router: *router }));
        }
        for ((key, feed), properties) in &self.links {
            changes.push((*feed, Change::Link { key: *key, properties: *properties }));
        }
        for (feed, from, to, (latency, loss, congestion)) in &self.measured {
            let (latency, loss, congestion) = (*latency, *loss, *congestion);
            let change = Change::Measured { from: *from, to: *to, latency, loss, congestion };
            changes.push((*feed, change));
        }
        for ((at, to, feed), via) in &self.hops {
            changes.push((*feed, Change::NextHop { at: *at, to: *to, via: *via }));
        }
        for ((id, feed), name) in &self.routers {
            changes.push((*feed, Change::Router { id: *id, name: name.clone() }));
        }
        // The operator names what is there, so his words come last, routers before links.
        let rank = |change: &Change| match change {
            Change::Router { .. } => 0,
            Change::Link { .. } => 1,
            _ => 2,
        };
        changes.sort_by_key(|(feed, change)| (*feed == Feed::OPERATOR, rank(change)));
        changes
    }

    pub(crate) fn routers(&self) -> BTreeSet<RouterId> {
        self.routers.keys().map(|(id, _)| *id).collect()
    }

    /// What a link is like: the operator's word, else the last feed's, then measurements.
    pub(crate) fn links(&self) -> BTreeMap<LinkKey, LinkProperties> {
        let mut links: BTreeMap<LinkKey, LinkProperties> = BTreeMap::new();
        for ((key, _), properties) in &self.links {
            links.insert(*key, *properties);
        }
        for ((key, feed), properties) in &self.links {
            if *feed == Feed::OPERATOR {
                links.insert(*key, *properties);
            }
        }
        let routers = self.routers();
        links.retain(|key, _| routers.contains(&key.from) && routers.contains(&key.to));
        for (_, from, to, (latency, loss, congestion)) in &self.measured {
            for (_, link) in links.iter_mut().filter(|(k, _)| (&k.from, &k.to) == (from, to)) {
                link.latency = latency.unwrap_or(link.latency);
                link.loss = loss.unwrap_or(link.loss);
                link.congestion = congestion.unwrap_or(link.congestion);
            }
        }
        links
    }

    /// The exits of a prefix with reports, if any is there.
    fn exits(&self, prefix: IpNet) -> Option<(Vec<(RouterId, ExternalPath)>, bool)> {
        let routers = self.routers();
        let mut internal: Vec<_> = self
            .internal
            .iter()
            .filter(|(known, router, _)| *known == prefix && routers.contains(router))
            .map(|(_, router, _)| (*router, ExternalPath::default()))
            .collect();
        internal.dedup();
        if !internal.is_empty() {
            return Some((internal, true));
        }
        let mut external: Vec<_> = self
            .routes
            .iter()
            .filter(|((known, exit, _), _)| *known == prefix && routers.contains(exit))
            .map(|((_, exit, _), path)| {
                let as_number = self.options.ases.seen(path.as_number);
                (*exit, ExternalPath { as_number, ..*path })
            })
            .collect();
        external.sort();
        external.dedup_by_key(|(exit, _)| *exit);
        (!external.is_empty()).then_some((external, false))
    }

    /// The group of every prefix that has one of its own.
    pub(crate) fn table(&self) -> BTreeMap<IpNet, Group> {
        let reported = self.internal.iter().map(|(prefix, _, _)| *prefix);
        let reported: BTreeSet<IpNet> =
            reported.chain(self.routes.keys().map(|(prefix, _, _)| *prefix)).collect();
        let routes: BTreeMap<_, _> =
            reported.into_iter().filter_map(|prefix| Some((prefix, self.exits(prefix)?))).collect();
        let marks: BTreeMap<IpNet, Mark> =
            self.options.marks.iter().map(|(prefix, mark)| (prefix.trunc(), *mark)).collect();
        let mark = |prefix: &IpNet| longest(&marks, prefix).map_or(Mark::NONE, |(_, mark)| *mark);
        routes
            .keys()
            .chain(marks.keys())
            .filter_map(|prefix| {
                let (_, (exits, internal)) = longest(&routes, prefix)?;
                Some((*prefix, (exits.clone(), mark(prefix), *internal)))
            })
            .collect()
    }

    /// The path from one router to another, and what it is like.
    pub(crate) fn path(
        &self,
        from: RouterId,
        to: RouterId,
    ) -> Option<(Vec<RouterId>, PathProperties)> {
        let links = self.links();
        // Of parallel links the one that is used.
        let mut best: BTreeMap<(RouterId, RouterId), (LinkKey, LinkProperties)> = BTreeMap::new();
        for (key, link) in &links {
            let worse = |known: &(LinkKey, LinkProperties)| {
                (link.weight, -link.bandwidth, key.id)
                    < (known.1.weight, -known.1.bandwidth, known.0.id)
            };
            if best.get(&(key.from, key.to)).is_none_or(worse) {
                best.insert((key.from, key.to), (*key, *link));
            }
        }
        let (mut at, mut path, mut properties) = (from, vec![from], PathProperties::HERE);
        while at != to {
            let reported: BTreeMap<Feed, LinkKey> = self
                .hops
                .iter()
                .filter(|((router, target, _), _)| (*router, *target) == (at, to))
                .map(|((_, _, feed), via)| (*feed, *via))
                .collect();
            let explicit = reported.get(&Feed::OPERATOR).or(reported.values().next_back());
            let link = match explicit.and_then(|via| links.get_key_value(via)) {
                Some((key, link)) => (*key, *link),
                None => best[&(at, *shortest(&best, at, to)?.get(1)?)],
            };
            properties = properties.with_link(&link.1);
            at = link.0.to;
            if path.contains(&at) {
                return None;
            }
            path.push(at);
        }
        Some((path, properties))
    }

    /// All paths.
    pub(crate) fn paths(&self) -> Paths {
        let routers = self.routers();
        let pairs = routers.iter().flat_map(|from| routers.iter().map(|to| (*from, *to)));
        pairs.filter_map(|(from, to)| Some(((from, to), self.path(from, to)?))).collect()
    }

    /// The path to a group.
    pub(crate) fn reach(
        &self,
        paths: &Paths,
        from: RouterId,
        group: &Group,
    ) -> Option<PathProperties> {
        let all = group.0.iter().filter_map(|(exit, beyond)| {
            let (_, path) = paths.get(&(from, *exit))?;
            let distance = u64::from(beyond.as_distance);
            let order = match self.options.exits {
                ExitChoice::Nearest => (path.weight, distance, *exit),
                ExitChoice::ShortestAsPath => (distance, path.weight, *exit),
            };
            Some((order, path.with_external(*beyond)))
        });
        all.min_by_key(|(order, _)| *order).map(|(_, path)| path)
    }
}

/// The longest of these that covers a prefix, by looking at all.
pub(crate) fn longest<'t, T>(
    table: &'t BTreeMap<IpNet, T>,
    prefix: &IpNet,
) -> Option<(&'t IpNet, &'t T)> {
    table
        .iter()
        .filter(|(known, _)| known.contains(prefix))
        .max_by_key(|(known, _)| known.prefix_len())
}

/// The routers on the path by weight, then hops, then the lowest ids (Bellman-Ford on whole paths).
fn shortest(
    links: &BTreeMap<(RouterId, RouterId), (LinkKey, LinkProperties)>,
    from: RouterId,
    to: RouterId,
) -> Option<Vec<RouterId>> {
    let mut best: BTreeMap<RouterId, (u64, usize, Vec<RouterId>)> = BTreeMap::new();
    best.insert(from, (0, 0, vec![from]));
    loop {
        let mut changed = false;
        for ((a, b), (_, link)) in links {
            let Some((weight, hops, path)) = best.get(a) else { continue };
            let found = (weight + u64::from(link.weight), hops + 1, [&path[..], &[*b]].concat());
            if best.get(b).is_none_or(|known| found < *known) {
                best.insert(*b, found);
                changed = true;
            }
        }
        if !changed {
            return best.remove(&to).map(|(_, _, path)| path);
        }
    }
}

/// The table of a view in the same form.
pub(crate) fn table(view: &View) -> BTreeMap<IpNet, Group> {
    view.table
        .iter()
        .map(|(prefix, group)| {
            let group = view.groups.get(topo::GroupId(group));
            let exits = group.exits.iter();
            let exits = exits.map(|exit| (view.graph.router(exit.router).id, exit.path)).collect();
            (prefix, (exits, group.mark, group.internal))
        })
        .collect()
}
