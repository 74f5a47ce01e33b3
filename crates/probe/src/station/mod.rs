//! How stations ask each other for tests.
//!
//! ```text
//! station that measures                              station at the other end
//!   peer ── TLS 1.3, both sides proven ─────────────▶ server
//!        hello, then delay / throughput / renew / end   │
//!        one JSON object a line in each direction                ▼
//!                                                     admission ── permission, reservations ──▶ action
//! ```
//!
//! Nothing is sent to a station before it has accepted. What it accepts is a lease with an end: when the end
//! has come, or the connection over which it was accepted is gone, the other side stops by itself, so that
//! no station sends to one that was switched off. [`admission`] is the whole of what a station answers as a
//! value without sockets and clocks; [`message`] has the messages, [`reservations`] the leases; [`server`] and
//! [`peer`] move the lines; [`tls`] is who is who.

pub mod admission;
pub mod message;
pub mod peer;
pub mod permission;
mod permits;
pub mod reservations;
pub mod server;
pub mod tls;

pub use admission::{Action, Admission, Guest};
pub use message::{Answer, Reason, Request};
pub use peer::{Asker, Peer, PeerError};
pub use reservations::{Lease, Reservations};
pub use server::{Actions, Host};
pub use tls::Tls;
