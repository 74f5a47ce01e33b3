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

/// Answers ICMP echo requests for service addresses in XDP, before the kernel's network stack.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EchoConfig {
    /// Interfaces on which requests arrive.
    pub interfaces: Vec<String>,
    /// The service addresses, IPv4 and IPv6: echo requests to them are answered.
    pub addresses: Vec<IpAddr>,
    /// Where the XDP program runs.
    #[serde(default)]
    pub mode: Mode,
    /// Next hop of a reply.
    #[serde(default, rename = "return")]
    pub return_path: ReturnPath,
    /// Action on fragments of echo requests.
    #[serde(default)]
    pub fragments: Fragments,
    /// Drop requests with wrong checksums.
    #[serde(default = "yes")]
    pub verify: bool,
    /// Add the addresses to `lo` while the daemon runs, so that the kernel can answer the packets that
    /// are passed to it.
    #[serde(default = "yes")]
    pub assign: bool,
    /// Source prefixes that are answered; an empty list means all. The longest match in `allow` and
    /// `deny` decides.
    #[serde(default)]
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub allow: Vec<IpNet>,
    /// Source prefixes that are not answered.
    #[serde(default)]
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub deny: Vec<IpNet>,
    /// Rate limits: token buckets for each source prefix and for the node. Requests beyond them are dropped.
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
    /// `native` if the driver supports it, else `generic`, else `kernel`.
    #[default]
    Auto,
    /// In the driver; an interface without native XDP is an error.
    Native,
    /// In the kernel's generic XDP hook, after the driver; an interface without it is an error.
    Generic,
    /// No program: the kernel itself answers, without limits and counters.
    Kernel,
}

/// Where a reply is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReturnPath {
    /// The MAC address that the request came from.
    #[default]
    Mac,
    /// The next hop of the kernel's routing table.
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

/// Rate limits: token buckets for each source prefix and for the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limit {
    /// Requests a second for each source prefix; 0 switches the limit off.
    #[schemars(range(max = config::MAX_RATE))]
    pub rate: u64,
    /// Burst: requests that a source prefix may send at once.
    #[schemars(range(max = config::MAX_RATE))]
    pub burst: u64,
    /// Length of an IPv4 source prefix, in bits.
    #[schemars(range(min = 1, max = 32))]
    pub prefix4: u8,
    /// Length of an IPv6 source prefix, in bits.
    #[schemars(range(min = 1, max = 64))]
    pub prefix6: u8,
    /// Requests a second for the whole node; 0 is no limit.
    #[schemars(range(max = config::MAX_RATE))]
    pub node_rate: u64,
    /// Burst of the whole node, in requests.
    #[schemars(range(max = config::MAX_RATE))]
    pub node_burst: u64,
}

impl Default for Limit {
    fn default() -> Self {
        Self { rate: 100, burst: 200, prefix4: 24, prefix6: 56, node_rate: 0, node_burst: 0 }
    }
}

/// Announces prefixes by BGP while the node is healthy, and withdraws them when it is not.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnycastConfig {
    /// The prefixes that are announced while the node is healthy.
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub prefixes: Vec<IpNet>,
    /// A drain ends when no request has arrived for this long.
    #[serde(default = "second", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub quiet: Duration,
    /// Longest duration of a drain, even if requests still arrive; at most 10 minutes.
    #[serde(default = "half_minute", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub drain_timeout: Duration,
    /// Health checks, which decide whether the prefixes are announced.
    #[serde(default)]
    pub health: HealthConfig,
    /// Neighbours to which the prefixes are announced.
    #[serde(default, rename = "upstream")]
    pub upstreams: Vec<Upstream>,
}

fn second() -> Duration {
    Duration::from_secs(1)
}

fn half_minute() -> Duration {
    Duration::from_secs(30)
}

/// Health checks, which decide whether the prefixes are announced.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HealthConfig {
    /// Interval of the checks.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub interval: Duration,
    /// Successes in a row after which a failed check is healthy again.
    #[schemars(range(min = 1, max = 1000))]
    pub rise: u32,
    /// Failures in a row after which a check has failed; a link that is down and a program that is no
    /// longer attached count at once.
    #[schemars(range(min = 1, max = 1000))]
    pub fall: u32,
    /// Minimum time between two announcements, so that a flapping link does not become a flapping route.
    /// Withdrawals are never delayed.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub hold: Duration,
    /// The check that the attached program answers.
    pub probe: Probe,
    /// Largest share of the requests in an interval, 0 to 1, that `node_rate` may drop before the node is
    /// not healthy; 1 switches the check off.
    #[schemars(range(min = 0, max = 1))]
    pub max_drop_ratio: f64,
    /// Commands that exit with 0 while the node is healthy, each a list of program and arguments; no
    /// shell. Each is started once a second, or once an interval if that is longer, and killed when the
    /// next is due.
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
    /// The program answers an echo request from the interface's own address to itself, which the gateway
    /// forwards back like a BFD echo packet (RFC 5880 section 6.4, RFC 5881 section 4).
    #[default]
    Loop,
    /// A test run of the program, and a check that it is still attached; for gateways that do not forward
    /// back to the port that a packet came from.
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
