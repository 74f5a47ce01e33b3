//! ASes: how they do business with each other, and which prefixes originate in them.
//!
//! ```text
//! 3356|64500|-1            relations, serial 1: provider, customer
//! 174|3356|0               peers
//! 174|3356|0|bgp           serial 2 says where it is known from
//!
//! 192.0.2.0  24  64500     prefix2as: prefix, length, origin
//! 198.51.100.0 24 64500_64501,64502     several origins; a set, which aggregates have
//! ```

use super::Failure;
use super::input::Lines;
use super::report::Context;
use crate::network::Relation;
use std::io::BufRead;
use std::net::IpAddr;
use topo::IpNet;

/// Longest line, bytes.
const LINE: u64 = 64 << 10;

/// Whether a line is one of AS relationships.
pub(super) fn is_relation(line: &str) -> bool {
    relation(line).is_ok()
}

/// Whether a line is one of prefix2as.
pub(super) fn is_origin(line: &str) -> bool {
    origin(line).is_ok()
}

/// The two ASes, and what the second is to the first.
fn relation(line: &str) -> Result<(u32, u32, Relation), &'static str> {
    let mut words = line.trim().split('|');
    let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
    let (Some(one), Some(two)) = (number(), number()) else {
        return Err("this is not a relation of two ASes");
    };
    let relation = match words.next() {
        Some("-1") => Relation::Customer,
        Some("0") => Relation::Peer,
        _ => return Err("a relation is -1 (provider and customer) or 0 (peers)"),
    };
    // The source of serial 2 may be anything.
    if words.nth(1).is_some() {
        return Err("this is not a relation of two ASes");
    }
    if one == two { Err("an AS is related to itself") } else { Ok((one, two, relation)) }
}

/// Reads AS relationships.
pub(super) fn relations(reader: impl BufRead, context: &mut Context<'_>) -> Result<(), Failure> {
    let mut lines = Lines::new(reader, LINE);
    while let Some((number, line)) = lines.next(context)? {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match relation(line) {
            Ok((one, two, relation)) if context.graph.relate(one, two, relation) => context.taken(),
            Ok(_) => context.bad(number, "the two ASes have another relation before", line),
            Err(why) => context.bad(number, why, line),
        }
    }
    Ok(())
}

/// A prefix and its first origin; how many origins there are.
fn origin(line: &str) -> Result<(IpNet, u32, usize), &'static str> {
    let mut words = line.split_whitespace();
    let (Some(address), Some(length), Some(origins), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("this is not a prefix, length and AS");
    };
    let address: IpAddr = address.parse().map_err(|_| "this is not an address")?;
    let length = length.parse().map_err(|_| "this is not the length of a prefix")?;
    let prefix = IpNet::new(address, length).map_err(|_| "the length does not fit the family")?;
    if prefix != prefix.trunc() {
        return Err("the prefix has bits behind its length");
    }
    let mut first = None;
    let mut count = 0;
    for word in origins.split(['_', ',']) {
        let number: u32 = word.parse().map_err(|_| "an origin is no AS number")?;
        first = first.or(Some(number));
        count += 1;
    }
    first.map(|first| (prefix, first, count)).ok_or("an origin is no AS number")
}

/// Reads prefix2as.
pub(super) fn origins(reader: impl BufRead, context: &mut Context<'_>) -> Result<(), Failure> {
    let mut lines = Lines::new(reader, LINE);
    while let Some((number, line)) = lines.next(context)? {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match origin(line) {
            Ok((prefix, origin, count)) => {
                if count > 1 {
                    let what = "a prefix has several origins: the first was taken";
                    context.skipped(number, what, line);
                }
                context.graph.origins.push((prefix, origin));
                context.taken();
            }
            Err(why) => context.bad(number, why, line),
        }
    }
    Ok(())
}
