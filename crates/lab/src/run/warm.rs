//! Keeps the kernel's path to hosts warm.
//!
//! The code and data that a packet takes through the kernel leave the caches within milliseconds, and on
//! a shared machine sooner: a host received a packet 1 microsecond after the write to its TAP device began
//! when another had gone before it, but 16 when none had for 10 ms. So while the thread that carries
//! packets spins, it pings, once a millisecond, a namespace that nobody sees, through a TAP device like
//! those of the hosts: 3 microseconds after 10 ms, for 1 % of the thread's time (decision 130).

use super::RunError;
use crate::{
    Nanos,
    host::{self, HostError, Interface},
};
use datapath::tap::{HEADER, Tap};
use ipnet::IpNet;
use std::{
    io::{IoSlice, IoSliceMut},
    net::{IpAddr, Ipv4Addr},
};
use wire::{Mac, echo_frame::EchoFrame};

/// Between two pings.
const PERIOD: Nanos = Nanos(1_000_000);
/// The most that a ping takes.
pub(super) const TAKES: Nanos = Nanos(50_000);
/// Most frames that are taken after a ping.
const REPLIES: usize = 16;
/// The interface in the namespace.
const NAME: &str = "warm";
/// Addresses on its link: the namespace's and ours, documentation's (RFC 5737).
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
const THERE_MAC: Mac = Mac([0x02, b'n', b'i', b'w', 0, 1]);
const HERE_MAC: Mac = Mac([0x02, b'n', b'i', b'w', 0, 2]);

/// A namespace without a name, which goes with its only device.
#[derive(Debug)]
pub(super) struct Warmer {
    tap: Tap,
    /// An echo request behind an empty virtio header.
    request: Vec<u8>,
    last: Nanos,
}

impl Warmer {
    /// Makes the namespace and the device.
    pub(super) fn new() -> Result<Self, RunError> {
        let interface = Interface {
            name: NAME.to_owned(),
            mac: THERE_MAC.0,
            mtu: 1500,
            addresses: IpNet::new(THERE, 24).into_iter().collect(),
            queue: REPLIES as u32,
        };
        let tap = host::unnamed(NAME, || {
            let tap = Tap::open(NAME);
            if tap.is_ok() {
                let configured = interface.configure_with_neighbour(HERE, HERE_MAC);
                configured.map_err(|error| HostError::Netlink(NAME.to_owned(), error))?;
            }
            Ok(tap)
        })?;
        let tap = tap.map_err(|error| RunError::Tap(NAME.to_owned(), error))?;
        let frame = EchoFrame {
            source_mac: HERE_MAC,
            destination_mac: THERE_MAC,
            ..EchoFrame::request(HERE, THERE)
        };
        let request = [vec![0; HEADER], frame.to_bytes().unwrap_or_default()].concat();
        Ok(Self { tap, request, last: Nanos::ZERO })
    }

    /// Pings if it is time again. What goes wrong costs exactness only.
    pub(super) fn keep_warm(&mut self, now: Nanos) {
        if now.since(self.last) >= PERIOD {
            self.last = now;
            self.ping();
        }
    }

    /// Sends a request and takes what has come; whether a reply was there, as the kernel answers
    /// within the write.
    fn ping(&self) -> bool {
        let _ = self.tap.send(&[IoSlice::new(&self.request)]);
        let mut replied = false;
        for _ in 0..REPLIES {
            let mut frame = [0; 256];
            let Ok(Some(length)) = self.tap.receive(&mut [IoSliceMut::new(&mut frame)]) else {
                break;
            };
            replied |= length == self.request.len() && frame[HEADER..].starts_with(&HERE_MAC.0);
        }
        replied
    }
}

#[cfg(test)]
mod tests {
    mod root {
        use crate::run::warm::*;

        #[test]
        fn the_kernel_answers_every_ping_and_nobody_sees_the_namespace() {
            testbed::need_root();
            let interfaces = || std::fs::read_to_string("/proc/net/dev").unwrap();
            let warmer = Warmer::new().unwrap();
            assert!(!interfaces().contains(NAME), "{}", interfaces());
            for ping in 0..1_000 {
                assert!(warmer.ping(), "ping {ping} was not answered");
            }
        }
    }
}
