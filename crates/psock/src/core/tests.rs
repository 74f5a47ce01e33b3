//! Two cores beside each other: what one hands out, the other gets; and what no honest peer sends.

use super::{driver::DriverName, frame::Frame, *};

mod hostile;
mod receiver;

const WINDOW: usize = 1 << 20;
const MS: u64 = 1_000_000;

fn core(driver: DriverName) -> Core {
    let settings =
        Settings { driver, block_bytes: RECORD_BLOCK, reorder_bytes: WINDOW, send_bytes: WINDOW };
    let mut core = Core::new(settings, WINDOW as u64);
    for id in 0..2 {
        core.opened(ConnectionId(id), 0);
    }
    core
}

fn octets(frame: &OutFrame) -> Vec<u8> {
    let octets = [frame.head(), frame.payload()].concat();
    assert_eq!(octets.len(), frame.length());
    octets
}

/// What a core hands to a connection now.
fn handed(core: &mut Core, id: u32, now_ns: u64) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Next::Frame(frame) = core.next(ConnectionId(id), now_ns) {
        all.push(octets(&frame));
    }
    all
}

fn give(core: &mut Core, id: u32, octets: &[u8], now_ns: u64) -> Result<(), Violation> {
    let (frame, length) = Frame::parse(octets).expect("a frame").expect("a whole one");
    assert_eq!(length, octets.len());
    core.receive(ConnectionId(id), &frame, now_ns)
}

fn carry(from: &mut Core, to: &mut Core, id: u32, now_ns: u64) -> usize {
    let frames = handed(from, id, now_ns);
    for octets in &frames {
        give(to, id, octets, now_ns).expect("no violation");
    }
    frames.len()
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn delivered(core: &mut Core) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = core.deliver() {
        all.extend_from_slice(chunk.as_ref());
        core.delivered(chunk.as_ref().len());
    }
    all
}

#[test]
fn a_stream_arrives_whole_both_ways_and_ends() {
    for driver in DriverName::ALL {
        let (mut a, mut b) = (core(driver), core(driver));
        let (there, back) = (bytes(900_000), bytes(100_001));
        a.push(there.clone());
        b.push(back.clone());
        a.finish();
        b.finish();
        for turn in 1..100 {
            for id in [0, 1] {
                carry(&mut a, &mut b, id, turn * MS);
                carry(&mut b, &mut a, id, turn * MS);
            }
        }
        assert!(delivered(&mut b) == there && delivered(&mut a) == back, "{driver}");
        for id in [0, 1] {
            carry(&mut a, &mut b, id, 1_000 * MS);
            carry(&mut b, &mut a, id, 1_000 * MS);
        }
        assert_eq!([a.outcome(), b.outcome()], [Outcome::FinishedBoth; 2], "{driver}");
        assert_eq!(a.total().received_blocks, b.total().sent_blocks);
    }
}

#[test]
fn an_empty_stream_ends_too() {
    let (mut a, mut b) = (core(DriverName::Adaptive), core(DriverName::Adaptive));
    a.finish();
    assert_eq!(carry(&mut a, &mut b, 0, 0), 1);
    assert_eq!(b.outcome(), Outcome::FinishedReceiving);
    carry(&mut b, &mut a, 0, 2 * MS);
    assert_eq!(a.outcome(), Outcome::FinishedSending);
}

#[test]
fn round_robin_takes_turns_and_waits_for_the_one_whose_turn_it_is() {
    let mut a = core(DriverName::RoundRobin);
    a.push(bytes(5 * RECORD_BLOCK));
    assert_eq!(handed(&mut a, 1, 0).len(), 0);
    assert_eq!(handed(&mut a, 0, 0).len(), 1);
    assert_eq!(handed(&mut a, 0, 0).len(), 0);
    assert_eq!(handed(&mut a, 1, 0).len(), 1);
    assert_eq!(handed(&mut a, 1, 0).len(), 0);
    // Who is gone has no turns.
    a.closed(ConnectionId(0), 0);
    assert_eq!(handed(&mut a, 1, 0).len(), 4);
    assert_eq!(a.total().retransmitted_blocks, 1);
}

#[test]
fn blocks_of_a_connection_that_is_gone_are_sent_on_another_as_they_were() {
    for driver in DriverName::ALL {
        let (mut a, mut b) = (core(driver), core(driver));
        let stream = bytes(3 * RECORD_BLOCK + 1);
        a.push(stream.clone());
        a.finish();
        let lost = handed(&mut a, 0, 0);
        assert!(!lost.is_empty());
        a.closed(ConnectionId(0), MS);
        for turn in 1..20 {
            carry(&mut a, &mut b, 1, turn * MS);
            carry(&mut b, &mut a, 1, turn * MS);
        }
        assert!(delivered(&mut b) == stream, "{driver}");
        // Some of it was not lost after all.
        for octets in &lost {
            give(&mut b, 0, octets, 30 * MS).expect("a duplicate");
        }
        assert!(b.total().duplicate_blocks > 0);
        assert_eq!(b.reorder_bytes(), 0);
    }
}

#[test]
fn the_adaptive_driver_sends_blocks_of_a_silent_connection_again_before_it_is_closed() {
    let (mut a, mut b) = (core(DriverName::Adaptive), core(DriverName::Adaptive));
    let kernel = Kernel { srtt_ns: 10 * MS, min_rtt_ns: 10 * MS, ..Kernel::default() };
    for id in [0, 1] {
        a.observe(ConnectionId(id), &kernel, 0);
    }
    a.push(bytes(2 * RECORD_BLOCK));
    assert_eq!(handed(&mut a, 0, 0).len(), 2);
    let mut now_ns = 0;
    while delivered(&mut b).is_empty() {
        now_ns = a.wake_at().expect("it waits for something");
        a.tick(now_ns);
        carry(&mut a, &mut b, 1, now_ns);
        assert!(now_ns < 200 * MS, "{now_ns} ns");
    }
    assert!(now_ns > 10 * MS, "{now_ns} ns");
}

#[test]
fn the_window_holds_back_the_sender_and_opens_when_the_application_takes() {
    for driver in DriverName::ALL {
        let (mut a, mut b) = (core(driver), core(driver));
        let stream = bytes(3 * WINDOW);
        let (mut given, mut taken) = (0, Vec::new());
        for turn in 1..2_000 {
            let room = a.send_room().min(stream.len() - given);
            a.push(stream[given..given + room].to_vec());
            given += room;
            for id in [0, 1] {
                carry(&mut a, &mut b, id, turn * MS);
                carry(&mut b, &mut a, id, turn * MS);
            }
            assert!(b.reorder_bytes() <= WINDOW && a.unacknowledged_bytes() <= WINDOW);
            // The application rests until the window is full.
            if turn % 400 == 0 {
                let left = stream.len() - taken.len();
                assert!(b.reorder_bytes() >= left.min(WINDOW - RECORD_BLOCK), "{driver}");
                taken.extend(delivered(&mut b));
            }
        }
        taken.extend(delivered(&mut b));
        assert!(taken == stream, "{driver}: {} of {}", taken.len(), stream.len());
    }
}

#[test]
fn small_writes_that_wait_become_whole_blocks() {
    let (mut a, mut b) = (core(DriverName::PollAll), core(DriverName::PollAll));
    let stream = bytes(2 * RECORD_BLOCK + 10);
    for piece in stream.chunks(7) {
        a.push(piece.to_vec());
    }
    assert_eq!(carry(&mut a, &mut b, 0, 0), 3);
    assert!(delivered(&mut b) == stream);
}

#[test]
fn names_are_read_back() {
    for driver in DriverName::ALL {
        assert_eq!(driver.to_string().parse(), Ok(driver));
        assert_eq!(DriverName::from_code(driver.code()), Some(driver));
    }
    let error = "rr".parse::<DriverName>().expect_err("no driver");
    assert_eq!(error.to_string(), "no driver \"rr\": there are round-robin, poll-all and adaptive");
}
