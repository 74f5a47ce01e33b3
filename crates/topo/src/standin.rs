//! A longest-prefix match by one ordered map.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr},
};

/// From an address to the value of the longest prefix that covers it; 0 where there is none.
#[derive(Clone, Debug, Default)]
pub struct Table {
    routes: BTreeMap<IpNet, u32>,
}

impl Table {
    /// A table of these routes; the last of equal prefixes counts.
    pub fn build<I: IntoIterator<Item = (IpNet, u32)>>(routes: I) -> Self {
        Self { routes: routes.into_iter().map(|(prefix, value)| (prefix.trunc(), value)).collect() }
    }

    /// The value for an IPv4 address in host byte order.
    pub fn lookup4(&self, address: u32) -> u32 {
        self.covering(Ipv4Net::from(Ipv4Addr::from(address)).into())
    }

    /// The value for an IPv6 address.
    pub fn lookup6(&self, address: u128) -> u32 {
        self.covering(Ipv6Net::from(Ipv6Addr::from(address)).into())
    }

    /// Values for many IPv4 addresses at a time.
    pub fn lookup4_batch(&self, addresses: &[u32], values: &mut [u32]) {
        for (address, value) in addresses.iter().zip(values) {
            *value = self.lookup4(*address);
        }
    }

    /// Values for many IPv6 addresses at a time.
    pub fn lookup6_batch(&self, addresses: &[u128], values: &mut [u32]) {
        for (address, value) in addresses.iter().zip(values) {
            *value = self.lookup6(*address);
        }
    }

    /// The value of the longest prefix that covers all of this one.
    pub fn covering(&self, prefix: IpNet) -> u32 {
        let mut next = Some(prefix);
        while let Some(prefix) = next {
            if let Some(value) = self.routes.get(&prefix.trunc()) {
                return *value;
            }
            next = prefix.supernet();
        }
        0
    }

    /// All routes in order of address, then length.
    pub fn iter(&self) -> impl Iterator<Item = (IpNet, u32)> {
        self.routes.iter().map(|(prefix, value)| (*prefix, *value))
    }

    /// Memory in bytes, about.
    pub fn bytes(&self) -> usize {
        self.routes.len() * 24
    }
}
