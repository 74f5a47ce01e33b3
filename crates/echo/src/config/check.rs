//! What can be wrong with values that parsed, a rule a line; read `Config::problems` first.

use super::{AnycastConfig, Config, EchoConfig, HealthConfig, Limit, MAX_ADDRESSES};
use config::{Problem, Report, bucket, interfaces, prefixes, source_prefixes};
use ipnet::IpNet;
use std::{collections::HashSet, net::IpAddr, time::Duration};

/// Most prefixes in a list of sources.
const MAX_LIST: usize = 4096;
/// Most prefixes that are announced.
const MAX_PREFIXES: usize = 64;
/// The longest drain; contrib/nigh.service allows more for a stop.
const LONGEST_DRAIN: Duration = Duration::from_secs(600);
impl Config {
    /// Everything that is wrong with the values, in the order of the file; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        echo(&self.echo, &mut Report::new(&mut problems, "echo"));
        if let Some(config) = &self.anycast {
            let mut report = Report::new(&mut problems, "anycast");
            anycast(config, &self.echo.addresses, &mut report);
        }
        problems
    }

    /// What is allowed but rarely intended; `nigh check` and the daemon's log show it as warnings.
    pub fn warnings(&self) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let mut warn = |key: String, message: String| warnings.push(Problem { key, message });
        if let Some(anycast) = &self.anycast {
            for (i, address) in self.echo.addresses.iter().enumerate() {
                if !anycast.prefixes.iter().any(|prefix| prefix.contains(address)) {
                    warn(
                        format!("echo.addresses[{i}]"),
                        format!("{address} is in none of anycast.prefixes, so it is not announced"),
                    );
                }
            }
            if anycast.upstreams.is_empty() {
                warn("anycast.upstream".into(), "there is none, so nothing is announced".into());
            }
        }
        if !self.echo.assign && self.echo.mode == super::Mode::Kernel {
            warn(
                "echo.assign".into(),
                "with mode = \"kernel\" the kernel must have the addresses; put them on an \
                 interface, or set assign = true"
                    .into(),
            );
        }
        warnings
    }
}

fn echo(config: &EchoConfig, report: &mut Report<'_>) {
    if config.interfaces.is_empty() {
        report.add("interfaces", "name at least one interface on which requests arrive");
    }
    interfaces(&config.interfaces, report);

    if config.addresses.is_empty() {
        report.add("addresses", "name at least one address to answer for");
    }
    // The program also answers probes, at two addresses of each interface and two of its own.
    let room = MAX_ADDRESSES.saturating_sub(2 * config.interfaces.len() + 2);
    if config.addresses.len() > room {
        report.add(
            "addresses",
            format!(
                "{} addresses are more than the {room} that a node with {} interfaces answers for",
                config.addresses.len(),
                config.interfaces.len()
            ),
        );
    }
    let mut seen = HashSet::new();
    for (i, address) in config.addresses.iter().enumerate() {
        let key = format!("addresses[{i}]");
        if let Some(kind) = not_unicast(address) {
            report.add(&key, format!("{address} is {kind}; a service needs a unicast address"));
        } else if !seen.insert(address) {
            report.add(&key, format!("{address} is listed twice; remove one"));
        }
    }
    sources("allow", &config.allow, report);
    sources("deny", &config.deny, report);
    limit(&config.limit, &mut report.within("limit"));
}

fn sources(list: &str, sources: &[IpNet], report: &mut Report<'_>) {
    if sources.len() > MAX_LIST {
        report.add(list, format!("{} prefixes are more than {MAX_LIST}", sources.len()));
    }
    prefixes(list, sources, report);
}

fn limit(limit: &Limit, report: &mut Report<'_>) {
    bucket(["rate", "burst"], [limit.rate, limit.burst], report);
    source_prefixes(limit.prefix4, limit.prefix6, report);
    bucket(["node_rate", "node_burst"], [limit.node_rate, limit.node_burst], report);
}

impl Limit {
    /// What is wrong with the values, each key as in the section; for limits changed at run time.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        limit(self, &mut Report::new(&mut problems, "echo.limit"));
        problems
    }
}

fn anycast(config: &AnycastConfig, addresses: &[IpAddr], report: &mut Report<'_>) {
    if config.prefixes.is_empty() {
        report.add("prefixes", "name at least one prefix to announce, or remove [anycast]");
    }
    if config.prefixes.len() > MAX_PREFIXES {
        report.add(
            "prefixes",
            format!("{} prefixes are more than {MAX_PREFIXES}", config.prefixes.len()),
        );
    }
    prefixes("prefixes", &config.prefixes, report);
    for (i, prefix) in config.prefixes.iter().enumerate() {
        let key = format!("prefixes[{i}]");
        if prefix.prefix_len() == 0 {
            report
                .add(&key, format!("{prefix} is the default route; name the service's own prefix"));
        } else if !addresses.iter().any(|address| prefix.contains(address)) {
            report.add(
                &key,
                format!("{prefix} holds none of echo.addresses: it would attract traffic that nothing here answers"),
            );
        }
    }
    if config.quiet.is_zero() {
        report.add("quiet", "must be more than 0, such as \"1s\"");
    }
    if config.drain_timeout <= config.quiet {
        report.add("drain_timeout", "must be longer than anycast.quiet, such as \"30s\"");
    } else if config.drain_timeout > LONGEST_DRAIN {
        report.add("drain_timeout", "must not be longer than 10 minutes");
    }
    health(&config.health, &mut report.within("health"));
    let mut names = HashSet::new();
    for (i, upstream) in config.upstreams.iter().enumerate() {
        let mut report = report.within(&format!("upstream[{i}]"));
        let name = upstream.name();
        if !name.is_empty() && !is_word(name) {
            report
                .add("name", format!("{name:?} is not a name: letters, digits, '-', '_' and '.'"));
        } else if !names.insert(name) {
            report.add("name", format!("{name} is the name of another upstream too"));
        }
        for problem in upstream.problems(&config.prefixes) {
            report.add(&problem.key, problem.message);
        }
    }
}

fn health(config: &HealthConfig, report: &mut Report<'_>) {
    let (least, most) = (Duration::from_millis(10), Duration::from_secs(60));
    if !(least..=most).contains(&config.interval) {
        report.add("interval", "must be from 10ms to 60s, such as \"100ms\"");
    }
    for (key, value) in [("rise", config.rise), ("fall", config.fall)] {
        if !(1..=1000).contains(&value) {
            report.add(key, format!("{value} is not from 1 to 1000"));
        }
    }
    if config.hold > Duration::from_secs(3600) {
        report.add("hold", "must not be longer than an hour");
    }
    if !(config.max_drop_ratio > 0.0 && config.max_drop_ratio <= 1.0) {
        report.add(
            "max_drop_ratio",
            format!(
                "{} is not more than 0 and at most 1; 1 switches the check off",
                config.max_drop_ratio
            ),
        );
    }
    for (i, argv) in config.commands.iter().enumerate() {
        if argv.first().is_none_or(String::is_empty) {
            report.add(
                &format!("commands[{i}]"),
                "name a program and its arguments, such as [\"/usr/bin/true\"]",
            );
        }
    }
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn not_unicast(address: &IpAddr) -> Option<&'static str> {
    let broadcast =
        |a: &IpAddr| matches!(a, IpAddr::V4(a) if a.is_broadcast() || a.octets()[0] >= 240);
    let this_network = |a: &IpAddr| matches!(a, IpAddr::V4(a) if a.octets()[0] == 0);
    let link_local = |a: &IpAddr| matches!(a, IpAddr::V6(a) if a.is_unicast_link_local());
    let mapped = |a: &IpAddr| matches!(a, IpAddr::V6(a) if a.to_ipv4_mapped().is_some());
    match address {
        a if a.is_unspecified() => Some("the unspecified address"),
        a if a.is_multicast() => Some("a multicast address"),
        a if a.is_loopback() => Some("a loopback address"),
        a if broadcast(a) => Some("reserved or the broadcast address"),
        a if this_network(a) => Some("in 0.0.0.0/8, which is reserved"),
        a if link_local(a) => Some("a link-local address"),
        a if mapped(a) => Some("an IPv4-mapped address"),
        _ => None,
    }
}
