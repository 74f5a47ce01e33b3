//! What is in the original.

use super::names::Names;
use crate::{
    application::Ports,
    layer::{FIELDS, Kind},
    machine::{Link, Visit, visit},
};
use rustc_hash::FxHashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of a run of payload.
pub(super) const RUN: usize = 8;
/// Most runs that are looked for: half a gigabyte of them.
const RUNS: usize = 1 << 25;

/// The addresses, names and the payload of a capture.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    pub(super) ipv4: FxHashSet<u32>,
    pub(super) ipv6: FxHashSet<u128>,
    pub(super) macs: FxHashSet<[u8; 6]>,
    /// Interface identifiers that contain a MAC address.
    pub(super) identifiers: FxHashSet<[u8; 8]>,
    /// Every run of eight bytes at a multiple of eight, so any fifteen bytes hold one.
    pub(super) runs: FxHashSet<[u8; RUN]>,
    /// Runs that found no room.
    pub(super) skipped: u64,
    pub(super) names: Names,
    /// The transport that was seen last, with its ports.
    pub(super) transport: Option<(Kind, [u16; 2])>,
}

impl Secrets {
    /// Takes the secrets of a packet; `room` is for the walk.
    pub(super) fn add(&mut self, link: Link, packet: &[u8], room: &mut Vec<u8>) {
        let headers = visit(self, link, packet, room);
        self.add_runs(&packet[headers..]);
    }

    fn add_mac(&mut self, mac: [u8; 6]) {
        self.macs.insert(mac);
        self.identifiers.insert(identifier(mac));
    }

    /// Takes bytes as runs, of which perhaps nothing is known.
    pub(super) fn add_runs(&mut self, bytes: &[u8]) {
        for run in bytes.as_chunks().0.iter().filter(|run| is_telling(*run)) {
            if self.runs.len() < RUNS {
                self.runs.insert(*run);
            } else {
                self.skipped += 1;
            }
        }
    }
}

impl Visit for Secrets {
    fn header(&mut self, kind: Kind, header: &[u8], _: &mut [u8], _: bool, _: u128) {
        for field in FIELDS.iter().filter(|field| field.kind == kind) {
            let at = usize::from(field.at);
            let Some(bytes) = header.get(at..at + usize::from(field.bytes)) else { continue };
            match (field.meaning(), bytes.len()) {
                (1, 6) => {
                    let mac = <[u8; 6]>::try_from(bytes).unwrap_or_default();
                    if is_telling(&mac) {
                        self.add_mac(mac);
                    }
                }
                (2, 4) => {
                    let address = bytes.iter().fold(0, |all, byte| all << 8 | u32::from(*byte));
                    let ip = Ipv4Addr::from_bits(address);
                    if !ip.is_unspecified() && !ip.is_broadcast() && !ip.is_multicast() {
                        self.ipv4.insert(address);
                    }
                }
                (3, 16) => {
                    let address = bytes.iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
                    let ip = Ipv6Addr::from_bits(address);
                    if !ip.is_unspecified() && !ip.is_multicast() {
                        self.ipv6.insert(address);
                        if let Some(mac) = embedded_mac(bytes) {
                            self.add_mac(mac);
                        }
                    }
                }
                _ => {}
            }
        }
        if let (Kind::Tcp | Kind::Udp, [a, b, c, d, ..]) = (kind, header) {
            self.transport =
                Some((kind, [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])]));
        }
    }

    fn keeps(&self, _: Kind) -> bool {
        true
    }

    /// Options that policies can name are theirs to keep; the fingerprints list what is left of them.
    fn unnamed(&mut self, content: &[u8]) {
        self.add_runs(content);
    }

    /// Its headers are no runs, for those of the packet itself may be kept. If it is a redirect, too, what that
    /// quotes is shorter: an option has 2,040 bytes at most, so this ends soon.
    fn redirected(&mut self, packet: &[u8]) {
        self.add(Link::Ip, packet, &mut Vec::new());
    }

    // It is behind the last header, as are fragments, trailers and what no header is known of.
    fn payload(&mut self, _: Option<Ports>, payload: &[u8], _: &mut [u8]) -> bool {
        if let Some((transport, ports)) = self.transport.take() {
            self.names.read(transport, ports, payload);
        }
        false
    }
}

/// The interface identifier that is made of a MAC address (modified EUI-64: RFC 4291, appendix A).
fn identifier([a, b, c, d, e, f]: [u8; 6]) -> [u8; 8] {
    [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
}

/// The MAC address in such an identifier of an IPv6 address.
fn embedded_mac(address: &[u8]) -> Option<[u8; 6]> {
    match address.last_chunk()? {
        [a, b, c, 0xff, 0xfe, d, e, f] => Some([a ^ 2, *b, *c, *d, *e, *f]),
        _ => None,
    }
}

/// Whether bytes say something: those of a counter or of padding are everywhere.
fn is_telling(bytes: &[u8]) -> bool {
    let mut seen = bytes.to_vec();
    seen.sort_unstable();
    seen.dedup();
    seen.len() > 3
}
