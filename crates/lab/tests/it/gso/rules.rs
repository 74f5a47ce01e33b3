//! What segments have in common whatever the kernel does, and what is refused.

use crate::gso::packets::{Made, noise, pieces};
use lab::gso::{Checksums, GsoError, HEADER, SuperPacket, VirtioHeader, finish_checksum};
use proptest::prelude::*;

fn made() -> impl Strategy<Value = Made> {
    let shape = (any::<bool>(), any::<bool>(), 0..=10usize, any::<u8>());
    let numbers = (any::<u16>(), any::<u32>(), 1..=3_000u16);
    (shape, numbers, 0..=30_000usize, any::<u64>()).prop_map(
        |((v4, tcp, options, flags), (id, number, size), length, seed)| Made {
            v4,
            tcp,
            options: if tcp { options * 4 } else { 0 },
            flags,
            id,
            number,
            size,
            payload: noise(seed, length),
        },
    )
}

/// Writes all segments, each into two pieces of which the first has so many bytes.
pub(crate) fn split(frame: &[u8], first: usize, to: usize, checksums: Checksums) -> Vec<Vec<u8>> {
    let from = pieces(frame, first.min(frame.len()));
    let packet = SuperPacket::parse(from[0], frame.len()).expect("sound").expect("a super-packet");
    let segments = (0..packet.segments()).map(|index| {
        let mut out = vec![0; 70_000];
        let (one, two) = out.split_at_mut(to);
        let length = packet.write(index, from, [one, two], checksums).expect("it fits");
        out.truncate(length);
        out
    });
    let segments: Vec<_> = segments.collect();
    let bytes: usize = segments.iter().map(|segment| segment.len() - HEADER - 14).sum();
    assert_eq!(packet.bytes(), bytes as u64);
    let largest = segments.iter().map(|segment| segment.len() - HEADER - 14).max();
    assert_eq!(largest, Some(packet.largest() as usize));
    segments
}

/// Checks the checksums of a segment with crate wire.
fn verify(made: &Made, segment: &[u8]) {
    let ip = &segment[HEADER + 14..];
    let protocol = if made.tcp { 6u16 } else { 17 };
    let (upper, addresses) = if made.v4 {
        assert!(wire::checksum::verifies(&ip[..20]));
        assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.len());
        (&ip[20..], &ip[12..20])
    } else {
        assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])), ip.len() - 40);
        (&ip[40..], &ip[8..40])
    };
    let sum = wire::checksum::Sum::default().bytes(addresses).word(protocol);
    assert_eq!(sum.word(upper.len() as u16).bytes(upper).fold(), 0xffff);
}

proptest! {
    /// Wherever the pieces of either frame end, the segments are the same, their payloads are the
    /// super-packet's, and their checksums are right.
    #[test]
    fn segments_carry_the_payload(made in made(), first in 0..3_000usize, to in 0..3_000usize) {
        let frame = made.frame();
        let headers = HEADER + made.headers();
        let segments = split(&frame, first.max(headers), to.max(headers), Checksums::Finished);
        prop_assert_eq!(&segments, &split(&frame, frame.len(), 70_000, Checksums::Finished));
        let payload: Vec<u8> = segments.iter().flat_map(|one| one[headers..].to_vec()).collect();
        prop_assert_eq!(&payload, &made.payload);
        for segment in &segments {
            prop_assert_eq!(&segment[..HEADER], &[0; HEADER]);
            verify(&made, segment);
        }
    }

    /// A segment whose checksum is left is the finished one once it is filled in, wherever its pieces
    /// end; but for UDP's 0xffff that is TCP's 0.
    #[test]
    fn checksums_can_be_filled_in_later(made in made(), cut in 100..3_000usize) {
        let frame = made.frame();
        let finished = split(&frame, frame.len(), 70_000, Checksums::Finished);
        let left = split(&frame, frame.len(), 70_000, Checksums::Left);
        for (mut left, mut finished) in left.into_iter().zip(finished) {
            prop_assert!(VirtioHeader::parse(&left).expect("a header").needs_csum);
            let (one, two) = left.split_at_mut(cut.min(finished.len()));
            prop_assert_eq!(finish_checksum([one, two]), Ok(true));
            let check = HEADER + made.headers() - made.options - 4;
            if made.tcp && finished[check..check + 2] == [0, 0] {
                finished[check..check + 2].copy_from_slice(&[0xff; 2]);
            }
            prop_assert_eq!(left, finished);
        }
    }

    /// No bytes make it fail other than by an error.
    #[test]
    fn any_bytes_are_taken_or_refused(
        made in made(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        length in 0..200usize,
    ) {
        let mut frame = made.frame();
        let headers = HEADER + made.headers();
        frame[at.index(headers)] = byte;
        if let Ok(Some(packet)) = SuperPacket::parse(&frame, frame.len()) {
            let mut out = vec![0; 70_000];
            let last = packet.segments() - 1;
            for checksums in [Checksums::Finished, Checksums::Left] {
                packet.write(last, [&frame, &[]], [&mut out, &mut []], checksums).expect("it fits");
            }
        }
        let _ = SuperPacket::parse(&frame[..length.min(frame.len())], length);
        let _ = finish_checksum([&mut frame, &mut []]);
    }
}

fn tcp4() -> Made {
    Made {
        v4: true,
        tcp: true,
        options: 12,
        flags: 0x99,
        id: 0xffff,
        number: u32::MAX - 10,
        size: 1_448,
        payload: noise(1, 4_000),
    }
}

#[test]
fn flags_and_numbers_of_tcp() {
    let segments = split(&tcp4().frame(), 2_048, 2_048, Checksums::Finished);
    let words = |at: usize| -> Vec<[u8; 2]> {
        segments.iter().map(|one| [one[HEADER + at], one[HEADER + at + 1]]).collect()
    };
    assert_eq!(words(18), [[0xff, 0xff], [0, 0], [0, 1]]);
    // CWR, ACK on the first; ACK; FIN, PSH, ACK on the last.
    assert_eq!(segments.iter().map(|one| one[HEADER + 47]).collect::<Vec<_>>(), [0x90, 0x10, 0x19]);
    let numbers = segments.iter().map(|one| {
        u32::from_be_bytes([one[HEADER + 38], one[HEADER + 39], one[HEADER + 40], one[HEADER + 41]])
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [u32::MAX - 10, 1_437, 2_885]);
}

#[test]
fn single_packets_are_not_super_packets() {
    let frame = [&[0; HEADER][..], &noise(2, 60)].concat();
    assert_eq!(SuperPacket::parse(&frame, frame.len()), Ok(None));
    let mut untouched = frame.clone();
    assert_eq!(finish_checksum([&mut untouched, &mut []]), Ok(false));
    assert_eq!(untouched, frame);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let sound = tcp4().frame();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = sound.clone();
        change(&mut frame);
        SuperPacket::parse(&frame, frame.len()).expect_err("refused")
    };
    assert_eq!(refused(&|frame| frame[0] = 8), GsoError::Flags(8));
    assert_eq!(refused(&|frame| frame[1] = 3), GsoError::Type(3));
    assert_eq!(refused(&|frame| frame[1] = 4), GsoError::Type(4));
    assert_eq!(refused(&|frame| frame[1] = 5), GsoError::Type(5));
    assert_eq!(refused(&|frame| frame[4..6].fill(0)), GsoError::SegmentSize);
    assert_eq!(refused(&|frame| frame[6] = 35), GsoError::Checksum { start: 35, offset: 16 });
    assert_eq!(refused(&|frame| frame.truncate(1_000)), GsoError::Length { says: 4_052, has: 974 });
    assert_eq!(refused(&|frame| frame[HEADER + 20] = 0x20), GsoError::Unsupported("a fragment"));
    let short = GsoError::Short { what: "a TCP header", need: 54, have: 50 };
    assert_eq!(SuperPacket::parse(&sound[..HEADER + 50], sound.len()), Err(short));
    let packet = SuperPacket::parse(&sound, sound.len()).expect("sound").expect("large");
    let mut out = [0; 1_000];
    let error = packet.write(0, [&sound, &[]], [&mut out, &mut []], Checksums::Finished);
    assert_eq!(error, Err(GsoError::Short { what: "a segment", need: 1_526, have: 1_000 }));
    let error = packet.write(3, [&sound, &[]], [&mut out, &mut []], Checksums::Finished);
    assert!(matches!(error, Err(GsoError::Short { what: "the payload before the segment", .. })));
    let mut out = [0; 2_000];
    let error = packet.write(2, [&sound[..2_048], &[]], [&mut out, &mut []], Checksums::Left);
    assert!(matches!(error, Err(GsoError::Short { what: "a payload", .. })), "{error:?}");
}
