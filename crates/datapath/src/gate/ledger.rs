//! What the programs count. Each counter is a word of its own on each CPU, written by that CPU and
//! copied whole by the kernel; so sums are exact. A super-packet counts once.

use super::Gate;
use super::skeleton::types;
use libbpf_rs::{MapCore as _, MapFlags};

const COUNTS: usize = types::gate_count::GATE_COUNTS.0 as usize;

/// Packets at one hook since the maps were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that came, but those that the gate itself sent round; the sum of all up to `unreachable`.
    pub received: u64,
    /// Passed: the gate is switched off.
    pub passed_bypass: u64,
    /// Passed: neither TCP nor UDP over IP.
    pub passed_other: u64,
    /// Passed: a later fragment of a packet whose first was not seen.
    pub passed_fragment: u64,
    /// Passed: it came in by an internal interface and was judged there.
    pub passed_internal: u64,
    /// Passed: its flow is allowed.
    pub passed_decided: u64,
    /// Passed: its flow is not decided yet.
    pub passed_undecided: u64,
    /// Passed: its flow is undecided, and user space is silent.
    pub passed_failure: u64,
    /// Dropped: its headers are cut short, too many, or contradict each other, so that nothing shows its
    /// flow; tiny fragments are such.
    pub dropped_form: u64,
    /// Dropped: its flow is refused.
    pub dropped_verdict: u64,
    /// Dropped: it begins what was refused before.
    pub dropped_cache: u64,
    /// Dropped: its flow is undecided, and user space is silent.
    pub dropped_failure: u64,
    /// Dropped: it was to be held or copied, and the ring or the table of undecided flows is full.
    pub dropped_ring: u64,
    /// Held.
    pub held: u64,
    /// Turned into a reset: its flow is refused.
    pub reset_verdict: u64,
    /// Turned into a reset: it begins what was refused before.
    pub reset_cache: u64,
    /// Passed through the device where packets from internal hosts queue.
    pub redirected: u64,
    /// Turned into an ICMP port unreachable: its flow is refused.
    pub unreachable: u64,
    /// Sent round by the gate itself: released, or a reset.
    pub released: u64,
    /// Copied out, whole or in part; those held are among them.
    pub copied: u64,
    /// To be copied or held, but the ring is full.
    pub missed: u64,
}

impl Counts {
    /// Packets that went on.
    pub fn passed(&self) -> u64 {
        self.passed_bypass
            + self.passed_other
            + self.passed_fragment
            + self.passed_internal
            + self.passed_decided
            + self.passed_undecided
            + self.passed_failure
    }

    /// Packets that went nowhere.
    pub fn dropped(&self) -> u64 {
        self.dropped_form
            + self.dropped_verdict
            + self.dropped_cache
            + self.dropped_failure
            + self.dropped_ring
    }

    /// The sum of all outcomes: equals `received`, except for packets that are counted while this
    /// is read.
    pub fn accounted(&self) -> u64 {
        let answered = self.reset_verdict + self.reset_cache + self.unreachable;
        self.passed() + self.dropped() + self.held + answered + self.redirected
    }

    fn of(counts: [u64; COUNTS]) -> Self {
        use types::gate_count as c;
        let count = |what: c| counts[what.0 as usize];
        Self {
            received: count(c::GATE_RECEIVED),
            passed_bypass: count(c::GATE_PASS_BYPASS),
            passed_other: count(c::GATE_PASS_OTHER),
            passed_fragment: count(c::GATE_PASS_FRAGMENT),
            passed_internal: count(c::GATE_PASS_INTERNAL),
            passed_decided: count(c::GATE_PASS_DECIDED),
            passed_undecided: count(c::GATE_PASS_UNDECIDED),
            passed_failure: count(c::GATE_PASS_FAILURE),
            dropped_form: count(c::GATE_DROP_FORM),
            dropped_verdict: count(c::GATE_DROP_VERDICT),
            dropped_cache: count(c::GATE_DROP_CACHE),
            dropped_failure: count(c::GATE_DROP_FAILURE),
            dropped_ring: count(c::GATE_DROP_RING),
            held: count(c::GATE_HELD),
            reset_verdict: count(c::GATE_RESET_VERDICT),
            reset_cache: count(c::GATE_RESET_CACHE),
            redirected: count(c::GATE_REDIRECTED),
            unreachable: count(c::GATE_UNREACHABLE),
            released: count(c::GATE_RELEASED),
            copied: count(c::GATE_COPIED),
            missed: count(c::GATE_MISSED),
        }
    }
}

/// All counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets from internal hosts.
    pub from_internal: Counts,
    /// Packets to internal hosts.
    pub to_internal: Counts,
    /// Packets that the program in the driver saw before those from internal hosts; what it passed is
    /// counted there again.
    pub driver: Counts,
}

/// The ledger could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the gate's counters: {0}")]
pub struct LedgerError(#[from] libbpf_rs::Error);

impl Gate {
    /// All counters, summed over CPUs.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn ledger(&self) -> Result<Ledger, LedgerError> {
        let map = &self.inner.skeleton.maps.gate_ledger;
        let counts = |hook: types::gate_hook| -> Result<_, LedgerError> {
            let copies = map.lookup_percpu(&hook.0.to_ne_bytes(), MapFlags::ANY)?;
            let mut counts = [0; COUNTS];
            for copy in &copies.unwrap_or_default() {
                for (sum, word) in counts.iter_mut().zip(copy.as_chunks().0) {
                    *sum += u64::from_ne_bytes(*word);
                }
            }
            Ok(Counts::of(counts))
        };
        Ok(Ledger {
            from_internal: counts(types::gate_hook::GATE_FROM_INTERNAL)?,
            to_internal: counts(types::gate_hook::GATE_TO_INTERNAL)?,
            driver: counts(types::gate_hook::GATE_DRIVER)?,
        })
    }
}
