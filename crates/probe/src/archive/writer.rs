//! The thread that writes.

use super::{
    config::ArchiveConfig,
    database::{self, Database, Failure},
    queue::Queue,
    retain::{self, Pass, Step},
    status::Counters,
};
use crate::record::Record;
use datapath::clock::unix_ns;
use std::{
    mem,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// What comes within this time is one transaction: the disk is asked once a second.
pub(super) const GATHER: Duration = Duration::from_secs(1);
/// Most records of a transaction.
pub(super) const BATCH: usize = 2000;
/// How long the disk is left alone after it refused.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is seen to that what is old goes.
const RETAIN: Duration = Duration::from_secs(600);

/// The writer: owns the database.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    /// None while a new one cannot be begun in the place of a damaged one.
    database: Option<Database>,
    counters: Arc<Counters>,
    /// Notified of new records.
    wake: Option<Arc<Notify>>,
    /// Taken from the queue and not yet written.
    batch: Vec<Record>,
    /// How many of them go into the next transaction: fewer where the database has refused some of them.
    most: usize,
    config: ArchiveConfig,
    pass: Pass,
    /// When the next step is due of making hours and days, and when it was asked last what is old.
    retain: Instant,
    looked: Instant,
}

impl Writer {
    pub(super) fn new(
        path: PathBuf,
        config: ArchiveConfig,
        database: Database,
        counters: Arc<Counters>,
        wake: Option<Arc<Notify>>,
    ) -> Self {
        Self {
            path,
            database: Some(database),
            counters,
            wake,
            batch: Vec::new(),
            most: BATCH,
            config,
            pass: Pass::default(),
            retain: Instant::now(),
            looked: Instant::now(),
        }
    }

    /// Writes until the queue is closed and what was in it is written, or cannot be.
    pub(super) fn run(mut self, queue: &Queue) {
        let mut failed = false;
        loop {
            panics::point("archive");
            let until = if failed { Instant::now() + PAUSE } else { self.retain };
            let open = queue.take(&mut self.batch, until, failed);
            failed = !self.write_all(queue);
            if failed {
                queue.fail();
                if let Some(left) = queue.give_up() {
                    self.counters.not_written(self.batch.len() + left);
                    return;
                }
                continue;
            }
            if !open {
                return;
            }
            if Instant::now() >= self.retain {
                self.retain();
            }
        }
    }

    /// Writes the batch; false when what is left of it must wait.
    fn write_all(&mut self, queue: &Queue) -> bool {
        while !self.batch.is_empty() {
            match self.write() {
                Some(settled) => queue.settle(settled),
                None => return false,
            }
        }
        true
    }

    /// Writes as many records as a transaction may have, and returns how many are no longer its business: they are
    /// written, or a single one is refused. None when they must wait.
    fn write(&mut self) -> Option<usize> {
        let database = match &mut self.database {
            Some(database) => database,
            None => match database::open_or_begin(&self.path, &self.counters) {
                Ok(database) => self.database.insert(database),
                Err(error) => {
                    self.counters.error(error.to_string());
                    return None;
                }
            },
        };
        let count = self.batch.len().min(self.most);
        let Err(error) = database.insert(self.batch.get(..count).unwrap_or_default()) else {
            self.counters.written(count);
            self.batch.drain(..count);
            self.most = (2 * self.most).min(BATCH);
            self.counters.well();
            if let Some(wake) = &self.wake {
                wake.notify_one();
            }
            return Some(count);
        };
        match self.meet(&error) {
            Failure::Damaged | Failure::Later => None,
            Failure::Refused if count > 1 => {
                // One of them is the reason; the others are written without it.
                self.most = count / 2;
                Some(0)
            }
            Failure::Refused => {
                tracing::error!(%error, "the archive refuses a record");
                self.counters.refused(1);
                self.batch.drain(..1);
                Some(1)
            }
        }
    }

    /// What an error means; a damaged database is set aside.
    fn meet(&mut self, error: &rusqlite::Error) -> Failure {
        let failure = database::failure(error);
        match failure {
            Failure::Damaged => {
                self.database = None;
                let aside = database::set_aside(&self.path, &error.to_string(), &self.counters);
                if let Err(error) = aside {
                    self.counters.error(error.to_string());
                }
            }
            Failure::Later => self.counters.error(error.to_string()),
            Failure::Refused => {}
        }
        failure
    }

    /// A step of making hours and days of what is old.
    fn retain(&mut self) {
        let Some(database) = &mut self.database else { return };
        let clock_ns = unix_ns().cast_signed();
        let elapsed = mem::replace(&mut self.looked, Instant::now()).elapsed();
        let step = retain::now(database, clock_ns, elapsed)
            .and_then(|now_ns| retain::step(database, &mut self.pass, &self.config, now_ns));
        match step {
            Ok(Step::More) => {}
            Ok(Step::Done) => self.retain = Instant::now() + RETAIN,
            Err(error) => {
                self.retain = Instant::now() + RETAIN;
                if self.meet(&error) == Failure::Refused {
                    tracing::error!(%error, "the archive cannot aggregate records to hours and days");
                }
            }
        }
    }
}
