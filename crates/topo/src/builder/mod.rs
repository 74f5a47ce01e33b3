//! Collects what feeds report, and makes snapshots of it.
//!
//! ```text
//!   feeds' reports                     what a snapshot is made from            what readers see
//!   network: routers, links ... ------------------------------------------->   Graph
//!   prefixes: prefix -> set ------\
//!   reports: sets of (router, feed, -+-> grouping: (exits, mark) -> group ---->  Groups
//!          path)                 --/                     \----------------->   Table
//!   options: marks, ASes -------/
//! ```
//!
//! A change only notes which prefix it is about. [`Builder::view`] then finds the groups of those
//! prefixes again, of prefixes that are marked inside of them too, and patches the table. All prefixes are
//! checked only if routers came or went, or the options changed, and even then once for every set.

mod grouping;
mod marks;
mod network;
mod prefixes;
mod read;
mod reports;

pub use read::Topology;

use crate::{
    change::{Change, Refusal},
    graph::{Graph, Loop},
    lpm::Table,
    options::Options,
    value::{Feed, Mark, RouterId},
    view::View,
};
use grouping::Grouping;
use ipnet::IpNet;
use marks::Marks;
use network::{Measurement, Network};
use prefixes::{Known, Prefixes};
use reports::{At, Report, SetId, Sets};
use rustc_hash::FxHashMap;
use std::{collections::BTreeMap, sync::Arc};

/// Most routers.
const ROUTERS: usize = 1 << 20;
/// Most directions of links, and most next hops.
const LINKS: usize = 1 << 24;
/// Most prefixes.
const PREFIXES: usize = 1 << 25;
/// If more prefixes than this changed, all are checked.
const DIRTY: usize = 1 << 16;
/// If more than this part of the table changed, it is made again.
const PATCH: usize = 4;

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

/// All that is known of the network, on one thread.
#[derive(Debug)]
pub struct Builder {
    options: Arc<Options>,
    marks: Marks,
    network: Network,
    /// Numbers of all routers that were ever named with a prefix.
    slots: FxHashMap<RouterId, u32>,
    ids: Vec<RouterId>,
    prefixes: Prefixes,
    sets: Sets,
    /// Internal prefixes and external routes of each feed.
    counts: FxHashMap<Feed, (usize, usize)>,
    grouping: Grouping,
    /// Groups noted with the sets hold for one choice of routers and ASes.
    stamp: u32,
    /// Marked prefixes that are in the table with the exits of the route that covers them.
    inherited: BTreeMap<IpNet, u32>,
    /// Prefixes that changed since the last snapshot, unless all are to be checked.
    dirty: Vec<IpNet>,
    all_dirty: bool,
    network_changed: bool,
    view: Option<Arc<View>>,
    /// Used again and again.
    scratch: Vec<Report>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Builder {
    /// Nothing known yet.
    pub fn new(options: Options) -> Self {
        Self {
            marks: Marks::new(&options.marks),
            options: Arc::new(options),
            network: Network::default(),
            slots: FxHashMap::default(),
            ids: Vec::new(),
            prefixes: Prefixes::default(),
            sets: Sets::default(),
            counts: FxHashMap::default(),
            grouping: Grouping::default(),
            stamp: 1,
            inherited: BTreeMap::new(),
            dirty: Vec::new(),
            all_dirty: false,
            network_changed: true,
            view: None,
            scratch: Vec::new(),
        }
    }

    /// Other options for the snapshots to come.
    pub fn set_options(&mut self, options: Options) {
        if self.options.ases != options.ases {
            self.stamp += 1;
            self.all_dirty = true;
        }
        if self.options.marks != options.marks {
            self.marks = Marks::new(&options.marks);
            self.all_dirty = true;
        }
        if *self.options != options {
            self.options = Arc::new(options);
        }
    }

    /// Takes one piece of news from a feed.
    pub fn apply(&mut self, feed: Feed, change: Change) -> Result<(), Refusal> {
        change.check()?;
        if feed == Feed::OPERATOR {
            self.hold_against(&change)?;
        }
        let network = &mut self.network;
        let changed = match change {
            Change::Router { id, name } => network.routers.set(id, feed, name.map(Arc::from))?,
            Change::RemoveRouter(id) => {
                network.routers.remove(id, feed, || format!("router {id}"))?
            }
            Change::Link { key, properties } => network.links.set(key, feed, properties)?,
            Change::RemoveLink(key) => network.links.remove(key, feed, || format!("link {key}"))?,
            Change::NextHop { at, to, via } => network.hops.set((at, to), feed, via)?,
            Change::RemoveNextHop { at, to } => {
                network.hops.remove((at, to), feed, || format!("next hop at {at} to {to}"))?
            }
            Change::Measured { from, to, latency, loss, congestion } => {
                let measurement = Measurement { latency, loss, congestion };
                network.measure((from, to), feed, measurement)?
            }
            Change::Internal { prefix, router } => {
                let at = At::internal(self.slot(router)?);
                self.report(prefix, Report { at, feed, as_distance: 0, as_number: 0 })?;
                false
            }
            Change::Route { prefix, exit, path } => {
                let at = At::external(self.slot(exit)?);
                let (as_distance, as_number) = (path.as_distance, path.as_number);
                self.report(prefix, Report { at, feed, as_distance, as_number })?;
                false
            }
            Change::RemoveInternal { prefix, router } => {
                let at = self.slots.get(&router).map(|slot| At::internal(*slot));
                self.unsay(prefix, at, feed, || format!("network {} at {router}", prefix.trunc()))?;
                false
            }
            Change::Withdraw { prefix, exit } => {
                let at = self.slots.get(&exit).map(|slot| At::external(*slot));
                self.unsay(prefix, at, feed, || format!("route to {} at {exit}", prefix.trunc()))?;
                false
            }
        };
        self.network_changed |= changed;
        Ok(())
    }

    /// What an operator names has to be there.
    fn hold_against(&self, change: &Change) -> Result<(), Refusal> {
        let known = |id: &RouterId| {
            if self.network.routers.contains(id) {
                Ok(())
            } else {
                Err(Refusal::UnknownRouter(*id))
            }
        };
        match change {
            Change::Link { key, .. } => known(&key.from).and(known(&key.to)),
            Change::Measured { from, to, .. } => known(from).and(known(to)),
            Change::Internal { router, .. } => known(router),
            Change::Route { exit, .. } => known(exit),
            Change::NextHop { at, to, via } => {
                known(at).and(known(to))?;
                if self.network.links.contains(via) {
                    Ok(())
                } else {
                    Err(Refusal::UnknownLink(*via))
                }
            }
            _ => Ok(()),
        }
    }

    /// The slot of a router.
    fn slot(&mut self, id: RouterId) -> Result<u32, Refusal> {
        if let Some(slot) = self.slots.get(&id) {
            return Ok(*slot);
        }
        if self.ids.len() == ROUTERS {
            return Err(Refusal::TooMany { what: "routers", limit: ROUTERS });
        }
        let slot = self.ids.len() as u32;
        self.ids.push(id);
        self.slots.insert(id, slot);
        Ok(slot)
    }

    /// A feed reports a prefix.
    fn report(&mut self, prefix: IpNet, report: Report) -> Result<(), Refusal> {
        let prefix = prefix.trunc();
        if self.prefixes.len() >= PREFIXES && self.prefixes.get(prefix).is_none() {
            return Err(Refusal::TooMany { what: "prefixes", limit: PREFIXES });
        }
        let known = self.prefixes.entry(prefix);
        let reports = self.sets.reports(known.set);
        self.scratch.clear();
        self.scratch.extend_from_slice(reports);
        match reports.binary_search_by_key(&(report.at, report.feed), |w| (w.at, w.feed)) {
            Ok(index) if reports[index] == report => return Ok(()),
            Ok(index) => self.scratch[index] = report,
            Err(index) => {
                self.scratch.insert(index, report);
                *counted(&mut self.counts, report) += 1;
            }
        }
        let set = self.sets.take(&self.scratch);
        self.sets.release(known.set);
        known.set = set;
        self.all_dirty |= note(&mut self.dirty, known, prefix);
        Ok(())
    }

    /// A feed withdraws its report of a prefix.
    fn unsay(
        &mut self,
        prefix: IpNet,
        at: Option<At>,
        feed: Feed,
        what: impl FnOnce() -> String,
    ) -> Result<(), Refusal> {
        let prefix = prefix.trunc();
        let mut nothing = Known::default();
        let known = self.prefixes.get_mut(prefix).unwrap_or(&mut nothing);
        let reports = self.sets.reports(known.set).iter().filter(|report| Some(report.at) == at);
        let mut by_feed = reports.map(|report| (report.feed, *report)).collect();
        if !network::take_away(&mut by_feed, feed, what)? {
            return Ok(());
        }
        self.scratch.clear();
        for report in self.sets.reports(known.set) {
            if Some(report.at) == at && !by_feed.contains_key(&report.feed) {
                *counted(&mut self.counts, *report) -= 1;
            } else {
                self.scratch.push(*report);
            }
        }
        let set = self.sets.take(&self.scratch);
        self.sets.release(known.set);
        known.set = set;
        self.all_dirty |= note(&mut self.dirty, known, prefix);
        Ok(())
    }

    /// Removes everything that a feed has reported.
    pub fn drop_feed(&mut self, feed: Feed) {
        self.network_changed |= self.network.forget(feed);
        if self.counts.remove(&feed).is_none_or(|counts| counts == (0, 0)) {
            return;
        }
        // For each set that has reports of the feed the one without them. It is held until all prefixes
        // are done, so that its number is not reused.
        let mut without: FxHashMap<SetId, SetId> = FxHashMap::default();
        for id in 1..self.sets.end() {
            if self.sets.reports(id).iter().any(|report| report.feed == feed) {
                self.scratch.clear();
                let reports = self.sets.reports(id).iter();
                self.scratch.extend(reports.filter(|report| report.feed != feed));
                without.insert(id, self.sets.take(&self.scratch));
            }
        }
        for (_, known) in self.prefixes.iter_mut() {
            if let Some(set) = without.get(&known.set) {
                let before = known.set;
                known.set = self.sets.share(*set);
                self.sets.release(before);
            }
        }
        for set in without.into_values() {
            self.sets.release(set);
        }
        self.all_dirty = true;
    }

    /// How much a feed knows.
    pub fn counts(&self, feed: Feed) -> FeedCounts {
        let (routers, links) = self.network.counts(feed);
        let (prefixes, routes) = self.counts.get(&feed).copied().unwrap_or_default();
        FeedCounts { routers, links, prefixes, routes }
    }

    /// What is known, to be read.
    pub fn topology(&self) -> Topology<'_> {
        Topology::new(self)
    }

    /// Memory of prefixes, routes and groups in bytes, about; routers and links are little beside it.
    pub fn bytes(&self) -> usize {
        self.prefixes.bytes() + self.sets.bytes() + self.grouping.bytes()
    }

    /// The next snapshot; the last one again if nothing changed.
    pub fn view(&mut self) -> Arc<View> {
        let last = self.view.take();
        let graph = match &last {
            Some(view) if !self.network_changed => Arc::clone(&view.graph),
            _ => self.next_graph(last.as_deref()),
        };
        self.network_changed = false;
        let new = &self.ids[self.grouping.slots()..];
        self.grouping.add_routers(new.iter().map(|id| graph.index(*id)));
        let worn = self.grouping.is_worn();
        if worn {
            self.renumber();
        }
        let changes = if self.all_dirty { self.regroup_all() } else { self.regroup_dirty() };
        let table = match &last {
            Some(view) if changes.is_empty() && !worn => Arc::clone(&view.table),
            Some(view) if changes.len() <= view.table.len() / PATCH && !worn => {
                Arc::new(view.table.patched(changes))
            }
            _ => Arc::new(self.table()),
        };
        let groups = self.grouping.groups();
        let sources = self.grouping.sources();
        let view = match last {
            Some(view)
                if Arc::ptr_eq(&view.graph, &graph)
                    && Arc::ptr_eq(&view.groups, &groups)
                    && Arc::ptr_eq(&view.table, &table)
                    && Arc::ptr_eq(&view.options, &self.options) =>
            {
                view
            }
            last => Arc::new(View {
                generation: last.as_ref().map_or(1, |view| view.generation + 1),
                graph,
                groups,
                table,
                options: Arc::clone(&self.options),
                sources: match last {
                    Some(view) if *view.sources == *sources => Arc::clone(&view.sources),
                    _ => sources.into(),
                },
            }),
        };
        self.view = Some(Arc::clone(&view));
        view
    }

    /// Routers and links again; notes if routers came or went.
    fn next_graph(&mut self, last: Option<&View>) -> Arc<Graph> {
        let graph = Arc::new(self.network.graph());
        let ids =
            |graph: &Graph| graph.routers().iter().map(|router| router.id).collect::<Vec<_>>();
        if last.is_none_or(|view| ids(&view.graph) != ids(&graph)) {
            self.grouping.set_routers(self.ids.iter().map(|id| graph.index(*id)));
            self.stamp += 1;
            self.all_dirty = true;
        }
        let before: &[Loop] = last.map_or(&[], |view| view.graph.loops());
        for circle in graph.loops().iter().filter(|circle| !before.contains(circle)) {
            let routers = circle.routers.iter().map(|router| graph.router(*router).id.to_string());
            tracing::warn!(
                to = %graph.router(circle.to).id,
                through = routers.collect::<Vec<_>>().join(", "),
                "explicit next hops form a loop; the router is unreachable through them"
            );
        }
        graph
    }

    /// Forgets all groups, so that they get numbers from 1 on again.
    fn renumber(&mut self) {
        self.grouping.forget();
        self.stamp += 1;
        self.all_dirty = true;
        self.inherited.clear();
        for (_, known) in self.prefixes.iter_mut() {
            known.group = 0;
        }
    }

    /// Finds the groups of all prefixes, and what of the table changes.
    fn regroup_all(&mut self) -> Vec<(IpNet, Option<u32>)> {
        self.all_dirty = false;
        self.dirty.clear();
        let mut changes = Vec::new();
        let Self { prefixes, sets, grouping, marks, options, .. } = self;
        for (prefix, known) in prefixes.iter_mut() {
            known.dirty = false;
            let mark = marks.of(prefix);
            let group = group(sets, grouping, options, self.stamp, known.set, mark);
            if replace(grouping, &mut known.group, group) {
                changes.push((prefix, (group != 0).then_some(group)));
            }
        }
        self.prefixes.clean();
        let marked: Vec<_> = self.marks.prefixes().collect();
        let unmarked: Vec<_> = self
            .inherited
            .keys()
            .filter(|prefix| marked.binary_search(prefix).is_err())
            .copied()
            .collect();
        for prefix in unmarked {
            self.inherit(prefix, false, &mut changes);
        }
        for prefix in marked {
            self.inherit(prefix, true, &mut changes);
        }
        changes
    }

    /// Finds the groups of the prefixes that changed, and what of the table changes.
    fn regroup_dirty(&mut self) -> Vec<(IpNet, Option<u32>)> {
        let mut changes = Vec::new();
        let dirty = std::mem::take(&mut self.dirty);
        for &prefix in &dirty {
            let mark = self.marks.of(prefix);
            let Some(known) = self.prefixes.get_mut(prefix) else { continue };
            known.dirty = false;
            let group = group(
                &mut self.sets,
                &mut self.grouping,
                &self.options,
                self.stamp,
                known.set,
                mark,
            );
            if replace(&mut self.grouping, &mut known.group, group) {
                changes.push((prefix, (group != 0).then_some(group)));
            }
            if known.set == 0 {
                self.prefixes.remove(prefix);
            }
        }
        if !self.marks.is_empty() {
            for &prefix in &dirty {
                let inside: Vec<_> = self.marks.inside(prefix).collect();
                for marked in inside {
                    self.inherit(marked, true, &mut changes);
                }
            }
        }
        changes
    }

    /// Finds what a marked prefix that has no route of its own inherits.
    fn inherit(&mut self, prefix: IpNet, is_marked: bool, changes: &mut Vec<(IpNet, Option<u32>)>) {
        let has_own = self.prefixes.get(prefix).is_some_and(|known| known.group != 0);
        let group = if has_own || !is_marked { 0 } else { self.covering(prefix) };
        let mut inherited = self.inherited.get(&prefix).copied().unwrap_or_default();
        if replace(&mut self.grouping, &mut inherited, group) {
            if group == 0 {
                self.inherited.remove(&prefix);
            } else {
                self.inherited.insert(prefix, group);
            }
            if !has_own {
                changes.push((prefix, (group != 0).then_some(group)));
            }
        }
    }

    /// The group that the longest route around a prefix would have with the prefix's mark.
    fn covering(&mut self, prefix: IpNet) -> u32 {
        let route = (0..prefix.prefix_len()).rev().find_map(|length| {
            self.prefixes.get(marks::shortened(prefix, length)).filter(|known| known.group != 0)
        });
        let Some(known) = route else { return 0 };
        let mark = self.marks.of(prefix);
        group(&mut self.sets, &mut self.grouping, &self.options, self.stamp, known.set, mark)
    }

    /// The whole table.
    fn table(&self) -> Table {
        let own = self.prefixes.iter().map(|(prefix, known)| (prefix, known.group));
        let inherited = self.inherited.iter().map(|(prefix, group)| (*prefix, *group));
        Table::build(own.chain(inherited).filter(|(_, group)| *group != 0))
    }
}

/// The count of a feed's reports of one kind.
fn counted(counts: &mut FxHashMap<Feed, (usize, usize)>, report: Report) -> &mut usize {
    let (prefixes, routes) = counts.entry(report.feed).or_default();
    if report.at.is_internal() { prefixes } else { routes }
}

/// Notes that a prefix changed; returns whether so many did that all are to be checked.
fn note(dirty: &mut Vec<IpNet>, known: &mut Known, prefix: IpNet) -> bool {
    if !known.dirty && dirty.len() <= DIRTY {
        known.dirty = true;
        dirty.push(prefix);
    }
    dirty.len() > DIRTY
}

/// The group of prefixes with this set and mark.
fn group(
    sets: &mut Sets,
    grouping: &mut Grouping,
    options: &Options,
    stamp: u32,
    set: SetId,
    mark: Mark,
) -> u32 {
    if mark != Mark::NONE {
        return grouping.find(sets.reports(set), mark, &options.ases);
    }
    if let Some(group) = sets.group(set, stamp) {
        return group;
    }
    let group = grouping.find(sets.reports(set), mark, &options.ases);
    sets.note(set, group, stamp);
    group
}

/// Gives a prefix another group; whether it is another.
fn replace(grouping: &mut Grouping, slot: &mut u32, group: u32) -> bool {
    if *slot == group {
        return false;
    }
    grouping.take(group);
    grouping.release(*slot);
    *slot = group;
    true
}
