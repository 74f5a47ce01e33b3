//! Traces in warts, the binary format of scamper (its warts(5)).
//!
//! ```text
//! record   0x1205 | type, 2 bytes | length of what follows, 4 bytes | ...
//! trace    flags | parameters | hops, 2 bytes | hop | hop | ... | more that is not read
//! hop      flags | parameters
//! flags    7 a byte, least first; the highest bit says that another byte follows. If any is set the
//!          length of the parameters follows, 2 bytes, then the parameter of each flag that is set
//! address  length, type, bytes; length 0: the number of one that stood in this record before
//! ```
//!
//! All numbers are big-endian. Records of other kinds are skipped by their length.

use super::Failure;
use super::report::Context;
use super::scamper::waited;
use super::trace::{Reply, Trace, put};
use std::io::{self, BufRead, Read};
use std::net::IpAddr;
use wire::Reader;

/// How a record begins.
pub(super) const MAGIC: [u8; 2] = [0x12, 0x05];
/// Longest record, bytes.
const RECORD: u32 = 16 << 20;
const HEADER: usize = 8;
const ADDRESS: u16 = 5;
const TRACE: u16 = 6;
/// More flags than there are.
const MOST_FLAGS: usize = 16 * 7;

/// Reads a file; a private source is called `name`.
pub(super) fn read(
    mut reader: impl BufRead,
    name: &str,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let mut number = 0;
    let mut record = Vec::new();
    // Addresses that old files keep in records of their own; they are numbered from 1.
    let mut kept: Vec<Option<IpAddr>> = vec![None];
    loop {
        record.clear();
        reader.by_ref().take(HEADER as u64).read_to_end(&mut record)?;
        if record.is_empty() {
            return Ok(());
        }
        number += 1;
        let mut header = Reader::new(&record);
        let (magic, kind, length) = (header.take(2), header.u16(), header.u32());
        let (Some(kind), Some(length)) = (kind, length) else {
            context.bad(number, "the file ends inside a record", "");
            return Ok(());
        };
        if magic != Some(&MAGIC) || length > RECORD {
            context.bad(
                number,
                "this is not a record of warts: the file is not read any further",
                "",
            );
            return Ok(());
        }
        if !matches!(kind, ADDRESS | TRACE) {
            skip(&mut reader, length)?;
            // Lists and cycles say nothing about networks.
            if !(1..=4).contains(&kind) {
                let text = format!("type {kind}");
                context.skipped(number, "a record of another kind than trace", &text);
            }
            continue;
        }
        record.clear();
        reader.by_ref().take(length.into()).read_to_end(&mut record)?;
        if record.len() != length as usize {
            context.bad(number, "the file ends inside a record", "");
            return Ok(());
        }
        if kind == ADDRESS {
            kept.push(kept_address(&record));
            continue;
        }
        match trace(&record, number, name, &kept) {
            Some(trace) => put(context, trace)?,
            None => context.bad(number, "the trace cannot be read", ""),
        }
    }
}

fn skip(reader: &mut impl BufRead, length: u32) -> io::Result<()> {
    io::copy(&mut reader.take(length.into()), &mut io::sink()).map(drop)
}

/// The address of an old record of addresses: a byte of its number, its type, its bytes.
fn kept_address(record: &[u8]) -> Option<IpAddr> {
    match record.get(2..)? {
        bytes if bytes.len() == 4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        bytes => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

/// Flags and the bytes of their parameters: the numbers of those that are set, from 1.
fn read_flags<'b>(bytes: &mut Reader<'b>) -> Option<(Vec<usize>, Reader<'b>)> {
    let mut set = Vec::new();
    let mut first = 1;
    loop {
        let byte = bytes.u8()?;
        set.extend((0..7).filter(|bit| byte >> bit & 1 == 1).map(|bit| first + bit));
        first += 7;
        if byte & 0x80 == 0 {
            break;
        }
        if first > MOST_FLAGS {
            return None;
        }
    }
    if set.is_empty() {
        return Some((set, Reader::new(&[])));
    }
    Some((set, bytes.block16()?))
}

/// An address; `seen` are those of the record so far. One of another kind than IP is `None` inside.
fn read_address(bytes: &mut Reader<'_>, seen: &mut Vec<Option<IpAddr>>) -> Option<Option<IpAddr>> {
    let length = bytes.u8()?;
    if length == 0 {
        let number = bytes.u32()? as usize;
        return seen.get(number).copied();
    }
    let _kind = bytes.u8()?;
    let bytes = bytes.take(length.into())?;
    let address = match *bytes {
        [a, b, c, d] => Some(IpAddr::from([a, b, c, d])),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    };
    seen.push(address);
    Some(address)
}

/// Bytes of a trace's parameters that are not read, by flag.
fn trace_skip(flag: usize) -> Option<usize> {
    Some(match flag {
        5 => 8,
        1 | 2 | 28 => 4,
        12 | 13 | 14 | 19 | 23 | 29 => 2,
        6..=11 | 15..=18 | 20..=22 | 24 | 25 => 1,
        _ => return None,
    })
}

/// A trace.
fn trace(record: &[u8], number: u64, name: &str, kept: &[Option<IpAddr>]) -> Option<Trace> {
    let mut bytes = Reader::new(record);
    let mut seen = Vec::new();
    let (flags, mut parameters) = read_flags(&mut bytes)?;
    let (mut from, mut to) = (None, None);
    for flag in flags {
        match flag {
            3 => from = kept.get(parameters.u32()? as usize).copied()?,
            4 => to = kept.get(parameters.u32()? as usize).copied()?,
            26 => from = read_address(&mut parameters, &mut seen)?,
            27 => to = read_address(&mut parameters, &mut seen)?,
            // The router by which probes left; later addresses may refer to it.
            30 => drop(read_address(&mut parameters, &mut seen)?),
            _ => match trace_skip(flag) {
                Some(skipped) => drop(parameters.take(skipped)?),
                // Flags of later versions are behind all that is wanted.
                None => break,
            },
        }
    }
    let mut trace = Trace::new(number, name, Some(to?));
    trace.from = Some(from?);
    for _ in 0..bytes.u16()? {
        let (flags, parameters) = read_flags(&mut bytes)?;
        let (ttl, reply) = hop(&flags, parameters, &mut seen, kept)?;
        if ttl > 0 && reply.address.is_some() {
            trace.reply(ttl, reply);
        }
    }
    Some(trace)
}

/// A hop: the TTL of the probe, and the answer.
fn hop(
    flags: &[usize],
    mut bytes: Reader<'_>,
    seen: &mut Vec<Option<IpAddr>>,
    kept: &[Option<IpAddr>],
) -> Option<(u8, Reply)> {
    let mut reply = Reply { count: 1, ..Reply::default() };
    let mut ttl = None;
    let (mut icmp_type, mut icmp_code) = (None, None);
    for flag in flags {
        match flag {
            1 => reply.address = kept.get(bytes.u32()? as usize).copied()?,
            2 => ttl = bytes.u8(),
            6 => reply.rtt = bytes.u32().map(|microseconds| f64::from(microseconds) / 1e3),
            7 => (icmp_type, icmp_code) = (bytes.u8(), bytes.u8()),
            3 | 4 | 5 | 11 | 14 | 15 | 16 => drop(bytes.take(1)?),
            8 | 9 | 10 | 12 | 13 => drop(bytes.take(2)?),
            // Extensions of ICMP, labels of MPLS among them.
            17 => {
                bytes.block16()?;
            }
            18 => reply.address = read_address(&mut bytes, seen)?,
            _ => break,
        }
    }
    if waited(icmp_type, icmp_code) {
        reply.rtt = None;
    }
    Some((ttl?, reply))
}
