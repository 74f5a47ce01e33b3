//! Packet captures read into flows.
//!
//! ```text
//! file -> frames (crate `capture`) -> layers: IP packet -> transport header -> Table: flows
//! ```
//!
//! Frames may be cut short, be fragments, or be of a link that is not read; all of that is counted, and
//! nothing of it is an error.

pub mod flows;
pub mod layers;
#[cfg(test)]
mod tests;
