//! nigh: one program for the edge of a network. It puts the jobs together: command line, daemon, control socket, HTTP.
//!
//! One binary: a daemon (`nigh run`) that runs the jobs whose sections are in the
//! configuration file, and the commands that query and control it over its control socket. This crate
//! only assembles; what a job does is in the job's crate.
//!
//! - [`cli`]: the command line, [`commands`]: the sub-commands, [`complete`]: shell
//!   completion, [`man`]: man pages;
//! - [`config`]: the configuration file, [`man5`]: its man page, [`host`]: whether a host has what it names;
//! - [`daemon`]: start, signals, reload, stop; [`control`]: its control socket, [`client`]: the
//!   other end; [`http`]: status page, metrics, health and API, [`viewers`]: who may read it; [`metrics`];
//! - [`node`]: the running node, [`jobs`]: its jobs; [`privileges`]: which capabilities are kept;
//!   [`state`]: what survives a restart; [`notify`]: notifications to systemd, [`watchdog`]: that the jobs
//!   answer;
//! - [`kernel`]: what this kernel can do for the jobs, [`host`]: what the daemon's user can do on this host.
#![forbid(unsafe_code)]

pub mod cli;
pub mod client;
pub mod commands;
pub mod complete;
pub mod config;
pub mod control;
pub mod daemon;
pub mod host;
pub mod http;
pub mod jobs;
pub mod kernel;
pub mod logging;
pub mod man;
pub mod man5;
pub mod mapping;
pub mod metrics;
pub mod node;
pub mod notify;
pub mod privileges;
pub mod state;
pub mod viewers;
pub mod watchdog;
