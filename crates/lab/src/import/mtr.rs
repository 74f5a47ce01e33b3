//! What mtr reports: `mtr --json`, and as text `mtr --report`.
//!
//! ```text
//! HOST: pc                      Loss%   Snt   Last   Avg  Best  Wrst StDev
//!   1.|-- gw (192.0.2.1)         0.0%    10    0.3   0.3   0.2   0.5   0.1
//!   2.|-- ???                   100.0    10    0.0   0.0   0.0   0.0   0.0
//! ```

use super::Failure;
use super::input::Lines;
use super::json::documents;
use super::report::Context;
use super::trace::{Reply, Trace, put};
use serde::Deserialize;
use serde_json::Value;
use std::io::BufRead;
use std::net::IpAddr;

/// Longest line of a report, bytes.
const LINE: u64 = 16 << 10;
/// Columns behind the host: Loss%, Snt, Last, Avg, Best, Wrst, StDev.
const COLUMNS: usize = 7;
/// Where Best is, from behind.
const BEST: usize = 3;

#[derive(Deserialize)]
struct Document {
    report: Report,
}

#[derive(Deserialize)]
struct Report {
    mtr: Head,
    hubs: Vec<Hub>,
}

#[derive(Deserialize)]
struct Head {
    src: String,
    dst: String,
}

#[derive(Deserialize)]
struct Hub {
    /// The hop; older versions write it as a text.
    count: Value,
    host: String,
    #[serde(rename = "ASN")]
    asn: Option<String>,
    #[serde(rename = "Best")]
    best: f64,
}

impl Hub {
    fn ttl(&self) -> Option<u8> {
        match &self.count {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64().and_then(|number| number.try_into().ok()),
        }
    }
}

/// Who answered: an address, a name, or a name and an address in brackets. `None`: nobody.
fn who(host: &str, asn: Option<&str>, best: f64) -> Option<Reply> {
    let host = host.trim();
    if host == "???" || host.is_empty() {
        return None;
    }
    let (name, address) = match host.split_once(" (") {
        Some((name, address)) => (Some(name), address.trim_end_matches(')')),
        None => (None, host),
    };
    let address: Option<IpAddr> = address.parse().ok();
    let name = if address.is_some() { name } else { Some(host) };
    let as_number = asn.and_then(|asn| asn.trim_start_matches("AS").parse().ok());
    let rtt = Some(best).filter(|best| best.is_finite());
    Some(Reply { address, name: name.map(str::to_owned), as_number, rtt, count: 1 })
}

/// Reads `mtr --json`.
pub(super) fn json(reader: impl BufRead, context: &mut Context<'_>) -> Result<(), Failure> {
    documents(reader, context, &mut |context, number, value| {
        let report = match serde_json::from_value::<Document>(value) {
            Ok(document) => document.report,
            Err(error) => {
                context.bad(number, "this is not a report of mtr", &error.to_string());
                return Ok(());
            }
        };
        let mut trace = Trace::new(number, &report.mtr.src, report.mtr.dst.parse().ok());
        trace.from = report.mtr.src.parse().ok();
        for hub in &report.hubs {
            let Some(ttl) = hub.ttl().filter(|&ttl| ttl > 0) else {
                context.bad(number, "a hop has no number", &hub.host);
                continue;
            };
            trace.hop(ttl);
            if let Some(reply) = who(&hub.host, hub.asn.as_deref(), hub.best) {
                // The destination may be given by name.
                if hub.host.split(" (").next() == Some(&report.mtr.dst) {
                    trace.to = trace.to.or(reply.address);
                }
                trace.reply(ttl, reply);
            }
        }
        Ok(put(context, trace)?)
    })
}

/// Whether a line begins a report.
pub(super) fn is_head(line: &str) -> bool {
    line.starts_with("HOST: ") && line.contains("Loss%")
}

/// Reads `mtr --report`. The last hop is taken for the destination.
pub(super) fn report(reader: impl BufRead, context: &mut Context<'_>) -> Result<(), Failure> {
    let mut last = None;
    let result = lines(reader, context, &mut last);
    if let Some(trace) = last {
        put(context, trace)?;
    }
    result
}

fn lines(
    reader: impl BufRead,
    context: &mut Context<'_>,
    trace: &mut Option<Trace>,
) -> Result<(), Failure> {
    let mut lines = Lines::new(reader, LINE);
    while let Some((number, line)) = lines.next(context)? {
        let words = line.trim();
        if words.is_empty() || words.starts_with("Start:") {
            continue;
        }
        if is_head(words) {
            if let Some(trace) = trace.take() {
                put(context, trace)?;
            }
            let name = words.split_whitespace().nth(1).unwrap_or_default();
            *trace = Some(Trace::new(number, name, None));
            context.assume("The last hop of a report of mtr is its destination.");
            continue;
        }
        let Some(trace) = trace else {
            context.bad(number, "a hop before any `HOST:` line", line);
            continue;
        };
        if words.starts_with(['|', '`']) {
            context.skipped(number, "another router of the hop before", line);
            continue;
        }
        let hop = words.split_once('.').and_then(|(ttl, rest)| {
            let ttl = ttl.parse::<u8>().ok().filter(|&ttl| ttl > 0)?;
            let mut words: Vec<_> = rest.trim_start_matches("|--").split_whitespace().collect();
            let columns = words.split_off(words.len().checked_sub(COLUMNS)?);
            let best: f64 = columns.get(COLUMNS - BEST)?.parse().ok()?;
            let asn = words.first().filter(|word| word.starts_with("AS") && words.len() > 1);
            let host = words.get(usize::from(asn.is_some())..)?.join(" ");
            Some((ttl, who(&host, asn.copied(), best)))
        });
        match hop {
            Some((ttl, reply)) => {
                trace.hop(ttl);
                trace.to = reply.as_ref().and_then(|reply| reply.address);
                reply.into_iter().for_each(|reply| trace.reply(ttl, reply));
            }
            None => context.bad(number, "this is not a hop of a report of mtr", line),
        }
    }
    Ok(())
}
