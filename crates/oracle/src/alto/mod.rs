//! ALTO over HTTPS: network maps, cost maps and endpoint services (RFC 7285), several costs at once
//! (RFC 8189), cost calendars (RFC 8896).
//!
//! The core is pure: a request as values and a snapshot of the ranking tables go in, a status, a
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
//!                                                              cost_reply.rs: the reply)
//! ```
//!
//! Two rules hold everywhere. What a client learns of the operator's numbers is rounded into a few
//! classes (classes.rs), constraints included. And the names of PIDs disclose nothing of the network
//! (network_map.rs).
//!
//! Around the core are entity properties (RFC 9240, properties/), incremental updates (RFC 8895,
//! updates/), TIPS (RFC 9569, tips/), what lists them all (catalogue.rs), the HTTPS server (server/) and who may ask it (auth/).

pub mod address;
pub mod auth;
mod calendar;
mod catalogue;
mod classes;
pub mod config;
pub mod constraint;
mod cost;
mod cost_reply;
mod cost_request;
pub mod cost_type;
mod costs;
pub mod counters;
mod directory;
pub mod error;
pub mod failure;
mod input;
pub mod limits;
mod maps;
pub mod media;
pub mod name;
pub mod network_map;
pub mod properties;
mod publisher;
mod reply;
pub mod resource;
pub mod server;
pub mod tips;
pub mod tls;
pub mod updates;

pub use catalogue::Catalogue;
pub use config::AltoConfig;
pub use cost_type::{CostMode, CostType};
pub use error::{Code, Problem};
pub use failure::Failure;
pub use maps::{DIRECTORY_PATH, MapSettings, Maps};
pub use network_map::NetworkMap;
pub use publisher::Publisher;
pub use resource::{Asker, Method, Request, Resource, Response};
