//! The receiver beside the plainest one: a list of bytes that came and of those that did not.

use proptest::prelude::*;

use super::*;
use crate::core::receiver::Receiver;

/// What a stream's byte at this offset is.
fn byte(offset: u64) -> u8 {
    (offset * 31 % 251) as u8
}

/// Blocks that follow each other, and an order in which they come; some come more often.
fn arrivals() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    prop::collection::vec(1usize..20, 1..30).prop_flat_map(|lengths| {
        let indices = prop::collection::vec(0..lengths.len(), 1..100);
        (Just(lengths), indices)
    })
}

proptest! {
    #[test]
    fn whatever_the_order_the_stream_is_the_same((lengths, order) in arrivals()) {
        let starts: Vec<usize> =
            lengths.iter().scan(0, |at, length| { *at += length; Some(*at - length) }).collect();
        let mut came = vec![false; lengths.iter().sum()];
        let mut receiver = Receiver::new(came.len() as u64);
        let mut got = Vec::new();
        for index in order {
            let (start, length) = (starts[index], lengths[index]);
            let bytes: Vec<u8> = (start..start + length).map(|at| byte(at as u64)).collect();
            let block = Block { offset: start as u64, bytes: &bytes };
            let taken = receiver.block(&block).expect("no violation");
            prop_assert_eq!(taken == Taken::Duplicate, came[start]);
            came[start..start + length].fill(true);
            let in_order = came.iter().take_while(|came| **came).count();
            prop_assert_eq!(receiver.in_order(), in_order as u64);
            let kept = came.iter().filter(|came| **came).count() - got.len();
            prop_assert_eq!(receiver.held(), kept);
            if index % 2 == 0 {
                while let Some(chunk) = receiver.deliver() {
                    got.extend_from_slice(chunk.as_ref());
                    receiver.delivered(chunk.as_ref().len());
                }
                prop_assert_eq!(got.len(), in_order);
            }
        }
        prop_assert!(got.iter().enumerate().all(|(at, got)| *got == byte(at as u64)));
    }
}
