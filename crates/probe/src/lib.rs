//! Measuring stations: one-way delay, loss, throughput, paths and clocks, with the error of every figure.
#![forbid(unsafe_code)]

pub mod archive;
pub mod cli;
pub mod clock;
pub mod config;
mod contract;
pub mod control;
pub mod delay;
pub mod interval;
pub mod record;
pub mod schedule;
pub mod service;
pub mod show;
pub mod stamp;
pub mod station;
pub mod statistics;
pub mod status;
pub mod tools;

pub use contract::Probe;
