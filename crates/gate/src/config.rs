//! The section `[gate]` of the configuration.
//!
//! Parsing (serde) refuses unknown keys and values of the wrong type. What parses can still be wrong:
//! [`GateConfig::problems`] names every such value with its dotted key and what to do. The rules
//! are in `check.rs`.

mod day;

pub use config::{BadRate, Rate};
pub use day::{Day, Hour};

use crate::{audit, scan};
use classify::{
    label::{Category, Certainty},
    signatures::SignatureConfig,
};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use std::{
    net::{AddrParseError, IpAddr},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

/// Most packets with payload that are copied of a flow that nobody has named yet.
pub const MAX_PACKETS: u8 = 32;
/// Fewest and most decided flows: the table's memory is about 200 bytes each.
pub(crate) const FLOWS: RangeInclusive<u32> = 1024..=1 << 23;

/// Renamed keys: the old one without indices, and the new one.
pub const RENAMED: &[(&str, &str)] = &[
    ("gate.inside", "gate.internal"),
    ("gate.limit.to_inside", "gate.limit.to_internal"),
    ("gate.limit.from_inside", "gate.limit.from_internal"),
    ("gate.audit.rotate_mib", "gate.audit.rotate_size"),
    ("gate.scan.max_bytes", "gate.scan.max_size"),
    ("gate.scan.waiting_bytes", "gate.scan.waiting"),
    ("gate.scan.keep_bytes", "gate.scan.keep"),
    ("gate.scan.torrent_bytes", "gate.scan.torrents"),
];

/// Classifies the connections that a router forwards; allows, denies, limits, scans and logs them by rules.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GateConfig {
    /// Interfaces towards the internal hosts, at most 8.
    pub internal: Vec<String>,
    /// Packets with payload that are inspected before a flow is called unknown, 1 to 32.
    #[schemars(range(min = 1, max = MAX_PACKETS))]
    pub packets: u8,
    /// Hold the packets of undecided flows until the flow is classified; without it they pass.
    pub hold: bool,
    /// Action on undecided flows while the daemon has not responded for two seconds.
    pub on_failure: OnFailure,
    /// Where packets of refused flows from internal hosts are dropped.
    pub refuse_at: RefuseAt,
    /// Most decided flows at once, and most undecided ones.
    #[schemars(range(min = *FLOWS.start(), max = *FLOWS.end()))]
    pub max_flows: u32,
    /// For this time, another attempt of a refused TCP connection (same hosts, same port) ends at its first
    /// packet; 0s is never.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub refuse_for: Duration,
    /// Idle timeout of TCP connections.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub idle_tcp: Duration,
    /// Idle timeout of UDP flows.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub idle_udp: Duration,
    /// Start with the gate switched off: everything passes until `nigh gate bypass off`.
    pub bypass: bool,
    /// Named sets of internal hosts.
    #[serde(rename = "group")]
    pub groups: Vec<GroupConfig>,
    /// Named times of the week.
    #[serde(rename = "time")]
    pub times: Vec<TimeConfig>,
    /// Named rates.
    #[serde(rename = "limit")]
    pub limits: Vec<LimitConfig>,
    /// Applications that the operator defines by the first bytes of a flow.
    #[serde(rename = "signature")]
    pub signatures: Vec<SignatureConfig>,
    /// Rules for flows; the first one that matches decides.
    #[serde(rename = "rule")]
    pub rules: Vec<RuleConfig>,
    /// Rules for files; the first one that matches decides.
    #[serde(rename = "file")]
    pub files: Vec<FileConfig>,
    /// Virus scan of files by clamd; without it nothing is scanned.
    pub scan: Option<scan::Config>,
    /// The audit log; without it nothing is logged.
    pub audit: Option<audit::Config>,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self {
            internal: Vec::new(),
            packets: 8,
            hold: false,
            on_failure: OnFailure::Pass,
            refuse_at: RefuseAt::Stack,
            max_flows: 1 << 18,
            refuse_for: Duration::from_secs(30),
            idle_tcp: Duration::from_secs(3600),
            idle_udp: Duration::from_secs(120),
            bypass: false,
            groups: Vec::new(),
            times: Vec::new(),
            limits: Vec::new(),
            signatures: Vec::new(),
            rules: Vec::new(),
            files: Vec::new(),
            scan: None,
            audit: None,
        }
    }
}

impl From<&GateConfig> for classify::Settings {
    fn from(config: &GateConfig) -> Self {
        let (packets, signatures) = (config.packets, config.signatures.clone());
        Self { packets, signatures, ..Self::default() }
    }
}

/// Action on undecided flows while the daemon does not respond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// They pass.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
}

/// Where packets of refused flows end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RefuseAt {
    /// At the hook of all other packets.
    #[default]
    Stack,
    /// In the driver by XDP, which costs least; without XDP in the driver, in the kernel's generic XDP.
    Driver,
}

/// A named group of internal hosts, for rules and limits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Name of the group, as rules use it.
    pub name: String,
    /// Prefixes or addresses of its hosts.
    #[serde(deserialize_with = "hosts")]
    #[schemars(with = "Vec<config::schema::Hosts>")]
    pub hosts: Vec<IpNet>,
}

/// Prefixes, or addresses alone.
fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    struct Hosts(IpNet);
    impl<'de> Deserialize<'de> for Hosts {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            prefix(&text).map(Self).map_err(D::Error::custom)
        }
    }
    let hosts = Vec::<Hosts>::deserialize(deserializer)?;
    Ok(hosts.into_iter().map(|Hosts(prefix)| prefix).collect())
}

/// A prefix, or an address alone.
///
/// # Errors
/// The text is neither.
pub(crate) fn prefix(text: &str) -> Result<IpNet, AddrParseError> {
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
}

/// A named time of the week, by the router's local time, for rules.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeConfig {
    /// Name of the time, as rules use it.
    pub name: String,
    /// Days on which it begins; every day when not given.
    #[serde(default)]
    pub days: Vec<Day>,
    /// Start, `HH:MM`.
    pub from: Hour,
    /// End, `HH:MM`; on the next day if it is not later than `from`.
    pub to: Hour,
}

/// A named rate limit, for rules with `action = "limit"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitConfig {
    /// Name of the limit, as rules use it.
    pub name: String,
    /// Rate of packets to internal hosts; no limit when not given.
    pub to_internal: Option<Rate>,
    /// Rate of packets from internal hosts; no limit when not given.
    pub from_internal: Option<Rate>,
    /// Gives each host, group or application the rate for itself; without it all flows share one.
    pub each: Option<Each>,
}

/// What has a limit's rate for itself.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Deserialize,
    Serialize,
    clap::ValueEnum,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Each {
    /// Each internal host.
    Host,
    /// Each group; hosts without a group share one.
    Group,
    /// Each application.
    Application,
}

/// A rule for flows: conditions and an action. Conditions that are not given match everything; the first
/// matching rule decides.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// Name of the rule in status, metrics and audit log.
    pub name: String,
    /// Applications (`bittorrent`), or parts of them (`bittorrent/dht`); `unknown` for unclassified flows.
    #[serde(default)]
    pub application: Vec<String>,
    /// Categories of applications.
    #[serde(default)]
    pub category: Vec<Category>,
    /// Least certainty of the label; any label matches when not given.
    pub certainty: Option<Certainty>,
    /// Names of groups, one of which must contain the internal host.
    #[serde(default)]
    pub group: Vec<String>,
    /// The side that began the flow; either when not given.
    pub direction: Option<Direction>,
    /// Names of times at which the rule is in force; always when not given.
    #[serde(default)]
    pub time: Vec<String>,
    /// Action on flows that match.
    pub action: RuleAction,
    /// With `action = "deny"`: whether the ends are notified; `reset` when not given.
    pub deny: Option<Deny>,
    /// With `action = "limit"`: the name of the limit.
    pub limit: Option<String>,
}

/// Who began a flow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, clap::ValueEnum, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The internal host.
    FromInternal,
    /// The external host.
    ToInternal,
}

/// The action on a flow that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    /// It passes.
    Allow,
    /// It is refused.
    Deny,
    /// It passes at a limited rate.
    Limit,
    /// It is counted, and the next rules decide.
    Count,
}

/// How a flow is denied.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Deserialize,
    Serialize,
    clap::ValueEnum,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Deny {
    /// Its packets are dropped.
    Drop,
    /// Both ends are notified: TCP by a reset, UDP by ICMP port unreachable.
    #[default]
    Reset,
}

/// A rule for files: conditions and an action. Conditions that are not given match everything; of each list
/// one entry must match. The first matching rule decides.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// Name of the rule in status, metrics and audit log.
    pub name: String,
    /// Patterns of file names with `*` and `?`; case does not matter.
    #[serde(default)]
    pub names: Vec<String>,
    /// Types of content, by short names (`zip`, `exe`) or media types (`video/*`).
    #[serde(default)]
    pub types: Vec<String>,
    /// Hashes in hexadecimal digits: info-hash of a torrent, eD2k, SHA-1 or TTH.
    #[serde(default)]
    pub hashes: Vec<String>,
    /// Applications that transfer the file.
    #[serde(default)]
    pub application: Vec<String>,
    /// Names of groups, one of which must contain the internal host.
    #[serde(default)]
    pub group: Vec<String>,
    /// Names of times at which the rule is in force; always when not given.
    #[serde(default)]
    pub time: Vec<String>,
    /// Action on files that match.
    pub action: FileAction,
}

/// The action on a file that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileAction {
    /// It passes.
    Allow,
    /// Its flow is refused from here on.
    Deny,
    /// It is scanned while it passes; the packet with its last byte waits for the verdict.
    Scan,
}

/// The section, and the values of `[node]` that it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `node.name`.
    pub node: String,
    /// `node.state`, the directory for state that must survive a restart.
    pub state: PathBuf,
    /// The section `[gate]`.
    pub gate: GateConfig,
}
