//! BGP sessions on top of the netgauze crates, and BIRD through its control socket.
//!
//! An anycast node advertises its prefixes and withdraws them at once when it has to: those sessions
//! never learn, a received UPDATE is counted and discarded. An oracle does the opposite: it learns what
//! routers know, over BMP and BGP-LS, and advertises nothing.
//!
//! - [`config`]: one `[[anycast.upstream]]` of the configuration file.
//! - [`announcer`]: the task that advertises prefixes to an upstream, the same for both kinds of
//!   upstream; [`observed`] what is desired and what is observed.
//! - [`fsm`]: the session's state machine without socket or clock; [`rib`] the routes it advertises,
//!   [`message`] what it sends and receives, [`route`] and [`value`] their parts.
//! - [`bfd`]: whether a neighbour on the link is there, within a second.
//! - [`bird`]: BIRD 2 through its control socket.
//! - [`bmp`]: the routes that routers report; [`link_state`]: the topology that a speaker advertises.
#![forbid(unsafe_code)]

pub mod announcer;
pub mod bfd;
pub mod bird;
pub mod bmp;
mod clock;
pub mod config;
mod driver;
pub mod fsm;
mod header;
pub mod link_state;
pub mod message;
pub mod observed;
pub mod rib;
pub mod route;
mod session;
mod socket;
pub mod value;

pub use announcer::Announcer;
pub use observed::{Advertised, Desired, Observed, State};
