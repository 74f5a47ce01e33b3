//! A transfer from `left` to `right`, and its figures.

use crate::{
    Failure,
    child::{BIN, CHILD, Report, Task, Transport},
    scenes::{Stage, limit},
};
use std::time::Duration;
use testbed::{Process, wait_until};

/// A running transfer.
pub(crate) struct Transfer {
    left: Process,
    right: Process,
    limit: Duration,
}

/// A transfer that has ended as it should: every byte is at its offset.
pub(crate) struct Done {
    pub(crate) sent: Report,
    pub(crate) received: Report,
}

/// How much is sent.
#[derive(Clone, Copy)]
pub(crate) enum Length {
    /// As much as goes in so many seconds.
    Seconds(f64),
    /// So many bytes, with a hash of them made by both ends, in at most about so many seconds.
    Bytes(u64, f64),
}

impl Transfer {
    /// Starts both ends. `paths` are numbers from 1.
    pub(crate) fn start(
        stage: &Stage,
        transport: &Transport,
        paths: &[usize],
        port: u16,
        length: Length,
    ) -> Result<Self, Failure> {
        let (bytes, seconds, most) = match length {
            Length::Seconds(seconds) => (None, Some(seconds), seconds),
            Length::Bytes(bytes, most) => (Some(bytes), None, most),
        };
        let task = |send| Task {
            send,
            transport: transport.clone(),
            paths: paths.to_vec(),
            port,
            bytes,
            seconds,
            hash: bytes.is_some(),
        };
        let program = std::env::current_exe()?;
        let program = program.to_str().ok_or("this program's path is not text")?;
        let start = |side, send| -> Result<Process, Failure> {
            let task = serde_json::to_string(&task(send))?;
            Ok(stage.lab.spawn(side, &[program, CHILD, &task])?)
        };
        let mut right = start("right", false)?;
        wait_until("the receiving end", limit(0.0), || {
            right.stdout().contains("listening") || right.ended().is_some()
        })?;
        Ok(Self { left: start("left", true)?, right, limit: limit(most) })
    }

    /// Waits until the receiving application has read so many bytes, to the next 100 million.
    pub(crate) fn wait_read(&self, bytes: u64) -> Result<(), Failure> {
        wait_until("bytes at the receiving end", self.limit, || {
            let text = self.right.stdout();
            let last = text.lines().filter_map(|line| line.strip_suffix(" bytes")).next_back();
            last.and_then(|read| read.parse::<u64>().ok()).is_some_and(|read| read >= bytes)
        })?;
        Ok(())
    }

    /// Waits for the end.
    pub(crate) fn finish(self) -> Result<Done, Failure> {
        let report = |process: Process| -> Result<Report, Failure> {
            let finished = process.finish(self.limit)?;
            match finished.stdout.lines().last().filter(|_| finished.success()) {
                Some(line) => Ok(serde_json::from_str(line)?),
                None => Err(format!("an end failed: {}", finished.stderr).into()),
            }
        };
        let done = Done { sent: report(self.left)?, received: report(self.right)? };
        let (sent, received) = (&done.sent, &done.received);
        if let Some(offset) = received.wrong {
            return Err(format!("the byte at {offset} is not what was sent").into());
        }
        if sent.bytes != received.bytes || sent.hash != received.hash {
            let text = format!("{} bytes were sent and {} came", sent.bytes, received.bytes);
            return Err(text.into());
        }
        Ok(done)
    }
}

impl Done {
    /// Mbit/s that the receiving application read between two times in seconds since its first byte.
    pub(crate) fn megabits(&self, from: f64, to: f64) -> f64 {
        let through = &self.received.through;
        let at = |time: f64| match (time / BIN).round() as usize {
            0 => 0,
            bins => through.get(bins - 1).or(through.last()).copied().unwrap_or_default(),
        };
        (at(to) - at(from)) as f64 * 8.0 / 1e6 / (to - from)
    }

    /// The longest time without bytes for the receiving application that ended between two times of the
    /// clock of all processes, in seconds.
    pub(crate) fn longest_pause(&self, after: f64, before: f64) -> f64 {
        let pauses = self.received.pauses.iter();
        let ended = pauses.filter(|(begin, length)| (after..before).contains(&(begin + length)));
        ended.map(|pause| pause.1).fold(0.0, f64::max)
    }
}
