//! The audit log: what passed the gate, what was refused, and plain-text chat.
//!
//! Records go through a [`Sender`], which never waits: if the queue is full the record is counted as
//! lost, and the log reports it. One thread writes lines in the form of
//! Suricata's EVE, sets full files aside and deletes old ones. A disk that refuses is tried again each
//! second; what came meanwhile is counted as lost and the log says so when it goes on. Flows can also
//! go out as IPFIX, into files and to a collector.

mod config;
mod eve;
mod ipfix;
mod log;
mod mapping;
mod record;
mod retention;
mod secret;
mod status;
#[cfg(test)]
mod tests;
mod writer;

pub use config::{Addresses, Config, Kind, MappingName};
pub use ipfix::Config as IpfixConfig;
pub use mapping::Mapping;
pub use record::{
    ActionTaken, Anomaly, AnomalyKind, AuditAction, Cause, ChatSeen, End, FileSeen, Finding,
    FlowEnd, Record, Refusal, Scanned, Subject, Traffic,
};
pub use status::{Ipfix, Lost, Status};

use self::{mapping::Mask, status::Counters, writer::Writer};
use std::{
    borrow::Cow,
    io,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
};

/// The log cannot be begun.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its folder or file.
    #[error("cannot write the audit log in {}: {source}; give a folder in [gate.audit] that the daemon may write", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its thread.
    #[error("cannot start the audit's thread: {0}")]
    Thread(io::Error),
}

/// What the thread is sent.
#[derive(Debug)]
enum Order {
    Write(Box<Record>),
    /// Answers when all that came before is written, or lost.
    Flush(SyncSender<()>),
    Stop,
}

/// Gives records to the log; never waits.
#[derive(Clone, Debug)]
pub struct Sender {
    queue: SyncSender<Order>,
    counters: Arc<Counters>,
    mask: Mask,
}

impl Sender {
    /// Text as the log would write it: with other addresses, if it maps them.
    pub fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.mask.text(text)
    }

    /// Gives a record; one that there is no room for is counted as lost.
    pub fn send(&self, record: Record) {
        Counters::add(&self.counters.received, 1);
        match self.queue.try_send(Order::Write(Box::new(record))) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => Counters::add(&self.counters.queue_full, 1),
            Err(TrySendError::Disconnected(_)) => Counters::add(&self.counters.not_written, 1),
        }
    }

    /// The ledger of now.
    pub fn status(&self) -> Status {
        self.counters.status()
    }
}

/// The running log. When it is dropped, what waits is written first.
#[derive(Debug)]
pub struct Audit {
    sender: Sender,
    thread: Option<JoinHandle<()>>,
}

impl Audit {
    /// Begins the log; `mapping` gives the addresses that are written instead of those seen.
    pub fn start(config: Config, mapping: Option<Arc<dyn Mapping>>) -> Result<Self, StartError> {
        let folder = config.folder.clone();
        let queue = config.queue;
        let counters = Arc::new(Counters::default());
        let mask = Mask::new(mapping);
        let writer = Writer::open(config, mask.clone(), Arc::clone(&counters))
            .map_err(|source| StartError::Folder { folder, source })?;
        let (queue, orders) = sync_channel(queue);
        let thread = panics::thread("gate-audit", move || writer.run(&orders))
            .map_err(StartError::Thread)?;
        Ok(Self { sender: Sender { queue, counters, mask }, thread: Some(thread) })
    }

    /// What records are given to.
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// The ledger of now.
    pub fn status(&self) -> Status {
        self.sender.status()
    }

    /// Waits until all that was given so far is in the files, or lost.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.sender.queue.send(Order::Flush(done)).is_ok() {
            // An error is the end of the thread, which wrote all before.
            let _ = wait.recv();
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        // Senders may live on: what they give from now on is counted as lost.
        let _ = self.sender.queue.send(Order::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the audit's thread ended too early");
        }
    }
}
