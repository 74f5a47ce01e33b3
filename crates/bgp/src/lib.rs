//! BGP sessions on top of the netgauze crates, and BIRD through its control socket.
//!
//! What an anycast node needs of BGP is to say that it is there, and to stop saying so at once: those
//! sessions announce and never learn, a received UPDATE is counted and thrown away. What an oracle needs
//! is the opposite: to hear what routers know, over BMP and BGP-LS, and to say nothing.
//!
//! - [`config`]: one `[[anycast.upstream]]` of the configuration file.
//! - [`announcer`]: what an upstream is to be told and what it has been told, for both kinds of
//!   upstream alike.
//! - [`fsm`]: the session's state machine without socket or clock; [`rib`] what it announces,
//!   [`message`] what it says and hears, [`route`] and [`value`] what that is made of.
//! - [`bird`]: BIRD 2 through its control socket.
//! - [`bmp`]: what routers tell of their routes; [`link_state`]: what a speaker tells of the network.
#![forbid(unsafe_code)]

pub mod announcer;
pub mod bird;
pub mod bmp;
pub mod config;
mod driver;
pub mod fsm;
pub mod link_state;
pub mod message;
pub mod rib;
pub mod route;
mod session;
mod socket;
pub mod value;

pub use announcer::{Advertised, Announcer, Desired, Observed, State};
