//! The oracle's topology files: the format `oracle.conf` with a file for each router, and TOML (crate `topo`).

use super::Failure;
use super::graph::{DirectedLink, EVERYWHERE, Graph, Known, Node, TooMany};
use super::report::Context;
use crate::settings::{Loss, Share};
use crate::{Nanos, SettingsChange};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use topo::load::{LoadError, Notices, Severity};
use topo::{Change, ExternalPath, IpNet, LinkKey, LinkProperties, RouterId};

/// Highest rate that links can have, bits a second.
pub(super) const MOST_RATE: u64 = 1_000_000_000_000_000;
/// Largest file of a router, bytes.
const ROUTER_FILE: u64 = 16 << 20;

/// Whether a line is one of the main file of the format `oracle.conf`.
pub(super) fn is_conf(line: &str) -> bool {
    let words: Vec<_> = line.split_whitespace().collect();
    match words[..] {
        ["configdir", _] | ["snetwork", _, _, _] | ["enetwork", _, _, _, _, _] => true,
        ["router", address, _] => address.parse::<RouterId>().is_ok(),
        _ => false,
    }
}

/// Whether a line is one of a file in TOML.
pub(super) fn is_toml(line: &str) -> bool {
    let section = line.trim().strip_prefix("[[").and_then(|line| line.split_once("]]"));
    section.is_some_and(|(name, _)| {
        matches!(name, "router" | "link" | "internal" | "external" | "next_hop")
    })
}

/// Reads a main file in the format `oracle.conf`. The files of routers are in a folder that begins at `beside`;
/// without it they are not read.
pub(super) fn conf(
    main: &[u8],
    beside: Option<&Path>,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let mut router_file = |folder: &Path, id: RouterId| -> (PathBuf, io::Result<Option<Vec<u8>>>) {
        let Some(beside) = beside else { return (folder.to_owned(), Ok(None)) };
        let path = beside.join(folder).join(id.to_string());
        let text = router_text(&path);
        (path, text)
    };
    let mut changes = Vec::new();
    let name = context.path().to_owned();
    let result = topo::load::oracle_conf::parse(main, &name, &mut router_file, &mut |change| {
        changes.push(change)
    });
    take(result, changes, context)
}

fn router_text(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(ROUTER_FILE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > ROUTER_FILE {
        return Err(io::Error::other("the file is larger than 16 MiB"));
    }
    Ok(Some(text))
}

/// Largest file but those of routers, bytes.
pub(super) const SIZE: u64 = 256 << 20;

/// Reads a file in TOML.
pub(super) fn toml(text: &[u8], context: &mut Context<'_>) -> Result<(), Failure> {
    let mut changes = Vec::new();
    let name = context.path().to_owned();
    let result =
        topo::load::toml::parse(text, &name, &mut |change| changes.push(change), &mut |_| ());
    take(result, changes, context)
}

/// Takes what was read, unless something is wrong with it.
fn take(
    result: Result<Notices, LoadError>,
    changes: Vec<Change>,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let (notices, good) = match result {
        Ok(notices) => (notices, true),
        Err(LoadError::Bad(notices)) => (notices, false),
        Err(LoadError::Read { error, .. }) => return Err(error.into()),
    };
    for notice in &notices.first {
        let text = format!("{}: {}", notice.key, notice.message);
        let text = text.trim_start_matches(": ");
        let line = notice.line as u64;
        match notice.severity {
            Severity::Error => {
                context.bad_in(&notice.file, line, "the topology is invalid and was ignored", text);
            }
            Severity::Warning => {
                context.skipped_in(&notice.file, line, "the topology has warnings", text);
            }
        }
    }
    if good {
        put(changes, context)?;
    }
    Ok(())
}

/// Takes changes.
fn put(changes: Vec<Change>, context: &mut Context<'_>) -> Result<(), TooMany> {
    context.graph.routers = true;
    let mut links: Vec<(LinkKey, LinkProperties)> = Vec::new();
    let mut exits: BTreeMap<IpNet, (ExternalPath, RouterId)> = BTreeMap::new();
    let mut behind: BTreeMap<RouterId, Vec<IpNet>> = BTreeMap::new();
    let mut next_hops = Vec::new();
    for change in changes {
        context.taken();
        let graph = &mut *context.graph;
        match change {
            Change::Router { id, name } => {
                let node = graph.at(EVERYWHERE, id.0)?;
                if let Some(name) = name {
                    graph.name(node, &name);
                }
            }
            Change::Link { key, properties } => links.push((key, properties)),
            Change::Internal { prefix, router } => {
                let node = graph.at(EVERYWHERE, router.0)?;
                if *graph.prefixes.entry(prefix).or_insert(node) == node {
                    behind.entry(router).or_default().push(prefix);
                } else {
                    let text = prefix.to_string();
                    context.skipped(
                        0,
                        "a prefix is at several routers: the first was taken",
                        &text,
                    );
                }
            }
            Change::Route { prefix, exit, path } => {
                let best = exits.entry(prefix).or_insert((path, exit));
                *best = (*best).min((path, exit));
            }
            Change::NextHop { at, to, via } => next_hops.push((at, to, via)),
            // Loaders do not take anything back.
            _ => {}
        }
    }
    for (prefix, (_, exit)) in exits {
        let node = context.graph.at(EVERYWHERE, exit.0)?;
        if *context.graph.prefixes.entry(prefix).or_insert(node) == node {
            behind.entry(exit).or_default().push(prefix);
        }
        context
            .assume("Other networks lie right behind the exit router with the shortest AS path.");
    }
    let directions = join(&links, context.graph)?;
    for (at, to, via) in next_hops {
        let Some(&direction) = directions.get(&via) else {
            context.skipped(0, "a next hop takes a link that is not there", &format!("{at} {to}"));
            continue;
        };
        let own = IpNet::from(to.0);
        for prefix in behind.get(&to).into_iter().flatten().copied().chain([own]) {
            context.graph.entries.push((prefix, direction));
        }
    }
    Ok(())
}

/// Makes links. Two of opposite directions are one if they have the same number, or else in their order.
fn join(
    links: &[(LinkKey, LinkProperties)],
    graph: &mut Graph,
) -> Result<FxHashMap<LinkKey, DirectedLink>, TooMany> {
    let mut open: FxHashMap<(Node, Node), Vec<(u32, DirectedLink)>> = FxHashMap::default();
    let mut directions = FxHashMap::default();
    for (key, properties) in links {
        let (from, to) = (graph.at(EVERYWHERE, key.from.0)?, graph.at(EVERYWHERE, key.to.0)?);
        if from == to || directions.contains_key(key) {
            continue;
        }
        let waiting = open.get_mut(&(to, from)).filter(|waiting| !waiting.is_empty());
        let direction = match waiting {
            Some(waiting) => {
                let index = waiting.iter().position(|(id, _)| *id == key.id).unwrap_or(0);
                waiting.remove(index).1.back()
            }
            None => {
                let direction = graph.join(from, to)?;
                graph.known.insert(direction.back(), Known { missing: true, ..Known::default() });
                open.entry((from, to)).or_default().push((key.id, direction));
                direction
            }
        };
        graph.known.insert(direction, known(properties));
        directions.insert(*key, direction);
    }
    Ok(directions)
}

fn known(properties: &LinkProperties) -> Known {
    let rate = (properties.bandwidth * 1e6).round();
    let share: Option<Share> = format!("{:.10}%", properties.loss * 100.0).parse().ok();
    let share = share.filter(|share| *share != Share::NEVER);
    let settings = SettingsChange {
        delay: Some(Nanos((properties.latency * 1e6).round() as u64)),
        rate: (rate >= 1.0).then_some(Some((rate as u64).min(MOST_RATE))),
        loss: share.map(Loss::Independent),
        ..SettingsChange::default()
    };
    Known { settings, weight: Some(properties.weight.max(1)), missing: false }
}
