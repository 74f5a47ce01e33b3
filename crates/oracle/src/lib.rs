//! Ranks candidate addresses by the operator's own view of distance.
#![forbid(unsafe_code)]

pub mod alto;
pub mod cli;
pub mod client;
pub mod config;
pub mod console;
pub mod control;
pub mod feeds;
pub mod metric;
pub mod proxidor;
pub mod rank;
pub mod service;
pub mod status;
pub mod tables;
pub mod udp;
pub mod xdp;
