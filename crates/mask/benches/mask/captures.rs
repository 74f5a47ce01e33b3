//! Captures made up for the benchmark: classic pcap, which all programs read.
//!
//! Hosts are as unequal as on a real link: of the 2^16 on each side the half of all packets have some two
//! hundred (a host's number is the product of two uniform ones, to the fourth power).

use std::iter;

/// Bytes before the first packet.
pub(crate) const HEADER: usize = 24;
/// Bytes of payload that were captured of each packet.
const PAYLOAD: usize = 100;

/// The captures by name.
pub(crate) fn all(packets: usize) -> [(&'static str, Vec<u8>); 3] {
    let mut make = Make(0x1234_5678_9abc_def1);
    [
        ("ipv4", make.capture(packets, |make, _| make.plain(4))),
        ("ipv6", make.capture(packets, |make, _| make.plain(6))),
        ("mixed", make.capture(packets, |make, number| make.mixed(number))),
    ]
}

struct Make(u64);

impl Make {
    fn random(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn capture(
        &mut self,
        packets: usize,
        mut frame: impl FnMut(&mut Self, usize) -> Vec<u8>,
    ) -> Vec<u8> {
        let mut out = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
        for number in 0..packets {
            let frame = frame(self, number);
            let length = (frame.len() as u32).to_le_bytes();
            out.extend((1_700_000_000 + (number / 1_000_000) as u32).to_le_bytes());
            out.extend(((number % 1_000_000) as u32).to_le_bytes());
            out.extend(length);
            out.extend(length);
            out.extend(frame);
        }
        out
    }

    fn host(&mut self) -> u16 {
        let [one, two] = [0, 0].map(|_| (self.random() >> 11) as f64 / (1_u64 << 53) as f64);
        ((one * two).powi(4) * 65536.0) as u16
    }

    /// A segment or a datagram, most of them segments.
    fn transport(&mut self) -> (u8, Vec<u8>) {
        let numbers = self.random().to_be_bytes();
        let ports = [0x01, 0xbb, numbers[0] | 0x80, numbers[1]];
        let (protocol, header) = if numbers[2] < 64 {
            (17, [&ports[..], &[0, 8 + PAYLOAD as u8], &numbers[3..5]].concat())
        } else {
            let options = [1, 1, 8, 10, 0, 1, 2, 3, numbers[7], 5, 6, 7];
            let rest = [0x80, 0x10, 1, 0, numbers[3], numbers[4], 0, 0];
            (6, [&ports[..], &numbers, &rest, &options].concat())
        };
        (protocol, [header, iter::repeat_n(0x61, PAYLOAD).collect()].concat())
    }

    fn ip(&mut self, version: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let [from, to] = [self.host().to_be_bytes(), self.host().to_be_bytes()];
        if version == 4 {
            let length = ((20 + payload.len()) as u16).to_be_bytes();
            let mut header = [
                &[0x45, 0, length[0], length[1], from[0], to[1], 0x40, 0, 61, protocol, 0, 0][..],
                &[198, 18, from[0], from[1], 100, 64, to[0], to[1]],
            ]
            .concat();
            let sum = wire::checksum::checksum(&header).to_be_bytes();
            header[10..12].copy_from_slice(&sum);
            return [&header, payload].concat();
        }
        let length = (payload.len() as u16).to_be_bytes();
        let prefix = [0x20, 0x01, 0x0d, 0xb8];
        let host = |side: u8, host: [u8; 2]| {
            [&prefix[..], &[side, host[0], 0, host[1], 2, 0, host[1], 0xff, 0xfe, 0, host[0], 1]]
                .concat()
        };
        let start = [0x60, 0, 0, 0, length[0], length[1], protocol, 61];
        [&start[..], &host(1, from), &host(2, to), payload].concat()
    }

    fn ethernet(&mut self, kind: u16, payload: &[u8]) -> Vec<u8> {
        let to = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, (self.random() >> 60) as u8];
        [&to[..], &kind.to_be_bytes(), payload].concat()
    }

    fn plain(&mut self, version: u8) -> Vec<u8> {
        let (protocol, transport) = self.transport();
        let ip = self.ip(version, protocol, &transport);
        self.ethernet(if version == 4 { 0x0800 } else { 0x86dd }, &ip)
    }

    /// Half of the packets plain, the others in tags, labels and tunnels, and errors.
    fn mixed(&mut self, number: usize) -> Vec<u8> {
        let version = if number.is_multiple_of(3) { 6 } else { 4 };
        let kind: u16 = if version == 4 { 0x0800 } else { 0x86dd };
        let (protocol, transport) = self.transport();
        let inner = self.ip(version, protocol, &transport);
        match number % 10 {
            0 => {
                let tagged = [&[0, 77][..], &kind.to_be_bytes(), &inner].concat();
                self.ethernet(0x8100, &tagged)
            }
            1 => {
                let labelled = [&[0, 1, 0x21, 64][..], &inner].concat();
                self.ethernet(0x8847, &labelled)
            }
            2 => {
                let gre = [&[0, 0][..], &kind.to_be_bytes(), &inner].concat();
                let outer = self.ip(4, 47, &gre);
                self.ethernet(0x0800, &outer)
            }
            3 => {
                let frame = self.ethernet(kind, &inner);
                let vxlan = [&[8, 0, 0, 0, 0, 0, 9, 0][..], &frame].concat();
                let length = ((8 + vxlan.len()) as u16).to_be_bytes();
                let udp = [&[0x9c, 0x40, 0x12, 0xb5][..], &length, &[0, 0], &vxlan].concat();
                let outer = self.ip(4, 17, &udp);
                self.ethernet(0x0800, &outer)
            }
            4 => {
                let error = [&[11, 0, 0, 0, 0, 0, 0, 0][..], &self.ip(4, 6, &transport)].concat();
                let outer = self.ip(4, 1, &error);
                self.ethernet(0x0800, &outer)
            }
            _ => self.ethernet(kind, &inner),
        }
    }
}
