//! Two ends of a BFD session, against each other and against what RFC 5880 asks, on a clock that the tests turn.

use bgp::bfd::{BfdConfig, Diagnostic, State, fsm::Fsm, packet::Packet};
use proptest::prelude::*;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

fn config(interval: Duration, multiplier: u8) -> BfdConfig {
    BfdConfig { interval, multiplier }
}

/// Two ends; what one sends the other has at once, unless the link is cut.
struct Pair {
    ends: [Fsm; 2],
    now: Instant,
    start: Instant,
    cut: bool,
    /// The packets sent by each end, and when.
    sent: [Vec<(Duration, Packet)>; 2],
}

impl Pair {
    fn new(configs: [BfdConfig; 2]) -> Self {
        let start = Instant::now();
        let [one, other] = configs;
        let ends = [Fsm::new(one, 1, start), Fsm::new(other, 2, start)];
        Self { ends, now: start, start, cut: false, sent: [vec![], vec![]] }
    }

    /// Lets both ends do what is due, and so on for a while.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            while (0..2).any(|at| self.exchange(at)) {}
            let next = self.ends.iter().filter_map(Fsm::deadline).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            // The clock never stands still.
            self.now = next.max(self.now + Duration::from_nanos(1));
            self.ends.iter_mut().for_each(|it| it.tick(self.now));
        }
        self.now = end;
    }

    fn exchange(&mut self, from: usize) -> bool {
        let Some(packet) = self.ends[from].transmit(self.now) else { return false };
        self.sent[from].push((self.now - self.start, packet));
        let packet = Packet::decode(&packet.encode()).expect("what is sent is valid");
        let out = self.ends[1 - from].observed().state == State::AdminDown;
        assert!(self.cut || out || self.ends[1 - from].receive(packet, self.now), "{packet:?}");
        true
    }

    fn states(&self) -> [State; 2] {
        [0, 1].map(|at| self.ends[at].observed().state)
    }

    /// The times between the packets that an end has sent in the last `time`, but for answers to polls.
    fn gaps(&self, at: usize, time: Duration) -> Vec<Duration> {
        let since = self.now - self.start - time;
        let times: Vec<_> =
            self.sent[at].iter().filter(|(at, it)| *at >= since && !it.is_final).collect();
        times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }
}

#[test]
fn both_ends_come_up_and_speed_up_after_a_poll() {
    let mut pair = Pair::new([config(300 * MS, 3), config(100 * MS, 5)]);
    pair.run(10 * MS);
    assert_eq!(pair.states(), [State::Up; 2]);
    pair.run(Duration::from_secs(10));
    // The slower end decides, and the sender's multiplier counts at the receiver.
    let times = [0, 1].map(|at| pair.ends[at].observed().detection_time);
    assert_eq!(times, [Some(1500 * MS), Some(900 * MS)]);
    for at in 0..2 {
        let gaps = pair.gaps(at, Duration::from_secs(5));
        assert!(gaps.len() > 15, "{gaps:?}");
        assert!(gaps.iter().all(|gap| (225 * MS..=300 * MS).contains(gap)), "{gaps:?}");
        let polls = pair.sent[at].iter().filter(|(_, packet)| packet.poll).count();
        let answers = pair.sent[1 - at].iter().filter(|(_, packet)| packet.is_final).count();
        assert!(polls > 0, "no poll at the change of the interval");
        assert_eq!(polls, answers, "each poll has its answer");
        let (_, last) = pair.sent[at].last().expect("it sends");
        assert!(!last.poll, "the poll sequence has ended");
    }
}

#[test]
fn a_neighbour_that_falls_silent_is_lost_after_its_detection_time_and_found_again() {
    let mut pair = Pair::new([config(100 * MS, 3), config(100 * MS, 3)]);
    pair.run(Duration::from_secs(5));
    pair.cut = true;
    pair.run(224 * MS);
    assert_eq!(pair.states(), [State::Up; 2]);
    pair.run(100 * MS);
    assert_eq!(pair.states(), [State::Down; 2]);
    for end in &pair.ends {
        let seen = end.observed();
        assert_eq!((seen.diagnostic, seen.failures), (Diagnostic::TIME_EXPIRED, 1));
        assert_eq!(seen.detection_time, None);
    }
    // A neighbour that may not speak BFD costs a packet a second.
    pair.run(Duration::from_secs(60));
    let gaps = pair.gaps(0, Duration::from_secs(50));
    assert!(gaps.iter().all(|gap| (750 * MS..=1000 * MS).contains(gap)), "{gaps:?}");
    let (_, last) = pair.sent[0].last().expect("it sends");
    assert_eq!((last.your_discriminator, last.desired_min_tx), (0, 1_000_000));
    pair.cut = false;
    pair.run(2 * Duration::from_secs(1));
    assert_eq!(pair.states(), [State::Up; 2]);
}

#[test]
fn an_operators_end_is_no_failure() {
    let mut pair = Pair::new([config(100 * MS, 3), config(100 * MS, 3)]);
    pair.run(Duration::from_secs(2));
    pair.ends[0].disable();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.states(), [State::AdminDown, State::Down]);
    assert_eq!(pair.ends[1].observed().failures, 0, "RFC 5882 section 3.2");
    let said = pair.sent[0].iter().filter(|(_, packet)| packet.state == State::AdminDown);
    assert_eq!(said.count(), 1);
    assert_eq!(pair.ends[0].deadline(), None);
}

#[test]
fn a_neighbour_that_begins_anew_is_a_failure_at_once() {
    let mut pair = Pair::new([config(100 * MS, 3), config(100 * MS, 3)]);
    pair.run(Duration::from_secs(2));
    pair.ends[1] = Fsm::new(config(100 * MS, 3), 3, pair.now);
    // What is sent to the one before is not for this one.
    let stale = pair.sent[0].last().expect("it sends").1;
    assert!(!pair.ends[1].receive(stale, pair.now));
    let first = pair.ends[1].transmit(pair.now).expect("it begins");
    assert!(pair.ends[0].receive(first, pair.now));
    let seen = pair.ends[0].observed();
    assert_eq!((seen.state, seen.failures), (State::Down, 1));
    assert_eq!(seen.diagnostic, Diagnostic::NEIGHBOUR_DOWN);
    pair.run(Duration::from_secs(3));
    assert_eq!(pair.states(), [State::Up; 2]);
}

#[test]
fn a_neighbour_gets_no_more_packets_than_it_asks_for() {
    let mut pair = Pair::new([config(100 * MS, 3), config(100 * MS, 3)]);
    pair.run(Duration::from_secs(2));
    let (_, last) = *pair.sent[1].last().expect("it sends");
    for (what, packet) in [
        ("asks for none", Packet { required_min_rx: 0, ..last }),
        ("is in demand mode", Packet { demand: true, ..last }),
    ] {
        let mut end = pair.ends[0].clone();
        assert!(end.receive(packet, pair.now), "{what}");
        let expiry = pair.now + 300 * MS;
        assert_eq!(end.deadline(), Some(expiry), "{what}: only the neighbour's silence is awaited");
        // A poll is answered all the same.
        assert!(end.receive(Packet { poll: true, ..packet }, pair.now), "{what}");
        let answer = end.transmit(pair.now).expect("an answer");
        assert!(answer.is_final && !answer.poll, "{what}");
        assert_eq!(end.transmit(pair.now), None, "{what}");
    }
}

/// The session state of RFC 5880 section 6.2 and 6.8.6, by our state and the received one.
#[test]
fn the_states_follow_each_other_as_the_rfc_has_it() {
    use State::{AdminDown, Down, Init, Up};
    for (ours, rows) in [
        (Down, [(AdminDown, Down), (Down, Init), (Init, Up), (Up, Down)]),
        (Init, [(AdminDown, Down), (Down, Init), (Init, Up), (Up, Up)]),
        (Up, [(AdminDown, Down), (Down, Down), (Init, Up), (Up, Up)]),
    ] {
        for (received, expected) in rows {
            let now = Instant::now();
            let mut end = Fsm::new(config(100 * MS, 3), 1, now);
            let my_discriminator = end.transmit(now).expect("it begins").my_discriminator;
            let mut packet = Packet {
                diagnostic: Diagnostic::default(),
                state: Down,
                poll: false,
                is_final: false,
                demand: false,
                detect_mult: 3,
                my_discriminator: 7,
                your_discriminator: my_discriminator,
                desired_min_tx: 1_000_000,
                required_min_rx: 1,
            };
            let before = match ours {
                Init => &[Down][..],
                Up => &[Init],
                _ => &[],
            };
            for state in before.iter().copied().chain([received]) {
                packet.state = state;
                assert!(end.receive(packet, now));
            }
            assert_eq!(end.observed().state, expected, "{ours}, received {received}");
        }
    }
}

proptest! {
    /// Whatever arrives and whenever: time goes on, sends are bounded, and what is sent is valid.
    #[test]
    fn any_packets_at_any_times_are_survived(
        seed: u64,
        steps in prop::collection::vec((any::<[u8; 24]>(), any::<bool>(), 0u64..5_000_000), 1..100),
    ) {
        let mut now = Instant::now();
        let mut end = Fsm::new(config(100 * MS, 3), seed, now);
        for (mut bytes, fits, pause) in steps {
            while let Some(deadline) = end.deadline().filter(|at| *at <= now) {
                end.tick(now);
                while end.transmit(now).is_some() {}
                prop_assert!(end.deadline().is_none_or(|next| next > deadline.min(now)));
            }
            if fits {
                let my_discriminator = end.transmit(now).map_or(0, |packet| packet.my_discriminator);
                bytes[0] = 0x20;
                bytes[1] &= 0xfa;
                bytes[3] = 24;
                bytes[8..12].copy_from_slice(&my_discriminator.to_be_bytes());
            }
            if let Some(packet) = Packet::decode(&bytes) {
                end.receive(packet, now);
            }
            let mut count = 0;
            while let Some(packet) = end.transmit(now) {
                prop_assert_eq!(Packet::decode(&packet.encode()), Some(packet));
                count += 1;
            }
            prop_assert!(count <= 2, "an answer, and one packet more: {count}");
            now += Duration::from_micros(pause);
        }
    }
}
