//! Which packet leaves when, and what the answers say of the path; without clock and network.
//!
//! The first round goes out one hop after the other, a few at a time, until the destination answers,
//! an answer reports that there is no route, or too many hops are silent. Further rounds go to the hops that
//! are known then. So no router is asked twice at once, as many answer only a few errors a second.
//!
//! An answer that does not quote enough to identify its packet (RFC 792 asks for 8 bytes of a
//! datagram only) makes packets leave one by one from then on: what comes is then about the last.

use super::Settings;
use crate::record::Hop;
use std::{collections::VecDeque, net::IpAddr, time::Duration};

/// Packets in flight at once.
const WINDOW: usize = 4;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send the packet of this number, which runs from 0, with this TTL.
    Send { number: u16, distance: u8 },
    /// Wait for answers.
    Wait { until: Duration },
    /// Nothing more.
    Done,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) from: IpAddr,
    pub(super) meaning: Meaning,
    pub(super) round_trip_ns: u64,
    pub(super) extensions: Vec<String>,
}

/// What an answer means for the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The path goes on.
    OnTheWay,
    /// This is the destination.
    Arrived,
    /// The path ends here, for a reason.
    End(String),
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u16,
    distance: u8,
    /// When nobody waits for it any more.
    until: Duration,
}

/// The state of a test.
#[derive(Clone, Debug)]
pub(super) struct Tracer {
    farthest: u8,
    rounds: u8,
    silent: u8,
    wait: Duration,
    round: u8,
    next: u8,
    again: VecDeque<u8>,
    sent: u16,
    packets: Vec<Packet>,
    /// By number: to which hop a packet went.
    distances: Vec<u8>,
    /// The distance at which the path ends, as far as is known.
    end: Option<u8>,
    reached: bool,
    /// The farthest hop that answered.
    answered: u8,
    hops: Vec<Hop>,
    alone: bool,
    /// Nothing is sent before this.
    quiet: Duration,
}

impl Tracer {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            farthest: settings.hops,
            rounds: settings.attempts,
            silent: settings.silent,
            wait: settings.wait,
            round: 0,
            next: 1,
            again: VecDeque::new(),
            sent: 0,
            packets: Vec::new(),
            distances: Vec::new(),
            end: None,
            reached: false,
            answered: 0,
            hops: Vec::new(),
            alone: false,
            quiet: Duration::ZERO,
        }
    }

    /// What to do now, a time since the beginning.
    pub(super) fn step(&mut self, now: Duration) -> Step {
        self.packets.retain(|packet| packet.until > now);
        if self.quiet > now {
            return Step::Wait { until: self.quiet };
        }
        let window = if self.alone { 1 } else { WINDOW };
        if self.packets.len() < window
            && let Some(distance) = self.distance()
        {
            let (number, until) = (self.sent, now + self.wait);
            self.sent += 1;
            self.distances.push(distance);
            self.packets.push(Packet { number, distance, until });
            return Step::Send { number, distance };
        }
        match self.packets.iter().map(|packet| packet.until).min() {
            Some(until) => Step::Wait { until },
            None if self.round + 1 < self.rounds => {
                if self.round == 0 {
                    // Where the path ends is known now, or where it is lost from sight.
                    self.end = Some(self.end.unwrap_or(self.next - 1));
                }
                self.round += 1;
                self.next = 1;
                self.step(now)
            }
            None => Step::Done,
        }
    }

    /// The hop that the next packet goes to.
    fn distance(&mut self) -> Option<u8> {
        let end = self.end.unwrap_or(self.farthest);
        if let Some(distance) = self.again.pop_front() {
            return if distance <= end { Some(distance) } else { self.distance() };
        }
        let lost = self.round == 0 && self.next - 1 - self.answered >= self.silent;
        if self.next > end || lost {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// The packet that an answer is about, if that is known.
    pub(super) fn number(&self, quoted: Option<u16>) -> Option<u16> {
        quoted.or(match self.packets.as_slice() {
            [only] if self.alone => Some(only.number),
            _ => None,
        })
    }

    /// An answer came that can be about any packet.
    pub(super) fn confused(&mut self, now: Duration) {
        if self.alone {
            // About a packet that was given up.
            return;
        }
        self.alone = true;
        // What is in flight may be answered until then, which would be taken for another's answer.
        self.quiet = now + self.wait;
        self.again.extend(self.packets.drain(..).map(|packet| packet.distance));
    }

    /// Takes an answer; one that comes after the wait is taken as well.
    pub(super) fn answer(&mut self, number: u16, answer: Answer) {
        let Some(&distance) = self.distances.get(usize::from(number)) else { return };
        self.packets.retain(|packet| packet.number != number);
        self.again.retain(|again| *again != distance || self.round > 0);
        if self.end.is_some_and(|end| distance > end) {
            return;
        }
        self.answered = self.answered.max(distance);
        let ends = answer.meaning != Meaning::OnTheWay;
        let index = usize::from(distance) - 1;
        if self.hops.len() <= index {
            self.hops.resize(index + 1, Hop::default());
        }
        let Some(hop) = self.hops.get_mut(index) else { return };
        hop.round_trips_ns.push(answer.round_trip_ns);
        match hop.address {
            None => hop.address = Some(answer.from),
            Some(address) if address != answer.from && !hop.others.contains(&answer.from) => {
                hop.others.push(answer.from);
            }
            Some(_) => {}
        }
        for extension in answer.extensions {
            if !hop.extensions.contains(&extension) {
                hop.extensions.push(extension);
            }
        }
        if let Meaning::End(words) = &answer.meaning {
            hop.answer.get_or_insert_with(|| words.clone());
        }
        self.reached |= answer.meaning == Meaning::Arrived;
        if ends {
            self.end = Some(distance);
        }
    }

    /// Whether the destination has answered.
    pub(super) fn reached(&self) -> bool {
        self.reached
    }

    /// The hops so far.
    pub(super) fn hops(&self) -> Vec<Hop> {
        let mut hops = self.hops.clone();
        let end = self.end.unwrap_or(self.next - 1);
        hops.resize(usize::from(end), Hop::default());
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    /// What a simulated router does.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Router {
        Answers,
        Silent,
        /// Answers every second packet only.
        Half,
        Prohibits,
    }

    fn address(distance: u8) -> IpAddr {
        [192, 0, 2, distance].into()
    }

    /// Runs a test through routers and a destination behind them, if it answers; answers come after
    /// 10 ms, and quote numbers if `quoting`. Gives the hops, whether it was reached, and the packets.
    fn trace(
        routers: &[Router],
        answers: bool,
        quoting: bool,
        settings: &Settings,
    ) -> (Vec<Hop>, bool, u16) {
        let mut tracer = Tracer::new(settings);
        let (mut now, mut under_way) = (Duration::ZERO, VecDeque::<(Duration, u16, Answer)>::new());
        let mut asked = vec![0u32; 256];
        loop {
            while under_way.front().is_some_and(|(at, ..)| *at <= now) {
                let Some((_, number, answer)) = under_way.pop_front() else { break };
                match tracer.number(quoting.then_some(number)) {
                    Some(number) => tracer.answer(number, answer),
                    None => tracer.confused(now),
                }
            }
            match tracer.step(now) {
                Step::Done => break,
                Step::Wait { until } => {
                    assert!(until > now);
                    let next = under_way.front().map(|(at, ..)| *at);
                    now = next.map_or(until, |next| next.min(until));
                }
                Step::Send { number, distance } => {
                    let seen = &mut asked[usize::from(distance)];
                    *seen += 1;
                    let there = routers.len() as u8 + 1;
                    let meaning = match routers.get(usize::from(distance) - 1) {
                        _ if routers[..usize::from(distance).min(routers.len())]
                            .iter()
                            .position(|router| *router == Router::Prohibits)
                            .is_some_and(|index| index < usize::from(distance) - 1) =>
                        {
                            // Stopped before it, where the prohibiting router says so.
                            let index = routers.iter().position(|r| *r == Router::Prohibits);
                            let from = address(index.unwrap() as u8 + 1);
                            let meaning = Meaning::End("prohibited".to_owned());
                            let answer =
                                Answer { from, meaning, round_trip_ns: 1, extensions: vec![] };
                            under_way.push_back((now + 10 * MS, number, answer));
                            continue;
                        }
                        Some(Router::Answers) => Meaning::OnTheWay,
                        Some(Router::Half) if seen.is_multiple_of(2) => Meaning::OnTheWay,
                        Some(Router::Prohibits) => Meaning::End("prohibited".to_owned()),
                        Some(_) => continue,
                        None if answers => Meaning::Arrived,
                        None => continue,
                    };
                    let from = address(distance.min(there));
                    let answer = Answer { from, meaning, round_trip_ns: 1, extensions: vec![] };
                    under_way.push_back((now + 10 * MS, number, answer));
                }
            }
        }
        (tracer.hops(), tracer.reached(), tracer.sent)
    }

    fn addresses(hops: &[Hop]) -> Vec<Option<IpAddr>> {
        hops.iter().map(|hop| hop.address).collect()
    }

    #[test]
    fn each_hop_is_asked_as_often_as_wanted() {
        use Router::*;
        let settings = Settings::default();
        let (hops, reached, sent) = trace(&[Answers, Silent, Half], true, true, &settings);
        let right = [Some(address(1)), None, Some(address(3)), Some(address(4))];
        assert_eq!((addresses(&hops).as_slice(), reached), (right.as_slice(), true));
        let trips: Vec<_> = hops.iter().map(|hop| hop.round_trips_ns.len()).collect();
        assert_eq!(trips, [3, 0, 1, 3]);
        // Three to each of four hops, and at most three beyond, sent before the destination answered.
        assert!((12..=15).contains(&sent), "{sent}");
    }

    #[test]
    fn a_path_that_is_lost_from_sight_ends_after_so_many_silent_hops() {
        use Router::*;
        let settings = Settings { silent: 3, ..Settings::default() };
        let (hops, reached, _) = trace(&[Answers, Answers], false, true, &settings);
        let right = [Some(address(1)), Some(address(2)), None, None, None];
        assert_eq!((addresses(&hops).as_slice(), reached), (right.as_slice(), false));
        let (hops, reached, _) = trace(&[Silent; 60], true, true, &settings);
        assert_eq!((addresses(&hops), reached), (vec![None; 3], false));
        let far = Settings { hops: 2, ..settings };
        let (hops, reached, _) = trace(&[Answers; 5], true, true, &far);
        assert_eq!((addresses(&hops).len(), reached), (2, false));
    }

    #[test]
    fn who_prohibits_is_the_end_and_is_quoted() {
        use Router::*;
        for quoting in [true, false] {
            let settings = Settings::default();
            let routers = [Answers, Prohibits, Answers];
            let (hops, reached, _) = trace(&routers, true, quoting, &settings);
            let right = [Some(address(1)), Some(address(2))];
            assert_eq!((addresses(&hops).as_slice(), reached), (right.as_slice(), false));
            assert_eq!(hops[1].answer.as_deref(), Some("prohibited"));
        }
    }

    proptest! {
        /// Whatever is silent, and whether or not answers quote numbers: the path is right, each hop has
        /// no more answers than packets, and it comes to an end.
        #[test]
        fn the_path_is_right(
            kinds in proptest::collection::vec(prop_oneof![
                4 => Just(Router::Answers), 1 => Just(Router::Silent), 1 => Just(Router::Half),
            ], 0..12),
            quoting: bool,
            attempts in 1..4u8,
        ) {
            let settings = Settings { silent: 20, attempts, ..Settings::default() };
            let (hops, reached, _) = trace(&kinds, true, quoting, &settings);
            prop_assert!(reached);
            prop_assert_eq!(hops.len(), kinds.len() + 1);
            for (index, hop) in hops.iter().enumerate() {
                let own = address(index as u8 + 1);
                prop_assert!(hop.address.is_none_or(|address| address == own), "{:?}", hops);
                prop_assert!(hop.others.is_empty());
                prop_assert!(hop.round_trips_ns.len() <= usize::from(attempts) + 1);
                if kinds.get(index).is_none_or(|kind| *kind == Router::Answers) {
                    prop_assert!(!hop.round_trips_ns.is_empty());
                }
            }
        }
    }
}
