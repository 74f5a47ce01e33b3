//! What ASes make of a network: relations of links between routers of two ASes, homes of prefixes; and
//! where no file names routers, a node for each AS.

use super::graph::{Graph, Node, TooMany};
use super::report::ImportReport;
use crate::network::Relation;
use rustc_hash::FxHashMap;
use std::net::IpAddr;
use topo::IpNet;
use topo::lpm::Table;

/// Adds to the graph what follows from ASes.
pub(super) fn apply(graph: &mut Graph, report: &mut ImportReport) -> Result<(), TooMany> {
    if graph.routers {
        routers(graph, report);
        Ok(())
    } else {
        ases(graph, report)
    }
}

/// A node for each AS that has a relation.
fn ases(graph: &mut Graph, report: &mut ImportReport) -> Result<(), TooMany> {
    if graph.relations.is_empty() {
        if let Some((prefix, _)) = graph.origins.first().filter(|_| graph.names.is_empty()) {
            let prefix = *prefix;
            report.skipped("prefixes, but no file names routers or relations of ASes", || {
                prefix.to_string()
            });
        }
    } else {
        report.assume("Each AS is one node.");
    }
    let mut relations: Vec<_> = graph.relations.keys().copied().collect();
    relations.sort_unstable();
    for (one, two) in relations {
        let [one, two] = [one, two].map(|number| {
            let node = graph.named(&format!("as{number}"))?;
            graph.ases.insert(node, number);
            Ok(node)
        });
        let (one, two) = (one?, two?);
        graph.direction((one, None), (two, None))?;
    }
    let origins = std::mem::take(&mut graph.origins);
    for &(prefix, origin) in &origins {
        let Some(node) = graph.known_name(&format!("as{origin}")) else {
            report.skipped("the AS of a prefix has no relation to another", || {
                format!("{prefix} of AS {origin}")
            });
            continue;
        };
        graph.prefixes.entry(prefix).or_insert(node);
        graph.own.entry((node, prefix.addr().is_ipv4())).or_insert(prefix);
    }
    if !graph.own.is_empty() {
        report.assume("An AS's node answers with the first address of the first prefix of its AS.");
    }
    Ok(())
}

/// Relations for links between routers, and routers for prefixes.
fn routers(graph: &mut Graph, report: &mut ImportReport) {
    let origins = std::mem::take(&mut graph.origins);
    if !origins.is_empty() {
        numbers(graph, &origins);
        homes(graph, &origins, report);
    }
    if graph.relations.is_empty() {
        return;
    }
    let mut used = 0_u64;
    for edge in &graph.edges {
        let [Some(one), Some(two)] = edge.ends.map(|end| graph.ases.get(&end)) else { continue };
        used += u64::from(one != two && graph.relation(*one, *two).is_some());
    }
    if used == 0 {
        report.skipped("no link joins two ASes whose relation is known", || {
            "the ASes of routers follow from prefix2as or node.AS".to_owned()
        });
    }
    report.assume(
        "Relations of ASes are those of the links between their routers; ASes without routers are not there.",
    );
}

/// The ASes of routers: of most of its addresses; of one that did not answer that of the one before it.
fn numbers(graph: &mut Graph, origins: &[(IpNet, u32)]) {
    let table = Table::build(origins.iter().copied());
    let mut votes: FxHashMap<Node, Vec<(u32, u32)>> = FxHashMap::default();
    for &(node, address) in &graph.addresses {
        if graph.ases.contains_key(&node) {
            continue;
        }
        let number = match address {
            IpAddr::V4(address) => table.lookup4(address.to_bits()),
            IpAddr::V6(address) => table.lookup6(address.to_bits()),
        };
        if number == 0 {
            continue;
        }
        let votes = votes.entry(node).or_default();
        match votes.iter_mut().find(|(known, _)| *known == number) {
            Some((_, count)) => *count += 1,
            None => votes.push((number, 1)),
        }
    }
    for (node, votes) in votes {
        // Of equals the first.
        if let Some(&(number, _)) = votes.iter().rev().max_by_key(|(_, count)| *count) {
            graph.ases.insert(node, number);
        }
    }
    for edge in 0..graph.edges.len() {
        let Some([one, two]) = graph.edges.get(edge).map(|edge| edge.ends) else { continue };
        if graph.is_silent(two)
            && let Some(&number) = graph.ases.get(&one)
        {
            graph.ases.entry(two).or_insert(number);
        }
    }
}

/// Puts prefixes behind routers of their AS: the one with the most links.
fn homes(graph: &mut Graph, origins: &[(IpNet, u32)], report: &mut ImportReport) {
    let mut degrees = vec![0_u32; graph.names.len()];
    for edge in &graph.edges {
        for end in edge.ends {
            if let Some(degree) = degrees.get_mut(end as usize) {
                *degree += 1;
            }
        }
    }
    let mut largest: FxHashMap<u32, (u32, Node)> = FxHashMap::default();
    for (node, degree) in (0..).zip(degrees) {
        let Some(number) = graph.ases.get(&node).filter(|_| !graph.is_silent(node)) else {
            continue;
        };
        let best = largest.entry(*number).or_insert((degree, node));
        if degree > best.0 {
            *best = (degree, node);
        }
    }
    for &(prefix, origin) in origins {
        match largest.get(&origin) {
            Some(&(_, node)) => {
                graph.prefixes.entry(prefix).or_insert(node);
            }
            None => report
                .skipped("the AS of a prefix has no router", || format!("{prefix} of AS {origin}")),
        }
    }
    if !graph.prefixes.is_empty() {
        report.assume("A prefix lies behind the router of its AS that has the most links.");
        report.assume(
            "A router is in the AS from whose prefixes most of its addresses are; at borders that is often the neighbour's.",
        );
    }
}

impl Graph {
    /// What the end of an edge is to its beginning.
    pub(super) fn business(&self, from: Node, to: Node) -> Relation {
        match (self.ases.get(&from), self.ases.get(&to)) {
            (Some(one), Some(two)) => self.relation(*one, *two).unwrap_or_default(),
            _ => Relation::None,
        }
    }
}
