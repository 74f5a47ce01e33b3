//! Any segments, acknowledgements and skips as one direction of a connection: pieces follow each other,
//! bytes are those that were sent, no more is held than allowed.
//!
//! After two bytes of bound and start come records of six: what, where (two), how long, how much of it
//! was copied, an acknowledgement.

use classify::packet::Tcp;
use gate::stream::{Budget, Half, Piece};
use std::cell::Cell;

fn byte_at(at: usize) -> u8 {
    (at * 7 + at / 251) as u8
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&[limit, start], records)) = data.split_first_chunk() else { return };
    let limit = usize::from(limit) * 16;
    let budget = Budget::new(limit / 2 + 64);
    let mut half = Half::new(limit, budget.clone());
    half.judge(start & 1 == 1);
    let isn = u32::from(start).wrapping_neg();
    let mut next = 0;
    let anew = Cell::new(false);
    let mut check = |at: u64, piece: Piece<'_>| {
        assert_eq!(at, next, "pieces follow each other");
        match piece {
            Piece::Bytes(bytes) => {
                for (at, byte) in (next as usize..).zip(bytes) {
                    assert!(anew.get() || *byte == byte_at(at));
                }
                next += bytes.len() as u64;
            }
            Piece::Gap(length) => next += length,
            Piece::End | Piece::Reset | Piece::Restart | Piece::Unclear => {}
        }
    };
    let syn = Tcp { sequence: isn.wrapping_sub(1), acknowledgement: 0, flags: Tcp::SYN };
    half.segment(&syn, b"", 0, &mut check);
    for &[what, high, low, length, copied, number] in records.as_chunks().0 {
        let place = usize::from(u16::from_be_bytes([high, low]) % 2048);
        let bytes: Vec<u8> = (place..place + usize::from(length)).map(byte_at).collect();
        let flags = what & (Tcp::FIN | Tcp::RST);
        let sequence = isn.wrapping_add(place as u32);
        match what >> 5 {
            0 => half.acknowledged(isn.wrapping_add(u32::from(number) * 8), &mut check),
            1 => half.skip(u64::from(number) * 8),
            2 => {
                // Offsets go on, what is sent begins again.
                anew.set(true);
                let tcp = Tcp { sequence, acknowledgement: 0, flags: Tcp::SYN };
                half.segment(&tcp, b"", 0, &mut check);
                half.answered(sequence.wrapping_add(1), &mut check);
            }
            _ => {
                let tcp = Tcp { sequence, acknowledgement: 0, flags };
                let part = bytes.get(..usize::from(copied)).unwrap_or(&bytes);
                half.segment(&tcp, part, u32::from(length), &mut check);
            }
        }
        assert!(half.held() <= 2 * limit && half.held() == budget.used());
    }
    drop(half);
    assert_eq!(budget.used(), 0);
}
