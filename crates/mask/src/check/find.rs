//! Looks for secrets in masked packets.

use super::{
    names::Search,
    secrets::{RUN, Secrets},
    text,
};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Ipv4,
    Ipv6,
    Mac,
    Identifier,
    Name,
    Payload,
}

/// How it appears in the masked capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    /// As it was.
    Plain,
    /// Its bytes in reverse order.
    Reversed,
    /// Moved by one to seven bits.
    Shifted,
    /// As hexadecimal digits.
    Hexadecimal,
    /// As people write it.
    Text,
    /// As DNS writes a name: each label behind its length.
    Dns,
}

/// How often something was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    what: What,
    form: Form,
    /// How often it was found.
    pub count: u64,
    /// How many are to be expected by chance: so often others of the same networks were found, or would
    /// be if the bytes were random.
    pub by_chance: f64,
    /// The first packets in which it was found, counted from 1.
    pub packets: Vec<u64>,
    /// How often in none: in comments and other blocks of the file.
    pub outside: u64,
}

impl Finding {
    /// Whether chance gives so many less than once in 10,000 times (a Poisson distribution).
    pub fn is_leak(&self) -> bool {
        let mean = self.by_chance;
        if self.count > 100 {
            return self.count as f64 > mean + 6.0 * mean.sqrt();
        }
        let (mut term, mut below) = ((-mean).exp(), 0.0);
        for number in 1..=self.count {
            below += term;
            term *= mean / number as f64;
        }
        1.0 - below < 1.0 / RARE
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.what {
            What::Ipv4 => "IPv4 addresses",
            What::Ipv6 => "IPv6 addresses",
            What::Mac => "MAC addresses",
            What::Identifier => "interface identifiers made of MAC addresses",
            What::Name => "names of hosts",
            What::Payload => "runs of payload",
        };
        let form = match self.form {
            Form::Plain => "as they were",
            Form::Reversed => "with their bytes reversed",
            Form::Shifted => "moved by some bits",
            Form::Hexadecimal => "as hexadecimal digits",
            Form::Text => "as text",
            Form::Dns => "as DNS writes them",
        };
        write!(f, "{what} {form}: {}, by chance {:.2}", self.count, self.by_chance)?;
        if !self.packets.is_empty() {
            let first: Vec<String> = self.packets.iter().map(u64::to_string).collect();
            let packets = if first.len() == 1 { "packet" } else { "packets" };
            write!(f, "; first in {packets} {}", first.join(", "))?;
        }
        if self.outside > 0 {
            write!(f, "; {} outside of packets", self.outside)?;
        }
        Ok(())
    }
}

/// So seldom is chance believed.
const RARE: f64 = 10_000.0;
/// Packets that are named of each finding.
const NAMED: usize = 5;

/// Where one kind of finding was.
#[derive(Debug, Default)]
struct Seen {
    count: u64,
    packets: Vec<u64>,
    outside: u64,
}

/// What is found while packets are inspected.
#[derive(Debug)]
pub(super) struct Findings<'a> {
    secrets: &'a Secrets,
    reversed: Reversed,
    names: Option<Search>,
    found: BTreeMap<(What, Form), Seen>,
    /// Addresses of IPv4 that are not in the original, beside those that are; and these reversed.
    decoys: (FxHashSet<u32>, FxHashSet<u32>),
    /// How often a decoy was found.
    by_chance: BTreeMap<Form, u64>,
    /// The packet that is inspected, if it is one.
    packet: Option<u64>,
    /// Offsets at which four bytes could begin.
    positions: u64,
    room: Vec<u8>,
}

/// The secrets with their bytes in reverse order.
#[derive(Debug)]
struct Reversed(Secrets);

impl Reversed {
    fn new(secrets: &Secrets) -> Self {
        Self(Secrets {
            ipv4: secrets.ipv4.iter().map(|address| address.swap_bytes()).collect(),
            ipv6: secrets.ipv6.iter().map(|address| address.swap_bytes()).collect(),
            macs: secrets.macs.iter().map(|mac| backwards(*mac)).collect(),
            identifiers: secrets.identifiers.iter().map(|it| backwards(*it)).collect(),
            runs: secrets.runs.iter().map(|run| backwards(*run)).collect(),
            ..Secrets::default()
        })
    }
}

fn backwards<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}

impl<'a> Findings<'a> {
    /// To look for these.
    pub(super) fn new(secrets: &'a Secrets) -> Self {
        Self {
            secrets,
            reversed: Reversed::new(secrets),
            names: Search::new(&secrets.names),
            found: BTreeMap::new(),
            decoys: decoys(secrets),
            by_chance: BTreeMap::new(),
            packet: None,
            positions: 0,
            room: Vec::new(),
        }
    }

    /// Looks at a packet, by its number, or at other bytes of the file.
    pub(super) fn look(&mut self, number: Option<u64>, packet: &[u8]) {
        self.packet = number;
        self.positions += (packet.len() + 1).saturating_sub(4) as u64;
        self.bytes(packet, Form::Plain);
        self.bytes(packet, Form::Reversed);
        let mut shifted = std::mem::take(&mut self.room);
        for bits in 1..8 {
            shifted.clear();
            let pairs = packet.windows(2).map(|pair| pair[0] << bits | pair[1] >> (8 - bits));
            shifted.extend(pairs);
            self.bytes(&shifted, Form::Shifted);
        }
        self.room = shifted;
        self.text(packet);
    }

    /// Looks for the bytes of secrets.
    fn bytes(&mut self, bytes: &[u8], form: Form) {
        let reversed = form == Form::Reversed;
        let (mut hits, mut decoys) = (Vec::new(), 0);
        {
            let secrets = if reversed { &self.reversed.0 } else { self.secrets };
            let decoy_set = if reversed { &self.decoys.1 } else { &self.decoys.0 };
            let mut in_set = |what, hit: bool| {
                if hit {
                    hits.push(what);
                }
            };
            if !secrets.ipv4.is_empty() {
                for window in windows(bytes) {
                    let address = u32::from_be_bytes(window);
                    in_set(What::Ipv4, secrets.ipv4.contains(&address));
                    decoys += u64::from(decoy_set.contains(&address));
                }
            }
            if !secrets.macs.is_empty() {
                for window in windows(bytes) {
                    in_set(What::Mac, secrets.macs.contains(&window));
                }
                for window in windows(bytes) {
                    in_set(What::Identifier, secrets.identifiers.contains(&window));
                }
            }
            if !secrets.runs.is_empty() {
                for window in windows::<RUN>(bytes) {
                    in_set(What::Payload, secrets.runs.contains(&window));
                }
            }
            if !secrets.ipv6.is_empty() {
                for window in windows(bytes) {
                    in_set(What::Ipv6, secrets.ipv6.contains(&u128::from_be_bytes(window)));
                }
            }
        }
        hits.into_iter().for_each(|what| self.found(what, form));
        let names = self.names.iter().flat_map(|names| names.find(bytes, reversed));
        let names: Vec<bool> = names.collect();
        for as_dns in names {
            let form = match form {
                Form::Plain if as_dns => Form::Dns,
                Form::Plain => Form::Text,
                other => other,
            };
            self.found(What::Name, form);
        }
        *self.by_chance.entry(form).or_default() += decoys;
    }

    /// Looks for what people write: runs of the characters that addresses have.
    fn text(&mut self, bytes: &[u8]) {
        let is_part = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':' | b'-');
        for run in bytes.split(|byte| !is_part(byte)).filter(|run| run.len() >= 7) {
            let Ok(text) = std::str::from_utf8(run) else { continue };
            for _ in text::ipv4(text).filter(|it| self.secrets.ipv4.contains(it)) {
                self.found(What::Ipv4, Form::Text);
            }
            for address in text::ipv6(text) {
                if self.secrets.ipv6.contains(&address) {
                    self.found(What::Ipv6, Form::Text);
                }
                if self.secrets.identifiers.contains(&(address as u64).to_be_bytes()) {
                    self.found(What::Identifier, Form::Text);
                }
            }
            for _ in text::macs(text).filter(|it| self.secrets.macs.contains(it)) {
                self.found(What::Mac, Form::Text);
            }
            for digits in run.split(|byte| !byte.is_ascii_hexdigit()).filter(|run| run.len() >= 8) {
                for begin in [0, 1] {
                    let pairs = digits[begin..].as_chunks::<2>().0;
                    let decoded: Vec<u8> =
                        pairs.iter().map(|[a, b]| digit(*a) << 4 | digit(*b)).collect();
                    self.bytes(&decoded, Form::Hexadecimal);
                }
            }
        }
    }

    fn found(&mut self, what: What, form: Form) {
        let seen = self.found.entry((what, form)).or_default();
        seen.count += 1;
        match self.packet {
            None => seen.outside += 1,
            Some(packet) if seen.packets.len() < NAMED && seen.packets.last() != Some(&packet) => {
                seen.packets.push(packet);
            }
            Some(_) => {}
        }
    }

    /// What was found in all packets.
    pub(super) fn finish(self) -> Vec<Finding> {
        // As many decoys as addresses, or a few less where a network is full.
        let scale = self.secrets.ipv4.len() as f64 / self.decoys.0.len().max(1) as f64;
        let finding = |((what, form), Seen { count, packets, outside })| {
            let decoys = self.by_chance.get(&form).copied().unwrap_or_default() as f64 * scale;
            // What random bytes would give: decoys are too few to show what is rare.
            let looks = match form {
                Form::Plain | Form::Reversed => 1.0,
                Form::Shifted => 7.0,
                Form::Hexadecimal | Form::Text | Form::Dns => 0.0,
            };
            let random =
                self.secrets.ipv4.len() as f64 * self.positions as f64 * looks / 2f64.powi(32);
            let by_chance = match what {
                What::Ipv4 => decoys.max(random),
                What::Name => {
                    let looks = if form == Form::Shifted { 7.0 } else { 1.0 };
                    let each = self.names.as_ref().map_or(0.0, |names| names.by_chance);
                    each * self.positions as f64 * looks
                }
                What::Ipv6 | What::Mac | What::Identifier | What::Payload => 0.0,
            };
            Finding { what, form, count, by_chance, packets, outside }
        };
        self.found.into_iter().map(finding).collect()
    }
}

/// For each address of IPv4 one of its network that the original does not have: it is found as often as
/// chance finds the address.
fn decoys(secrets: &Secrets) -> (FxHashSet<u32>, FxHashSet<u32>) {
    let beside = |address: &u32| {
        (1..=255).map(|change| address ^ change).find(|other| !secrets.ipv4.contains(other))
    };
    let decoys: FxHashSet<u32> = secrets.ipv4.iter().filter_map(beside).collect();
    let reversed = decoys.iter().map(|decoy| decoy.swap_bytes()).collect();
    (decoys, reversed)
}

fn windows<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.windows(N).filter_map(|window| window.try_into().ok())
}

fn digit(byte: u8) -> u8 {
    char::from(byte).to_digit(16).unwrap_or_default() as u8
}
