//! Captures of what passes a link or a node of a running lab, as pcapng files.
//!
//! The engine copies packets into bounded room; a thread of the control socket writes them to whoever
//! asked, as the file's bytes. Times are those of the lab's clock, put on the system's: they can be held
//! beside what tcpdump says in a host. Packets of a link stand when they are put on it, those of a node
//! when they come and when they leave; each neighbour and each host of the node is an interface. A
//! packet that its link did not carry has the reason as its comment. Of a wire, frames are captured with
//! their Ethernet header.

use super::{Context, ReplyError};
use crate::{
    Nanos, NodeId,
    engine::{CapturePoint, CapturedPacket, Reason, Room, Watch, Watched},
};
use ::capture::pcapng::{self, Direction, Medium, Record};
use rustc_hash::FxHashMap;
use std::{
    io::{self, Write},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant, SystemTime},
};

/// How long the writer waits for packets before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// So many bytes are gathered before they are written, if packets come without pause.
const GATHERED: usize = 256 << 10;

/// When a capture ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// After so many packets.
    count: Option<u64>,
    /// After so long.
    time: Option<Duration>,
}

impl Limits {
    /// After so many packets or seconds.
    ///
    /// # Errors
    /// What is wrong with the seconds.
    pub(super) fn new(count: Option<u64>, seconds: Option<f64>) -> Result<Self, String> {
        let time = seconds.map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|error| format!("a capture cannot last {seconds} seconds: {error}"))
        });
        Ok(Self { count, time: time.transpose()? })
    }
}

/// A capture that goes on until it is dropped.
pub(super) struct Capture {
    context: Arc<Context>,
    number: u32,
    what: Watched,
    seen: Receiver<CapturedPacket>,
    room: Arc<Room>,
    snap: u32,
    /// The lab's start in nanoseconds since 1970.
    start: u64,
}

impl Capture {
    /// Begins to capture what is meant by `A-B`, `A>B` or a node.
    pub(super) fn start(context: Arc<Context>, what: &str, snap: u32) -> Result<Self, ReplyError> {
        let what = context.finder().watched(what)?;
        let (to, seen) = channel();
        let room = Arc::new(Room::default());
        let watch = Watch { what, snap: snap as usize, to, room: room.clone() };
        let (number, now) = context.handle().call(|engine, now| (engine.watch(watch), now))?;
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = Nanos::from(wall).since(now).0;
        Ok(Self { context, number, what, seen, room, snap, start })
    }

    /// Writes until a limit is reached, `ended` says so, or the lab ends.
    pub(super) fn write(
        &self,
        out: &mut impl Write,
        limits: Limits,
        ended: impl Fn() -> bool,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        pcapng::section(&mut bytes, concat!("nigh ", env!("CARGO_PKG_VERSION")), None);
        let mut interfaces = Interfaces { capture: self, known: FxHashMap::default() };
        // A file without any interface is refused by some readers.
        if let Watched::Link(link, _) = self.what {
            interfaces.number(CapturePoint::Onto(link), &mut bytes);
        }
        let deadline = limits.time.and_then(|wait| Instant::now().checked_add(wait));
        let mut left = limits.count.unwrap_or(u64::MAX);
        let mut last = 0;
        let over = || ended() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let mut stopped = false;
        while left > 0 {
            // Everything is written before the writer waits, so that nobody waits for packets.
            out.write_all(&bytes)?;
            bytes.clear();
            if !stopped && over() {
                // What was seen before the end is written, however long it had to wait.
                self.stop();
                stopped = true;
            }
            let wait = deadline.map_or(LOOK, |at| LOOK.min(at.duration_since(Instant::now())));
            let mut next = match self.seen.recv_timeout(wait) {
                Ok(seen) => Some(seen),
                Err(RecvTimeoutError::Timeout) if !stopped => None,
                Err(_) => break,
            };
            while let Some(seen) = next.take() {
                self.room.taken(&seen);
                last = last.max(self.start + seen.at.0);
                interfaces.write(&seen, &mut bytes);
                left -= 1;
                if left > 0 && bytes.len() < GATHERED {
                    next = self.seen.try_recv().ok();
                }
            }
        }
        if interfaces.known.is_empty() {
            pcapng::interface(&mut bytes, Some("none"), Medium::Ip, self.snap);
        }
        pcapng::statistics(&mut bytes, 0, last, self.room.lost());
        out.write_all(&bytes)
    }
}

impl Capture {
    /// Nothing more is seen; what waits can still be taken.
    fn stop(&self) {
        let number = self.number;
        let _ = self.context.handle().call(move |engine, _| engine.unwatch(number));
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The interfaces of a file, in the order in which packets bring them up.
struct Interfaces<'a> {
    capture: &'a Capture,
    known: FxHashMap<String, u32>,
}

impl Interfaces<'_> {
    fn write(&mut self, seen: &CapturedPacket, out: &mut Vec<u8>) {
        let interface = self.number(seen.point, out);
        let direction = match seen.point {
            CapturePoint::Onto(_) | CapturePoint::ToHost(_) => Direction::Outbound,
            CapturePoint::By(_) | CapturePoint::FromHost(_) => Direction::Inbound,
        };
        let record = Record {
            interface,
            time: self.capture.start + seen.at.0,
            direction: Some(direction),
            medium: if seen.ethernet { Medium::Ethernet } else { Medium::Ip },
            length: seen.length,
            bytes: &seen.bytes,
            comment: seen.dropped.map(Reason::word),
        };
        pcapng::packet(out, record);
    }

    /// The number of the interface of a point; a new one is written first.
    fn number(&mut self, point: CapturePoint, out: &mut Vec<u8>) -> u32 {
        let name = self.name(point);
        let medium = match point {
            CapturePoint::Onto(link) | CapturePoint::By(link)
                if self.capture.context.is_wire(link) =>
            {
                Medium::Ethernet
            }
            _ => Medium::Ip,
        };
        let next = self.known.len() as u32;
        *self.known.entry(name).or_insert_with_key(|name| {
            pcapng::interface(out, Some(name), medium, self.capture.snap);
            next
        })
    }

    fn name(&self, point: CapturePoint) -> String {
        let context = &self.capture.context;
        let network = context.network();
        let neighbour = |node: NodeId| context.name(node);
        match (self.capture.what, point) {
            (Watched::Link(..), CapturePoint::Onto(link)) => context.link_name(link),
            (_, CapturePoint::Onto(link)) => neighbour(network.to(link)),
            (_, CapturePoint::By(link)) => neighbour(network.from(link)),
            (_, CapturePoint::FromHost(port) | CapturePoint::ToHost(port)) => {
                context.host_name(port)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_none_is_refused() {
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e30] {
            let error = Limits::new(None, Some(wrong)).expect_err("no time");
            assert!(error.starts_with("a capture cannot last"), "{error}");
        }
        let time = Some(Duration::from_millis(500));
        assert_eq!(Limits::new(Some(3), Some(0.5)), Ok(Limits { count: Some(3), time }));
    }
}
