//! The records of the audit log.

use crate::chat::Message;
use classify::{
    flow::{Flow, Side},
    label::Label,
};
use serde::Serialize;
use std::{fmt, net::IpAddr, sync::Arc, time::SystemTime};

/// One thing for the log.
#[derive(Clone, Debug)]
pub enum Record {
    /// A flow ended.
    Flow(FlowEnd),
    /// A transfer of a file ended, or was refused.
    File(FileSeen),
    /// A chat event.
    Chat(ChatSeen),
    /// A flow or a file was refused.
    Refusal(Refusal),
    /// A file was scanned, or could not be.
    Scan(Scanned),
    /// A flow's packets contradict each other, or some were missed.
    Anomaly(Anomaly),
}

impl Record {
    /// What it is about.
    pub const fn subject(&self) -> &Subject {
        match self {
            Self::Flow(it) => &it.subject,
            Self::File(it) => &it.subject,
            Self::Chat(it) => &it.subject,
            Self::Refusal(it) => &it.subject,
            Self::Scan(it) => &it.subject,
            Self::Anomaly(it) => &it.subject,
        }
    }

    /// When it happened.
    pub const fn at(&self) -> SystemTime {
        match self {
            Self::Flow(it) => it.at,
            Self::File(it) => it.at,
            Self::Chat(it) => it.at,
            Self::Refusal(it) => it.at,
            Self::Scan(it) => it.at,
            Self::Anomaly(it) => it.at,
        }
    }
}

/// The flow that a record is about. Flow and start together name it in the log.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its two sockets.
    pub flow: Flow,
    /// When its first packet was seen.
    pub started: SystemTime,
    /// Which end is internal.
    pub internal: Side,
    /// Its label.
    pub label: Option<Label>,
}

/// The action on a flow or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionTaken {
    /// The act.
    pub action: AuditAction,
    /// The rule that decided it, if one did.
    pub rule: Option<Arc<str>>,
}

/// The actions on a flow or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditAction {
    /// It passes.
    Allow,
    /// It passes and is counted.
    Count,
    /// It passes at no more than a rate.
    Limit,
    /// Its packets are dropped.
    Drop,
    /// Both ends get a reset.
    Reset,
}

impl AuditAction {
    /// Whether it lets nothing pass.
    pub const fn refuses(self) -> bool {
        matches!(self, Self::Drop | Self::Reset)
    }

    /// Its name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Count => "count",
            Self::Limit => "limit",
            Self::Drop => "drop",
            Self::Reset => "reset",
        }
    }
}

/// A flow that ended.
#[derive(Clone, Debug)]
pub struct FlowEnd {
    /// The flow.
    pub subject: Subject,
    /// When it was found to be over.
    pub at: SystemTime,
    /// When its last packet was seen.
    pub last: SystemTime,
    /// What the client sent.
    pub to_server: Traffic,
    /// What the server sent.
    pub to_client: Traffic,
    /// Why it ended.
    pub end: End,
    /// The action on it.
    pub verdict: ActionTaken,
}

/// What one end of a flow sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets, as the gate counted them: those that the kernel had joined count as one.
    pub packets: u64,
    /// Bytes from the IP header on.
    pub bytes: u64,
    /// All of TCP's control bits that were seen; 0 for UDP.
    pub flags: u8,
}

/// Why a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both ends closed it, or one reset it.
    Closed,
    /// Nothing was seen of it for too long.
    Timeout,
    /// It was taken out of the table: by an operator, or for others.
    Forced,
}

/// A file that was transferred, or was to be.
#[derive(Clone, Debug)]
pub struct FileSeen {
    /// The flow.
    pub subject: Subject,
    /// When the transfer ended.
    pub at: SystemTime,
    /// Its number within the flow.
    pub transfer: u64,
    /// The end that sent the file.
    pub from: Side,
    /// The name, as the protocol gave it.
    pub name: String,
    /// The size by the protocol.
    pub size: Option<u64>,
    /// The bytes that were seen.
    pub seen: u64,
    /// What it is by content: `pdf`, `executable`.
    pub kind: Option<String>,
    /// SHA-256 of its content, where all of it was read.
    pub sha256: Option<[u8; 32]>,
    /// What names it in its protocol, as that writes it: an info-hash, an eD2k hash, a TTH.
    pub hash: Option<String>,
    /// Whether it was transferred to its end.
    pub complete: bool,
    /// Whether some of it was not seen.
    pub gaps: bool,
    /// The other hosts that parts of it came from.
    pub peers: Vec<IpAddr>,
    /// The action on it.
    pub verdict: ActionTaken,
}

/// A message of a chat.
#[derive(Clone, Debug)]
pub struct ChatSeen {
    /// The flow.
    pub subject: Subject,
    /// Its time.
    pub at: SystemTime,
    /// The message, and its sender.
    pub message: Message,
}

/// Something was refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The flow.
    pub subject: Subject,
    /// When.
    pub at: SystemTime,
    /// The action, and the rule that decided it.
    pub verdict: ActionTaken,
    /// Why.
    pub cause: Cause,
    /// How many attempts this stands for.
    pub attempts: u64,
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A rule refuses the flow.
    Rule,
    /// A rule refuses a file of this name in the flow.
    File(String),
    /// A file of this name should have been scanned and could not be.
    Unscanned(String),
    /// The same was refused not long ago.
    Cache,
    /// An operator's order.
    Operator,
}

/// A file was scanned.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// The flow.
    pub subject: Subject,
    /// When the answer came.
    pub at: SystemTime,
    /// The number of the transfer within the flow.
    pub transfer: u64,
    /// The end that sent the file.
    pub from: Side,
    /// The file's name.
    pub name: String,
    /// The bytes that were scanned.
    pub size: u64,
    /// The scanner's verdict.
    pub finding: Finding,
    /// What was done with the file.
    pub verdict: ActionTaken,
}

/// A scanner's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It found nothing.
    Clean,
    /// It found this.
    Found(String),
    /// It could not be asked or did not answer, for this reason.
    Failed(String),
}

/// In words, for the daemon's log.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("clean"),
            Self::Found(what) => write!(f, "found {what}"),
            Self::Failed(why) => write!(f, "not scanned ({why})"),
        }
    }
}

/// Something about a flow's packets is not as it should be.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// The flow.
    pub subject: Subject,
    /// When.
    pub at: SystemTime,
    /// The end that sent it.
    pub from: Side,
    /// What it is.
    pub kind: AnomalyKind,
}

/// What can be wrong with a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnomalyKind {
    /// Bytes were sent twice and are not the same.
    Overlap,
    /// Bytes of the stream were never seen.
    Gap,
    /// More is out of order than is kept.
    Reassembly,
}
