//! Content that is there as a whole, and is read as fast as clamd takes it.

use super::{
    Queue, Report, STACK, Scanner,
    clamd::{Failure, ScanResult, Stream},
};
use std::{
    io::Read,
    sync::{Arc, PoisonError, atomic::Ordering, mpsc},
    thread::Builder,
};

/// Bytes that are read at once.
const SLICE: usize = 1 << 17;

/// What is to be scanned, and the number of its job.
pub(super) type Whole = (u64, Box<dyn Read + Send>);

impl Scanner {
    /// Scans content that is all there, one after the other; the report has the job's number.
    ///
    /// # Errors
    ///
    /// When a thread was needed and cannot be started.
    pub fn whole(&self, job: u64, content: Box<dyn Read + Send>) -> std::io::Result<()> {
        let mut wholes = self.wholes.lock().unwrap_or_else(PoisonError::into_inner);
        let unsent = match &*wholes {
            Some(wholes) => wholes.send((job, content)).err().map(|unsent| unsent.0),
            None => Some((job, content)),
        };
        if let Some(whole) = unsent {
            let (sender, receiver) = mpsc::channel();
            let queue = Arc::clone(&self.queue);
            let thread = Builder::new().name("gate-scan-files".into()).stack_size(STACK);
            thread.spawn(panics::inherit(move || queue.wholes(&receiver)))?;
            // The thread has the other end.
            let _ = sender.send(whole);
            *wholes = Some(sender);
        }
        Ok(())
    }
}

impl Queue {
    fn wholes(&self, wholes: &mpsc::Receiver<Whole>) {
        while let Ok((job, mut content)) = wholes.recv() {
            panics::point("gate-scan-files");
            if self.closed() {
                return;
            }
            let mut bytes = 0;
            let verdict = self.scan(&mut content, &mut bytes).unwrap_or_else(|verdict| verdict);
            self.count(&verdict);
            (self.deliver)(Report { job, bytes, pause: None, verdict });
        }
    }

    fn scan(&self, content: &mut dyn Read, sent: &mut u64) -> Result<ScanResult, ScanResult> {
        let failed = |failure| ScanResult::Failed(failure);
        let mut stream = Stream::begin(&self.config).map_err(failed)?;
        let mut slice = vec![0; SLICE];
        loop {
            let read = content.read(&mut slice).map_err(|error| failed(Failure::from(error)))?;
            if read == 0 {
                return Ok(stream.end());
            }
            *sent += read as u64;
            if *sent > self.config.max_size.0 {
                return Err(failed(Failure::TooLarge));
            }
            stream.send(slice.get(..read).unwrap_or_default())?;
            self.counters.bytes.fetch_add(read as u64, Ordering::Relaxed);
        }
    }
}
