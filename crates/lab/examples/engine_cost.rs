//! What a packet costs the engine, without ports: nanoseconds a packet through rows of nodes.
//!
//! `cargo run --release -p lab --example engine_cost`. Packets of 60 bytes come in at a million a
//! second of virtual time in batches of 64, over paths that take 100 ms, so 100,000 are in flight; each is
//! given back to the pool when it leaves.

use std::{error::Error, sync::Arc, time::Instant};

use lab::{
    Builder, Engine, EngineOptions, LinkSettings, Nanos, NodeId, Relation,
    pool::{ETHERNET, IP, VIRTIO},
};
use wire::{IpProtocol, Mac, ipv4};

/// Packets that are measured, after as many as fill the network.
const PACKETS: u64 = 4_000_000;
/// Packets that come at once.
const BATCH: u64 = 64;
/// Between two packets.
const GAP: u64 = 1_000;
/// What all links of a path take together.
const PATH: u64 = 100_000_000;

/// A case: its name, hops, what links do beside delay, flows.
type Case = (&'static str, u32, &'static str, u32);

fn main() -> Result<(), Box<dyn Error>> {
    let cases: [Case; 7] = [
        ("1 hop", 1, "", 1),
        ("32 hops", 32, "", 1),
        ("1 hop, 10,000 flows", 1, "", 10_000),
        ("32 hops, 10,000 destinations and flows", 32, "", 10_000),
        ("2 hops, 1 % loss on each", 2, "loss=1%", 1),
        ("2 hops, 10 Gbit/s on each", 2, "rate=10Gbit", 1),
        ("32 hops, 10 Gbit/s on each", 32, "rate=10Gbit", 1),
    ];
    println!("{:<42} {:>10} {:>10}", "", "ns/packet", "in flight");
    for case in cases {
        let (cost, in_flight) = measure(case)?;
        println!("{:<42} {cost:>10.1} {in_flight:>10}", case.0);
    }
    Ok(())
}

fn measure((_, hops, more, flows): Case) -> Result<(f64, u64), Box<dyn Error>> {
    let mut builder = Builder::new();
    let mut settings: LinkSettings = more.parse()?;
    settings.delay = Nanos(PATH / u64::from(hops));
    let nodes =
        (0..=hops).map(|n| builder.node(&format!("n{n}"))).collect::<Result<Vec<_>, _>>()?;
    for pair in nodes.windows(2) {
        builder.link(pair[0], pair[1], &settings, 1, Relation::None)?;
    }
    let mut engine = Engine::new(Arc::new(builder.finish()?), EngineOptions::default());
    let mac = Mac([2, 0, 0, 0, 0, 1]);
    let from = engine.add_port(NodeId(0), mac, vec!["10.0.0.1/16".parse()?]);
    let hosts = (0..flows).map(|n| format!("10.1.{}.{}/16", n / 250, n % 250 + 2).parse());
    engine.add_port(NodeId(hops), mac, hosts.collect::<Result<Vec<_>, _>>()?);
    engine.learn(lab::PortId(1), mac);

    let frames: Vec<Vec<u8>> = (0..flows).map(|n| frame(mac, n)).collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    let mut now = 0;
    let mut sent = 0;
    let mut run = |engine: &mut Engine, packets: u64| -> Result<(), Box<dyn Error>> {
        let end = sent + packets;
        while sent < end {
            for _ in 0..BATCH {
                let pool = engine.pool();
                let mut frame = pool.take().ok_or("no frame is free")?;
                let bytes = &frames[(sent % u64::from(flows)) as usize];
                pool.buffers(&mut frame)[0][..bytes.len()].copy_from_slice(bytes);
                pool.filled(&mut frame, bytes.len());
                engine.ingress(Nanos(now), from, frame);
                sent += 1;
            }
            now += BATCH * GAP;
            engine.advance(Nanos(now), &mut out);
            for (_, frame) in out.drain(..) {
                engine.pool().give_back(frame);
            }
        }
        Ok(())
    };
    run(&mut engine, 2 * PATH / GAP)?;
    let begin = Instant::now();
    run(&mut engine, PACKETS)?;
    let cost = begin.elapsed().as_nanos() as f64 / PACKETS as f64;
    Ok((cost, engine.ledger().in_flight()))
}

/// A frame with a virtio header and 60 bytes of UDP for flow `n`.
fn frame(mac: Mac, n: u32) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = vec![0; IP + 60];
    bytes[VIRTIO..VIRTIO + 6].copy_from_slice(&mac.0);
    bytes[VIRTIO + 6..VIRTIO + 12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bytes[VIRTIO + ETHERNET - 2..IP].copy_from_slice(&[8, 0]);
    let header = ipv4::Repr {
        source: "10.0.0.1".parse()?,
        destination: format!("10.1.{}.{}", n / 250, n % 250 + 2).parse()?,
        protocol: IpProtocol::UDP,
        ttl: 64,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        payload_len: 40,
    };
    header.emit(&mut bytes[IP..])?;
    Ok(bytes)
}
