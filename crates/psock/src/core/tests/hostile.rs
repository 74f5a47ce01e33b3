//! What no honest peer sends ends the session, and costs no memory.

use super::*;

fn block(offset: u64, bytes: &[u8]) -> Frame<'_> {
    Frame::Block(Block { offset, bytes })
}

fn acknowledge(in_order: u64, received: u64, ended: bool) -> Frame<'static> {
    Frame::Acknowledge(Acknowledge { in_order, limit: 1 << 20, received, ended })
}

/// What the last of these frames is to a core that sent two blocks on connection 0 and finished.
fn verdict(frames: &[Frame<'_>]) -> Result<(), Violation> {
    let mut core = core(DriverName::PollAll);
    core.push(bytes(20_000));
    core.finish();
    assert_eq!(handed(&mut core, 0, 0).len(), 3);
    let mut last = Ok(());
    for frame in frames {
        assert_eq!(last, Ok(()), "before {frame:?}");
        last = core.receive(ConnectionId(0), frame, MS);
    }
    last
}

#[test]
fn blocks_that_contradict_what_came_are_refused() {
    let window = WINDOW as u64;
    let (some, other) = ([1; 100], [2; 100]);
    let overlap = |offset| Err(Violation::Overlap { offset });
    for (frames, expected) in [
        (vec![block(window - 100, &some)], Ok(())),
        (
            vec![block(window - 99, &some)],
            Err(Violation::BeyondWindow { end: window + 1, limit: window }),
        ),
        (
            vec![block(1 << 62, &some)],
            Err(Violation::BeyondWindow { end: (1 << 62) + 100, limit: window }),
        ),
        // The same again, beyond a gap and in order; other bytes are seen as long as they are kept.
        (vec![block(200, &some), block(200, &some)], Ok(())),
        (vec![block(200, &some), block(200, &other)], overlap(200)),
        (vec![block(0, &some), block(0, &some), block(20, &some[..80])], Ok(())),
        // A part of what came.
        (vec![block(200, &some), block(200, &some[..99])], overlap(200)),
        (vec![block(200, &some), block(101, &some)], overlap(101)),
        (vec![block(200, &some), block(299, &some)], overlap(299)),
        (vec![block(200, &some), block(150, &[0; 200])], overlap(150)),
        (vec![block(0, &some), block(99, &some)], overlap(99)),
        // Between others.
        (vec![block(0, &some), block(200, &some), block(100, &some)], Ok(())),
        // The end.
        (vec![block(0, &some), Frame::Finish(100), Frame::Finish(100)], Ok(())),
        (vec![Frame::Finish(100), block(100, &some)], Err(Violation::BeyondEnd { end: 200 })),
        (vec![Frame::Finish(100), Frame::Finish(101)], Err(Violation::OtherEnd { end: 101 })),
        (vec![block(200, &some), Frame::Finish(299)], Err(Violation::OtherEnd { end: 299 })),
        (vec![block(0, &some), Frame::Finish(99)], Err(Violation::OtherEnd { end: 99 })),
        (vec![Frame::Ping(1)], Err(Violation::Misplaced)),
        (vec![Frame::Skipped(0x90)], Ok(())),
    ] {
        assert_eq!(verdict(&frames), expected, "{frames:?}");
    }
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_refused() {
    let first = RECORD_BLOCK as u64;
    for (frames, expected) in [
        (vec![acknowledge(0, 0, false)], Ok(())),
        (vec![acknowledge(first, first, false), acknowledge(20_000, 20_000, true)], Ok(())),
        // An older one on another path.
        (vec![acknowledge(20_000, 20_000, true), acknowledge(first, 20_000, false)], Ok(())),
        (vec![acknowledge(20_001, 20_000, false)], Err(Violation::NeverSent)),
        (vec![acknowledge(20_000, 20_001, false)], Err(Violation::NeverSent)),
        (vec![acknowledge(first + 1, first, false)], Err(Violation::NeverSent)),
        (vec![acknowledge(first, first, true)], Err(Violation::NeverSent)),
        (
            vec![acknowledge(first, first, false), acknowledge(first, 0, false)],
            Err(Violation::TakenBack),
        ),
    ] {
        assert_eq!(verdict(&frames), expected, "{frames:?}");
    }
    // What waits was not sent.
    let mut core = core(DriverName::PollAll);
    core.push(bytes(20_000));
    let first = core.receive(ConnectionId(0), &acknowledge(first, 0, false), 0);
    assert_eq!(first, Err(Violation::NeverSent));
    let ended = core.receive(ConnectionId(0), &acknowledge(0, 0, true), 0);
    assert_eq!(ended, Err(Violation::NeverSent));
}

#[test]
fn small_blocks_beyond_a_gap_are_bounded_in_number() {
    let mut core = core(DriverName::PollAll);
    let verdict = (1..WINDOW as u64 / 2)
        .map(|index| core.receive(ConnectionId(0), &block(2 * index, &[0]), 0))
        .find(Result::is_err);
    assert_eq!(verdict, Some(Err(Violation::TooManyBlocks)));
    assert_eq!(core.reorder_bytes(), 65_536);
}

#[test]
fn small_blocks_in_order_are_joined() {
    let mut core = core(DriverName::PollAll);
    for index in 0..100_000 {
        core.receive(ConnectionId(0), &block(index, &[7]), 0).expect("no violation");
    }
    let chunks = std::iter::from_fn(|| core.deliver()).count();
    assert!(chunks < 10, "{chunks}");
}

#[test]
fn an_application_that_claims_more_than_it_got_does_not_open_the_window() {
    let mut core = core(DriverName::PollAll);
    core.receive(ConnectionId(0), &block(0, &[7; 100]), 0).expect("no violation");
    assert!(core.deliver().is_some());
    core.delivered(1_000);
    assert_eq!(core.reorder_bytes(), 0);
    let limit = WINDOW as u64 + 100;
    let beyond = core.receive(ConnectionId(0), &block(limit, &[7]), 0);
    assert_eq!(beyond, Err(Violation::BeyondWindow { end: limit + 1, limit }));
}

#[test]
fn a_peer_with_a_tiny_window_costs_no_more_memory_than_another() {
    let mut core = Core::new(
        Settings {
            driver: DriverName::Adaptive,
            block_bytes: RECORD_BLOCK,
            reorder_bytes: WINDOW,
            send_bytes: 32 << 20,
        },
        2,
    );
    // Each byte is a block then, and a block is many bytes of memory.
    while core.send_room() > 0 {
        core.push(vec![7; core.send_room().min(16 * RECORD_BLOCK)]);
    }
    assert_eq!(core.unacknowledged_bytes(), 32_768);
}
