//! A link as stations measured it: what a measuring feature reports to one that knows the network.

use crate::value::RouterId;
use std::time::Duration;

/// What was measured of one direction of a link, over some time.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredLink {
    /// The router where packets enter it.
    pub from: RouterId,
    /// The router where they leave it.
    pub to: RouterId,
    /// The median (p50) of the delay; `None` when no packet arrived, or its bounds are not known.
    pub latency: Option<MeasuredLatency>,
    /// Share of packets lost, from 0 to 1; `None` when none was sent.
    pub loss: Option<f64>,
    /// How many packets were sent.
    pub packets: u64,
    /// How long this may be taken for so, when nothing newer comes.
    pub holds: Duration,
}

/// A delay with its bounds, in nanoseconds. One whose bounds are not known is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredLatency {
    /// The best estimate.
    pub estimate_ns: u64,
    /// The true value is not below this.
    pub low_ns: u64,
    /// The true value is not above this.
    pub high_ns: u64,
}

impl MeasuredLatency {
    /// How wide the interval is.
    pub fn width_ns(&self) -> u64 {
        self.high_ns.saturating_sub(self.low_ns)
    }
}
