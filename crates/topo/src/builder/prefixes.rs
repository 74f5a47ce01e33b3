//! All prefixes, each with the reports about it and the group that readers know it by.

use super::reports::SetId;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rustc_hash::FxHashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What is known of a prefix.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The reports about it.
    pub(super) set: SetId,
    /// Its group in the last snapshot; 0 if it had none.
    pub(super) group: u32,
    /// Whether it changed since then.
    pub(super) dirty: bool,
}

/// An IPv4 prefix in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key4(u64);

/// An IPv6 prefix without the alignment of 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key6(u64, u64, u8);

impl Key4 {
    fn new(prefix: Ipv4Net) -> Self {
        Self(u64::from(prefix.addr().to_bits()) << 8 | u64::from(prefix.prefix_len()))
    }

    fn prefix(self) -> IpNet {
        let address = Ipv4Addr::from_bits((self.0 >> 8) as u32);
        Ipv4Net::new_assert(address, self.0 as u8).into()
    }
}

impl Key6 {
    fn new(prefix: Ipv6Net) -> Self {
        let bits = prefix.addr().to_bits();
        Self((bits >> 64) as u64, bits as u64, prefix.prefix_len())
    }

    fn prefix(self) -> IpNet {
        let address = Ipv6Addr::from_bits(u128::from(self.0) << 64 | u128::from(self.1));
        Ipv6Net::new_assert(address, self.2).into()
    }
}

/// All prefixes. Arguments have no host bits.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    v4: FxHashMap<Key4, Known>,
    v6: FxHashMap<Key6, Known>,
}

impl Prefixes {
    pub(super) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    pub(super) fn get(&self, prefix: IpNet) -> Option<&Known> {
        match prefix {
            IpNet::V4(prefix) => self.v4.get(&Key4::new(prefix)),
            IpNet::V6(prefix) => self.v6.get(&Key6::new(prefix)),
        }
    }

    pub(super) fn get_mut(&mut self, prefix: IpNet) -> Option<&mut Known> {
        match prefix {
            IpNet::V4(prefix) => self.v4.get_mut(&Key4::new(prefix)),
            IpNet::V6(prefix) => self.v6.get_mut(&Key6::new(prefix)),
        }
    }

    /// What is known of a prefix, to be changed; nothing at first.
    pub(super) fn entry(&mut self, prefix: IpNet) -> &mut Known {
        match prefix {
            IpNet::V4(prefix) => self.v4.entry(Key4::new(prefix)).or_default(),
            IpNet::V6(prefix) => self.v6.entry(Key6::new(prefix)).or_default(),
        }
    }

    pub(super) fn remove(&mut self, prefix: IpNet) {
        match prefix {
            IpNet::V4(prefix) => self.v4.remove(&Key4::new(prefix)),
            IpNet::V6(prefix) => self.v6.remove(&Key6::new(prefix)),
        };
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (IpNet, &Known)> {
        let v4 = self.v4.iter().map(|(key, known)| (key.prefix(), known));
        v4.chain(self.v6.iter().map(|(key, known)| (key.prefix(), known)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (IpNet, &mut Known)> {
        let v4 = self.v4.iter_mut().map(|(key, known)| (key.prefix(), known));
        v4.chain(self.v6.iter_mut().map(|(key, known)| (key.prefix(), known)))
    }

    /// Removes prefixes without reports.
    pub(super) fn clean(&mut self) {
        self.v4.retain(|_, known| known.set != 0);
        self.v6.retain(|_, known| known.set != 0);
    }

    /// Memory in bytes: a hash table has a byte more for each slot, and an eighth of them is free.
    pub(super) fn bytes(&self) -> usize {
        let slots = |capacity: usize| capacity * 8 / 7;
        slots(self.v4.capacity()) * (size_of::<(Key4, Known)>() + 1)
            + slots(self.v6.capacity()) * (size_of::<(Key6, Known)>() + 1)
    }
}
