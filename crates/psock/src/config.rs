//! What a program chooses: paths, security, driver, memory and times.
//!
//! There is no default for [`Security`]: whoever makes a [`Config`] names it. Everything else has a
//! default that serves, and is a public field.

use crate::{
    DriverName, Path,
    core::{RECORD_BLOCK, frame::MAX_BLOCK},
    security::Security,
};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The choices of one end of a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// The paths of a connecting end; a listener has its addresses instead.
    pub paths: Vec<Path>,
    /// Whether a connecting end also makes paths to those addresses of the listener that the listener
    /// announces and `paths` does not have.
    pub follow_announced: bool,
    /// How every connection is protected.
    pub security: Security,
    /// How blocks are spread over the connections. The connecting end's choice holds for both.
    pub driver: DriverName,
    /// Data connections on each path.
    pub connections_per_path: u16,
    /// The congestion control of this end's connections, such as `bbr`; the system's without.
    pub congestion: Option<String>,
    /// Bytes that this end takes before the application has read them: its reorder memory.
    pub window_bytes: usize,
    /// Bytes that this end keeps until the peer has acknowledged them.
    pub send_bytes: usize,
    /// Bytes of the stream in one block, at most; without a change a block with its head is one TLS
    /// record.
    pub block_bytes: usize,
    /// For how long a session that has had a path lives on without any; with 0 it ends with its last one.
    pub survive: Duration,
    /// For how long connecting may take until the first path has answered, and each path that joins.
    pub connect_timeout: Duration,
    /// For how long a path may be silent, while it owes an answer, before it counts as dead.
    pub path_timeout: Duration,
    /// What a listener allows to unknown peers; of a connecting end that follows announced addresses, how many
    /// connections it makes.
    pub limits: Limits,
}

impl Config {
    /// The defaults, with the one choice that has none.
    pub fn new(security: Security) -> Self {
        Self {
            paths: Vec::new(),
            follow_announced: false,
            security,
            driver: DriverName::Adaptive,
            connections_per_path: 1,
            congestion: None,
            window_bytes: 32 << 20,
            send_bytes: 32 << 20,
            block_bytes: RECORD_BLOCK,
            survive: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            path_timeout: Duration::from_secs(3),
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// What cannot be used, if anything.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.paths.len() > usize::from(u16::MAX) {
            return Err("there are too many paths");
        }
        if self.connect_timeout.is_zero() || self.path_timeout < Duration::from_millis(1) {
            return Err("connect_timeout is 0 or path_timeout is less than a millisecond");
        }
        // The kernel counts its milliseconds in 31 bits.
        if self.path_timeout > 24 * DAY {
            return Err("path_timeout is more than 24 days");
        }
        let times = [self.connect_timeout, self.survive, self.limits.handshake_time];
        if times.iter().any(|&time| time > 366 * DAY) {
            return Err("connect_timeout, survive or handshake_time is more than a year");
        }
        if self.connections_per_path == 0 {
            return Err("connections_per_path is 0");
        }
        if self.window_bytes == 0 || self.send_bytes == 0 {
            return Err("window_bytes or send_bytes is 0");
        }
        if !(1..=MAX_BLOCK).contains(&self.block_bytes) {
            return Err("block_bytes is not between 1 and 65536");
        }
        Ok(())
    }
}

/// What a listener allows; what is beyond is refused and counted ([`crate::ListenerCounters`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections whose handshake has not ended.
    pub handshakes: usize,
    /// Of those, connections from one source: an IPv4 address or an IPv6 /64.
    pub handshakes_per_source: usize,
    /// How long a handshake may take.
    pub handshake_time: Duration,
    /// Sessions at once.
    pub sessions: usize,
    /// Of those, sessions from one source.
    pub sessions_per_source: usize,
    /// Data connections of one session.
    pub connections: usize,
    /// Sessions that wait to be accepted.
    pub backlog: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshakes: 256,
            handshakes_per_source: 64,
            handshake_time: Duration::from_secs(10),
            sessions: 1024,
            sessions_per_source: 256,
            connections: 64,
            backlog: 128,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_bounded() {
        let config = Config::new(Security::Plain);
        assert_eq!(config.check(), Ok(()));
        for time in [Duration::MAX, 25 * DAY] {
            assert!(Config { path_timeout: time, ..config.clone() }.check().is_err());
        }
        for time in [Duration::MAX, 367 * DAY] {
            assert!(Config { connect_timeout: time, ..config.clone() }.check().is_err());
            assert!(Config { survive: time, ..config.clone() }.check().is_err());
        }
        let (path_timeout, survive) = (24 * DAY, 366 * DAY);
        assert_eq!(Config { path_timeout, survive, ..config }.check(), Ok(()));
    }
}
