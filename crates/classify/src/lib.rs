//! Names the application of a flow by its first packets.
//!
//! No sockets, no threads, no clock: packets come with their time, and the answer is a value. The gate feeds
//! it what the kernel copies out, `nigh gate classify` what a capture holds.
//!
//! - [`flow`], [`packet`]: what is classified.
//! - [`label`]: the result: the application of a flow, how sure that is, and why.
//! - [`Engine`]: the three engines one after the other, with the [`State`] of one flow.
//! - [`p2p`], [`application`]: parsers of peer-to-peer protocols; [`hosts`]: what they learn of hosts.
//! - [`signatures`]: the operator's own.
//! - [`dns`], [`names`], [`tls`]: names of servers.
//! - [`capture`], [`offline`]: packet captures read into flows, and classified; [`truth`]: how well.
#![forbid(unsafe_code)]

pub mod application;
mod bounded;
pub mod capture;
pub mod dns;
mod engine;
pub mod flow;
pub mod hosts;
pub mod label;
pub mod names;
pub mod offline;
pub mod p2p;
pub mod packet;
pub mod signatures;
pub mod tls;
pub mod truth;

pub use engine::{Engine, Facts, MAX_PACKETS, OpenError, Settings, State, ndpi_names};
