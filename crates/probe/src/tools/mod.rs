//! The measuring tests: each is `run(to, &Settings, &Context)` and gives one of the figures of
//! [`record`](crate::record).
//!
//! A test sends only to addresses that the station's [`Permission`] allows; it asks before the first
//! packet. [`Settings`](ping::Settings) of each test are at once its arguments on the command line and
//! what stations write to each other; `problems()` says what is wrong with them, and every limit is a
//! constant beside it.

mod apart;
mod context;
pub mod dns;
pub mod http;
pub mod icmp;
pub mod iperf3;
pub mod ping;
pub mod pmtu;
mod socket;
pub mod throughput;
pub mod trace;

pub use context::{Context, Counters, Forbidden, Permission, Refusal};
