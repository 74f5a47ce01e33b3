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
    config: ArchiveConfig,
    pass: Pass,
    /// When the next step is due of making hours and days.
    retain: Instant,
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
            config,
            pass: Pass::default(),
            retain: Instant::now(),
        }
    }

    /// Writes until the queue is closed and what was in it is written, or cannot be.
    pub(super) fn run(mut self, queue: &Queue) {
        let mut failed = false;
        loop {
            panics::point("archive");
            let until = if failed { Instant::now() + PAUSE } else { self.retain };
            let open = queue.take(&mut self.batch, until, failed);
            let count = self.batch.len();
            failed = !self.write();
            if failed {
                queue.fail();
                if let Some(left) = queue.give_up() {
                    self.counters.not_written(count + left);
                    return;
                }
                continue;
            }
            queue.settle(count);
            if !open {
                return;
            }
            if Instant::now() >= self.retain {
                self.retain();
            }
        }
    }

    /// Writes the batch; false when it must wait.
    fn write(&mut self) -> bool {
        if self.batch.is_empty() {
            return true;
        }
        let database = match &mut self.database {
            Some(database) => database,
            None => match database::open_or_begin(&self.path, &self.counters) {
                Ok(database) => self.database.insert(database),
                Err(error) => {
                    self.counters.error(error.to_string());
                    return false;
                }
            },
        };
        let Err(error) = database.insert(&self.batch) else {
            self.counters.written(self.batch.len());
            self.batch.clear();
            self.counters.well();
            if let Some(wake) = &self.wake {
                wake.notify_one();
            }
            return true;
        };
        match self.meet(&error) {
            Failure::Damaged | Failure::Later => false,
            Failure::Refused => {
                tracing::error!(%error, records = self.batch.len(), "the archive refuses records");
                self.counters.refused(self.batch.len());
                self.batch.clear();
                true
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
        let now_ns = unix_ns().cast_signed();
        let Some(database) = &mut self.database else { return };
        match retain::step(database, &mut self.pass, &self.config, now_ns) {
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
