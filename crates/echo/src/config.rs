//! The sections `[echo]` and `[anycast]` of the configuration.
//!
//! Parsing (serde) refuses unknown keys and values of the wrong type. What parses can still be
//! wrong: [`Config::problems`] reports every such value with its dotted key and what to do, so that
//! `nigh check` shows them all at once. The rules are in `config/check.rs`; those of an upstream
//! are in [`bgp::config`].

mod check;
#[cfg(test)]
mod tests;

use bgp::config::Upstream;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, path::PathBuf, time::Duration};

/// Most addresses that one program answers for, those of probes included.
pub const MAX_ADDRESSES: usize = datapath::echo::MAX_ADDRESSES;

/// The section `[echo]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoConfig {
    /// Names of the interfaces on which requests arrive.
    pub interfaces: Vec<String>,
    /// The service addresses, which are answered for, of both families.
    pub addresses: Vec<IpAddr>,
    /// How the program is attached.
    #[serde(default)]
    pub mode: Mode,
    /// Where a reply is sent.
    #[serde(default, rename = "return")]
    pub return_path: ReturnPath,
    /// How fragments of echo requests are treated.
    #[serde(default)]
    pub fragments: Fragments,
    /// Whether a request with a wrong checksum is dropped.
    #[serde(default = "yes")]
    pub verify: bool,
    /// Whether the addresses are put on `lo` while running, so that the kernel can answer packets
    /// passed to it.
    #[serde(default = "yes")]
    pub assign: bool,
    /// Sources that are answered; an empty list means all.
    #[serde(default)]
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub allow: Vec<IpNet>,
    /// Sources that are never answered.
    #[serde(default)]
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub deny: Vec<IpNet>,
    /// How many requests are answered.
    #[serde(default)]
    pub limit: Limit,
}

fn yes() -> bool {
    true
}

/// How the program is attached to an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Native if the driver supports it, else generic, else the kernel itself answers.
    #[default]
    Auto,
    /// In the driver; an interface without native XDP is an error.
    Native,
    /// In the kernel's receive path after the driver; an interface without it is an error.
    Generic,
    /// Nothing is attached and the kernel itself answers, without limits and counters.
    Kernel,
}

/// Where a reply is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReturnPath {
    /// To the link-layer address that the request came from.
    #[default]
    Mac,
    /// By the kernel's routing table.
    Fib,
}

/// How fragments of echo requests are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fragments {
    /// They are passed to the kernel, which reassembles large pings and answers them.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
}

/// The section `[echo.limit]`: token buckets for each source prefix and for the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limit {
    /// Requests a second for each source prefix; 0 switches the limit off.
    #[schemars(range(max = config::MAX_RATE))]
    pub rate: u64,
    /// Requests that a source prefix may send at once.
    #[schemars(range(max = config::MAX_RATE))]
    pub burst: u64,
    /// Length of an IPv4 source prefix, in bits.
    #[schemars(range(min = 1, max = 32))]
    pub prefix4: u8,
    /// Length of an IPv6 source prefix, in bits.
    #[schemars(range(min = 1, max = 64))]
    pub prefix6: u8,
    /// Ceiling for the node, requests a second; 0 is none.
    #[schemars(range(max = config::MAX_RATE))]
    pub node_rate: u64,
    /// Requests that the node answers at once under its ceiling.
    #[schemars(range(max = config::MAX_RATE))]
    pub node_burst: u64,
}

impl Default for Limit {
    fn default() -> Self {
        Self { rate: 100, burst: 200, prefix4: 24, prefix6: 56, node_rate: 0, node_burst: 0 }
    }
}

/// The section `[anycast]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnycastConfig {
    /// The prefixes that are announced while the node is healthy.
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub prefixes: Vec<IpNet>,
    /// A drain ends when nothing has arrived for this long.
    #[serde(default = "second", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub quiet: Duration,
    /// A drain ends after this long, whatever still arrives; at most 10 minutes.
    #[serde(default = "half_minute", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub drain_timeout: Duration,
    /// When the node counts as healthy.
    #[serde(default)]
    pub health: HealthConfig,
    /// To whom the prefixes are announced.
    #[serde(default, rename = "upstream")]
    pub upstreams: Vec<Upstream>,
}

fn second() -> Duration {
    Duration::from_secs(1)
}

fn half_minute() -> Duration {
    Duration::from_secs(30)
}

/// The section `[anycast.health]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HealthConfig {
    /// Time between two rounds of checks.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub interval: Duration,
    /// So many successes in a row make a failed check healthy.
    #[schemars(range(min = 1, max = 1000))]
    pub rise: u32,
    /// So many failures in a row make a healthy check failed; a link that is down and a program
    /// that is no longer attached count at once.
    #[schemars(range(min = 1, max = 1000))]
    pub fall: u32,
    /// Least time between two changes of announcement upwards.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub hold: Duration,
    /// How to verify that the program answers.
    pub probe: Probe,
    /// Largest share of the requests in an interval, above 0, that may be dropped by the node's own
    /// limit; 1 is off.
    #[schemars(range(min = 0, max = 1))]
    pub max_drop_ratio: f64,
    /// Commands (program and arguments, no shell) that exit with 0 while healthy. Each is started
    /// once a second, or once an interval if that is longer, and killed when the next is due.
    pub commands: Vec<Vec<String>>,
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(50),
            rise: 2,
            fall: 2,
            hold: Duration::from_secs(1),
            probe: Probe::Loop,
            max_drop_ratio: 0.5,
            commands: Vec::new(),
        }
    }
}

/// How to verify that the attached program answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// An echo request to the interface's own link address travels to the gateway, which forwards
    /// it back as it does a BFD echo packet (RFC 5880 section 6.4, RFC 5881 section 4).
    #[default]
    Loop,
    /// A test run of the attached program, and a check that it is still attached.
    Program,
}

/// Both sections, and the values of `[node]` that they need.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `node.name`, shown in the status.
    pub node: String,
    /// `node.state`, the directory that records what must be cleaned up after a crash.
    pub state: PathBuf,
    /// The section `[echo]`.
    pub echo: EchoConfig,
    /// The section `[anycast]`, if there is one.
    pub anycast: Option<AnycastConfig>,
}
