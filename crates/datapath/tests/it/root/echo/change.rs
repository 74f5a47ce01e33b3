//! Changes of the settings while packets arrive, and what the ledger keeps over them.

use super::frame::{Frame, Ip};
use super::{CLIENT4, SERVICE4, SERVICE6};
use datapath::echo::{Counters, EchoProgram, Settings, Verdict};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const ONE: [u8; 4] = [203, 0, 113, 1];
const TWO: [u8; 4] = [203, 0, 113, 2];

fn of(addresses: &[[u8; 4]]) -> Settings {
    let addresses = addresses.iter().map(|address| IpAddr::from(*address)).collect();
    Settings { addresses, probes: Vec::new(), ..super::settings() }
}

fn request(target: [u8; 4]) -> Vec<u8> {
    Frame::request(Ip::V4(CLIENT4, target)).bytes()
}

/// Under the first settings a request to ONE is denied and one to TWO passed, under the second one to
/// ONE is passed and one to TWO answered. An answer from ONE, or a drop at TWO, would be half of each.
#[test]
fn no_packet_sees_half_a_change() {
    let first = Settings { deny: vec!["192.0.2.0/24".parse().unwrap()], ..of(&[ONE]) };
    // Lists of the second settings have the same prefix, longer and shorter ones, all allowed.
    let allow = ["192.0.2.0/24", "192.0.2.7/32", "192.0.0.0/8"];
    let allow = allow.map(|text| text.parse().unwrap()).into();
    let second = Settings { allow, ..of(&[TWO]) };
    let program = super::program(&first);
    let stop = AtomicBool::new(false);
    let runs = AtomicU64::new(0);
    thread::scope(|scope| {
        let workers = [(); 2].map(|()| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (one, _) = program.run(None, &request(ONE)).unwrap();
                    assert!(matches!(one, Verdict::Drop | Verdict::Pass), "{one:?}");
                    let (two, _) = program.run(None, &request(TWO)).unwrap();
                    assert!(matches!(two, Verdict::Tx | Verdict::Pass), "{two:?}");
                    runs.fetch_add(2, Ordering::Relaxed);
                }
            })
        });
        // Until enough packets came between the changes: there may be one processor for all.
        let failed = || workers.iter().any(|worker| worker.is_finished());
        let mut changes = 0;
        while (changes < 25 || runs.load(Ordering::Relaxed) <= 1000) && !failed() {
            program.configure(&second).unwrap();
            assert_eq!(program.run(None, &request(TWO)).unwrap().0, Verdict::Tx);
            program.configure(&first).unwrap();
            assert_eq!(program.run(None, &request(ONE)).unwrap().0, Verdict::Drop);
            changes += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// The ledger balances whenever it is read, and only grows.
#[test]
fn the_ledger_balances_under_traffic() {
    let program = super::program(&super::settings());
    let stop = AtomicBool::new(false);
    let sent: u64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut frame = Frame::request(Ip::V4(CLIENT4, SERVICE4));
                    let good = frame.bytes();
                    frame.spoil_icmp = 1;
                    let bad = frame.bytes();
                    frame.kind = 0;
                    let passed = frame.bytes();
                    let mut sent = 0;
                    while !stop.load(Ordering::Relaxed) {
                        for frame in [&good, &bad, &passed] {
                            program.run(None, frame).unwrap();
                        }
                        sent += 3;
                    }
                    sent
                })
            })
            .collect();
        let mut last = Counters::default();
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            let now = program.ledger().unwrap().rows[0].counters;
            assert_eq!(now.received, now.accounted());
            assert!(now.received >= last.received && now.answered >= last.answered);
            last = now;
        }
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let end = program.ledger().unwrap().rows[0].counters;
    assert_eq!((end.received, end.answered, end.passed), (sent, sent / 3, sent / 3));
}

fn answered(program: &EchoProgram, address: [u8; 4]) -> u64 {
    let ledger = program.ledger().unwrap();
    let address = IpAddr::from(address);
    ledger.rows.iter().find(|row| row.address == address).unwrap().counters.answered
}

#[test]
fn an_address_keeps_its_counters_while_it_stays() {
    let program = super::program(&of(&[ONE, TWO]));
    for _ in 0..3 {
        program.run(None, &request(ONE)).unwrap();
        program.run(None, &request(TWO)).unwrap();
    }
    program.configure(&of(&[[203, 0, 113, 3], TWO])).unwrap();
    assert_eq!(answered(&program, TWO), 3);
    assert_eq!(answered(&program, [203, 0, 113, 3]), 0);
    program.run(None, &request(TWO)).unwrap();
    assert_eq!(answered(&program, TWO), 4);
    // All 64 replaced by 64 others, many times: every one begins at zero and counts.
    for round in 0..6_u8 {
        let addresses: Vec<_> = (0..64).map(|last| [10, 0, round, last]).collect();
        program.configure(&of(&addresses)).unwrap();
        for address in &addresses {
            assert_eq!(answered(&program, *address), 0);
            assert_eq!(program.run(None, &request(*address)).unwrap().0, Verdict::Tx);
            assert_eq!(answered(&program, *address), 1);
        }
    }
}

/// Settings that are refused change nothing.
#[test]
fn a_refused_change_changes_nothing() {
    let program = super::program(&of(&[ONE]));
    let bad = Settings { addresses: vec!["127.0.0.1".parse().unwrap()], ..of(&[TWO]) };
    program.configure(&bad).unwrap_err();
    assert_eq!(program.settings(), of(&[ONE]));
    assert_eq!(program.run(None, &request(ONE)).unwrap().0, Verdict::Tx);
    assert_eq!(program.run(None, &request(TWO)).unwrap().0, Verdict::Pass);
}

/// The busiest prefixes and the histogram come from samples, one a tick at most.
#[test]
fn samples_show_who_asks_and_how_long_it_takes() {
    let program = super::program(&super::settings());
    let six = Frame::request(Ip::V6(super::CLIENT6, SERVICE6)).bytes();
    let end = Instant::now() + Duration::from_millis(300);
    let mut sent = 0;
    while Instant::now() < end {
        program.run(None, &request(SERVICE4)).unwrap();
        program.run(None, &six).unwrap();
        sent += 1;
    }
    let top = program.top(10).unwrap();
    let prefixes: Vec<String> = top.iter().map(|source| source.prefix.to_string()).collect();
    assert!(prefixes.contains(&"192.0.2.0/24".to_owned()), "{prefixes:?}");
    assert!(prefixes.contains(&"2001:db8:7::/56".to_owned()), "{prefixes:?}");
    for source in &top {
        // Each sample stands for the packets since the last: only those after it are missing.
        assert!(source.packets > sent / 2 && source.packets <= sent, "{source:?} of {sent}");
    }
    assert_eq!(program.top(1).unwrap().len(), 1);
    let latency = program.latency().unwrap();
    let ticks = 300_000_000 / program.tick_ns();
    assert!((1..=2 * 2 * (ticks + 2)).contains(&latency.samples()), "{}", latency.samples());
    assert!(latency.quantile(0.5).unwrap() < 100_000);
}
