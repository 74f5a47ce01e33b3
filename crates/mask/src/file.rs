//! Captures masked as they stream by: pcap and pcapng in, pcapng out.
//!
//! ```text
//! reader: batches of frames -> workers, a unit each -> writer: batches in the order in which they were read
//! ```
//!
//! One worker does it all in the reader's thread, without handing anything over.
//!
//! Nothing of the file but its frames gets through: names of interfaces and of hosts, comments, secrets
//! and statistics are skipped. Interfaces are numbered again, as their first packets come.

mod batch;
#[cfg(test)]
mod tests;
pub(crate) mod units;

use crate::{
    key::{self, Key, Rotation},
    machine::{MappingName, Secrets, Unit},
    mapping::EqualHalves,
    policy::{Policy, PolicyError, Time},
    program::Program,
};
pub(crate) use batch::link_and_bytes;
use batch::{Batch, Batches, Skipped, Worker};
use capture::{End, ReadError, pcapng};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Read, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};
use zeroize::Zeroize;

/// Batches that wait before each worker: enough to keep it busy, few enough to keep memory flat.
const WAITING: usize = 2;

/// How the frames of a capture are masked, and under which key.
pub struct Job {
    program: Program,
    time: Time,
    /// Shared with whoever wipes it before the process ends.
    key: Arc<Mutex<Key>>,
    mapping: MappingName,
    rotation: Option<Rotation>,
}

/// Why there is no job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The policy cannot be compiled.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The key is none of this mapping.
    #[error(transparent)]
    Key(#[from] EqualHalves),
}

/// Why a capture was not masked, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum MaskError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The result could not be written.
    #[error("cannot write the masked capture")]
    Write(#[from] io::Error),
}

/// What was done, in packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames of the capture.
    pub frames: u64,
    /// Of them, masked and written.
    pub masked: u64,
    /// Skipped, since nothing is known of their link.
    pub other_links: u64,
    /// Skipped, since the file does not say on which link they were seen.
    pub no_interface: u64,
    /// Bytes of the frames that were captured.
    pub bytes_in: u64,
    /// Bytes of the frames that were written.
    pub bytes_out: u64,
    /// Whether the file ended within a packet.
    pub truncated: bool,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frames, masked, other_links, no_interface, bytes_in, bytes_out, truncated } =
            self;
        write!(
            f,
            "{masked} of {frames} packets masked, {bytes_in} bytes read, {bytes_out} written"
        )?;
        if *other_links > 0 {
            write!(f, "; {other_links} skipped: unknown link type")?;
        }
        if *no_interface > 0 {
            write!(f, "; {no_interface} skipped: the file does not describe their interface")?;
        }
        if *truncated {
            f.write_str("; the capture ended within a packet")?;
        }
        Ok(())
    }
}

impl Job {
    /// To mask by a policy, under a key.
    ///
    /// # Errors
    /// When the policy cannot be compiled, or the key is none of the mapping.
    pub fn new(policy: &Policy, key: Key, mapping: MappingName) -> Result<Self, JobError> {
        let program = policy.compile()?;
        // Each worker makes its own; whether it can is known now.
        Secrets::new(&key, mapping)?;
        let key = Arc::new(Mutex::new(key));
        Ok(Self { program, time: policy.time, key, mapping, rotation: None })
    }

    /// With another key for each period, derived from this one; none if the policy needs no key.
    pub fn rotated(self, rotation: Option<Rotation>) -> Self {
        Self { rotation: rotation.filter(|_| self.program.needs_key()), ..self }
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn time(&self) -> Time {
        self.time
    }

    pub(crate) fn mapping(&self) -> MappingName {
        self.mapping
    }

    pub(crate) fn rotation(&self) -> Option<Rotation> {
        self.rotation
    }

    /// The comment in the first block of the result.
    pub fn record(&self) -> String {
        let mut record = format!(
            "masked by nigh {}; policy SHA-256 {}; mapping {}",
            env!("CARGO_PKG_VERSION"),
            self.program.digest(),
            self.mapping,
        );
        if self.program.needs_key() {
            record += &format!("; key {}", key::id(&self.key()));
        }
        if let Some(rotation) = self.rotation {
            record += &format!(", another one each {rotation}");
        }
        record
    }

    /// The key of the period that began at this time in seconds since 1970.
    pub(crate) fn key_of(&self, period: u64) -> Key {
        match self.rotation {
            Some(rotation) => rotation.key(&self.key(), period),
            None => self.key(),
        }
    }

    fn key(&self) -> Key {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Wipes the key, for a process that ends without dropping this.
    pub(crate) fn wiper(&self) -> impl FnOnce() + Send + 'static {
        let key = self.key.clone();
        move || key.lock().unwrap_or_else(PoisonError::into_inner).zeroize()
    }

    /// To mask the packets of a period.
    fn unit(&self, period: u64) -> Unit {
        let secrets = Secrets::new(&self.key_of(period), self.mapping);
        // A derived key has equal halves with a probability of 2^-128.
        Unit::new(self.program.clone(), secrets.expect("tried with the data set's key"))
    }

    /// Masks a capture with so many workers.
    ///
    /// # Errors
    /// When it is damaged, too, what is before the damage is written.
    pub fn run(
        &self,
        input: impl Read + Send,
        out: &mut (impl Write + Send),
        workers: usize,
    ) -> Result<Counts, MaskError> {
        let workers = workers.max(1);
        let mut first = Vec::new();
        let program = concat!("nigh ", env!("CARGO_PKG_VERSION"));
        pcapng::section(&mut first, program, Some(&self.record()));
        out.write_all(&first)?;
        let mut written = Writer { out, counts: Counts::default() };
        let batches = Batches::new(self.time, self.rotation);
        let read = if workers == 1 {
            let mut worker = Worker::new(self);
            batches.read(input, |mut batch| {
                worker.mask(&mut batch);
                written.write(&batch).map_err(Stopped::Write)?;
                Ok(batch)
            })
        } else {
            self.share(batches, input, &mut written, workers)
        };
        // What is before damage is written, too.
        let flushed = written.out.flush();
        let (end, Skipped { other_links, no_interface }) =
            read.map_err(|stopped| match stopped {
                Stopped::Read(error) => MaskError::Read(error),
                Stopped::Write(error) => MaskError::Write(error),
            })?;
        flushed?;
        let truncated = end == End::Within;
        let frames = written.counts.masked + other_links + no_interface;
        Ok(Counts { frames, other_links, no_interface, truncated, ..written.counts })
    }

    /// Masks batches with several workers.
    fn share(
        &self,
        batches: Batches,
        input: impl Read + Send,
        writer: &mut Writer<impl Write + Send>,
        workers: usize,
    ) -> Result<(End, Skipped), Stopped> {
        let (done, finished) = sync_channel::<Batch>(WAITING * workers);
        thread::scope(|scope| {
            let mut to_workers = Vec::new();
            for _ in 0..workers {
                let (give, take) = sync_channel::<Batch>(WAITING);
                let done = done.clone();
                let worker = Worker::new(self);
                scope.spawn(move || work(worker, &take, &done));
                to_workers.push(give);
            }
            drop(done);
            let writer = scope.spawn(move || writer.write_all(&finished));
            let read = batches.read(input, |batch| {
                // A worker that is gone has been left by the writer, which says why.
                let number = batch.number as usize % to_workers.len();
                let gone = |_| Stopped::Write(io::Error::other("a worker ended"));
                to_workers[number].send(batch).map_err(gone)?;
                Ok(Batch::default())
            });
            drop(to_workers);
            let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            written.map_err(Stopped::Write)?;
            read
        })
    }
}

/// Why reading stopped.
enum Stopped {
    Read(ReadError),
    Write(io::Error),
}

impl From<ReadError> for Stopped {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

fn work(mut worker: Worker<'_>, batches: &Receiver<Batch>, done: &SyncSender<Batch>) {
    for mut batch in batches {
        worker.mask(&mut batch);
        if done.send(batch).is_err() {
            return;
        }
    }
}

/// Writes batches and counts what is in them.
struct Writer<'a, W> {
    out: &'a mut W,
    counts: Counts,
}

impl<W: Write> Writer<'_, W> {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        self.out.write_all(&batch.result)?;
        self.counts.masked += batch.frames.len() as u64;
        self.counts.bytes_in += batch.bytes.len() as u64;
        self.counts.bytes_out += batch.bytes_out;
        Ok(())
    }

    /// Writes them in the order of their numbers.
    fn write_all(&mut self, batches: &Receiver<Batch>) -> io::Result<()> {
        let (mut early, mut next) = (BTreeMap::new(), 0);
        for batch in batches {
            early.insert(batch.number, batch);
            while let Some(batch) = early.remove(&next) {
                self.write(&batch)?;
                next += 1;
            }
        }
        Ok(())
    }
}
