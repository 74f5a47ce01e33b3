//! What the worker answers: status, flows, ranks, reasons.

use super::{
    ControlError,
    core::{Core, Entry, Inspect, Phase},
    id::Id,
    kernel,
    managed::Managers,
    problems::{FULL, LOST, MISSED, PARSER, SCANNER, SHARED},
    worker::Worker,
};
use crate::{
    audit::Audit,
    config::Deny,
    control::{By, FlowName, FlowsOrder, MAX_ROWS, TopOrder},
    parser::{
        Parser,
        contents::Contents,
        link::{self, Link},
        names::Names,
    },
    policy::Verdict,
    status::{
        CLSACT, Copies, FileCounts, FlowCounts, FlowRow, LimitStatus, Packets, ParserStatus,
        RuleStatus, Status, TCX, TopRow, TopStatus, Why,
    },
};
use classify::flow::Flow;
use datapath::{
    clock::monotonic_ns,
    gate::{Counts, Found, HookKind},
};
use std::collections::BTreeMap;

/// Refused torrents in a status, at most.
const MAX_TORRENTS: usize = 100;

impl Worker {
    /// The state of everything.
    pub(super) fn status(&mut self) -> Status {
        let Worker {
            gate,
            core,
            shapers,
            config,
            runtime_rules,
            problems,
            managers,
            audit,
            log,
            ..
        } = self;
        let counts = core.counts().clone();
        let mut packets = BTreeMap::new();
        let mut missed = 0;
        match gate.ledger() {
            Ok(ledger) => {
                for (place, counts) in
                    [("from_internal", ledger.from_internal), ("to_internal", ledger.to_internal)]
                {
                    missed += counts.missed;
                    packets.insert(place.to_owned(), packets_of(&counts));
                }
                if ledger.driver.received > 0 {
                    packets.insert("driver".to_owned(), packets_of(&ledger.driver));
                }
            }
            Err(error) => problems.report("the kernel's counters cannot be read", &error),
        }
        problems.grows(FULL, "raise gate.max_flows, or shorten gate.idle_tcp", counts.full);
        problems.grows(MISSED, "the ring to user space was full", missed);
        problems.grows(
        SCANNER,
        "clamd is unavailable, slow or refuses, or not all of them could be read: see the log, and gate.scan",
        managers.counts.unscanned,
    );
        let failures = core.inspect().link().counts().sum() + managers.link().counts().sum();
        problems.grows(PARSER, "it is started again; gate.on_failure decided its flows", failures);
        problems.grows(SHARED, "further hosts share a rate", core.classes().shared);
        let audit = audit.as_ref().map(Audit::status);
        if let Some(audit) = &audit {
            if let Some(error) = &audit.error {
                problems.report("the audit log is not written", error);
            }
            problems.grows(
                LOST,
                "see gate.audit.queue, or the disk is slow",
                audit.lost.queue_full,
            );
        }
        let (undecided, decided) = core.sizes();
        let mut rates: BTreeMap<String, u64> = BTreeMap::new();
        for entry in core.flows().filter(|entry| entry.rate > 0) {
            *rates.entry(entry.application().to_owned()).or_default() += entry.rate;
        }
        let policy = core.policy();
        fn rule<'c>(
            of: &'c str,
            counts: &'c BTreeMap<String, u64>,
        ) -> impl Fn(&str) -> RuleStatus + 'c {
            move |name: &str| RuleStatus {
                name: name.to_owned(),
                of: of.to_owned(),
                count: counts.get(name).copied().unwrap_or_default(),
            }
        }
        let usage = shapers.usage();
        let limit = |(number, name, flows): (u16, &super::classes::Name, u64)| {
            let [up, down, dropped] = usage.get(&number).copied().unwrap_or_default();
            LimitStatus {
                limit: name.limit.clone(),
                share: name.share.clone(),
                flows,
                bytes_to_internal: down,
                bytes_from_internal: up,
                dropped,
            }
        };
        Status {
            problems: problems.list(),
            bypass: gate.is_bypassed(),
            internal: config.gate.internal.clone(),
            attached_by: match gate.hook_kind() {
                HookKind::Tcx => TCX.to_owned(),
                HookKind::Clsact => CLSACT.to_owned(),
            },
            taken_over: gate.found() == Found::TakenOver,
            flows: FlowCounts {
                decided: decided as u64,
                undecided: undecided as u64,
                limit: u64::from(config.gate.max_flows),
                seen: counts.seen,
                ended: counts.ended,
                ended_undecided: counts.ended_undecided,
                evicted: counts.evicted,
                full: counts.full,
            },
            packets,
            copies: Copies { read: counts.inspected, missed, bad_checksum: counts.bad_checksum },
            rates,
            rules: policy
                .rules()
                .map(rule("flow", &counts.rules))
                .chain(policy.file_rules().map(rule("file", &counts.files)))
                .collect(),
            files: files(managers),
            parsers: BTreeMap::from([
                (Names::NAME.to_owned(), parser(core.inspect().link(), counts.lost)),
                (Contents::NAME.to_owned(), parser(managers.link(), managers.counts.lost)),
            ]),
            torrents: managers.torrents.refused().take(MAX_TORRENTS).collect(),
            audit,
            limits: core.classes().list().map(limit).collect(),
            runtime_rules: runtime_rules.clone(),
            recent: log.recent(),
            classified: counts.classified,
            refused: counts.refused,
        }
    }

    /// Flows, the busiest first.
    pub(super) fn flows(&self, order: &FlowsOrder) -> Vec<FlowRow> {
        let core = &self.core;
        let application = |wanted: &String, entry: &Entry<_>| match wanted.split_once('/') {
            Some((name, part)) => entry.label().is_some_and(|label| {
                label.application == name && label.detail.as_deref() == Some(part)
            }),
            None => entry.application() == wanted,
        };
        let fits = |entry: &&Entry<_>| {
            let Flow { client, server, .. } = entry.flow;
            order.application.as_ref().is_none_or(|wanted| application(wanted, entry))
                && order.verdict.as_ref().is_none_or(|wanted| verdict(entry) == wanted)
                && order
                    .host
                    .is_none_or(|host| host.contains(&client.ip()) || host.contains(&server.ip()))
        };
        let mut found: Vec<_> = core.flows().filter(fits).collect();
        found.sort_by_key(|entry| {
            let bytes = entry.bytes[0].saturating_add(entry.bytes[1]);
            std::cmp::Reverse((entry.rate, bytes, entry.seen_ns))
        });
        found.truncate(order.count.min(MAX_ROWS));
        let now_ns = monotonic_ns();
        found.into_iter().map(|entry| row(entry, now_ns)).collect()
    }

    /// Who uses most now.
    pub(super) fn top(&self, order: TopOrder) -> TopStatus {
        top(&self.core, order)
    }

    /// What is known of a flow.
    pub(super) fn why(&self, name: FlowName) -> Result<Why, ControlError> {
        let core = &self.core;
        let entry = core.flow(&Id::from(name)).ok_or(ControlError::NoFlow)?;
        let now_ns = monotonic_ns();
        let mut row = row(entry, now_ns);
        // The counters of this moment, not of the last round.
        if let Ok(Some(flow)) = self.table.get(&kernel::key(&entry.flow)) {
            let counted = kernel::counted(&kernel::key(&entry.flow), &flow, now_ns);
            if counted.flow == entry.flow {
                row.packets = counted.packets;
                row.bytes = counted.bytes;
                row.age_seconds = counted.age_ns as f64 / 1e9;
                row.idle_seconds = counted.idle_ns as f64 / 1e9;
            }
        }
        let (counted, limit, file) = match &entry.phase {
            Phase::Inspecting(_) => (Vec::new(), None, None),
            Phase::Decided(decided) => {
                let names = decided.decision.counted.iter().map(ToString::to_string);
                let limit = decided.class.as_ref().map(|(name, _)| match name.share.as_str() {
                    "" => name.limit.clone(),
                    share => format!("{} of {share}", name.limit),
                });
                let file = decided.by_file.as_ref().and_then(|by| by.file.clone());
                (names.collect(), limit, file)
            }
        };
        let (label, inspected) = (entry.label().cloned(), entry.inspected);
        Ok(Why { row, label, counted, inspected, limit, file })
    }
}

/// How a parser's process is.
fn parser<P: Parser>(link: &Link<P>, lost_flows: u64) -> ParserStatus {
    let link::Counts { died, hung, refused } = link.counts();
    let landlock = link.confinement().landlock;
    ParserStatus { pid: link.pid(), landlock, died, hung, refused, lost_flows }
}

/// What was done with files, messages and packets that wait for verdicts.
fn files(managers: &Managers) -> FileCounts {
    let counts = managers.counts;
    FileCounts {
        managed: managers.len() as u64,
        seen: counts.files,
        denied: counts.denied,
        clean: counts.scanned,
        found: counts.found,
        unscanned: counts.unscanned,
        without_names: counts.without_names,
        messages: counts.messages,
        waiting_bytes: managers.waiting_bytes() as u64,
        limits_alert: managers.scanner().and_then(crate::scan::Scanner::alerts),
        scanning_bytes: managers.scanner().map_or(0, |scanner| scanner.waiting_bytes() as u64),
        released: counts.released,
        dropped: counts.dropped,
    }
}

/// Outcomes of the packets at one hook.
fn packets_of(counts: &Counts) -> Packets {
    let outcomes = [
        ("passed_decided", counts.passed_decided),
        ("passed_undecided", counts.passed_undecided),
        ("passed_failure", counts.passed_failure),
        ("passed_bypass", counts.passed_bypass),
        ("passed_other", counts.passed_other),
        ("passed_fragment", counts.passed_fragment),
        ("passed_internal", counts.passed_internal),
        ("redirected", counts.redirected),
        ("held", counts.held),
        ("reset_verdict", counts.reset_verdict),
        ("reset_cache", counts.reset_cache),
        ("unreachable", counts.unreachable),
        ("dropped_verdict", counts.dropped_verdict),
        ("dropped_cache", counts.dropped_cache),
        ("dropped_failure", counts.dropped_failure),
        ("dropped_form", counts.dropped_form),
        ("dropped_ring", counts.dropped_ring),
    ];
    let extra =
        [("released", counts.released), ("copied", counts.copied), ("missed", counts.missed)];
    let named = |(name, count): (&str, u64)| (name.to_owned(), count);
    Packets {
        received: counts.received,
        outcomes: outcomes.into_iter().map(named).collect(),
        extra: extra.into_iter().map(named).collect(),
    }
}

/// The verdict on a flow, as a word.
fn verdict<S>(entry: &Entry<S>) -> &'static str {
    match &entry.phase {
        Phase::Inspecting(_) => "undecided",
        Phase::Decided(decided) => match decided.decision.verdict {
            Verdict::Pass => "pass",
            Verdict::Limit(_) => "limit",
            Verdict::Refuse(Deny::Drop) => "drop",
            Verdict::Refuse(Deny::Reset) => "reset",
        },
    }
}

fn row<S>(entry: &Entry<S>, now_ns: u64) -> FlowRow {
    let seconds = |since: u64| now_ns.saturating_sub(since) as f64 / 1e9;
    let rule = match &entry.phase {
        Phase::Inspecting(_) => None,
        Phase::Decided(decided) => decided.rule().map(str::to_owned),
    };
    FlowRow {
        flow: entry.flow,
        application: entry.label().map(|label| match &label.detail {
            Some(detail) => format!("{}/{detail}", label.application),
            None => label.application.clone().into_owned(),
        }),
        verdict: verdict(entry).to_owned(),
        rule,
        packets: entry.packets,
        bytes: entry.bytes,
        age_seconds: seconds(entry.began_ns),
        idle_seconds: seconds(entry.seen_ns),
    }
}

/// Who uses most now.
fn top<L: Inspect>(core: &Core<L>, order: TopOrder) -> TopStatus {
    let mut sums: BTreeMap<String, TopRow> = BTreeMap::new();
    for entry in core.flows() {
        let name = match order.by {
            By::Application => entry.application().to_owned(),
            By::Host => entry.host().to_string(),
        };
        let row = sums.entry(name).or_default();
        row.bits_per_second = row.bits_per_second.saturating_add(entry.rate);
        row.flows += 1;
        row.bytes = row.bytes.saturating_add(entry.bytes[0]).saturating_add(entry.bytes[1]);
    }
    let mut rows: Vec<_> = sums.into_iter().map(|(name, row)| TopRow { name, ..row }).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.bits_per_second, row.bytes)));
    rows.truncate(order.count.min(MAX_ROWS));
    TopStatus { by: order.by, rows }
}
