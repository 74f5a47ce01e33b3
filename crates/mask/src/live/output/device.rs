//! A TAP device: what is written to it, tcpdump, Suricata and Zeek see on an interface.
//!
//! The kernel receives these packets, too, and must make nothing of them. So the interface has no IPv6 and no
//! ARP, and takes no IPv4 packet whose source is not behind it (RFC 3704, strict reverse path), which nothing is
//! without an address and a route.

use super::{OutputError, Packet, Statistics};
use crate::machine::Link;
use datapath::tap::{HEADER, LONGEST, MTU, Tap, put_up};
use nix::libc;
use std::{
    fs,
    io::{self, IoSlice},
};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// What an Ethernet header says that an IP packet is (RFC 894, RFC 2464).
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// A TAP device that packets are written to.
#[derive(Debug)]
pub struct Device {
    tap: Tap,
    link: Link,
    name: String,
    statistics: Statistics,
}

impl Device {
    /// Makes the device, or takes over the one that is there and that nobody has open, and puts it up. It goes
    /// with this, unless it had been made to stay.
    ///
    /// # Errors
    /// When the kernel refuses, mostly for want of CAP_NET_ADMIN.
    pub fn open(link: Link, name: &str) -> Result<Self, OutputError> {
        if name.is_empty() || name.len() > 15 || name.contains(['/', '%', ' ']) {
            return Err(OutputError::Name(name.to_owned()));
        }
        let tap = Tap::open(name)?;
        quieten(name)
            .and_then(|()| put_up(name, MTU))
            .map_err(|source| OutputError::Device { name: name.to_owned(), source })?;
        Ok(Self { tap, link, name: name.to_owned(), statistics: Statistics::default() })
    }

    pub(super) fn packet(&mut self, packet: &Packet<'_>) -> Result<(), OutputError> {
        let mut before = [0; ETHERNET];
        let is_v6 = packet.bytes.first().is_some_and(|byte| byte >> 4 == 6);
        before[12..].copy_from_slice(if is_v6 { &IPV6 } else { &IPV4 });
        let (before, least) = match self.link {
            Link::Ethernet => (&[][..], ETHERNET),
            Link::Ip => (&before[..], 1),
        };
        if packet.bytes.len() < least {
            self.statistics.short += 1;
            return Ok(());
        }
        if before.len() + packet.bytes.len() > LONGEST - HEADER {
            self.statistics.long += 1;
            return Ok(());
        }
        // No checksum is open and nothing is to be cut.
        let frame = [&[0; HEADER], before, packet.bytes].map(IoSlice::new);
        match self.tap.send(&frame) {
            Ok(()) => self.statistics.count(packet.bytes.len()),
            Err(source) if source.raw_os_error() == Some(libc::EBADFD) => {
                return Err(OutputError::Device { name: self.name.clone(), source });
            }
            Err(_) => self.statistics.refused += 1,
        }
        Ok(())
    }

    pub(super) fn statistics(&self) -> Statistics {
        self.statistics
    }
}

/// Has the kernel make nothing of what it receives there, and send nothing of its own.
fn quieten(name: &str) -> io::Result<()> {
    // Without IPv6 in the kernel there is nothing to switch off.
    match fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        result => result?,
    }
    fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "1")
}
