//! What is counted: of a session and each of its paths, and of a listener.

use serde::Serialize;

/// What one end of a session has counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// In all.
    pub session: SessionCounters,
    /// Each data connection's slot, in the order of paths: a slot keeps its counters when the
    /// connection dies and another takes it.
    pub connections: Vec<ConnectionCounters>,
}

/// Of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionCounters {
    /// The driver's name.
    pub driver: String,
    /// Bytes of this end's stream that the application has given.
    pub bytes_given: u64,
    /// Bytes of the peer's stream that the application's socket has taken.
    pub bytes_delivered: u64,
    /// Whether the control connection works.
    pub control: ConnectionState,
    /// Times that the control connection was made again.
    pub control_recoveries: u64,
}

/// Of one data connection's slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionCounters {
    /// The path, as [`crate::Path`] is written; at the accepting end the two addresses.
    pub path: String,
    /// The connection's number on its path, from 0.
    pub number: u16,
    /// Whether it works now.
    pub state: ConnectionState,
    /// Bytes of the stream sent, those sent again too.
    pub bytes_sent: u64,
    /// Blocks sent, those sent again too.
    pub blocks_sent: u64,
    /// Of those, blocks that had been sent before.
    pub blocks_retransmitted: u64,
    /// Bytes of the stream that the peer has from here.
    pub bytes_acknowledged: u64,
    /// Bytes of the stream received, duplicates too.
    pub bytes_received: u64,
    /// Blocks received, duplicates too.
    pub blocks_received: u64,
    /// Of those, blocks that had come before.
    pub blocks_duplicate: u64,
    /// Smoothed round trip, as the kernel says.
    pub srtt_ns: u64,
    /// Bytes a second that arrived at the peer recently, as the kernel says.
    pub rate: u64,
    /// Connections lost in this slot.
    pub failures: u64,
    /// Times that a new connection took over this slot.
    pub recoveries: u64,
}

/// Whether a connection works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionState {
    /// It has not worked yet.
    #[default]
    Connecting,
    /// It works.
    Open,
    /// It has worked and does not any more.
    Dead,
}

/// What a listener has counted: each connection is counted once when it is accepted and once by
/// its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListenerCounters {
    /// Connections accepted.
    pub accepted: u64,
    /// They opened a session.
    pub opened: u64,
    /// They joined a session.
    pub joined: u64,
    /// Refused: too many handshakes at once.
    pub refused_handshakes: u64,
    /// Refused: too many sessions, or connections of one.
    pub refused_limit: u64,
    /// Refused: no new sessions are taken.
    pub refused_stopping: u64,
    /// Refused: a join of a session that is not there.
    pub refused_session: u64,
    /// Refused: a join without knowledge of the session's secret.
    pub refused_proof: u64,
    /// Refused: a wrong key or certificate, or no TLS at all.
    pub refused_tls: u64,
    /// Refused: not of the protocol, or of another version.
    pub refused_protocol: u64,
    /// Given up: the handshake took too long.
    pub refused_slow: u64,
    /// Given up: the connection ended in the handshake.
    pub broken: u64,
}
