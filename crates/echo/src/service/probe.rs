//! Probes that the attached program answers.
//!
//! **Through the gateway.** A request from our own link address to our own link address is sent to
//! the gateway's Ethernet address. The gateway routes it back as it does a BFD echo packet (RFC 5881
//! section 4); the program answers it; the answer takes the same path again:
//!
//! ```text
//!   us --request--> gateway --request--> us: XDP answers --reply--> gateway --reply--> us
//! ```
//!
//! So one probe goes twice over the real receive path and the link's both directions. The identifier
//! and the payload are secrets of this process, so that nobody else can answer.
//!
//! **In the kernel.** A test run of the same program on a frame in memory, whose answer is compared
//! byte for byte.

use datapath::{
    echo::{EchoProgram, Verdict},
    probe_socket::{Family, ProbeSocket},
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};
use wire::{Identifier, Mac, Sequence, echo_frame::EchoFrame};

/// Addresses of the frames of test runs: the IPv4 dummy address (RFC 7600) and one of the IPv6
/// discard-only prefix (RFC 6666). No packet on a wire has a reason to carry them.
pub(super) const DUMMIES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8)),
    IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 8)),
];

/// The path of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The interface's index.
    pub(super) interface: u32,
    /// The interface's Ethernet address.
    pub(super) mac: [u8; 6],
    /// The interface's own address.
    pub(super) own: IpAddr,
    /// The gateway's address, for people.
    pub(super) gateway: IpAddr,
    /// The gateway's Ethernet address.
    pub(super) gateway_mac: [u8; 6],
}

/// A probe that was sent.
#[derive(Debug)]
struct Sent {
    sequence: u16,
    payload: [u8; 16],
}

/// The probes through the gateway of one interface, in one family.
#[derive(Debug)]
pub(super) struct LoopProbe {
    v4: bool,
    path: Option<(Target, ProbeSocket)>,
    sequence: u16,
    sent: Option<Sent>,
}

impl LoopProbe {
    pub(super) fn new(v4: bool) -> Self {
        Self { v4, path: None, sequence: 0, sent: None }
    }

    /// Forgets the path: the interface is gone or is a different one.
    pub(super) fn forget(&mut self) {
        (self.path, self.sent) = (None, None);
    }

    /// Sends probes by this path from now on.
    pub(super) fn aim(&mut self, target: Target, identifier: u16) -> io::Result<()> {
        if self.path.as_ref().is_none_or(|(path, _)| *path != target) {
            let family = if self.v4 { Family::V4 } else { Family::V6 };
            let socket = ProbeSocket::open(target.interface, family, identifier)?;
            (self.path, self.sent) = (Some((target, socket)), None);
        }
        Ok(())
    }

    /// Whether a probe is in flight, so that there will be a result.
    pub(super) fn is_pending(&self) -> bool {
        self.sent.is_some()
    }

    /// Whether the probe sent in the last round was answered meanwhile.
    pub(super) fn collect(&mut self) -> Result<String, String> {
        let Some((target, socket)) = &self.path else { return Err("not sent yet".into()) };
        let Some(sent) = self.sent.take() else { return Err("not sent yet".into()) };
        let mut buffer = [0; 128];
        let mut answered = false;
        // Bounded: whatever arrives, a round ends.
        for _ in 0..64 {
            match socket.receive(&mut buffer) {
                Ok(Some(length)) => {
                    let ip = if self.v4 { 20 } else { 40 };
                    let icmp = buffer[..length].get(14 + ip..).unwrap_or_default();
                    answered |= icmp.get(6..8) == Some(&sent.sequence.to_be_bytes())
                        && icmp.get(8..24) == Some(&sent.payload);
                }
                Ok(None) => break,
                Err(error) => return Err(format!("receiving: {error}")),
            }
        }
        let Target { own, gateway, .. } = target;
        if answered {
            Ok(format!("{own} through {gateway} answered"))
        } else {
            Err(format!("{own} through {gateway}: no answer"))
        }
    }

    /// Sends the next probe.
    pub(super) fn send(&mut self, identifier: u16) -> Result<(), String> {
        let Some((target, socket)) = &self.path else { return Ok(()) };
        self.sequence = self.sequence.wrapping_add(1);
        let payload: [u8; 16] = rand::random();
        let frame = EchoFrame {
            source_mac: Mac(target.mac),
            destination_mac: Mac(target.gateway_mac),
            sequence: Sequence(self.sequence),
            ..request(target.own, identifier, &payload)
        };
        let bytes = frame.to_bytes().map_err(|error| error.to_string())?;
        socket.send(&bytes).map_err(|error| format!("sending: {error}"))?;
        self.sent = Some(Sent { sequence: self.sequence, payload });
        Ok(())
    }
}

/// A request from an address to itself; its TTL suffices for two gateways and no more.
fn request(own: IpAddr, identifier: u16, payload: &[u8]) -> EchoFrame {
    EchoFrame {
        identifier: Identifier(identifier),
        ttl: 3,
        payload: payload.to_vec(),
        ..EchoFrame::request(own, own)
    }
}

/// Lets the program answer a request of each family in memory.
pub(super) fn test_run(program: &EchoProgram, identifier: u16) -> Result<String, String> {
    for own in DUMMIES {
        let payload: [u8; 16] = rand::random();
        let frame = EchoFrame {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            sequence: Sequence(rand::random()),
            ..request(own, identifier, &payload)
        };
        let bytes = frame.to_bytes().map_err(|error| error.to_string())?;
        let (verdict, answer) =
            program.run(None, &bytes).map_err(|error| format!("test run: {error}"))?;
        let expected = frame.reply().to_bytes().map_err(|error| error.to_string())?;
        if verdict != Verdict::Tx || answer != expected {
            return Err(format!("test run: wrong answer to a request (verdict {verdict:?})"));
        }
    }
    Ok("attached, and answers in test runs".into())
}
