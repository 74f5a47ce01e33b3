//! The state as text for people: plain tables without borders, so that lines can be grepped.

use super::{CLSACT, FlowRow, Packets, Status, TCX, TopStatus, Why};
use crate::{
    config::{Deny, Rate},
    control::By,
    policy::{RuntimeAction, RuntimeRule},
    scan::LIMITS_WARNING,
};
use std::fmt::Write;
use terminal::text::{CellAlignment, age, counts, lines, size, table};

/// Recent refusals that are shown.
const REFUSED: usize = 5;

/// Bits a second, for people.
fn rate(bits_per_second: u64) -> String {
    Rate(bits_per_second).rounded()
}

/// The processes that read packets.
fn parsers(status: &Status) -> String {
    let mut out = String::new();
    for (name, parser) in &status.parsers {
        let pid = parser.pid.map_or("not running".to_owned(), |pid| format!("process {pid}"));
        let files = if parser.landlock { "seccomp and Landlock" } else { "seccomp, no Landlock" };
        let _ = writeln!(
            out,
            "parser {name}: {pid} ({files}); {} died, {} hung, {} refused, {} flows lost",
            parser.died, parser.hung, parser.refused, parser.lost_flows
        );
    }
    out
}

/// The whole status, for `nigh status` and `nigh gate status`.
pub fn render(status: &Status) -> String {
    let mut out = String::new();
    let health = if status.problems.is_empty() { "healthy" } else { "NOT HEALTHY" };
    let off = if status.bypass { ", SWITCHED OFF (bypass)" } else { "" };
    let _ = writeln!(out, "gate: {health}{off}, internal {}", status.internal.join(", "));
    for problem in &status.problems {
        let _ = writeln!(out, "  ! {problem}");
    }
    match status.attached_by.as_str() {
        TCX => out.push_str("attached by TCX\n"),
        CLSACT => out.push_str(
            "attached by clsact, as this kernel has no TCX: about 100 ns more for each packet, and filters of others come first\n",
        ),
        _ => {}
    }
    if status.taken_over {
        let _ = writeln!(out, "took over the flows of an earlier process");
    }
    let flows = &status.flows;
    let _ = writeln!(
        out,
        "flows: {} decided of at most {}, {} inspected; {} seen, {} ended and {} before they were decided, {} evicted undecided, {} verdicts did not fit",
        flows.decided,
        flows.limit,
        flows.undecided,
        flows.seen,
        flows.ended,
        flows.ended_undecided,
        flows.evicted,
        flows.full
    );
    for (hook, Packets { received, outcomes, extra }) in &status.packets {
        let hook = hook.replace('_', " ");
        let _ = writeln!(out, "packets {hook}: {received} received = {}", counts(outcomes));
        if extra.values().any(|count| *count > 0) {
            let _ = writeln!(out, "  extra: {}", counts(extra));
        }
    }
    let copies = &status.copies;
    let _ = writeln!(
        out,
        "inspected: {} packets, {} missed, {} skipped for a wrong checksum",
        copies.read, copies.missed, copies.bad_checksum
    );
    out.push_str(&parsers(status));
    let files = &status.files;
    if files.managed + files.seen + files.messages > 0 {
        let _ = writeln!(
            out,
            "files: {} seen, {} denied, {} scanned clean, {} found, {} not scanned, {} of torrents without names; {} messages; {} flows read, {} waits",
            files.seen,
            files.denied,
            files.clean,
            files.found,
            files.unscanned,
            files.without_names,
            files.messages,
            files.managed,
            size(files.waiting_bytes)
        );
    }
    if files.limits_alert == Some(false) {
        let _ = writeln!(out, "{LIMITS_WARNING}");
    }
    out.push_str(&applications(status));
    if !status.rules.is_empty() {
        let mut rules = table(["rule", "of", "matched"], 2);
        for rule in &status.rules {
            rules.add_row([rule.name.clone(), rule.of.clone(), rule.count.to_string()]);
        }
        let _ = write!(out, "\n{}", lines(&rules));
    }
    if !status.limits.is_empty() {
        let mut limits =
            table(["limit", "of", "flows", "to internal", "from internal", "dropped"], 2);
        for limit in &status.limits {
            limits.add_row([
                limit.limit.clone(),
                if limit.share.is_empty() { "all".into() } else { limit.share.clone() },
                limit.flows.to_string(),
                size(limit.bytes_to_internal),
                size(limit.bytes_from_internal),
                limit.dropped.to_string(),
            ]);
        }
        let _ = write!(out, "\n{}", lines(&limits));
    }
    let refused: Vec<_> = status.recent.iter().filter(|one| one.refused).take(REFUSED).collect();
    if !refused.is_empty() {
        let _ = writeln!(out, "\nrecent refusals:");
    }
    for one in refused {
        let _ = writeln!(out, "  {} ago: {}", age(one.seconds_ago), one.text);
    }
    for torrent in &status.torrents {
        let _ =
            writeln!(out, "torrent {torrent} is refused: `nigh gate unblock {torrent}` permits it");
    }
    for rule in &status.runtime_rules {
        let _ = write!(out, "{}", render_rule(rule));
    }
    out
}

fn applications(status: &Status) -> String {
    if status.classified.is_empty() {
        return String::new();
    }
    let mut table = table(["application", "flows", "refused", "now"], 1);
    let mut names: Vec<_> = status.classified.iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (name, count) in names.iter().take(20) {
        let refused = status.refused.get(*name).copied().unwrap_or_default();
        let now = status.rates.get(*name).copied().unwrap_or_default();
        table.add_row([(*name).clone(), count.to_string(), refused.to_string(), rate(now)]);
    }
    let mut out = format!("\n{}", lines(&table));
    if names.len() > 20 {
        let _ = writeln!(out, "and {} more: `nigh gate status --json` has all", names.len() - 20);
    }
    out
}

/// For `nigh gate flows`.
pub fn render_flows(rows: &[FlowRow]) -> String {
    let mut table =
        table(["flow", "application", "verdict", "rule", "sent", "received", "idle"], 4);
    for row in rows {
        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        table.add_row([
            row.flow.to_string(),
            dash(&row.application),
            row.verdict.clone(),
            dash(&row.rule),
            size(row.bytes[0]),
            size(row.bytes[1]),
            age(row.idle_seconds),
        ]);
    }
    lines(&table)
}

/// For `nigh gate top`.
pub fn render_top(top: &TopStatus) -> String {
    let by = match top.by {
        By::Application => "application",
        By::Host => "host",
    };
    let mut table = table([by, "rate", "flows", "bytes"], 1);
    for column in 1..4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in &top.rows {
        table.add_row([
            row.name.clone(),
            rate(row.bits_per_second),
            row.flows.to_string(),
            size(row.bytes),
        ]);
    }
    lines(&table)
}

/// For `nigh gate why`.
pub fn render_why(why: &Why) -> String {
    let row = &why.row;
    let mut out = format!("{}\n", row.flow);
    match &why.label {
        Some(label) => {
            let _ = writeln!(out, "  is {label}");
            let engine = serde_json::to_value(label.engine).unwrap_or_default();
            let category = serde_json::to_value(label.category).unwrap_or_default();
            let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let _ = writeln!(out, "  found by: {}, category {}", word(&engine), word(&category));
        }
        None if row.verdict == "undecided" => {
            let _ = writeln!(out, "  not classified yet");
        }
        None => {
            let _ = writeln!(out, "  not classified");
        }
    }
    let rule = match &row.rule {
        Some(rule) => match &why.file {
            // Debug escapes what a terminal would obey.
            Some(file) => format!("by rule {rule}, for the file {file:?}"),
            None => format!("by rule {rule}"),
        },
        None if row.verdict == "undecided" => "its packets pass meanwhile".into(),
        None => "no rule matches".into(),
    };
    let _ = writeln!(out, "  verdict: {} ({rule})", row.verdict);
    if let Some(limit) = &why.limit {
        let _ = writeln!(out, "  limit: {limit}");
    }
    if !why.counted.is_empty() {
        let _ = writeln!(out, "  counted by: {}", why.counted.join(", "));
    }
    let _ = writeln!(
        out,
        "  {} packets, {} from the client; {} packets, {} from the server; {} inspected",
        row.packets[0],
        size(row.bytes[0]),
        row.packets[1],
        size(row.bytes[1]),
        why.inspected
    );
    let _ =
        writeln!(out, "  began {} ago, idle for {}", age(row.age_seconds), age(row.idle_seconds));
    out
}

/// For `nigh gate deny`, `allow`, `limit`.
pub fn render_rule(rule: &RuntimeRule) -> String {
    let mut action = match &rule.action {
        RuntimeAction::Allow => "allow".to_owned(),
        RuntimeAction::Deny(Deny::Drop) => "deny (drop)".into(),
        RuntimeAction::Deny(Deny::Reset) => "deny (reset)".into(),
        RuntimeAction::Limit(limit) => {
            let mut text = "limit".to_owned();
            for (rate, direction) in [(limit.to_internal, "to"), (limit.from_internal, "from")] {
                if let Some(rate) = rate {
                    let _ = write!(text, " {rate} {direction} internal");
                }
            }
            if let Some(each) = limit.each {
                let each = serde_json::to_value(each).unwrap_or_default();
                let _ = write!(text, " for each {}", each.as_str().unwrap_or_default());
            }
            text
        }
    };
    let categories = rule
        .category
        .iter()
        .filter_map(|category| serde_json::to_value(category).ok()?.as_str().map(str::to_owned));
    let of: Vec<String> = rule.application.iter().cloned().chain(categories).collect();
    action += &if of.is_empty() { ": everything".into() } else { format!(": {}", of.join(", ")) };
    if let Some(host) = rule.host {
        let _ = write!(action, ", of {host}");
    }
    if let Some(direction) = rule.direction {
        let direction = serde_json::to_value(direction).unwrap_or_default();
        let _ = write!(action, ", {}", direction.as_str().unwrap_or_default());
    }
    format!("{}: {action}\n", rule.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Recent;

    #[test]
    fn a_status_has_recent_refusals_and_no_other_events() {
        let recent =
            |refused, text: &str| Recent { refused, text: text.into(), ..Recent::default() };
        let mut status = Status::default();
        assert!(!render(&status).contains("recent"));
        status.recent = vec![recent(false, "scanned, clean: a"), recent(true, "refused b")];
        let shown = render(&status);
        assert!(shown.contains("\nrecent refusals:\n  0s ago: refused b\n"), "{shown}");
        assert!(!shown.contains("clean: a"), "{shown}");
    }

    #[test]
    fn a_status_says_by_what_the_gate_is_attached_and_what_that_costs() {
        let shown = |by: &str| {
            let status = Status { attached_by: by.into(), ..Status::default() };
            render(&status).lines().nth(1).unwrap().to_owned()
        };
        assert_eq!(shown("tcx"), "attached by TCX");
        assert!(shown("clsact").contains("about 100 ns more for each packet"));
    }

    #[test]
    fn why_names_the_file_that_a_verdict_is_about() {
        let why = serde_json::json!({
            "flow": { "transport": "tcp", "client": "10.0.0.5:1", "server": "192.0.2.7:80" },
            "application": "http", "verdict": "reset", "rule": "no-film", "file": "Fi\u{202e}lm.AVI",
            "packets": [1, 1], "bytes": [1, 1], "age_seconds": 1.0, "idle_seconds": 0.0,
            "label": null, "counted": [], "inspected": 1, "limit": null,
        });
        let shown = render_why(&serde_json::from_value(why).unwrap());
        let expected = "verdict: reset (by rule no-film, for the file \"Fi\\u{202e}lm.AVI\")";
        assert!(shown.contains(expected), "{shown}");
    }
}
