//! The counts of an engine.

use std::time::Duration;

use hdrhistogram::Histogram;

/// An empty histogram of round-trip times: 1 nanosecond to 100 seconds, three digits.
pub fn histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, 100_000_000_000, 3) {
        Ok(histogram) => histogram,
        // The only errors are bounds that contradict each other, and these do not.
        Err(error) => unreachable!("constant bounds: {error}"),
    }
}

/// The replies.
#[derive(Clone, Debug)]
pub struct Replies {
    /// Requests to which an undamaged reply came.
    pub received: u64,
    /// Replies beyond the first to a request.
    pub duplicated: u64,
    /// Received replies that came after one to a later request.
    pub reordered: u64,
    /// Replies with a wrong checksum or payload.
    pub corrupt: u64,
    /// Round-trip times in nanoseconds.
    pub rtt: Histogram<u64>,
    /// Received replies by the second in which the request was sent.
    pub by_second: Vec<u64>,
}

/// The requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that were made.
    pub made: u64,
    /// Requests that the kernel or the driver accepted.
    pub sent: u64,
    /// Requests by the second in which they were sent.
    pub by_second: Vec<u64>,
    /// Time from the first request to the last.
    pub span: Duration,
    /// The kernel's last error for refused requests.
    pub refusal: Option<String>,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The requests.
    pub requests: Requests,
    /// The replies.
    pub replies: Replies,
    /// Replies that came but were dropped here, as the receive buffer was full.
    pub overruns: u64,
    /// Sent requests that the interface then dropped.
    pub interface_drops: u64,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
}

impl Outcome {
    /// Requests that were sent and to which no reply came, damaged or not.
    pub fn lost(&self) -> u64 {
        self.requests.sent.saturating_sub(self.replies.received + self.replies.corrupt)
    }

    /// Packets a second while sending; 0 where that means nothing.
    pub fn rate(&self) -> f64 {
        // `n` packets have `n - 1` intervals between them.
        let intervals = self.requests.made.saturating_sub(1) as f64;
        let span = self.requests.span.as_secs_f64();
        if span > 0.0 { intervals / span } else { 0.0 }
    }

    /// Whether a rate was kept: the last request was late by one in a thousand of the run at the
    /// most, or by a late wake-up.
    pub fn kept(&self, rate: u64) -> bool {
        let right = self.requests.made.saturating_sub(1) as f64 / rate as f64;
        self.requests.span.as_secs_f64() <= right * 1.001 + WAKE_UP.as_secs_f64()
    }
}

/// How late a thread may wake up on a busy machine.
const WAKE_UP: Duration = Duration::from_millis(5);
