//! A table of packets: each rule alone, sizes, numbers, rates, and what time it is.

use super::frame::{Check, Frame, packet};
use super::model::{self, Outcome};
use super::{SENDER, SSID};
use datapath::stamp::{Clocks, Ledger, Limit, SLACK, StampProgram, Verdict};
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// NTP's form of the present, rounded.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let fraction = (u64::from(now.subsec_nanos()) << 32) / 1_000_000_000;
    (now.as_secs() + 2_208_988_800) << 32 | fraction
}

/// Runs a frame and holds what comes of it against the model; the outcome.
pub(crate) fn run(program: &StampProgram, frame: &[u8], number: &mut u32) -> Outcome {
    let outcome = model::judge(frame, *number);
    let before = program.ledger().unwrap();
    let (verdict, out) = program.run(frame).unwrap();
    let after = program.ledger().unwrap();
    let count = |ledger: &Ledger| match outcome {
        Outcome::Other => ledger.other,
        Outcome::Sender => ledger.passed_sender,
        Outcome::Form => ledger.passed_form,
        Outcome::Short => ledger.too_short,
        Outcome::Checksum => ledger.bad_checksum,
        Outcome::Corrupt => ledger.corrupt,
        Outcome::Reflected(_) => ledger.reflected,
    };
    match &outcome {
        Outcome::Reflected(reply) => {
            *number += 1;
            assert_eq!(verdict, Verdict::Tx, "{outcome:?}");
            let (out, times) = model::without_times(out);
            assert_eq!(out, *reply);
            assert_eq!(times[0], times[1]);
            // No farther from now than an hour: the test's machine may be slow, or set its clock.
            assert!(times[0].abs_diff(now()) < 3600 << 32, "{times:?}");
        }
        Outcome::Other | Outcome::Sender | Outcome::Form => {
            assert_eq!((verdict, &out[..]), (Verdict::Pass, frame), "{outcome:?}");
        }
        _ => assert_eq!((verdict, &out[..]), (Verdict::Drop, frame), "{outcome:?}"),
    }
    assert_eq!(count(&after), count(&before) + 1, "{outcome:?}");
    outcome
}

/// One change to a right packet, and what is to come of it.
type Row = (&'static str, fn(&mut Frame), fn(&Outcome) -> bool);

#[test]
fn each_rule_alone() {
    let program = super::program();
    let reflected = |outcome: &Outcome| matches!(outcome, Outcome::Reflected(_));
    let both: &[Row] = &[
        ("plain", |_| (), reflected),
        ("one tag", |f| f.link.tags = vec![(0x8100, 5)], reflected),
        ("two tags", |f| f.link.tags = vec![(0x88a8, 5), (0x8100, 6)], reflected),
        ("three tags", |f| f.link.tags = vec![(0x8100, 5); 3], |o| *o == Outcome::Other),
        ("padding behind it", |f| f.link.padding = vec![7; 9], reflected),
        ("to a multicast MAC", |f| f.link.to[0] = 1, |o| *o == Outcome::Form),
        ("from a multicast MAC", |f| f.link.from[0] = 3, |o| *o == Outcome::Form),
        ("congestion experienced", |f| f.class |= 3, reflected),
        ("no DSCP", |f| f.class = 0, reflected),
        ("an unfinished UDP checksum", |f| f.check = Check::Partial, reflected),
        ("a wrong one", |f| f.check = Check::Flipped(0x0100), |o| *o == Outcome::Checksum),
        ("ICMP", |f| f.protocol = 1, |o| *o == Outcome::Other),
        ("a fragment header", |f| f.protocol = 44, |o| *o == Outcome::Other),
        ("another port", |f| f.to_port = 863, |o| *o == Outcome::Other),
        ("from port 0", |f| f.from_port = 0, |o| *o == Outcome::Form),
        ("an unknown peer's SSID", |f| f.payload[15] = 8, |o| *o == Outcome::Sender),
        ("no SSID", |f| f.payload[15] = 0, reflected),
        ("multiplier 0", |f| f.payload[13] = 0, |o| *o == Outcome::Corrupt),
        ("IP says more", |f| f.ip_lie = 1, |o| *o == Outcome::Form),
        ("IP says less", |f| f.ip_lie = -1, |o| *o == Outcome::Form),
        ("UDP says more", |f| f.udp_lie = 1, |o| *o == Outcome::Form),
        ("UDP says less", |f| f.udp_lie = -1, |o| *o == Outcome::Form),
        ("what must be zero is not", |f| f.payload[16..44].fill(0xff), reflected),
        ("43 bytes", |f| f.payload.truncate(43), |o| *o == Outcome::Short),
        ("16 bytes", |f| f.payload.truncate(16), |o| *o == Outcome::Short),
        ("15 bytes", |f| f.payload.truncate(15), |o| *o == Outcome::Short),
        ("no bytes", |f| f.payload.clear(), |o| *o == Outcome::Short),
    ];
    let four: &[Row] = &[
        ("no UDP checksum", |f| f.check = Check::None, reflected),
        ("a wrong header checksum", |f| f.spoil_ip = 1, |o| *o == Outcome::Checksum),
        ("more fragments", |f| f.fragment = 0x2000, |o| *o == Outcome::Form),
        ("a later fragment", |f| f.fragment = 1, |o| *o == Outcome::Form),
        ("may be fragmented", |f| f.fragment = 0, reflected),
        ("an unknown peer", |f| f.source = [192, 0, 2, 8].into(), |o| *o == Outcome::Sender),
        ("not ours", |f| f.target = [198, 51, 100, 2].into(), |o| *o == Outcome::Other),
        ("options", |f| f.options = vec![1; 4], |o| *o == Outcome::Other),
    ];
    let six: &[Row] = &[
        ("no UDP checksum", |f| f.check = Check::None, |o| *o == Outcome::Checksum),
        (
            "an unknown peer",
            |f| f.source = "2001:db8::8".parse().unwrap(),
            |o| *o == Outcome::Sender,
        ),
        ("not ours", |f| f.target = "2001:db8::2".parse().unwrap(), |o| *o == Outcome::Other),
    ];
    let rows = [both, both, four, six];
    for (family, rows) in [0, 1, 0, 1].into_iter().zip(rows) {
        let mut numbers = [0, 0];
        // One session for each SSID, so that the numbers go on where they were.
        for ssid in [0, SSID] {
            program.admit(SENDER[family].parse().unwrap(), ssid, super::LIMIT).unwrap();
        }
        for (place, (what, change, expected)) in rows.iter().enumerate() {
            let mut frame = Frame::test(family, place as u32);
            change(&mut frame);
            let session = usize::from(frame.payload.get(15) == Some(&0));
            let outcome = run(&program, &frame.bytes(), &mut numbers[session]);
            assert!(expected(&outcome), "{what}: {outcome:?}");
        }
    }
}

#[test]
fn every_length_is_reflected_with_a_right_checksum() {
    let program = super::program();
    for family in [0, 1] {
        let mut number = 0;
        for length in (0..200).chain([255, 256, 257, 1000, 1399, 1400]) {
            let rest: Vec<u8> = (0..length).map(|byte| (byte * 7 + 3) as u8).collect();
            let mut frame = Frame::test(family, length as u32);
            frame.payload = packet(length as u32, 5 + length as u64, SSID, &rest);
            let outcome = run(&program, &frame.bytes(), &mut number);
            assert!(matches!(outcome, Outcome::Reflected(_)), "{length}: {outcome:?}");
        }
    }
}

#[test]
fn a_sender_that_begins_again_is_counted_from_zero() {
    let program = super::program();
    let mut frame = Frame::test(0, 0);
    let mut number = |sequence: u32, sent: u64| {
        frame.payload = packet(sequence, sent, SSID, &[]);
        let (verdict, out) = program.run(&frame.bytes()).unwrap();
        assert_eq!(verdict, Verdict::Tx);
        u32::from_be_bytes(out[42..46].try_into().unwrap())
    };
    let packets = [(0, 100), (1, 110), (3, 130), (2, 120), (3, 130), (4, 140)];
    let numbers: Vec<_> = packets.iter().map(|(n, sent)| number(*n, *sent)).collect();
    // Overtaking and duplicates are packets like others.
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    let again = [(0, 200), (1, 210), (0, 200)];
    let numbers: Vec<_> = again.iter().map(|(n, sent)| number(*n, *sent)).collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn no_more_than_the_agreed_rate_is_reflected() {
    let program = super::program();
    let sender: IpAddr = SENDER[0].parse().unwrap();
    let begin = Instant::now();
    program.admit(sender, SSID, Limit { rate: 1, burst: 3 }).unwrap();
    let send = |sequence| program.run(&Frame::test(0, sequence).bytes()).unwrap().0;
    let verdicts: Vec<_> = (0..6).map(send).collect();
    assert_eq!(verdicts[..3], [Verdict::Tx; 3]);
    // One more for each second that has passed, on a machine that stood still.
    let most = 4 + begin.elapsed().as_secs() as usize;
    assert!(verdicts.iter().filter(|verdict| **verdict == Verdict::Tx).count() <= most);
    let ledger = program.ledger().unwrap();
    assert_eq!(ledger.reflected + ledger.over_rate, 6);
    assert!(program.admit(sender, 9, Limit { rate: 1_000_000, burst: 1 }).is_err());
}

#[test]
fn what_is_no_longer_agreed_is_left_to_the_sockets() {
    let program = super::program();
    let sender: IpAddr = SENDER[1].parse().unwrap();
    assert!(program.remove(sender, SSID));
    assert!(!program.remove(sender, SSID));
    let (verdict, _) = program.run(&Frame::test(1, 0).bytes()).unwrap();
    assert_eq!(verdict, Verdict::Pass);
    let ledger = program.ledger().unwrap();
    assert_eq!((ledger.passed_sender, ledger.other), (1, 0));
}

/// A station's clock as it was a moment ago, and what a reply says of it now.
#[test]
fn an_error_that_is_out_of_date_or_of_a_clock_that_was_stepped_is_not_known() {
    const UNKNOWN: u16 = 0x3fff;
    const LONG: Duration = Duration::from_secs(3600);
    let program = super::program();
    let error = |clocks: &Clocks, good_for| {
        program.set_clock(clocks, super::ERROR, good_for);
        let (verdict, out) = program.run(&Frame::test(0, 0).bytes()).unwrap();
        assert_eq!(verdict, Verdict::Tx);
        u16::from_be_bytes(out[54..56].try_into().unwrap())
    };
    let now = Clocks::read().unwrap();
    // What interrupts the program between two clocks makes one reply say less than it could.
    assert!((0..100).any(|_| error(&now, LONG) == super::ERROR));
    assert_eq!(error(&now, Duration::ZERO), UNKNOWN);
    let step = SLACK * 2;
    for stepped in
        [Clocks { boot: now.boot + step, ..now }, Clocks { boot: now.boot - step, ..now }]
    {
        assert_eq!(error(&stepped, LONG), UNKNOWN);
    }
}
