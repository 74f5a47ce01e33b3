//! What simulated nodes say is what routers that run Linux say, bit for bit.
//!
//! Five namespaces forward packets in a row, each a router with the addresses of a node of the same
//! simulated network. In place of the hosts at both ends stand TAPs, so the test reads whole frames.
//! Every probe goes through both; whatever comes out at either end must be equal but for what Linux
//! draws at random: the identification of IPv4 with the checksum over it, and IPv6's flow label.

mod chain;
mod probes;
mod simulated;

use chain::Chain;
use probes::{Probe, probes};
use simulated::Simulated;

/// A packet that came out: at which end, and its bytes.
type CapturedPacket = (usize, Vec<u8>);

/// Sets to zero what Linux draws at random. Fragments keep their identification: it is the packet's.
fn known(mut packet: Vec<u8>) -> Vec<u8> {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            packet[4..6].fill(0);
            packet[10..12].fill(0);
        }
        Some(6) if packet.len() >= 40 => {
            packet[1] &= 0xf0;
            packet[2..4].fill(0);
        }
        _ => {}
    }
    packet
}

fn hex(seen: &[CapturedPacket]) -> String {
    let line = |(end, bytes): &CapturedPacket| {
        format!("  end {end}: {}", config::hex::encode(&bytes[..bytes.len().min(120)]))
    };
    seen.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn nodes_say_what_routers_that_run_linux_say() {
    let chain = Chain::build();
    let mut simulated = Simulated::build();
    let mut different = Vec::new();
    let probes = probes();
    for Probe { name, packet } in &probes {
        let ours = simulated.send(packet);
        let theirs = chain.send(packet, ours.len());
        let sorted = |seen: &[CapturedPacket]| {
            let mut seen: Vec<_> =
                seen.iter().map(|(end, packet)| (*end, known(packet.clone()))).collect();
            seen.sort();
            seen
        };
        if sorted(&ours) != sorted(&theirs) {
            let (ours, theirs) = (hex(&ours), hex(&theirs));
            different.push(format!("{name}: simulated\n{ours}\nLinux\n{theirs}"));
        }
    }
    let count = different.len();
    assert!(different.is_empty(), "{count} of {}:\n{}", probes.len(), different.join("\n"));
}

/// Sends 30 packets that end at the second router, in one go.
#[test]
fn errors_are_limited_as_linux_limits_them() {
    let chain = Chain::build();
    chain.limit_errors();
    let mut simulated = Simulated::limited();
    for probe in probes::ending_at_the_second() {
        let ours = simulated.send_many(&probe, 30).len();
        let theirs = chain.send_many(&probe, 30, ours).len();
        assert_eq!(ours, theirs);
    }
}
