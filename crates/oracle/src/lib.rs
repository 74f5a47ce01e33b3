//! Ranks candidate addresses by the operator's own view of distance.
#![forbid(unsafe_code)]

pub mod alto;
pub mod candidate;
mod check;
pub mod cli;
pub mod client;
pub mod config;
pub mod console;
mod contract;
pub mod control;
pub mod feeds;
pub mod metric;
pub mod proxidor;
pub mod rank;
pub mod service;
pub mod status;
pub mod tables;

pub use contract::Oracle;
