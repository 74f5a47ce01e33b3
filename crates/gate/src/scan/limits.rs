//! What clamd says of archives that go beyond its limits: by default that they are clean, with
//! `AlertExceedsMax yes` in clamd.conf that a limit was exceeded (clamd.conf(5)). It does not tell its
//! settings, so it is given such an archive.

use super::{
    Queue,
    clamd::{Failure, ScanResult, Stream},
    config::Config,
};
use flate2::{Compression, write::GzEncoder};
use std::{
    io::Write,
    sync::{Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

/// Archives within each other, more than `MaxRecursion` can be set to (100).
const DEPTH: usize = 120;
/// How long after an attempt that failed the next is made.
const AGAIN: Duration = Duration::from_secs(30);
/// How long after an answer it is asked again.
const OFTEN: Duration = Duration::from_secs(600);
/// How often it is looked whether the scanner is still there.
const LOOK: Duration = Duration::from_millis(500);

/// What the operator is told where it does not.
pub const WARNING: &str =
    "clamd calls archives clean that go beyond its limits: set AlertExceedsMax yes in clamd.conf";

/// Whether clamd tells that an archive goes beyond its limits.
///
/// # Errors
/// When clamd is unavailable or too slow.
pub(super) fn alerts(config: &Config) -> Result<bool, Failure> {
    let archive = nested(DEPTH)?;
    let mut stream = Stream::begin(config)?;
    let verdict = match stream.send(&archive) {
        Ok(()) => stream.end(),
        Err(verdict) => verdict,
    };
    match verdict {
        ScanResult::Clean => Ok(false),
        ScanResult::Failed(Failure::Limit(_)) => Ok(true),
        ScanResult::Failed(failure) => Err(failure),
        ScanResult::Found(what) => Err(Failure::Refused(format!("{what} in a test of its limits"))),
    }
}

/// So many gzip files, each in the next.
fn nested(depth: usize) -> std::io::Result<Vec<u8>> {
    let mut content = b"a test of the scanner's limits\n".to_vec();
    for _ in 0..depth {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&content)?;
        content = packed.finish()?;
    }
    Ok(content)
}

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Limits(Mutex<Option<bool>>);

impl Limits {
    pub(super) fn alert(&self) -> Option<bool> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, alerts: bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.replace(alerts) != Some(alerts) && !alerts {
            tracing::warn!("{WARNING}");
        }
    }
}

/// Asks now and then, as clamd may be started with other settings, until the scanner is gone.
pub(super) fn ask(queue: &Weak<Queue>) {
    let mut next = Instant::now();
    while let Some(queue) = queue.upgrade().filter(|queue| !queue.closed()) {
        if Instant::now() >= next {
            let wait = match alerts(&queue.config) {
                Ok(alerts) => {
                    queue.limits.set(alerts);
                    OFTEN
                }
                Err(error) => {
                    tracing::debug!(%error, "clamd's limits are not known");
                    AGAIN
                }
            };
            next = Instant::now() + wait;
        }
        drop(queue);
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_beyond_all_limits_is_small() {
        let archive = nested(DEPTH).unwrap();
        assert!(archive.len() < 8192, "{}", archive.len());
        let mut content = archive;
        for _ in 0..DEPTH {
            let mut inner = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*content), &mut inner)
                .unwrap();
            content = inner;
        }
        assert!(content.starts_with(b"a test"));
    }
}
