//! The allow and deny lists, in one trie of longest-prefix matches.
//!
//! A source is refused if a deny prefix covers it, or if there are allow prefixes and none covers it.
//! Which listed prefixes cover an address depends only on the longest one that does, so each listed
//! prefix carries the answer and the program makes one look-up for both lists. Entries carry the
//! generation of their configuration: a new set is written beside the old one, comes in force with
//! the configuration, and only then the old one is removed.

use super::skeleton::types;
use super::{ConfigureError, EchoProgram, Settings};
use ipnet::IpNet;
use libbpf_rs::{ErrorKind, MapCore as _, MapFlags};
use std::collections::BTreeMap;

impl EchoProgram {
    pub(super) fn write_lists(
        &self,
        generation: u32,
        settings: &Settings,
    ) -> Result<(), ConfigureError> {
        // What a failed attempt may have left.
        self.clear_lists(generation)?;
        for (prefix, refused) in compile(&settings.allow, &settings.deny) {
            self.skeleton
                .maps
                .echo_lists
                .update(&key(generation, prefix), &u32::from(refused).to_ne_bytes(), MapFlags::ANY)
                .map_err(|source| ConfigureError::Kernel {
                    what: "write the allow and deny lists",
                    source,
                })?;
        }
        Ok(())
    }

    pub(super) fn clear_lists(&self, generation: u32) -> Result<(), ConfigureError> {
        let lists = &self.skeleton.maps.echo_lists;
        let set = |key: &Vec<u8>| key.get(4).copied().map_or(u32::MAX, u32::from) / 2;
        let stale: Vec<_> = lists.keys().filter(|key| set(key) == generation).collect();
        for key in stale {
            match lists.delete(&key) {
                Err(source) if source.kind() != ErrorKind::NotFound => {
                    let what = "clear the allow and deny lists";
                    return Err(ConfigureError::Kernel { what, source });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The bytes of `struct echo_list_key`.
fn key(generation: u32, prefix: IpNet) -> [u8; size_of::<types::echo_list_key>()] {
    let mut key = [0; size_of::<types::echo_list_key>()];
    let length = 32 + u32::from(prefix.prefix_len());
    key[..4].copy_from_slice(&length.to_ne_bytes());
    // Generation and family are the low byte, wherever that lies: both are compared whole.
    match prefix {
        IpNet::V4(net) => {
            key[4] = (generation * 2) as u8;
            key[8..12].copy_from_slice(&net.network().octets());
        }
        IpNet::V6(net) => {
            key[4] = (generation * 2 + 1) as u8;
            key[8..24].copy_from_slice(&net.network().octets());
        }
    }
    key
}

/// Every listed prefix, and whether sources for which it is the longest match are refused.
fn compile(allow: &[IpNet], deny: &[IpNet]) -> BTreeMap<IpNet, bool> {
    let mut listed: BTreeMap<IpNet, (bool, bool)> = BTreeMap::new();
    for prefix in allow {
        listed.entry(prefix.trunc()).or_default().0 = true;
    }
    for prefix in deny {
        listed.entry(prefix.trunc()).or_default().1 = true;
    }
    // In this order a prefix comes after all that cover it, and those are on the stack.
    let mut covering: Vec<(IpNet, (bool, bool))> = Vec::new();
    let mut refused = BTreeMap::new();
    for (prefix, (allowed, denied)) in listed {
        while covering.last().is_some_and(|(outer, _)| !outer.contains(&prefix)) {
            covering.pop();
        }
        let (outer_allowed, outer_denied) =
            covering.last().map_or((false, false), |(_, both)| *both);
        let both = (allowed || outer_allowed, denied || outer_denied);
        covering.push((prefix, both));
        refused.insert(prefix, both.1 || (!allow.is_empty() && !both.0));
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn refuses(table: &BTreeMap<IpNet, bool>, allow: &[IpNet], address: IpAddr) -> bool {
        table
            .iter()
            .filter(|(prefix, _)| prefix.contains(&address))
            .max_by_key(|(prefix, _)| prefix.prefix_len())
            .map_or(!allow.is_empty(), |(_, refused)| *refused)
    }

    #[test]
    fn one_lookup_says_what_two_lists_say() {
        // All pairs of lists out of these, tried on addresses in and between them.
        let prefixes: Vec<IpNet> =
            ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32", "11.0.0.0/8"]
                .map(|text| text.parse().unwrap())
                .into();
        let subset = |bits: usize| -> Vec<IpNet> {
            (0..5).filter(|i| bits >> i & 1 == 1).map(|i| prefixes[i]).collect()
        };
        for bits in 0..1024 {
            let (allow, deny) = (subset(bits & 31), subset(bits >> 5));
            let table = compile(&allow, &deny);
            for octets in
                [[10, 1, 2, 3], [10, 1, 2, 4], [10, 1, 3, 1], [10, 2, 0, 1], [11, 0, 0, 1], [9; 4]]
            {
                let address = IpAddr::V4(Ipv4Addr::from(octets));
                let plain = deny.iter().any(|prefix| prefix.contains(&address))
                    || (!allow.is_empty() && !allow.iter().any(|p| p.contains(&address)));
                assert_eq!(refuses(&table, &allow, address), plain, "{address} {allow:?} {deny:?}");
            }
        }
    }
}
