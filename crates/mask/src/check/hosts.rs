//! How many hosts of a masked capture look alike: k-anonymity (Sweeney, 2002).
//!
//! What a host's system chooses and the mask has left (the quasi-identifiers) divides the hosts into groups.
//! In a group of k hosts each looks like k - 1 others.

use super::outline::{Host, Outline};
use crate::{counted::counted, layer::Kind};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::{collections::BTreeMap, collections::hash_map::Entry, fmt, hash::Hash};

/// Most hosts that are inspected.
const HOSTS: usize = 1 << 20;
/// Values of a TTL with which systems begin.
const TTLS: [u8; 4] = [32, 64, 128, 255];
/// Features that are named in words.
const NAMED: usize = 3;

/// The hosts that send packets.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    numbers: FxHashMap<Host, u32>,
    profiles: Vec<Profile>,
    /// Packets of hosts that found no room.
    skipped: u64,
}

/// What is left of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Profile {
    is_mac: bool,
    /// With which of [`TTLS`] it begins, a bit for each.
    ttls: u8,
    /// Its DSCPs, a bit for each.
    dscps: u64,
    timestamps: bool,
    flow_label: bool,
    /// Its first SYN, or first SYN with ACK if it has no other.
    syn: Option<Syn>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Syn {
    is_answer: bool,
    window: u16,
    mss: u16,
    window_scale: u8,
    options: Vec<Kind>,
    header: u8,
}

impl Profile {
    fn add(&mut self, packet: &Outline) {
        if let Some(class) = TTLS.iter().position(|first| (1..=*first).contains(&packet.ttl)) {
            self.ttls |= 1 << class;
        }
        self.dscps |= 1 << packet.dscp;
        self.flow_label |= packet.flow_label != 0;
        let Some(tcp) = &packet.tcp else { return };
        self.timestamps |= tcp.timestamp.is_some_and(|value| value != 0);
        let is_answer = tcp.is_ack();
        if tcp.is_syn() && self.syn.as_ref().is_none_or(|known| known.is_answer && !is_answer) {
            self.syn = Some(Syn {
                is_answer,
                window: tcp.window,
                mss: tcp.mss,
                window_scale: tcp.window_scale,
                options: tcp.options.clone(),
                header: tcp.header,
            });
        }
    }
}

impl Hosts {
    /// Adds a packet; the number of its host, if it is known and found room.
    pub(super) fn add(&mut self, packet: &Outline) -> Option<u32> {
        let host = packet.host()?;
        let next = self.profiles.len();
        let number = match self.numbers.entry(host) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(_) if next == HOSTS => {
                self.skipped += 1;
                return None;
            }
            Entry::Vacant(new) => {
                let is_mac = matches!(host, Host::Mac(_));
                self.profiles.push(Profile { is_mac, ..Profile::default() });
                *new.insert(next as u32)
            }
        };
        self.profiles[number as usize].add(packet);
        Some(number)
    }

    /// Groups the hosts by what is left of them.
    pub(super) fn finish(self) -> Anonymity {
        let has_address = self.profiles.iter().any(|profile| !profile.is_mac);
        let profiles: Vec<Profile> =
            self.profiles.into_iter().filter(|it| it.is_mac != has_address).collect();
        let groups = counts(&profiles, Profile::clone);
        let mut sizes = BTreeMap::new();
        for size in groups.values() {
            *sizes.entry(*size).or_default() += 1;
        }
        let mut features = features(&profiles);
        features.retain(|feature| feature.values > 1);
        features.sort_by(|a, b| b.bits.total_cmp(&a.bits));
        let by = if has_address { HostsBy::Address } else { HostsBy::Mac };
        Anonymity {
            hosts_by: (!profiles.is_empty()).then_some(by),
            hosts: profiles.len(),
            packets_skipped: self.skipped,
            groups: groups.len(),
            smallest: sizes.keys().next().copied().unwrap_or_default(),
            alone: sizes.get(&1).copied().unwrap_or_default(),
            sizes,
            features,
        }
    }
}

/// How many hosts have each value.
fn counts<V: Eq + Hash>(profiles: &[Profile], of: impl Fn(&Profile) -> V) -> FxHashMap<V, usize> {
    let mut counts = FxHashMap::default();
    for profile in profiles {
        *counts.entry(of(profile)).or_default() += 1;
    }
    counts
}

fn features(profiles: &[Profile]) -> Vec<Feature> {
    fn feature<V: Eq + Hash>(
        profiles: &[Profile],
        name: &'static str,
        policy: &'static [&'static str],
        of: impl Fn(&Profile) -> V,
    ) -> Feature {
        let counts = counts(profiles, of);
        // Shannon's entropy.
        let share = |count: &usize| *count as f64 / profiles.len() as f64;
        let bits = counts.values().map(share).map(|share| -share * share.log2()).sum();
        let alone = counts.values().filter(|count| **count == 1).count();
        Feature { name, values: counts.len(), bits, alone, policy }
    }
    fn of_syn<V>(profile: &Profile, of: impl Fn(&Syn) -> V) -> Option<V> {
        profile.syn.as_ref().map(of)
    }
    let ttl = &[r#""ipv4.ttl" = "remove""#, r#""ipv6.hop_limit" = "remove""#];
    let dscp = &[r#""ipv4.dscp" = "remove""#, r#""ipv6.dscp" = "remove""#];
    let window = &[r#""tcp.window" = "remove""#];
    let mss = &[r#""tcp.mss.*" = "remove""#];
    let scale = &[r#""tcp.window_scale.*" = "remove""#];
    let stamps = &[r#""tcp.timestamps.*" = "remove""#];
    let label = &[r#""ipv6.flow_label" = "remove""#];
    vec![
        feature(profiles, "first TTL", ttl, |it| it.ttls),
        feature(profiles, "DSCP", dscp, |it| it.dscps),
        feature(profiles, "TCP window", window, |it| of_syn(it, |syn| syn.window)),
        feature(profiles, "TCP maximum segment size", mss, |it| of_syn(it, |syn| syn.mss)),
        feature(profiles, "TCP window scale", scale, |it| of_syn(it, |syn| syn.window_scale)),
        feature(profiles, "order of TCP options", OPTIONS, |it| {
            of_syn(it, |syn| syn.options.clone())
        }),
        feature(profiles, "length of the TCP header", &[], |it| of_syn(it, |syn| syn.header)),
        feature(profiles, "who opens connections", FLAGS, |it| of_syn(it, |syn| syn.is_answer)),
        feature(profiles, "TCP timestamps", stamps, |it| it.timestamps),
        feature(profiles, "IPv6 flow label", label, |it| it.flow_label),
    ]
}

const FLAGS: &[&str] = &[r#""tcp.flags" = "remove""#];
/// The lines of a policy that remove TCP's options of a SYN.
pub(super) const OPTIONS: &[&str] = &[
    r#""tcp.mss.*" = "remove""#,
    r#""tcp.window_scale.*" = "remove""#,
    r#""tcp.sack_permitted" = "remove""#,
    r#""tcp.timestamps.*" = "remove""#,
];

/// The names of what distinguishes hosts of the masked capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostsBy {
    /// Their addresses.
    Address,
    /// Their MAC addresses, where no address is left.
    Mac,
}

/// How many hosts of the masked capture look alike.
#[derive(Debug, Serialize)]
pub struct Anonymity {
    /// What distinguishes them; none if neither addresses nor MAC addresses are left.
    pub hosts_by: Option<HostsBy>,
    /// Hosts that send packets.
    pub hosts: usize,
    /// Packets of further hosts, which are too many to be inspected.
    pub packets_skipped: u64,
    /// Groups of hosts that look alike.
    pub groups: usize,
    /// Hosts of the smallest group: k. Zero where there are no hosts.
    pub smallest: usize,
    /// Hosts that stand alone.
    pub alone: usize,
    /// How many groups there are of each size.
    pub sizes: BTreeMap<usize, usize>,
    /// What distinguishes hosts, the strongest first.
    pub features: Vec<Feature>,
}

/// A property of hosts that is left in the masked capture.
#[derive(Debug, Serialize)]
pub struct Feature {
    /// What it is.
    pub name: &'static str,
    /// Different values of it, also none at all.
    pub values: usize,
    /// What knowing it reveals of a host, on average, in bits.
    pub bits: f64,
    /// Hosts that it alone identifies.
    pub alone: usize,
    /// The lines of a policy that remove it; none if it is structure, which is always kept.
    pub policy: &'static [&'static str],
}

impl fmt::Display for Anonymity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.hosts_by {
            None => return f.write_str("no address is left: hosts cannot be distinguished"),
            Some(HostsBy::Address) => "by address",
            Some(HostsBy::Mac) => "by MAC address, no other is left",
        };
        let Self { groups, smallest, alone, .. } = self;
        let hosts = counted(self.hosts, "host", "hosts");
        write!(
            f,
            "{hosts} {what}; groups that look alike: {groups}, the smallest of {smallest} (k); \
             alone: {alone}"
        )?;
        if self.packets_skipped > 0 {
            let packets = counted(self.packets_skipped, "packet", "packets");
            write!(f, "; not inspected: {packets} of more hosts")?;
        }
        let named: Vec<String> = self.features.iter().take(NAMED).map(Feature::to_string).collect();
        if !named.is_empty() {
            write!(f, "\nmost identifying: {}", named.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = counted(self.values, "value", "values");
        write!(f, "{} ({values}, {:.1} bits)", self.name, self.bits)
    }
}
