//! The matcher against replies that are late, twice, swapped, damaged and foreign.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const START: u64 = 1_000_000_000_000;

struct Bench {
    matcher: Matcher,
    indices: Indices,
    payload: Vec<u8>,
}

impl Bench {
    fn new(base: u32, total: u64, threads: u32) -> Self {
        let indices = Indices::new(base, total, threads);
        let payload = probe::payload([1, 2, 3, 4], 24);
        Self { matcher: Matcher::new(indices, payload.clone(), START), indices, payload }
    }

    fn reply(&mut self, index: u32, sent: u64, at: u64) -> Verdict {
        let mut payload = self.payload.clone();
        payload[8..16].copy_from_slice(&sent.to_be_bytes());
        let number = self.indices.number(index);
        self.matcher.take(Arrival { number, payload: &payload, checksum_ok: true, at })
    }
}

#[test]
fn in_order_with_a_wrapping_number() {
    let mut bench = Bench::new(u32::MAX - 3, 100, 1);
    for index in 0..100 {
        let sent = START + u64::from(index) * 50_000_000;
        assert_eq!(bench.reply(index, sent, sent + 1_000_000), Verdict::Received);
    }
    let replies = bench.matcher.into_replies();
    assert_eq!((replies.received, replies.duplicated, replies.reordered), (100, 0, 0));
    assert_eq!(replies.by_second, [20; 5]);
    let p50 = replies.rtt.value_at_quantile(0.5);
    assert!((999_000..=1_001_000).contains(&p50), "{p50}");
}

#[test]
fn a_reply_behind_a_later_one_is_reordered() {
    let mut bench = Bench::new(7, 100, 1);
    for index in [0, 1, 4, 2, 3, 5] {
        assert_eq!(bench.reply(index, START, START), Verdict::Received);
    }
    // RFC 4737: 2 and 3 are below NextExp, which is 5 after 4; 5 is in order.
    assert_eq!(bench.matcher.replies().reordered, 2);
}

#[test]
fn ranges_of_threads_are_judged_each_for_itself() {
    let mut bench = Bench::new(0, 128, 2);
    assert_eq!(bench.indices.first(1), 64);
    for index in [64, 0, 65, 1, 66, 2] {
        assert_eq!(bench.reply(index, START, START), Verdict::Received);
    }
    assert_eq!(bench.matcher.replies().reordered, 0);
    bench.reply(70, START, START);
    bench.reply(69, START, START);
    assert_eq!(bench.matcher.replies().reordered, 1);
}

#[test]
fn a_second_reply_is_a_duplicate_and_is_not_judged_otherwise() {
    let mut bench = Bench::new(0, 10, 1);
    bench.reply(1, START, START);
    assert_eq!(bench.reply(1, START, START), Verdict::Duplicate);
    assert_eq!(bench.reply(0, START, START), Verdict::Received);
    assert_eq!(bench.reply(0, START, START), Verdict::Duplicate);
    let replies = bench.matcher.into_replies();
    assert_eq!((replies.received, replies.duplicated, replies.reordered), (2, 2, 1));
    assert_eq!(replies.rtt.len(), 2);
}

#[test]
fn damaged_and_foreign_replies() {
    let mut bench = Bench::new(1000, 10, 1);
    let good = bench.payload.clone();
    let mut bad = good.clone();
    bad[20] ^= 1;
    let mut take = |number, payload: &[u8], checksum_ok| {
        bench.matcher.take(Arrival { number, payload, checksum_ok, at: START })
    };
    assert_eq!(take(1000, &bad, true), Verdict::Corrupt);
    assert_eq!(take(1000, &good, false), Verdict::Corrupt);
    assert_eq!(take(1000, &good[..23], true), Verdict::Corrupt);
    assert_eq!(take(1000, &[], true), Verdict::Corrupt);
    assert_eq!(take(999, &good, true), Verdict::Foreign);
    assert_eq!(take(1000 + 64, &good, true), Verdict::Foreign);
    // A damaged reply does not stand in the way of a good one.
    assert_eq!(take(1000, &good, true), Verdict::Received);
    assert_eq!(bench.matcher.replies().corrupt, 4);
}

#[test]
fn a_full_chunk_still_knows_its_own() {
    let mut seen = Seen::default();
    for index in 0..=0x1_0000 {
        assert!(seen.insert(index));
    }
    assert!(matches!(seen.0[0], Chunk::Full));
    assert!(!seen.insert(5));
    assert!(!seen.insert(0x1_0000));
    assert!(seen.insert(0x1_0001));
}

proptest! {
    /// Against a plain set, and NextExp as RFC 4737 writes it, on any order of any indices.
    #[test]
    fn counts_equal_those_of_a_plain_set(order in proptest::collection::vec(0u32..200, 0..400)) {
        let mut bench = Bench::new(123, 200, 1);
        let (mut set, mut next, mut reordered) = (HashSet::new(), 0, 0);
        for &index in &order {
            let new = set.insert(index);
            let verdict = bench.reply(index, START, START);
            prop_assert_eq!(verdict == Verdict::Received, new);
            if new && index >= next {
                next = index + 1;
            } else if new {
                reordered += 1;
            }
        }
        let replies = bench.matcher.into_replies();
        prop_assert_eq!(replies.received, set.len() as u64);
        prop_assert_eq!(replies.duplicated, (order.len() - set.len()) as u64);
        prop_assert_eq!(replies.reordered, reordered);
    }

    #[test]
    fn every_index_has_a_number_of_its_own(base in any::<u32>(), total in 1u64..1 << 30,
                                           threads in 1u32..64, pick in any::<u32>()) {
        let indices = Indices::new(base, total, threads);
        prop_assert!(u64::from(indices.span()) >= total);
        let index = pick % indices.span();
        prop_assert_eq!(indices.index(indices.number(index)), Some(index));
        prop_assert_eq!(indices.index(base.wrapping_sub(1)), None);
        prop_assert_eq!(indices.index(base.wrapping_add(indices.span())), None);
    }
}
