//! Settings of the responder, and the struct that the program reads.

use super::skeleton::types;
use super::{Assigned, LedgerError};
use crate::limit::{Limit, LimitError, Rate, SourceLimit, mask4, mask6, rate, source_rates};
use crate::load::random;
use crate::slots;
use ipnet::IpNet;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that one program answers for at most, link addresses for the probe included.
pub const MAX_ADDRESSES: usize = 64;

/// Prefixes in the allow and deny lists together, at most.
pub const MAX_LIST: usize = 65_536;

/// How an answer is routed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReturnPath {
    /// Back to the MAC address that the request came from.
    #[default]
    Mac,
    /// By the kernel's routing table; where that has no answer the kernel gets the request.
    Fib,
}

/// How fragments of ICMP messages are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragments {
    /// They go to the kernel, first and later ones, which puts them together and answers.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
}

/// All settings of the program. The default answers for nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Service addresses, both families.
    pub addresses: Vec<IpAddr>,
    /// The interfaces' own addresses, at which only the health probe is answered: an echo request
    /// from the address to itself with identifier `probe_id`.
    pub probes: Vec<IpAddr>,
    /// The probe's ICMP identifier; a secret, drawn again at each start.
    pub probe_id: u16,
    /// How answers are routed.
    pub return_path: ReturnPath,
    /// How fragments are treated.
    pub fragments: Fragments,
    /// Drop requests with wrong checksums. Off, a wrong ICMP checksum is answered with a wrong one.
    pub verify: bool,
    /// When not empty, only these sources are answered.
    pub allow: Vec<IpNet>,
    /// These sources are not answered, also where `allow` covers them.
    pub deny: Vec<IpNet>,
    /// The limit of each source prefix; also how wide prefixes in [`super::EchoProgram::top`] are.
    pub source: SourceLimit,
    /// The limit of the whole program.
    pub node: Limit,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            probes: Vec::new(),
            probe_id: 0,
            return_path: ReturnPath::Mac,
            fragments: Fragments::Pass,
            verify: true,
            allow: Vec::new(),
            deny: Vec::new(),
            source: SourceLimit {
                limit: Limit { rate: 100, burst: 200 },
                prefix4: 24,
                prefix6: 56,
            },
            node: Limit::NONE,
        }
    }
}

/// Settings that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum ConfigureError {
    /// Too many addresses.
    #[error(
        "{0} addresses (service and link addresses together); at most {MAX_ADDRESSES} of a program can be answered for"
    )]
    TooManyAddresses(usize),
    /// An address is given twice.
    #[error(
        "the address {0} is given twice; give each service address once, and none that is also an interface's own"
    )]
    Twice(IpAddr),
    /// An address that cannot be that of a service.
    #[error("{0} cannot be a service address: it is not a unicast address that others can reach")]
    NotUnicast(IpAddr),
    /// Too many prefixes.
    #[error("{0} prefixes in allow and deny together; at most {MAX_LIST}")]
    TooManyPrefixes(usize),
    /// A limit that cannot be kept.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// No table of slots was found for the addresses.
    #[error("no perfect hash function for the addresses was found; try again")]
    NoSlots,
    /// No random numbers.
    #[error("cannot read /dev/urandom: {0}")]
    Random(std::io::Error),
    /// The counters of a row that is to be used could not be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The kernel refused an operation on a map.
    #[error("cannot {what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        source: libbpf_rs::Error,
    },
}

impl Settings {
    /// Whether these can be applied where the limits' clock steps `tick_ns`.
    pub fn check(&self, tick_ns: u64) -> Result<(), ConfigureError> {
        let all = self.addresses.len() + self.probes.len();
        if all > MAX_ADDRESSES {
            return Err(ConfigureError::TooManyAddresses(all));
        }
        let mut seen = HashSet::new();
        for address in self.addresses.iter().chain(&self.probes) {
            if is_bogon(*address) {
                return Err(ConfigureError::NotUnicast(*address));
            }
            if !seen.insert(address) {
                return Err(ConfigureError::Twice(*address));
            }
        }
        let prefixes = self.allow.len() + self.deny.len();
        if prefixes > MAX_LIST {
            return Err(ConfigureError::TooManyPrefixes(prefixes));
        }
        self.source.check(tick_ns)?;
        self.node.check(tick_ns)?;
        Ok(())
    }

    /// The struct that the program reads.
    pub(super) fn compile(
        &self,
        rows: &HashMap<IpAddr, Assigned>,
        generation: u32,
    ) -> Result<Box<types::echo_config>, ConfigureError> {
        let mut config = Box::<types::echo_config>::default();
        config.slot4.iter_mut().for_each(|slot| slot.at = types::echo_at::ECHO_NOT_OURS.0);
        config.slot6.iter_mut().for_each(|slot| slot.at = types::echo_at::ECHO_NOT_OURS.0.into());
        config.flags = self.flags();
        config.probe_id = self.probe_id.to_be();
        config.generation = generation;
        config.mask4 = mask4(self.source.prefix4);
        config.mask6 = mask6(self.source.prefix6);
        let put =
            |rate: Rate| types::limit_rate { interval: rate.interval, tolerance: rate.tolerance };
        config.source = source_rates(self.source.limit).map(put);
        config.node = put(rate(self.node.rate, self.node.burst));

        let at = |address: &IpAddr| {
            let first = types::echo_rows::ECHO_ROW_FIRST.0;
            rows.get(address).map_or(types::echo_at::ECHO_PROBED.0, |assigned| {
                (assigned.row - first) * size_of::<types::echo_row>() as u32
            })
        };
        let (mut four, mut six) = (Vec::new(), Vec::new());
        for address in self.addresses.iter().chain(&self.probes) {
            match address {
                IpAddr::V4(v4) => four.push((words4(*v4), at(address))),
                IpAddr::V6(v6) => six.push((words6(*v6), at(address))),
            }
        }
        // The fast path of the program verifies, knows no lists and no routes.
        let short = self.verify && !self.has_lists() && self.return_path == ReturnPath::Mac;
        let path = if short { 0 } else { types::echo_at::ECHO_ALL_LONG.0 };
        let seed = random().map_err(ConfigureError::Random)?;
        let keys: Vec<_> = four.iter().map(|(key, _)| *key).collect();
        config.hash4 = slots::search4(&keys, seed).ok_or(ConfigureError::NoSlots)?;
        for (address, at) in four {
            let slot = &mut config.slot4[slots::slot4(address, config.hash4)];
            (slot.address, slot.at) = (address as u32, at + path);
        }
        let keys: Vec<_> = six.iter().map(|(key, _)| *key).collect();
        config.hash6 = slots::search6(&keys, seed).ok_or(ConfigureError::NoSlots)?;
        for (address, at) in six {
            let slot = &mut config.slot6[slots::slot6(address, config.hash6)];
            (slot.address, slot.at) = (address, at.into());
        }
        Ok(config)
    }

    fn has_lists(&self) -> bool {
        !self.allow.is_empty() || !self.deny.is_empty()
    }

    fn flags(&self) -> u32 {
        use types::echo_flag as flag;
        [
            (self.verify, flag::ECHO_VERIFY),
            (self.return_path == ReturnPath::Fib, flag::ECHO_FIB),
            (self.fragments == Fragments::Drop, flag::ECHO_DROP_FRAGMENTS),
            (self.has_lists(), flag::ECHO_LISTS),
            (!self.allow.is_empty(), flag::ECHO_REFUSE_UNLISTED),
            (self.source.limit.rate != 0, flag::ECHO_SOURCE_RATE),
            (self.node.rate != 0, flag::ECHO_NODE_RATE),
        ]
        .into_iter()
        .filter(|(on, _)| *on)
        .fold(0, |all, (_, one)| all | one.0)
    }
}

/// Sources that are never answered, as `is_bogon4` and `is_bogon6` in bpf/include/parse.h.
fn is_bogon(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => matches!(v4.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(v6) => v6.segments()[..2] == [0, 0] || v6.octets()[0] == 0xff,
    }
}

/// An IPv4 address as the four bytes on the wire, read as an integer where they lie.
fn words4(address: Ipv4Addr) -> u64 {
    u32::from_ne_bytes(address.octets()).into()
}

/// An IPv6 address as two such integers.
fn words6(address: Ipv6Addr) -> [u64; 2] {
    let value = address.to_bits();
    [((value >> 64) as u64).to_be(), (value as u64).to_be()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 4_000_000;

    fn refused(settings: Settings) -> String {
        settings.check(TICK).expect_err("must be refused").to_string()
    }

    #[test]
    fn refuses_what_cannot_work() {
        let good = Settings {
            addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            ..Settings::default()
        };
        good.check(TICK).unwrap();
        let address = |text: &str| vec![text.parse().unwrap()];
        for bogon in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::1", "ff02::1"] {
            let settings = Settings { addresses: address(bogon), ..good.clone() };
            assert!(refused(settings).contains("not a unicast address"), "{bogon}");
        }
        let settings = Settings { probes: address("192.0.2.1"), ..good.clone() };
        assert!(refused(settings).contains("given twice"));
        let many = (0..65).map(|i| IpAddr::V4(Ipv4Addr::new(10, 0, 0, i))).collect();
        assert!(refused(Settings { addresses: many, ..good.clone() }).starts_with("65 addresses"));
        let source = SourceLimit { prefix4: 33, ..good.source };
        assert!(refused(Settings { source, ..good.clone() }).contains("must be 1 to 32"));
        let node = Limit { rate: 1_000_000, burst: 3_999 };
        assert!(refused(Settings { node, ..good.clone() }).contains("at least 4000"));
        let node = Limit { rate: 1, burst: u64::MAX };
        assert!(refused(Settings { node, ..good }).contains("out of range"));
    }
}
