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

/// The section `[gate]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GateConfig {
    /// Interfaces towards the internal hosts, at most 8.
    pub internal: Vec<String>,
    /// Packets with payload that are inspected until a flow is called unknown.
    #[schemars(range(min = 1, max = MAX_PACKETS))]
    pub packets: u8,
    /// Whether the first packets wait until the flow is decided.
    pub hold: bool,
    /// What happens to new flows while the daemon does not respond for two seconds.
    pub on_failure: OnFailure,
    /// Where packets from internal hosts are refused.
    pub refuse_at: RefuseAt,
    /// Decided flows at once, at most; as many undecided ones beside them.
    #[schemars(range(min = *FLOWS.start(), max = *FLOWS.end()))]
    pub max_flows: u32,
    /// How long a refused flow's next attempts are refused at their first packet; 0s is never.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub refuse_for: Duration,
    /// How long a TCP connection may be silent until it is forgotten.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub idle_tcp: Duration,
    /// How long a flow of UDP may be silent until it is forgotten.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub idle_udp: Duration,
    /// Whether the gate starts switched off.
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
    /// The scanner of files; without it nothing is scanned.
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

/// What happens to new flows while the daemon does not respond.
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
    /// With all other packets, where the kernel's stack begins.
    #[default]
    Stack,
    /// In the driver, which must support XDP.
    Driver,
}

/// One `[[gate.group]]`: internal hosts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Its name.
    pub name: String,
    /// Its addresses.
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

/// One `[[gate.time]]`: times of the week, by the host's local clock.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeConfig {
    /// Its name.
    pub name: String,
    /// The days on which it begins; every day when not given.
    #[serde(default)]
    pub days: Vec<Day>,
    /// When it begins, `HH:MM`.
    pub from: Hour,
    /// When it ends; on the next day where that is not later than `from`.
    pub to: Hour,
}

/// One `[[gate.limit]]`: a rate that flows share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitConfig {
    /// Its name.
    pub name: String,
    /// Bits a second of packets to internal hosts; not limited when not given.
    pub to_internal: Option<Rate>,
    /// Bits a second of packets from internal hosts; not limited when not given.
    pub from_internal: Option<Rate>,
    /// What has the rate for itself; without it all flows share one.
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

/// One `[[gate.rule]]`: the action on the flows that it matches. Keys that are not given match everything.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// Its name, in status and audit.
    pub name: String,
    /// Applications (`bittorrent`), or parts of them (`bittorrent/dht`); `unknown` for unclassified flows.
    #[serde(default)]
    pub application: Vec<String>,
    /// Kinds of applications.
    #[serde(default)]
    pub category: Vec<Category>,
    /// The least confidence of the label.
    pub certainty: Option<Certainty>,
    /// Groups of the internal host.
    #[serde(default)]
    pub group: Vec<String>,
    /// Who began the flow.
    pub direction: Option<Direction>,
    /// Times at which it holds.
    #[serde(default)]
    pub time: Vec<String>,
    /// The action on the flow.
    pub action: RuleAction,
    /// How a flow is denied.
    pub deny: Option<Deny>,
    /// The limit that the flow is put under.
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
    /// Its packets are answered: TCP with a reset, UDP with port unreachable.
    #[default]
    Reset,
}

/// One `[[gate.file]]`: the action on files that it matches. Keys that are not given match everything; of
/// each list one entry must match.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileConfig {
    /// Its name, in status and audit.
    pub name: String,
    /// Patterns of the file's name, `*` and `?`, upper and lower case alike.
    #[serde(default)]
    pub names: Vec<String>,
    /// Types by content, by their short names (`zip`, `exe`) or as media types (`video/*`).
    #[serde(default)]
    pub types: Vec<String>,
    /// Info-hashes of torrents or other hashes of the protocol, in hexadecimal digits.
    #[serde(default)]
    pub hashes: Vec<String>,
    /// Applications that carry it.
    #[serde(default)]
    pub application: Vec<String>,
    /// Groups of the internal host.
    #[serde(default)]
    pub group: Vec<String>,
    /// Times at which it holds.
    #[serde(default)]
    pub time: Vec<String>,
    /// The action on the file.
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
    /// It is scanned while it passes, its end waits for the verdict.
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
