//! A bridge with hosts on it; what crosses it is captured in one place.

use std::{path::Path, time::Duration};
use testbed::{End, Error, Namespace, Process, link, wait_until};

/// The bridge and its hosts, which have the addresses 10.60.0.1, 10.60.0.2, ...
pub(crate) struct Lan {
    bridge: Namespace,
    hosts: Vec<Namespace>,
}

impl Lan {
    /// Makes the bridge; its own address is 10.60.0.254.
    pub(crate) fn new() -> Result<Self, Error> {
        let bridge = Namespace::new("bridge")?;
        bridge.check(&["ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0"])?;
        bridge.check(&["ip", "address", "add", "10.60.0.254/24", "dev", "br0"])?;
        bridge.check(&["ip", "link", "set", "br0", "up"])?;
        bridge.check(&["ethtool", "-K", "br0", "gro", "off"])?;
        Ok(Self { bridge, hosts: Vec::new() })
    }

    /// Adds hosts until there are so many. Their links carry packets as wires do: no larger than the MTU, with checksums.
    pub(crate) fn hosts(&mut self, count: usize) -> Result<&[Namespace], Error> {
        for number in self.hosts.len() + 1..=count {
            let host = Namespace::new(&format!("h{number}"))?;
            let (port, address) = (format!("p{number}"), format!("10.60.0.{number}/24"));
            link(
                End::new(&host, "eth0").address(&address).no_offloads(),
                End::new(&self.bridge, &port).no_offloads(),
            )?;
            host.check(&["ethtool", "-K", "eth0", "gro", "off"])?;
            host.check(&["ip", "route", "add", "default", "via", "10.60.0.254"])?;
            host.sysctl(&[("ipv6.conf.all.disable_ipv6", "1")])?;
            self.bridge.check(&["ethtool", "-K", &port, "gro", "off"])?;
            self.bridge.check(&["ip", "link", "set", &port, "master", "br0"])?;
            self.hosts.push(host);
        }
        Ok(&self.hosts[..count])
    }

    /// Begins to capture what crosses the bridge.
    pub(crate) fn capture(&self, to: &Path) -> Result<Capture, Error> {
        let to = to.to_string_lossy();
        let words = [
            "tcpdump",
            "-i",
            "br0",
            "-n",
            "-U",
            "--immediate-mode",
            "-Z",
            "root",
            "-B",
            "65536",
            "-s",
            "400",
        ];
        let what = ["-w", &to, "tcp or udp"];
        let process = self.bridge.spawn(&[&words[..], &what].concat())?;
        wait_until("tcpdump", Duration::from_secs(20), || {
            process.stderr().contains("listening on")
        })?;
        Ok(Capture { process })
    }
}

/// A running tcpdump.
pub(crate) struct Capture {
    process: Process,
}

impl Capture {
    /// Ends it when what was captured is written.
    pub(crate) fn stop(self) -> Result<(), Error> {
        self.process.signal(nix::sys::signal::Signal::SIGINT)?;
        let done = self.process.finish(Duration::from_secs(60))?;
        if done.stderr.contains("0 packets dropped by kernel") {
            return Ok(());
        }
        Err(Error::new("tcpdump", done.stderr))
    }
}
