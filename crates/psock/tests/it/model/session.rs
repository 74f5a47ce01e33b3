//! Two cores with applications on the network, event by event.

use std::{cmp::Reverse, collections::BinaryHeap, sync::OnceLock};

use psock::core::{
    ConnectionId, Core, Counters, Next, Outcome, Settings, driver::DriverName, frame::Frame,
};

use crate::model::network::{Flow, Link, MS, PathSettings, Random, SECOND};

/// The bytes of every stream: its byte at an offset is that of the pattern at the offset modulo its length.
const PATTERN_LEN: usize = 65_521;

fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut random = Random::new(0);
        (0..PATTERN_LEN).map(|_| random.range(0, 255) as u8).collect()
    })
}

/// What one end's application does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Application {
    /// Bytes that it sends.
    pub(crate) sends: u64,
    /// Bytes that it gives at a time, and how long it then waits.
    pub(crate) burst: u64,
    pub(crate) pause_ns: u64,
    /// Chunks that it takes at a time, and how long it then waits; 0 takes all at once.
    pub(crate) takes: u32,
    pub(crate) digests_ns: u64,
}

impl Application {
    pub(crate) fn bulk(sends: u64) -> Self {
        Self { sends, burst: u64::MAX, pause_ns: 0, takes: 0, digests_ns: 0 }
    }
}

/// What happens to a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Down,
    Up,
    Rate(u64),
    Delay(u64),
}

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) driver: DriverName,
    pub(crate) block_bytes: usize,
    pub(crate) window_bytes: [usize; 2],
    pub(crate) send_bytes: [usize; 2],
    pub(crate) paths: Vec<PathSettings>,
    pub(crate) applications: [Application; 2],
    /// When, which path, what.
    pub(crate) changes: Vec<(u64, usize, Change)>,
    /// How long a dead path keeps its connection.
    pub(crate) closes_after_ns: u64,
    pub(crate) limit_ns: u64,
}

/// How it went.
#[derive(Debug)]
pub(crate) struct Report {
    /// When the last byte of each end's stream was delivered.
    pub(crate) delivered_ns: [u64; 2],
    /// The longest time between two deliveries of the first end's stream.
    pub(crate) longest_gap_ns: u64,
    pub(crate) totals: [Counters; 2],
    /// Bytes that went over each path, from the first end.
    pub(crate) over: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive { connection: usize, from: usize, number: u64, epoch: u32 },
    Acknowledge { connection: usize, from: usize, expected: u64, epoch: u32 },
    Timeout { connection: usize, from: usize },
    Change(usize),
    Close { connection: usize, end: usize, epoch: u32 },
    Open { path: usize },
    Wake { end: usize },
    Observe,
}

struct Connection {
    path: usize,
    flows: [Flow; 2],
    open: [bool; 2],
    timer: [bool; 2],
}

struct End {
    core: Core,
    application: Application,
    pushed: u64,
    finished: bool,
    writes_at_ns: u64,
    reads_at_ns: u64,
    delivered: u64,
    delivered_ns: u64,
    longest_gap_ns: u64,
    wakes_at_ns: Option<u64>,
}

struct Run<'a> {
    plan: &'a Plan,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    random: Random,
    links: Vec<[Link; 2]>,
    connections: Vec<Connection>,
    over: Vec<u64>,
    ends: [End; 2],
    pattern: &'a [u8],
}

impl Plan {
    /// Plays it to its end; panics if a byte is wrong, a bound is passed or the limit is reached.
    pub(crate) fn run(&self) -> Report {
        let end = |which: usize| {
            let other = 1 - which;
            let settings = Settings {
                driver: self.driver,
                block_bytes: self.block_bytes,
                reorder_bytes: self.window_bytes[which],
                send_bytes: self.send_bytes[which],
            };
            End {
                core: Core::new(settings, self.window_bytes[other] as u64),
                application: self.applications[which],
                pushed: 0,
                finished: false,
                writes_at_ns: 0,
                reads_at_ns: 0,
                delivered: 0,
                delivered_ns: 0,
                longest_gap_ns: 0,
                wakes_at_ns: None,
            }
        };
        let mut run = Run {
            plan: self,
            now: 0,
            events: BinaryHeap::new(),
            order: 0,
            random: Random::new(self.seed),
            links: self.paths.iter().map(|path| [Link::new(*path), Link::new(*path)]).collect(),
            connections: Vec::new(),
            over: vec![0; self.paths.len()],
            ends: [end(0), end(1)],
            pattern: pattern(),
        };
        run.play()
    }
}

impl Run<'_> {
    fn at(&mut self, time_ns: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time_ns, self.order, event)));
    }

    fn play(&mut self) -> Report {
        for path in 0..self.plan.paths.len() {
            self.at(0, Event::Open { path });
        }
        for (place, change) in self.plan.changes.iter().enumerate() {
            self.at(change.0, Event::Change(place));
        }
        self.at(0, Event::Observe);
        while !self.is_finished() {
            let Some(Reverse((time_ns, _, event))) = self.events.pop() else { panic!("stuck") };
            assert!(
                time_ns < self.plan.limit_ns,
                "no end: delivered {:?} of {:?}, outcomes {:?}",
                self.ends.each_ref().map(|end| end.delivered),
                self.ends.each_ref().map(|end| end.pushed),
                self.ends.each_ref().map(|end| end.core.outcome()),
            );
            self.now = time_ns;
            self.happen(event);
            let works = match event {
                Event::Arrive { from, .. } => 1 - from..2 - from,
                Event::Acknowledge { from, .. } => from..from + 1,
                Event::Wake { end } => end..end + 1,
                Event::Observe | Event::Timeout { .. } => 0..0,
                Event::Change(_) | Event::Close { .. } | Event::Open { .. } => 0..2,
            };
            works.for_each(|end| self.work(end));
        }
        for (end, other) in [(0, 1), (1, 0)] {
            assert_eq!(self.ends[end].delivered, self.ends[other].application.sends);
        }
        Report {
            delivered_ns: [self.ends[1].delivered_ns, self.ends[0].delivered_ns],
            longest_gap_ns: self.ends[1].longest_gap_ns,
            totals: self.ends.each_ref().map(|end| end.core.total()),
            over: self.over.clone(),
        }
    }

    fn is_finished(&self) -> bool {
        self.ends.iter().all(|end| end.core.outcome() == Outcome::FinishedBoth)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Open { path } => self.open(path),
            Event::Change(place) => self.change(place),
            Event::Observe => {
                for connection in 0..self.connections.len() {
                    self.observe(connection);
                }
                self.at(self.now + 10 * MS, Event::Observe);
            }
            Event::Wake { end } => {
                let end = &mut self.ends[end];
                if end.wakes_at_ns == Some(self.now) {
                    end.wakes_at_ns = None;
                    end.core.tick(self.now);
                }
            }
            Event::Close { connection, end, epoch } => {
                let path = self.connections[connection].path;
                let [there, _] = &self.links[path];
                if !there.is_up() && there.epoch == epoch {
                    self.close(connection, end);
                }
            }
            Event::Arrive { connection, from, number, epoch } => {
                let Connection { path, flows, open, .. } = &mut self.connections[connection];
                let link = &self.links[*path][from];
                if link.epoch != epoch || !open[1 - from] {
                    return;
                }
                let bytes = flows[from].take(number);
                let expected = flows[from].expected;
                let back_ns = link.delay_ns();
                if let Some(bytes) = bytes {
                    self.receive(connection, 1 - from, &bytes);
                }
                let event = Event::Acknowledge { connection, from, expected, epoch };
                self.at(self.now + back_ns, event);
            }
            Event::Acknowledge { connection, from, expected, epoch } => {
                let Connection { path, flows, .. } = &mut self.connections[connection];
                if self.links[*path][from].epoch == epoch {
                    flows[from].acknowledged(expected, self.now);
                    self.send(connection, from);
                }
            }
            Event::Timeout { connection, from } => {
                let state = &mut self.connections[connection];
                state.timer[from] = false;
                if state.flows[from].deadline_ns.is_some_and(|at| at <= self.now) {
                    state.flows[from].timed_out();
                }
                self.send(connection, from);
            }
        }
    }

    fn open(&mut self, path: usize) {
        let [there, back] = &self.links[path];
        if !there.is_up() {
            return;
        }
        let handshake_ns = there.delay_ns() + back.delay_ns();
        let connection = self.connections.len();
        self.connections.push(Connection {
            path,
            flows: [Flow::new(handshake_ns, self.now), Flow::new(handshake_ns, self.now)],
            open: [true; 2],
            timer: [false; 2],
        });
        for end in &mut self.ends {
            end.core.opened(ConnectionId(connection as u32), self.now);
        }
        self.observe(connection);
    }

    fn observe(&mut self, connection: usize) {
        let Connection { flows, open, .. } = &self.connections[connection];
        for end in 0..2 {
            if open[end] {
                let id = ConnectionId(connection as u32);
                self.ends[end].core.observe(id, &flows[end].kernel(), self.now);
            }
        }
    }

    fn close(&mut self, connection: usize, end: usize) {
        if std::mem::take(&mut self.connections[connection].open[end]) {
            self.ends[end].core.closed(ConnectionId(connection as u32), self.now);
        }
    }

    fn change(&mut self, place: usize) {
        let (_, path, change) = self.plan.changes[place];
        match change {
            Change::Down => {
                self.links[path].iter_mut().for_each(|link| link.set_up(false));
                let epoch = self.links[path][0].epoch;
                for connection in 0..self.connections.len() {
                    if self.connections[connection].path != path {
                        continue;
                    }
                    for end in 0..2 {
                        let spread_ns = self.random.range(0, 50 * MS);
                        let at = self.now + self.plan.closes_after_ns + spread_ns;
                        self.at(at, Event::Close { connection, end, epoch });
                    }
                }
            }
            Change::Up => {
                self.links[path].iter_mut().for_each(|link| link.set_up(true));
                let mut lives = false;
                for connection in 0..self.connections.len() {
                    let Connection { path: on, open, .. } = &self.connections[connection];
                    if *on != path || *open == [false; 2] {
                        continue;
                    }
                    if *open == [true; 2] {
                        lives = true;
                    } else {
                        // The end that gave up answers with a reset.
                        self.close(connection, 0);
                        self.close(connection, 1);
                    }
                }
                if !lives {
                    let handshake_ns = 2 * self.links[path][0].delay_ns();
                    self.at(self.now + handshake_ns, Event::Open { path });
                }
            }
            Change::Delay(delay_ns) => {
                self.links[path].iter_mut().for_each(|link| link.set_delay(delay_ns));
            }
            Change::Rate(rate) => {
                self.links[path].iter_mut().for_each(|link| link.set_rate(rate));
            }
        }
    }

    fn receive(&mut self, connection: usize, end: usize, bytes: &[u8]) {
        let (frame, length) = Frame::parse(bytes).expect("a frame").expect("a whole one");
        assert_eq!(length, bytes.len());
        let core = &mut self.ends[end].core;
        let result = core.receive(ConnectionId(connection as u32), &frame, self.now);
        result.expect("no violation");
        assert!(core.reorder_bytes() <= self.plan.window_bytes[end], "reorder memory is bounded");
    }

    /// Sends what TCP lets, and sets its timer.
    fn send(&mut self, connection: usize, from: usize) {
        let Connection { path, flows, timer, .. } = &mut self.connections[connection];
        let link = &mut self.links[*path][from];
        let arrivals = flows[from].send(link, self.now, &mut self.random);
        let (epoch, deadline_ns) = (link.epoch, flows[from].deadline_ns);
        let sets = deadline_ns.filter(|_| !std::mem::replace(&mut timer[from], true));
        for (number, at) in arrivals {
            self.at(at, Event::Arrive { connection, from, number, epoch });
        }
        if let Some(at) = sets {
            self.at(at.max(self.now + 1), Event::Timeout { connection, from });
        }
    }

    /// The application of an end, then its connections.
    fn work(&mut self, which: usize) {
        let now = self.now;
        let end = &mut self.ends[which];
        end.write(now, self.pattern);
        end.read(now, self.pattern);
        assert!(end.core.unacknowledged_bytes() <= self.plan.send_bytes[which]);
        for connection in 0..self.connections.len() {
            if !self.connections[connection].open[which] {
                continue;
            }
            let mut written = false;
            while self.connections[connection].flows[which].is_writable() {
                let id = ConnectionId(connection as u32);
                let Next::Frame(frame) = self.ends[which].core.next(id, now) else { break };
                let bytes = [frame.head(), frame.payload()].concat();
                if which == 0 {
                    self.over[self.connections[connection].path] += frame.payload().len() as u64;
                }
                self.connections[connection].flows[which].write(bytes);
                written = true;
            }
            if written {
                self.send(connection, which);
            }
        }
        let end = &mut self.ends[which];
        let times = [end.core.wake_at(), end.writes_at(), end.reads_at()];
        if let Some(at) = times.into_iter().flatten().min()
            && end.wakes_at_ns.is_none_or(|before| at < before)
        {
            let at = at.max(now + 1);
            end.wakes_at_ns = Some(at);
            self.at(at, Event::Wake { end: which });
        }
    }
}

impl End {
    fn writes_at(&self) -> Option<u64> {
        (!self.finished && self.core.send_room() > 0).then_some(self.writes_at_ns)
    }

    fn reads_at(&self) -> Option<u64> {
        (self.application.takes > 0 && self.core.reorder_bytes() > 0).then_some(self.reads_at_ns)
    }

    fn write(&mut self, now: u64, pattern: &[u8]) {
        if self.finished || now < self.writes_at_ns {
            return;
        }
        let mut burst = self.application.burst;
        while self.pushed < self.application.sends && burst > 0 {
            let offset = (self.pushed % PATTERN_LEN as u64) as usize;
            let left = (self.application.sends - self.pushed).min(burst).min(1 << 20) as usize;
            let bytes = left.min(self.core.send_room()).min(PATTERN_LEN - offset);
            if bytes == 0 {
                return;
            }
            self.core.push(pattern[offset..offset + bytes].to_vec());
            self.pushed += bytes as u64;
            burst -= bytes as u64;
        }
        self.writes_at_ns = now + self.application.pause_ns;
        if self.pushed == self.application.sends {
            self.core.finish();
            self.finished = true;
        }
    }

    fn read(&mut self, now: u64, pattern: &[u8]) {
        if now < self.reads_at_ns {
            return;
        }
        let most = if self.application.takes == 0 { u32::MAX } else { self.application.takes };
        for _ in 0..most {
            let Some(chunk) = self.core.deliver() else { break };
            let mut bytes = chunk.as_ref();
            self.core.delivered(bytes.len());
            while !bytes.is_empty() {
                let offset = (self.delivered % PATTERN_LEN as u64) as usize;
                let (first, later) = bytes.split_at(bytes.len().min(PATTERN_LEN - offset));
                assert!(first == &pattern[offset..offset + first.len()], "a wrong byte");
                self.delivered += first.len() as u64;
                bytes = later;
            }
            if self.delivered_ns > 0 {
                self.longest_gap_ns = self.longest_gap_ns.max(now - self.delivered_ns);
            }
            self.delivered_ns = now;
        }
        self.reads_at_ns = now + self.application.digests_ns;
    }
}

/// Mbit/s of a stream of so many bytes.
pub(crate) fn mbits(bytes: u64, ns: u64) -> u64 {
    (u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(ns) / 1_000_000) as u64
}
