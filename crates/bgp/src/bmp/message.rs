//! The messages of BMP, taken off a stream (RFC 7854 section 4.1).
//!
//! Each begins with a version (3), a length of four octets that counts from the version on, and a type.

use std::fmt;

/// Length of the common header.
pub const HEADER: usize = 6;

/// The version that is spoken (RFC 7854 section 4.1).
pub const VERSION: u8 = 3;

/// Types of message (RFC 7854 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Routes of one peer, as an UPDATE.
    RouteMonitoring,
    /// Counters of the router.
    Statistics,
    /// A peer's session is over.
    PeerDown,
    /// A peer's session is up.
    PeerUp,
    /// Who the router is.
    Initiation,
    /// The router ends the session.
    Termination,
    /// Messages as they came from a peer.
    Mirroring,
    /// An unknown type: skipped.
    Unknown(u8),
}

impl From<u8> for Kind {
    fn from(code: u8) -> Self {
        match code {
            0 => Self::RouteMonitoring,
            1 => Self::Statistics,
            2 => Self::PeerDown,
            3 => Self::PeerUp,
            4 => Self::Initiation,
            5 => Self::Termination,
            6 => Self::Mirroring,
            _ => Self::Unknown(code),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RouteMonitoring => f.write_str("Route Monitoring"),
            Self::Statistics => f.write_str("Statistics Report"),
            Self::PeerDown => f.write_str("Peer Down"),
            Self::PeerUp => f.write_str("Peer Up"),
            Self::Initiation => f.write_str("Initiation"),
            Self::Termination => f.write_str("Termination"),
            Self::Mirroring => f.write_str("Route Mirroring"),
            Self::Unknown(code) => write!(f, "type {code}"),
        }
    }
}

/// The stream is no BMP that can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Another version, or no BMP at all.
    #[error("version {0} where BMP version 3 is expected (RFC 7854 section 4.1)")]
    Version(u8),
    /// Shorter than its own header.
    #[error("a message of {0} bytes is shorter than its header")]
    Short(u32),
    /// Longer than is taken.
    #[error("a message of {length} bytes is longer than the {limit} that are taken")]
    Long {
        /// The length it claims.
        length: u32,
        /// The longest that is taken.
        limit: usize,
    },
}

/// Takes the first message off `buffer`: its type and what is behind its header of [`HEADER`] bytes.
///
/// Returns `None` while it is not complete; a header is judged as soon as it is there.
///
/// # Errors
/// The stream cannot be followed.
pub fn split(buffer: &[u8], limit: usize) -> Result<Option<(Kind, &[u8])>, FrameError> {
    if let Some(&version) = buffer.first()
        && version != VERSION
    {
        return Err(FrameError::Version(version));
    }
    let Some((&[_, a, b, c, d, code], _)) = buffer.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]);
    let total = usize::try_from(length).unwrap_or(usize::MAX);
    if total < HEADER {
        return Err(FrameError::Short(length));
    }
    if total > limit {
        return Err(FrameError::Long { length, limit });
    }
    Ok(buffer.get(HEADER..total).map(|body| (Kind::from(code), body)))
}
