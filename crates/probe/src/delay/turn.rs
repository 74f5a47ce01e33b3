//! What the thread does each time it wakes.
//!
//! First the kernel's times of sending, for they complete what comes after; then what is to be reflected,
//! as somebody waits for it; then replies, and last what is due to be sent.

use super::{
    Command, Config, Counters, News, Session, SessionId,
    driver::{self, Driver},
    sending::Sent,
    wheel::Wheel,
};
use crate::{
    interval::{MaximumError, drift_ns},
    stamp::{
        Arrival, MAX_LENGTH, Reading, Reflector, Refused, Sender,
        packet::{authenticated_ssid, plain_ssid},
        reflector::{Reply, SessionKey},
        sender::Peer,
    },
};
use datapath::{
    clock::unix_ns,
    stamping::{Datagram, Incoming, Outgoing, StampedSocket},
};
use job::pulse::Beat;
use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::eventfd::EventFd,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::AsFd,
    sync::{Arc, Mutex, PoisonError, mpsc::Receiver},
    thread,
    time::{Duration, Instant},
};

/// A tick of the timer wheel: packets of one tick are sent together.
const TICK_NS: u64 = 1_000_000;
/// How much later than its time limit a packet may be reported lost.
const SETTLE_NS: u64 = 250_000_000;
/// Batches taken from a socket before the others have their turn.
const BATCHES: usize = 16;

/// What the thread reads and writes.
pub(super) struct Sockets {
    pub(super) sender: StampedSocket,
    pub(super) reflector: Option<StampedSocket>,
    pub(super) wake: Arc<EventFd>,
}

/// A session that runs.
struct Running {
    to: SocketAddr,
    from: Option<IpAddr>,
    interval_ns: u64,
    /// When the next packet is due, by the thread's clock.
    due_ns: u64,
    /// Packets still to send.
    left: Option<u32>,
    sender: Sender,
    /// Whether no more packets are sent.
    closing: bool,
}

impl Running {
    /// When to look at it again: when its next packet is due, which settles others too, or when a packet has
    /// long been lost by then.
    fn next_ns(&self) -> Option<u64> {
        let settle_ns = self.sender.settle_at_ns();
        if self.closing {
            return settle_ns;
        }
        let early = settle_ns.filter(|settle_ns| settle_ns + SETTLE_NS < self.due_ns);
        Some(early.unwrap_or(self.due_ns))
    }
}

/// A reply that was made: whose it is, and what it says of its time.
#[derive(Clone, Copy)]
struct Reflection {
    session: SessionKey,
    sequence: u32,
    at_ns: u64,
    error_ns: Option<u64>,
}

impl Reflection {
    /// Whether what the reply says of the clock is true as well of the moment at which the kernel sent it.
    fn covers(&self, at_ns: u64, error: MaximumError) -> bool {
        let drift_ns = drift_ns(at_ns.saturating_sub(self.at_ns));
        let stated = MaximumError::of(self.error_ns).plus(MaximumError::known(drift_ns));
        match (stated.nanoseconds, error.nanoseconds) {
            (Some(stated_ns), Some(error_ns)) => error_ns <= stated_ns,
            (stated, _) => stated.is_none(),
        }
    }
}

/// All that the thread has.
pub(super) struct Station<E, T> {
    sockets: Sockets,
    shared: Arc<Mutex<Counters>>,
    counters: Counters,
    error: E,
    report: T,
    gather: Duration,
    /// The thread's clock begins here.
    begin: Instant,
    wheel: Wheel<SessionId>,
    sessions: FxHashMap<SessionId, Running>,
    /// Sessions by where their replies come from.
    targets: FxHashMap<SocketAddr, Vec<SessionId>>,
    permitted: FxHashSet<SocketAddr>,
    reflector: Reflector,
    driver: Option<Driver>,
    sent: Sent<(SessionId, u32)>,
    reflected: Sent<Reflection>,
    incoming: Incoming,
    outgoing: Outgoing,
    due: Vec<SessionId>,
}

impl<E: Fn(u64) -> MaximumError, T: FnMut(SessionId, News)> Station<E, T> {
    pub(super) fn new(
        config: &Config,
        sockets: Sockets,
        shared: Arc<Mutex<Counters>>,
        error: E,
        report: T,
    ) -> Self {
        Self {
            sockets,
            shared,
            counters: Counters::default(),
            error,
            report,
            gather: config.gather,
            begin: Instant::now(),
            wheel: Wheel::new(TICK_NS),
            sessions: FxHashMap::default(),
            targets: FxHashMap::default(),
            permitted: FxHashSet::default(),
            reflector: Reflector::default(),
            driver: config.driver.clone().map(Driver::new),
            sent: Sent::default(),
            reflected: Sent::default(),
            incoming: Incoming::new(MAX_LENGTH),
            outgoing: Outgoing::default(),
            due: Vec::new(),
        }
    }

    /// Turn after turn until it is stopped.
    pub(super) fn run(mut self, orders: &Receiver<Command>, beat: &Beat) {
        loop {
            panics::point("delay");
            beat.beat();
            if let Some(driver) = &mut self.driver {
                driver.keep_clock(&self.error);
            }
            if !self.obey(orders) {
                return;
            }
            self.take_times();
            self.reflect();
            self.take_replies();
            self.send_due();
            self.counters.sessions = self.sessions.len() as u64;
            let in_driver = self.driver.as_ref().map_or(0, Driver::sessions);
            self.counters.reflector_sessions = (in_driver + self.reflector.sessions()) as u64;
            *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = self.counters;
            beat.idle(|| self.wait());
        }
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    /// Waits until there is something to do, and then for more of it.
    fn wait(&self) {
        let due = self.wheel.next_ns().map(|due| due.saturating_sub(self.now_ns()));
        let clock = self.driver.as_ref().map(|_| driver::CLOCK_NS);
        let until = due.into_iter().chain(clock).min();
        let gather = self.gather.as_nanos() as u64;
        if until.is_none_or(|until| until > gather) {
            // In whole milliseconds, rounded up: nothing is due before.
            let millis = until.map(|until| until.div_ceil(1_000_000));
            let timeout = millis.map_or(PollTimeout::NONE, |millis| {
                PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
            });
            let Sockets { sender, reflector, wake } = &self.sockets;
            let read = |fd| PollFd::new(fd, PollFlags::POLLIN);
            let mut fds = vec![read(wake.as_fd()), read(sender.as_fd())];
            fds.extend(reflector.iter().map(|socket| read(socket.as_fd())));
            // An error is a signal's, or would come again from the sockets' own calls.
            let _ = poll(&mut fds, timeout);
        }
        thread::sleep(self.gather);
    }

    /// Does what was ordered; no when that is to stop.
    fn obey(&mut self, orders: &Receiver<Command>) -> bool {
        let _ = self.sockets.wake.read();
        for order in orders.try_iter() {
            match order {
                Command::Permit(to) => drop(self.permitted.insert(to)),
                Command::Forbid(to) => {
                    self.permitted.remove(&to);
                    for id in self.targets.get(&to).cloned().unwrap_or_default() {
                        self.close(id);
                    }
                }
                Command::Open(id, session) => self.open(id, *session),
                Command::Close(id) => self.close(id),
                Command::Admit(config, done) => {
                    let driver = self.driver.as_mut();
                    if !driver.is_some_and(|driver| driver.admit(&config)) {
                        self.reflector.admit(*config);
                    }
                    // Whoever asked may have gone meanwhile.
                    let _ = done.send(());
                }
                Command::Remove(session) => {
                    if let Some(driver) = &mut self.driver {
                        driver.remove(&session);
                    }
                    self.reflector.remove(&session);
                }
                Command::Stop => return false,
            }
        }
        true
    }

    fn open(&mut self, id: SessionId, session: Session) {
        let Session { to, from, interval, phase, count, settings } = session;
        if !self.permitted.contains(&to) {
            (self.report)(id, News::NotPermitted);
            return;
        }
        let others = self.targets.entry(to).or_default();
        let ssid = |id: &SessionId| self.sessions.get(id).map(|one| one.sender.settings().ssid);
        // Of TWAMP Light nothing has a number; there the packets themselves count.
        let numbered = settings.peer != Peer::TwampLight;
        if numbered && others.iter().any(|other| ssid(other) == Some(settings.ssid)) {
            (self.report)(id, News::SsidInUse);
            return;
        }
        others.push(id);
        let due_ns = self.now_ns() + phase.as_nanos() as u64;
        let interval_ns = (interval.as_nanos() as u64).max(1);
        let sender = Sender::new(settings);
        let closing = count == Some(0);
        let running = Running { to, from, interval_ns, due_ns, left: count, sender, closing };
        self.sessions.insert(id, running);
        self.wheel.add(due_ns, id);
    }

    /// Sends no more; the session stays until its packets are settled.
    fn close(&mut self, id: SessionId) {
        let now_ns = self.now_ns();
        if let Some(session) = self.sessions.get_mut(&id) {
            session.closing = true;
            // Checked once more than its turns; the last of these finds it gone.
            self.wheel.add(now_ns, id);
        }
    }

    /// What the kernel reports about when packets were sent.
    fn take_times(&mut self) {
        let Self { sockets, incoming, sessions, sent, reflected, reflector, report, error, .. } =
            self;
        let ours = sockets.sender.sent(incoming, |number, at_ns| {
            if let Some((id, sequence)) = sent.get(number)
                && let Some(session) = sessions.get_mut(&id)
            {
                let report = |event| report(id, News::Packet(event));
                session.sender.left(sequence, at_ns, error(at_ns), report);
            }
        });
        let theirs = sockets.reflector.as_mut().map_or(Ok(()), |socket| {
            socket.sent(incoming, |number, at_ns| {
                // The next reply reports this moment, but not how good the clock was then.
                if let Some(reply) = reflected.get(number)
                    && reply.covers(at_ns, error(at_ns))
                {
                    reflector.left(&reply.session, reply.sequence, at_ns);
                }
            })
        });
        for result in [ours, theirs] {
            self.counters.socket_errors += u64::from(result.is_err());
        }
    }

    /// Answers what came to the reflector.
    fn reflect(&mut self) {
        for _ in 0..BATCHES {
            let Some(socket) = &mut self.sockets.reflector else { return };
            let received = socket.receive(&mut self.incoming);
            let Some(count) = counted(received, &mut self.counters) else { return };
            let mut replies = [None; datapath::stamping::BATCH];
            for datagram in self.incoming.datagrams() {
                let (arrival, from, to) = (arrival(&datagram), datagram.from, datagram.to);
                let (mut answered, mut reading) = (None, None);
                let slot = self.outgoing.add(|reply| {
                    // Of both timestamps, and known after them.
                    let now = || {
                        let ns = unix_ns();
                        let now = Reading { ns, error: (self.error)(ns.min(arrival.at_ns)) };
                        *reading.insert(now)
                    };
                    answered = self.reflector.answer(&arrival, now, reply).ok();
                    answered.map(|answered| (from, to, answered.traffic_class))
                });
                if let (Some(slot), Some(answered), Some(reading)) = (slot, answered, reading) {
                    let Reply { session, sequence, .. } = answered;
                    let (at_ns, error_ns) = (reading.ns, reading.error.nanoseconds);
                    replies[slot] = Some(Reflection { session, sequence, at_ns, error_ns });
                }
            }
            let (reflected, counters) = (&mut self.reflected, &mut self.counters);
            socket.send(&mut self.outgoing, |slot, number| match (number, replies[slot]) {
                (Ok(number), Some(reply)) => {
                    reflected.add(number, reply);
                    counters.reflected += 1;
                }
                _ => counters.not_reflected += 1,
            });
            counters.reflector_refused = self.reflector.refusals();
            if count < datapath::stamping::BATCH {
                return;
            }
        }
    }

    /// Gives replies to their sessions.
    fn take_replies(&mut self) {
        for _ in 0..BATCHES {
            let received = self.sockets.sender.receive(&mut self.incoming);
            let Some(count) = counted(received, &mut self.counters) else { return };
            let Self { incoming, sessions, targets, report, counters, error, .. } = self;
            for datagram in incoming.datagrams() {
                counters.received += 1;
                let Some(id) = session_of(&datagram, sessions, targets) else {
                    counters.refused.add(Refused::UnknownSession);
                    continue;
                };
                let Some(session) = sessions.get_mut(&id) else { continue };
                let report = |event| report(id, News::Packet(event));
                let arrival = arrival(&datagram);
                let error = error(arrival.at_ns);
                if let Err(reason) = session.sender.receive(&arrival, error, report) {
                    counters.refused.add(reason);
                }
            }
            if count < datapath::stamping::BATCH {
                return;
            }
        }
    }

    /// Sends what is due, and settles what is overdue.
    fn send_due(&mut self) {
        let now_ns = self.now_ns();
        let mut due = std::mem::take(&mut self.due);
        due.clear();
        self.wheel.take(now_ns, &mut due);
        let mut batch = Vec::with_capacity(datapath::stamping::BATCH);
        // How the clock was steered before the first timestamp: see `Interval::elapsed`.
        let steered = due.first().and_then(|_| (self.error)(unix_ns()).steered);
        for id in due.iter().copied() {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            let report = &mut self.report;
            session.sender.settle(now_ns, |event| report(id, News::Packet(event)));
            if session.due_ns <= now_ns && !session.closing {
                let missed = (now_ns - session.due_ns) / session.interval_ns;
                if missed > 0 {
                    self.counters.missed += missed;
                    report(id, News::Missed(missed));
                }
                session.due_ns += (missed + 1) * session.interval_ns;
                let class = session.sender.settings().dscp << 2;
                let mut sequence = 0;
                self.outgoing.add(|bytes| {
                    let ns = unix_ns();
                    let error = MaximumError { steered, ..(self.error)(ns) };
                    sequence = session.sender.next(Reading { ns, error }, now_ns, bytes);
                    Some((session.to, session.from, class))
                });
                batch.push((id, sequence));
                session.left = session.left.map(|left| left - 1);
                session.closing = session.left == Some(0);
            }
            match session.next_ns() {
                Some(next_ns) => self.wheel.add(next_ns, id),
                None => self.end(id),
            }
            if self.outgoing.is_full() {
                self.flush(&mut batch);
            }
        }
        self.flush(&mut batch);
        self.due = due;
    }

    fn end(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.remove(&id) {
            if let Some(others) = self.targets.get_mut(&session.to) {
                others.retain(|other| *other != id);
                if others.is_empty() {
                    self.targets.remove(&session.to);
                }
            }
            (self.report)(id, News::Ended);
        }
    }

    /// Sends the packets that were written; `batch` says whose they are.
    fn flush(&mut self, batch: &mut Vec<(SessionId, u32)>) {
        let Self { sockets, outgoing, sent, counters, report, .. } = self;
        sockets.sender.send(outgoing, |slot, number| match number {
            Ok(number) => {
                sent.add(number, batch[slot]);
                counters.sent += 1;
            }
            Err(_) => {
                counters.not_sent += 1;
                report(batch[slot].0, News::NotSent);
            }
        });
        batch.clear();
    }
}

/// How many datagrams came, if any; an error of the socket is counted.
fn counted(received: io::Result<usize>, counters: &mut Counters) -> Option<usize> {
    counters.socket_errors += u64::from(received.is_err());
    received.ok().filter(|count| *count > 0)
}

/// Of the sessions to the address that a reply comes from, the one with its SSID; else, as a reflector may
/// know nothing of SSIDs, the only one. Sessions to a responder of TWAMP Light are distinguished by what they wait
/// for, so there a late reply is only known where there is one session.
fn session_of(
    datagram: &Datagram<'_>,
    sessions: &FxHashMap<SessionId, Running>,
    targets: &FxHashMap<SocketAddr, Vec<SessionId>>,
) -> Option<SessionId> {
    let all = targets.get(&datagram.from)?;
    let (plain, authenticated) = (plain_ssid(datagram.bytes), authenticated_ssid(datagram.bytes));
    let mine = |id: &&SessionId| {
        sessions.get(*id).is_some_and(|session| {
            let settings = session.sender.settings();
            let ssid = if settings.key.is_some() { authenticated } else { plain };
            let awaited = || session.sender.awaits(datagram.bytes);
            ssid == Some(settings.ssid) && (settings.peer != Peer::TwampLight || awaited())
        })
    };
    match (all.iter().find(mine), all.as_slice()) {
        (Some(id), _) | (None, [id]) => Some(*id),
        _ => None,
    }
}

fn arrival<'a>(datagram: &Datagram<'a>) -> Arrival<'a> {
    Arrival {
        bytes: datagram.bytes,
        from: datagram.from,
        // The kernel stamps all that comes after the option is set; the rest is a little later.
        at_ns: datagram.at_ns.unwrap_or_else(unix_ns),
        ttl: datagram.ttl,
        traffic_class: datagram.traffic_class,
    }
}
