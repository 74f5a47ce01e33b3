//! Building rows.
//!
//! All prefixes of all groups end in few forms: through one of some exits, with some length of the AS
//! path behind it. Such an *ending*, an exit with what lies beyond it and a mark, has one cost from a
//! router. So a row takes one tree of shortest paths, one evaluation for each ending, and for each
//! group the choice of its exit. Routers are shared out among all cores.
//!
//! **Rows are kept** when the graph, the choice of exits and the policy are the same and groups have
//! kept their numbers; then prefixes have only moved between groups. Where groups were added, a row is
//! extended if each new group's cost has a rank in it already, and else made again.
//!
//! **Too many costs.** A row has 65,535 ranks. Where it has more distinct costs, neighbours in order
//! share a rank, evenly over the row: some candidates that differ are then ranked as equal, none in
//! the wrong order. What is preferred, ordinary and avoided never shares one.

use std::{
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rustc_hash::FxHashMap;
use topo::{Exit, Group, GroupId, Mark, RouterIndex, Tree, View};

use super::{Policy, Tables, UNKNOWN, adjust::Class};

/// How many ranks a row has; the last number is [`UNKNOWN`].
const RANKS: usize = UNKNOWN as usize;

/// One row.
#[derive(Debug, PartialEq)]
pub(super) struct RowData {
    /// For each group its rank.
    pub(super) ranks: Box<[u16]>,
    /// For each rank its cost; of several the lowest.
    pub(super) costs: Box<[f64]>,
    /// For each class the rank that follows its last one.
    ends: [usize; 3],
    /// Whether each rank is of one cost only.
    exact: bool,
}

impl RowData {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ranks) + size_of_val(&*self.costs)
    }

    /// The class of a rank that the row has.
    pub(super) fn class(&self, rank: u16) -> Option<Class> {
        let classes = [Class::Preferred, Class::Ordinary, Class::Avoided];
        let mut ends = classes.into_iter().zip(self.ends);
        ends.find(|(_, end)| usize::from(rank) < *end).map(|(class, _)| class)
    }

    /// The rank of a cost that the row has.
    fn find(&self, key: Key) -> Option<u16> {
        let class = key.class as usize;
        let start = class.checked_sub(1).map_or(0, |before| self.ends[before]);
        let costs = self.costs.get(start..self.ends[class])?;
        let at = costs.binary_search_by(|cost| cost.total_cmp(&key.cost)).ok()?;
        u16::try_from(start + at).ok()
    }
}

/// By what a row is ordered. The cost is a number, and not -0.
#[derive(Clone, Copy, Debug)]
struct Key {
    class: Class,
    cost: f64,
}

impl Key {
    fn new((class, penalty): (Class, f64), cost: f64) -> Option<Self> {
        // Adding 0 makes 0 of -0.
        let cost = cost + penalty + 0.0;
        (!cost.is_nan()).then_some(Self { class, cost })
    }

    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.class.cmp(&other.class).then(self.cost.total_cmp(&other.cost))
    }
}

/// How groups end, the same for all routers.
#[derive(Debug)]
struct Endings {
    /// The group that is the first one here.
    first: usize,
    all: Vec<(Exit, Mark)>,
    /// For each group where its endings begin in `of`, and the end of all.
    starts: Vec<u32>,
    /// For each exit of each group its ending.
    of: Vec<u32>,
}

impl Endings {
    /// The endings of all groups from this one on.
    fn new(view: &View, first: usize) -> Self {
        let mut endings = Self { first, all: Vec::new(), starts: vec![0], of: Vec::new() };
        let mut known = FxHashMap::default();
        for (_, group) in view.groups.iter().skip(first) {
            for exit in &group.exits {
                let ending = (*exit, group.mark);
                let number = *known.entry(ending).or_insert_with(|| {
                    endings.all.push(ending);
                    endings.all.len() as u32 - 1
                });
                endings.of.push(number);
            }
            endings.starts.push(endings.of.len() as u32);
        }
        endings
    }

    /// For each group its ending from the tree's router.
    fn choose(&self, view: &View, tree: &Tree) -> Vec<Option<u32>> {
        let ending = |(group, start): (&Group, &u32)| {
            let exit = tree.exit(group)?;
            let offset = group.exits.iter().position(|other| ptr::eq(other, exit))?;
            self.of.get(*start as usize + offset).copied()
        };
        let groups = view.groups.iter().skip(self.first).map(|(_, group)| group);
        groups.zip(&self.starts).map(ending).collect()
    }

    /// For each ending what it is ordered by from the tree's router.
    fn keys(&self, policy: &Policy, metric: usize, tree: &Tree) -> Vec<Option<Key>> {
        let Some(metric) = policy.metrics.get(metric) else { return vec![None; self.all.len()] };
        let key = |(exit, mark): &(Exit, Mark)| {
            let path = tree.to(exit.router)?.with_external(exit.path);
            Key::new(policy.adjustments.of(*mark, path.as_number), metric.cost(&path))
        };
        self.all.iter().map(key).collect()
    }
}

/// Makes a row of the endings that groups have chosen and what these are ordered by.
fn row(chosen: &[Option<u32>], keys: &[Option<Key>]) -> RowData {
    // Only endings that some group uses get a rank.
    let mut used = vec![false; keys.len()];
    for ending in chosen.iter().flatten() {
        used[*ending as usize] = true;
    }
    let mut order: Vec<(Key, u32)> = (0..)
        .zip(keys)
        .filter(|(ending, _)| used[*ending as usize])
        .filter_map(|(ending, key)| Some(((*key)?, ending)))
        .collect();
    order.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let distinct = order.chunk_by(|(a, _), (b, _)| a.cmp(b).is_eq()).count();
    let exact = distinct <= RANKS;
    let mut ranks = vec![UNKNOWN; keys.len()];
    let mut costs = Vec::with_capacity(distinct.min(RANKS));
    let mut ends = [0; 3];
    for (position, equal) in order.chunk_by(|(a, _), (b, _)| a.cmp(b).is_eq()).enumerate() {
        let Some((key, _)) = equal.first() else { continue };
        let class = key.class as usize;
        // Two ranks are reserved so that a class can begin with a new rank.
        let rank = if exact { position } else { position * (RANKS - 2) / distinct + class };
        if rank >= costs.len() {
            // A class without costs skips the rank that was reserved for it.
            costs.resize(rank + 1, key.cost);
        }
        ends[class..].fill(costs.len());
        for (_, ending) in equal {
            ranks[*ending as usize] = rank as u16;
        }
    }
    RowData {
        ranks: chosen
            .iter()
            .map(|ending| ending.map_or(UNKNOWN, |ending| ranks[ending as usize]))
            .collect(),
        costs: costs.into(),
        ends,
        exact,
    }
}

/// The row of requests from nowhere: every known group costs 0, but for its adjustment.
fn unsourced(view: &View, policy: &Policy) -> RowData {
    let mut keys = Vec::new();
    let mut chosen = Vec::with_capacity(view.groups.len());
    let mut known = FxHashMap::default();
    for (id, group) in view.groups.iter() {
        if id == GroupId::UNKNOWN || group.exits.is_empty() {
            chosen.push(None);
            continue;
        }
        // Without a path there is no exit to choose, so no origin AS unless all exits agree on it.
        let mut ases = group.exits.iter().map(|exit| exit.path.as_number);
        let as_number = ases.next().filter(|first| ases.all(|next| next == *first)).unwrap_or(0);
        let ending = *known.entry((group.mark, as_number)).or_insert_with(|| {
            keys.push(Key::new(policy.adjustments.of(group.mark, as_number), 0.0));
            keys.len() as u32 - 1
        });
        chosen.push(Some(ending));
    }
    row(&chosen, &keys)
}

/// A row with ranks for groups that were added, if all of them have one already.
fn extended(old: &RowData, chosen: &[Option<u32>], keys: &[Option<Key>]) -> Option<RowData> {
    if !old.exact {
        return None;
    }
    let mut ranks = Vec::with_capacity(old.ranks.len() + chosen.len());
    ranks.extend_from_slice(&old.ranks);
    for ending in chosen {
        let key = ending.and_then(|ending| keys[ending as usize]);
        ranks.push(match key {
            Some(key) => old.find(key)?,
            None => UNKNOWN,
        });
    }
    let (costs, ends) = (old.costs.clone(), old.ends);
    Some(RowData { ranks: ranks.into(), costs, ends, exact: true })
}

/// What all threads build from.
struct Work<'w> {
    view: &'w View,
    policy: &'w Policy,
    /// Tables with rows that may be shared, and the endings of the groups that they do not have.
    previous: Option<(&'w Tables, Endings)>,
    /// The endings of all groups, made when they are needed.
    endings: OnceLock<Endings>,
}

impl Work<'_> {
    /// The rows of a router, one for each metric.
    fn rows(&self, router: RouterIndex) -> Vec<Arc<RowData>> {
        let mut tree = None;
        let mut rows = self.kept(router, &mut tree);
        let metrics = self.policy.metrics.len();
        if rows.len() == metrics {
            return rows;
        }
        let tree = tree.unwrap_or_else(|| self.view.tree(router));
        let endings = self.endings.get_or_init(|| Endings::new(self.view, 0));
        let chosen = endings.choose(self.view, &tree);
        for metric in rows.len()..metrics {
            rows.push(Arc::new(row(&chosen, &endings.keys(self.policy, metric, &tree))));
        }
        rows
    }

    /// The rows of the first metrics that can be shared or extended.
    fn kept(&self, router: RouterIndex, tree: &mut Option<Tree>) -> Vec<Arc<RowData>> {
        let Some((previous, added)) = &self.previous else { return Vec::new() };
        let old = |metric| previous.rows.get::<usize>(metric)?.get(router.index())?.clone();
        let old = (0..self.policy.metrics.len()).map_while(old);
        if added.starts.len() == 1 {
            return old.collect();
        }
        let tree = tree.get_or_insert_with(|| self.view.tree(router));
        let chosen = added.choose(self.view, tree);
        old.zip(0..)
            .map_while(|(old, metric)| {
                extended(&old, &chosen, &added.keys(self.policy, metric, tree)).map(Arc::new)
            })
            .collect()
    }
}

/// Builds tables.
pub(super) fn build(view: Arc<View>, policy: Arc<Policy>, previous: Option<&Tables>) -> Tables {
    let previous = previous.filter(|old| {
        Arc::ptr_eq(&old.view.graph, &view.graph)
            && old.view.options.exits == view.options.exits
            && old.view.groups.same_ids(&view.groups)
            && old.view.groups.len() <= view.groups.len()
            && (Arc::ptr_eq(&old.policy, &policy) || old.policy == policy)
    });
    let default_router = policy.default_router.and_then(|id| view.graph.index(id));
    let mut routers = view.sources().to_vec();
    if let Some(router) = default_router
        && !routers.contains(&router)
    {
        routers.push(router);
    }
    let work = Work {
        view: &view,
        policy: &policy,
        previous: previous.map(|old| (old, Endings::new(&view, old.view.groups.len()))),
        endings: OnceLock::new(),
    };
    let done = in_parallel(&routers, |router| work.rows(router));
    let mut rows = vec![vec![None; view.graph.routers().len()]; policy.metrics.len()];
    for (router, of_router) in done {
        for (column, row) in rows.iter_mut().zip(of_router) {
            if let Some(entry) = column.get_mut(router.index()) {
                *entry = Some(row);
            }
        }
    }
    let unsourced = Arc::new(unsourced(&view, &policy));
    drop(work);
    Tables { view, policy, rows, unsourced, default_router }
}

/// What `f` makes of each router, on all cores.
fn in_parallel<T: Send>(
    routers: &[RouterIndex],
    f: impl Fn(RouterIndex) -> T + Sync,
) -> Vec<(RouterIndex, T)> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        while let Some(&router) = routers.get(next.fetch_add(1, Ordering::Relaxed)) {
            panics::point("oracle-tables");
            done.push((router, f(router)));
        }
        done
    };
    let others =
        thread::available_parallelism().map_or(1, usize::from).min(routers.len()).saturating_sub(1);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..others).map(|_| scope.spawn(panics::inherit(some))).collect();
        let mut done = some();
        for thread in threads {
            match thread.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

#[cfg(test)]
mod tests;
