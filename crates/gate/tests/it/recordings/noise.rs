//! Flows of random bytes: over TCP in the shapes that hidden file sharing has, with and without a
//! length before each message, and over UDP; half of them from hosts that do share files, and half of those to
//! others that do.

use classify::{
    flow::{Flow, Side, Transport},
    packet::{Packet, Tcp},
};
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A packet with its bytes.
#[derive(Debug)]
pub(crate) struct Made {
    from: Side,
    sequence: Option<u32>,
    flags: u8,
    at_ns: u64,
    payload: Vec<u8>,
}

impl Made {
    pub(crate) fn view(&self) -> Packet<'_> {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        let tcp =
            self.sequence.map(|sequence| Tcp { sequence, acknowledgement: 0, flags: self.flags });
        Packet { at_ns: self.at_ns, from: self.from, tcp, payload: &self.payload, length }
    }
}

/// Random flows, always the same.
pub(crate) fn flows(count: u32) -> impl Iterator<Item = (Flow, Vec<Made>)> {
    let mut draw = StdRng::seed_from_u64(6);
    (0..count).map(move |number| {
        let transport = if number / 4 % 4 == 3 { Transport::Udp } else { Transport::Tcp };
        let sharing = number % 2 == 0;
        let flow = flow(&mut draw, transport, sharing, number % 4 < 2);
        let packets = packets(&mut draw, transport, number);
        (flow, packets)
    })
}

/// Whether a flow is from a host that shares files.
pub(crate) fn shares(flow: &Flow) -> bool {
    matches!(flow.client.ip(), IpAddr::V4(address) if address.octets()[2] == 0)
}

/// From a host to a server on a port that nobody announced; hosts that share files are 10.60.0.2 to .8.
fn flow(draw: &mut StdRng, transport: Transport, sharing: bool, with_sharer: bool) -> Flow {
    let client = if sharing {
        Ipv4Addr::new(10, 60, 0, draw.random_range(2..=8))
    } else {
        Ipv4Addr::new(10, 60, 1, draw.random_range(1..=250))
    };
    let server = if sharing && with_sharer {
        let other = draw.random_range(2..8);
        Ipv4Addr::new(10, 60, 0, if other >= client.octets()[3] { other + 1 } else { other })
    } else {
        Ipv4Addr::new(10, 60, 2, draw.random_range(1..=250))
    };
    let client = SocketAddr::from((client, draw.random_range(32_768..61_000)));
    let server = SocketAddr::from((server, draw.random_range(1024..20_000)));
    Flow { transport, client, server }
}

fn packets(draw: &mut StdRng, transport: Transport, number: u32) -> Vec<Made> {
    let mut sequences = [draw.next_u32(), draw.next_u32()];
    let tcp = transport == Transport::Tcp;
    let mut at_ns = u64::from(number) * 1_000_000_000;
    let mut packet = |from: Side, flags: u8, payload: Vec<u8>| {
        at_ns += 1_000_000;
        let sequence = &mut sequences[from as usize];
        let made = Made { from, sequence: tcp.then_some(*sequence), flags, at_ns, payload };
        let taken = u32::try_from(made.payload.len()).unwrap_or_default();
        *sequence = sequence.wrapping_add(taken + u32::from(flags & Tcp::SYN != 0));
        made
    };
    let mut made = Vec::new();
    if tcp {
        made.push(packet(Side::Client, Tcp::SYN, Vec::new()));
        made.push(packet(Side::Server, Tcp::SYN | Tcp::ACK, Vec::new()));
    }
    let (shape, mut from) = (number / 16 % 3, Side::Client);
    for _ in 0..draw.random_range(2..12) {
        let length = match shape {
            0 => draw.random_range(96..=608),
            1 => draw.random_range(48..=200),
            _ => draw.random_range(1..=1400),
        };
        let mut payload = vec![0; length];
        draw.fill_bytes(&mut payload);
        if shape == 1 {
            let length = u16::try_from(length).unwrap_or_default();
            payload.splice(..0, length.to_be_bytes());
        }
        made.push(packet(from, Tcp::ACK, payload));
        from = from.other();
    }
    made
}
