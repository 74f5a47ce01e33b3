//! Frames for the tests, every field of which can be wrong.

use super::{SENDER, SERVICE, SSID};
use crate::root::common::{Ethernet, sum};
use std::net::{IpAddr, SocketAddr};

/// How the UDP checksum is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Right, with these bits flipped.
    Flipped(u16),
    /// None: zero.
    None,
    /// Only the pseudo header's sum: the rest is left to hardware.
    Partial,
}

/// A frame to be: begin with [`Frame::test`], change what the test is about, then [`Frame::bytes`].
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) link: Ethernet,
    pub(crate) source: IpAddr,
    pub(crate) target: IpAddr,
    pub(crate) class: u8,
    /// IPv4's flags and fragment offset.
    pub(crate) fragment: u16,
    pub(crate) ttl: u8,
    pub(crate) protocol: u8,
    /// IPv4's options.
    pub(crate) options: Vec<u8>,
    /// Flipped bits of the IPv4 header's checksum.
    pub(crate) spoil_ip: u16,
    /// Added to the right length fields.
    pub(crate) ip_lie: i32,
    pub(crate) udp_lie: i32,
    pub(crate) from_port: u16,
    pub(crate) to_port: u16,
    pub(crate) check: Check,
    /// Behind the UDP header.
    pub(crate) payload: Vec<u8>,
}

/// A test packet of RFC 8972, figure 1, and what follows it.
pub(crate) fn packet(sequence: u32, sent: u64, ssid: u16, rest: &[u8]) -> Vec<u8> {
    let mut payload = sequence.to_be_bytes().to_vec();
    payload.extend(sent.to_be_bytes());
    payload.extend([0x86, 0x11]);
    payload.extend(ssid.to_be_bytes());
    payload.extend([0; 28]);
    payload.extend(rest);
    payload
}

impl Frame {
    /// A test packet of the sender that is agreed on; family 0 is IPv4, 1 is IPv6.
    pub(crate) fn test(family: usize, sequence: u32) -> Self {
        Self {
            link: Ethernet::plain(),
            source: SENDER[family].parse().unwrap(),
            target: SERVICE[family].parse::<SocketAddr>().unwrap().ip(),
            class: 0xb8,
            fragment: 0x4000,
            ttl: 57,
            protocol: 17,
            options: Vec::new(),
            spoil_ip: 0,
            ip_lie: 0,
            udp_lie: 0,
            from_port: 40_000,
            to_port: 862,
            check: Check::Flipped(0),
            payload: packet(sequence, (1 << 40) + u64::from(sequence), SSID, &[]),
        }
    }

    /// The whole frame.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut udp = Vec::new();
        udp.extend(self.from_port.to_be_bytes());
        udp.extend(self.to_port.to_be_bytes());
        let lie = |length: usize, lie: i32| ((length as i32 + lie) as u16).to_be_bytes();
        udp.extend(lie(8 + self.payload.len(), self.udp_lie));
        udp.extend([0, 0]);
        udp.extend(&self.payload);
        let octets = |address: IpAddr| match address {
            IpAddr::V4(four) => four.octets().to_vec(),
            IpAddr::V6(six) => six.octets().to_vec(),
        };
        let addresses = [octets(self.source), octets(self.target)].concat();
        let pseudo = [&addresses[..], &[0, 17], &udp[4..6]].concat();
        let check = match self.check {
            Check::None => 0,
            Check::Partial => sum(&pseudo),
            Check::Flipped(bits) => match !sum(&[pseudo, udp.clone()].concat()) ^ bits {
                0 => 0xffff,
                check => check,
            },
        };
        udp[6..8].copy_from_slice(&check.to_be_bytes());
        if self.source.is_ipv6() {
            let class = u32::from(self.class) << 20 | 0x6000_0000 | 0xabcde;
            let mut head = class.to_be_bytes().to_vec();
            head.extend(lie(udp.len(), self.ip_lie));
            head.extend([self.protocol, self.ttl]);
            return self.link.around(0x86dd, &[head, addresses, udp].concat());
        }
        let mut head = vec![0x45 + self.options.len() as u8 / 4, self.class];
        head.extend(lie(20 + self.options.len() + udp.len(), self.ip_lie));
        head.extend([0x12, 0x34]);
        head.extend(self.fragment.to_be_bytes());
        head.extend([self.ttl, self.protocol, 0, 0]);
        head.extend(addresses);
        head.extend(&self.options);
        let check = !sum(&head) ^ self.spoil_ip;
        head[10..12].copy_from_slice(&check.to_be_bytes());
        head.extend(udp);
        self.link.around(0x0800, &head)
    }
}
