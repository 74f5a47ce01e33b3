//! The Proxidor protocol: messages as bytes and as values, and what a server answers.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-----------------------+-+-------+-+-+-+-------+-------+
//! |Version|       Servcode        |Q| Opcode|A|4|6|  Zero | Rcode |
//! +-------+-----------------------+-+-------+-+-+-+-------+-------+
//! |                        Identification                         |
//! +-------------------------------+---------------+---------------+
//! |              TTL              |  Service cat. |  Auth. type   |
//! +-------------------------------+---------------+---------------+
//! | if A: 8 bytes of authentication                               |
//! | if 4: an IPv4 address and a prefix length (5 bytes)           |
//! | if 6: an IPv6 address and a prefix length (17 bytes)          |
//! +---------------+-+---+---------+-------------------------------+
//! |     Type      |N|AL |   AT    |             Size              |  a TLV; N: another follows
//! +---------------+-+---+---------+-------------------------------+
//! | attribute of 0, 4, 8 or 16 bytes, then candidates of one type |
//! +---------------------------------------------------------------+
//! ```
//!
//! [`header`] is the first twelve bytes, [`tlv`] the lists, [`message`] a whole request or reply,
//! [`auth`] the tag, [`server`] what is answered: none of these panics on any bytes. [`udp`] and [`xdp`]
//! are the transports: sockets and pinned threads, and the XDP program in the driver.

pub mod auth;
pub mod header;
pub mod message;
pub mod server;
pub mod tlv;
pub mod udp;
pub mod xdp;

pub use auth::Key;
pub use header::{Header, Rcode};
pub use message::{Query, Reply, Request};
pub use server::{Authentication, Outcome, Reason, Server, Settings};
pub use tlv::Kind;

/// The UDP port where nothing else is configured.
pub const PORT: u16 = 8899;
/// Bytes of the longest request: header, block, both sources and one list of 363 IPv4 addresses.
pub const MAX_REQUEST: usize = 1498;
/// Bytes of the longest reply to candidates of several types; a longer one is cut.
pub const MAX_MIXED_REPLY: usize = 1472;
/// How long a ranking holds where nothing else is configured, in seconds.
pub const DEFAULT_TTL: u16 = 60;
/// How many metrics the service code can name.
pub const MAX_METRICS: usize = 12;
