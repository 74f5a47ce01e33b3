//! The program's counters as values of the status, and the configuration as its settings.

use super::probe::DUMMIES;
use crate::{
    config::{self, EchoConfig},
    status::{Count, LatencyBucket, LatencyStatus, LedgerRow, LedgerStatus, TopRow, TopStatus},
};
use datapath::echo::{
    Counters, DropReason, EchoProgram, Fragments, Latency, LedgerError, Limit, ReturnPath,
    Settings, SourceLimit,
};
use ipnet::IpNet;
use std::{fs, net::IpAddr};

/// The settings of a configuration, with limits and lists as they are at run time.
pub(super) fn settings(
    config: &EchoConfig,
    limit: &config::Limit,
    [allow, deny]: [&[IpNet]; 2],
    probes: Vec<IpAddr>,
    probe_id: u16,
) -> Settings {
    Settings {
        addresses: config.addresses.clone(),
        probes,
        probe_id,
        return_path: match config.return_path {
            config::ReturnPath::Mac => ReturnPath::Mac,
            config::ReturnPath::Fib => ReturnPath::Fib,
        },
        fragments: match config.fragments {
            config::Fragments::Pass => Fragments::Pass,
            config::Fragments::Drop => Fragments::Drop,
        },
        verify: config.verify,
        allow: allow.to_vec(),
        deny: deny.to_vec(),
        source: SourceLimit {
            limit: Limit { rate: limit.rate, burst: limit.burst },
            prefix4: limit.prefix4,
            prefix6: limit.prefix6,
        },
        node: Limit { rate: limit.node_rate, burst: limit.node_burst },
    }
}

fn count(counters: &Counters) -> Count {
    let dropped = DropReason::ALL
        .iter()
        .map(|reason| (reason.name().to_owned(), counters.dropped(*reason)))
        .collect();
    Count {
        received: counters.received,
        answered: counters.answered,
        passed: counters.passed,
        dropped,
    }
}

pub(super) fn ledger(program: &EchoProgram) -> Result<LedgerStatus, LedgerError> {
    let ledger = program.ledger()?;
    let rows = ledger
        .rows
        .iter()
        .map(|row| LedgerRow { address: row.address, count: count(&row.counters) });
    Ok(LedgerStatus { counted: true, rows: rows.collect(), other: count(&ledger.other) })
}

pub(super) fn latency(program: &EchoProgram) -> Result<LatencyStatus, LedgerError> {
    let latency = program.latency()?;
    let quantile = |share| latency.quantile(share).unwrap_or(0);
    Ok(LatencyStatus {
        samples: latency.samples(),
        p50_ns: quantile(0.5),
        p90_ns: quantile(0.9),
        p99_ns: quantile(0.99),
        buckets: buckets(&latency),
    })
}

/// The program's buckets joined to one for each power of two, without empty ones at either end.
fn buckets(latency: &Latency) -> Vec<LatencyBucket> {
    let mut joined: Vec<LatencyBucket> = Vec::new();
    for (i, count) in latency.buckets.iter().enumerate() {
        let le_ns = Latency::bounds(i).1.next_power_of_two();
        match joined.last_mut() {
            Some(last) if last.le_ns == le_ns => last.count += count,
            None if *count == 0 => {}
            _ => joined.push(LatencyBucket { le_ns, count: *count }),
        }
    }
    while joined.last().is_some_and(|bucket| bucket.count == 0) {
        joined.pop();
    }
    joined
}

pub(super) fn top(program: &EchoProgram, count: usize) -> Result<TopStatus, LedgerError> {
    // Our own test runs are no source.
    let rows = program.top(count.saturating_add(DUMMIES.len()))?.into_iter();
    let others = rows.filter(|row| !DUMMIES.iter().any(|dummy| row.prefix.contains(dummy)));
    let sources = others.map(|row| TopRow { prefix: row.prefix, requests: row.packets });
    Ok(TopStatus { sources: sources.take(count).collect() })
}

/// All arrivals for service addresses so far, and of them the drops by this node's own limit.
pub(super) fn arrivals(program: &EchoProgram) -> Result<[u64; 2], LedgerError> {
    let ledger = program.ledger()?;
    let rows = || ledger.rows.iter().map(|row| &row.counters);
    let ours = |counters: &Counters| counters.dropped(DropReason::NodeLimit);
    Ok([rows().map(|counters| counters.received).sum(), rows().map(ours).sum()])
}

/// Echo requests of both families that the kernel itself has received in this thread's network namespace.
/// A kernel without IPv6 has no file for it, and counts none.
pub(super) fn kernel_echos() -> u64 {
    let read = |file| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    let [snmp, snmp6] = ["snmp", "snmp6"].map(|file| read(file).unwrap_or_default());
    echos(&snmp, &snmp6)
}

/// Finds the counts in the text of the two files: the first has a line of names and a line of values for
/// each protocol, the second a name and its value in each line.
fn echos(snmp: &str, snmp6: &str) -> u64 {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Icmp: "));
    let [names, values] = [(); 2].map(|()| lines.next().unwrap_or_default().split_whitespace());
    let v4 = names.zip(values).find_map(|(name, value)| (name == "InEchos").then_some(value));
    let v6 = snmp6.lines().find_map(|line| line.strip_prefix("Icmp6InEchos "));
    [v4, v6].into_iter().flatten().filter_map(|value| value.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::echos;

    const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives
Ip: 1 64 4711
Icmp: InMsgs InErrors InCsumErrors InDestUnreachs InEchos InEchoReps OutEchos
Icmp: 403 1 2 3 201 198 77
IcmpMsg: InType0 InType8
IcmpMsg: 198 201
";
    const SNMP6: &str = "\
Ip6InReceives                   \t5000
Icmp6InMsgs                     \t60
Icmp6InEchos                    \t40
Icmp6InEchoReplies              \t9
Icmp6OutEchos                   \t8
";

    #[test]
    fn the_kernels_echo_requests_are_found() {
        assert_eq!(echos(SNMP, SNMP6), 241);
        assert_eq!(echos(SNMP, ""), 201);
        assert_eq!(echos("", SNMP6), 40);
        assert_eq!(echos("Icmp: InMsgs InEchos\n", ""), 0, "no values");
    }
}
