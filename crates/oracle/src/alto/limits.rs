//! Limits of the ALTO server.

use config::Size;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// One address may use this part of what has no limit for one address of its own.
const SHARE: usize = 8;

/// What one address may use of `most`, at least 1.
pub(super) fn share(most: usize) -> usize {
    most.div_ceil(SHARE)
}

/// Limits of connections, requests, streams and views. The defaults suit a few hundred trackers and caches. One
/// address (IPv6: one /64) gets an eighth of `memory`, `followed`, `versions_size`, `views` and `polls`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Most connections at once.
    #[schemars(range(min = 1))]
    pub connections: usize,
    /// Most connections at once from one address (IPv6: one /64).
    #[schemars(range(min = 1))]
    pub connections_per_source: usize,
    /// Most requests at once on one HTTP/2 connection.
    #[schemars(range(min = 1))]
    pub requests_per_connection: u32,
    /// Largest head of a request.
    pub head: Size,
    /// Largest body of a request.
    pub body: Size,
    /// Memory for bodies of requests and for answers, until these are sent.
    pub memory: Size,
    /// Timeout of a handshake, of a request's head and body, of a client that does not take its answer, and of an
    /// idle connection.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub timeout: Duration,
    /// Most update streams at once (RFC 8895 section 10.1).
    pub streams: usize,
    /// Most update streams at once from one address.
    pub streams_per_source: usize,
    /// Most substreams of one stream at once.
    pub substreams: usize,
    /// Most substreams of one stream over its life.
    pub substreams_ever: usize,
    /// Most different questions with input (such as filtered maps) that streams and views follow at once.
    pub followed: usize,
    /// Most versions that are kept of each followed resource.
    #[schemars(range(min = 1))]
    pub versions: usize,
    /// Memory for the versions that are kept of all followed resources. The last version of each is always kept.
    pub versions_size: Size,
    /// Most TIPS views at once (RFC 9569 section 9.1).
    pub views: usize,
    /// How long an idle TIPS view is kept.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub view_idle: Duration,
    /// Most requests that wait for the next update of a TIPS view at once.
    pub polls: usize,
    /// Interval of keep-alive comments on a quiet stream (RFC 8895 section 6.8).
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub keep_alive: Duration,
}

impl Limits {
    /// The keys whose values are zero, which would answer no request, or too small to work.
    pub fn problems(&self) -> Vec<(&'static str, &'static str)> {
        let counts = [
            ("connections", self.connections),
            ("connections_per_source", self.connections_per_source),
            ("requests_per_connection", self.requests_per_connection as usize),
            ("body", self.body.0 as usize),
            ("memory", self.memory.0 as usize),
            ("versions", self.versions),
            ("versions_size", self.versions_size.0 as usize),
        ];
        let times = [
            ("timeout", self.timeout),
            ("view_idle", self.view_idle),
            ("keep_alive", self.keep_alive),
        ];
        let mut problems = Vec::new();
        problems.extend(
            counts
                .iter()
                .filter(|(_, count)| *count == 0)
                .map(|(key, _)| (*key, "must be at least 1")),
        );
        problems.extend(
            times
                .iter()
                .filter(|(_, time)| *time < Duration::from_millis(10))
                .map(|(key, _)| (*key, "must be at least 10ms")),
        );
        if self.head < Size(1024) {
            problems.push(("head", "must be at least 1KiB"));
        }
        problems
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 512,
            connections_per_source: 64,
            requests_per_connection: 64,
            head: Size(16 << 10),
            body: Size(1 << 20),
            memory: Size(512 << 20),
            timeout: Duration::from_secs(20),
            streams: 128,
            streams_per_source: 16,
            substreams: 32,
            substreams_ever: 1024,
            followed: 256,
            versions: 64,
            versions_size: Size(512 << 20),
            views: 128,
            view_idle: Duration::from_secs(600),
            polls: 256,
            keep_alive: Duration::from_secs(15),
        }
    }
}
