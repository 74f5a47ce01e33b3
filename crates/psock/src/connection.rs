//! A data connection: frames of the core in its records, for as long as its path works.

use crate::{
    channel::{Channel, closed},
    core::{ConnectionId, Next, OutFrame, frame::Frame},
    error::{EndReason, PathError, SessionError},
    session::{Entered, Event, Session, Wake},
    sys,
    tls::{Progress, RECORD_BYTES},
};
use std::{io, sync::atomic::Ordering, time::Duration};
use tokio::{io::Interest, task::coop, time::sleep};

/// Bytes read from a socket at once.
const READ_BYTES: usize = 256 * 1024;

/// How often the kernel is asked how the connection does, while bytes are in flight.
const OBSERVE_NS: u64 = 5_000_000;

/// The shortest wait for a time that the core names: another connection may be the one to act then.
const LEAST_WAIT_NS: u64 = 500_000;

/// Bytes taken from the core at once: few while the socket takes little, so that no block waits here
/// that could go over a better path.
const BATCH_BYTES: std::ops::RangeInclusive<usize> = 1..=8 * RECORD_BYTES;

/// Carries blocks and acknowledgements until the path dies; `Ok` when the session has no more use for
/// it.
pub(crate) async fn run(channel: Channel, entered: Entered) -> Result<(), PathError> {
    let worker = Worker {
        session: &entered.session,
        id: entered.id,
        wake: &entered.wake,
        channel,
        frames: Vec::new(),
        record: Vec::with_capacity(RECORD_BYTES),
        batch: *BATCH_BYTES.start(),
        blocked: false,
        busy: false,
        observed_ns: 0,
    };
    worker.work().await
}

struct Worker<'a> {
    session: &'a Session,
    id: ConnectionId,
    wake: &'a Wake,
    channel: Channel,
    frames: Vec<OutFrame>,
    /// What goes into the next record.
    record: Vec<u8>,
    /// Bytes that are taken from the core at once.
    batch: usize,
    /// The socket takes nothing now.
    blocked: bool,
    /// The kernel has bytes of ours that the peer's has not acknowledged.
    busy: bool,
    observed_ns: u64,
}

impl Worker<'_> {
    async fn work(mut self) -> Result<(), PathError> {
        let timer = sleep(Duration::ZERO);
        tokio::pin!(timer);
        // What came together with the end of the handshake.
        self.parse(&[])?;
        self.session.lock().settle(self.session);
        loop {
            let read = self.read()?;
            let (wrote, wake_at) = self.write()?;
            if self.wake.close.load(Ordering::Relaxed) {
                return Ok(());
            }
            let now_ns = self.session.now_ns();
            let observe_at = self.observed_ns + OBSERVE_NS;
            if (self.busy || wrote) && now_ns >= observe_at {
                self.observe(now_ns)?;
            }
            if read || wrote {
                coop::consume_budget().await;
                continue;
            }
            let mut until = wake_at.map(|at| at.max(now_ns + LEAST_WAIT_NS));
            if self.busy || self.blocked {
                until = Some(until.unwrap_or(u64::MAX).min(observe_at.max(now_ns + LEAST_WAIT_NS)));
            }
            let interest = match self.blocked {
                true => Interest::READABLE | Interest::WRITABLE,
                false => Interest::READABLE,
            };
            if let Some(until) = until {
                let wait = Duration::from_nanos(until - now_ns);
                timer.as_mut().reset(tokio::time::Instant::now() + wait);
            }
            tokio::select! {
                biased;
                ready = self.channel.socket.ready(interest) => {
                    self.blocked &= !ready?.is_writable();
                }
                () = self.wake.notify.notified() => {}
                () = &mut timer, if until.is_some() => self.tick(),
            }
        }
    }

    /// Time went by: blocks may be overdue elsewhere.
    fn tick(&mut self) {
        let now_ns = self.session.now_ns();
        let mut inner = self.session.lock();
        inner.core.tick(now_ns);
        inner.settle(self.session);
    }

    fn observe(&mut self, now_ns: u64) -> Result<(), PathError> {
        let state = sys::tcp_info(&self.channel.socket)?;
        self.observed_ns = now_ns;
        self.busy = state.busy;
        self.session.lock().core.observe(self.id, &state.kernel, now_ns);
        Ok(())
    }

    /// Takes what the socket has; whether there was something.
    fn read(&mut self) -> Result<bool, PathError> {
        let room = self.channel.incoming.room(READ_BYTES);
        match self.channel.socket.try_read(room) {
            Ok(0) => return Err(closed()),
            Ok(count) => self.channel.incoming.fill(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let Self { session, id, channel, .. } = self;
        let Channel { records, incoming, out, plain, .. } = channel;
        let progress = records.take(incoming, out, |bytes| {
            if plain.is_empty() {
                let taken = receive(session, *id, bytes)?;
                plain.extend(bytes.get(taken..).unwrap_or_default());
            } else {
                plain.extend(bytes);
                let taken = receive(session, *id, plain.filled())?;
                plain.consume(taken);
            }
            Ok(())
        })?;
        self.session.lock().settle(self.session);
        match progress {
            Progress::Closed => Err(closed()),
            Progress::Open | Progress::Handshake => Ok(true),
        }
    }

    /// Takes what is there already.
    fn parse(&mut self, more: &[u8]) -> Result<(), PathError> {
        self.channel.plain.extend(more);
        let taken = receive(self.session, self.id, self.channel.plain.filled())?;
        self.channel.plain.consume(taken);
        Ok(())
    }

    /// Writes what the socket takes; whether it took something, and when the core wants to be asked
    /// again.
    fn write(&mut self) -> Result<(bool, Option<u64>), PathError> {
        let mut wrote = self.flush()?;
        if self.blocked {
            return Ok((wrote, None));
        }
        let mut length = 0;
        let wake_at = {
            let now_ns = self.session.now_ns();
            let mut inner = self.session.lock();
            while length < self.batch {
                match inner.core.next(self.id, now_ns) {
                    Next::Frame(frame) => {
                        length += frame.length();
                        self.frames.push(frame);
                    }
                    Next::Wait => {
                        self.wake.idle.store(true, Ordering::Relaxed);
                        break;
                    }
                }
            }
            inner.core.wake_at()
        };
        for frame in std::mem::take(&mut self.frames) {
            if self.record.len() + frame.length() > RECORD_BYTES {
                self.seal()?;
            }
            self.record.extend_from_slice(frame.head());
            self.record.extend_from_slice(frame.payload());
        }
        if !self.record.is_empty() {
            self.seal()?;
        }
        wrote |= self.flush()?;
        if wrote {
            self.busy = true;
            let (least, most) = BATCH_BYTES.into_inner();
            self.batch = if self.blocked { least } else { (length * 2).clamp(least, most) };
        }
        Ok((wrote, wake_at))
    }

    /// Makes a record of what was collected.
    fn seal(&mut self) -> Result<(), PathError> {
        self.channel.queue(&self.record)?;
        self.record.clear();
        Ok(())
    }

    /// Writes what is ready for the socket; whether it took something.
    fn flush(&mut self) -> Result<bool, PathError> {
        let mut wrote = false;
        while !self.blocked && !self.channel.out.is_empty() {
            match self.channel.socket.try_write(self.channel.out.filled()) {
                Ok(count) => {
                    self.channel.out.consume(count);
                    wrote = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(wrote)
    }
}

/// Gives whole frames to the core; returns how many bytes they were. What an honest peer never sends
/// ends the session.
fn receive(session: &Session, id: ConnectionId, bytes: &[u8]) -> Result<usize, PathError> {
    let now_ns = session.now_ns();
    let mut taken = 0;
    let mut inner = session.lock();
    loop {
        let rest = bytes.get(taken..).unwrap_or_default();
        let error = match Frame::parse(rest) {
            Ok(None) => return Ok(taken),
            Ok(Some((Frame::Reset(reason), _))) => {
                SessionError::Peer(EndReason::from_code(reason.code))
            }
            Ok(Some((frame, length))) => match inner.core.receive(id, &frame, now_ns) {
                Ok(()) => {
                    taken += length;
                    continue;
                }
                Err(violation) => violation.into(),
            },
            Err(error) => SessionError::Violation(error.to_string()),
        };
        session.send_event(Event::Fail(error.clone()));
        return Err(PathError::Protocol(error.to_string()));
    }
}
