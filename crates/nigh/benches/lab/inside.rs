//! The cost of the core, without any port: for a packet, and for a segment of a super-packet.

use lab::{
    LinkId, LinkSettings, LinkState, Nanos,
    gso::{Checksums, SuperPacket},
    link::Arrival,
};
use std::{hint::black_box, time::Instant};
use testbed::Figures;

/// Packets of a round, and rounds of which the best counts: disturbance only slows.
const PACKETS: u32 = 200_000;
const ROUNDS: usize = 5;

const LINKS: [&str; 7] = [
    "delay=10ms",
    "delay=10ms loss=1%",
    "delay=10ms jitter=1ms,normal",
    "delay=10ms rate=1Gbit",
    "delay=10ms rate=1Gbit queue=1000p,codel",
    "delay=10ms rate=1Gbit queue=1000p,red",
    "delay=10ms jitter=1ms,pareto-normal loss=1% duplicate=1% corrupt=1% reorder=1%,late=1ms rate=1Gbit",
];

pub(crate) fn measure(figures: &mut Figures) {
    println!("\nIn process, one core");
    for text in LINKS {
        let settings: LinkSettings = text.parse().expect("settings");
        let nanos = best(|| {
            let mut state = LinkState::new(1, LinkId(0));
            for n in 0..PACKETS {
                // Somewhat more than 1 Gbit/s carries.
                let now = Nanos(u64::from(n) * 12_000);
                let arrival = Arrival { now, length: 1_500, ect: false };
                black_box(state.offer(&settings, arrival));
            }
        });
        figures.add(&format!("one packet: {text}"), nanos, "nanoseconds", None);
    }
    let frame = super_packet();
    let packet = SuperPacket::parse(&frame, frame.len()).expect("sound").expect("a super-packet");
    let (first, second) = frame.split_at(2_048);
    for (name, checksums) in
        [("checksum filled in", Checksums::Finished), ("checksum left", Checksums::Left)]
    {
        let mut out = [0; 2_048];
        let nanos = best(|| {
            for n in 0..PACKETS {
                let (index, to) = (n % packet.segments(), [&mut out[..], &mut []]);
                let written = packet.write(index, [first, second], to, checksums);
                black_box(written.expect("it fits"));
            }
        });
        figures.add(&format!("segment of 1,448 bytes, {name}"), nanos, "nanoseconds", None);
    }
}

/// Nanoseconds a packet.
fn best(mut round: impl FnMut()) -> f64 {
    let mut time = || {
        let begin = Instant::now();
        round();
        begin.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| time()).fold(f64::INFINITY, f64::min) * 1e9 / f64::from(PACKETS)
}

/// TCP over IPv4 of 44 segments, as a TAP gives it.
fn super_packet() -> Vec<u8> {
    let payload = 44 * 1_448;
    let total = 52 + payload as u16;
    let mut frame = vec![1, 1];
    for word in [66u16, 1_448, 34, 16, 0] {
        frame.extend(word.to_ne_bytes());
    }
    frame.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend([0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend([1; 12]);
    frame.extend((0..payload).map(|n| n as u8));
    frame
}
