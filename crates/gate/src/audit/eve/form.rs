//! The forms of lines: names and order of fields as in Suricata's EVE.

use crate::{audit::record::AuditAction, chat};
use classify::{
    flow::Side,
    label::{Category, Certainty, Engine},
};
use serde::Serialize;
use std::{borrow::Cow, net::IpAddr};

/// One line.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    pub(super) timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flow_id: Option<u64>,
    pub(super) event_type: &'static str,
    #[serde(flatten)]
    pub(super) tuple: Option<Tuple>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tx_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) app_proto: Option<&'a str>,
    #[serde(flatten)]
    pub(super) body: Body<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nigh: Option<Nigh<'a>>,
}

/// From whom to whom.
#[derive(Serialize)]
pub(super) struct Tuple {
    pub(super) src_ip: IpAddr,
    pub(super) src_port: u16,
    pub(super) dest_ip: IpAddr,
    pub(super) dest_port: u16,
    pub(super) proto: &'static str,
}

/// The objects that are named as their event type, and what belongs beside them.
#[derive(Serialize, Default)]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flow: Option<FlowBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tcp: Option<TcpBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) alert: Option<Alert<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<VerdictBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) drop: Option<Drop>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) files: Option<[FileInfo<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fileinfo: Option<FileInfo<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) anomaly: Option<AnomalyBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chat: Option<Chat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scan: Option<Scan<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) engine: Option<EngineBody<'a>>,
}

/// A flow that ended.
#[derive(Serialize)]
pub(super) struct FlowBody {
    pub(super) pkts_toserver: u64,
    pub(super) pkts_toclient: u64,
    pub(super) bytes_toserver: u64,
    pub(super) bytes_toclient: u64,
    pub(super) start: String,
    pub(super) end: String,
    pub(super) age: u64,
    pub(super) state: &'static str,
    pub(super) reason: &'static str,
    pub(super) alerted: bool,
    pub(super) action: &'static str,
}

/// What was seen of TCP's control bits.
#[derive(Serialize)]
pub(super) struct TcpBody {
    pub(super) tcp_flags: String,
    pub(super) tcp_flags_ts: String,
    pub(super) tcp_flags_tc: String,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) syn: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) fin: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) rst: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) psh: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) ack: bool,
    pub(super) state: &'static str,
}

/// A rule that met.
#[derive(Serialize)]
pub(super) struct Alert<'a> {
    pub(super) action: &'static str,
    pub(super) gid: u32,
    pub(super) signature_id: u32,
    pub(super) rev: u32,
    pub(super) signature: Cow<'a, str>,
    pub(super) category: &'static str,
    pub(super) severity: u8,
}

/// What was done with the packet.
#[derive(Serialize)]
pub(super) struct VerdictBody {
    pub(super) action: &'static str,
    #[serde(rename = "reject-target", skip_serializing_if = "Option::is_none")]
    pub(super) reject_target: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reject: Option<[&'static str; 1]>,
}

/// A packet that was dropped without a rule.
#[derive(Serialize)]
pub(super) struct Drop {
    pub(super) reason: &'static str,
}

/// A file, as far as it was seen.
#[derive(Serialize)]
pub(super) struct FileInfo<'a> {
    pub(super) filename: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) magic: Option<&'a str>,
    pub(super) gaps: bool,
    pub(super) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    pub(super) stored: bool,
    pub(super) size: u64,
    pub(super) tx_id: u64,
}

/// What is wrong.
#[derive(Serialize)]
pub(super) struct AnomalyBody {
    pub(super) r#type: &'static str,
    pub(super) event: &'static str,
}

/// A chat event.
#[derive(Serialize)]
pub(super) struct Chat<'a> {
    pub(super) protocol: chat::Protocol,
    pub(super) event: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) from: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) to: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filename: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<String>,
}

/// The scanner's verdict.
#[derive(Serialize)]
pub(super) struct Scan<'a> {
    pub(super) scanner: &'static str,
    pub(super) result: &'static str,
    pub(super) filename: Cow<'a, str>,
    pub(super) size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Cow<'a, str>>,
}

/// A line about the log itself.
#[derive(Serialize)]
pub(super) struct EngineBody<'a> {
    pub(super) message: Cow<'a, str>,
}

/// What EVE has no field for.
#[derive(Serialize, Default)]
pub(super) struct Nigh<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) application: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) category: Option<Category>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) certainty: Option<Certainty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) engine: Option<Engine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) internal: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verdict: Option<AuditAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) peers: Vec<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost: Option<u64>,
}

fn is_false(value: &bool) -> bool {
    !value
}
