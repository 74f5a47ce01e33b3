//! Log lines on stderr, or in systemd's journal with fields. Nothing is logged for a packet or for an HTTP
//! request, so an unknown peer cannot fill the disk; configuration values are never logged, so no secret is.

use crate::cli::LogFormat;
use nix::sys::stat::fstat;
use std::io;
use tracing_subscriber::{
    EnvFilter, layer::SubscriberExt, registry::Registry, util::SubscriberInitExt,
};

/// The variable by which systemd says that a stream is the journal's: its device and inode (systemd.exec(5)).
const JOURNAL: &str = "JOURNAL_STREAM";

/// Logging does not start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log filter is not valid.
    #[error(
        "--log {text}: {source}; use error, warn, info, debug, trace or directives such as info,echo=debug"
    )]
    Filter {
        /// The filter.
        text: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// There is no journal.
    #[error("--log-format journald: the journal does not answer: {0}; use text or json")]
    Journal(io::Error),
}

/// Starts logging, once in a process. Without a format it goes to the journal where stderr does, else it is text.
///
/// # Errors
///
/// See [`LogError`].
pub fn start(filter: &str, format: Option<LogFormat>) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|source| LogError::Filter { text: filter.to_owned(), source })?;
    let journal = std::env::var(JOURNAL).is_ok_and(|stream| is_stderr(&stream));
    let format = format.unwrap_or(if journal { LogFormat::Journald } else { LogFormat::Text });
    let ansi = io::IsTerminal::is_terminal(&io::stderr());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(ansi)
        .log_internal_errors(false);
    let registry = Registry::default().with(filter);
    // A second start in one process (tests) keeps the first.
    let _ = match format {
        LogFormat::Text => registry.with(lines.with_target(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
        LogFormat::Journald => {
            let journal = tracing_journald::layer().map_err(LogError::Journal)?;
            registry.with(journal.with_field_prefix(Some("NIGH".into()))).try_init()
        }
    };
    Ok(())
}

/// Whether stderr is this `DEVICE:INODE`.
fn is_stderr(stream: &str) -> bool {
    fstat(io::stderr()).is_ok_and(|stderr| stream == format!("{}:{}", stderr.st_dev, stderr.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_is_known_by_its_device_and_inode() {
        let stderr = fstat(io::stderr()).unwrap();
        assert!(is_stderr(&format!("{}:{}", stderr.st_dev, stderr.st_ino)));
        assert!(!is_stderr(&format!("{}:{}", stderr.st_dev, stderr.st_ino + 1)));
        assert!(!is_stderr(""));
    }
}
