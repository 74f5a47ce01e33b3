//! ALTO over HTTPS: network maps, cost maps and endpoint services (RFC 7285), several costs at once
//! (RFC 8189), cost calendars (RFC 8896).
//!
//! This is the pure core: a request as values and a snapshot of the ranking tables go in, a status, a
//! media type and JSON bytes come out. It opens no socket and reads no clock. Where to begin:
//!
//! ```text
//!  AltoConfig ──┐                          Request{method, path, Accept, Content-Type, body}
//!               ▼                                        │
//!  Tables ──▶ Maps (one a snapshot) ─── respond() ───────┴──▶ Response{status, type, bytes}
//!               ├── resources, as the directory lists them    (resource.rs, directory.rs)
//!               ├── network maps: PIDs and their prefixes     (network_map.rs)
//!               └── costs between PIDs or endpoints           (cost_request.rs: what is asked,
//!                                                              costs.rs: exact costs,
//!                                                              cost_reply.rs: what is told)
//! ```
//!
//! Two rules hold everywhere. What a client learns of the operator's numbers is rounded into a few
//! classes (classes.rs), constraints included. And the names of PIDs say nothing of the network
//! (network_map.rs).

pub mod address;
mod calendar;
mod classes;
pub mod config;
pub mod constraint;
mod cost_reply;
mod cost_request;
pub mod cost_type;
mod costs;
mod directory;
pub mod error;
mod input;
mod maps;
pub mod media;
pub mod name;
pub mod network_map;
pub mod resource;

pub use config::AltoConfig;
pub use cost_type::{CostMode, CostType};
pub use error::{Code, Failure, Problem};
pub use maps::{DIRECTORY_PATH, MapSettings, Maps};
pub use network_map::NetworkMap;
pub use resource::{Asker, Method, Request, Resource, Response};
