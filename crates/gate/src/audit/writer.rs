//! The thread that writes.

use super::{
    Order,
    config::{Config, Kind},
    eve::Eve,
    ipfix::Exporter,
    log::{Limits, Log},
    mapping::Mask,
    record::{Finding, Record, Scanned},
    retention::Retention,
    status::Counters,
};

use std::{
    io,
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::{Duration, Instant, SystemTime},
};

/// What comes within this time is written at once.
const GATHER: Duration = Duration::from_secs(1);
/// A batch of this many bytes is written at once.
const BATCH_BYTES: usize = 256 << 10;
/// How often it is looked whether files are full or old.
const LOOK: Duration = Duration::from_secs(60);
/// How long a disk is left alone after it refused.
const PAUSE: Duration = Duration::from_secs(1);

/// Owns the files.
#[derive(Debug)]
pub(super) struct Writer {
    config: Config,
    retention: Retention,
    counters: Arc<Counters>,
    eve: Eve,
    lines: Log,
    ipfix: Option<Exporter>,
    /// Lines that are not yet in the file, and how many records they are.
    batch: Vec<u8>,
    records: u64,
    /// Lost records that the log has reported.
    reported: u64,
    synced: Instant,
    looked: Instant,
    /// When the disk refused last.
    refused: Option<Instant>,
}

impl Writer {
    /// Opens the files once, so that errors of the folder are reported at the start.
    pub(super) fn open(config: Config, mask: Mask, counters: Arc<Counters>) -> io::Result<Self> {
        let limits = Limits { bytes: config.rotate_size.0, age: config.rotate_after };
        Log::prepare(&config.folder)?;
        let mut lines = Log::new(&config.folder, "eve", "json", limits);
        lines.open_lines(SystemTime::now())?;
        let ipfix = config.ipfix.as_ref().map(|ipfix| {
            Exporter::open(ipfix, &config.folder, limits, mask.clone(), Arc::clone(&counters))
        });
        let ipfix = ipfix.transpose()?;
        let eve = Eve::new(mask, rand::random(), config.chat_text);
        let now = Instant::now();
        let retention = Retention::new(&config.folder, config.keep, config.total_size.0);
        let mut writer = Self {
            config,
            retention,
            counters,
            eve,
            lines,
            ipfix,
            batch: Vec::new(),
            records: 0,
            reported: 0,
            synced: now,
            looked: now,
            refused: None,
        };
        writer.look()?;
        Ok(writer)
    }

    /// Writes until it is stopped or all senders are dropped.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        let mut since = Instant::now();
        loop {
            panics::point("gate-audit");
            let wait = GATHER.saturating_sub(since.elapsed());
            match orders.recv_timeout(wait) {
                Ok(Order::Write(record)) => {
                    self.take(&record);
                    if self.batch.len() < BATCH_BYTES && since.elapsed() < GATHER {
                        continue;
                    }
                }
                Ok(Order::Flush(done)) => {
                    self.settle(true);
                    answer(&done);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    // Senders may have been faster than the request to stop.
                    while let Ok(order) = orders.try_recv() {
                        match order {
                            Order::Write(record) => self.take(&record),
                            Order::Flush(done) => answer(&done),
                            Order::Stop => {}
                        }
                    }
                    self.settle(true);
                    return;
                }
            }
            self.settle(false);
            since = Instant::now();
        }
    }

    /// Makes lines of a record.
    fn take(&mut self, record: &Record) {
        if let (Some(ipfix), Record::Flow(flow)) = (&mut self.ipfix, record) {
            ipfix.push(flow, self.eve.flow_id(&flow.subject));
        }
        if !kinds(record).iter().any(|kind| self.config.record.contains(kind)) {
            Counters::add(&self.counters.skipped, 1);
            return;
        }
        match self.eve.write(record, &mut self.batch) {
            Ok(()) => self.records += 1,
            Err(error) => {
                tracing::error!(%error, "a record cannot be written as JSON");
                Counters::add(&self.counters.not_written, 1);
            }
        }
    }

    /// Writes what was gathered; `sync` also has the disk hold it.
    fn settle(&mut self, sync: bool) {
        let now = SystemTime::now();
        let flows = self.ipfix.as_mut().map_or(Ok(()), |it| it.flush(now));
        if self.refused.is_some_and(|at| at.elapsed() < PAUSE) && !sync {
            return self.lose();
        }
        let lines = self.write(sync, now);
        if lines.is_err() {
            self.lose();
        }
        self.refused = lines.is_err().then(Instant::now);
        let folder = self.config.folder.display();
        match lines.and(flows) {
            Ok(()) => {
                if self.counters.set_error(None) {
                    tracing::info!("the audit log in {folder} is written again");
                }
            }
            Err(error) => {
                let text = format!("the audit log in {folder} cannot be written: {error}");
                if self.counters.set_error(Some(text.clone())) {
                    tracing::error!("{text}");
                }
            }
        }
    }

    /// Gives up what was gathered.
    fn lose(&mut self) {
        Counters::add(&self.counters.not_written, self.records);
        self.records = 0;
        self.batch.clear();
    }

    fn write(&mut self, sync: bool, now: SystemTime) -> io::Result<()> {
        let lost = self.counters.queue_full.load(Relaxed) + self.counters.not_written.load(Relaxed);
        if lost > self.reported {
            let reason = "the queue was full or the disk failed";
            Eve::write_loss(now, lost - self.reported, reason, &mut self.batch)?;
        }
        if !self.batch.is_empty() {
            self.lines.open_lines(now)?;
            self.lines.write(&self.batch)?;
            Counters::add(&self.counters.written, self.records);
            self.reported = lost;
            self.records = 0;
            self.batch.clear();
        }
        if sync || self.synced.elapsed() >= self.config.sync {
            self.lines.sync()?;
            self.ipfix.as_mut().map_or(Ok(()), Exporter::sync)?;
            self.synced = Instant::now();
        }
        // A file that is full goes at once, one that is old within a minute.
        let full = self.lines.rotate(now)?;
        if full {
            self.lines.open_lines(now)?;
        }
        self.ipfix.as_mut().map_or(Ok(()), |it| it.rotate(now))?;
        if full || self.looked.elapsed() >= LOOK {
            self.look()?;
        }
        Ok(())
    }

    /// Deletes what is old, or too much.
    fn look(&mut self) -> io::Result<()> {
        self.looked = Instant::now();
        let (mut files, mut open) = (Vec::new(), 0);
        let flows = self.ipfix.as_ref().and_then(Exporter::log);
        for log in [Some(&self.lines), flows].into_iter().flatten() {
            files.extend(log.aside()?);
            open += log.bytes();
        }
        let deleted = self.retention.delete(files, open, SystemTime::now())?;
        Counters::add(&self.counters.files_deleted, deleted as u64);
        Ok(())
    }
}

/// Somebody may have stopped waiting.
fn answer(done: &SyncSender<()>) {
    let _ = done.try_send(());
}

/// The kinds of a record, as the configuration names them.
const fn kinds(record: &Record) -> &'static [Kind] {
    match record {
        Record::Flow(_) => &[Kind::Flows],
        Record::File(_) => &[Kind::Files],
        Record::Chat(_) => &[Kind::Chat],
        Record::Refusal(_) => &[Kind::Refusals],
        // No other record says that the file was refused.
        Record::Scan(Scanned { finding: Finding::Found(_), .. }) => &[Kind::Scans, Kind::Refusals],
        Record::Scan(_) => &[Kind::Scans],
        Record::Anomaly(_) => &[Kind::Anomalies],
    }
}
