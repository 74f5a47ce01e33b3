//! Takes what identifies people out of packets before anything else sees them.
//!
//! So far it has the mappings of addresses ([`mapping`]), and nothing uses them yet.
#![forbid(unsafe_code)]

pub mod mapping;
