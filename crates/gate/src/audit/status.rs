//! The state of the audit log.

use serde::{Deserialize, Serialize};
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Counters that both sides of the queue write.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) received: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) skipped: AtomicU64,
    pub(super) queue_full: AtomicU64,
    pub(super) not_written: AtomicU64,
    pub(super) files_deleted: AtomicU64,
    pub(super) ipfix: IpfixCounters,
    pub(super) error: Mutex<Option<String>>,
}

/// Flows that went out as IPFIX, or should have.
#[derive(Debug, Default)]
pub(super) struct IpfixCounters {
    pub(super) written: AtomicU64,
    pub(super) not_written: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) not_sent: AtomicU64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Relaxed);
    }

    /// Sets the problem; true if it is new.
    pub(super) fn set_error(&self, error: Option<String>) -> bool {
        let mut held = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        let news = held.is_some() != error.is_some();
        *held = error;
        news
    }

    pub(super) fn status(&self) -> Status {
        // What came in last is read first: `waiting` is never too small by what is just now settled.
        let written = self.written.load(Relaxed);
        let skipped = self.skipped.load(Relaxed);
        let queue_full = self.queue_full.load(Relaxed);
        let not_written = self.not_written.load(Relaxed);
        let received = self.received.load(Relaxed);
        Status {
            received,
            written,
            skipped,
            lost: Lost { queue_full, not_written },
            waiting: received.saturating_sub(written + skipped + queue_full + not_written),
            files_deleted: self.files_deleted.load(Relaxed),
            ipfix: Ipfix {
                written: self.ipfix.written.load(Relaxed),
                not_written: self.ipfix.not_written.load(Relaxed),
                sent: self.ipfix.sent.load(Relaxed),
                not_sent: self.ipfix.not_sent.load(Relaxed),
            },
            error: self.error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// The audit's ledger: received = written + skipped + lost + waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Records received.
    pub received: u64,
    /// Records in the files.
    pub written: u64,
    /// Records of kinds that the configuration omits.
    pub skipped: u64,
    /// Records that are in no file though they should be.
    pub lost: Lost,
    /// Records in the queue.
    pub waiting: u64,
    /// Files that were deleted because they were old.
    pub files_deleted: u64,
    /// Flows as IPFIX.
    pub ipfix: Ipfix,
    /// What is wrong with the files just now.
    pub error: Option<String>,
}

/// Why records were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// There was no room in the queue.
    pub queue_full: u64,
    /// The disk refused them.
    pub not_written: u64,
}

/// Flows that went out as IPFIX, or should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ipfix {
    /// Flows in the files.
    pub written: u64,
    /// Flows that the disk refused.
    pub not_written: u64,
    /// Flows that were sent to the collector; UDP does not show whether they arrived.
    pub sent: u64,
    /// Flows that could not be sent.
    pub not_sent: u64,
}
