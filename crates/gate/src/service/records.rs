//! The records of flows, files and messages.

use super::core::{News, Phase};
use crate::{
    audit::{
        ActionTaken, Anomaly, AnomalyKind, AuditAction, Cause, ChatSeen, End, FileSeen, Finding,
        FlowEnd, Record, Refusal, Scanned, Sender, Subject, Traffic,
    },
    chat,
    config::Deny,
    event::FileNamed,
    policy::Verdict,
    status::Recent,
    stream::Losses,
};
use classify::{
    flow::{Flow, Side},
    label::Label,
};
use permits::Lines;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// So many refusals and scans are kept for who watches.
const RECENT: usize = 50;

/// Recent events with their times.
type RecentEvents = Arc<Mutex<VecDeque<(Instant, Recent)>>>;

/// A file that is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    /// Bytes that passed.
    pub(super) bytes: u64,
    /// Whether it came to its end, and all of it was seen.
    pub(super) complete: bool,
    /// Whether some of it was not seen.
    pub(super) missed: bool,
    pub(super) sha256: Option<[u8; 32]>,
}

/// The gate's side of the audit log; without an audit log it keeps recent events only.
#[derive(Clone, Debug)]
pub(super) struct Log {
    sender: Option<Sender>,
    recent_events: RecentEvents,
    warned: Arc<Mutex<Lines>>,
    /// What time it was at zero of the worker's clock.
    zero: SystemTime,
}

/// A flow and what it is, for people.
fn described(subject: &Subject) -> String {
    match &subject.label {
        Some(label) => format!("{} ({})", subject.flow, label.application),
        None => subject.flow.to_string(),
    }
}

pub(super) fn verdict(action: AuditAction, rule: Option<&str>) -> ActionTaken {
    ActionTaken { action, rule: rule.filter(|rule| !rule.is_empty()).map(Into::into) }
}

impl Log {
    /// A log by a clock that shows `now_ns`.
    pub(super) fn new(sender: Option<Sender>, now_ns: u64) -> Self {
        let zero = SystemTime::now() - Duration::from_nanos(now_ns);
        Self { sender, recent_events: RecentEvents::default(), warned: Arc::default(), zero }
    }

    /// Warns of something that strangers may cause at will: in few lines, and with the addresses that the
    /// audit log would have.
    pub(super) fn warn(&self, text: String) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = warned.line(Instant::now(), text) {
            let shown = self.sender.as_ref().map(|sender| sender.shown(&line));
            tracing::warn!("{}", shown.as_deref().unwrap_or(&line));
        }
    }

    /// The flow that a record is about.
    pub(super) fn subject(
        &self,
        flow: Flow,
        internal: Side,
        label: Option<Label>,
        began_ns: u64,
    ) -> Subject {
        let started = self.zero + Duration::from_nanos(began_ns);
        Subject { flow, started, internal, label }
    }

    fn send(&self, record: impl FnOnce(SystemTime) -> Record) {
        if let Some(sender) = &self.sender {
            sender.send(record(SystemTime::now()));
        }
    }

    /// Whether there is an audit log.
    pub(super) const fn is_on(&self) -> bool {
        self.sender.is_some()
    }

    fn happened(&self, threat: bool, refused: bool, text: String) {
        let mut recent_events = self.recent_events.lock().unwrap_or_else(PoisonError::into_inner);
        recent_events.truncate(RECENT - 1);
        let one = Recent { seconds_ago: 0.0, threat, refused, text };
        recent_events.push_front((Instant::now(), one));
    }

    /// Recent refusals and scans, the newest first.
    pub(super) fn recent(&self) -> Vec<Recent> {
        let recent_events = self.recent_events.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |(at, one): &(Instant, Recent)| Recent {
            seconds_ago: at.elapsed().as_secs_f64(),
            ..one.clone()
        };
        recent_events.iter().map(recent).collect()
    }

    pub(super) fn chat(&self, subject: Subject, message: chat::Message) {
        self.send(|at| Record::Chat(ChatSeen { subject, at, message }));
    }

    pub(super) fn refused(&self, subject: Subject, rule: &str, cause: Cause) {
        let what = match &cause {
            Cause::File(name) => format!("refused {name}"),
            Cause::Unscanned(name) => format!("refused {name}, which was not scanned,"),
            _ => "refused".into(),
        };
        self.happened(false, true, format!("{what} in {}, by {rule}", described(&subject)));
        self.attempts(subject, AuditAction::Drop, Some(rule), cause, 1);
    }

    pub(super) fn refused_flow(&self, subject: Subject, action: AuditAction, rule: Option<&str>) {
        let by = rule.map(|rule| format!(", by {rule}")).unwrap_or_default();
        self.happened(false, true, format!("refused {}{by}", described(&subject)));
        let cause = if rule.is_some_and(|rule| rule.starts_with("runtime-")) {
            Cause::Operator
        } else {
            Cause::Rule
        };
        self.attempts(subject, action, rule, cause, 1);
    }

    /// So many attempts at what is refused.
    pub(super) fn attempts(
        &self,
        subject: Subject,
        action: AuditAction,
        rule: Option<&str>,
        cause: Cause,
        attempts: u64,
    ) {
        let verdict = verdict(action, rule);
        self.send(|at| Record::Refusal(Refusal { subject, at, verdict, cause, attempts }));
    }

    /// What was wrong with the packets of one end.
    pub(super) fn losses(&self, subject: &Subject, from: Side, losses: Losses) {
        for (count, kind) in [
            (losses.conflicts, AnomalyKind::Overlap),
            (losses.missed, AnomalyKind::Gap),
            (losses.strays, AnomalyKind::Reassembly),
        ] {
            if count > 0 {
                let subject = subject.clone();
                self.send(|at| Record::Anomaly(Anomaly { subject, at, from, kind }));
            }
        }
    }

    pub(super) fn scanned(
        &self,
        subject: Subject,
        named: &FileNamed,
        bytes: u64,
        finding: Finding,
        rule: &str,
        passes: bool,
    ) {
        let action = if passes { AuditAction::Allow } else { AuditAction::Drop };
        let (threat, result) = match &finding {
            Finding::Clean => (false, "scanned, clean".to_owned()),
            Finding::Found(name) => (true, format!("found {name}, refused")),
            Finding::Failed(why) => (true, format!("not scanned ({why})")),
        };
        let name = named.name.as_deref().unwrap_or("a file");
        // The refusal of what was not scanned is a record of its own.
        let refused = matches!(finding, Finding::Found(_));
        self.happened(threat, refused, format!("{result}: {name} in {}", described(&subject)));
        self.send(|at| {
            Record::Scan(Scanned {
                subject,
                at,
                transfer: named.transfer.0.into(),
                from: named.from,
                name: named.name.clone().unwrap_or_default(),
                size: bytes,
                finding,
                verdict: verdict(action, Some(rule)),
            })
        });
    }

    pub(super) fn file(
        &self,
        subject: Subject,
        named: &FileNamed,
        ended: Option<Ended>,
        rule: Option<&str>,
        refused: bool,
    ) {
        let Ended { bytes: seen, complete, missed, sha256 } = ended.unwrap_or_default();
        let action = if refused { AuditAction::Drop } else { AuditAction::Allow };
        self.send(|at| {
            Record::File(FileSeen {
                subject,
                at,
                transfer: named.transfer.0.into(),
                from: named.from,
                name: named.name.clone().or_else(|| named.location.clone()).unwrap_or_default(),
                size: named.size,
                seen,
                kind: Some(named.kind.name.to_owned()),
                sha256,
                hash: named.hash.map(|hash| hash.to_string()),
                complete: complete && !refused,
                gaps: missed,
                peers: Vec::new(),
                verdict: verdict(action, rule),
            })
        });
    }

    pub(super) fn flow(
        &self,
        subject: Subject,
        last_ns: u64,
        traffic: [Traffic; 2],
        end: End,
        verdict: ActionTaken,
    ) {
        let last = self.zero + Duration::from_nanos(last_ns);
        let [to_server, to_client] = traffic;
        self.send(|at| {
            Record::Flow(FlowEnd { subject, at, last, to_server, to_client, end, verdict })
        });
    }
}

/// What a refusal is called in records.
pub(super) const fn refusal(deny: Deny) -> AuditAction {
    match deny {
        Deny::Drop => AuditAction::Drop,
        Deny::Reset => AuditAction::Reset,
    }
}

/// Records the verdict of a flow.
pub(super) fn write<S>(log: &Log, news: News<S>) {
    match news {
        News::Refused { flow, began_ns, internal, label, deny, rule } => {
            let subject = log.subject(flow, internal, label, began_ns);
            log.refused_flow(subject, refusal(deny), rule.as_deref());
        }
        News::Ended(entry, end) => {
            let (action, rule) = match &entry.phase {
                Phase::Inspecting(_) => (AuditAction::Allow, None),
                Phase::Decided(decided) => {
                    let action = match decided.decision.verdict {
                        Verdict::Pass if decided.decision.counted.is_empty() => AuditAction::Allow,
                        Verdict::Pass => AuditAction::Count,
                        Verdict::Limit(_) => AuditAction::Limit,
                        Verdict::Refuse(Deny::Drop) => AuditAction::Drop,
                        Verdict::Refuse(Deny::Reset) => AuditAction::Reset,
                    };
                    (action, decided.rule())
                }
            };
            let traffic = [0, 1].map(|end: usize| Traffic {
                packets: entry.packets[end],
                bytes: entry.bytes[end],
                flags: entry.flags[end],
            });
            let label = entry.label().cloned();
            let subject = log.subject(entry.flow, entry.internal, label, entry.began_ns);
            log.flow(subject, entry.seen_ns, traffic, end, verdict(action, rule));
        }
    }
}
