//! Mappings of addresses under a key: each address gets another one, always the same.
//!
//! - [`CryptoPan`] keeps prefixes: two addresses that share exactly their first n bits are mapped to
//!   two that share exactly their first n bits.
//! - [`IpcryptPfx`] keeps prefixes too, by the sum of two ciphers: twice the work.
//! - [`IpcryptDeterministic`] keeps nothing: a permutation of the addresses of both families.
//!
//! Expanded keys and the pad are wiped from memory when a mapping is dropped; the caller wipes the key.

mod crypto_pan;
mod ipcrypt;
#[cfg(test)]
mod tests;

pub use crypto_pan::CryptoPan;
pub use ipcrypt::{EqualHalves, IpcryptDeterministic, IpcryptPfx};

use aes::Block;
use std::net::{IpAddr, Ipv6Addr};

/// One block for each bit of the longest address.
const BITS: usize = 128;

/// The block that holds this number, most significant byte first.
fn block(value: u128) -> Block {
    Block::from(value.to_be_bytes())
}

/// The address as the drafts of ipcrypt count it: an IPv4 address is mapped into IPv6
/// (RFC 4291, section 2.5.5.2).
fn as_v6(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The reverse of [`as_v6`].
fn from_v6(bits: u128) -> IpAddr {
    Ipv6Addr::from_bits(bits).to_canonical()
}
