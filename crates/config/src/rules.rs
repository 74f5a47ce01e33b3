//! Rules for values that several sections of the configuration have.

use crate::Report;
use ipnet::IpNet;
use std::collections::HashSet;

/// Longest interface name, in bytes (IFNAMSIZ less the terminating zero).
const MAX_INTERFACE_NAME: usize = 15;
/// Buckets are refilled by a clock that may step by this much: ten milliseconds at 100 Hz.
const TICKS_PER_SECOND: u64 = 100;
/// Highest rate and burst of a token bucket, requests (a second).
pub const MAX_RATE: u64 = 1_000_000_000;
/// Longest time in which a token bucket fills, seconds: a year, so that a program's clock holds it.
const LONGEST_FILL: u64 = 365 * 86_400;

/// Checks names of interfaces, each below `interfaces[i]`: valid, and none twice.
pub fn interfaces(names: &[String], report: &mut Report<'_>) {
    for (i, name) in names.iter().enumerate() {
        let key = format!("interfaces[{i}]");
        if let Some(why) = bad_interface(name) {
            report.add(&key, why);
        } else if names[..i].contains(name) {
            report.add(&key, format!("{name} is named twice; remove one"));
        }
    }
}

/// Why a text cannot be the name of an interface.
pub fn bad_interface(name: &str) -> Option<String> {
    let good = (1..=MAX_INTERFACE_NAME).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control());
    (!good).then(|| {
        format!(
            "{name:?} cannot be the name of an interface: 1 to {MAX_INTERFACE_NAME} bytes, no blank, no '/'"
        )
    })
}

/// A token bucket: the keys and the values of its rate (a second; 0 is no limit) and its burst.
pub fn bucket([rate_key, burst_key]: [&str; 2], [rate, burst]: [u64; 2], report: &mut Report<'_>) {
    if rate > MAX_RATE {
        report.add(rate_key, format!("{rate} is more than {MAX_RATE} a second; 0 is no limit"));
    } else if burst > MAX_RATE {
        report.add(burst_key, format!("{burst} is more than {MAX_RATE}"));
    } else if rate > 0 && burst == 0 {
        report.add(
            burst_key,
            format!(
                "0 would let nothing through; give the requests that may come at once, such as {}",
                rate * 2
            ),
        );
    } else if rate > 0 && burst / rate > LONGEST_FILL {
        report.add(burst_key, format!("{burst} is more than {rate} a second fill in a year"));
    } else if rate > 0 && burst < rate.div_ceil(TICKS_PER_SECOND) {
        report.add(
            burst_key,
            format!(
                "{burst} is less than the {} that {rate} a second let through in one tick of the kernel's clock (10 ms)",
                rate.div_ceil(TICKS_PER_SECOND)
            ),
        );
    }
}

/// The lengths `prefix4` and `prefix6` of the source prefixes that have a bucket each.
pub fn source_prefixes(prefix4: u8, prefix6: u8, report: &mut Report<'_>) {
    if !(1..=32).contains(&prefix4) {
        report.add("prefix4", format!("{prefix4} is not a prefix length from 1 to 32"));
    }
    if !(1..=64).contains(&prefix6) {
        report.add(
            "prefix6",
            format!(
                "{prefix6} is not a prefix length from 1 to 64 (whoever has a /64 has all its addresses)"
            ),
        );
    }
}

/// Checks prefixes, each below `LIST[i]`: no bits set after their length, and none twice.
pub fn prefixes(list: &str, prefixes: &[IpNet], report: &mut Report<'_>) {
    let mut seen = HashSet::new();
    for (i, prefix) in prefixes.iter().enumerate() {
        let key = format!("{list}[{i}]");
        if let Some(message) = host_bits(prefix) {
            report.add(&key, message);
        } else if !seen.insert(prefix) {
            report.add(&key, format!("{prefix} is listed twice; remove one"));
        }
    }
}

/// What to write if bits are set after a prefix's length.
pub fn host_bits(prefix: &IpNet) -> Option<String> {
    let trunc = prefix.trunc();
    (trunc != *prefix).then(|| format!("{prefix} has bits set after its length; write {trunc}"))
}
