//! Takes what identifies people out of packets before anything else sees them.
//!
//! ```text
//! policy (TOML) -> program, verified -> unit: packet in, masked packet out
//!                                       keys of the data set, mappings of addresses
//! ```
#![forbid(unsafe_code)]

pub mod key;
pub mod layer;
pub mod machine;
pub mod mapping;
pub mod policy;
pub mod program;
