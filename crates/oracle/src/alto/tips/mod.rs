//! The transport information publication service, TIPS (RFC 9569): clients pull the versions and changes of a
//! resource, each under an address of its own, and may wait for the next one.
//!
//! A view is one followed question (updates/follow.rs). All clients with the same question share one view, so that
//! its address depends on nothing but the request (section 6.2); it is kept while it is read (section 8.3).
//! Shortcuts (section 8.4) are not offered, and server push is none of this version of TIPS (appendix C).

mod params;
mod service;

pub use params::{TipsRequest, parse_next, parse_open};
pub use service::{PARAMS, TIPS, Tips, summary};
