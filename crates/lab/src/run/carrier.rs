//! The thread that carries packets: from ports into the engine, and out of it when their time comes.
//!
//! It waits with epoll. A thread that sleeps is woken some 16 to 60 microseconds late by a timer or by a
//! frame, on a virtual machine by hundreds, which is more than a packet may be late; so the thread spins
//! while packets come and go, if nobody else wants the core ([`Contention`]).

use super::{
    contention::Contention,
    handle::Inbox,
    warm::{self, Warmer},
};
use crate::{
    Nanos, PortId,
    engine::{Change, Engine},
    port::Port,
};
use nix::sys::{
    epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
    time::TimeSpec,
    timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
};
use std::{collections::VecDeque, io, os::fd::AsFd, time::Duration};

/// Most frames of a port in one turn: the other ports are waiting.
const TURN: usize = 64;
/// Most ports in one turn.
const EVENTS: usize = 64;
/// How long before a packet is due, and after a frame came or left, the thread is awake where cores are
/// free: a sleeping core of a virtual machine takes hundreds of microseconds to wake.
const AWAKE: Nanos = Nanos(50_000_000);
/// How long before a packet is due where they are not: setting a timer costs more than to spin so long.
const CROWDED: Nanos = Nanos(8_000);
/// How long before its time the engine is done with a packet that comes when nothing has moved for
/// [`QUIET`].
const AHEAD: Nanos = Nanos(20_000);
const QUIET: Nanos = Nanos(1_000_000);
/// What an epoll event says instead of a port's number.
const BELL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// The thread's state.
pub(super) struct Carrier {
    pub(super) engine: Engine,
    ports: Vec<Port>,
    inbox: Inbox,
    warmer: Warmer,
    /// What changes when, in order.
    events: VecDeque<(Nanos, Change)>,
    epoll: Epoll,
    timer: TimerFd,
    /// When the timer goes off, if it is set.
    alarm: Option<Nanos>,
    /// When a frame last came in or left.
    busy: Nanos,
    out: Vec<(PortId, crate::pool::Frame)>,
}

impl Carrier {
    /// Gets ready to carry between these ports, which are the engine's in order.
    pub(super) fn new(
        engine: Engine,
        ports: Vec<Port>,
        events: VecDeque<(Nanos, Change)>,
        inbox: Inbox,
        warmer: Warmer,
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        let readable = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        for (port, number) in ports.iter().zip(0u64..) {
            for fd in port.fds() {
                epoll.add(fd, readable(number))?;
            }
        }
        epoll.add(inbox.bell().as_fd(), readable(BELL))?;
        epoll.add(timer.as_fd(), readable(TIMER))?;
        Ok(Self {
            engine,
            ports,
            inbox,
            warmer,
            events,
            epoll,
            timer,
            alarm: None,
            busy: Nanos::ZERO,
            out: Vec::new(),
        })
    }

    /// Carries until it is stopped.
    ///
    /// # Errors
    /// When waiting fails; what a port says concerns that port only.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); EVENTS];
        let mut contention = Contention::new();
        loop {
            let timeout = self.timeout(&mut contention)?;
            let count = match self.epoll.wait(&mut events, timeout) {
                Ok(count) => count,
                Err(nix::Error::EINTR) => 0,
                Err(error) => return Err(error.into()),
            };
            for event in &events[..count] {
                match event.data() {
                    BELL => {
                        if !self.inbox.work(&mut self.engine) {
                            return Ok(());
                        }
                    }
                    TIMER => {
                        let _ = self.timer.wait();
                        self.alarm = None;
                    }
                    port => self.take(port as usize),
                }
            }
            self.release();
        }
    }

    /// How long to wait for frames: not at all while packets come and go.
    fn timeout(&mut self, contention: &mut Contention) -> io::Result<EpollTimeout> {
        let now = self.inbox.now();
        let event = self.events.front().map(|(at, _)| *at);
        let due = [self.engine.due(), event].into_iter().flatten().min();
        let crowded = contention.is_crowded(now);
        let margin = if crowded { CROWDED } else { AWAKE };
        let wake = due.map(|due| due - margin);
        let soon = wake.is_some_and(|wake| wake <= now);
        if soon || !crowded && now.since(self.busy) < AWAKE {
            if !crowded && due.is_none_or(|due| due.since(now) > warm::TAKES) {
                self.warmer.keep_warm(now);
            }
            return Ok(EpollTimeout::ZERO);
        }
        let Some(wake) = wake else { return Ok(EpollTimeout::NONE) };
        // An alarm that goes off too early costs a turn, setting it again costs a system call.
        if self.alarm.is_none_or(|alarm| wake < alarm) {
            let wait = TimeSpec::from_duration(Duration::from(wake - now));
            self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty())?;
            self.alarm = Some(wake);
        }
        Ok(EpollTimeout::NONE)
    }

    /// Takes what has arrived at a port.
    fn take(&mut self, number: usize) {
        let Some(port) = self.ports.get_mut(number) else { return };
        let id = PortId(number as u16);
        for _ in 0..TURN {
            let Some(mut frame) = self.engine.pool().take() else { return };
            // Before it is read: it was there already.
            let now = self.inbox.now();
            match port.receive(self.engine.pool(), &mut frame) {
                Ok(true) => {
                    self.busy = now;
                    self.engine.ingress(now, id, frame);
                }
                Ok(false) => {
                    self.engine.pool().give_back(frame);
                    return;
                }
                Err(error) => {
                    self.engine.pool().give_back(frame);
                    tracing::warn!(port = number, %error, "the port is lost");
                    for fd in port.fds() {
                        let _ = self.epoll.delete(fd);
                    }
                    return;
                }
            }
        }
    }

    /// The time up to which the engine is to work: that of the next packet, if it comes soon and nothing
    /// has moved for a while. What the engine does is slow then, as nothing of it is in the caches, and
    /// so is done before the packet's time.
    fn ahead(&self, now: Nanos) -> Nanos {
        let quiet = now.since(self.busy) > QUIET;
        let event = self.events.front().map(|(at, _)| *at);
        let is_next = |due: &Nanos| event.is_none_or(|event| *due <= event);
        let next = self.engine.due().filter(|due| quiet && due.since(now) < AHEAD && is_next(due));
        next.map_or(now, |due| due.max(now))
    }

    /// Does what is due: changes, and frames that leave.
    fn release(&mut self) {
        let now = self.inbox.now();
        while self.events.front().is_some_and(|(at, _)| *at <= now) {
            let Some((at, change)) = self.events.pop_front() else { break };
            if let Err(error) = self.engine.apply(at, change) {
                tracing::warn!(%at, %error, "an event of the scene was refused");
            }
        }
        let now = self.ahead(now);
        self.engine.advance(now, &mut self.out);
        if !self.out.is_empty() {
            self.busy = now;
            while self.inbox.now() < now {
                std::hint::spin_loop();
            }
        }
        for (id, frame) in self.out.drain(..) {
            let port = self.ports.get_mut(usize::from(id.0));
            match port.map(|port| port.send(self.engine.pool(), &frame)) {
                Some(Ok(true)) => self.engine.pool().give_back(frame),
                Some(Ok(false)) | None => self.engine.refused(frame),
                Some(Err(error)) => {
                    tracing::debug!(port = id.0, %error, "the port does not take a frame");
                    self.engine.refused(frame);
                }
            }
        }
    }
}
