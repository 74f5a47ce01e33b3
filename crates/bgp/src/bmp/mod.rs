//! BMP, the BGP Monitoring Protocol: routers report their routes (RFC 7854, 8671, 9069) over
//! connections that they open. Nothing is ever sent to them.
//!
//! - [`message`]: messages taken off a stream.
//! - [`session`]: one connection of a router, from its bytes to its routes; no sockets, no clock.
//! - [`rib`]: the routes of a router and the one view of them; outlives the connection.

pub mod message;
pub mod rib;
pub mod session;
mod standing;

pub use rib::{Rib, RouteChange};
pub use session::{Fault, Internal, Session, SessionError, Settings, Status};
pub use standing::{Path, Stage};
