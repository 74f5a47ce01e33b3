//! Takes what identifies people out of packets before anything else sees them.
//!
//! ```text
//! policy (TOML) -> program, verified -> unit: packet in, masked packet out
//! key of the data set -> of the period, if it rotates -> secrets: numbers and mappings of addresses
//! ```
//!
//! - [`layer`]: the headers and their fields; [`policy`]: what is wanted; [`program`]: what is done.
//! - [`above`]: what is above the transport; [`machine`]: the unit that runs a program on a packet; [`mapping`], [`key`]: what it needs to know.
//! - [`mod@file`]: whole captures; [`live`]: what live traffic needs beside the kernel's engine; [`check`]: whether
//!   anything of one is left; [`explain`]: one packet field by field; [`cli`]: the commands.
#![forbid(unsafe_code)]

pub mod above;
pub mod check;
pub mod cli;
mod counted;
pub mod explain;
pub mod file;
pub mod key;
pub mod layer;
pub mod live;
pub mod log;
pub mod machine;
pub mod mapping;
pub mod policy;
pub mod program;
