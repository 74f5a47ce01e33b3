//! A running `ping`, and which of its requests were answered, when, and from how far away.
//!
//! In an anycast network the TTL of a reply tells which site it came from, as long as the sites are
//! at different distances: each answers with TTL 64.

use crate::{Error, Namespace, Process};
use nix::sys::signal::Signal;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reply {
    /// When it was received.
    pub at: SystemTime,
    /// Which request it answers, from 1.
    pub sequence: u64,
    /// TTL or hop limit with which it arrived.
    pub ttl: u8,
}

/// A running `ping`; killed when dropped.
#[derive(Debug)]
pub struct Pings {
    process: Process,
}

impl Pings {
    /// Begins to ping an address; the first 65,535 requests can be told apart.
    ///
    /// # Errors
    ///
    /// When ping is not installed.
    pub fn start(from: &Namespace, to: &str, interval: Duration) -> Result<Self, Error> {
        let interval = interval.as_secs_f64().to_string();
        let process = from.spawn(&["ping", "-n", "-D", "-i", &interval, to])?;
        Ok(Self { process })
    }

    /// The replies so far.
    pub fn replies(&self) -> Vec<Reply> {
        self.process.stdout().lines().filter_map(parse).collect()
    }

    /// The last reply so far.
    pub fn last(&self) -> Option<Reply> {
        self.process.stdout().lines().rev().find_map(parse)
    }

    /// Ends it and returns all replies.
    ///
    /// # Errors
    ///
    /// When ping had ended by itself, or does not end.
    pub fn finish(self) -> Result<Vec<Reply>, Error> {
        self.process.signal(Signal::SIGINT)?;
        let finished = self.process.finish(Duration::from_secs(5))?;
        Ok(finished.stdout.lines().filter_map(parse).collect())
    }
}

/// How many requests before the last answered one were not answered.
pub fn lost(replies: &[Reply]) -> u64 {
    let mut answered: Vec<u64> = replies.iter().map(|reply| reply.sequence).collect();
    answered.sort_unstable();
    answered.dedup();
    answered.last().copied().unwrap_or(0) - answered.len() as u64
}

/// Reads `[1700000000.123456] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=61 time=0.123 ms`.
fn parse(line: &str) -> Option<Reply> {
    let (stamp, rest) = line.strip_prefix('[')?.split_once(']')?;
    if !rest.contains(" bytes from ") {
        return None;
    }
    let at = UNIX_EPOCH + Duration::try_from_secs_f64(stamp.parse().ok()?).ok()?;
    let value = |name: &str| rest.split(' ').find_map(|word| word.strip_prefix(name));
    Some(Reply {
        at,
        sequence: value("icmp_seq=")?.parse().ok()?,
        ttl: value("ttl=")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_and_nothing_else() {
        let reply = parse("[7.5] 64 bytes from 192.0.2.1: icmp_seq=3 ttl=61 time=0.1 ms").unwrap();
        let at = UNIX_EPOCH + Duration::from_millis(7500);
        assert_eq!(reply, Reply { at, sequence: 3, ttl: 61 });
        assert_eq!(parse("[7.5] From 192.0.2.9 icmp_seq=4 Destination Net Unreachable"), None);
        assert_eq!(parse("PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."), None);
    }

    #[test]
    fn what_is_missing_before_the_last_is_lost() {
        let reply = |sequence| Reply { at: UNIX_EPOCH, sequence, ttl: 64 };
        assert_eq!(lost(&[]), 0);
        assert_eq!(lost(&[reply(1), reply(2)]), 0);
        assert_eq!(lost(&[reply(2), reply(5), reply(5), reply(4)]), 2);
    }
}
