//! How stations agree with each other.
//!
//! ```text
//! station that measures                              station at the other end
//!   peer ── TLS 1.3, both sides proven ─────────────▶ server
//!        hello, then delay / throughput / renew / end   │
//!        one JSON object a line each way                ▼
//!                                                     desk ── permission, book of leases ──▶ act
//! ```
//!
//! Nothing is sent to a station before it has agreed. What is agreed is a lease with an end: when the end
//! has come, or the connection over which it was agreed is gone, the other side stops by itself, so that
//! no station sends to one that was switched off. [`desk`] is the whole of what a station answers as a
//! value without sockets and clocks; [`message`] is what is said, [`book`] the leases; [`server`] and
//! [`peer`] move the lines; [`tls`] is who is who.

pub mod book;
pub mod desk;
pub mod message;
pub mod peer;
mod places;
pub mod server;
pub mod tls;

pub use book::{Book, Lease};
pub use desk::{Act, Desk, Guest};
pub use message::{Answer, Reason, Request};
pub use peer::{Asker, Peer, PeerError};
pub use server::{Acts, Host};
pub use tls::Tls;
