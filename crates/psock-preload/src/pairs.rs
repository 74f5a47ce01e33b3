//! Which loopback socket belongs to which session.
//!
//! The program's socket of a session is joined with one of this library over loopback, so it has a port on loopback
//! that nothing else has at the same time: that is the key. The table is memory that is shared with the children of
//! fork(2), for it is often a child that asks for the addresses of a socket, or that accepts. All of it is atomic
//! numbers, so that a child of a process that was just writing finds no lock held, at worst an entry that is not there
//! yet.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6},
    ptr::null_mut,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// What the program's socket on this port is, or whose port it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A socket of the program that was connected.
    Connected = 1,
    /// This library's end of a session that the program has not accepted yet.
    Waiting = 2,
    /// The same, accepted.
    Accepted = 3,
    /// A socket of the program that listens.
    Listening = 4,
}

/// What is known of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) kind: Kind,
    /// The port at the other end; of one that listens, 0.
    pub(crate) other: u16,
    /// The peer's real address; of one that listens, its own.
    pub(crate) peer: SocketAddr,
    /// This end's real address.
    pub(crate) local: SocketAddr,
}

/// Numbers of an address, and of an entry: what it is with the other port, and two addresses.
const ADDRESS: usize = 3;
const NUMBERS: usize = 1 + 2 * ADDRESS;
/// One entry for each port.
const PORTS: usize = 1 << 16;

type Entry = [AtomicU64; NUMBERS];

/// The table; it lives as long as the process and its children.
static TABLE: OnceLock<Option<&'static [Entry; PORTS]>> = OnceLock::new();

fn entry(port: u16) -> Option<&'static Entry> {
    let table = TABLE.get_or_init(|| {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let length = size_of::<[Entry; PORTS]>();
        // SAFETY: a new mapping that overlaps nothing.
        let memory = unsafe { libc::mmap(null_mut(), length, protection, flags, -1, 0) };
        // SAFETY: it is as long as the table, aligned to a page, zero, which is a valid number, and
        // never unmapped.
        (memory != libc::MAP_FAILED).then(|| unsafe { &*memory.cast::<[Entry; PORTS]>() })
    });
    table.as_ref()?.get(usize::from(port))
}

/// Makes the table if it is not there, so that children share it.
pub(crate) fn prepare() -> std::io::Result<()> {
    entry(0).map(drop).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::OutOfMemory))
}

/// What is known of a port.
pub(crate) fn get(port: u16) -> Option<Pair> {
    let [head, numbers @ ..] = entry(port)?;
    let before = head.load(Ordering::Acquire);
    let mut read = [0; 2 * ADDRESS];
    for (into, number) in read.iter_mut().zip(numbers) {
        *into = number.load(Ordering::Acquire);
    }
    // Changed meanwhile: the port is used again, and whoever asks means the one before.
    if head.load(Ordering::Acquire) != before {
        return None;
    }
    let kind = match before >> 16 {
        1 => Kind::Connected,
        2 => Kind::Waiting,
        3 => Kind::Accepted,
        4 => Kind::Listening,
        _ => return None,
    };
    let [p0, p1, p2, l0, l1, l2] = read;
    let (peer, local) = (address([p0, p1, p2]), address([l0, l1, l2]));
    Some(Pair { kind, other: before as u16, peer, local })
}

/// Notes what a port is.
pub(crate) fn put(port: u16, pair: Pair) {
    let Some([head, numbers @ ..]) = entry(port) else { return };
    head.store(0, Ordering::Release);
    let written = numbers_of(pair.peer).into_iter().chain(numbers_of(pair.local));
    for (number, value) in numbers.iter().zip(written) {
        number.store(value, Ordering::Release);
    }
    head.store(word(pair.kind, pair.other), Ordering::Release);
}

/// Forgets a port.
pub(crate) fn remove(port: u16) {
    if let Some([head, ..]) = entry(port) {
        head.store(0, Ordering::Release);
    }
}

/// Takes a session that waits; only one caller gets it, of whatever process.
pub(crate) fn take(port: u16, other: u16) -> bool {
    let (from, to) = (word(Kind::Waiting, other), word(Kind::Accepted, other));
    entry(port).is_some_and(|[head, ..]| {
        head.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    })
}

fn word(kind: Kind, other: u16) -> u64 {
    (kind as u64) << 16 | u64::from(other)
}

/// An address as numbers; one of IPv4 as the IPv6 address that stands for it.
fn numbers_of(address: SocketAddr) -> [u64; ADDRESS] {
    let (ip, scope) = match address {
        SocketAddr::V4(address) => (address.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(address) => (*address.ip(), address.scope_id()),
    };
    let bits = ip.to_bits();
    [(bits >> 64) as u64, bits as u64, u64::from(scope) << 16 | u64::from(address.port())]
}

fn address([high, low, rest]: [u64; ADDRESS]) -> SocketAddr {
    let ip = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
    match ip.to_ipv4_mapped() {
        Some(ip) => SocketAddr::new(IpAddr::V4(ip), rest as u16),
        None => SocketAddrV6::new(ip, rest as u16, 0, (rest >> 16) as u32).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_found_until_it_is_removed() {
        let peer = "[fe80::1%7]:443".parse().unwrap();
        let local = "192.0.2.1:65535".parse().unwrap();
        let pair = Pair { kind: Kind::Waiting, other: 40_000, peer, local };
        put(7, pair);
        assert_eq!(get(7), Some(pair));
        assert_eq!(get(8), None);
        remove(7);
        assert_eq!(get(7), None);
    }

    #[test]
    fn a_session_is_taken_once_and_by_its_own_listener() {
        let address = "192.0.2.1:80".parse().unwrap();
        put(9, Pair { kind: Kind::Waiting, other: 5, peer: address, local: address });
        assert!(!take(9, 6));
        assert!(take(9, 5));
        assert!(!take(9, 5));
        assert_eq!(get(9).unwrap().kind, Kind::Accepted);
    }
}
