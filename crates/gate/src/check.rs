//! What can be wrong with values that parsed; read `GateConfig::problems` first.

mod names;
#[cfg(test)]
mod tests;

use crate::config::{
    Config, Each, FLOWS, FileAction, FileConfig, GateConfig, LimitConfig, MAX_PACKETS, Rate,
    RuleAction, RuleConfig, TimeConfig,
};
use crate::{
    file_type,
    policy::{FAMILIES, is_foreign, is_type},
};
use classify::signatures::SignatureConfig;
use config::{Problem, Report, Size, alike, interfaces, prefixes};
use names::never_named;
use std::{collections::HashSet, time::Duration};

/// Most interfaces.
const MAX_INTERFACES: usize = 8;
/// Most rules of each kind, groups, times, limits.
const MAX_RULES: usize = 1000;
/// Most entries of a list in a rule.
const MAX_LIST: usize = 4096;
/// Lowest and highest rate, bits a second.
const RATES: (Rate, Rate) = (Rate(8000), Rate(400_000_000_000));
/// Least and most of each of the scanner's bounds.
const SCAN_SIZES: std::ops::RangeInclusive<Size> = Size(1 << 16)..=Size(1 << 40);
/// Longest name.
const MAX_NAME: usize = 64;
/// Longest time that anything is remembered.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

impl Config {
    /// Everything that is wrong with the values; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        self.gate.problems()
    }

    /// Warnings: what is allowed but rarely intended.
    pub fn warnings(&self) -> Vec<Problem> {
        self.gate.warnings()
    }
}

/// Reports a text that cannot be a name.
fn bad_name(name: &str) -> Option<String> {
    let good = (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    (!good).then(|| {
        format!("{name:?} cannot be a name: 1 to {MAX_NAME} letters, digits, `-`, `_`, `.`")
    })
}

/// Checks names of one kind: valid, and none twice.
fn names<'a>(kind: &str, list: impl Iterator<Item = &'a str>, report: &mut Report<'_>) {
    let mut seen = HashSet::new();
    for (i, name) in list.enumerate() {
        let key = format!("{kind}[{i}].name");
        if let Some(why) = bad_name(name) {
            report.add(&key, why);
        } else if !seen.insert(name) {
            report.add(&key, format!("{name} is the name of another {kind} too"));
        } else if i == MAX_RULES {
            report.add(&key, format!("more than {MAX_RULES} of this kind"));
        }
    }
}

/// Checks that names are defined.
fn known(key: &str, kind: &str, used: &[String], there: &[&str], report: &mut Report<'_>) {
    for (i, name) in used.iter().enumerate() {
        let key = format!("{key}[{i}]");
        if !there.contains(&name.as_str()) {
            report.add(&key, format!("there is no [[gate.{kind}]] of the name {name:?}"));
        } else if used[..i].contains(name) {
            report.add(&key, format!("{name} is named twice; remove one"));
        }
    }
}

fn short(key: &str, list: &[String], report: &mut Report<'_>) {
    if list.len() > MAX_LIST {
        report.add(key, format!("more than {MAX_LIST} entries"));
    }
}

impl GateConfig {
    /// Everything that is wrong with the values, each key from `gate` on; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "gate");
        if self.internal.is_empty() {
            report.add(
                "internal",
                "name the interfaces towards the internal hosts, such as [\"eth1\"]",
            );
        }
        if self.internal.len() > MAX_INTERFACES {
            report.add("internal", format!("more than {MAX_INTERFACES} interfaces"));
        }
        self.interfaces(report);
        if !(1..=MAX_PACKETS).contains(&self.packets) {
            let text =
                format!("{} is not a number of packets from 1 to {MAX_PACKETS}", self.packets);
            report.add("packets", text);
        }
        if !FLOWS.contains(&self.max_flows) {
            let text = format!(
                "{} is not a number of flows from {} to {}",
                self.max_flows,
                FLOWS.start(),
                FLOWS.end()
            );
            report.add("max_flows", text);
        }
        for (key, time, least) in [
            ("refuse_for", self.refuse_for, 0),
            ("idle_tcp", self.idle_tcp, 60),
            ("idle_udp", self.idle_udp, 10),
        ] {
            if time > LONGEST || time < Duration::from_secs(least) {
                report.add(key, format!("not a time from {least} seconds to 7 days"));
            }
        }
        classify::signatures::check(&self.signatures, report);
        names("group", self.groups.iter().map(|group| group.name.as_str()), report);
        names("time", self.times.iter().map(|time| time.name.as_str()), report);
        names("limit", self.limits.iter().map(|limit| limit.name.as_str()), report);
        names("rule", self.rules.iter().map(|rule| rule.name.as_str()), report);
        names("file", self.files.iter().map(|file| file.name.as_str()), report);
        for (i, group) in self.groups.iter().enumerate() {
            let mut report = report.within(&format!("group[{i}]"));
            if group.hosts.is_empty() {
                report.add("hosts", "a group without hosts matches nothing: give its addresses");
            }
            if group.hosts.len() > MAX_LIST {
                report.add("hosts", format!("more than {MAX_LIST} prefixes"));
            }
            prefixes("hosts", &group.hosts, &mut report);
        }
        for (i, time) in self.times.iter().enumerate() {
            time.check(&mut report.within(&format!("time[{i}]")));
        }
        for (i, limit) in self.limits.iter().enumerate() {
            let key = format!("limit[{i}]");
            limit.check(&key, report);
            let mut report = report.within(&key);
            if let Err(text) = limit.is_possible(&self.internal) {
                report.add("each", text);
            }
        }
        for (i, rule) in self.rules.iter().enumerate() {
            rule.check(self, &mut report.within(&format!("rule[{i}]")));
        }
        for (i, file) in self.files.iter().enumerate() {
            file.check(self, &mut report.within(&format!("file[{i}]")));
        }
        let scans = |file: &FileConfig| file.action == FileAction::Scan;
        if let (Some(i), None) = (self.files.iter().position(scans), &self.scan) {
            let text = "nothing scans files: add a section [gate.scan]";
            report.add(&format!("file[{i}].action"), text);
        }
        if let Some(scan) = &self.scan {
            let mut report = report.within("scan");
            if !(1..=1000).contains(&scan.connections) {
                report.add("connections", "not a number of connections from 1 to 1000");
            }
            for (key, size) in [
                ("max_size", scan.max_size),
                ("waiting", scan.waiting),
                ("keep", scan.keep),
                ("torrents", scan.torrents),
            ] {
                if !SCAN_SIZES.contains(&size) {
                    let [least, most] = [SCAN_SIZES.start(), SCAN_SIZES.end()];
                    report.add(key, format!("{size} is not from {least} to {most}"));
                }
            }
            if scan.keep > scan.waiting {
                report.add("keep", "larger than gate.scan.waiting: no file could be kept");
            }
            if scan.timeout.is_zero() || scan.timeout > LONGEST {
                report.add("timeout", "too short for any verdict: give some seconds");
            }
        }
        if let Some(audit) = &self.audit {
            report.take("audit", audit.problems());
        }
        problems
    }

    /// Warnings: what is allowed but rarely intended.
    pub fn warnings(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "gate");
        if self.bypass {
            report.add(
                "bypass",
                "the gate starts switched off: no rule acts until `nigh gate bypass off`",
            );
        }
        for (i, rule) in self.rules.iter().enumerate() {
            let fits_all = rule.application.is_empty()
                && rule.category.is_empty()
                && rule.certainty.is_none()
                && rule.group.is_empty()
                && rule.direction.is_none()
                && rule.time.is_empty();
            if fits_all && rule.action != RuleAction::Count && i + 1 < self.rules.len() {
                let text = "this rule matches every flow: the rules after it have no effect";
                report.add(&format!("rule[{i}].name"), text);
            }
        }
        if self.scan.is_some() && !self.files.iter().any(|file| file.action == FileAction::Scan) {
            report.add("scan", "no [[gate.file]] has action = \"scan\": nothing is scanned");
        }
        let lists = |of: fn(&RuleConfig) -> &Vec<String>, too: fn(&FileConfig) -> &Vec<String>| {
            let rules = self.rules.iter().flat_map(of);
            rules.chain(self.files.iter().flat_map(too)).collect::<HashSet<_>>()
        };
        let groups = lists(|rule| &rule.group, |file| &file.group);
        // Rates may be for each group, also for those that no rule names.
        let shared = self.limits.iter().any(|limit| limit.each == Some(Each::Group));
        for (i, group) in self.groups.iter().enumerate() {
            if !shared && !groups.contains(&group.name) {
                report.add(&format!("group[{i}].name"), "no rule uses this group");
            }
        }
        let times = lists(|rule| &rule.time, |file| &file.time);
        for (i, time) in self.times.iter().enumerate() {
            if !times.contains(&time.name) {
                report.add(&format!("time[{i}].name"), "no rule uses this time");
            }
        }
        for (i, limit) in self.limits.iter().enumerate() {
            if !self.rules.iter().any(|rule| rule.limit.as_ref() == Some(&limit.name)) {
                report.add(&format!("limit[{i}].name"), "no rule uses this limit");
            }
        }
        self.unnamed(report);
        problems
    }

    /// Applications in rules that no flow can have, and signatures whose names no rule uses.
    fn unnamed(&self, report: &mut Report<'_>) {
        let rules = self.rules.iter().enumerate();
        let rules = rules.map(|(i, rule)| (format!("rule[{i}]"), &rule.application, &[][..]));
        let files = self.files.iter().enumerate();
        let files = files.map(|(i, file)| (format!("file[{i}]"), &file.application, &FAMILIES[..]));
        for (rule, list, more) in rules.chain(files) {
            for (i, name) in list.iter().enumerate() {
                let never = never_named(name, &self.signatures);
                if let Some(text) = never.filter(|_| !more.contains(&name.as_str())) {
                    report.add(&format!("{rule}.application[{i}]"), text);
                }
            }
        }
        for (i, signature) in self.signatures.iter().enumerate() {
            let asks = |list: &Vec<String>| list.contains(&signature.name);
            let used = self.files.iter().any(|file| asks(&file.application))
                || self.rules.iter().any(|rule| {
                    asks(&rule.application) || rule.category.contains(&signature.category)
                });
            if !used {
                let text = "no rule uses this name or its category: it only appears in status and audit; \
                            name it in the `application` of a rule";
                report.add(&format!("signature[{i}].name"), text);
            }
        }
    }

    fn interfaces(&self, report: &mut Report<'_>) {
        let mut found = Vec::new();
        interfaces(&self.internal, &mut Report::new(&mut found, ""));
        for Problem { key, message } in found {
            report.add(&key.replacen("interfaces", "internal", 1), message);
        }
    }

    fn group_names(&self) -> Vec<&str> {
        self.groups.iter().map(|group| group.name.as_str()).collect()
    }

    fn time_names(&self) -> Vec<&str> {
        self.times.iter().map(|time| time.name.as_str()).collect()
    }
}

impl TimeConfig {
    fn check(&self, report: &mut Report<'_>) {
        for (i, day) in self.days.iter().enumerate() {
            if self.days[..i].contains(day) {
                report.add(&format!("days[{i}]"), "this day is named twice; remove one");
            }
        }
        if self.from.0 == 24 * 60 {
            report.add("from", "a day begins at 00:00");
        }
        if self.from == self.to {
            report.add(
                "to",
                "start and end are the same; for whole days give \"00:00\" and \"24:00\"",
            );
        }
    }
}

/// Checks the applications in an operator's order: valid, and names that a flow can have.
///
/// # Errors
/// The sentence.
pub(crate) fn check_applications(
    list: &[String],
    signatures: &[SignatureConfig],
) -> Result<(), String> {
    let mut problems = Vec::new();
    applications(list, &mut Report::new(&mut problems, ""));
    if let Some(Problem { key, message }) = problems.into_iter().next() {
        return Err(format!("{key}: {message}"));
    }
    match list.iter().find_map(|name| never_named(name, signatures)) {
        Some(text) => Err(text),
        None => Ok(()),
    }
}

impl LimitConfig {
    /// Whether flows can share the rate: each interface has a queue of its own for what goes to internal hosts.
    ///
    /// # Errors
    /// The sentence.
    pub(crate) fn is_possible(&self, internal: &[String]) -> Result<(), String> {
        let apart = self.each == Some(Each::Host) || self.to_internal.is_none();
        if apart || internal.len() < 2 {
            return Ok(());
        }
        Err("to_internal cannot be shared over several internal interfaces: give each = \"host\", or only \
             from_internal"
            .into())
    }

    /// Everything that is wrong with it, below the key `limit`.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.check("limit", &mut Report::new(&mut problems, ""));
        problems
    }

    fn check(&self, key: &str, report: &mut Report<'_>) {
        if self.to_internal.is_none() && self.from_internal.is_none() {
            report.add(key, "nothing is limited: give to_internal, from_internal or both");
        }
        let mut report = report.within(key);
        for (key, rate) in
            [("to_internal", self.to_internal), ("from_internal", self.from_internal)]
        {
            if let Some(rate) = rate
                && !(RATES.0..=RATES.1).contains(&rate)
            {
                report.add(key, format!("{rate} is not a rate from {} to {}", RATES.0, RATES.1));
            }
        }
    }
}

impl RuleConfig {
    fn check(&self, config: &GateConfig, report: &mut Report<'_>) {
        applications(&self.application, report);
        for (i, category) in self.category.iter().enumerate() {
            if self.category[..i].contains(category) {
                report.add(&format!("category[{i}]"), "named twice; remove one");
            }
        }
        known("group", "group", &self.group, &config.group_names(), report);
        known("time", "time", &self.time, &config.time_names(), report);
        match (&self.limit, self.action) {
            (None, RuleAction::Limit) => report.add("limit", "name the [[gate.limit]]"),
            (Some(_), RuleAction::Allow | RuleAction::Deny | RuleAction::Count) => {
                report.add("limit", "only a rule with action = \"limit\" has a limit");
            }
            (Some(name), RuleAction::Limit) => {
                if !config.limits.iter().any(|limit| limit.name == *name) {
                    report.add("limit", format!("there is no [[gate.limit]] of the name {name:?}"));
                }
            }
            (None, _) => {}
        }
        if self.deny.is_some() && self.action != RuleAction::Deny {
            report.add("deny", "only a rule with action = \"deny\" has the key deny");
        }
    }
}

impl FileConfig {
    fn check(&self, config: &GateConfig, report: &mut Report<'_>) {
        applications(&self.application, report);
        for (i, name) in self.application.iter().enumerate() {
            if let Some((application, _)) = name.split_once('/') {
                let text = format!(
                    "files are matched by application, not by its parts; write {application:?}"
                );
                report.add(&format!("application[{i}]"), text);
            }
        }
        known("group", "group", &self.group, &config.group_names(), report);
        known("time", "time", &self.time, &config.time_names(), report);
        for (key, list) in
            [("names", &self.names), ("types", &self.types), ("hashes", &self.hashes)]
        {
            short(key, list, report);
            if let Some(i) = list.iter().position(|entry| entry.is_empty() || entry.len() > 1024) {
                report.add(&format!("{key}[{i}]"), "an entry has 1 to 1024 bytes");
            }
        }
        for (i, whole) in self.types.iter().enumerate() {
            let parts = |c: char| c.is_ascii_alphanumeric() || "-+.*".contains(c);
            let (kind, part) = whole.split_once('/').unwrap_or((whole, "*"));
            let good =
                !kind.is_empty() && !part.is_empty() && kind.chars().chain(part.chars()).all(parts);
            let key = format!("types[{i}]");
            if !good {
                let text = "a type is a short name or a media type, such as `zip` or `video/*`";
                report.add(&key, text);
            } else if !is_type(whole) {
                let of_a_kind = |media: &str| Some(format!("{}/*", media.split_once('/')?.0));
                let groups: Vec<_> =
                    file_type::all().filter_map(|kind| of_a_kind(kind.media)).collect();
                let known = file_type::all().flat_map(|kind| [kind.name, kind.media]);
                let known = known.chain(groups.iter().map(String::as_str));
                let meant = alike(whole, known).join("` or `");
                let hint = if meant.is_empty() { "zip` or `video/*" } else { &meant };
                report.add(&key, format!("no file has this type; did you mean `{hint}`?"));
            }
        }
        for (i, name) in self.names.iter().enumerate() {
            if let Some(c) = name.chars().find(|c| is_foreign(*c)) {
                let text = format!(
                    "only `*` and `?` stand for other characters: write `?` where `{c}` is, and an entry for \
                     each of several patterns"
                );
                report.add(&format!("names[{i}]"), text);
            }
        }
        for (i, hash) in self.hashes.iter().enumerate() {
            let good = [32, 40, 48, 64].contains(&hash.len())
                && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !good {
                let text = "a hash has 32, 40, 48 or 64 hexadecimal digits";
                report.add(&format!("hashes[{i}]"), text);
            }
        }
    }
}

/// Names of applications: lower case, at most one part.
fn applications(list: &[String], report: &mut Report<'_>) {
    short("application", list, report);
    for (i, name) in list.iter().enumerate() {
        let key = format!("application[{i}]");
        let good = |part: &str| {
            !part.is_empty()
                && part.len() <= MAX_NAME
                && !part.chars().any(|c| c.is_uppercase() || c.is_whitespace() || c == '/')
        };
        let (application, part) = name.split_once('/').unwrap_or((name, "part"));
        if !good(application) || !good(part) {
            let text =
                "an application is written in lower case, such as `bittorrent` or `bittorrent/dht`";
            report.add(&key, text);
        } else if list[..i].contains(name) {
            report.add(&key, format!("{name} is named twice; remove one"));
        }
    }
}
