//! The TOML format of [`load::toml`](crate::load::toml).

use super::{Known, omitted};
use crate::{builder::Topology, path::ExternalPath, value::RouterId};
use ipnet::IpNet;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

/// Writes a network; returns notes of what is omitted.
pub fn toml(topology: Topology<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let mut notes = Vec::new();
    let known = Known::new(topology, &mut notes);
    writeln!(out, "# The network in force, written by nigh.")?;
    for (id, name) in topology.routers() {
        writeln!(out, "\n[[router]]\nid = \"{id}\"")?;
        if let Some(name) = name {
            writeln!(out, "name = {}", ::toml::Value::String(name.to_owned()))?;
        }
    }
    let properties: BTreeMap<_, _> = known.links.iter().copied().collect();
    let mut done = BTreeSet::new();
    for (key, link) in &known.links {
        if done.contains(key) {
            continue;
        }
        writeln!(
            out,
            "\n[[link]]\nfrom = \"{}\"\nto = \"{}\"\nid = {}\nbandwidth = {}\nlatency = {}\nweight = {}",
            key.from,
            key.to,
            key.id,
            bandwidth(link.bandwidth),
            latency(link.latency),
            link.weight
        )?;
        if link.congestion != 0.0 {
            writeln!(out, "congestion = {:?}", link.congestion)?;
        }
        if link.loss != 0.0 {
            writeln!(out, "loss = {:?}", link.loss)?;
        }
        let reverse = crate::LinkKey { from: key.to, to: key.from, id: key.id };
        if properties.get(&reverse) == Some(link) {
            writeln!(out, "both = true")?;
            done.insert(reverse);
        }
    }
    let mut internal: BTreeMap<RouterId, Vec<IpNet>> = BTreeMap::new();
    let mut waiting = 0;
    for (prefix, router) in topology.internal() {
        if known.routers.contains(&router) {
            internal.entry(router).or_default().push(prefix);
        } else {
            waiting += 1;
        }
    }
    omitted(&mut notes, waiting, "internal prefixes");
    for (router, prefixes) in internal {
        writeln!(out, "\n[[internal]]\nrouter = \"{router}\"")?;
        write_prefixes(out, &prefixes)?;
    }
    let mut external: BTreeMap<(RouterId, ExternalPath), Vec<IpNet>> = BTreeMap::new();
    let mut waiting = 0;
    for (prefix, exit, path) in topology.routes() {
        if known.routers.contains(&exit) {
            external.entry((exit, path)).or_default().push(prefix);
        } else {
            waiting += 1;
        }
    }
    omitted(&mut notes, waiting, "external routes");
    for ((exit, path), prefixes) in external {
        writeln!(
            out,
            "\n[[external]]\nexit = \"{exit}\"\nas_distance = {}\nas_number = {}",
            path.as_distance, path.as_number
        )?;
        write_prefixes(out, &prefixes)?;
    }
    for (at, to, via) in &known.next_hops {
        writeln!(
            out,
            "\n[[next_hop]]\nat = \"{at}\"\nto = \"{to}\"\nvia = \"{}\"\nid = {}",
            via.to, via.id
        )?;
    }
    Ok(notes)
}

/// Mbit/s as a rate with its unit; a number alone if it is no whole number of bits.
fn bandwidth(mbit: f64) -> String {
    let rate = config::Rate((mbit * 1e6).round() as u64).to_string();
    if config::mbit(&rate) == Ok(mbit) { format!("\"{rate}\"") } else { format!("{mbit:?}") }
}

/// Milliseconds as a duration with its unit; a number alone if it is no whole number of nanoseconds.
fn latency(ms: f64) -> String {
    let time = format!("{ms}ms");
    if config::milliseconds(&time) == Ok(ms) { format!("\"{time}\"") } else { format!("{ms:?}") }
}

fn write_prefixes(out: &mut dyn Write, prefixes: &[IpNet]) -> io::Result<()> {
    if let [prefix] = prefixes {
        return writeln!(out, "prefix = \"{prefix}\"");
    }
    writeln!(out, "prefixes = [")?;
    for prefix in prefixes {
        writeln!(out, "  \"{prefix}\",")?;
    }
    writeln!(out, "]")
}
