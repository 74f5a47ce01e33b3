//! What RFC 7285 demands of a server, a test a rule: the section is in the name of the test
//! (`s11_3_1_6_...`). RFC 8189 and RFC 8896 follow in files of their own, and the
//! interoperability cases of the IETF's ALTO group in interop.rs.
//!
//! The network is that of the interoperability cases; support.rs draws it. All requests go through
//! `Maps::respond`, as they would from a socket.

mod calendar;
mod costs;
mod directory;
mod endpoint_cost;
mod filtered_cost_map;
mod general;
mod interop;
mod multi_cost;
mod network_map;
mod order;
mod properties;
mod random;
mod support;
mod types;
