//! What the ALTO server has done, exactly: every connection and every request is counted once.

use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A connection: the limit of open connections is reached.
    Connections,
    /// A connection: the limit of its source is reached.
    Source,
    /// A connection: the TLS handshake did not complete in time.
    Handshake,
    /// A request: its body is too large.
    Body,
    /// A request: its head or body did not arrive, or its answer was not taken, in time.
    Slow,
    /// A connection, stream or view, ended because its source had the most when another needed one, or memory.
    Evicted,
    /// A request: there is no memory for it or its answer, in all or of its source.
    Memory,
    /// An update stream: the limit is reached, in all or of its source.
    Streams,
    /// A control request: there is no such stream (any more).
    Control,
    /// A view: the limit is reached, in all or of its source.
    Views,
    /// A stream or view: the limit of followed resources is reached, in all or of its source.
    Followed,
    /// A request for a future update: the limit of waiting requests is reached, in all or of its source.
    Polls,
    /// A connection: no certificate, or none of the configured authority.
    Certificate,
    /// A request without credentials. The answer shows the client how to authenticate.
    Anonymous,
    /// A request whose credentials are malformed or of another scheme.
    Credentials,
    /// A request: no such user, or another password.
    Password,
    /// A request: the user's proof is for another resource.
    Uri,
    /// A request: the server's nonce is too old or another server's.
    Nonce,
    /// A request: its nonce count was used before.
    Replay,
}

impl Refusal {
    /// All of them, in order.
    pub const ALL: [Refusal; 19] = [
        Refusal::Connections,
        Refusal::Source,
        Refusal::Handshake,
        Refusal::Body,
        Refusal::Slow,
        Refusal::Evicted,
        Refusal::Memory,
        Refusal::Streams,
        Refusal::Control,
        Refusal::Views,
        Refusal::Followed,
        Refusal::Polls,
        Refusal::Certificate,
        Refusal::Anonymous,
        Refusal::Credentials,
        Refusal::Password,
        Refusal::Uri,
        Refusal::Nonce,
        Refusal::Replay,
    ];

    /// The reason's name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Connections => "connections",
            Refusal::Source => "source",
            Refusal::Handshake => "handshake",
            Refusal::Body => "body",
            Refusal::Slow => "slow",
            Refusal::Evicted => "evicted",
            Refusal::Memory => "memory",
            Refusal::Streams => "streams",
            Refusal::Control => "control",
            Refusal::Views => "views",
            Refusal::Followed => "followed",
            Refusal::Polls => "polls",
            Refusal::Certificate => "certificate",
            Refusal::Anonymous => "anonymous",
            Refusal::Credentials => "credentials",
            Refusal::Password => "password",
            Refusal::Uri => "uri",
            Refusal::Nonce => "nonce",
            Refusal::Replay => "replay",
        }
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// One more.
    pub fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less.
    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one server.
#[derive(Debug, Default)]
pub struct Counters {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    refused: [AtomicU64; Refusal::ALL.len()],
    connections: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    events: AtomicU64,
    /// Connections open.
    pub(super) open: Gauge,
    /// Update streams open.
    pub(super) streams: Gauge,
    /// Requests that wait for an update.
    pub(super) polls: Gauge,
}

impl Counters {
    /// A request has been answered. `resource` is an identity of the directory or a fixed name, never the
    /// client's text.
    pub(super) fn answered(&self, resource: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        match requests.get_mut(&(resource.to_owned(), status)) {
            Some(count) => *count += 1,
            None => {
                requests.insert((resource.to_owned(), status), 1);
            }
        }
    }

    pub(super) fn refuse(&self, reason: Refusal) {
        if let Some(count) = self.refused.get(reason as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn event(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them at this moment.
    pub fn figures(&self) -> Figures {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |((resource, status), count): (&(String, u16), &u64)| Requests {
            resource: resource.clone(),
            status: *status,
            count: *count,
        };
        let refused = Refusal::ALL.into_iter().zip(&self.refused);
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Figures {
            requests: requests.iter().map(row).collect(),
            refused: refused.map(|(reason, count)| (reason.name(), read(count))).collect(),
            connections: read(&self.connections),
            connections_open: self.open.get(),
            bytes_in: read(&self.bytes_in),
            bytes_out: read(&self.bytes_out),
            streams_open: self.streams.get(),
            events: read(&self.events),
            polls_open: self.polls.get(),
            memory_bytes: 0,
        }
    }
}

/// How often a resource was answered with a status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Identity of the resource, or `directory`, `control`, `view`, `none`.
    pub resource: String,
    /// HTTP status.
    pub status: u16,
    /// How often.
    pub count: u64,
}

/// The counters at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Requests by resource and status.
    pub requests: Vec<Requests>,
    /// What was refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Connections accepted since the start.
    pub connections: u64,
    /// Connections open.
    pub connections_open: u64,
    /// Bytes received, after decryption.
    pub bytes_in: u64,
    /// Bytes sent, before encryption.
    pub bytes_out: u64,
    /// Update streams open.
    pub streams_open: u64,
    /// Events of update streams begun.
    pub events: u64,
    /// Requests that wait for an update of a view.
    pub polls_open: u64,
    /// Bytes of requests and answers in memory; the server knows them.
    pub memory_bytes: u64,
}
