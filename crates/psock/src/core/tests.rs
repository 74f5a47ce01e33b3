//! Two cores beside each other: what one hands out, the other gets.

use super::{driver::DriverName, frame::Frame, *};

const WINDOW: usize = 1 << 20;

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
    [frame.head(), frame.payload()].concat()
}

/// What `from` hands to a connection now goes to `to`; how many frames.
fn carry(from: &mut Core, to: &mut Core, id: u32, now_ns: u64) -> usize {
    let mut count = 0;
    while let Next::Frame(frame) = from.next(ConnectionId(id), now_ns) {
        let octets = octets(&frame);
        let (frame, length) = Frame::parse(&octets).expect("a frame").expect("a whole one");
        assert_eq!(length, octets.len());
        to.receive(ConnectionId(id), &frame, now_ns).expect("no violation");
        count += 1;
    }
    count
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
                carry(&mut a, &mut b, id, turn * 1_000_000);
                carry(&mut b, &mut a, id, turn * 1_000_000);
            }
        }
        assert!(delivered(&mut b) == there && delivered(&mut a) == back, "{driver}");
        for id in [0, 1] {
            carry(&mut a, &mut b, id, 1_000_000_000);
            carry(&mut b, &mut a, id, 1_000_000_000);
        }
        assert_eq!([a.outcome(), b.outcome()], [Outcome::FinishedBoth; 2], "{driver}");
        assert_eq!(a.total().received_blocks, b.total().sent_blocks);
    }
}
