//! Incremental updates: what is followed and how it changed (graph.rs, follow.rs), and the streams of RFC 8895
//! that push it (params.rs, session.rs, sse.rs, service.rs). TIPS (RFC 9569) reads the same graphs.
//!
//! ```text
//!  new maps ──▶ follow.rs: asks each followed question once ──▶ graph.rs: versions and changes of each answer
//!                                                                  │                       │
//!              sessions of RFC 8895: where each substream stands ──┘   views of RFC 9569 ──┘
//! ```

pub mod follow;
pub mod graph;
pub mod merge;
pub mod params;
pub mod patch;
pub mod service;
pub mod session;
pub mod sse;
