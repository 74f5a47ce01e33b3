//! What can be wrong with values that parsed; read `OracleConfig::problems` first.

use crate::{
    alto,
    config::{AdjustConfig, Config, DEFAULT_METRIC, LimitConfig, MAX_THREADS, OracleConfig},
    metric::Metric,
    proxidor::MAX_METRICS,
};
use config::{Problem, Report, bucket, interfaces, prefixes, source_prefixes};
use std::{collections::HashSet, path::Path, time::Duration};

/// Most addresses that are listened on.
const MAX_LISTEN: usize = 16;
/// Most adjustments.
const MAX_ADJUSTMENTS: usize = 4096;
/// Most prefixes of clients that may give a source.
const MAX_SOURCES: usize = 4096;
/// Longest time to live in the header, seconds.
const MAX_TTL: u64 = u16::MAX as u64;

impl Config {
    /// Everything that is wrong with the values; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        self.oracle.problems()
    }

    /// Warnings: what is allowed but rarely intended.
    pub fn warnings(&self) -> Vec<Problem> {
        self.oracle.warnings()
    }
}

impl OracleConfig {
    /// Everything that is wrong with the values, each key from `oracle` on; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "oracle");
        self.sockets(report);
        self.policy(report);
        prefixes("sources", &self.sources, report);
        if self.sources.len() > MAX_SOURCES {
            let text = format!("{} prefixes are more than {MAX_SOURCES}", self.sources.len());
            report.add("sources", text);
        }
        report.take("limit", self.limit.problems());
        if let Some(bmp) = &self.bmp {
            report.take("bmp", bmp.problems());
        }
        if let Some(section) = &self.alto {
            let names = self.metrics.iter().map(|metric| metric.name.as_str());
            let names: Vec<&str> = std::iter::once(DEFAULT_METRIC).chain(names).collect();
            report.take("alto", section.problems());
            report.take("alto", section.problems_with(&names));
            for (i, name) in names.iter().enumerate().skip(1) {
                if alto::name::metric(i, name).is_none() {
                    let text = format!(
                        "{name} is not a valid name for ALTO: use at most 27 letters, digits, '-' and '_'"
                    );
                    report.add(&format!("metric[{}].name", i - 1), text);
                }
            }
        }
        for (i, speaker) in self.bgp_ls.iter().enumerate() {
            report.take(&format!("bgp_ls[{i}]"), speaker.problems());
        }
        problems
    }

    fn sockets(&self, report: &mut Report<'_>) {
        if self.listen.is_empty() {
            report.add("listen", "the list is empty; give an address, such as \"0.0.0.0:8899\"");
        }
        if self.listen.len() > MAX_LISTEN {
            report.add(
                "listen",
                format!("{} addresses are more than {MAX_LISTEN}", self.listen.len()),
            );
        }
        for (i, address) in self.listen.iter().enumerate() {
            let key = format!("listen[{i}]");
            if address.port() == 0 {
                report.add(&key, "0 is not a port; give one, such as 8899");
            } else if address.ip().is_multicast() {
                report.add(&key, format!("{} is a multicast address", address.ip()));
            } else if self.listen[..i].contains(address) {
                report.add(&key, format!("{address} is listed twice; remove one"));
            }
        }
        if self.threads > MAX_THREADS {
            let text =
                format!("{} is more than {MAX_THREADS}; 0 means one for each core", self.threads);
            report.add("threads", text);
        }
        interfaces(&self.interfaces, report);
        let ttl = self.ttl.as_secs();
        if self.ttl != Duration::from_secs(ttl) || !(1..=MAX_TTL).contains(&ttl) {
            report.add("ttl", format!("must be whole seconds from 1s to {MAX_TTL}s"));
        }
    }

    fn policy(&self, report: &mut Report<'_>) {
        // The default one has a bit as well.
        let count = self.metrics.len();
        if count >= MAX_METRICS {
            let text = format!(
                "{count} and the default are more than the {MAX_METRICS} that a request has bits for: remove {}",
                count + 1 - MAX_METRICS
            );
            report.add("metric", text);
        }
        if let Err(error) = Metric::compile(DEFAULT_METRIC, &self.cost) {
            report.add("cost", error.to_string());
        }
        let mut names = HashSet::from([DEFAULT_METRIC]);
        for (i, metric) in self.metrics.iter().enumerate() {
            let mut report = report.within(&format!("metric[{i}]"));
            if !is_word(&metric.name) {
                let text = format!(
                    "{:?} is not a name: 1 to 32 letters, digits, '-' and '_'",
                    metric.name
                );
                report.add("name", text);
            } else if !names.insert(&metric.name) {
                report.add("name", format!("{} is the name of another metric too", metric.name));
            }
            if let Err(error) = Metric::compile(&metric.name, &metric.cost) {
                report.add("cost", error.to_string());
            }
        }
        if self.adjustments.len() > MAX_ADJUSTMENTS {
            let text = format!("{} are more than {MAX_ADJUSTMENTS}", self.adjustments.len());
            report.add("adjust", text);
        }
        let mut seen = HashSet::new();
        for (i, adjust) in self.adjustments.iter().enumerate() {
            let key = format!("adjust[{i}]");
            report.take(&key, adjust.problems());
            if !seen.insert((adjust.prefix, adjust.as_number)) {
                let what = match (adjust.prefix, adjust.as_number) {
                    (Some(prefix), _) => prefix.to_string(),
                    (None, number) => format!("AS {}", number.unwrap_or_default()),
                };
                report.add(&key, format!("{what} is adjusted twice; remove one"));
            }
        }
    }

    /// What is allowed but seldom meant, each key from `oracle` on.
    pub fn warnings(&self) -> Vec<Problem> {
        let mut warnings = Vec::new();
        let topology = &self.topology;
        let report = &mut Report::new(&mut warnings, "oracle");
        if topology.oracle_conf.is_none() && topology.file.is_none() && self.bgp_ls.is_empty() {
            report.add(
                "topology",
                "neither oracle_conf nor file, and no [[oracle.bgp_ls]]: no router is known, and every list \
                 is returned unsorted, until routers are created on the console",
            );
        }
        let files = [
            ("oracle_conf".to_owned(), &topology.oracle_conf),
            ("file".to_owned(), &topology.file),
        ];
        let files = files.iter().filter_map(|(key, path)| Some((key.clone(), path.as_deref()?)));
        let dumps = topology.mrt.iter().enumerate();
        let dumps = dumps.map(|(i, mrt)| (format!("mrt[{i}].file"), mrt.file.as_path()));
        for (key, path) in files.chain(dumps) {
            if !Path::exists(path) {
                let key = format!("topology.{key}");
                report.add(&key, format!("{} does not exist on this host", path.display()));
            }
        }
        warnings
    }
}

impl AdjustConfig {
    /// What is wrong with the values, each key as in the table.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match (self.prefix, self.as_number) {
            (None, None) => problems.push(Problem::new("prefix", "give a prefix or an AS")),
            (Some(_), Some(_)) => {
                problems.push(Problem::new("as", "either a prefix or an AS, not both"));
            }
            (Some(prefix), None) => {
                let message = config::host_bits(&prefix);
                problems.extend(message.map(|message| Problem::new("prefix", message)));
            }
            (None, Some(0)) => {
                problems.push(Problem::new("as", "AS 0 is reserved (RFC 7607)"));
            }
            (None, Some(_)) => {}
        }
        match (self.verdict, self.penalty) {
            (None, None) => {
                let message = "give \"prefer\" or \"avoid\", or a penalty instead";
                problems.push(Problem::new("do", message));
            }
            (Some(_), Some(_)) => {
                problems.push(Problem::new("penalty", "either do or penalty, not both"));
            }
            (None, Some(penalty)) if !penalty.is_finite() => {
                problems.push(Problem::new("penalty", "must be a finite number"));
            }
            _ => {}
        }
        problems
    }
}

impl LimitConfig {
    /// What is wrong with the values, each key as in the section.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "");
        bucket(["rate", "burst"], [self.rate, self.burst], report);
        source_prefixes(self.prefix4, self.prefix6, report);
        problems
    }
}

fn is_word(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=32).contains(&name.len()) && name.chars().all(good)
}
