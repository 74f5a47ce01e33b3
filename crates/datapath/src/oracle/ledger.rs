//! What the programs count. Each counter is a word of its own on each CPU, written by that CPU and
//! copied whole by the kernel, and each packet is in exactly one of them; so sums are exact, and no
//! packet is missing or counted twice.

use super::OracleProgram;
use super::skeleton::types;
use libbpf_rs::{MapCore as _, MapFlags};

/// Packets since the program was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// For no address and port of the service: to the kernel.
    pub other: u64,
    /// Answered in the driver.
    pub answered: u64,
    /// Dropped in the driver: the source prefix is over its rate.
    pub over_rate: u64,
    /// To the sockets: the sender is no station or host that can be answered from the driver.
    pub passed_sender: u64,
    /// To the sockets: lengths that are not those of a plain request.
    pub passed_length: u64,
    /// To the sockets: not the plain request.
    pub passed_form: u64,
    /// To the sockets: the IPv4 header's checksum is wrong, or the UDP checksum is left to hardware.
    pub passed_sum: u64,
    /// To the sockets: no tables, or none for this source and metric.
    pub passed_table: u64,
    /// Let in to the sockets by their filter.
    pub socket_taken: u64,
    /// Dropped by the sockets' filter: the source prefix is over its rate.
    pub socket_over_rate: u64,
}

/// The ledger could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the oracle program's counters: {0}")]
pub struct LedgerError(#[from] libbpf_rs::Error);

const COUNTS: usize = types::oracle_count::ORACLE_COUNTS.0 as usize;

impl Ledger {
    /// Requests to the service that the XDP program saw.
    pub fn received(&self) -> u64 {
        self.answered + self.over_rate + self.passed()
    }

    /// Those of them that it left to the sockets.
    pub fn passed(&self) -> u64 {
        self.passed_sender
            + self.passed_length
            + self.passed_form
            + self.passed_sum
            + self.passed_table
    }

    fn of(counts: [u64; COUNTS]) -> Self {
        use types::oracle_count as c;
        let count = |what: c| counts[what.0 as usize];
        Self {
            other: count(c::ORACLE_OTHER),
            answered: count(c::ORACLE_ANSWERED),
            over_rate: count(c::ORACLE_OVER_RATE),
            passed_sender: count(c::ORACLE_PASS_SENDER),
            passed_length: count(c::ORACLE_PASS_LENGTH),
            passed_form: count(c::ORACLE_PASS_FORM),
            passed_sum: count(c::ORACLE_PASS_SUM),
            passed_table: count(c::ORACLE_PASS_TABLE),
            socket_taken: count(c::ORACLE_SOCKET_TAKEN),
            socket_over_rate: count(c::ORACLE_SOCKET_OVER_RATE),
        }
    }
}

impl OracleProgram {
    /// All counters, summed over CPUs.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn ledger(&self) -> Result<Ledger, LedgerError> {
        let map = &self.skeleton.maps.oracle_ledger;
        let copies = map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        let mut counts = [0; COUNTS];
        for copy in &copies {
            for (sum, word) in counts.iter_mut().zip(copy.as_chunks().0) {
                *sum += u64::from_ne_bytes(*word);
            }
        }
        Ok(Ledger::of(counts))
    }
}
