//! The heartbeat, by which the kernel knows that user space is at work.

use super::problems::Problems;
use datapath::gate::Gate;
use std::time::{Duration, Instant};

/// Time from one heartbeat to the next; the kernel waits for two seconds. It is also longer than any
/// packet is in flight that was looked up before a decision.
const BEAT: Duration = Duration::from_millis(100);

/// The heartbeat.
#[derive(Debug, Default)]
pub(super) struct Beat(Option<Instant>);

impl Beat {
    /// Gives it if it is time.
    pub(super) fn give(&mut self, gate: &Gate, problems: &mut Problems) {
        let now = Instant::now();
        if self.0.is_some_and(|last| now.duration_since(last) < BEAT) {
            return;
        }
        self.0 = Some(now);
        if let Err(error) = gate.heartbeat() {
            problems.report("the kernel does not take the heartbeat", &error);
        }
    }
}
