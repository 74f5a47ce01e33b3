//! From the interface to the output, until somebody says that it is enough.

use super::{
    Chosen, LiveError,
    clock::Clock,
    engine,
    filter::Filter,
    masker::Masker,
    options::{Direction, LiveArgs},
    output::{Head, Output, Packet, Statistics},
    periods::Periods,
};
use crate::{counted::counted, file::Job, machine::Link, policy::Time};
use datapath::{
    capabilities,
    mask::{self as kernel, Counts, Engine, Mask, Masked, Pace, Reader, Settings},
};
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;
use std::{
    fmt, io, process,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How often clocks are inspected.
const SECOND: Duration = Duration::from_secs(1);
/// How long packets gather at most before they are read.
const GATHER: Duration = Duration::from_millis(1);
/// How long is waited for packets at most before signals and limits are inspected.
const WAIT: Duration = Duration::from_millis(100);
/// Packets that are read before these are inspected.
const MOST: usize = 1 << 14;

/// What happened to all packets.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Who masked.
    #[serde(flatten)]
    pub chosen: Chosen,
    /// In the kernel.
    #[serde(flatten)]
    pub seen: Counts,
    /// In the output.
    pub output: Statistics,
    /// Masked when as many as were wanted had been written already.
    pub beyond_limit: u64,
    /// Lost: masked under the key of another period, since the clock was set or this process stood still.
    pub lost_period: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chosen, seen, output, beyond_limit, lost_period, seconds } = self;
        let packets = counted(output.packets, "packet", "packets");
        write!(f, "{packets} masked and written in {seconds:.1} s")?;
        if chosen.engine == Engine::Process {
            write!(f, ", by this process, which original bytes reached")?;
        }
        for (count, why) in [
            (seen.not_wanted, "not matched by the filter"),
            (seen.not_in_sample, "not in the sample"),
            (seen.cut, "cut by --snap"),
            (*beyond_limit, "masked after the limit was reached"),
            (seen.lost_ring, "lost because they arrived faster than they were written"),
            (seen.lost_unread, "lost because the kernel did not return their bytes"),
            (seen.lost_key, "lost because there was no key for their time"),
            (*lost_period, "lost because they were masked under the key of another period"),
            (output.no_reader, "lost because the pipe had no reader"),
            (output.slow_reader, "lost because the pipe's reader was too slow"),
            (output.short, "lost because they are too short for a frame"),
            (output.long, "lost because they are too long for a frame"),
            (output.unwritten, "lost because the file could not be written"),
            (output.refused, "lost because the TAP device was down"),
        ] {
            if count > 0 {
                write!(f, "; {count} {why}")?;
            }
        }
        Ok(())
    }
}

/// Packets of an interface in flight to an output.
pub struct Live<'a> {
    job: &'a Job,
    chosen: Chosen,
    /// Shared with the thread that wipes it at a second signal.
    mask: Arc<Mutex<Mask>>,
    /// Where this process masks.
    masker: Option<Masker<'a>>,
    reader: Reader,
    periods: Periods,
    output: Output,
    clock: Clock,
    begun: Instant,
    /// Packets that may still be written, and those that came when there was no room any more.
    room: u64,
    beyond_limit: u64,
    lost_period: u64,
    /// When the first one was seen.
    first: Option<u64>,
    stop: Arc<AtomicBool>,
}

impl<'a> Live<'a> {
    /// Loads the engine and puts it on the interface; capabilities are given up then.
    ///
    /// # Errors
    /// When the interface is not there or not known, the filter is none, the kernel refuses, or there is no
    /// output.
    pub fn begin(args: &LiveArgs, job: &'a Job, chosen: Chosen) -> Result<Self, LiveError> {
        let signals = block_signals()?;
        let ifindex = nix::net::if_::if_nametoindex(args.interface.as_str())
            .map_err(|_| LiveError::NoInterface(args.interface.clone()))?;
        if args.target.tap.as_ref() == Some(&args.interface) {
            return Err(LiveError::Round(args.interface.clone()));
        }
        let link = match kernel::link_of(ifindex)? {
            kernel::Link::Ethernet => Link::Ethernet,
            kernel::Link::Ip => Link::Ip,
        };
        let filter = args.filter.as_deref().map(|text| Filter::compile(text, link)).transpose()?;
        let settings = Settings {
            filter: filter.as_ref().map_or_else(Vec::new, engine::instructions),
            snap: args.snap,
            sample: args.sample,
            ..engine::settings(job.program(), job.mapping(), link)?
        };
        let mut mask = Mask::open(&settings, chosen.engine)?;
        let masker = (chosen.engine == Engine::Process).then(|| Masker::new(job, link));
        let clock = Clock::read()?;
        let periods = Periods::begin(job, &mask, &clock)?;
        let output = args.open(Head::new(job.record(), link, args.snap))?;
        let reader = mask.reader()?;
        for (direction, given) in
            [(kernel::Direction::In, Direction::In), (kernel::Direction::Out, Direction::Out)]
        {
            if [given, Direction::Both].contains(&args.direction) {
                mask.attach(ifindex, direction)?;
            }
        }
        // Threads have the capabilities of those that start them.
        let kept = if args.makes_files() { &capabilities::FILES[..] } else { &[] };
        capabilities::keep(kept)?;
        let mask = Arc::new(Mutex::new(mask));
        let (wipe_key, wiped) = (job.wiper(), mask.clone());
        let stop = stop_on(signals, move || {
            wipe_key();
            locked(&wiped).wipe();
        });
        let (begun, room) = (Instant::now(), args.count.unwrap_or(u64::MAX));
        let (beyond_limit, lost_period, first) = (0, 0, None);
        Ok(Self {
            job,
            chosen,
            mask,
            masker,
            reader,
            periods,
            output,
            clock,
            begun,
            room,
            beyond_limit,
            lost_period,
            first,
            stop,
        })
    }

    /// Writes packets until a signal comes, the time is over or there were so many. `progress` is called once
    /// a second what happened to packets so far.
    ///
    /// # Errors
    /// When the interface is gone, or nothing more can be read or written.
    pub fn run(
        &mut self,
        duration: Option<Duration>,
        mut progress: impl FnMut(&Counts),
    ) -> Result<(), LiveError> {
        let (mut reported, mut flushed) = (Instant::now(), Instant::now());
        loop {
            self.pass_on(WAIT)?;
            // Packets may come so fast that each turn has some.
            if flushed.elapsed() >= WAIT {
                flushed = Instant::now();
                self.output.flush()?;
            }
            if reported.elapsed() >= SECOND {
                reported = Instant::now();
                self.clock = Clock::read()?;
                let mask = locked(&self.mask);
                self.periods.turn(self.job, &*mask, &self.clock)?;
                progress(&mask.counts()?);
                if !mask.is_attached() {
                    return Err(LiveError::Gone);
                }
            }
            let is_over = duration.is_some_and(|duration| self.begun.elapsed() >= duration);
            if self.room == 0 || is_over || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    /// Takes the mask off the interface and writes what it has masked; what happened to all packets, and why
    /// that is not all if it is not.
    pub fn end(mut self) -> (Summary, Result<(), LiveError>) {
        locked(&self.mask).detach();
        let passed_on = loop {
            match self.pass_on(Duration::ZERO) {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        let seconds = self.begun.elapsed().as_secs_f64();
        let counts = locked(&self.mask).counts().map_err(LiveError::from);
        let (output, ended) = self.output.end();
        let seen = counts.as_ref().copied().unwrap_or_default();
        let Self { chosen, beyond_limit, lost_period, .. } = self;
        let summary = Summary { chosen, seen, output, beyond_limit, lost_period, seconds };
        let result = passed_on.and(counts.map(drop)).and(ended.map_err(LiveError::from));
        (summary, result)
    }

    /// Writes the packets that are there, or waits for some; how many there were.
    fn pass_on(&mut self, timeout: Duration) -> Result<usize, LiveError> {
        let Self {
            job,
            masker,
            reader,
            periods,
            output,
            clock,
            room,
            beyond_limit,
            lost_period,
            first,
            ..
        } = self;
        let pace = Pace { timeout, gather: GATHER, most: MOST };
        let mut failed = None;
        let count = reader.read(pace, |masked: Masked<'_>| {
            if *room == 0 || failed.is_some() {
                *beyond_limit += 1;
                return;
            }
            let Some(period) = periods.of(masked.epoch, masked.at_ns) else {
                *lost_period += 1;
                return;
            };
            *room -= 1;
            let seen = clock.since_1970(masked.at_ns);
            let comment = periods.comment(job, masked.epoch);
            let packet = Packet {
                at_ns: match job.time() {
                    Time::Keep => seen,
                    Time::Relative => seen.saturating_sub(*first.get_or_insert(seen)),
                    Time::Remove => 0,
                },
                length: masked.length,
                direction: masked.direction,
                comment: comment.as_deref(),
                bytes: match masker {
                    Some(masker) => masker.mask(period, masked.bytes),
                    None => masked.bytes,
                },
            };
            failed = output.packet(&packet).err();
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(count),
        }
    }
}

fn locked(mask: &Mutex<Mask>) -> MutexGuard<'_, Mask> {
    mask.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has SIGINT, SIGTERM and SIGHUP wait until somebody asks for them.
fn block_signals() -> io::Result<SigSet> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    signals.thread_block()?;
    Ok(signals)
}

/// Is set when one of these comes. A second one ends the process, if who reads its output does not; what it
/// knows of keys is wiped before.
fn stop_on(signals: SigSet, wipe: impl FnOnce() + Send + 'static) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    thread::spawn(move || {
        if signals.wait().is_ok() {
            set.store(true, Ordering::Relaxed);
        }
        if let Ok(signal) = signals.wait() {
            wipe();
            process::exit(128 + signal as i32);
        }
    });
    stop
}
