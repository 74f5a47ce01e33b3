//! Which addresses are on which link.

use ipnet::IpNet;
use nix::{ifaddrs::getifaddrs, net::if_::if_nametoindex, sys::socket::SockaddrStorage};
use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

/// How long the list is good.
const FRESH: Duration = Duration::from_secs(1);

/// The networks on the links of this host.
#[derive(Debug, Default)]
pub(super) struct Links {
    networks: Vec<(u32, IpNet)>,
    read: Option<Instant>,
}

impl Links {
    /// Whether an address is on the link of the interface with this number. Reads the list anew once a second.
    pub(super) fn has(&mut self, interface: u32, address: IpAddr) -> bool {
        if self.read.is_none_or(|read| read.elapsed() >= FRESH) {
            self.networks = networks();
            self.read = Some(Instant::now());
        }
        self.networks
            .iter()
            .any(|(number, network)| *number == interface && network.contains(&address))
    }
}

/// The network of each address of each interface; of a point-to-point address the other end.
fn networks() -> Vec<(u32, IpNet)> {
    let all = getifaddrs().into_iter().flatten();
    all.filter_map(|entry| {
        let number = if_nametoindex(entry.interface_name.as_str()).ok()?;
        let mask = ip(&entry.netmask?)?;
        let own = ip(&entry.address?)?;
        let length = ipnet::ip_mask_to_prefix(mask).ok()?;
        let host = length == if own.is_ipv4() { 32 } else { 128 };
        let other = entry.destination.as_ref().and_then(ip).filter(|_| host);
        Some((number, IpNet::new(other.unwrap_or(own), length).ok()?.trunc()))
    })
    .collect()
}

/// The address of IP, if it is one.
pub(super) fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    four.or(address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}
