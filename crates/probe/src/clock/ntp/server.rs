//! What is known of an NTP server from asking it again and again: the client's part of RFC 5905 that
//! measures and sets nothing.
//!
//! A pure core: [`Server::ask`] gives the request, [`Server::receive`] takes the answer.

use super::packet::{self, LOCAL, Reply, ReplyError, Timestamp, reference_name};
use crate::{
    interval::{Interval, MaximumError, drift_ns},
    record,
};

/// The interval doubles with every RATE up to so many times the configured one.
const MOST_BACK_OFF: u32 = 5;

/// A server that was not set for so long follows nobody: two of the longest intervals between polls
/// (RFC 5905, section 7.2: MAXPOLL is 2^17 s, but daemons poll at 2^10 s at most unless configured otherwise).
const HOLDOVER_NS: u64 = 2 * 1024 * 1_000_000_000;

/// How a server wants to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manners {
    /// At each interval times two to this power.
    Slower(u32),
    /// Not any more, for this reason.
    Never([u8; 4]),
}

/// A server that is watched.
#[derive(Clone, Debug)]
pub struct Server {
    /// The last eight polls, the latest in the lowest bit (RFC 5905, section 9.2, `reach`).
    reach: u8,
    manners: Manners,
    /// Polls to skip until the next.
    skip: u32,
    waiting: Option<Waiting>,
    last: Option<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    sent_ns: i64,
}

/// What one answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The server's clock less this station's (RFC 5905, section 8), and where the true difference of both
    /// lies: half the delay on either side.
    pub offset: Interval,
    /// Time of the round trip in the network.
    pub delay_ns: i64,
    /// The server's clock is at most so far from true time, by what it says; `None`: it promises nothing.
    pub error: MaximumError,
    /// What it reported.
    pub reply: Reply,
    /// How long ago it was set when it answered.
    pub since_update_ns: u64,
}

impl Default for Server {
    fn default() -> Self {
        Self { reach: 0, manners: Manners::Slower(0), skip: 0, waiting: None, last: None }
    }
}

impl Server {
    /// The request to send now; `None` when the server wants to be left alone. What was not answered
    /// before is not waited for any more.
    pub fn ask(&mut self, now_ns: i64, number: u64) -> Option<[u8; packet::LENGTH]> {
        let Manners::Slower(power) = self.manners else { return None };
        if let Some(skip) = self.skip.checked_sub(1) {
            self.skip = skip;
            return None;
        }
        self.skip = (1 << power) - 1;
        self.reach <<= 1;
        self.waiting = Some(Waiting { number, sent_ns: now_ns });
        Some(packet::request(number))
    }

    /// Takes what came.
    ///
    /// # Errors
    ///
    /// It is no answer to the request.
    pub fn receive(&mut self, bytes: &[u8], now_ns: i64) -> Result<Sample, ReplyError> {
        // After an answer nothing more of it is awaited, so a copy is refused.
        let Some(waiting) = self.waiting else { return Err(ReplyError::Origin) };
        let reply = Reply::parse(bytes, waiting.number);
        if let Err(ReplyError::Kiss(code)) = &reply {
            self.kissed(*code);
        }
        let reply = reply?;
        self.waiting = None;
        self.reach |= 1;
        let sample = sample(reply, waiting.sent_ns, now_ns);
        self.last = Some(sample);
        Ok(sample)
    }

    /// RFC 5905, section 7.4: DENY and RSTR end the asking, RATE makes it slower.
    fn kissed(&mut self, code: [u8; 4]) {
        self.waiting = None;
        match (&code, self.manners) {
            (b"DENY" | b"RSTR", _) => self.manners = Manners::Never(code),
            (b"RATE", Manners::Slower(power)) => {
                let power = (power + 1).min(MOST_BACK_OFF);
                (self.manners, self.skip) = (Manners::Slower(power), (1 << power) - 1);
            }
            _ => {}
        }
    }

    /// Why it is not asked any more, in one sentence.
    pub fn refusal(&self) -> Option<String> {
        match self.manners {
            Manners::Never(code) => {
                Some(format!("it refuses queries (kiss-o'-death {})", code.escape_ascii()))
            }
            Manners::Slower(_) => None,
        }
    }

    /// The last answer, if it is among the last eight polls.
    pub fn last(&self) -> Option<&Sample> {
        self.last.as_ref().filter(|_| self.reach != 0)
    }

    /// What is known, for the record.
    pub fn state(&self) -> record::Clock {
        let clock =
            record::Clock { source: "ntp".into(), reach: Some(self.reach), ..Default::default() };
        let Some(sample) = self.last() else { return clock };
        let reply = &sample.reply;
        let known = sample.error.nanoseconds.is_some();
        record::Clock {
            offset_ns: Some(sample.offset.estimate_ns),
            estimated_error_ns: sample.offset.width_ns().map(|width| width.div_ceil(2)),
            maximum_error_ns: sample.error.nanoseconds,
            stratum: known.then_some(reply.stratum),
            reference: known.then(|| reference_name(reply.reference, reply.stratum)),
            since_update_seconds: known.then_some(sample.since_update_ns as f64 / 1e9),
            holdover: known && sample.since_update_ns > HOLDOVER_NS,
            ..clock
        }
    }
}

/// RFC 5905, section 8, with T1 and T4 of this station's clock and T2 and T3 of the server's.
fn sample(reply: Reply, sent_ns: i64, came_ns: i64) -> Sample {
    let (t1, t4) = (Timestamp::from_unix_ns(sent_ns), Timestamp::from_unix_ns(came_ns));
    let (forward, reverse) = (reply.received.since(t1), reply.sent.since(t4));
    let delay_ns = t4.since(t1).saturating_sub(reply.sent.since(reply.received));
    let middle = forward / 2 + reverse / 2;
    // The clocks' rates while the answer was in progress, the precision of the server's, and roundings.
    let rates = drift_ns(t4.since(t1).max(0).unsigned_abs()).saturating_mul(2);
    let precision = precision_ns(reply.precision);
    let half = delay_ns.max(0).unsigned_abs().div_ceil(2) + rates + precision + 4;
    let since_update_ns = reply.sent.since(reply.set).max(0).unsigned_abs();
    // RFC 5905, figure 9 and section 7.3: such a clock follows nothing.
    let set = reply.leap != 3 && reply.stratum < packet::UNSYNCHRONISED && reply.set.0 != 0;
    // Nor does one that gives itself as its reference (chrony's `local`, ntpd's undisciplined clock).
    let synchronised = set && ![LOCAL, *b"LOCL"].contains(&reply.reference);
    let error = if synchronised {
        MaximumError::known(reply.root_delay_ns.div_ceil(2) + reply.root_dispersion_ns + precision)
    } else {
        MaximumError::UNKNOWN
    };
    Sample {
        offset: Interval::within(middle, MaximumError::known(half)),
        delay_ns,
        error,
        reply,
        since_update_ns,
    }
}

/// Two to this power, in nanoseconds, rounded up; a clock coarser than a second is not believed finer.
fn precision_ns(power: i8) -> u64 {
    (f64::from(power.clamp(-32, 30)).exp2() * 1e9).ceil() as u64
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
