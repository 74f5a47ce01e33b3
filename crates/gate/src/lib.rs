//! Classifies, limits, filters, scans and logs the traffic that a router forwards.
//!
//! The kernel's program (`bpf/gate.bpf.c`) decides packets by a table of flows; this crate decides
//! flows by their first packets, and fills that table. No packet waits for it unless a policy requires
//! that.
//!
//! - [`classify`]: names the application of a flow; a crate of its own.
//! - [`stream`], [`files`], [`manage`]: the files in flows that a rule names.
//! - [`torrents`]: files of torrents, put together from blocks.
//! - [`parser`]: processes in which bytes of strangers are read.
//! - [`scan`]: content given to ClamAV.
//! - [`config`], [`policy`]: the configuration, and its verdict on a flow or a file.
//! - [`chat`]: messages in plain text.
//! - [`audit`]: the log of all that.
#![forbid(unsafe_code)]

pub mod audit;
mod bounded;
pub mod chat;
mod check;
pub mod cli;
pub mod config;
mod contract;
pub mod control;
pub mod event;
pub mod file_name;
pub mod file_type;
pub mod files;
pub mod manage;
pub mod parser;
pub mod policy;
pub mod scan;
pub mod service;
pub mod status;
pub mod stream;
pub mod torrents;

pub use contract::Gate;
