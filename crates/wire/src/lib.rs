//! Addresses, prefixes, checksums, packet views and values: no I/O, no unsafe.
//!
//! Each protocol has a module with two things in it. A `Packet<T>` is a view over bytes: its
//! length is checked once, in `Packet::new`, and no accessor can panic after that. A `Repr` is a
//! value: parsed from a view (every rule of the RFC is applied here) and emitted to bytes. Codes
//! that this crate does not know are kept as they are, never rejected.
//!
//! Start with [`ethernet`], then [`ipv4`] and [`ipv6`], then [`icmpv4`], [`icmpv6`], [`tcp`] and [`udp`].
//! [`dns`] reads names. [`echo_frame::EchoFrame`] builds whole echo frames.
#![forbid(unsafe_code)]

pub mod arp;
mod bytes;
pub mod checksum;
pub mod dns;
pub mod echo_frame;
mod error;
pub mod ethernet;
pub mod icmpv4;
pub mod icmpv6;
mod ids;
pub mod ipv4;
pub mod ipv6;
mod reader;
pub mod space;
pub mod tcp;
pub mod udp;

pub use error::{EmitError, Fault, Layer, ParseError};
pub use ids::{EtherType, Identifier, IpProtocol, Mac, MacError, Sequence};
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use reader::Reader;
