//! The state of the service as values, and as text for people.
//!
//! `nigh status --json`, `/api/v1/status` and `nigh echo ... --json` print these values: their field
//! names are a public interface. Times are seconds since 1970 (UTC) or durations in the unit of the
//! field's name.

mod render;

use crate::config::Limit;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::IpAddr};

pub use render::{render_ledger, render_limits, render_list, render_status, render_top};

/// Everything about the running service.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// `node.name`.
    pub node: String,
    /// Why it is not healthy, a sentence each; a drained node can be. The contract adds them to its JSON.
    #[serde(default, skip_serializing)]
    pub problems: Vec<String>,
    /// The phase of the drain.
    pub drain: crate::drain::Phase,
    /// The interfaces on which requests arrive.
    pub interfaces: Vec<InterfaceStatus>,
    /// The counters, a row for each address.
    pub ledger: LedgerStatus,
    /// Run times of the program.
    pub latency: LatencyStatus,
    /// The limits in force.
    pub limit: Limit,
    /// The sources that are answered; an empty list means all.
    pub allow: Vec<IpNet>,
    /// The sources that are never answered.
    pub deny: Vec<IpNet>,
    /// The announcement, if there is one.
    pub anycast: Option<AnycastStatus>,
}

impl Status {
    /// The status before anything is in force.
    pub(crate) fn starting() -> Self {
        Self {
            node: String::new(),
            problems: vec!["starting".into()],
            drain: crate::drain::Phase::Serving,
            interfaces: Vec::new(),
            ledger: LedgerStatus::default(),
            latency: LatencyStatus::default(),
            limit: Limit::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            anycast: None,
        }
    }
}

/// An interface on which requests arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// Its index, while it exists.
    pub index: Option<u32>,
    /// Who answers on it.
    pub mode: InterfaceMode,
    /// Why the mode is not the fastest, or what is wrong, in one sentence.
    pub why: Option<String>,
    /// Whether it is up and has a carrier.
    pub up: bool,
}

/// Who answers on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InterfaceMode {
    /// The program, in the driver.
    Native,
    /// The program, in the kernel's receive path after the driver.
    Generic,
    /// The kernel itself.
    Kernel,
    /// Nobody: the interface does not exist, or the program was detached.
    Absent,
}

/// The ledger: received = answered + passed + the sum of drops, in each row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerStatus {
    /// Whether a program counts; without one there are no rows.
    pub counted: bool,
    /// A row for each service address.
    pub rows: Vec<LedgerRow>,
    /// Frames that were for no service address.
    pub other: Count,
}

/// The counters of one service address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// The service address.
    pub address: IpAddr,
    /// Its counters.
    #[serde(flatten)]
    pub count: Count,
}

/// Packets since the program was loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Packets that arrived.
    pub received: u64,
    /// Requests that the program answered.
    pub answered: u64,
    /// Packets passed to the kernel.
    pub passed: u64,
    /// Packets that were dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
}

impl Count {
    /// All drops together.
    pub fn drops(&self) -> u64 {
        self.dropped.values().sum()
    }
}

/// Run time of the program, from the samples that it took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyStatus {
    /// How many packets were measured.
    pub samples: u64,
    /// Median (p50) in nanoseconds: the upper edge of the histogram's bucket.
    pub p50_ns: u64,
    /// 90th percentile (p90), in nanoseconds.
    pub p90_ns: u64,
    /// 99th percentile (p99), in nanoseconds.
    pub p99_ns: u64,
    /// All samples, a bucket for each power of two, from the first that has one to the last.
    pub buckets: Vec<LatencyBucket>,
}

/// One bucket of the histogram of run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// Upper edge, in nanoseconds.
    pub le_ns: u64,
    /// Samples above the previous bucket's edge, up to this one.
    pub count: u64,
}

/// The announcement and what it depends on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnycastStatus {
    /// The prefixes that are announced while healthy.
    pub prefixes: Vec<IpNet>,
    /// The checks, each with its last result.
    pub checks: Vec<CheckStatus>,
    /// The upstreams that it is announced to.
    pub upstreams: Vec<UpstreamStatus>,
}

/// One health check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckStatus {
    /// Its name, such as `link:eth0` or `probe4:eth0`.
    pub name: String,
    /// Whether it counts as healthy, after rise and fall.
    pub healthy: bool,
    /// Whether the last result was good; absent before the first.
    pub last: Option<bool>,
    /// Detail of the last result, such as a round-trip time or a reason.
    pub detail: String,
    /// How many results in a row were like the last.
    pub streak: u32,
    /// When it last changed between healthy and failed.
    pub since: Option<f64>,
}

/// One upstream.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpstreamStatus {
    /// Its name.
    pub name: String,
    /// State of the session (RFC 4271 section 8.2.2).
    pub session: String,
    /// The BFD session with the neighbour; none where none is configured.
    #[serde(default)]
    pub bfd: Option<BfdStatus>,
    /// What should be advertised.
    pub desired: String,
    /// What is advertised.
    pub advertised: String,
    /// When the advertisement last changed.
    pub since: Option<f64>,
    /// The advertised prefixes.
    pub prefixes: Vec<IpNet>,
    /// Why `advertised` differs from `desired`, in one sentence.
    pub problem: Option<String>,
    /// Why nothing should be announced, in one sentence.
    pub held_by: Option<String>,
    /// The last withdrawal that a fault caused.
    pub withdrawal: Option<WithdrawalStatus>,
}

/// A BFD session (RFC 5880).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BfdStatus {
    /// AdminDown, Down, Init or Up.
    pub state: String,
    /// Why the state changed last.
    pub diagnostic: String,
    /// How long the neighbour may be silent, in seconds; none while it is not heard.
    pub detection_seconds: Option<f64>,
    /// How often the neighbour was lost.
    pub failures: u64,
}

/// How a fault led to a withdrawal, as times since 1970 in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WithdrawalStatus {
    /// What failed.
    pub fault: String,
    /// When the fault was seen.
    pub detected: f64,
    /// When the withdrawal was requested.
    pub requested: f64,
    /// When the UPDATE was written to the session.
    pub written: Option<f64>,
}

/// The busiest source prefixes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopStatus {
    /// The busiest first.
    pub sources: Vec<TopRow>,
}

/// One source prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopRow {
    /// The prefix, of the lengths of `echo.limit`.
    pub prefix: IpNet,
    /// Its requests, as far as they were counted.
    pub requests: u64,
}

/// Answer to a change of limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitStatus {
    /// The limits in force.
    pub limit: Limit,
}

/// Answer to a change of a list of sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListStatus {
    /// `allow` or `deny`.
    pub list: String,
    /// The prefixes in force.
    pub prefixes: Vec<IpNet>,
}
