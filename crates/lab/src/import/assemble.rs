//! A network from what all files say together.

use super::graph::{DirectedLink, Graph, Node, TooMany};
use super::report::ImportReport;
use super::{ImportOptions, business};
use crate::network::{BuildError, Builder, Draft, Kind, Network, Plan, Relation};
use crate::{LinkSettings, Nanos, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use topo::IpNet;

/// Delays are multiples of this, nanoseconds.
const GRAIN: u64 = 10_000;
/// The delay of links about which nothing is known.
const DELAY: Nanos = Nanos(1_000_000);
/// Where addresses are counted out if no file has any.
const NODES4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// As `NODES4`.
const NODES6: Ipv6Addr = Ipv6Addr::new(0xfd6e, 0x6967, 0x6800, 0, 0, 0, 0, 1);

/// Why no network came of it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AssembleError {
    /// There is too much of it.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// The network refuses it.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// A delay as it appears in the network: a multiple of 10 microseconds, above 1 millisecond of 1, 2 or 5
/// times a power of ten that is at most 1 % of it. So all delays up to a minute are of fewer than two
/// thousand kinds.
pub(super) fn rounded(delay: Nanos) -> Nanos {
    let mut step = GRAIN;
    for decade in (0..7).map(|exponent| GRAIN * 10_u64.pow(exponent)) {
        for next in [decade, 2 * decade, 5 * decade] {
            if next <= delay.0 / 100 {
                step = next;
            }
        }
    }
    Nanos((delay.0 + step / 2) / step * step)
}

/// Makes the network.
pub(super) fn assemble(
    mut graph: Graph,
    options: &ImportOptions,
    report: &mut ImportReport,
) -> Result<Network, AssembleError> {
    // Where only ASes or places are given, nodes get addresses by their numbers.
    let plan = if graph.routers {
        Plan::default()
    } else {
        Plan { node4: Some(NODES4), node6: Some(NODES6), ..Plan::default() }
    };
    business::apply(&mut graph, report)?;
    let mut builder = Builder::with_plan(plan);
    name(&mut builder, &graph)?;
    let owners = addresses(&mut builder, &graph, report)?;
    let homes = prefixes(&mut builder, &graph, &owners)?;
    let drafts = links(&mut builder, &mut graph, options, report)?;
    interfaces(&mut builder, &graph, &owners, &drafts)?;
    report.entries = entries(&mut builder, &graph, &owners, &homes, &drafts)?;
    report.prefixes = homes.len() as u64;
    let network = builder.finish()?;
    report.nodes = network.nodes();
    report.links = network.links();
    report.kinds = network.kinds().len();
    Ok(network)
}

/// Makes the nodes and gives each a name: its own, its first address, or a number.
fn name(builder: &mut Builder, graph: &Graph) -> Result<(), BuildError> {
    let mut first: FxHashMap<Node, IpAddr> = FxHashMap::default();
    for &(node, address) in &graph.addresses {
        first.entry(node).or_insert(address);
    }
    for (node, name) in (0..).zip(&graph.names) {
        let mut text = match (name, first.get(&node)) {
            // They are shown in terminals.
            (Some(name), _) => config::printable(name.chars()),
            (None, Some(address)) => address.to_string(),
            (None, None) => format!("node{node}"),
        };
        // Two homes may have the same private address.
        if builder.known(&text).is_some() {
            text = format!("{text}#{node}");
        }
        builder.node(&text)?;
    }
    Ok(())
}

/// Gives nodes their addresses. An address has one owner: of private ones the node that was seen first.
fn addresses(
    builder: &mut Builder,
    graph: &Graph,
    report: &mut ImportReport,
) -> Result<FxHashMap<IpAddr, Node>, BuildError> {
    let mut owners = FxHashMap::default();
    for &(node, address) in &graph.addresses {
        let owner = *owners.entry(address).or_insert(node);
        if owner == node {
            builder.node_address(NodeId(node), address)?;
        } else {
            report.skipped(
                "another node has this private address already: this one does not answer with it",
                || address.to_string(),
            );
        }
    }
    let mut own: Vec<_> = graph.own.iter().map(|(&(node, _), prefix)| (node, prefix)).collect();
    own.sort_unstable();
    for (node, prefix) in own {
        // The first one of a whole network is its own name.
        let first = match prefix {
            IpNet::V4(net) => net.hosts().next().map(IpAddr::V4),
            IpNet::V6(net) => net.hosts().nth(usize::from(net.prefix_len() < 127)).map(IpAddr::V6),
        };
        if let Some(address) = first
            && *owners.entry(address).or_insert(node) == node
        {
            builder.node_address(NodeId(node), address)?;
        }
    }
    Ok(owners)
}

/// Puts prefixes behind nodes; what is given for a prefix itself counts before the AS of its origin.
fn prefixes(
    builder: &mut Builder,
    graph: &Graph,
    owners: &FxHashMap<IpAddr, Node>,
) -> Result<FxHashMap<IpNet, Node>, BuildError> {
    let mut homes = graph.prefixes.clone();
    let mut from = 0;
    for &(to, end) in &graph.traces {
        let last = graph.traced_links.get(from..end).and_then(<[DirectedLink]>::last);
        from = end;
        if let Some((_, last)) = last.and_then(|&direction| graph.ends(direction))
            && !owners.contains_key(&to)
        {
            homes.entry(to.into()).or_insert(last);
        }
    }
    let mut list: Vec<_> = homes.iter().map(|(&prefix, &node)| (prefix, node)).collect();
    list.sort_unstable();
    for (prefix, node) in list {
        builder.prefix(NodeId(node), prefix)?;
    }
    Ok(homes)
}

/// Makes the links; returns the drafts of both directions of each edge.
fn links(
    builder: &mut Builder,
    graph: &mut Graph,
    options: &ImportOptions,
    report: &mut ImportReport,
) -> Result<Vec<[Option<Draft>; 2]>, BuildError> {
    let mut drafts = Vec::with_capacity(graph.edges.len());
    let mut assumed = 0_u64;
    let mut assumed_settings = LinkSettings { delay: DELAY, ..LinkSettings::default() };
    options.link.apply(&mut assumed_settings);
    for number in 0..graph.edges.len() as u32 {
        let Some((a, b)) = graph.ends(DirectedLink(number << 1)) else { continue };
        let delay = graph.delay(number);
        let relation = graph.business(a, b);
        let kind = |direction: DirectedLink, relation: Relation| {
            let mut settings = assumed_settings;
            if let Some(delay) = delay {
                settings.delay = delay;
            }
            let known = graph.known.get(&direction).copied().unwrap_or_default();
            known.settings.apply(&mut settings);
            settings.delay = rounded(settings.delay);
            let weight = u32::try_from(settings.delay.0 / GRAIN).unwrap_or(u32::MAX).max(1);
            let kind = Kind { settings, weight: known.weight.unwrap_or(weight), relation };
            (kind, known.missing, known.settings.delay.is_none())
        };
        let (forward, no_forward, unknown) = kind(DirectedLink(number << 1), relation);
        let (reverse, no_reverse, _) = kind(DirectedLink(number << 1 | 1), relation.mirrored());
        assumed += u64::from(unknown && delay.is_none());
        drafts.push(match (no_forward, no_reverse) {
            (false, false) => {
                let (forward, reverse) = (builder.kind(&forward)?, builder.kind(&reverse)?);
                builder.join(NodeId(a), NodeId(b), forward, reverse)?.map(Some)
            }
            (false, true) => {
                let kind = builder.kind(&forward)?;
                [Some(builder.one_way(NodeId(a), NodeId(b), kind)?), None]
            }
            (true, _) => {
                let kind = builder.kind(&reverse)?;
                [None, Some(builder.one_way(NodeId(b), NodeId(a), kind)?)]
            }
        });
    }
    if assumed > 0 {
        report.assume(&format!(
            "{assumed} links have no known delay: they are like `{assumed_settings}` (--link)."
        ));
    }
    Ok(drafts)
}

/// The draft of a directed link.
fn draft(drafts: &[[Option<Draft>; 2]], direction: DirectedLink) -> Option<Draft> {
    drafts.get(direction.0 as usize >> 1)?[direction.0 as usize & 1]
}

/// Gives interfaces their addresses, if their node has these.
fn interfaces(
    builder: &mut Builder,
    graph: &Graph,
    owners: &FxHashMap<IpAddr, Node>,
    drafts: &[[Option<Draft>; 2]],
) -> Result<(), BuildError> {
    for number in 0..graph.edges.len() as u32 * 2 {
        let direction = DirectedLink(number);
        let (Some(draft), Some((from, _))) = (draft(drafts, direction), graph.ends(direction))
        else {
            continue;
        };
        let v4 = graph.interfaces4.get(&direction).copied().map(IpAddr::V4);
        let v6 = graph.interfaces6.get(&direction).copied().map(IpAddr::V6);
        for address in v4.into_iter().chain(v6) {
            if owners.get(&address) == Some(&from) {
                builder.address(draft, address)?;
            }
        }
    }
    Ok(())
}

/// Makes packets to the destinations of traces take the links that were traced, as far as they agree.
/// Each trace is followed from its end: a node gets an entry if it has none and the node behind it has
/// one. So entries always lead to the end, though traces crossed each other.
fn entries(
    builder: &mut Builder,
    graph: &Graph,
    owners: &FxHashMap<IpAddr, Node>,
    homes: &FxHashMap<IpNet, Node>,
    drafts: &[[Option<Draft>; 2]],
) -> Result<u64, BuildError> {
    let mut count = 0;
    let mut added = FxHashSet::default();
    let mut give = |builder: &mut Builder,
                    prefix: IpNet,
                    direction: DirectedLink|
     -> Result<bool, BuildError> {
        let (Some(draft), Some((from, _))) = (draft(drafts, direction), graph.ends(direction))
        else {
            return Ok(false);
        };
        builder.entry(NodeId(from), prefix, draft)?;
        count += 1;
        Ok(true)
    };
    for &(prefix, direction) in &graph.entries {
        let Some((from, _)) = graph.ends(direction) else { continue };
        if added.insert((from, prefix)) {
            give(builder, prefix, direction)?;
        }
    }
    let starts = std::iter::once(0).chain(graph.traces.iter().map(|&(_, end)| end));
    let mut traces: Vec<_> =
        graph.traces.iter().zip(starts).map(|(&(to, end), start)| (to, start, end)).collect();
    traces.sort();
    for same in traces.chunk_by(|one, two| one.0 == two.0) {
        let Some(&(to, ..)) = same.first() else { continue };
        let prefix = IpNet::from(to);
        let Some(&home) = owners.get(&to).or_else(|| homes.get(&prefix)) else { continue };
        let mut leads: FxHashSet<Node> = FxHashSet::default();
        leads.insert(home);
        for &(_, start, end) in same {
            for &direction in graph.traced_links.get(start..end).unwrap_or_default().iter().rev() {
                let Some((from, next)) = graph.ends(direction) else { continue };
                let free = !leads.contains(&from) && !added.contains(&(from, prefix));
                if free && leads.contains(&next) && give(builder, prefix, direction)? {
                    leads.insert(from);
                }
            }
        }
    }
    Ok(count)
}
