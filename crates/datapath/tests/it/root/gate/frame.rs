//! Packets of TCP and UDP, and what becomes of them.

use crate::root::common::{Ethernet, network_header, sum, word};
use datapath::gate::{Key, Protocol};
use std::net::{IpAddr, SocketAddr};

/// A packet, every field of which can be chosen.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) link: Ethernet,
    pub(crate) protocol: u8,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) tcp_options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// IPv4: options; IPv6: extension headers, each with its number.
    pub(crate) options: Vec<u8>,
    pub(crate) extensions: Vec<(u8, Vec<u8>)>,
    /// IPv4: flags and offset.
    pub(crate) fragment: u16,
    pub(crate) id: u16,
}

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// The two hosts of each family: internal and external.
pub(crate) const HOSTS: [[&str; 2]; 2] =
    [["10.0.0.5:51413", "192.0.2.7:6881"], ["[2001:db8:1::5]:51413", "[2001:db8:2::7]:6881"]];

impl Packet {
    /// From the internal host to the external one.
    pub(crate) fn tcp(family: usize, flags: u8, payload: &[u8]) -> Self {
        let [from, to] = HOSTS[family].map(|host| host.parse().unwrap());
        Self {
            link: Ethernet::plain(),
            protocol: 6,
            from,
            to,
            sequence: 1000,
            acknowledgement: 2000,
            flags,
            tcp_options: Vec::new(),
            payload: payload.to_vec(),
            options: Vec::new(),
            extensions: Vec::new(),
            fragment: 0x4000,
            id: 7,
        }
    }

    pub(crate) fn udp(family: usize, payload: &[u8]) -> Self {
        Self { protocol: 17, ..Self::tcp(family, 0, payload) }
    }

    /// The other direction.
    pub(crate) fn back(mut self) -> Self {
        std::mem::swap(&mut self.from, &mut self.to);
        self
    }

    pub(crate) fn key(&self) -> Key {
        let protocol = if self.protocol == 6 { Protocol::Tcp } else { Protocol::Udp };
        Key::new(protocol, self.from, self.to)
    }

    /// The transport header and the payload, with a right checksum.
    fn transport(&self) -> Vec<u8> {
        let mut bytes = [self.from.port().to_be_bytes(), self.to.port().to_be_bytes()].concat();
        let check = if self.protocol == 6 {
            bytes.extend(self.sequence.to_be_bytes());
            bytes.extend(self.acknowledgement.to_be_bytes());
            bytes.extend([
                ((20 + self.tcp_options.len()) * 4) as u8,
                self.flags,
                0x20,
                0,
                0,
                0,
                0,
                0,
            ]);
            bytes.extend(&self.tcp_options);
            16
        } else {
            bytes.extend(((8 + self.payload.len()) as u16).to_be_bytes());
            bytes.extend([0, 0]);
            6
        };
        bytes.extend(&self.payload);
        let right = !sum(&[
            pseudo(self.from.ip(), self.to.ip(), self.protocol, bytes.len()),
            bytes.clone(),
        ]
        .concat());
        bytes[check..check + 2].copy_from_slice(&right.to_be_bytes());
        bytes
    }

    /// The frame.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.around(&self.transport())
    }

    /// The frame with something else behind the network header.
    pub(crate) fn around(&self, transport: &[u8]) -> Vec<u8> {
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let header = 20 + self.options.len();
                let mut ip = vec![0x40 | (header / 4) as u8, 0];
                ip.extend(((header + transport.len()) as u16).to_be_bytes());
                ip.extend(self.id.to_be_bytes());
                ip.extend(self.fragment.to_be_bytes());
                ip.extend([64, self.protocol, 0, 0]);
                ip.extend(from.octets());
                ip.extend(to.octets());
                ip.extend(&self.options);
                let check = !sum(&ip);
                ip[10..12].copy_from_slice(&check.to_be_bytes());
                ip.extend(transport);
                self.link.around(0x0800, &ip)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let length: usize = self.extensions.iter().map(|(_, bytes)| bytes.len()).sum();
                let first = self.extensions.first().map_or(self.protocol, |(number, _)| *number);
                let mut ip = vec![0x60, 0, 0, 0];
                ip.extend(((length + transport.len()) as u16).to_be_bytes());
                ip.extend([first, 64]);
                ip.extend(from.octets());
                ip.extend(to.octets());
                for (at, (_, bytes)) in self.extensions.iter().enumerate() {
                    let next =
                        self.extensions.get(at + 1).map_or(self.protocol, |(number, _)| *number);
                    ip.push(next);
                    ip.extend(&bytes[1..]);
                }
                ip.extend(transport);
                self.link.around(0x86dd, &ip)
            }
            _ => unreachable!("both hosts are of one family"),
        }
    }
}

fn pseudo(from: IpAddr, to: IpAddr, protocol: u8, length: usize) -> Vec<u8> {
    let mut bytes = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => [from.octets(), to.octets()].concat(),
        (IpAddr::V6(from), IpAddr::V6(to)) => [from.octets(), to.octets()].concat(),
        _ => unreachable!("both hosts are of one family"),
    };
    bytes.extend((length as u32).to_be_bytes());
    bytes.extend(u32::from(protocol).to_be_bytes());
    bytes
}

/// A TCP segment without options that came out, all of its checksums right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) to_mac: [u8; 6],
    pub(crate) from_mac: [u8; 6],
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ttl: u8,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) length: usize,
}

impl Segment {
    /// Reads a frame, which must be right in every field.
    pub(crate) fn of(frame: &[u8]) -> Self {
        let (kind, at) = network_header(frame).unwrap();
        let ip = &frame[at..];
        let (from, to, ttl, header): (IpAddr, IpAddr, u8, usize) = if kind == 0x0800 {
            assert_eq!((ip[0], ip[9], sum(&ip[..20])), (0x45, 6, 0xffff), "the IPv4 header");
            assert_eq!(usize::from(word(ip, 2).unwrap()), ip.len());
            let address = |at: usize| <[u8; 4]>::try_from(&ip[at..at + 4]).unwrap().into();
            (address(12), address(16), ip[8], 20)
        } else {
            assert_eq!((kind, ip[0], ip[6]), (0x86dd, 0x60, 6), "the IPv6 header");
            assert_eq!(usize::from(word(ip, 4).unwrap()) + 40, ip.len());
            let address = |at: usize| <[u8; 16]>::try_from(&ip[at..at + 16]).unwrap().into();
            (address(8), address(24), ip[7], 40)
        };
        let tcp = &ip[header..];
        let summed = [pseudo(from, to, 6, tcp.len()), tcp.to_vec()].concat();
        assert_eq!(sum(&summed), 0xffff, "the TCP checksum");
        let number = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap());
        assert_eq!((tcp[12], word(tcp, 14), word(tcp, 18)), (0x50, Some(0), Some(0)));
        Self {
            to_mac: frame[..6].try_into().unwrap(),
            from_mac: frame[6..12].try_into().unwrap(),
            from: SocketAddr::new(from, word(tcp, 0).unwrap()),
            to: SocketAddr::new(to, word(tcp, 2).unwrap()),
            ttl,
            sequence: number(4),
            acknowledgement: number(8),
            flags: tcp[13],
            length: tcp.len(),
        }
    }
}
