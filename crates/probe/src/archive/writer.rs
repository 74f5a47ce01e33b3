//! The thread that writes.

use super::{
    database::{self, Database, Trouble},
    status::Counters,
};
use crate::record::Record;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::{Duration, Instant},
};

/// What comes within this time is one transaction: the disk is asked once a second.
const GATHER: Duration = Duration::from_secs(1);
/// Most records of a transaction.
const BATCH: usize = 2000;
/// How long the disk is left alone after it refused.
const PAUSE: Duration = Duration::from_secs(1);

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Message {
    /// To be kept.
    Record(Box<Record>),
    /// Say when all that came before is written, or that it is not.
    Flush(SyncSender<bool>),
}

/// The writer: owns the database.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    /// None while a new one cannot be begun in the place of a damaged one.
    database: Option<Database>,
    counters: Arc<Counters>,
    /// Taken from the queue and not yet written.
    batch: Vec<Record>,
}

impl Writer {
    pub(super) fn new(path: PathBuf, database: Database, counters: Arc<Counters>) -> Self {
        Self { path, database: Some(database), counters, batch: Vec::new() }
    }

    /// Writes until nobody can send any more.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        loop {
            let (asked, open) = self.gather(messages);
            let written = self.write();
            if let Some(asked) = asked {
                // Who asked may have given up.
                let _ = asked.send(written);
            }
            if !open {
                self.counters.not_written(self.batch.len());
                return;
            }
            if !written {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Fills the batch from the queue: until it is full, a second has passed since its first record, or
    /// somebody asks for it to be written. Says who asked, and whether there may be more.
    fn gather(&mut self, messages: &Receiver<Message>) -> (Option<SyncSender<bool>>, bool) {
        let mut until = (!self.batch.is_empty()).then(Instant::now);
        while self.batch.len() < BATCH {
            let message = match until {
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => {
                    messages.recv_timeout(until.saturating_duration_since(Instant::now()))
                }
            };
            match message {
                Ok(Message::Record(record)) => self.batch.push(*record),
                Ok(Message::Flush(asked)) => return (Some(asked), true),
                Err(RecvTimeoutError::Timeout) => return (None, true),
                Err(RecvTimeoutError::Disconnected) => return (None, false),
            }
            until.get_or_insert_with(|| Instant::now() + GATHER);
        }
        (None, true)
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
                    self.counters.trouble(error.to_string());
                    return false;
                }
            },
        };
        let Err(error) = database.insert(&self.batch) else {
            self.counters.written(self.batch.len());
            self.batch.clear();
            self.counters.well();
            return true;
        };
        match database::trouble(&error) {
            Trouble::Damaged => {
                self.database = None;
                match database::set_aside(&self.path, &error.to_string(), &self.counters) {
                    Ok(()) => {}
                    Err(error) => self.counters.trouble(error.to_string()),
                }
                false
            }
            Trouble::Later => {
                self.counters.trouble(error.to_string());
                false
            }
            Trouble::Refused => {
                tracing::error!(%error, records = self.batch.len(), "the archive refuses records");
                self.counters.refused(self.batch.len());
                self.batch.clear();
                true
            }
        }
    }
}
