//! The progress of a transfer for people, and its counters for programs.

use super::{CommandError, ShowArgs};
use crate::{ConnectionState, Counters, PsockStream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    time::{Duration, Instant},
};

/// Time between two looks at the counters.
const LOOK: Duration = Duration::from_millis(200);

/// The progress of one transfer.
pub(super) struct Progress {
    bar: ProgressBar,
    begin: Instant,
    looked: Instant,
    /// Bytes so far.
    pub(super) bytes: u64,
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Report<'a> {
    bytes: u64,
    seconds: f64,
    #[serde(flatten)]
    counters: &'a Counters,
}

impl Progress {
    /// Begins; `length` is known where a file is sent.
    pub(super) fn new(show: &ShowArgs, length: Option<u64>) -> Self {
        let target = match !show.quiet && io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr_with_hz(5),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(length, target);
        let template = match length {
            Some(_) => {
                "{bar:24} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left {msg}"
            }
            None => "{spinner} {bytes}, {binary_bytes_per_sec} {msg}",
        };
        // A template that cannot be read would be noticed by the first test; the default serves too.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(LOOK);
        Self { bar, begin: Instant::now(), looked: Instant::now(), bytes: 0 }
    }

    /// So many more bytes have gone through.
    pub(super) fn add(&mut self, bytes: usize, stream: &PsockStream) {
        self.bytes += bytes as u64;
        self.bar.set_position(self.bytes);
        if !self.bar.is_hidden() && self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.bar.set_message(paths(&stream.counters()));
        }
    }

    /// Ends, and prints the counters if they are wanted; `on_stdout`: the stream went there.
    pub(super) fn finish(
        self,
        show: &ShowArgs,
        on_stdout: bool,
        counters: &Counters,
    ) -> Result<(), CommandError> {
        self.bar.finish_and_clear();
        if !show.json {
            return Ok(());
        }
        let seconds = self.begin.elapsed().as_secs_f64();
        let report = Report { bytes: self.bytes, seconds, counters };
        let text = serde_json::to_string(&report).map_err(io::Error::from)? + "\n";
        let (written, file) = match on_stdout {
            true => (io::stderr().write_all(text.as_bytes()), "stderr"),
            false => (io::stdout().write_all(text.as_bytes()), "stdout"),
        };
        written.map_err(|source| CommandError::Write { file: PathBuf::from(file), source })
    }
}

/// How many of the connections work.
fn paths(counters: &Counters) -> String {
    let all = &counters.connections;
    let open = all.iter().filter(|one| one.state == ConnectionState::Open).count();
    format!("over {open} of {} connections", all.len())
}
