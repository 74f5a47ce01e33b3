//! The rate limits: rate and burst, prefixes, a quiet source beside a flood, many CPUs on one bucket.

use super::frame::{Frame, Ip};
use super::{CLIENT6, SERVICE4, SERVICE6};
use crate::root::common::Random;
use datapath::echo::{DropReason, EchoProgram, Limit, Settings, SourceLimit, Verdict};
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

fn limited(rate: u64, burst: u64) -> Settings {
    let limit = Limit { rate, burst };
    Settings { source: SourceLimit { limit, prefix4: 24, prefix6: 56 }, ..super::settings() }
}

fn request(source: [u8; 4]) -> Vec<u8> {
    Frame::request(Ip::V4(source, SERVICE4)).bytes()
}

/// Runs a request; was it answered? Nothing but a limit may refuse it.
fn answered(program: &EchoProgram, frame: &[u8]) -> bool {
    match program.run(None, frame).unwrap().0 {
        Verdict::Tx => true,
        Verdict::Drop => false,
        other => panic!("{other:?}"),
    }
}

/// What a bucket lets through in this time at most: the program's clock may be a tick behind at
/// the start.
fn most(program: &EchoProgram, limit: Limit, elapsed: Duration) -> u64 {
    let elapsed = elapsed + Duration::from_nanos(program.tick_ns());
    limit.burst + (elapsed.as_secs_f64() * limit.rate as f64) as u64 + 1
}

/// A token bucket as the textbook has it, on a clock without steps.
struct Textbook {
    limit: Limit,
    tokens: f64,
    last: Instant,
    passed: u64,
}

impl Textbook {
    fn new(limit: Limit) -> Self {
        Self { limit, tokens: limit.burst as f64, last: Instant::now(), passed: 0 }
    }

    fn request(&mut self) {
        let now = Instant::now();
        let refill = (now - self.last).as_secs_f64() * self.limit.rate as f64;
        self.tokens = (self.tokens + refill).min(self.limit.burst as f64);
        self.last = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            self.passed += 1;
        }
    }
}

#[test]
fn a_source_gets_its_burst_and_then_its_rate() {
    for (rate, burst) in [(100, 200), (1000, 50), (5000, 100), (50, 1)] {
        let limit = Limit { rate, burst };
        let program = super::program(&limited(rate, burst));
        for frame in [request([192, 0, 2, 7]), Frame::request(Ip::V6(CLIENT6, SERVICE6)).bytes()] {
            let start = Instant::now();
            // When the machine takes the processor away, a full bucket loses what it gains meanwhile,
            // and of the program's, whose clock has steps, up to a tick's worth more.
            let step = rate * program.tick_ns() / 1_000_000_000 + 1;
            let shallow = Limit { rate, burst: burst.saturating_sub(step).max(1) };
            let (mut count, mut textbook) = (0, Textbook::new(shallow));
            while start.elapsed() < Duration::from_millis(400) {
                textbook.request();
                count += u64::from(answered(&program, &frame));
            }
            let most = most(&program, limit, start.elapsed());
            assert!(count <= most, "{rate}/s, {burst}: {count} is more than {most}");
            // It may also be removed between the two.
            let least = textbook.passed * 9 / 10;
            assert!(count + 4 >= least, "{rate}/s, {burst}: {count} is less than {least}");
        }
        let ledger = program.ledger().unwrap();
        for row in ledger.rows {
            let counters = row.counters;
            let refused = counters.dropped(DropReason::SourceLimit);
            assert_eq!(counters.received, counters.answered + refused);
            assert!(refused > 0);
        }
    }
}

#[test]
fn a_prefix_shares_and_its_neighbour_does_not() {
    let program = super::program(&limited(1, 4));
    let count = |sources: &[Ip]| {
        let frames = sources.iter().map(|ip| Frame::request(*ip).bytes());
        frames.filter(|frame| answered(&program, frame)).count()
    };
    let four = |third, last| Ip::V4([198, 51, third, last], SERVICE4);
    let shared: Vec<Ip> = (0..20).map(|last| four(100, last)).collect();
    assert!((4..=5).contains(&count(&shared)));
    assert_eq!(count(&[four(101, 1), four(101, 255)]), 2);
    let six = |subnet: u8, last: u8| {
        let mut address = CLIENT6;
        (address[6], address[7], address[15]) = (subnet, last, last);
        Ip::V6(address, SERVICE6)
    };
    let shared: Vec<Ip> = (0..20).map(|last| six(1, last)).collect();
    assert!((4..=5).contains(&count(&shared)));
    assert_eq!(count(&[six(2, 1), six(2, 255)]), 2);
}

/// 60,000 requests from as many random prefixes in some seconds, against a table that takes in
/// 2^18 buckets times 1/s: the quiet source among them is never refused. A single source that sends
/// as much is.
#[test]
fn a_flood_from_random_sources_does_not_starve_a_quiet_one() {
    let program = super::program(&limited(1, 8));
    let quiet = request([192, 0, 2, 7]);
    let heavy = request([203, 0, 113, 7]);
    let mut random = Random::new(7);
    let mut heavy_answered = 0;
    let start = Instant::now();
    for round in 0..60_000 {
        let source = [1 + random.below(126) as u8, random.next() as u8, random.next() as u8, 1];
        if source[0] != SERVICE4[0] {
            answered(&program, &request(source));
        }
        heavy_answered += u64::from(answered(&program, &heavy));
        if round % 7500 == 0 {
            assert!(answered(&program, &quiet), "refused in round {round}");
        }
    }
    assert!(heavy_answered <= 8 + start.elapsed().as_secs() + 2, "{heavy_answered}");
}

/// Sources that exhaust their buckets on purpose: a new source is refused only if both of its
/// buckets are among theirs. With a share p of the buckets exhausted that is p^2, not p, on average
/// over the secrets of the hash: neighbouring prefixes, as here, clump under some of them.
#[test]
fn both_buckets_must_be_exhausted_to_starve_a_source() {
    const HEAVY: usize = 13_000; // 5 % of 2^18
    const NEW: usize = 4_000;
    const LOADS: usize = 6; // each with a secret of its own
    let mut random = Random::new(9);
    let source = |random: &mut Random, first: usize| {
        [first as u8, random.next() as u8, random.next() as u8, 1]
    };
    let mut refused = 0;
    for _ in 0..LOADS {
        let program = super::program(&limited(1, 2));
        for _ in 0..HEAVY {
            let frame = request(source(&mut random, 9));
            answered(&program, &frame);
            answered(&program, &frame);
        }
        refused +=
            (0..NEW).filter(|_| !answered(&program, &request(source(&mut random, 11)))).count();
    }
    // One row of buckets would refuse 200 of each 4,000; two refuse 10 if the hash were ideal.
    let mean = refused / LOADS;
    assert!(mean < 120, "{mean} of {NEW} new sources were refused");
}

/// Several CPUs charge one bucket: no more than the limit passes, and the ledger is exact.
#[test]
fn many_cpus_share_one_bucket() {
    let program = super::program(&limited(1000, 100));
    let node = Limit { rate: 2000, burst: 500 };
    let frame = request([192, 0, 2, 7]);
    let hammer = |frames: &(dyn Fn(u64) -> Vec<u8> + Sync)| {
        let start = Instant::now();
        let count: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|seed| {
                    let program = &program;
                    scope.spawn(move || {
                        (0..8000).filter(|i| answered(program, &frames(seed * 8000 + i))).count()
                            as u64
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        (count, start.elapsed())
    };
    let (count, elapsed) = hammer(&|_| frame.clone());
    let expected = 100..=most(&program, Limit { rate: 1000, burst: 100 }, elapsed);
    assert!(expected.contains(&count), "{count} not in {expected:?}");

    // The node's ceiling, over sources that have no limit of their own.
    let settings = Settings { node, ..super::settings() };
    program.configure(&settings).unwrap();
    let (ceiling, elapsed) =
        hammer(&|i| request([(i >> 16) as u8 + 9, (i >> 8) as u8, i as u8, 1]));
    let expected = node.burst..=most(&program, node, elapsed);
    assert!(expected.contains(&ceiling), "{ceiling} not in {expected:?}");

    let counters = program.ledger().unwrap().rows[0].counters;
    assert_eq!(program.ledger().unwrap().rows[0].address, IpAddr::from(SERVICE4));
    assert_eq!(counters.received, 64_000);
    assert_eq!(counters.answered, count + ceiling);
    assert_eq!(counters.dropped(DropReason::SourceLimit), 32_000 - count);
    assert_eq!(counters.dropped(DropReason::NodeLimit), 32_000 - ceiling);
}
