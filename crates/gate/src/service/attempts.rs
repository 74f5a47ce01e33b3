//! Attempts that the kernel refuses from its cache, without a flow and without us: they are counted there,
//! and written down together once in a while.

use super::records::Log;
use crate::audit::{AuditAction, Cause, Subject};
use datapath::gate::CacheKey;
use rustc_hash::FxHashMap;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// So many refusals are watched. Attempts at others are in the counters, and not in the log.
const MOST: usize = 4096;
/// How often their counters are read.
const EVERY: Duration = Duration::from_secs(10);

/// What was refused, and what is known of it.
#[derive(Debug)]
struct Refused {
    subject: Subject,
    action: AuditAction,
    rule: Option<Arc<str>>,
    /// Attempts that were written down.
    reported: u64,
    grew: Instant,
}

/// What is refused now.
#[derive(Debug)]
pub(super) struct Attempts {
    of: FxHashMap<CacheKey, Refused>,
    read: Instant,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { of: FxHashMap::default(), read: Instant::now() }
    }
}

impl Attempts {
    /// From now on attempts like this one are refused.
    pub(super) fn remember(
        &mut self,
        key: CacheKey,
        subject: Subject,
        action: AuditAction,
        rule: Option<Arc<str>>,
    ) {
        if self.of.len() < MOST || self.of.contains_key(&key) {
            let grew = Instant::now();
            self.of.insert(key, Refused { subject, action, rule, reported: 0, grew });
        }
    }

    /// Whether the counters are to be read again.
    pub(super) fn are_due(&self) -> bool {
        self.read.elapsed() >= EVERY
    }

    /// Writes down what came since the last time. `count` gives the attempts that a refusal has refused, if
    /// it is still there; one without any for `lifetime` is forgotten.
    pub(super) fn write(
        &mut self,
        count: impl Fn(&CacheKey) -> Option<u64>,
        lifetime: Duration,
        log: &Log,
    ) {
        self.read = Instant::now();
        self.of.retain(|key, refused| {
            let Some(count) = count(key) else { return false };
            let new = count.saturating_sub(refused.reported);
            if new > 0 {
                refused.reported = count;
                refused.grew = self.read;
                let (subject, rule) = (refused.subject.clone(), refused.rule.as_deref());
                log.attempts(subject, refused.action, rule, Cause::Cache, new);
            }
            refused.grew.elapsed() < lifetime + EVERY
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        audit::{Audit, Config},
        service::kernel,
    };
    use classify::flow::{Flow, Side, Transport};
    use std::cell::Cell;

    #[test]
    fn attempts_at_what_is_refused_are_reported_together_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let config: Config =
            toml::from_str(&format!("folder = {:?}", folder.path().join("audit"))).unwrap();
        let audit = Audit::start(config, None).unwrap();
        let log = Log::new(Some(audit.sender()), 0);
        let flow = Flow {
            transport: Transport::Tcp,
            client: "10.0.0.1:50000".parse().unwrap(),
            server: "192.0.2.1:6881".parse().unwrap(),
        };
        let key = kernel::refusal(&flow);
        let mut attempts = Attempts::default();
        let subject = log.subject(flow, Side::Client, None, 0);
        attempts.remember(key, subject, AuditAction::Reset, Some("no-sharing".into()));
        let counted = Cell::new(Some(0));
        for count in [Some(0), Some(5), Some(5), Some(12), None, Some(20)] {
            counted.set(count);
            attempts.write(|_| counted.get(), Duration::from_secs(600), &log);
        }
        audit.flush();
        let lines = std::fs::read_to_string(folder.path().join("audit/eve.json")).unwrap();
        let reported: Vec<_> = lines
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .inspect(|line| assert_eq!(line["event_type"], "drop"))
            .map(|line| line["nigh"]["attempts"].as_u64().unwrap())
            .collect();
        // What was forgotten is not reported again.
        assert_eq!(reported, [5, 7]);
    }
}
