//! Removes what identifies people from packets before other programs see them.
//!
//! ```text
//! policy (TOML) -> program, verified -> unit: packet in, masked packet out
//! key of the data set -> of the period, if it rotates -> secrets: numbers and mappings of addresses
//! ```
//!
//! - [`layer`]: the headers and their fields; [`policy`]: the rules that an operator writes; [`program`]: the
//!   instructions that they become.
//! - [`application`]: the protocols of the application layer; [`machine`]: the unit that runs a program on a packet;
//!   [`mapping`], [`key`]: addresses and secrets.
//! - [`mod@file`]: whole captures; [`live`]: live traffic, around the kernel's engine; [`check`]: whether
//!   anything of the original is left; [`explain`]: one packet field by field; [`cli`]: the commands.
#![forbid(unsafe_code)]

pub mod application;
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
