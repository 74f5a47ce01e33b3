//! The state as text for people: plain tables without borders, so that lines can be grepped.

use super::{
    AnycastStatus, Count, InterfaceMode, LedgerStatus, LimitStatus, ListStatus, Status, TopStatus,
};
use crate::config::Limit;
use std::fmt::Write as _;
use terminal::text::{CellAlignment, ago, lines, table};

/// The whole status, for `nigh status`.
pub fn render_status(status: &Status) -> String {
    let mut out = String::new();
    let health = if status.problems.is_empty() { "healthy" } else { "NOT HEALTHY" };
    let _ = writeln!(out, "echo: {health}, {}", status.drain.word());
    for problem in &status.problems {
        let _ = writeln!(out, "  ! {problem}");
    }
    let mut interfaces = table(["interface", "answers", "link", "note"], 4);
    for interface in &status.interfaces {
        let answers = match interface.mode {
            InterfaceMode::Native => "native XDP",
            InterfaceMode::Generic => "generic XDP",
            InterfaceMode::Kernel => "the kernel itself",
            InterfaceMode::Absent => "none",
        };
        let link = if interface.up { "up" } else { "down" };
        interfaces.add_row([
            &interface.name,
            answers,
            link,
            interface.why.as_deref().unwrap_or(""),
        ]);
    }
    out.push('\n');
    out.push_str(&lines(&interfaces));
    out.push('\n');
    out.push_str(&render_ledger(&status.ledger));
    if status.latency.samples > 0 {
        let latency = &status.latency;
        let _ = writeln!(
            out,
            "\nprogram: p50 {} ns, p90 {} ns, p99 {} ns ({} samples)",
            latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.samples
        );
    }
    out.push('\n');
    out.push_str(&limits(&status.limit));
    for (name, list) in [("allow", &status.allow), ("deny", &status.deny)] {
        if !list.is_empty() {
            let _ = writeln!(out, "{name}: {}", join(list));
        }
    }
    if let Some(anycast) = &status.anycast {
        out.push('\n');
        out.push_str(&render_anycast(anycast));
    }
    out
}

fn render_anycast(anycast: &AnycastStatus) -> String {
    let mut out = format!("anycast: {}\n", join(&anycast.prefixes));
    let mut upstreams =
        table(["upstream", "session", "desired", "advertised", "for", "note"], usize::MAX);
    for upstream in &anycast.upstreams {
        let note = upstream.held_by.as_ref().or(upstream.problem.as_ref());
        upstreams.add_row([
            upstream.name.clone(),
            match &upstream.bfd {
                Some(bfd) => format!("{}, BFD {}", upstream.session, bfd.state),
                None => upstream.session.clone(),
            },
            upstream.desired.clone(),
            upstream.advertised.clone(),
            upstream.since.map(ago).unwrap_or_default(),
            note.cloned().unwrap_or_default(),
        ]);
    }
    out.push_str(&lines(&upstreams));
    for upstream in &anycast.upstreams {
        if let Some(last) = &upstream.withdrawal {
            let _ = write!(out, "last withdrawal from {}: {}", upstream.name, last.fault);
            if let Some(written) = last.written {
                let ms = (written - last.detected) * 1e3;
                let _ = write!(out, "; UPDATE sent {ms:.1} ms after the fault was detected");
            }
            let _ = writeln!(out, ", {} ago", ago(last.detected));
        }
    }
    let mut checks = table(["check", "healthy", "for", "last result"], usize::MAX);
    for check in &anycast.checks {
        checks.add_row([
            check.name.clone(),
            if check.healthy { "yes" } else { "NO" }.to_owned(),
            check.since.map(ago).unwrap_or_default(),
            check.detail.clone(),
        ]);
    }
    out.push('\n');
    out.push_str(&lines(&checks));
    out
}

/// The ledger, for `nigh echo ledger`.
pub fn render_ledger(ledger: &LedgerStatus) -> String {
    if !ledger.counted {
        return "no program is attached: the kernel itself answers and nothing is counted\n".into();
    }
    let mut rows = table(["address", "received", "answered", "passed", "dropped", "of which"], 1);
    let mut add = |name: String, count: &Count| {
        let reasons: Vec<_> = count
            .dropped
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        rows.add_row([
            name,
            count.received.to_string(),
            count.answered.to_string(),
            count.passed.to_string(),
            count.drops().to_string(),
            reasons.join(", "),
        ]);
    };
    for row in &ledger.rows {
        add(row.address.to_string(), &row.count);
    }
    add("other".into(), &ledger.other);
    if let Some(column) = rows.column_mut(5) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    lines(&rows)
}

/// The busiest source prefixes, for `nigh echo top`.
pub fn render_top(top: &TopStatus) -> String {
    if top.sources.is_empty() {
        return "no source has been seen\n".into();
    }
    let mut rows = table(["source", "requests"], 1);
    for row in &top.sources {
        rows.add_row([row.prefix.to_string(), row.requests.to_string()]);
    }
    lines(&rows)
}

/// The limits, for `nigh echo limit`.
pub fn render_limits(status: &LimitStatus) -> String {
    limits(&status.limit)
}

fn limits(limit: &Limit) -> String {
    let mut out = match limit.rate {
        0 => "limit for a source: none\n".to_owned(),
        rate => format!(
            "limit for a source (/{} and /{}): {rate} requests/s, burst of {} requests\n",
            limit.prefix4, limit.prefix6, limit.burst
        ),
    };
    match limit.node_rate {
        0 => out.push_str("limit for the node: none\n"),
        rate => {
            let burst = limit.node_burst;
            let _ =
                writeln!(out, "limit for the node: {rate} requests/s, burst of {burst} requests");
        }
    }
    out
}

/// A list of sources, for `nigh echo allow` and `nigh echo deny`.
pub fn render_list(status: &ListStatus) -> String {
    match (status.prefixes.is_empty(), status.list.as_str()) {
        (true, "allow") => "allow: empty, all sources are answered\n".into(),
        (true, list) => format!("{list}: empty\n"),
        (false, list) => format!("{list}: {}\n", join(&status.prefixes)),
    }
}

fn join(prefixes: &[ipnet::IpNet]) -> String {
    prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
