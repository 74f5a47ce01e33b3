//! What is left in a masked capture that distinguishes machines, programs and single packets, in words, each
//! with a number and the lines of a policy that remove it.

use super::{clocks::Clocks, hosts::OPTIONS, outline::Outline};
use crate::{counted::counted, layer::Kind};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::fmt;

/// Most sizes of packets that are distinguished.
const SIZES: usize = 1 << 16;
/// Most orders of options.
const ORDERS: usize = 1 << 10;
/// Ports below this one are of services; those above are also chosen for clients (by Linux from here on, by
/// RFC 6335, section 6, from 49,152 on).
const DYNAMIC: usize = 32_768;
/// A counter goes up by this much at most from one packet of a host to its next one in the capture.
const STEP: u16 = 64;
/// So many packets of a host show whether its IP identification counts.
const ENOUGH: u32 = 8;

/// What is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trace {
    /// Timestamps of TCP: the sender's clock.
    TcpTimestamps,
    /// Which options a SYN has, in which order.
    TcpOptions,
    /// How long the TCP header of a SYN is.
    TcpHeaderLength,
    /// Identification of IPv4.
    IpIdentification,
    /// Sizes that few packets have.
    RareSizes,
    /// When packets were captured.
    Times,
    /// Ports of services.
    Ports,
}

/// What is left of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Fingerprint {
    /// Which.
    pub trace: Trace,
    /// How much of it: packets, or different ones, as `text` has it.
    pub count: u64,
    /// What is left, in words.
    pub text: String,
    /// The lines of a policy that remove it; none if it is structure, which is always kept.
    pub policy: &'static [&'static str],
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.text, remedy(self.policy))
    }
}

/// What to do about something that these lines of a policy remove.
pub(super) fn remedy(policy: &[&str]) -> String {
    if policy.is_empty() {
        return "no policy removes it, because it is structure".to_owned();
    }
    format!("removed by {}", policy.join(", "))
}

/// Packets by the service that their ports name.
#[derive(Debug)]
pub(super) struct Ports(Vec<u64>);

impl Default for Ports {
    fn default() -> Self {
        Self(vec![0; DYNAMIC])
    }
}

impl Ports {
    pub(super) fn add(&mut self, packet: &Outline) {
        for port in packet.ports.map(usize::from).iter().filter(|port| **port > 0) {
            if let Some(count) = self.0.get_mut(*port) {
                *count += 1;
            }
        }
    }

    /// How many ports stand in as many packets as in the original, if most do: when ports are replaced,
    /// only some do by chance.
    fn kept(&self, original: &Self) -> u64 {
        let both = || self.0.iter().zip(&original.0).map(|(left, was)| (*left, *was));
        let left: u64 = both().map(|(left, was)| left.min(was)).sum();
        let was: u64 = original.0.iter().sum();
        if 2 * left <= was {
            return 0;
        }
        both().filter(|(left, was)| *left > 0 && left == was).count() as u64
    }
}

/// IP identification of a host.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    last: u16,
    packets: u32,
    small_steps: u32,
}

/// A size of packets.
#[derive(Clone, Copy, Debug)]
struct Size {
    packets: u64,
    /// The only host that has it, by its number.
    host: Option<u32>,
}

/// Gathers what is left.
#[derive(Debug, Default)]
pub(super) struct Fingerprints {
    clocks: Clocks,
    orders: FxHashSet<Vec<Kind>>,
    /// SYNs by the length of their header.
    headers: [u64; 16],
    counters: Vec<Counter>,
    identified: u64,
    sizes: FxHashMap<u32, Size>,
    sizes_skipped: u64,
    /// Packets with a time; those whose time is not a multiple of this many nanoseconds.
    timed: u64,
    finer: [u64; UNITS.len()],
    pub(super) ports: Ports,
}

/// Units of time in nanoseconds, from the coarsest.
const UNITS: [(u64, &str); 4] = [
    (1_000_000_000, "seconds"),
    (1_000_000, "milliseconds"),
    (1000, "microseconds"),
    (1, "nanoseconds"),
];

impl Fingerprints {
    /// Adds a packet of the host with this number, if it has one.
    pub(super) fn add(&mut self, packet: &Outline, host: Option<u32>) {
        self.ports.add(packet);
        self.clocks.add(packet);
        if let Some(tcp) = packet.tcp.as_ref().filter(|tcp| tcp.is_syn()) {
            self.headers[usize::from(tcp.header / 4)] += 1;
            if self.orders.len() < ORDERS && !tcp.options.is_empty() {
                self.orders.insert(tcp.options.clone());
            }
        }
        self.identified += u64::from(packet.identification != 0);
        if let Some(host) = host.filter(|_| packet.identification != 0) {
            let host = host as usize;
            if self.counters.len() <= host {
                self.counters.resize(host + 1, Counter::default());
            }
            let counter = &mut self.counters[host];
            let step = packet.identification.wrapping_sub(counter.last);
            counter.small_steps += u32::from(counter.packets > 0 && (1..=STEP).contains(&step));
            counter.packets += 1;
            counter.last = packet.identification;
        }
        if self.sizes.len() < SIZES || self.sizes.contains_key(&packet.length) {
            let size = self.sizes.entry(packet.length).or_insert(Size { packets: 0, host });
            size.packets += 1;
            size.host = size.host.filter(|known| Some(*known) == host);
        } else {
            self.sizes_skipped += 1;
        }
        self.timed += u64::from(packet.time > 0);
        for (count, (unit, _)) in self.finer.iter_mut().zip(UNITS) {
            *count += u64::from(!packet.time.is_multiple_of(unit));
        }
    }

    /// Packets whose size no other packet has.
    pub(super) fn single_sizes(&self) -> u64 {
        self.sizes.values().filter(|size| size.packets == 1).count() as u64
    }

    /// What is left, of a capture whose original has these ports.
    pub(super) fn finish(&self, original: &Ports, hosts: usize) -> Vec<Fingerprint> {
        let all = [
            self.clocks(),
            self.options(),
            self.header_lengths(),
            self.identification(),
            self.rare_sizes(hosts),
            self.times(),
            self.services(original),
        ];
        all.into_iter().filter(|found| found.count > 0).collect()
    }

    fn clocks(&self) -> Fingerprint {
        let (count, text) = (self.clocks.packets, self.clocks.to_string());
        let policy = &[r#""tcp.timestamps.*" = "remove""#];
        Fingerprint { trace: Trace::TcpTimestamps, count, text, policy }
    }

    fn options(&self) -> Fingerprint {
        let count = self.orders.len() as u64;
        let text = format!(
            "TCP options of SYNs are left; orders, which distinguish systems: {count}{}",
            if count == ORDERS as u64 { " or more" } else { "" }
        );
        Fingerprint { trace: Trace::TcpOptions, count, text, policy: OPTIONS }
    }

    fn header_lengths(&self) -> Fingerprint {
        let lengths = self.headers.iter().filter(|count| **count > 0).count() as u64;
        let count = if lengths > 1 { lengths } else { 0 };
        let text = format!(
            "TCP headers of SYNs have {count} different lengths: some systems can be identified by the space \
             that their options take"
        );
        Fingerprint { trace: Trace::TcpHeaderLength, count, text, policy: &[] }
    }

    fn identification(&self) -> Fingerprint {
        let enough = self.counters.iter().filter(|it| it.packets > ENOUGH);
        let counts = |it: &&Counter| it.small_steps * 4 >= (it.packets - 1) * 3;
        let (inspected, counting) = (enough.clone().count(), enough.filter(counts).count());
        let text = format!(
            "IPv4 identification is left in {}; it counts up for {counting} of {} with more than {ENOUGH} \
             packets, which distinguishes machines behind one address",
            counted(self.identified, "packet", "packets"),
            counted(inspected, "host", "hosts")
        );
        let policy = &[r#""ipv4.identification" = "remove""#];
        Fingerprint { trace: Trace::IpIdentification, count: self.identified, text, policy }
    }

    fn rare_sizes(&self, hosts: usize) -> Fingerprint {
        let once = self.single_sizes();
        let of_one = self.sizes.values().filter(|it| it.packets > 1 && it.host.is_some()).count();
        let of_one = if hosts > 1 { of_one as u64 } else { 0 };
        let mut text = format!("sizes that occur in one packet only: {once}");
        if hosts > 1 {
            text += &format!(", more for one host only: {of_one}");
        }
        if self.sizes_skipped > 0 {
            let packets = counted(self.sizes_skipped, "packet", "packets");
            text += &format!("; not counted: {packets} of more sizes");
        }
        Fingerprint { trace: Trace::RareSizes, count: once + of_one, text, policy: &[] }
    }

    fn times(&self) -> Fingerprint {
        let unit = UNITS.iter().zip(self.finer).find(|(_, finer)| *finer == 0);
        let unit = unit.map_or("nanoseconds", |((_, name), _)| name);
        let text = format!(
            "{} a time in {unit}: bursts and pauses reveal programs, and anyone who saw a packet elsewhere can find it",
            counted(self.timed, "packet has", "packets have")
        );
        let policy = &[r#"time = "remove""#];
        Fingerprint { trace: Trace::Times, count: self.timed, text, policy }
    }

    fn services(&self, original: &Ports) -> Fingerprint {
        let count = self.ports.kept(original);
        let text = format!(
            "ports below {DYNAMIC} that are those of the original: {count}; those of services reveal programs"
        );
        let policy = &[
            r#""tcp.source_port" = "remove""#,
            r#""tcp.destination_port" = "remove""#,
            r#""udp.source_port" = "remove""#,
            r#""udp.destination_port" = "remove""#,
        ];
        Fingerprint { trace: Trace::Ports, count, text, policy }
    }
}
