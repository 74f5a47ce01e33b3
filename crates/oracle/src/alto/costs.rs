//! Exact costs between PIDs and between endpoints, which never leave the core as they are.
//!
//! The ranking tables give the cost from a router to a group. The cost between endpoints is that from
//! the source's router to the destination's group, the same that Proxidor ranks by. The cost between
//! PIDs is the mean over the routers of the one and the groups of the other, weighted by their numbers
//! of prefixes; where a PID is one group, that is again the cost itself.

use super::{
    classes::Classes,
    cost::Cost,
    network_map::{NetworkMap, Pid},
};
use crate::tables::{Class, Tables};
use ipnet::IpNet;
use std::collections::HashMap;
use topo::{GroupId, RouterIndex};

/// Most routers whose costs are sampled to find the classes of a metric.
const SAMPLED_ROUTERS: usize = 64;
/// Most costs that are sampled.
const SAMPLED_COSTS: usize = 200_000;

/// The costs of a reply's pairs: source by source, of each in order of destinations.
pub(super) type Pairs = Vec<Option<Cost>>;

/// Costs between endpoints.
pub(super) fn between_endpoints(
    tables: &Tables,
    metric: usize,
    sources: &[IpNet],
    destinations: &[IpNet],
) -> Pairs {
    let view = &tables.view;
    let groups: Vec<GroupId> =
        destinations.iter().map(|prefix| view.group_of_prefix(*prefix)).collect();
    let mut pairs = Vec::with_capacity(sources.len() * groups.len());
    for source in sources {
        let router = view.source_of_group(view.group_of_prefix(*source));
        let router = router.or_else(|| default_router(tables));
        let row = tables.row(metric, router);
        pairs.extend(groups.iter().map(|group| Cost::of(row, *group, router.is_some())));
    }
    pairs
}

/// Costs between PIDs of a map, given by their indexes.
pub(super) fn between_pids(
    tables: &Tables,
    metric: usize,
    map: &NetworkMap,
    sources: &[u32],
    destinations: &[u32],
) -> Pairs {
    // From each router to each destination, so that many sources at one router cost no more.
    let mut means: HashMap<RouterIndex, Pairs> = HashMap::new();
    let mut pairs = Vec::with_capacity(sources.len() * destinations.len());
    for source in sources {
        let routers = map.pid(*source).map(|pid| routers(tables, pid)).unwrap_or_default();
        for (router, _) in &routers {
            means.entry(*router).or_insert_with(|| {
                let row = tables.row(metric, Some(*router));
                let to = |index: &u32| {
                    let groups = map.pid(*index).map(|pid| pid.groups.as_slice());
                    let groups = groups.unwrap_or_default().iter();
                    mean(groups.map(|(group, weight)| (Cost::of(row, *group, true), *weight)))
                };
                destinations.iter().map(to).collect()
            });
        }
        for index in 0..destinations.len() {
            pairs.push(mean(routers.iter().map(|(router, weight)| {
                (means.get(router).and_then(|row| row.get(index).copied().flatten()), *weight)
            })));
        }
    }
    pairs
}

/// The classes of a metric, from the costs between all routers and groups, or a part of them.
pub(super) fn classes(tables: &Tables, metric: usize, count: u16) -> Classes {
    let sources = tables.view.sources();
    let groups = tables.view.groups.len().max(1);
    let routers = sources.len().min(SAMPLED_ROUTERS).min((SAMPLED_COSTS / groups).max(1));
    let step = sources.len().div_ceil(routers.max(1)).max(1);
    let mut values = Vec::new();
    for router in sources.iter().step_by(step) {
        let row = tables.row(metric, Some(*router));
        let costs = tables.view.groups.iter().filter_map(|(group, _)| Cost::of(row, group, true));
        values.extend(costs.filter(|cost| cost.class == Class::Ordinary).map(|cost| cost.value));
    }
    Classes::new(values, count)
}

fn default_router(tables: &Tables) -> Option<RouterIndex> {
    tables.view.graph.index(tables.policy.default_router?)
}

/// Where traffic from a PID comes in.
fn routers(tables: &Tables, pid: &Pid) -> Vec<(RouterIndex, u32)> {
    if pid.sources.is_empty() {
        return default_router(tables).map(|router| (router, 1)).into_iter().collect();
    }
    pid.sources.clone()
}

/// The mean of those costs that are known. What is preferred or avoided as a whole stays so; else only
/// the plain costs count.
fn mean(costs: impl Iterator<Item = (Option<Cost>, u32)>) -> Option<Cost> {
    let known: Vec<(Cost, f64)> =
        costs.filter_map(|(cost, weight)| Some((cost?, f64::from(weight)))).collect();
    let (first, _) = known.first()?;
    if known.len() == 1 {
        return Some(*first);
    }
    let whole = known.iter().all(|(cost, _)| cost.class == first.class);
    let class = if whole { first.class } else { Class::Ordinary };
    let counted: Vec<&(Cost, f64)> = known.iter().filter(|(cost, _)| cost.class == class).collect();
    if counted.is_empty() {
        // Some preferred, some avoided and nothing between them.
        return Some(*first);
    }
    let total: f64 = counted.iter().map(|(_, weight)| weight).sum();
    let sum: f64 = counted.iter().map(|(cost, weight)| cost.value * weight).sum();
    let value = sum / total;
    (!value.is_nan()).then_some(Cost { class, value, is_cost: true })
}
