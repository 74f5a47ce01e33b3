//! The state of the running gate, for programs and for people.

mod render;

pub use render::{render, render_flows, render_rule, render_top, render_why};

use crate::{audit, control::By, policy::RuntimeRule};
use classify::{flow::Flow, label::Label};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of [`Status::attached_by`].
pub(crate) const TCX: &str = "tcx";
pub(crate) const CLSACT: &str = "clsact";

/// The value of `gate` in `nigh status --json` and `/api/v1/status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Why it is not healthy, a sentence each; the contract adds them to its JSON.
    #[serde(default, skip_serializing)]
    pub problems: Vec<String>,
    /// Whether the gate is switched off.
    pub bypass: bool,
    /// The interfaces towards the hosts that are governed.
    pub internal: Vec<String>,
    /// By what the programs are attached to them: `tcx`, or `clsact` where the kernel has no TCX.
    #[serde(default)]
    pub attached_by: String,
    /// Whether it took over what an earlier process had left in the kernel.
    pub taken_over: bool,
    /// The table of flows.
    pub flows: FlowCounts,
    /// Packets, by hook; in each received = the sum of the outcomes.
    pub packets: BTreeMap<String, Packets>,
    /// Packets copied out to be inspected.
    pub copies: Copies,
    /// Flows classified since the start, by application.
    pub classified: BTreeMap<String, u64>,
    /// Flows refused since the start, by application.
    pub refused: BTreeMap<String, u64>,
    /// Rates now, by application: bits a second.
    pub rates: BTreeMap<String, u64>,
    /// The rules in order, with the flows that they decided or counted.
    pub rules: Vec<RuleStatus>,
    /// Files, messages, and packets that wait for verdicts.
    pub files: FileCounts,
    /// The processes that read packets, by name.
    #[serde(default)]
    pub parsers: BTreeMap<String, ParserStatus>,
    /// Info-hashes of torrents that are refused for a file in them, the latest first.
    #[serde(default)]
    pub torrents: Vec<String>,
    /// Records of the audit log by outcome, if it is on.
    pub audit: Option<audit::Status>,
    /// The classes of limits that are in use.
    pub limits: Vec<LimitStatus>,
    /// The rules added at run time, beside the file's.
    pub runtime_rules: Vec<RuntimeRule>,
    /// Recent refusals and scans, the newest first.
    pub recent: Vec<Recent>,
}

/// A refusal or a scan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recent {
    /// How long ago it was.
    pub seconds_ago: f64,
    /// Whether a scan found something, or could not be made.
    pub threat: bool,
    /// Whether a flow or a file was refused.
    #[serde(default)]
    pub refused: bool,
    /// What it was, a sentence.
    pub text: String,
}

/// The table of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCounts {
    /// Decided ones that live.
    pub decided: u64,
    /// Ones that are still inspected.
    pub undecided: u64,
    /// Decided ones at most.
    pub limit: u64,
    /// Seen since the start.
    pub seen: u64,
    /// Decided ones that ended or were silent for too long since the start.
    pub ended: u64,
    /// The same of undecided ones. Seen = decided + undecided + ended + ended undecided + evicted.
    #[serde(default)]
    pub ended_undecided: u64,
    /// Removed while undecided because there were too many; their next packet makes a new entry.
    pub evicted: u64,
    /// Verdicts that did not fit into the full flow table.
    pub full: u64,
}

/// Outcomes of the packets at one hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// All that were seen.
    pub received: u64,
    /// Packets by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Counted separately: copies, and packets that the gate sent itself.
    pub extra: BTreeMap<String, u64>,
}

/// Packets copied out to be inspected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// Read.
    pub read: u64,
    /// Not copied, as the ring was full.
    pub missed: u64,
    /// Copied, and not inspected, as the checksum is wrong.
    #[serde(default)]
    pub bad_checksum: u64,
}

/// A rule and what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleStatus {
    /// Its name.
    pub name: String,
    /// `flow` or `file`.
    pub of: String,
    /// Flows or files that it decided or counted.
    pub count: u64,
}

/// What was done with files and messages since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCounts {
    /// Flows that are inspected beyond their first packets, now.
    pub managed: u64,
    /// Files whose names or content were seen.
    pub seen: u64,
    /// Files that a rule denied.
    pub denied: u64,
    /// Files that were scanned and are clean.
    pub clean: u64,
    /// Finds.
    pub found: u64,
    /// Files that could not be scanned.
    pub unscanned: u64,
    /// Connections of torrents that began before the file names were known.
    #[serde(default)]
    pub without_names: u64,
    /// Messages of chats.
    pub messages: u64,
    /// Bytes of packets that wait for a verdict, now.
    pub waiting_bytes: u64,
    /// Whether clamd tells that an archive goes beyond its limits; none without a scanner, and until it was
    /// asked.
    #[serde(default)]
    pub limits_alert: Option<bool>,
    /// Bytes of content that wait for the scanner, now.
    pub scanning_bytes: u64,
    /// Packets that waited and went on.
    pub released: u64,
    /// Packets that waited and never went on.
    pub dropped: u64,
}

/// A process that reads packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParserStatus {
    /// Its number; none while it is not there.
    pub pid: Option<u32>,
    /// Whether Landlock keeps it from files, beside seccomp.
    pub landlock: bool,
    /// How often it ended by itself, or could not be started.
    pub died: u64,
    /// How often it was killed as it did not answer in time.
    pub hung: u64,
    /// How often it was killed as its answer made no sense.
    pub refused: u64,
    /// Flows that it had when it failed, and that came while it was not there.
    pub lost_flows: u64,
}

/// A class of a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitStatus {
    /// The limit's name.
    pub limit: String,
    /// Who has the rate for itself; empty where all share it.
    pub share: String,
    /// Flows under it.
    pub flows: u64,
    /// Bytes that went through it to internal hosts.
    pub bytes_to_internal: u64,
    /// Bytes that went through it from internal hosts.
    pub bytes_from_internal: u64,
    /// Packets that found its queue full.
    pub dropped: u64,
}

/// A flow as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    /// Its two ends.
    pub flow: Flow,
    /// What it is, as `application/detail`; none while or if nobody knows.
    pub application: Option<String>,
    /// Its verdict: `pass`, `drop`, `reset`, `limit`, `undecided`.
    pub verdict: String,
    /// The rule that decided it.
    pub rule: Option<String>,
    /// Packets from and to the end that began it.
    pub packets: [u64; 2],
    /// Bytes of them.
    pub bytes: [u64; 2],
    /// Since its first packet.
    pub age_seconds: f64,
    /// Since its last one.
    pub idle_seconds: f64,
}

/// For `nigh gate top`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopStatus {
    /// Who is ranked.
    pub by: By,
    /// The rows, the busiest first.
    pub rows: Vec<TopRow>,
}

/// One that is ranked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopRow {
    /// The application or host.
    pub name: String,
    /// Bits a second now.
    pub bits_per_second: u64,
    /// Flows that live.
    pub flows: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// For `nigh gate why`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// The flow and its counters.
    #[serde(flatten)]
    pub row: FlowRow,
    /// What it was found to be.
    pub label: Option<Label>,
    /// Rules that counted it.
    pub counted: Vec<String>,
    /// Packets of it that were inspected.
    pub inspected: u64,
    /// The limit that it is under, with who shares it.
    pub limit: Option<String>,
    /// The file for which it is refused.
    #[serde(default)]
    pub file: Option<String>,
}
