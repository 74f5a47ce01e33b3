//! Random early detection (RED): Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", 1993, section IV, with the gentle variant of 2000 and marking by RFC 3168, section 7.
//!
//! The mean is of the queue that packets find on arrival, the one that is being sent not counted. While
//! the transmitter is idle the mean falls as if packets of [`MEAN_PACKET`] bytes had come one after the
//! other and found nothing. Bytes do not weigh in the chance (RFC 7141, section 4.4): a short packet is
//! dropped as likely as a long one.

use super::codel::Verdict;
use crate::{Nanos, settings::Red};

/// Bytes of the packets by which an idle queue's mean falls; the value that tc-red's examples have.
const MEAN_PACKET: u64 = 1_000;

/// What a packet finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// How much waits, in the unit of the queue's limit.
    pub(super) size: u64,
    /// For how long the transmitter has been idle, if it is.
    pub(super) idle: Option<Nanos>,
    /// Bits a second.
    pub(super) rate: u64,
    /// Whether the packet may be marked instead of dropped.
    pub(super) ect: bool,
}

/// The state of the paper's figure 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Average {
    average: f64,
    /// Packets since the last that was dropped or marked, while the mean is above the minimum.
    count: Option<u32>,
}

impl Average {
    /// Of a queue that was never used.
    pub(super) fn new() -> Self {
        Self { average: 0.0, count: None }
    }

    /// Judges a packet; `random` is any number, each as likely.
    pub(super) fn judge(&mut self, red: &Red, found: Found, random: u32) -> Verdict {
        let weight = red.weight.as_f64();
        match found.idle {
            Some(idle) => {
                let a_packet = (MEAN_PACKET * 8_000_000_000 / found.rate.max(1)).max(1);
                self.average *= power(1.0 - weight, idle.0 / a_packet);
            }
            None => self.average += weight * (found.size as f64 - self.average),
        }
        let (min, max) = (f64::from(red.min), f64::from(red.max));
        let last = if red.gentle { 2.0 * max } else { max };
        if self.average < min {
            self.count = None;
            return Verdict::Pass;
        }
        if self.average >= last {
            self.count = Some(0);
            return Verdict::Drop;
        }
        let most = red.probability.as_f64();
        let chance = if self.average < max {
            most * (self.average - min) / (max - min)
        } else {
            most + (1.0 - most) * (self.average - max) / max
        };
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        self.count = Some(count);
        // Spreads drops evenly: the chance rises with the packets that passed (section VII).
        let left = 1.0 - f64::from(count) * chance;
        if left > 0.0 && f64::from(random) / 4_294_967_296.0 >= chance / left {
            return Verdict::Pass;
        }
        self.count = Some(0);
        if red.ecn && found.ect && self.average < max { Verdict::Mark } else { Verdict::Drop }
    }
}

/// `base` to a whole power, the same on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 && product > 0.0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}
