//! Any frames from hosts into a simulated network whose links do everything that links can do, and onto
//! a wire, with changes between: nothing panics, the ledger holds, and every buffer comes back.
//!
//! The input is a list of records: what to do, a number, and for frames so many times eight bytes.

use std::{
    io::Write,
    sync::{Arc, OnceLock},
};

use lab::{
    Builder, Change, Engine, EngineOptions, LinkId, Nanos, Network, NodeId, PortId, Relation,
    pool::VIRTIO,
};
use wire::Mac;

const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
const FRAMES: usize = 512;
const SPILLS: usize = 8;

/// Four nodes in a ring with a link across, and two for a wire.
fn network() -> Arc<Network> {
    static NETWORK: OnceLock<Arc<Network>> = OnceLock::new();
    let build = || {
        let mut builder = Builder::new();
        for n in 0..4 {
            let node = builder.node(&format!("n{n}")).expect("a node");
            for prefix in [format!("10.{n}.0.0/16"), format!("2001:db8:{n}::/48")] {
                builder.prefix(node, prefix.parse().expect("a prefix")).expect("a node");
            }
            for address in [format!("10.{n}.0.1"), format!("2001:db8:{n}::1")] {
                builder.node_address(node, address.parse().expect("an address")).expect("a node");
            }
        }
        for (a, b, settings) in [
            (0, 1, "delay=1ms"),
            (1, 2, "delay=2ms mtu=600 loss=10%"),
            (2, 3, "delay=1ms duplicate=30% corrupt=30% jitter=1ms"),
            (3, 0, "delay=3ms rate=10Mbit queue=20p"),
            (1, 3, "delay=5ms mtu=1280"),
        ] {
            let settings = settings.parse().expect("settings");
            builder.link(NodeId(a), NodeId(b), &settings, 1, Relation::None).expect("a link");
        }
        for end in ["one", "other"] {
            builder.node(end).expect("a node");
        }
        let settings = "delay=1ms loss=10% duplicate=30% corrupt=30%".parse().expect("settings");
        builder.link(NodeId(4), NodeId(5), &settings, 1, Relation::None).expect("a link");
        Arc::new(builder.finish().expect("a network"))
    };
    Arc::clone(NETWORK.get_or_init(build))
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let options =
        EngineOptions { frames: FRAMES, spills: SPILLS, paths: 8, ..EngineOptions::default() };
    let mut engine = Engine::new(network(), options);
    for node in 0..4 {
        let addresses = [format!("10.{node}.0.10/16"), format!("2001:db8:{node}::10/48")];
        let addresses = addresses.map(|net| net.parse().expect("a prefix")).to_vec();
        let port = engine.add_port(NodeId(node), MAC, addresses);
        engine.learn(port, MAC);
        if node == 3 {
            engine.set_plain(port);
        }
    }
    let network = engine.network();
    let across = network.links_of(NodeId(4)).find(|link| network.to(*link) == NodeId(5));
    let across = across.expect("a link");
    let [_, end] = engine.add_wire(across).expect("a wire");
    engine.set_plain(end);
    let (mut data, mut now, mut out) = (data, 0u64, Vec::new());
    while let [what, length, rest @ ..] = data {
        let (what, length) = (*what, *length);
        let action = what / 4 % 8;
        let takes = if action < 5 { usize::from(length) * 8 } else { 0 };
        let (bytes, later) = rest.split_at(rest.len().min(takes));
        data = later;
        let port = PortId(u16::from(what % 4));
        match action {
            // A frame with its virtio header, from a host or onto the wire.
            0 => enter(&mut engine, now, port, &[bytes]),
            1 => enter(&mut engine, now, PortId(4 + port.0 % 2), &[bytes]),
            // A packet for the node.
            2..=4 => {
                let kind =
                    if bytes.first().is_some_and(|b| b >> 4 == 6) { 0x86dd_u16 } else { 0x0800 };
                let parts =
                    [&[0; VIRTIO][..], &MAC.0, &[2, 9, 9, 9, 9, 9], &kind.to_be_bytes(), bytes];
                enter(&mut engine, now, port, &parts);
            }
            5 => {
                now += 1_000_000 * u64::from(length);
                engine.advance(Nanos(now), &mut out);
            }
            6 => {
                let link = LinkId(u32::from(length) % engine.network().links());
                let settings = if what & 1 == 0 { "up=false" } else { "up=true" };
                let settings = settings.parse().expect("settings");
                let change = Change::Link { link, both_ways: what & 2 == 0, settings };
                engine.apply(Nanos(now), change).expect("a link");
            }
            _ => {
                let change =
                    Change::Node { node: NodeId(u32::from(length) % 4), up: what & 1 == 1 };
                engine.apply(Nanos(now), change).expect("a node");
            }
        }
        for (_, frame) in out.drain(..) {
            engine.pool().give_back(frame);
        }
    }
    while let Some(due) = engine.due() {
        now = now.max(due.0);
        engine.advance(Nanos(now), &mut out);
        for (_, frame) in out.drain(..) {
            engine.pool().give_back(frame);
        }
    }
    assert_eq!(engine.ledger().in_flight(), 0);
    assert_eq!((engine.pool().free(), engine.pool().free_spills()), (FRAMES, SPILLS));
}

/// A frame of these parts from a host.
fn enter(engine: &mut Engine, now: u64, port: PortId, parts: &[&[u8]]) {
    let bytes = parts.concat();
    let pool = engine.pool();
    let Some(mut frame) = pool.take() else { return };
    let [mut head, mut rest] = pool.buffers(&mut frame);
    let (first, second) = bytes.split_at(bytes.len().min(head.len()));
    (&mut head[..]).write_all(first).expect("room");
    if (&mut rest[..]).write_all(second).is_err() {
        pool.give_back(frame);
        return;
    }
    pool.filled(&mut frame, bytes.len());
    engine.ingress(Nanos(now), port, frame);
}
