//! The thread that carries packets: from ports into the engine, and out of it when their time comes.
//!
//! It waits with epoll. A timer of the kernel wakes a thread some 16 to 60 microseconds late, which is
//! more than a packet may be late; so the thread sleeps until [`MARGIN`] before the next packet is due
//! and spins for the rest. With nothing inside it sleeps until something comes.

use super::handle::Inbox;
use crate::{Nanos, PortId, engine::Engine, port::Port};
use nix::sys::{
    epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
    time::TimeSpec,
    timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
};
use std::{io, os::fd::AsFd, time::Duration};

/// How long before a packet is due the thread is awake.
const MARGIN: Nanos = Nanos(80_000);
/// Most frames of a port in one turn: the other ports are waiting.
const TURN: usize = 64;
/// Most ports in one turn.
const EVENTS: usize = 64;
/// What an epoll event says instead of a port's number.
const BELL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

/// The thread's state.
pub(super) struct Carrier {
    pub(super) engine: Engine,
    ports: Vec<Port>,
    inbox: Inbox,
    epoll: Epoll,
    timer: TimerFd,
    /// When the timer goes off, if it is set.
    alarm: Option<Nanos>,
    out: Vec<(PortId, crate::pool::Frame)>,
}

impl Carrier {
    /// Gets ready to carry between these ports, which are the engine's in order.
    pub(super) fn new(engine: Engine, ports: Vec<Port>, inbox: Inbox) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(
            ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        let readable = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        for (port, number) in ports.iter().zip(0u64..) {
            epoll.add(port.as_fd(), readable(number))?;
        }
        epoll.add(inbox.bell().as_fd(), readable(BELL))?;
        epoll.add(timer.as_fd(), readable(TIMER))?;
        Ok(Self { engine, ports, inbox, epoll, timer, alarm: None, out: Vec::new() })
    }

    /// Carries until it is told to stop.
    ///
    /// # Errors
    /// When waiting fails; what a port says concerns that port only.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            let timeout = self.timeout()?;
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

    /// How long to wait for frames: not at all when something is due soon.
    fn timeout(&mut self) -> io::Result<EpollTimeout> {
        let Some(due) = self.engine.due() else { return Ok(EpollTimeout::NONE) };
        let wake = due - MARGIN;
        let now = self.inbox.now();
        if wake <= now {
            return Ok(EpollTimeout::ZERO);
        }
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
            match port.receive(self.engine.pool(), &mut frame) {
                Ok(true) => self.engine.ingress(self.inbox.now(), id, frame),
                Ok(false) => {
                    self.engine.pool().give_back(frame);
                    return;
                }
                Err(error) => {
                    self.engine.pool().give_back(frame);
                    tracing::warn!(port = number, %error, "the port is lost");
                    let _ = self.epoll.delete(port.as_fd());
                    return;
                }
            }
        }
    }

    /// Lets frames out whose time has come.
    fn release(&mut self) {
        let now = self.inbox.now();
        self.engine.advance(now, &mut self.out);
        for (id, frame) in self.out.drain(..) {
            let pool = self.engine.pool();
            if let Some(port) = self.ports.get_mut(usize::from(id.0))
                && let Err(error) = port.send(pool, &frame)
            {
                tracing::debug!(port = id.0, %error, "the port does not take a frame");
            }
            pool.give_back(frame);
        }
    }
}
