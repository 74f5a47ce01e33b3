//! Records as lines of JSON in the form of Suricata's EVE (Suricata 7, "Eve JSON Format").
//!
//! What EVE has a field for is there: `flow`, `fileinfo`, `alert` with its `verdict`, `drop` and
//! `anomaly`. All else is in the object `nigh`: the application's details, how sure
//! it is and why, the rule. Chat and scans without a find are event types of our own, `chat` and
//! `scan`, which readers of EVE pass over. Lines about the log itself are of type `engine`.

mod form;
mod line;
#[cfg(test)]
mod tests;

use self::{
    form::{
        Alert, AnomalyBody, Body, Chat, Drop, EngineBody, FileInfo, FlowBody, Line, Nigh, Scan,
        TcpBody, Tuple, VerdictBody,
    },
    line::{emit, timestamp},
};
use super::{
    mapping::Mask,
    record::{
        ActionTaken, Anomaly, AnomalyKind, AuditAction, Cause, ChatSeen, End, FileSeen, Finding,
        FlowEnd, Record, Refusal, Scanned, Subject, Traffic,
    },
    secret::without_login,
};
use crate::chat::Event;
use ::config::hex;
use classify::{
    flow::{Side, Transport},
    packet::Tcp,
};
use siphasher::sip::SipHasher13;
use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    io,
    time::{SystemTime, UNIX_EPOCH},
};

/// Numbers of flows stay exact where JSON's numbers are floating point.
const FLOW_ID_BITS: u32 = 53;
/// Suricata's names of classes of alerts, of which the third has its lowest priority and the others its
/// highest.
const POLICY: &str = "Potential Corporate Privacy Violation";
const MALWARE: &str = "A Network Trojan was detected";
const ACTIVITY: &str = "Misc activity";
/// The signature of files that are refused as nobody could scan them.
const UNSCANNED: &str = "file not scanned";
/// The generator of alerts that are not of Suricata's own rules, whose generator is 1.
const GENERATOR: u32 = 4004;
/// TCP's control bit for data to be handed on at once.
const PSH: u8 = 8;

/// Turns records into lines.
#[derive(Debug)]
pub(super) struct Eve {
    mask: Mask,
    /// A key for each run, so that numbers of flows do not reveal addresses.
    flow_key: (u64, u64),
    chat_text: bool,
}

impl Eve {
    pub(super) const fn new(mask: Mask, flow_key: (u64, u64), chat_text: bool) -> Self {
        Self { mask, flow_key, chat_text }
    }

    /// Appends the line of a record.
    pub(super) fn write(&self, record: &Record, out: &mut Vec<u8>) -> io::Result<()> {
        let line = match record {
            Record::Flow(it) => self.flow(it),
            Record::File(it) => self.file(it),
            Record::Chat(it) => self.chat(it),
            Record::Refusal(it) => self.refusal(it),
            Record::Scan(it) => self.scan(it),
            Record::Anomaly(it) => self.anomaly(it),
        };
        emit(&line, out)
    }

    /// Appends a line about the log itself: so many records are missing.
    pub(super) fn write_loss(
        at: SystemTime,
        lost: u64,
        reason: &str,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let message = format!("{lost} records are missing here: {reason}").into();
        let line = Line {
            timestamp: timestamp(at),
            flow_id: None,
            event_type: "engine",
            tuple: None,
            tx_id: None,
            app_proto: None,
            body: Body { engine: Some(EngineBody { message }), ..Body::default() },
            nigh: Some(Nigh { lost: Some(lost), ..Nigh::default() }),
        };
        emit(&line, out)
    }

    /// A line on a flow; `from` is who sent what it is about.
    fn line<'a>(
        &'a self,
        event_type: &'static str,
        subject: &'a Subject,
        at: SystemTime,
        from: Side,
        body: Body<'a>,
    ) -> Line<'a> {
        let flow = &subject.flow;
        let [source, destination] =
            [from, from.other()].map(|side| self.mask.socket(flow.socket(side)));
        let proto = match flow.transport {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        };
        let mut nigh = Nigh { internal: Some(subject.internal), ..Nigh::default() };
        if let Some(label) = &subject.label {
            nigh.application = Some(&label.application);
            nigh.detail = label.detail.as_deref();
            nigh.category = Some(label.category);
            nigh.certainty = Some(label.certainty);
            nigh.engine = Some(label.engine);
            nigh.reason = Some(self.mask.text(&label.reason));
        }
        Line {
            timestamp: timestamp(at),
            flow_id: Some(self.flow_id(subject)),
            event_type,
            tuple: Some(Tuple {
                src_ip: source.ip(),
                src_port: source.port(),
                dest_ip: destination.ip(),
                dest_port: destination.port(),
                proto,
            }),
            tx_id: None,
            // Suricata's word for a flow whose protocol was looked for in vain.
            app_proto: Some(subject.label.as_ref().map_or("failed", |it| &it.application)),
            body,
            nigh: Some(nigh),
        }
    }

    /// The name of a file.
    fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match without_login(name) {
            Cow::Borrowed(name) => self.mask.text(name),
            Cow::Owned(name) => Cow::Owned(self.mask.text(&name).into_owned()),
        }
    }

    /// The number of a flow, the same in all outputs of a run.
    pub(super) fn flow_id(&self, subject: &Subject) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.flow_key.0, self.flow_key.1);
        subject.flow.hash(&mut hasher);
        nanoseconds(subject.started).hash(&mut hasher);
        hasher.finish() >> (u64::BITS - FLOW_ID_BITS)
    }

    fn flow<'a>(&'a self, it: &'a FlowEnd) -> Line<'a> {
        let (to_server, to_client) = (it.to_server, it.to_client);
        let age = it.last.duration_since(it.subject.started).unwrap_or_default();
        // The gate's own resets are not among what it saw.
        let reset = it.verdict.action == AuditAction::Reset;
        let state = if reset { "closed" } else { state(&it.subject, to_server, to_client) };
        let flow = FlowBody {
            pkts_toserver: to_server.packets,
            pkts_toclient: to_client.packets,
            bytes_toserver: to_server.bytes,
            bytes_toclient: to_client.bytes,
            start: timestamp(it.subject.started),
            end: timestamp(it.last),
            age: age.as_secs(),
            state,
            reason: match it.end {
                // Suricata, too, takes out a closed flow after its time.
                End::Closed | End::Timeout => "timeout",
                End::Forced => "forced",
            },
            alerted: it.verdict.action.refuses(),
            action: if it.verdict.action.refuses() { "drop" } else { "pass" },
        };
        let tcp = (it.subject.flow.transport == Transport::Tcp).then(|| {
            let flags = to_server.flags | to_client.flags;
            let has = |flag: u8| flags & flag != 0;
            TcpBody {
                tcp_flags: format!("{flags:02x}"),
                tcp_flags_ts: format!("{:02x}", to_server.flags),
                tcp_flags_tc: format!("{:02x}", to_client.flags),
                syn: has(Tcp::SYN),
                fin: has(Tcp::FIN),
                rst: has(Tcp::RST),
                psh: has(PSH),
                ack: has(Tcp::ACK),
                state: if reset { state } else { tcp_state(to_server, to_client) },
            }
        });
        let body = Body { flow: Some(flow), tcp, ..Body::default() };
        let line = self.line("flow", &it.subject, it.at, Side::Client, body);
        judged(line, &it.verdict)
    }

    fn file<'a>(&'a self, it: &'a FileSeen) -> Line<'a> {
        let info = FileInfo {
            filename: self.name(&it.name),
            magic: it.kind.as_deref(),
            gaps: it.gaps,
            state: if it.complete { "CLOSED" } else { "TRUNCATED" },
            sha256: it.sha256.as_ref().map(|hash| hex::encode(hash)),
            stored: false,
            size: it.seen,
            tx_id: it.transfer,
        };
        let body = Body { fileinfo: Some(info), ..Body::default() };
        let line = self.line("fileinfo", &it.subject, it.at, it.from, body);
        let mut line = judged(line, &it.verdict);
        line.tx_id = Some(it.transfer);
        if let Some(nigh) = &mut line.nigh {
            nigh.size = it.size;
            nigh.hash = it.hash.as_deref();
            nigh.peers = it.peers.iter().map(|&peer| self.mask.address(peer)).collect();
        }
        line
    }

    fn chat<'a>(&'a self, it: &'a ChatSeen) -> Line<'a> {
        let message = &it.message;
        let mut chat = Chat {
            protocol: message.protocol,
            event: message.event.name(),
            from: self.mask.text(&message.from),
            to: self.mask.text(&message.to),
            text: None,
            filename: None,
            size: None,
            address: None,
        };
        match &message.event {
            Event::Text(text) | Event::Notice(text) | Event::Action(text) | Event::Topic(text) => {
                chat.text = self.chat_text.then(|| self.mask.text(text));
            }
            Event::Leave(reason) => {
                chat.text = (self.chat_text && !reason.is_empty()).then(|| self.mask.text(reason));
            }
            Event::Rename(name) => chat.to = self.mask.text(name),
            Event::Offer { name, size, address } => {
                chat.filename = Some(self.name(name));
                chat.size = *size;
                chat.address = address.map(|it| self.mask.socket(it).to_string());
            }
            Event::Await { name, size, address } => {
                chat.filename = Some(self.name(name));
                chat.size = *size;
                chat.address = Some(self.mask.socket(*address).to_string());
            }
            Event::Direct(address) => {
                chat.address = Some(self.mask.socket(*address).to_string());
            }
            Event::Join | Event::Encrypted => {}
        }
        let body = Body { chat: Some(chat), ..Body::default() };
        self.line("chat", &it.subject, it.at, message.side, body)
    }

    fn refusal<'a>(&'a self, it: &'a Refusal) -> Line<'a> {
        // An attempt about which no rule was asked is a drop, all else an alert that blocked.
        let (event_type, body) = match &it.cause {
            Cause::Cache => ("drop", dropped("flow drop")),
            Cause::Rule | Cause::Operator => ("alert", refused(it, None)),
            Cause::File(name) | Cause::Unscanned(name) => {
                let info = FileInfo {
                    filename: self.name(name),
                    magic: None,
                    gaps: false,
                    state: "TRUNCATED",
                    sha256: None,
                    stored: false,
                    size: 0,
                    tx_id: 0,
                };
                ("alert", refused(it, Some(info)))
            }
        };
        let line = self.line(event_type, &it.subject, it.at, Side::Client, body);
        let mut line = judged(line, &it.verdict);
        if let Some(nigh) = &mut line.nigh {
            nigh.attempts = Some(it.attempts);
            nigh.cause = Some(match &it.cause {
                Cause::Rule => "rule",
                Cause::File(_) => "file",
                Cause::Unscanned(_) => "unscanned",
                Cause::Cache => "cache",
                Cause::Operator => "operator",
            });
        }
        line
    }

    fn scan<'a>(&'a self, it: &'a Scanned) -> Line<'a> {
        let mut scan = Scan {
            scanner: "clamav",
            result: "clean",
            filename: self.name(&it.name),
            size: it.size,
            reason: None,
        };
        let mut event_type = "scan";
        let mut body = Body::default();
        match &it.finding {
            Finding::Clean => {}
            Finding::Failed(reason) => {
                scan.result = "failed";
                scan.reason = Some(self.mask.text(reason));
            }
            Finding::Found(name) => {
                scan.result = "found";
                scan.reason = Some(self.mask.text(name));
                event_type = "alert";
                let refuses = it.verdict.action.refuses();
                body.alert = Some(alert(name, MALWARE, refuses));
                body.verdict = Some(verdict(&it.subject, it.verdict.action));
                body.files = Some([FileInfo {
                    filename: self.name(&it.name),
                    magic: None,
                    gaps: false,
                    state: "CLOSED",
                    sha256: None,
                    stored: false,
                    size: it.size,
                    tx_id: it.transfer,
                }]);
            }
        }
        body.scan = Some(scan);
        let line = self.line(event_type, &it.subject, it.at, it.from, body);
        let mut line = judged(line, &it.verdict);
        line.tx_id = Some(it.transfer);
        line
    }

    fn anomaly<'a>(&'a self, it: &'a Anomaly) -> Line<'a> {
        let event = match it.kind {
            AnomalyKind::Overlap => "stream.reassembly_overlap_different_data",
            AnomalyKind::Gap => "stream.reassembly_seq_gap",
            AnomalyKind::Reassembly => "stream.reassembly_depth_reached",
        };
        let anomaly = AnomalyBody { r#type: "stream", event };
        let body = Body { anomaly: Some(anomaly), ..Body::default() };
        self.line("anomaly", &it.subject, it.at, it.from, body)
    }
}

/// A line with the action and the rule that decided it.
fn judged<'a>(mut line: Line<'a>, verdict: &'a ActionTaken) -> Line<'a> {
    if let Some(nigh) = &mut line.nigh {
        nigh.verdict = Some(verdict.action);
        nigh.rule = verdict.rule.as_deref();
    }
    line
}

/// A drop without a rule, for one of Suricata's reasons.
fn dropped<'a>(reason: &'static str) -> Body<'a> {
    Body { drop: Some(Drop { reason }), ..Body::default() }
}

/// A refusal by a rule.
fn refused<'a>(it: &'a Refusal, file: Option<FileInfo<'a>>) -> Body<'a> {
    let rule = it.verdict.rule.as_deref().unwrap_or("operator");
    let (signature, category) = match it.cause {
        Cause::Unscanned(_) => (UNSCANNED, ACTIVITY),
        _ => (rule, POLICY),
    };
    Body {
        alert: Some(alert(signature, category, it.verdict.action.refuses())),
        verdict: Some(verdict(&it.subject, it.verdict.action)),
        files: file.map(|file| [file]),
        ..Body::default()
    }
}

fn alert<'a>(signature: &'a str, category: &'static str, blocked: bool) -> Alert<'a> {
    Alert {
        action: if blocked { "blocked" } else { "allowed" },
        gid: GENERATOR,
        signature_id: number(signature),
        rev: 1,
        signature: Cow::Borrowed(signature),
        category,
        severity: if category == ACTIVITY { 3 } else { 1 },
    }
}

/// The number of a rule: FNV-1a over its name, so that it stays when other rules come and go.
fn number(name: &str) -> u32 {
    name.bytes()
        .fold(0x811c_9dc5, |sum: u32, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn verdict(subject: &Subject, action: AuditAction) -> VerdictBody {
    if !action.refuses() {
        return VerdictBody { action: "alert", reject_target: None, reject: None };
    }
    // Both ends of a connection hear of it, of a packet of UDP its sender does.
    let (target, how) = match subject.flow.transport {
        Transport::Tcp => ("both", "tcp-reset"),
        Transport::Udp => ("to_client", "icmp-prohib"),
    };
    let notifies = action == AuditAction::Reset;
    VerdictBody {
        action: "drop",
        reject_target: notifies.then_some(target),
        reject: notifies.then_some([how]),
    }
}

/// How far a flow came.
fn state(subject: &Subject, to_server: Traffic, to_client: Traffic) -> &'static str {
    let answered = to_server.packets > 0 && to_client.packets > 0;
    match subject.flow.transport {
        Transport::Tcp => match tcp_state(to_server, to_client) {
            "closed" => "closed",
            "none" | "syn_sent" | "syn_recv" => "new",
            _ => "established",
        },
        Transport::Udp if answered => "established",
        Transport::Udp => "new",
    }
}

/// How far a connection came, as far as the control bits say.
fn tcp_state(to_server: Traffic, to_client: Traffic) -> &'static str {
    let (there, back) = (to_server.flags, to_client.flags);
    let both = |flag: u8| there & back & flag != 0;
    let any = |flag: u8| (there | back) & flag != 0;
    if any(Tcp::RST) || both(Tcp::FIN) {
        "closed"
    } else if any(Tcp::FIN) {
        "fin_wait1"
    } else if both(Tcp::ACK) {
        "established"
    } else if both(Tcp::SYN) || back & Tcp::ACK != 0 {
        "syn_recv"
    } else if any(Tcp::SYN) {
        "syn_sent"
    } else if any(Tcp::ACK) {
        "established"
    } else {
        "none"
    }
}

fn nanoseconds(at: SystemTime) -> u128 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}
