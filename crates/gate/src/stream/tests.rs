//! The streams against a naive reference, and their bounds.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const PLENTY: usize = 1 << 24;

fn tcp(sequence: u32, flags: u8) -> Tcp {
    Tcp { sequence, acknowledgement: 0, flags: flags | Tcp::ACK }
}

/// The output of a half, reassembled and checked for being contiguous.
#[derive(Debug, Default)]
struct Output {
    /// A byte, or one that was not seen.
    bytes: Vec<Option<u8>>,
    ends: Vec<&'static str>,
}

impl Output {
    fn note(&mut self, at: u64, piece: Piece<'_>) {
        assert_eq!(at, self.bytes.len() as u64, "pieces follow each other");
        match piece {
            Piece::Bytes(bytes) => self.bytes.extend(bytes.iter().copied().map(Some)),
            Piece::Gap(length) => {
                self.bytes.extend(std::iter::repeat_n(None, usize::try_from(length).unwrap()));
            }
            Piece::End => self.ends.push("end"),
            Piece::Reset => self.ends.push("reset"),
            Piece::Restart => self.ends.push("restart"),
            Piece::Unclear => self.ends.push("unclear"),
        }
    }

    fn text(&self) -> String {
        self.bytes.iter().map(|byte| byte.map_or('?', char::from)).collect()
    }
}

struct Bench {
    half: Half,
    output: Output,
}

impl Bench {
    fn new(limit: usize) -> Self {
        Self { half: Half::new(limit, Budget::new(PLENTY)), output: Output::default() }
    }

    fn send(&mut self, sequence: u32, flags: u8, bytes: &[u8]) {
        self.cut(sequence, flags, bytes, bytes.len() as u32);
    }

    fn cut(&mut self, sequence: u32, flags: u8, bytes: &[u8], length: u32) {
        let output = &mut self.output;
        self.half.segment(&tcp(sequence, flags), bytes, length, &mut |at, piece| {
            output.note(at, piece);
        });
    }

    fn acknowledge(&mut self, number: u32) {
        let output = &mut self.output;
        self.half.acknowledged(number, &mut |at, piece| output.note(at, piece));
    }
}

/// A segment of a random segmentation: where it starts, its bytes.
fn segments() -> impl Strategy<Value = (u32, Vec<(u16, Vec<u8>)>)> {
    let segment = (0_u16..600, proptest::collection::vec(any::<u8>(), 0..80));
    (any::<u32>(), proptest::collection::vec(segment, 1..120))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any segments, also with different bytes for the same place, in any order, across the wrap of
    /// sequence numbers: what is delivered is the first copy of each byte up to the first hole.
    #[test]
    fn any_segments_are_delivered_like_the_naive_reference((isn, segments) in segments()) {
        let mut bench = Bench::new(PLENTY);
        bench.send(isn.wrapping_sub(1), Tcp::SYN, b"");
        let mut naive = HashMap::new();
        let mut conflicts = 0;
        let mut held = std::collections::HashSet::new();
        for (start, bytes) in &segments {
            bench.send(isn.wrapping_add(u32::from(*start)), 0, bytes);
            for (at, byte) in (usize::from(*start)..).zip(bytes) {
                let first = naive.entry(at).or_insert(*byte);
                conflicts += u64::from(*first != *byte && held.contains(&at));
                held.insert(at);
            }
            let whole: Vec<_> = (0..).map_while(|at| naive.get(&at).copied().map(Some)).collect();
            prop_assert_eq!(&bench.output.bytes, &whole);
            held.retain(|at| *at >= whole.len());
        }
        prop_assert_eq!(bench.half.losses(), Losses { conflicts, ..Losses::default() });
        prop_assert_eq!(bench.half.sequence(0), Some(isn));
    }

    /// With any bound, acknowledgements in between and packets cut short: pieces stay contiguous, every
    /// byte delivered is the right one, and no more is held than allowed.
    #[test]
    fn no_bound_and_no_loss_delivers_a_wrong_byte(
        (isn, segments) in segments(),
        limit in 0_usize..2000,
        cuts in proptest::collection::vec((any::<bool>(), 0_usize..80, 0_u16..700), 120),
    ) {
        let byte_at = |at: usize| (at * 7 + at / 251) as u8;
        let mut bench = Bench::new(limit);
        bench.send(isn.wrapping_sub(1), Tcp::SYN, b"");
        for ((start, bytes), (acknowledge, cut, number)) in segments.iter().zip(cuts) {
            let start = usize::from(*start);
            let true_bytes: Vec<u8> = (start..start + bytes.len()).map(byte_at).collect();
            let copied = true_bytes.get(..cut).unwrap_or(&true_bytes);
            bench.cut(isn.wrapping_add(start as u32), 0, copied, true_bytes.len() as u32);
            if acknowledge {
                bench.acknowledge(isn.wrapping_add(u32::from(number)));
            }
            prop_assert!(bench.half.held() <= limit);
        }
        for (at, byte) in bench.output.bytes.iter().enumerate() {
            prop_assert!(byte.is_none_or(|byte| byte == byte_at(at)), "byte {at}");
        }
        let missed = bench.output.bytes.iter().filter(|byte| byte.is_none()).count() as u64;
        prop_assert_eq!(bench.half.losses().missed, missed);
    }
}

#[test]
fn a_retransmission_with_other_bytes_changes_nothing_and_is_counted() {
    let mut bench = Bench::new(PLENTY);
    bench.send(99, Tcp::SYN, b"");
    bench.send(104, 0, b"efgh");
    bench.send(102, 0, b"cdEfGh");
    bench.send(100, 0, b"ab");
    assert_eq!(bench.output.text(), "abcdefgh");
    assert_eq!(bench.half.losses().conflicts, 2);
}

#[test]
fn a_hole_that_is_acknowledged_becomes_a_gap_at_once() {
    let mut bench = Bench::new(PLENTY);
    bench.send(0xffff_fffd, Tcp::SYN, b"");
    bench.send(0xffff_fffe, 0, b"ab");
    bench.send(3, 0, b"fg");
    assert_eq!(bench.output.text(), "ab");
    // Only up to what was seen: nobody can have acknowledged more.
    bench.acknowledge(100);
    assert_eq!(bench.output.text(), "ab???fg");
    assert_eq!(bench.half.losses().missed, 3);
}

#[test]
fn what_nobody_needs_is_no_loss_and_waits_for_nothing() {
    let mut bench = Bench::new(PLENTY);
    bench.send(100, 0, b"head");
    bench.half.skip(1004);
    bench.send(1106, 0, b"cd");
    assert_eq!(bench.output.text(), "head");
    bench.send(1102, 0, b"yzab");
    assert_eq!(bench.output.text().len(), 1008);
    assert!(bench.output.text().ends_with("?yzabcd"));
    assert_eq!(bench.half.losses(), Losses::default());
}

#[test]
fn a_skip_beyond_the_wrap_of_sequence_numbers_is_followed() {
    let mut bench =
        Bench { half: Half::new(PLENTY, Budget::new(PLENTY)), output: Output::default() };
    let mut gaps = 0_u64;
    let mut sequence = 5_u32;
    let mut at = 0_u64;
    for _ in 0..12 {
        bench.half.segment(&tcp(sequence, 0), b"x", 1, &mut |_, piece| {
            if let Piece::Gap(length) = piece {
                gaps += length;
            }
        });
        at += 1 << 30;
        sequence = sequence.wrapping_add(1 << 30);
        bench.half.skip(at);
    }
    assert_eq!(gaps, 11 * ((1 << 30) - 1));
    assert_eq!(bench.half.position(), 11 * (1 << 30) + 1);
}

#[test]
fn data_on_a_syn_and_on_a_fin_counts() {
    let mut bench = Bench::new(PLENTY);
    bench.send(7, Tcp::SYN, b"ab");
    bench.send(12, Tcp::FIN, b"ef");
    assert!(!bench.half.ended());
    bench.send(10, 0, b"cd");
    assert_eq!((bench.output.text().as_str(), &bench.output.ends[..]), ("abcdef", &["end"][..]));
    bench.send(14, 0, b"more");
    assert_eq!(bench.half.losses().strays, 1);
}

#[test]
fn a_reset_counts_only_where_the_receiver_would_take_it() {
    let mut bench = Bench::new(PLENTY);
    bench.send(99, Tcp::SYN, b"");
    bench.send(100, 0, b"ab");
    bench.send(5000, Tcp::RST, b"");
    bench.send(102, 0, b"cd");
    assert_eq!(bench.output.text(), "abcd");
    bench.send(104, Tcp::RST, b"");
    assert_eq!(bench.output.ends, ["reset"]);
}

#[test]
fn a_half_open_connection_begins_anew_when_its_syn_is_answered() {
    let mut bench = Bench::new(PLENTY);
    bench.send(99, Tcp::SYN, b"");
    bench.send(100, 0, b"ab");
    // The sender lost its state and calls again; the other end still answers for the old connection.
    bench.send(70_000, Tcp::SYN, b"");
    bench.send(102, 0, b"cd");
    assert_eq!(bench.output.text(), "abcd");
    let output = &mut bench.output;
    bench.half.answered(70_001, &mut |at, piece| output.note(at, piece));
    bench.send(70_001, 0, b"new");
    assert_eq!(
        (bench.output.text().as_str(), &bench.output.ends[..]),
        ("abcdnew", &["restart"][..])
    );
}

#[test]
fn after_the_end_a_syn_begins_anew_when_it_is_answered() {
    let mut bench = Bench::new(PLENTY);
    bench.send(99, Tcp::SYN, b"");
    bench.send(100, Tcp::FIN, b"ab");
    bench.send(500, Tcp::SYN, b"");
    assert_eq!(bench.output.ends, ["end"]);
    let output = &mut bench.output;
    assert!(bench.half.answered(501, &mut |at, piece| output.note(at, piece)));
    bench.send(501, 0, b"cd");
    assert_eq!(bench.output.text(), "abcd");
    assert_eq!(bench.output.ends, ["end", "restart"]);
}

#[test]
fn a_super_packet_cut_short_leaves_a_gap_and_no_wait() {
    let mut bench = Bench::new(PLENTY);
    bench.send(99, Tcp::SYN, b"");
    bench.cut(100, 0, b"head", 65_000);
    assert_eq!(bench.output.bytes.len(), 65_000);
    bench.send(65_100, 0, b"tail");
    assert!(bench.output.text().ends_with("?tail"));
    assert_eq!(bench.half.losses().missed, 64_996);
}

#[test]
fn a_window_probe_of_an_old_byte_changes_nothing() {
    let mut bench = Bench::new(PLENTY);
    bench.send(99, Tcp::SYN, b"");
    bench.send(100, 0, b"abc");
    bench.send(102, 0, b"\0");
    bench.send(102, 0, b"");
    bench.send(103, 0, b"d");
    assert_eq!(bench.output.text(), "abcd");
}

/// A flood of early bytes over many connections stays within the common budget, each within its own
/// limit, and everything is given back at the end.
#[test]
fn a_flood_of_early_segments_stays_within_its_bounds() {
    let (each, all) = (50_000, 1_000_000);
    let budget = Budget::new(all);
    let mut halves: Vec<_> = (0..200).map(|_| Half::new(each, budget.clone())).collect();
    let mut delivered = 0;
    for round in 0..400_u32 {
        for half in &mut halves {
            half.segment(&tcp(0, Tcp::SYN), b"", 0, &mut |_, _| {});
            // Each second segment is missing.
            half.segment(&tcp(1 + round * 2000 + 1000, 0), &[7; 1000], 1000, &mut |_, piece| {
                if let Piece::Bytes(bytes) = piece {
                    delivered += bytes.len();
                }
            });
            assert!(half.held() <= each);
        }
        assert!(budget.used() <= all);
    }
    let held: usize = halves.iter().map(Half::held).sum();
    assert_eq!(held, budget.used());
    // Nothing waits for ever: what is not held was delivered over gaps.
    assert!(delivered >= 200 * 400 * 1000 - held);
    drop(halves);
    assert_eq!(budget.used(), 0);
}

fn judged() -> Bench {
    let mut bench = Bench::new(PLENTY);
    bench.half.judge(true);
    bench.send(99, Tcp::SYN, b"");
    bench
}

#[test]
fn what_comes_again_otherwise_is_unclear_until_it_is_acknowledged() {
    let mut bench = judged();
    bench.send(100, 0, b"abcd");
    bench.send(102, 0, b"cdef");
    assert_eq!((bench.output.text().as_str(), bench.output.ends.len()), ("abcdef", 0));
    bench.acknowledge(103);
    bench.send(100, 0, b"xxx");
    assert_eq!(bench.output.ends.len(), 0, "nobody takes it any more");
    bench.send(102, 0, b"xx");
    assert_eq!(
        (bench.output.text().as_str(), &bench.output.ends[..]),
        ("abcdef", &["unclear"][..])
    );
    assert_eq!(bench.half.losses().unclear, 1);
}

#[test]
fn what_is_no_longer_kept_cannot_be_compared() {
    let mut bench = Bench { half: Half::new(200, Budget::new(PLENTY)), output: Output::default() };
    bench.half.judge(true);
    bench.send(99, Tcp::SYN, b"");
    for at in 0..4 {
        bench.send(100 + at * 50, 0, &[b'a'; 50]);
    }
    bench.send(250, 0, &[b'a'; 50]);
    assert_eq!(bench.output.ends.len(), 0);
    bench.send(100, 0, b"a");
    assert_eq!(bench.output.ends, ["unclear"]);
}

#[test]
fn ends_that_differ_and_urgent_data_are_unclear() {
    const URG: u8 = 32;
    let rows: [&[(u32, u8, &[u8])]; 5] = [
        &[(100, Tcp::FIN, b"abcd"), (104, 0, b"e")],
        &[(100, Tcp::FIN, b"abcd"), (100, Tcp::FIN, b"ab")],
        &[(106, 0, b"gh"), (100, Tcp::FIN, b"abcd")],
        &[(100, URG, b"abcd")],
        &[(100, 0, b"abcd"), (104, URG, b"")],
    ];
    for row in rows {
        let mut bench = judged();
        for (sequence, flags, bytes) in row {
            bench.send(*sequence, *flags, bytes);
        }
        assert_eq!(bench.half.losses().unclear, 1, "{row:?}");
    }
    // The same end again is none other, and a reset says nothing of what was read.
    let mut bench = judged();
    for flags in [Tcp::FIN, Tcp::FIN, Tcp::RST] {
        bench.send(100, flags, b"abcd");
    }
    assert_eq!(bench.half.losses().unclear, 0);
}
