//! Log lines on stderr. Nothing is logged for a packet or for an HTTP request, so an unknown peer cannot
//! fill the disk; configuration values are never logged, so no secret is.

use crate::cli::LogFormat;
use tracing_subscriber::EnvFilter;

/// The log filter is not valid.
#[derive(Debug, thiserror::Error)]
#[error(
    "--log {text}: {source}; use error, warn, info, debug, trace or directives such as info,echo=debug"
)]
pub struct LogError {
    text: String,
    source: tracing_subscriber::filter::ParseError,
}

/// Starts logging, once in a process.
///
/// # Errors
///
/// `filter` does not parse.
pub fn start(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|source| LogError { text: filter.to_owned(), source })?;
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(ansi)
        .log_internal_errors(false)
        .with_env_filter(filter);
    // A second start in one process (tests) keeps the first.
    let _ = match format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}
