//! nigh: keeps an operator's network near, measured and under control.
//!
//! One binary: a daemon (`nigh run`) that runs the features whose sections stand in the
//! configuration file, and the commands that ask and steer it over its control socket. This crate
//! only assembles; what a feature does is in the feature's crate.
//!
//! - [`cli`]: the command line, [`commands`]: what each sub-command does;
//! - [`config`]: the configuration file;
//! - [`daemon`]: start, signals, reload, stop; [`control`]: its control socket, [`client`]: the
//!   other end; [`http`]: status page, metrics, health and API; [`metrics`];
//! - [`node`]: what runs, [`features`]: the features of it; [`privileges`]: which capabilities are kept; [`state`]: what survives a restart;
//!   [`notify`]: what systemd is told.
#![forbid(unsafe_code)]

pub mod cli;
pub mod client;
pub mod commands;
pub mod config;
pub mod control;
pub mod daemon;
pub mod features;
pub mod http;
pub mod logging;
pub mod mapping;
pub mod metrics;
pub mod node;
pub mod notify;
pub mod privileges;
pub mod state;
