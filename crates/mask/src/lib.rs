//! Takes what identifies people out of packets before anything else sees them.
//!
//! So far it has the mappings of addresses ([`mapping`]) and reads their keys ([`key`]); nothing uses them yet.
#![forbid(unsafe_code)]

pub mod key;
pub mod mapping;
