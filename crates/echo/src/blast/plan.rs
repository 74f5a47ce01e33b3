//! A run, derived from the command line: what is sent, how often, and by which path.

use std::{net::IpAddr, time::Duration};

use wire::{
    EmitError, Identifier, Mac, Sequence, echo_frame::EchoFrame, ethernet, icmpv4, ipv4, ipv6,
};

use super::{
    line::FCS,
    probe::{PROBE, Template},
    route::Path,
};

/// How packets go out and come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Raw ICMP sockets: the kernel finds the route; works everywhere
    Raw,
    /// AF_PACKET: whole frames, past the kernel's IP and ICMP
    Packet,
    /// Live frames made, sent and matched inside the kernel; needs native XDP
    Live,
}

/// TTL of the requests: the default of RFC 1700.
pub const TTL: u8 = 64;

/// A run that can start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The target.
    pub target: IpAddr,
    /// The path to it.
    pub path: Path,
    /// MAC address of the next hop; zero where the engine does not need it.
    pub next_mac: Mac,
    /// The engine.
    pub engine: Kind,
    /// Packets of the run, all threads together.
    pub total: u64,
    /// Packets a second; none for as fast as possible.
    pub rate: Option<u64>,
    /// When to stop, even if not all is sent.
    pub deadline: Option<Duration>,
    /// Threads that send.
    pub threads: u32,
    /// Bytes of a frame without check sequence.
    pub frame: usize,
    /// TTL or hop limit.
    pub ttl: u8,
    /// How long to wait for the last replies.
    pub wait: Duration,
    /// Number of the first packet: identifier and sequence of its echo.
    pub base: u32,
    /// What follows the ICMP header.
    pub payload: Vec<u8>,
}

/// Bytes of a frame, check sequence included, that is too small, too large or just right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The smallest that holds a probe; 64 at least, as on Ethernet.
    pub least: usize,
    /// The largest that fits the MTU.
    pub most: usize,
}

/// Bytes before the ICMP payload.
fn headers(target: IpAddr) -> usize {
    let ip = if target.is_ipv4() { ipv4::HEADER } else { ipv6::HEADER };
    ethernet::HEADER + ip + icmpv4::HEADER
}

/// The sizes that can be sent to a target over a link with this MTU.
pub fn sizes(target: IpAddr, mtu: usize) -> Sizes {
    let least = (headers(target) + PROBE + FCS).max(64);
    // An IP packet has at most 65,535 bytes; loopback has an MTU of 65,536.
    Sizes { least, most: mtu.min(65_535) + ethernet::HEADER + FCS }
}

/// Bytes of the ICMP payload in a frame of `size` bytes, check sequence included.
pub fn payload_len(target: IpAddr, size: usize) -> usize {
    size.saturating_sub(headers(target) + FCS)
}

/// The most packets of a run: each takes memory for one bit.
pub const MAX_TOTAL: u64 = datapath::blast::MAX_TOTAL as u64 / 2;

impl Plan {
    fn echo(&self) -> EchoFrame {
        EchoFrame {
            source_mac: self.path.mac,
            destination_mac: self.next_mac,
            ttl: self.ttl,
            payload: self.payload.clone(),
            identifier: Identifier(0),
            sequence: Sequence(0),
            ..EchoFrame::request(self.path.source, self.target)
        }
    }

    /// The frame of a request with number 0 and time 0.
    ///
    /// # Errors
    /// When the payload is too long for IP.
    pub fn request(&self) -> Result<Vec<u8>, EmitError> {
        self.echo().to_bytes()
    }

    /// Where the ICMP header begins in a frame.
    pub fn icmp_offset(&self) -> usize {
        headers(self.target) - icmpv4::HEADER
    }

    /// What the engine passes to its sockets again and again: for raw sockets the ICMP message, else
    /// the frame.
    ///
    /// # Errors
    /// When the payload is too long for IP.
    pub fn template(&self) -> Result<Template, EmitError> {
        let frame = self.request()?;
        let icmp = self.icmp_offset();
        Ok(match self.engine {
            Kind::Raw => Template::new(frame[icmp..].to_vec(), 0),
            Kind::Packet | Kind::Live => Template::new(frame, icmp),
        })
    }
}
