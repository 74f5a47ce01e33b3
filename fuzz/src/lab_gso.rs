//! Any bytes as a TAP's frame: its virtio header, the super-packet behind it, its segments, and single
//! checksums. The first byte says where the frame's first piece ends.

use lab::gso::{Checksums, HEADER, SuperPacket, VirtioHeader, finish_checksum};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((cut, frame)) = data.split_first() else { return };
    let (first, second) = frame.split_at(usize::from(*cut).saturating_mul(8).min(frame.len()));
    if let Ok(header) = VirtioHeader::parse(first) {
        let again = VirtioHeader::parse(&header.bytes()).expect("what is written is read");
        assert_eq!(again, header);
    }
    if let Ok(Some(packet)) = SuperPacket::parse(first, frame.len()) {
        segments(&packet, [first, second]);
    }
    let mut copy = frame.to_vec();
    let (first, second) = copy.split_at_mut(first.len());
    if finish_checksum([first, second]) == Ok(true) {
        assert_eq!(finish_checksum([first, second]), Ok(false));
    }
}

/// The first segments and the last: what is left to be filled in becomes what is finished.
fn segments(packet: &SuperPacket, from: [&[u8]; 2]) {
    let count = packet.segments();
    let mut bytes = 0;
    for index in (0..count.min(4)).chain([count - 1]) {
        let (mut finished, mut left) = (vec![0; 70_000], vec![0; 70_000]);
        let [length, same] = [(&mut finished, Checksums::Finished), (&mut left, Checksums::Left)]
            .map(|(out, checksums)| {
                let (one, two) = out.split_at_mut(2_048);
                packet.write(index, from, [one, two], checksums)
            });
        assert_eq!(length, same);
        let Ok(length) = length else { return };
        assert!(length - HEADER - 14 <= packet.largest() as usize);
        bytes += (length - HEADER - 14) as u64;
        assert_eq!(finish_checksum([&mut left[..length], &mut []]), Ok(true));
        let different = (0..length).filter(|at| left[*at] != finished[*at]).count();
        // A TCP checksum of 0 is written as 0xffff by the general way.
        assert!(different == 0 || different == 2);
    }
    assert!(count > 4 || bytes >= packet.bytes());
}
