//! What the program counts: the ledger, a histogram of its own running time, the busiest sources.
//!
//! Each address has a row, each CPU a copy of it. The program adds to `received` first and to one
//! other counter last; the kernel copies a row upwards, `received` at its end. A copy in which
//! `received` equals the sum of the others was taken at one instant with no packet in flight; any
//! other is taken again. So the identity of a [`Counters`] is observed, not constructed.

use super::EchoProgram;
use super::skeleton::types;
use ipnet::IpNet;
use libbpf_rs::{MapCore as _, MapFlags};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// How long a row may take to be found at rest before that is an error: a program run takes some
/// tens of nanoseconds, but a virtual CPU may be preempted in the midst of one.
const TIMEOUT: Duration = Duration::from_secs(1);

const DROPS: usize = types::echo_drop::ECHO_DROPS.0 as usize;

/// Why a packet for one of our addresses was dropped, in the order in which the rules are applied
/// within one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// The source is multicast, broadcast, loopback, unspecified, reserved, or one of our addresses.
    BogonSource,
    /// The source is refused by the allow and deny lists.
    Denied,
    /// The IPv4 header's checksum is wrong.
    BadChecksumIp,
    /// The ICMP message's checksum is wrong.
    BadChecksumIcmp,
    /// An echo request with a code other than 0.
    BadCode,
    /// A header length or a total length that cannot be right.
    BadLength,
    /// A fragment, where fragments are refused.
    Fragment,
    /// The frame's source or destination MAC address is not that of one station (RFC 1122 section
    /// 3.3.6): every responder on the link would answer.
    NotUnicast,
    /// The source prefix is over its rate.
    SourceLimit,
    /// The node is over its rate.
    NodeLimit,
}

impl DropReason {
    /// All reasons, in the order of [`Counters::drops`].
    pub const ALL: [Self; DROPS] = [
        Self::BogonSource,
        Self::Denied,
        Self::BadChecksumIp,
        Self::BadChecksumIcmp,
        Self::BadCode,
        Self::BadLength,
        Self::Fragment,
        Self::NotUnicast,
        Self::SourceLimit,
        Self::NodeLimit,
    ];

    /// The name in JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BogonSource => "bogon_source",
            Self::Denied => "denied",
            Self::BadChecksumIp => "bad_checksum_ip",
            Self::BadChecksumIcmp => "bad_checksum_icmp",
            Self::BadCode => "bad_code",
            Self::BadLength => "bad_length",
            Self::Fragment => "fragment",
            Self::NotUnicast => "not_unicast",
            Self::SourceLimit => "source_limit",
            Self::NodeLimit => "node_limit",
        }
    }
}

/// Packets of one address: received = answered + passed + sum of drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that arrived.
    pub received: u64,
    /// Requests turned into replies and sent.
    pub answered: u64,
    /// Packets handed to the kernel.
    pub passed: u64,
    /// Packets dropped, by reason, in the order of [`DropReason::ALL`].
    pub drops: [u64; DROPS],
}

impl Counters {
    /// Packets dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Packets with any outcome.
    pub fn accounted(&self) -> u64 {
        self.answered + self.passed + self.drops.iter().sum::<u64>()
    }

    fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.answered += other.answered;
        self.passed += other.passed;
        for (sum, count) in self.drops.iter_mut().zip(other.drops) {
            *sum += count;
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            received: self.received - before.received,
            answered: self.answered - before.answered,
            passed: self.passed - before.passed,
            drops: std::array::from_fn(|reason| self.drops[reason] - before.drops[reason]),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let word = |offset: usize| {
            let end = offset + size_of::<u64>();
            u64::from_ne_bytes(bytes[offset..end].try_into().expect("eight bytes"))
        };
        let first = std::mem::offset_of!(types::echo_row, drop);
        Self {
            received: word(std::mem::offset_of!(types::echo_row, received)),
            answered: word(std::mem::offset_of!(types::echo_row, answered)),
            passed: word(std::mem::offset_of!(types::echo_row, passed)),
            drops: std::array::from_fn(|i| word(first + i * size_of::<u64>())),
        }
    }
}

/// One service address's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The address.
    pub address: IpAddr,
    /// Its packets.
    pub counters: Counters,
}

/// The whole ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// A row for each service address, in the order of the settings.
    pub rows: Vec<Row>,
    /// Health probes through the link addresses.
    pub probe: Counters,
    /// Frames for no service address; all of them went to the kernel.
    pub other: Counters,
}

/// The ledger could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A row never balanced.
    #[error(
        "row {row} of the ledger does not balance on CPU {cpu} after a second of trying: received {received}, accounted for {accounted}; this is a defect of the program, please report it"
    )]
    Unbalanced {
        /// Number of the row.
        row: u32,
        /// Number of the CPU.
        cpu: usize,
        /// What arrived.
        received: u64,
        /// The sum of the rest.
        accounted: u64,
    },
    /// The kernel refused.
    #[error("cannot read the program's counters: {0}")]
    Kernel(#[from] libbpf_rs::Error),
}

/// How long the program takes for a packet, sampled at most once a clock tick, address and CPU: from
/// the match of its address to the verdict, the reading of the clock included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Samples in each bucket: [`Latency::bounds`] says from where to where.
    pub buckets: Vec<u64>,
}

impl Latency {
    /// The first nanosecond of a bucket and the first of the next: up to 8 ns a bucket each, then
    /// four to each power of two.
    pub fn bounds(bucket: usize) -> (u64, u64) {
        let start = |bucket: usize| match bucket {
            0..8 => bucket as u64,
            _ => (4 + bucket as u64 % 4) << (bucket / 4 - 1),
        };
        (start(bucket), start(bucket + 1))
    }

    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// An upper bound of the given share of the samples (0 to 1), in nanoseconds; `None` without any.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = (share.clamp(0.0, 1.0) * self.samples() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.buckets.iter().enumerate().find_map(|(bucket, count)| {
            seen += count;
            (*count > 0 && seen >= rank).then(|| Self::bounds(bucket).1)
        })
    }
}

/// A busy source prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The prefix, as wide as the settings' source limit has it.
    pub prefix: IpNet,
    /// Packets, estimated from samples: each stands for those since the one before it.
    pub packets: u64,
}

impl EchoProgram {
    /// Every row, each CPU's part of it read while no packet was in flight through it.
    pub fn ledger(&self) -> Result<Ledger, LedgerError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let assigned: Vec<_> =
            state.settings.addresses.iter().filter_map(|address| state.rows.get(address)).collect();
        let mut numbers =
            vec![types::echo_rows::ECHO_ROW_OTHER.0, types::echo_rows::ECHO_ROW_PROBE.0];
        numbers.extend(assigned.iter().map(|assigned| assigned.row));
        let read = self.read_rows(&numbers)?;
        let rows = state.settings.addresses.iter().zip(assigned).zip(&read[2..]);
        Ok(Ledger {
            rows: rows
                .map(|((address, assigned), now)| Row {
                    address: *address,
                    counters: now.since(&assigned.before),
                })
                .collect(),
            other: read[0],
            probe: read[1],
        })
    }

    /// These rows, summed over CPUs.
    pub(super) fn read_rows(&self, rows: &[u32]) -> Result<Vec<Counters>, LedgerError> {
        let mut settled: Vec<Vec<Option<Counters>>> = vec![Vec::new(); rows.len()];
        let end = Instant::now() + TIMEOUT;
        loop {
            let mut missing = None;
            let copies = self
                .skeleton
                .maps
                .echo_ledger
                .lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?
                .unwrap_or_default();
            for (row, settled) in rows.iter().zip(&mut settled) {
                settled.resize(copies.len(), None);
                for (cpu, (kept, copy)) in settled.iter_mut().zip(&copies).enumerate() {
                    if kept.is_none() {
                        let at = *row as usize * size_of::<types::echo_row>();
                        let read = Counters::from_bytes(&copy[at..]);
                        if read.received == read.accounted() {
                            *kept = Some(read);
                        } else {
                            missing = Some((*row, cpu, read));
                        }
                    }
                }
            }
            let Some((row, cpu, read)) = missing else { break };
            if Instant::now() >= end {
                let (received, accounted) = (read.received, read.accounted());
                return Err(LedgerError::Unbalanced { row, cpu, received, accounted });
            }
            std::thread::yield_now();
        }
        let sum = |cpus: &Vec<Option<Counters>>| {
            let mut sum = Counters::default();
            cpus.iter().flatten().for_each(|cpu| sum.add(cpu));
            sum
        };
        Ok(settled.iter().map(sum).collect())
    }

    /// The histogram of the program's running time since it was loaded.
    pub fn latency(&self) -> Result<Latency, LedgerError> {
        let copies = self
            .skeleton
            .maps
            .echo_latency
            .lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?
            .unwrap_or_default();
        let mut buckets = vec![0; size_of::<types::echo_latency>() / size_of::<u64>()];
        for copy in &copies {
            for (sum, word) in buckets.iter_mut().zip(copy.chunks_exact(size_of::<u64>())) {
                *sum += u64::from_ne_bytes(word.try_into().expect("eight bytes"));
            }
        }
        Ok(Latency { buckets })
    }

    /// The busiest source prefixes since the program was loaded, at most `count`, busiest first. Of
    /// some 4,000 prefixes seen last; the counts are estimates.
    pub fn top(&self, count: usize) -> Result<Vec<Source>, LedgerError> {
        let SourceWidth { four, six } = self.source_width();
        let table = &self.skeleton.maps.echo_top;
        let mut sources = Vec::new();
        for key in table.keys() {
            // An entry may leave between the two calls.
            let Some(value) = table.lookup(&key, MapFlags::ANY)? else { continue };
            let address: [u8; 16] = key[..16].try_into().expect("sixteen bytes");
            let family = u32::from_ne_bytes(key[16..20].try_into().expect("four bytes"));
            let (address, width) = if family == 6 {
                (IpAddr::V6(Ipv6Addr::from(address)), six)
            } else {
                let [a, b, c, d, ..] = address;
                (IpAddr::V4(Ipv4Addr::new(a, b, c, d)), four)
            };
            let prefix = IpNet::new(address, width).expect("the settings were checked");
            let packets = u64::from_ne_bytes(value.as_slice().try_into().expect("eight bytes"));
            sources.push(Source { prefix, packets });
        }
        sources.sort_by_key(|source| (std::cmp::Reverse(source.packets), source.prefix));
        sources.truncate(count);
        Ok(sources)
    }

    fn source_width(&self) -> SourceWidth {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let source = &state.settings.source;
        SourceWidth { four: source.prefix4, six: source.prefix6 }
    }
}

struct SourceWidth {
    four: u8,
    six: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_the_order_of_the_program() {
        use types::echo_drop as c;
        for (reason, number) in [
            (DropReason::BogonSource, c::ECHO_BOGON_SOURCE),
            (DropReason::Denied, c::ECHO_DENIED),
            (DropReason::BadChecksumIp, c::ECHO_BAD_CHECKSUM_IP),
            (DropReason::BadChecksumIcmp, c::ECHO_BAD_CHECKSUM_ICMP),
            (DropReason::BadCode, c::ECHO_BAD_CODE),
            (DropReason::BadLength, c::ECHO_BAD_LENGTH),
            (DropReason::Fragment, c::ECHO_FRAGMENT),
            (DropReason::NotUnicast, c::ECHO_NOT_UNICAST),
            (DropReason::SourceLimit, c::ECHO_SOURCE_LIMIT),
            (DropReason::NodeLimit, c::ECHO_NODE_LIMIT),
        ] {
            assert_eq!(reason as u32, number.0);
            assert_eq!(DropReason::ALL[reason as usize], reason);
        }
    }

    #[test]
    fn buckets_of_the_histogram_meet() {
        for bucket in 0..127 {
            assert_eq!(Latency::bounds(bucket).1, Latency::bounds(bucket + 1).0);
            assert!(Latency::bounds(bucket).0 < Latency::bounds(bucket).1);
        }
        assert_eq!(Latency::bounds(7), (7, 8));
        assert_eq!(Latency::bounds(8), (8, 10));
        assert_eq!(Latency::bounds(12), (16, 20));
    }

    #[test]
    fn quantiles_bound_the_samples() {
        let mut buckets = vec![0; 128];
        buckets[9] = 90; // 10 and 11 ns
        buckets[16] = 10; // 32 to 39 ns
        let latency = Latency { buckets };
        assert_eq!(latency.quantile(0.5), Some(12));
        assert_eq!(latency.quantile(0.9), Some(12));
        assert_eq!(latency.quantile(0.91), Some(40));
        assert_eq!(Latency { buckets: vec![0; 128] }.quantile(0.5), None);
    }
}
