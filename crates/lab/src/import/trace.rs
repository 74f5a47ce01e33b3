//! A traced path, whatever program traced it, and what it says of the network.
//!
//! ```text
//!   hop      1      2      3      4          round trips to the hops, the least of each
//!   ms       2      9      *      8
//!   at most  2      8             8          a later hop that answers sooner shows that an earlier
//!                                            one was slow to answer
//!   link     1      3      0      0          half of the differences; a silent hop shares
//! ```

use super::graph::{EVERYWHERE, Node, TooMany};
use super::report::Context;
use crate::Nanos;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Round trips above this are taken for this.
const LONGEST: f64 = 600_000.0;

/// One or more answers of one hop that come from one router.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply {
    /// The router's address, if it is known.
    pub(super) address: Option<IpAddr>,
    /// Its name, if it has one.
    pub(super) name: Option<String>,
    /// Its AS, if that is given.
    pub(super) as_number: Option<u32>,
    /// The least round trip in milliseconds.
    pub(super) rtt: Option<f64>,
    /// How many answers.
    pub(super) count: u32,
}

/// A path that was traced.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trace {
    /// The line or record where it begins.
    pub(super) line: u64,
    /// What the node is called where it begins, if its address does not show it.
    pub(super) from_name: String,
    /// The address where it begins.
    pub(super) from: Option<IpAddr>,
    /// Where it was to lead.
    pub(super) to: Option<IpAddr>,
    /// What answered, by TTL.
    hops: BTreeMap<u8, Vec<Reply>>,
}

impl Trace {
    /// No answers yet.
    pub(super) fn new(line: u64, from_name: &str, to: Option<IpAddr>) -> Self {
        Self { line, from_name: from_name.to_owned(), to, ..Self::default() }
    }

    /// A hop was asked.
    pub(super) fn hop(&mut self, ttl: u8) {
        self.hops.entry(ttl).or_default();
    }

    /// A hop answered.
    pub(super) fn reply(&mut self, ttl: u8, reply: Reply) {
        let replies = self.hops.entry(ttl).or_default();
        let same = |known: &&mut Reply| match (known.address, reply.address) {
            (None, None) => known.name == reply.name,
            (one, two) => one == two,
        };
        match replies.iter_mut().find(same) {
            Some(known) => {
                known.count += reply.count;
                known.rtt = match (known.rtt, reply.rtt) {
                    (Some(one), Some(two)) => Some(one.min(two)),
                    (one, two) => one.or(two),
                };
            }
            None => replies.push(reply),
        }
    }
}

/// Whether an address can mean another router elsewhere.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            address.is_private() || address.is_link_local() || (a == 100 && b & 0xc0 == 64)
        }
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    }
}

/// Whether no router can have it.
fn is_impossible(address: IpAddr) -> bool {
    address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address == IpAddr::from([255; 4])
}

/// A hop that counts.
struct Step {
    /// `None`: it did not answer.
    node: Option<Node>,
    address: Option<IpAddr>,
    /// Nanoseconds.
    rtt: Option<u64>,
}

/// Takes a trace.
pub(super) fn put(context: &mut Context<'_>, trace: Trace) -> Result<(), TooMany> {
    context.graph.routers = true;
    if !context.graph.aliases {
        context.assume("Each address is a router of its own (--aliases FILE joins them).");
    }
    context.assume("A router answers with the address of the incoming interface; the reverse path is the forward path.");
    context.assume("A link's delay is half of the difference of the least round trips to its ends, the median of all traces; hops that answer late do not count.");
    let Some(source) = source(context, &trace)? else {
        context.bad(trace.line, "a trace begins at an address that no host can have", "");
        return Ok(());
    };
    let mut steps = steps(context, &trace, source)?;
    while steps.last().is_some_and(|step| step.node.is_none()) {
        steps.pop();
    }
    if steps.is_empty() {
        context.skipped(trace.line, "no hop of the trace answered", "");
        return Ok(());
    }
    context.taken();
    let delays = delays(&steps);
    let nodes = nodes(context, source, &steps)?;
    let mut directions = Vec::with_capacity(steps.len());
    let mut before = source;
    for ((step, &node), delay) in steps.iter().zip(&nodes).zip(delays) {
        let direction = context.graph.direction((before, None), (node, step.address))?;
        if let Some(delay) = delay {
            context.graph.measured(direction, delay);
        }
        directions.push(direction);
        before = node;
    }
    let Some(to) = trace.to.filter(|&to| !is_impossible(to)) else {
        context.assume(
            "The address is not known to which a trace led: its path is not pinned by forwarding entries.",
        );
        return Ok(());
    };
    let reached = steps.last().is_some_and(|step| step.address == Some(to));
    if !reached {
        context.skipped(trace.line, "the trace did not reach its destination", &to.to_string());
        context.assume(
            "A destination that did not answer lies behind the last router that did; what is beyond it is not there.",
        );
    }
    context.graph.follow(to, &directions);
    Ok(())
}

/// The node where a trace begins.
fn source(context: &mut Context<'_>, trace: &Trace) -> Result<Option<Node>, TooMany> {
    let node = match trace.from {
        Some(address) if is_impossible(address) => return Ok(None),
        Some(address) if !is_private(address) => {
            let node = context.graph.at(EVERYWHERE, address)?;
            context.graph.name(node, &trace.from_name);
            node
        }
        other => {
            let node = context.graph.named(&trace.from_name)?;
            if let Some(address) = other {
                context.graph.claim(node, node, address);
            }
            node
        }
    };
    Ok(Some(node))
}

/// The hops up to the destination, each router once.
fn steps(context: &mut Context<'_>, trace: &Trace, source: Node) -> Result<Vec<Step>, TooMany> {
    let mut steps: Vec<Step> = Vec::new();
    let last = trace.hops.keys().next_back().copied().unwrap_or(0);
    for ttl in 1..=last {
        let replies = trace.hops.get(&ttl).map_or(&[][..], Vec::as_slice);
        // Of equals the first.
        let most = replies.iter().rev().max_by_key(|reply| reply.count);
        if replies.len() > 1 {
            context.skipped(
                trace.line,
                "several routers answered at one hop: the one that answered most was taken",
                &format!("hop {ttl}"),
            );
        }
        let impossible = |reply: &&Reply| reply.address.is_some_and(is_impossible);
        if most.filter(impossible).is_some() {
            context.bad(trace.line, "no router can have this address", &format!("hop {ttl}"));
        }
        let Some(reply) = most.filter(|reply| !impossible(reply)) else {
            steps.push(Step { node: None, address: None, rtt: None });
            continue;
        };
        let node = router(context, reply, source)?;
        let rtt = reply.rtt.filter(|rtt| *rtt >= 0.0);
        let rtt = rtt.map(|rtt| (rtt.min(LONGEST) * 1e6) as u64);
        // A router that answers for several hops is one hop.
        if let Some(step) = steps.last_mut().filter(|step| step.node == Some(node)) {
            step.rtt = step.rtt.into_iter().chain(rtt).min();
            continue;
        }
        if node == source || steps.iter().any(|step| step.node == Some(node)) {
            let text = format!("hop {ttl}");
            context.skipped(trace.line, "the trace has a loop: the rest is ignored", &text);
            break;
        }
        steps.push(Step { node: Some(node), address: reply.address, rtt });
        if reply.address.is_some() && reply.address == trace.to {
            break;
        }
    }
    Ok(steps)
}

/// The router that answered to something that was sent from `source`.
fn router(context: &mut Context<'_>, reply: &Reply, source: Node) -> Result<Node, TooMany> {
    let name = reply.name.as_deref().unwrap_or_default();
    let node = match reply.address {
        Some(address) => {
            let scope = if context.graph.find(address).is_some() || !is_private(address) {
                EVERYWHERE
            } else {
                context.assume("A private address is another router for each source of traces.");
                source
            };
            context.graph.at(scope, address)?
        }
        None => {
            context.assume(
                "A router of which only the name is known has no address and does not answer; trace with addresses (mtr -n, or -b).",
            );
            context.graph.named(name)?
        }
    };
    if !name.is_empty() {
        context.graph.name(node, name);
    }
    if let Some(number) = reply.as_number {
        context.graph.ases.entry(node).or_insert(number);
    }
    Ok(node)
}

/// The nodes of all steps; routers that did not answer are made.
fn nodes(context: &mut Context<'_>, source: Node, steps: &[Step]) -> Result<Vec<Node>, TooMany> {
    let mut nodes = Vec::with_capacity(steps.len());
    let mut before = source;
    let mut rest = steps;
    while let Some(gap) = rest.iter().position(|step| step.node.is_some()) {
        let after = rest.get(gap).and_then(|step| step.node).unwrap_or(source);
        for position in 0..gap {
            context.assume(
                "Routers that did not answer between two that did are the same in all traces, and do not answer here.",
            );
            // Their number distinguishes them as well.
            let index = (gap << 8 | position) as u16;
            nodes.push(context.graph.silent(before, after, index)?);
        }
        nodes.push(after);
        before = after;
        rest = rest.get(gap + 1..).unwrap_or_default();
    }
    Ok(nodes)
}

/// The delay of the link to each step, as far as round trips show it.
fn delays(steps: &[Step]) -> Vec<Option<Nanos>> {
    let mut delays = vec![None; steps.len()];
    let mut least = u64::MAX;
    let mut known: Vec<(usize, u64)> = Vec::new();
    for (index, step) in steps.iter().enumerate().rev() {
        if let Some(rtt) = step.rtt {
            least = least.min(rtt);
            known.push((index, least));
        }
    }
    let (mut from, mut before) = (0, 0);
    for (index, rtt) in known.into_iter().rev() {
        let links = (index + 1 - from) as u64;
        // What does not divide goes to the last one, so that the sum is right.
        let half = (rtt - before) / 2;
        for (number, delay) in (from..=index).zip(1..) {
            let part = half / links;
            let part = if number == index { half - part * (links - 1) } else { part };
            debug_assert!(delay <= links);
            if let Some(delay) = delays.get_mut(number) {
                *delay = Some(Nanos(part));
            }
        }
        (from, before) = (index + 1, rtt);
    }
    delays
}
