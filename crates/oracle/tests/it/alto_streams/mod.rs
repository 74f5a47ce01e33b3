//! ALTO's server over real TLS sockets, incremental updates (RFC 8895), entity properties (RFC 9240) and
//! TIPS (RFC 9569): the logic alone, and from a client's side.

mod access;
pub(crate) mod client;
mod control;
mod entities;
pub(crate) mod fake;
mod follow;
mod graph;
mod network;
mod patches;
mod server;
mod sse;
mod stream;
mod tips;
mod tls;
mod whole;
