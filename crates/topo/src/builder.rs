//! Collects what feeds say, and makes snapshots of it.

use crate::{
    change::{Change, Refusal},
    graph::{Graph, RouterInfo},
    group::{Exit, Group, Groups},
    lpm::Table,
    options::Options,
    path::{ExternalPath, LinkKey, LinkProperties},
    value::{Feed, GroupId, Mark, RouterId},
    view::View,
};
use ipnet::IpNet;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// How much one feed knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FeedCounts {
    /// Routers.
    pub routers: usize,
    /// Directions of links.
    pub links: usize,
    /// Internal prefixes, counted at each router that has one.
    pub prefixes: usize,
    /// External routes, counted at each exit that has one.
    pub routes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Measurement {
    latency: Option<f64>,
    loss: Option<f64>,
    congestion: Option<f64>,
}

/// All that is known of the network, on one thread.
#[derive(Debug, Default)]
pub struct Builder {
    options: Options,
    routers: BTreeMap<RouterId, BTreeMap<Feed, Option<String>>>,
    links: BTreeMap<LinkKey, BTreeMap<Feed, LinkProperties>>,
    measured: BTreeMap<(RouterId, RouterId), Vec<(Feed, Measurement)>>,
    hops: BTreeMap<(RouterId, RouterId), BTreeMap<Feed, LinkKey>>,
    internal: BTreeMap<IpNet, BTreeSet<(RouterId, Feed)>>,
    routes: BTreeMap<IpNet, BTreeMap<(RouterId, Feed), ExternalPath>>,
    generation: u64,
    changed: bool,
    view: Option<Arc<View>>,
}

/// Which of several feeds' words counts: the operator's, else that of the feed that came last.
fn counts<T>(words: &BTreeMap<Feed, T>) -> Option<&T> {
    words.get(&Feed::OPERATOR).or_else(|| words.values().next_back())
}

/// Takes a feed's word away. What an operator removes goes from the configuration too.
fn remove<T>(words: &mut BTreeMap<Feed, T>, feed: Feed, what: &str) -> Result<bool, Refusal> {
    let mut removed = words.remove(&feed).is_some();
    if feed == Feed::OPERATOR {
        removed |= words.remove(&Feed::CONFIGURATION).is_some();
        if !removed {
            return Err(if words.is_empty() {
                Refusal::NotThere(what.to_owned())
            } else {
                Refusal::Live(what.to_owned())
            });
        }
    }
    Ok(removed)
}

impl Builder {
    /// Nothing known yet.
    pub fn new(options: Options) -> Self {
        Self { options, changed: true, ..Self::default() }
    }

    /// Other options for the snapshots to come.
    pub fn set_options(&mut self, options: Options) {
        self.changed |= self.options != options;
        self.options = options;
    }

    /// Takes one piece of news from a feed.
    pub fn apply(&mut self, feed: Feed, change: Change) -> Result<(), Refusal> {
        change.check()?;
        if feed == Feed::OPERATOR {
            self.hold_against(&change)?;
        }
        self.changed = true;
        match change {
            Change::Router { id, name } => {
                self.routers.entry(id).or_default().insert(feed, name);
            }
            Change::RemoveRouter(id) => {
                let words = self.routers.entry(id).or_default();
                let result = remove(words, feed, &format!("router {id}"));
                if words.is_empty() {
                    self.routers.remove(&id);
                }
                result?;
            }
            Change::Link { key, properties } => {
                self.links.entry(key).or_default().insert(feed, properties);
            }
            Change::RemoveLink(key) => {
                let words = self.links.entry(key).or_default();
                let result = remove(words, feed, &format!("link {key}"));
                if words.is_empty() {
                    self.links.remove(&key);
                }
                result?;
            }
            Change::Measured { from, to, latency, loss, congestion } => {
                let all = self.measured.entry((from, to)).or_default();
                all.retain(|(giver, _)| *giver != feed);
                if latency.is_some() || loss.is_some() || congestion.is_some() {
                    all.push((feed, Measurement { latency, loss, congestion }));
                } else if all.is_empty() {
                    self.measured.remove(&(from, to));
                }
            }
            Change::Internal { prefix, router } => {
                self.internal.entry(prefix.trunc()).or_default().insert((router, feed));
            }
            Change::RemoveInternal { prefix, router } => {
                let prefix = prefix.trunc();
                let known = self.internal.entry(prefix).or_default();
                let mut words = known
                    .iter()
                    .filter(|(at, _)| *at == router)
                    .map(|(_, feed)| (*feed, ()))
                    .collect();
                let result = remove(&mut words, feed, &format!("network {prefix} at {router}"));
                known.retain(|(at, feed)| *at != router || words.contains_key(feed));
                if known.is_empty() {
                    self.internal.remove(&prefix);
                }
                result?;
            }
            Change::Route { prefix, exit, path } => {
                self.routes.entry(prefix.trunc()).or_default().insert((exit, feed), path);
            }
            Change::Withdraw { prefix, exit } => {
                let prefix = prefix.trunc();
                let known = self.routes.entry(prefix).or_default();
                let mut words = known
                    .iter()
                    .filter(|((at, _), _)| *at == exit)
                    .map(|((_, feed), path)| (*feed, *path))
                    .collect();
                let result = remove(&mut words, feed, &format!("route to {prefix} at {exit}"));
                known.retain(|(at, feed), _| *at != exit || words.contains_key(feed));
                if known.is_empty() {
                    self.routes.remove(&prefix);
                }
                result?;
            }
            Change::NextHop { at, to, via } => {
                self.hops.entry((at, to)).or_default().insert(feed, via);
            }
            Change::RemoveNextHop { at, to } => {
                let words = self.hops.entry((at, to)).or_default();
                let result = remove(words, feed, &format!("next hop at {at} to {to}"));
                if words.is_empty() {
                    self.hops.remove(&(at, to));
                }
                result?;
            }
        }
        Ok(())
    }

    /// What an operator names has to be there.
    fn hold_against(&self, change: &Change) -> Result<(), Refusal> {
        let known = |id: &RouterId| {
            self.routers.contains_key(id).then_some(()).ok_or(Refusal::UnknownRouter(*id))
        };
        match change {
            Change::Link { key, .. } => known(&key.from).and(known(&key.to)),
            Change::Measured { from, to, .. } => known(from).and(known(to)),
            Change::Internal { router, .. } => known(router),
            Change::Route { exit, .. } => known(exit),
            Change::NextHop { at, to, via } => known(at).and(known(to)).and_then(|()| {
                self.links.contains_key(via).then_some(()).ok_or(Refusal::UnknownLink(*via))
            }),
            _ => Ok(()),
        }
    }

    /// Forgets all that a feed has said.
    pub fn drop_feed(&mut self, feed: Feed) {
        self.changed = true;
        fn forget<K: Ord, T>(known: &mut BTreeMap<K, BTreeMap<Feed, T>>, feed: Feed) {
            known.retain(|_, words| {
                words.remove(&feed);
                !words.is_empty()
            });
        }
        forget(&mut self.routers, feed);
        forget(&mut self.links, feed);
        forget(&mut self.hops, feed);
        self.measured.retain(|_, all| {
            all.retain(|(giver, _)| *giver != feed);
            !all.is_empty()
        });
        self.internal.retain(|_, known| {
            known.retain(|(_, giver)| *giver != feed);
            !known.is_empty()
        });
        self.routes.retain(|_, known| {
            known.retain(|(_, giver), _| *giver != feed);
            !known.is_empty()
        });
    }

    /// How much a feed knows.
    pub fn counts(&self, feed: Feed) -> FeedCounts {
        FeedCounts {
            routers: self.routers.values().filter(|words| words.contains_key(&feed)).count(),
            links: self.links.values().filter(|words| words.contains_key(&feed)).count(),
            prefixes: self.internal.values().flatten().filter(|(_, giver)| *giver == feed).count(),
            routes: self
                .routes
                .values()
                .flat_map(|known| known.keys())
                .filter(|(_, giver)| *giver == feed)
                .count(),
        }
    }

    /// What is known, to be read.
    pub fn topology(&self) -> Topology<'_> {
        Topology { builder: self }
    }

    /// The next snapshot; the last one again if nothing changed.
    pub fn view(&mut self) -> Arc<View> {
        if let Some(view) = &self.view
            && !self.changed
        {
            return Arc::clone(view);
        }
        let topology = self.topology();
        let graph = Graph::new(
            topology
                .routers()
                .map(|(id, name)| RouterInfo { id, name: name.map(Arc::from) })
                .collect(),
            topology.links(),
            topology.next_hops(),
        );
        for circle in graph.loops() {
            tracing::warn!(
                to = %graph.router(circle.to).id,
                routers = circle.routers.len(),
                "explicit next hops lead round in a circle"
            );
        }
        let marks: BTreeMap<IpNet, Mark> =
            self.options.marks.iter().map(|(prefix, mark)| (prefix.trunc(), *mark)).collect();
        let mut exits = BTreeMap::new();
        for prefix in self.internal.keys().chain(self.routes.keys()) {
            if let Some(group) = self.exits(&graph, prefix) {
                exits.insert(*prefix, group);
            }
        }
        let covering = |prefix: &IpNet| {
            let mut next = Some(*prefix);
            while let Some(prefix) = next {
                if let Some(found) = exits.get(&prefix.trunc()) {
                    return Some(found.clone());
                }
                next = prefix.supernet();
            }
            None
        };
        let inherited: Vec<_> = marks
            .keys()
            .filter_map(|prefix| covering(prefix).map(|found| (*prefix, found)))
            .collect();
        exits.extend(inherited);
        let mut groups = Groups::new(self.generation);
        let mut ids: HashMap<(Box<[Exit]>, bool, Mark), GroupId> = HashMap::new();
        let table = Table::build(exits.into_iter().map(|(prefix, (exits, internal))| {
            let mark = longest(&marks, prefix);
            let id = *ids
                .entry((exits.clone(), internal, mark))
                .or_insert_with(|| groups.push(Group { exits, mark, internal }));
            (prefix, id.0)
        }));
        let sources: BTreeSet<_> = groups.iter().filter_map(|(_, group)| group.source()).collect();
        self.generation += 1;
        self.changed = false;
        let view = Arc::new(View {
            generation: self.generation,
            graph: Arc::new(graph),
            groups: Arc::new(groups),
            table: Arc::new(table),
            options: Arc::new(self.options.clone()),
            sources: sources.into_iter().collect(),
        });
        self.view = Some(Arc::clone(&view));
        view
    }

    /// The exits of one prefix and whether it is internal.
    fn exits(&self, graph: &Graph, prefix: &IpNet) -> Option<(Box<[Exit]>, bool)> {
        let mut exits: BTreeMap<_, ExternalPath> = BTreeMap::new();
        for (router, _) in self.internal.get(prefix).into_iter().flatten() {
            if let Some(router) = graph.index(*router) {
                exits.insert(router, ExternalPath::default());
            }
        }
        let internal = !exits.is_empty();
        if !internal {
            for ((exit, _), path) in self.routes.get(prefix).into_iter().flatten() {
                if let Some(router) = graph.index(*exit) {
                    let path =
                        ExternalPath { as_number: self.options.ases.seen(path.as_number), ..*path };
                    let best = exits.entry(router).or_insert(path);
                    *best = path.min(*best);
                }
            }
        }
        let exits: Box<[Exit]> =
            exits.into_iter().map(|(router, path)| Exit { router, path }).collect();
        (!exits.is_empty()).then_some((exits, internal))
    }
}

/// The mark of the longest marked prefix that covers this one.
fn longest(marks: &BTreeMap<IpNet, Mark>, prefix: IpNet) -> Mark {
    let mut next = Some(prefix);
    while let Some(prefix) = next {
        if let Some(mark) = marks.get(&prefix.trunc()) {
            return *mark;
        }
        next = prefix.supernet();
    }
    Mark::NONE
}

/// What a builder knows, to be read: what counts, whoever said it.
#[derive(Clone, Copy, Debug)]
pub struct Topology<'b> {
    builder: &'b Builder,
}

impl<'b> Topology<'b> {
    /// Routers and their names, in order of id.
    pub fn routers(self) -> impl Iterator<Item = (RouterId, Option<&'b str>)> {
        self.builder
            .routers
            .iter()
            .map(|(id, words)| (*id, counts(words).and_then(Option::as_deref)))
    }

    /// Links with what they are like, measurements included, in order of key. Those that wait for a
    /// router are among them.
    pub fn links(self) -> impl Iterator<Item = (LinkKey, LinkProperties)> {
        self.builder.links.iter().filter_map(move |(key, words)| {
            let mut properties = *counts(words)?;
            for (_, measured) in
                self.builder.measured.get(&(key.from, key.to)).into_iter().flatten()
            {
                properties.latency = measured.latency.unwrap_or(properties.latency);
                properties.loss = measured.loss.unwrap_or(properties.loss);
                properties.congestion = measured.congestion.unwrap_or(properties.congestion);
            }
            Some((*key, properties))
        })
    }

    /// Explicit next hops: at, to, via; in this order.
    pub fn next_hops(self) -> impl Iterator<Item = (RouterId, RouterId, LinkKey)> {
        self.builder.hops.iter().filter_map(|((at, to), words)| Some((*at, *to, *counts(words)?)))
    }

    /// Internal prefixes and where they are attached, in order of prefix and router.
    pub fn internal(self) -> impl Iterator<Item = (IpNet, RouterId)> {
        self.builder.internal.iter().flat_map(|(prefix, known)| {
            let mut routers: Vec<_> = known.iter().map(|(router, _)| *router).collect();
            routers.dedup();
            routers.into_iter().map(|router| (*prefix, router))
        })
    }

    /// External routes, in order of prefix and exit.
    pub fn routes(self) -> impl Iterator<Item = (IpNet, RouterId, ExternalPath)> {
        self.builder.routes.iter().flat_map(|(prefix, known)| {
            let mut best = BTreeMap::new();
            for ((exit, _), path) in known {
                let found = best.entry(*exit).or_insert(*path);
                *found = (*found).min(*path);
            }
            best.into_iter().map(|(exit, path)| (*prefix, exit, path))
        })
    }
}
