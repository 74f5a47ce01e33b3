//! Routers and the addresses of their interfaces: aliases, and the nodes, links and ASes of an Internet
//! Topology Data Kit.
//!
//! ```text
//! 192.0.2.1 198.51.100.1               aliases: the addresses of one router
//! node N1:  192.0.2.1 198.51.100.1     the same, with the router's name
//! link L1:  N1:192.0.2.1 N2 N3:192.0.2.9     who is joined, and by which interface if it is known
//! node.AS N1 64500 refinement          in which AS a router is
//! ```

use super::Failure;
use super::graph::{EVERYWHERE, Node};
use super::input::Lines;
use super::report::Context;
use std::io::BufRead;
use std::net::IpAddr;

/// Longest line, bytes: some routers have thousands of addresses.
const LINE: u64 = 4 << 20;
/// Links with more members than this are stars around their first one.
const MESH: usize = 32;

/// Whether a line describes a router.
pub(super) fn is_node(line: &str) -> bool {
    node(line).is_some()
}

/// Whether a line describes a link.
pub(super) fn is_link(line: &str) -> bool {
    line.strip_prefix("link ").and_then(|rest| rest.split_once(':')).is_some()
}

/// Whether a line gives a router's AS.
pub(super) fn is_as(line: &str) -> bool {
    line.starts_with("node.AS ")
}

/// A router's name and the rest of the line.
fn node(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("node ")?.split_once(':').map(|(name, rest)| (name.trim(), rest))
}

/// Reads routers: lines of nodes or of aliases.
pub(super) fn nodes(reader: impl BufRead, context: &mut Context<'_>) -> Result<(), Failure> {
    (context.graph.routers, context.graph.aliases) = (true, true);
    let mut lines = Lines::new(reader, LINE);
    while let Some((number, line)) = lines.next(context)? {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, addresses) = match node(line) {
            Some((name, addresses)) => (Some(name), addresses),
            None => (None, line),
        };
        let addresses = addresses.split_whitespace().map(str::parse);
        let Ok(addresses) = addresses.collect::<Result<Vec<IpAddr>, _>>() else {
            context.bad(number, "a router's line has a word that is not an address", line);
            continue;
        };
        let known = name.and_then(|name| context.graph.known_name(name));
        if known.is_some() {
            context.bad(number, "the router is defined a second time", line);
            continue;
        }
        let router = match name {
            Some(name) => context.graph.named(name)?,
            None => context.graph.unnamed()?,
        };
        for address in addresses {
            if !context.graph.claim(router, EVERYWHERE, address) {
                context.bad(number, "another router has this address", &address.to_string());
            }
        }
        context.taken();
    }
    Ok(())
}

/// A member of a link: its name, and the address of its interface.
fn member(word: &str) -> Option<(&str, Option<IpAddr>)> {
    match word.split_once(':') {
        None => Some((word, None)),
        Some((name, address)) => Some((name, Some(address.parse().ok()?))),
    }
}

/// Reads links. Who has a known interface is joined to all others: the link was seen where that
/// interface answered.
pub(super) fn links(reader: impl BufRead, context: &mut Context<'_>) -> Result<(), Failure> {
    context.graph.routers = true;
    let mut lines = Lines::new(reader, LINE);
    while let Some((number, line)) = lines.next(context)? {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let members = line.strip_prefix("link ").and_then(|rest| rest.split_once(':'));
        let members = members.map(|(_, members)| members.split_whitespace().map(member));
        let Some(members) = members.and_then(Iterator::collect::<Option<Vec<_>>>) else {
            context.bad(number, "this is not a link of routers", line);
            continue;
        };
        let mut nodes: Vec<(Node, Option<IpAddr>)> = Vec::with_capacity(members.len());
        for (name, address) in members {
            let node = match context.graph.known_name(name) {
                Some(node) => node,
                None => {
                    let what = "a link names a router that the nodes do not have: it was made";
                    context.skipped(number, what, name);
                    context.graph.named(name)?
                }
            };
            let index = nodes.iter().position(|&(known, _)| known == node);
            match index.and_then(|index| nodes.get_mut(index)) {
                Some(known) => known.1 = known.1.or(address),
                None => nodes.push((node, address)),
            }
            if let Some(address) = address
                && !context.graph.claim(node, EVERYWHERE, address)
            {
                context.bad(number, "another router has this address", &address.to_string());
            }
        }
        if nodes.len() < 2 {
            context.bad(number, "a link joins two routers at least", line);
            continue;
        }
        let hubs = if nodes.len() <= MESH {
            nodes.iter().filter(|(_, address)| address.is_some()).count().max(1)
        } else {
            let what = "a link has very many routers: all are joined to its first one";
            context.skipped(number, what, line);
            1
        };
        if nodes.len() > 2 {
            context.assume(
                "On a link of several routers those whose interface is known are joined to all others, without a switch between them.",
            );
        }
        // Those that are joined to all come first.
        nodes.sort_by_key(|(_, address)| address.is_none());
        for (index, &one) in nodes.iter().enumerate().take(hubs) {
            for &two in nodes.iter().skip(index + 1) {
                context.graph.direction(one, two)?;
            }
        }
        context.taken();
    }
    Ok(())
}

/// Reads the ASes of routers.
pub(super) fn ases(reader: impl BufRead, context: &mut Context<'_>) -> Result<(), Failure> {
    let mut lines = Lines::new(reader, LINE);
    while let Some((number, line)) = lines.next(context)? {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let words = (words.next(), words.next(), words.next().map(str::parse));
        let (Some("node.AS"), Some(name), Some(Ok(number_of_as))) = words else {
            context.bad(number, "this is not a router and its AS", line);
            continue;
        };
        match context.graph.known_name(name) {
            Some(node) => {
                context.graph.ases.insert(node, number_of_as);
                context.taken();
            }
            None => context.skipped(number, "an AS is given for a router that is not there", line),
        }
    }
    Ok(())
}
