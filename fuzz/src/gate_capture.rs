//! Any bytes as a capture: every frame of every link goes down to its flow, and each is counted once.

use capture::{ReadError, read};
use classify::capture::{
    flows::Table,
    layers::{self, Layers, Link},
};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut table: Table<()> = Table::new(16);
    let mut ended = Vec::new();
    let (mut assigned, mut counted) = (0, 0);
    let _ = read::<ReadError>(data, |frame, read| {
        assert!(frame.bytes.len() <= data.len() && frame.bytes.len() <= frame.length as usize);
        assert!(read <= data.len() as u64);
        let links = [
            Link::new(frame.link),
            Link::Ethernet,
            Link::Raw,
            Link::Cooked,
            Link::Cooked2,
            Link::Loopback,
        ];
        for link in links {
            let Some(packet) = link.ip(frame.bytes) else { continue };
            match layers::read(packet) {
                Layers::Segment(segment) => {
                    assert!(segment.payload.len() <= segment.length as usize);
                    let (open, packet) = table.assign(&segment, frame.at_ns, &mut ended);
                    assert_eq!(open.flow.socket(packet.from), segment.source);
                    assigned += 1;
                }
                Layers::Fragment(key) => {
                    assigned += u64::from(table.fragment(&key, frame.length, frame.at_ns));
                }
                Layers::OtherProtocol(_) | Layers::Damaged => {}
            }
        }
        Ok(())
    });
    let open = table.finish();
    assert!(open.len() <= 16);
    for flow in open.iter().chain(&ended) {
        counted += flow.packets;
    }
    assert_eq!(counted, assigned);
}
