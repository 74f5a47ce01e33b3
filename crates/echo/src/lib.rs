//! Answers ICMP echo in XDP on anycast addresses and announces their prefixes by BGP while it is
//! healthy.
//!
//! Decisions are pure and take the time as an argument: [`health`] (what failed), [`drain`] (the phase
//! of a drain), [`announce`] (what is advertised to an upstream). [`service`] acts: it holds the
//! attached program and the sessions, and applies the three decisions.
//!
//! [`Echo`] is the job for the daemon's registry.
//!
//! - [`config`]: the sections `[echo]` and `[anycast]`.
//! - [`control`], [`cli`]: requests at run time, over the control socket and by `nigh echo`.
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
