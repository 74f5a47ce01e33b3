//! What traceroute prints: that of Linux and of the BSDs, also with names, ASes, several probes and
//! routers a hop; and tracert of Windows.
//!
//! ```text
//! traceroute to example.net (203.0.113.9), 30 hops max, 60 byte packets
//!  1  gw (192.0.2.1) [AS64500]  0.321 ms  0.299 ms *
//!  2  * * *
//!  3  198.51.100.1  9.8 ms 198.51.100.5  9.9 ms !X
//!
//! Tracing route to example.net [203.0.113.9]
//!   1    <1 ms     1 ms     1 ms  gw [192.0.2.1]
//!   2     *        *        *     Request timed out.
//! ```

use super::Failure;
use super::input::Lines;
use super::report::Context;
use super::trace::{Reply, Trace, put};
use std::io::BufRead;
use std::net::IpAddr;

/// Longest line, bytes.
const LINE: u64 = 16 << 10;

/// Whether a line begins a trace.
pub(super) fn is_head(line: &str) -> bool {
    head(line).is_some()
}

/// The content of the first line of a trace.
struct Head {
    to: Option<IpAddr>,
    from: Option<IpAddr>,
    /// The line goes on in the next one.
    windows: bool,
}

fn head(line: &str) -> Option<Head> {
    let line = line.trim();
    let windows = line.strip_prefix("Tracing route to ");
    let rest = windows
        .or_else(|| line.strip_prefix("traceroute to "))
        .or_else(|| line.strip_prefix("traceroute6 to "))
        .or_else(|| line.strip_prefix("tcptraceroute to "))?;
    let enclosed = |open, close| Some(rest.split_once(open)?.1.split_once(close)?.0);
    let first = || rest.split([' ', ',']).next();
    let to = enclosed('(', ')').or_else(|| enclosed('[', ']')).or_else(first);
    let to = to.and_then(address);
    let from =
        rest.split_once(" from ").and_then(|(_, from)| address(from.split([' ', ',']).next()?));
    Some(Head { to, from, windows: windows.is_some() })
}

/// An address, also one with a zone, which means nothing elsewhere.
fn address(text: &str) -> Option<IpAddr> {
    text.split('%').next()?.parse().ok()
}

/// Reads a file. A trace also counts where the file breaks off.
pub(super) fn read(
    reader: impl BufRead,
    name: &str,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let mut last = None;
    let result = lines(reader, name, context, &mut last);
    if let Some(trace) = last {
        put(context, trace)?;
    }
    result
}

/// Reads lines; `trace` is the one that may go on.
fn lines(
    reader: impl BufRead,
    name: &str,
    context: &mut Context<'_>,
    trace: &mut Option<Trace>,
) -> Result<(), Failure> {
    let mut lines = Lines::new(reader, LINE);
    let mut windows = false;
    let mut ttl = 0;
    while let Some((number, line)) = lines.next(context)? {
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        if let Some(head) = head(line) {
            if let Some(trace) = trace.take() {
                put(context, trace)?;
            }
            let mut next = Trace::new(number, name, head.to);
            next.from = head.from;
            if head.from.is_none() {
                context.assume(
                    "A trace without a source begins at a node that is named after its file.",
                );
            }
            *trace = Some(next);
            (windows, ttl) = (head.windows, 0);
            continue;
        }
        if windows && (words.starts_with("over a maximum") || words == "Trace complete.") {
            continue;
        }
        let Some(trace) = trace else {
            context.bad(number, "a hop before any `traceroute to` line", line);
            continue;
        };
        let hop = match words.split_once(char::is_whitespace) {
            Some((first, rest)) => first.parse::<u8>().ok().map(|hop| (hop, rest)),
            None => words.parse().ok().map(|hop| (hop, "")),
        };
        let rest = match hop {
            Some((hop, rest)) if hop > ttl => {
                ttl = hop;
                rest
            }
            // The BSDs begin a new line for each router of a hop.
            None if ttl > 0 && line.starts_with([' ', '\t']) => words,
            _ => {
                context.bad(number, "this is not a hop of a traceroute", line);
                continue;
            }
        };
        trace.hop(ttl);
        let replies = if windows { windows_hop(rest) } else { hop_replies(rest) };
        match replies {
            Some(replies) => replies.into_iter().for_each(|reply| trace.reply(ttl, reply)),
            None => context.bad(number, "the answers of this hop cannot be read", line),
        }
    }
    Ok(())
}

/// The answers of one hop: routers, each with its round trips and marks.
fn hop_replies(text: &str) -> Option<Vec<Reply>> {
    let mut replies: Vec<Reply> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if word == "*" {
            continue;
        }
        // A mark behind a time. Behind !H that time is the one that the router waited for ARP.
        if let Some(mark) = word.strip_prefix('!') {
            let reply = replies.last_mut()?;
            if mark.starts_with('H') {
                reply.rtt = None;
            }
            continue;
        }
        if word.starts_with('[') {
            let number = word.trim_matches(['[', ']', '*']).split('/').next().unwrap_or_default();
            let number = number.trim_start_matches("AS").parse().ok();
            let reply = replies.last_mut()?;
            reply.as_number = reply.as_number.or(number);
            continue;
        }
        // Labels of MPLS, and what the router says of its interface.
        if word.starts_with('<') {
            let mut part = word;
            while !part.ends_with('>') {
                part = words.next()?;
            }
            continue;
        }
        if words.peek() == Some(&"ms") {
            words.next();
            let rtt: f64 = word.parse().ok().filter(|rtt: &f64| rtt.is_finite())?;
            let reply = replies.last_mut()?;
            reply.rtt = Some(reply.rtt.map_or(rtt, |least| least.min(rtt)));
            reply.count += 1;
            continue;
        }
        let mut reply = Reply::default();
        let enclosed = words.peek().and_then(|next| next.strip_prefix('(')?.strip_suffix(')'));
        if let Some(next) = enclosed {
            reply.address = Some(address(next)?);
            reply.name = (address(word).is_none()).then(|| word.to_owned());
            words.next();
        } else {
            reply.address = Some(address(word)?);
        }
        replies.push(reply);
    }
    // A router without a time is no answer.
    Some(replies.into_iter().filter(|reply| reply.count > 0).collect())
}

/// The answers of one hop of tracert: round trips, then the router.
fn windows_hop(text: &str) -> Option<Vec<Reply>> {
    let mut words = text.split_whitespace().peekable();
    let mut reply = Reply::default();
    while let Some(word) = words.peek() {
        if *word == "*" {
            words.next();
            continue;
        }
        let less = word.strip_prefix('<');
        let Ok(rtt) = less.unwrap_or(word).parse::<f64>() else { break };
        // An address would not be read as a number.
        let rtt = if less.is_some() { rtt / 2.0 } else { rtt };
        words.next();
        if words.next() != Some("ms") || !rtt.is_finite() {
            return None;
        }
        reply.rtt = Some(reply.rtt.map_or(rtt, |least: f64| least.min(rtt)));
        reply.count += 1;
    }
    if reply.count == 0 {
        return Some(Vec::new());
    }
    let first = words.next()?;
    match words.next() {
        None => reply.address = Some(address(first)?),
        Some(next) => {
            reply.address = Some(address(next.strip_prefix('[')?.strip_suffix(']')?)?);
            reply.name = Some(first.to_owned());
        }
    }
    Some(vec![reply])
}
