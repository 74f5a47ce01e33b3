//! Answers ICMP echo in XDP on anycast addresses and announces their prefixes by BGP while it is
//! healthy.
//!
//! What decides is pure and takes the time as an argument: [`health`] (what failed), [`drain`] (how
//! far a drain is), [`announce`] (what an upstream is told). What acts is in [`service`], which holds
//! the attached program and the sessions and asks the three above.
//!
//! [`Echo`] is the job as the daemon knows it.
//!
//! - [`config`]: the sections `[echo]` and `[anycast]`.
//! - [`control`], [`cli`]: what can be asked at run time, over the control socket and by `nigh echo`.
//! - [`status`]: the state as values and as text.
//! - [`blast`]: the sender that tests a responder, `nigh blast`.
#![forbid(unsafe_code)]

pub mod announce;
pub mod blast;
pub mod cli;
pub mod config;
mod contract;
pub mod control;
pub mod drain;
pub mod health;
pub mod service;
pub mod status;

pub use contract::Echo;
