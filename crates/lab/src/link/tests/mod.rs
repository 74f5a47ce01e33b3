//! What links do, against what was set and against a queue that is simulated packet by packet.

mod naive;
mod queues;
mod shares;
mod times;

use super::*;

pub(super) fn settings(text: &str) -> LinkSettings {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn offer(state: &mut LinkState, settings: &LinkSettings, now: u64, length: u32) -> Outcome {
    state.offer(settings, Arrival { now: Nanos(now), length, ect: false })
}

/// When it arrives, if it does, late at most.
fn at(outcome: Outcome) -> Option<u64> {
    match outcome {
        Outcome::Pass { at, copy: None, corrupt: None, mark: false } => Some(at.0),
        _ => None,
    }
}

#[test]
fn a_packet_takes_its_time_and_then_the_delay() {
    let mut state = LinkState::new(7, LinkId(1));
    let settings = settings("delay=10ms rate=8Mbit queue=1p");
    // 986 and 14 bytes at 8 Mbit/s are a millisecond.
    assert_eq!(at(offer(&mut state, &settings, 0, 986)), Some(11_000_000));
    assert_eq!(at(offer(&mut state, &settings, 0, 986)), Some(12_000_000));
    assert_eq!(state.waiting.at(Nanos(0)), (1, 1_000));
    let full = offer(&mut state, &settings, 999_999, 986);
    assert_eq!(full, Outcome::Drop(DropReason::QueueFull));
    // The place is free from the moment when the transmitter turns to the one that waits.
    assert_eq!(state.waiting.at(Nanos(1_000_000)), (0, 0));
    assert_eq!(at(offer(&mut state, &settings, 1_000_000, 986)), Some(13_000_000));
}

#[test]
fn a_link_that_is_down_drops() {
    let mut state = LinkState::new(7, LinkId(1));
    let down = offer(&mut state, &settings("up=false"), 5, 60);
    assert_eq!(down, Outcome::Drop(DropReason::Down));
    assert_eq!(at(offer(&mut state, &settings(""), 6, 60)), Some(6));
}

#[test]
fn a_change_takes_effect_with_the_next_packet() {
    let mut state = LinkState::new(7, LinkId(1));
    assert_eq!(at(offer(&mut state, &settings("delay=1ms rate=8Mbit"), 0, 986)), Some(2_000_000));
    // Behind the first, at the new rate.
    assert_eq!(at(offer(&mut state, &settings("delay=2ms rate=16Mbit"), 0, 986)), Some(3_500_000));
    // Without a rate it still does not overtake what waits.
    assert_eq!(at(offer(&mut state, &settings(""), 0, 986)), Some(1_500_000));
    assert_eq!(at(offer(&mut state, &settings(""), 2_000_000, 986)), Some(2_000_000));
}
