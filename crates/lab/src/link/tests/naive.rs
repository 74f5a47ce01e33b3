//! A queue that is simulated event by event: packets are kept in it and taken out when the transmitter
//! is free, and only then is it decided what becomes of them. CoDel is the pseudocode of RFC 8289,
//! section 5, line by line, with Linux's marking.

use super::super::random::{Lane, Random};
use crate::{
    LinkId, Nanos,
    link::Arrival,
    settings::{CoDel, Discipline, Limit, LinkSettings, Red},
};
use std::collections::VecDeque;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NaiveOutcome {
    Full,
    Discipline,
    /// When its last bit was sent, and whether it is marked.
    Sent(u64, bool),
}

/// Which bytes CoDel takes for those in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backlog {
    /// Those behind the packet as it is taken out, as the RFC has it.
    Behind,
    /// Those that the packet found.
    Found,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: usize,
    tstamp: u64,
    bytes: u64,
    found: u64,
    ect: bool,
}

/// The RFC's variables (section 5.2).
#[derive(Debug, Default)]
struct CoDelState {
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

/// The variables of the paper on RED.
#[derive(Debug)]
struct RedState {
    avg: f64,
    count: i64,
}

pub(super) struct Queue<'a> {
    settings: &'a LinkSettings,
    backlog: Backlog,
    random: Random,
    queue: VecDeque<Packet>,
    /// When the transmitter is free, in 1 / rate nanoseconds.
    free: u128,
    codel: CoDelState,
    red: RedState,
    outcomes: Vec<Option<NaiveOutcome>>,
    /// The first packet for which the two meanings of the backlog differ and matter.
    pub(super) differs: Option<usize>,
}

impl<'a> Queue<'a> {
    pub(super) fn new(
        settings: &'a LinkSettings,
        seed: u64,
        link: LinkId,
        backlog: Backlog,
    ) -> Self {
        Self {
            settings,
            backlog,
            random: Random::new(seed, link),
            queue: VecDeque::new(),
            free: 0,
            codel: CoDelState::default(),
            red: RedState { avg: 0.0, count: -1 },
            outcomes: Vec::new(),
            differs: None,
        }
    }

    /// All packets, one after the other.
    pub(super) fn run(&mut self, arrivals: &[Arrival]) -> Vec<NaiveOutcome> {
        for arrival in arrivals {
            self.until(arrival.now.0);
            self.arrive(arrival);
            self.until(arrival.now.0);
        }
        self.until(u64::MAX);
        self.outcomes
            .iter()
            .map(|outcome| outcome.expect("every packet has met its outcome"))
            .collect()
    }

    fn rate(&self) -> u128 {
        self.settings.rate.expect("a rate").into()
    }

    fn free_at(&self) -> u64 {
        (self.free / self.rate()) as u64
    }

    fn bytes(&self) -> u64 {
        self.queue.iter().map(|packet| packet.bytes).sum()
    }

    /// Sends what the transmitter comes to until then.
    fn until(&mut self, now: u64) {
        while let Some(head) = self.queue.front() {
            let turn = self.free_at().max(head.tstamp);
            if turn > now {
                return;
            }
            let (packet, mark) = match self.settings.queue.discipline {
                Discipline::CoDel(codel) => self.dequeue(&codel, turn),
                _ => (self.queue.pop_front(), false),
            };
            let Some(packet) = packet else { continue };
            if turn > self.free_at() {
                self.free = u128::from(turn) * self.rate();
            }
            self.free += u128::from(packet.bytes) * 8_000_000_000;
            self.outcomes[packet.number] = Some(NaiveOutcome::Sent(self.free_at(), mark));
        }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        let number = self.outcomes.len();
        self.outcomes.push(None);
        let (now, bytes) = (arrival.now.0, u64::from(arrival.length) + 14);
        let idle = self.queue.is_empty() && self.free_at() <= now;
        let found = self.bytes();
        if let Discipline::Red(red) = self.settings.queue.discipline
            && self.red_drops(&red, arrival, idle, number)
        {
            self.outcomes[number] = Some(NaiveOutcome::Discipline);
            return;
        }
        let fits = match self.settings.queue.limit {
            Limit::Packets(limit) => self.queue.len() < limit as usize,
            Limit::Bytes(limit) => found + bytes <= u64::from(limit),
        };
        if !idle && !fits {
            self.outcomes[number] = Some(NaiveOutcome::Full);
            return;
        }
        self.queue.push_back(Packet { number, tstamp: now, bytes, found, ect: arrival.ect });
    }

    /// The paper's figure 2.
    fn red_drops(&mut self, red: &Red, arrival: &Arrival, idle: bool, number: usize) -> bool {
        let (w_q, max_p) = (red.weight.as_f64(), red.probability.as_f64());
        let (min_th, max_th) = (f64::from(red.min), f64::from(red.max));
        if idle {
            let typical = 1_000 * 8_000_000_000 / self.rate() as u64;
            let m = (arrival.now.0 - self.free_at()) / typical;
            for _ in 0..m.min(1_000_000) {
                self.red.avg *= 1.0 - w_q;
            }
        } else {
            let q = match self.settings.queue.limit {
                Limit::Packets(_) => self.queue.len() as f64,
                Limit::Bytes(_) => self.bytes() as f64,
            };
            self.red.avg = (1.0 - w_q) * self.red.avg + w_q * q;
        }
        let all_th = if red.gentle { 2.0 * max_th } else { max_th };
        if self.red.avg >= all_th {
            self.red.count = 0;
            true
        } else if self.red.avg >= min_th {
            self.red.count += 1;
            let p_b = if self.red.avg < max_th {
                max_p * (self.red.avg - min_th) / (max_th - min_th)
            } else {
                max_p + (1.0 - max_p) * (self.red.avg - max_th) / max_th
            };
            let p_a = p_b / (1.0 - self.red.count as f64 * p_b);
            let random =
                f64::from(self.random.packet(number as u64).number(Lane::Red)) / 2f64.powi(32);
            if random < p_a || p_a < 0.0 || p_a.is_infinite() {
                self.red.count = 0;
                return true;
            }
            false
        } else {
            self.red.count = -1;
            false
        }
    }

    fn drop(&mut self, packet: Packet) {
        self.outcomes[packet.number] = Some(NaiveOutcome::Discipline);
    }

    /// Section 5.5.
    fn dequeue(&mut self, codel: &CoDel, now: u64) -> (Option<Packet>, bool) {
        let (mut p, mut ok_to_drop) = self.dodequeue(codel, now);
        let mut mark = false;
        if self.codel.dropping {
            if !ok_to_drop {
                self.codel.dropping = false;
            }
            while now >= self.codel.drop_next && self.codel.dropping {
                let packet = p.expect("an empty queue leaves the drop state");
                if codel.ecn && packet.ect {
                    self.codel.count += 1;
                    self.codel.drop_next = self.control_law(codel, self.codel.drop_next);
                    mark = true;
                    break;
                }
                self.drop(packet);
                self.codel.count += 1;
                (p, ok_to_drop) = self.dodequeue(codel, now);
                if ok_to_drop {
                    self.codel.drop_next = self.control_law(codel, self.codel.drop_next);
                } else {
                    self.codel.dropping = false;
                }
            }
        } else if ok_to_drop {
            let packet = p.expect("only a packet can be dropped");
            if codel.ecn && packet.ect {
                mark = true;
            } else {
                self.drop(packet);
                (p, _) = self.dodequeue(codel, now);
            }
            self.codel.dropping = true;
            let delta = self.codel.count - self.codel.lastcount;
            self.codel.count = 1;
            if delta > 1
                && (now as i64 - self.codel.drop_next as i64) < 16 * codel.interval.0 as i64
            {
                self.codel.count = delta;
            }
            self.codel.drop_next = self.control_law(codel, now);
            self.codel.lastcount = self.codel.count;
        }
        (p, mark)
    }

    /// Section 5.6.
    fn dodequeue(&mut self, codel: &CoDel, now: u64) -> (Option<Packet>, bool) {
        let Some(packet) = self.queue.pop_front() else {
            self.codel.first_above_time = 0;
            return (None, false);
        };
        let maxpacket = u64::from(self.settings.mtu) + 14;
        let sojourn_time = now - packet.tstamp;
        let behind = self.bytes();
        if sojourn_time >= codel.target.0
            && (behind <= maxpacket) != (packet.found <= maxpacket)
            && self.differs.is_none()
        {
            self.differs = Some(packet.number);
        }
        let bytes = match self.backlog {
            Backlog::Behind => behind,
            Backlog::Found => packet.found,
        };
        let mut ok_to_drop = false;
        if sojourn_time < codel.target.0 || bytes <= maxpacket {
            self.codel.first_above_time = 0;
        } else if self.codel.first_above_time == 0 {
            self.codel.first_above_time = now + codel.interval.0;
        } else if now >= self.codel.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    fn control_law(&self, codel: &CoDel, t: u64) -> u64 {
        t + (codel.interval.0 as f64 / f64::from(self.codel.count).sqrt()) as u64
    }
}

/// Packets with their gaps.
pub(super) fn arrivals(packets: &[(u64, u32, bool)]) -> Vec<Arrival> {
    let mut now = Nanos::ZERO;
    let arrival = |(gap, length, ect): &(u64, u32, bool)| {
        now += Nanos(*gap);
        Arrival { now, length: *length, ect: *ect }
    };
    packets.iter().map(arrival).collect()
}
