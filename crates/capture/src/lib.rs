//! Packet captures: reads pcap and pcapng ([`read()`]) and writes pcapng ([`pcapng`]).
//!
//! Used by the gate (classification of captures), the lab (captures of links) and the mask (both).
#![forbid(unsafe_code)]

pub mod pcapng;
mod read;
mod unpack;

pub use read::{End, Frame, Item, LinkType, ReadError, read, read_all};
pub use unpack::unpack;
