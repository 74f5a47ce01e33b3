//! Packets with planted secrets.

use wire::checksum;

/// A text that contains itself many times.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stack {
    /// Tags of VLANs.
    Tags,
    /// IPv4 in IPv4.
    Ipv4,
    /// IPv6 in IPv6.
    Ipv6,
    /// GRE between IPv4.
    Gre,
    /// Ethernet in VXLAN, whose header counts as one with UDP's.
    Vxlan,
}

pub(crate) const STACKS: [Stack; 5] =
    [Stack::Tags, Stack::Ipv4, Stack::Ipv6, Stack::Gre, Stack::Vxlan];

/// What a packet hides; each value of the source gives other secrets and the same shape.
pub(crate) struct Plant {
    state: u64,
    /// The addresses, payloads and options that it wrote, each of 4 bytes or more.
    pub(super) secrets: Vec<Vec<u8>>,
}

impl Plant {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, secrets: Vec::new() }
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| {
            // xorshift64*
            self.state ^= self.state >> 12;
            self.state ^= self.state << 25;
            self.state ^= self.state >> 27;
            (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
        })
    }

    /// What no shipped policy lets through.
    pub(super) fn secret<const N: usize>(&mut self) -> [u8; N] {
        let secret = self.bytes();
        self.secrets.push(secret.to_vec());
        secret
    }

    pub(super) fn ethernet(&mut self, kind: u16, payload: Vec<u8>) -> Vec<u8> {
        let [to, from] = [self.secret::<6>(), self.secret()];
        [&to[..], &from, &kind.to_be_bytes(), &payload].concat()
    }

    pub(super) fn vlan(&mut self, kind: u16, payload: Vec<u8>) -> Vec<u8> {
        let id = u16::from_be_bytes(self.bytes()) & 0x0fff;
        [&id.to_be_bytes()[..], &kind.to_be_bytes(), &payload].concat()
    }

    pub(super) fn mpls(&mut self, payload: Vec<u8>) -> Vec<u8> {
        let [a, b, c, ttl] = self.bytes();
        [&[a, b, c & 0xf0 | 1, ttl][..], &payload].concat()
    }

    pub(super) fn ipv4(&mut self, protocol: u8, options: &[u8], payload: Vec<u8>) -> Vec<u8> {
        let header = 20 + options.len();
        let [id0, id1, ttl] = self.bytes();
        let length = ((header + payload.len()) as u16).to_be_bytes();
        let mut out = vec![0x40 | (header / 4) as u8, 0, length[0], length[1], id0, id1, 0, 0];
        out.extend([ttl, protocol, 0, 0]);
        out.extend(self.secret::<4>());
        out.extend(self.secret::<4>());
        out.extend(options);
        let sum = checksum::checksum(&out);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
        [out, payload].concat()
    }

    pub(super) fn ipv6(&mut self, next: u8, payload: Vec<u8>) -> Vec<u8> {
        let [a, b, c, hops] = self.bytes();
        let length = (payload.len() as u16).to_be_bytes();
        let mut out = vec![0x60, a & 15, b, c, length[0], length[1], next, hops];
        out.extend(self.secret::<16>());
        out.extend(self.secret::<16>());
        [out, payload].concat()
    }

    pub(super) fn udp(&mut self, to: Option<u16>, payload: Vec<u8>) -> Vec<u8> {
        let to = to.map_or_else(|| self.bytes(), u16::to_be_bytes);
        // VXLAN's own port would make a tunnel of what is none.
        let to = if to == [0x12, 0xb5] && payload.len() < 30 { [0, 53] } else { to };
        let length = ((8 + payload.len()) as u16).to_be_bytes();
        [&self.bytes::<2>()[..], &to, &length, &[1, 2], &payload].concat()
    }

    pub(super) fn tcp(&mut self, payload: Vec<u8>) -> Vec<u8> {
        let mut out = self.bytes::<12>().to_vec();
        out.extend([0xd0, 0x18]);
        out.extend(self.bytes::<6>());
        out.extend([2, 4, 5, 0xb4, 8, 10]);
        out.extend(self.bytes::<8>());
        out.extend([1, 1, 30, 12]);
        out.extend(self.secret::<10>());
        out.extend([0; 4]);
        [out, payload].concat()
    }

    pub(super) fn payload(&mut self) -> Vec<u8> {
        self.secret::<24>().to_vec()
    }

    /// IPv4's option of a route with two addresses, 12 bytes.
    pub(super) fn route(&mut self, kind: u8, pointer: u8) -> Vec<u8> {
        [&[kind, 11, pointer][..], &self.secret::<4>(), &self.secret::<4>(), &[0]].concat()
    }

    /// So many headers, the first Ethernet's and the last TCP's or UDP's, and a payload.
    pub(crate) fn stack(&mut self, stack: Stack, headers: usize, protocol: u8) -> Vec<u8> {
        let payload = self.payload();
        let transport = match protocol {
            6 => self.tcp(payload),
            _ => self.udp(None, payload),
        };
        let (mut packet, mut kind) = match stack {
            Stack::Ipv6 => (self.ipv6(protocol, transport), 0x86dd),
            _ => (self.ipv4(protocol, &[], transport), 0x0800),
        };
        // Beside the outer Ethernet there are these two; tags make up for what is no full round.
        let (round, rounds) = match stack {
            Stack::Tags => (1, 0),
            Stack::Ipv4 | Stack::Ipv6 => (1, headers - 3),
            Stack::Gre => (2, (headers - 3) / 2),
            Stack::Vxlan => (3, (headers - 3) / 3),
        };
        for _ in 0..rounds {
            packet = match stack {
                Stack::Tags | Stack::Ipv4 => self.ipv4(4, &[], packet),
                Stack::Ipv6 => self.ipv6(41, packet),
                Stack::Gre => self.ipv4(47, &[], [vec![0, 0, 8, 0], packet].concat()),
                Stack::Vxlan => {
                    let frame = self.ethernet(0x0800, packet);
                    let vxlan = [&[8, 0, 0, 0][..], &self.bytes::<3>(), &[0], &frame].concat();
                    let udp = self.udp(Some(4789), vxlan);
                    self.ipv4(17, &[], udp)
                }
            };
        }
        for _ in 0..headers - 3 - round * rounds {
            packet = self.vlan(kind, packet);
            kind = 0x8100;
        }
        self.ethernet(kind, packet)
    }

    /// A packet of each shape.
    pub(crate) fn shape(&mut self, shape: usize) -> Vec<u8> {
        // ARP and neighbour discovery have none.
        let payload = if matches!(shape, 3..=5) { vec![] } else { self.payload() };
        match shape {
            0 => {
                let tcp = self.tcp(payload);
                let route = self.route(7, 12);
                let ip = self.ipv4(6, &route, tcp);
                self.ethernet(0x0800, ip)
            }
            1 => {
                let udp = self.udp(None, payload);
                let ip = self.ipv6(17, udp);
                let tagged = self.vlan(0x86dd, ip);
                let tagged = self.vlan(0x8100, tagged);
                self.ethernet(0x88a8, tagged)
            }
            // An error that quotes a packet in a tunnel, in VXLAN, in GRE: four deep.
            2 => {
                let tcp = self.tcp(payload);
                let quoted = self.ipv4(6, &[], tcp);
                let inner = self.ipv4(4, &[], quoted);
                let error = [vec![3, 4, 9, 9, 0, 0, 5, 0xdc], inner].concat();
                let ip = self.ipv4(1, &[], error);
                let frame = self.ethernet(0x0800, ip);
                let vxlan = [&[8, 0, 0, 0][..], &self.bytes::<3>(), &[0], &frame].concat();
                let udp = self.udp(Some(4789), vxlan);
                let ip = self.ipv6(17, udp);
                let gre = [&[0x30, 0, 0x86, 0xdd][..], &self.bytes::<8>(), &ip].concat();
                let ip = self.ipv4(47, &[], gre);
                let labelled = self.mpls(ip);
                self.ethernet(0x8847, labelled)
            }
            3 => {
                let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
                for _ in 0..2 {
                    arp.extend(self.secret::<6>());
                    arp.extend(self.secret::<4>());
                }
                arp.extend([0; 18]);
                self.ethernet(0x0806, arp)
            }
            4 => {
                let target = self.secret::<16>();
                let link = self.secret::<6>();
                let message = [&[135, 0, 7, 7, 0, 0, 0, 0][..], &target, &[1, 1], &link].concat();
                let ip = self.ipv6(58, message);
                self.ethernet(0x86dd, ip)
            }
            5 => {
                let prefix = self.secret::<16>();
                let [lifetimes, reserved] =
                    [self.bytes::<8>().to_vec(), self.secret::<4>().to_vec()];
                let start = [&[3, 4][..], &self.bytes::<2>()].concat();
                let option = [&start[..], &lifetimes, &reserved, &prefix].concat();
                let start = [&[134, 0, 7, 7][..], &self.bytes::<12>()].concat();
                let unknown = [&[25, 2, 0, 0][..], &self.secret::<12>()].concat();
                let ip = self.ipv6(58, [start, option, unknown].concat());
                self.ethernet(0x86dd, ip)
            }
            // A routing header, options and a fragment, in 6in4.
            6 => {
                let udp = self.udp(None, payload);
                let fragment = [&[17, 0, 0, 1][..], &self.bytes::<4>(), &udp].concat();
                let list = [self.secret::<16>(), self.secret()].concat();
                let routing = [&[44, 4, 0, 2, 0, 0, 0, 0][..], &list, &fragment];
                let options = [&[43, 1, 5, 10][..], &self.secret::<10>(), &[1, 0]];
                let ip = self.ipv6(0, [options.concat(), routing.concat()].concat());
                let ip = self.ipv4(41, &[], ip);
                self.ethernet(0x0800, ip)
            }
            // Protocols that nothing is known of.
            7 => {
                let ip = self.ipv4(132, &[], payload);
                self.ethernet(0x0800, ip)
            }
            8 => self.ethernet(0x88cc, payload),
            // A pseudowire's frame, whose addresses begin like IPv4 and like IPv6.
            9 | 10 => {
                let tcp = self.tcp(payload);
                let ip = self.ipv4(6, &[], tcp);
                let mut frame = self.ethernet(0x0800, ip);
                let first = if shape == 9 { 0x45 } else { 0x60 };
                let noted = self.secrets.iter_mut().find(|it| it[..] == frame[..6]);
                noted.expect("its address")[0] = first;
                frame[0] = first;
                let labelled = self.mpls(frame);
                self.ethernet(0x8847, labelled)
            }
            // Segments of a route with options behind them.
            11 => {
                let udp = self.udp(None, payload);
                let start = [17, 6, 4, 1, 1, 0];
                let options = [&[5, 14, 0, 0][..], &self.secret::<12>()].concat();
                let list = [self.secret::<16>(), self.secret()].concat();
                let routing = [&start[..], &self.bytes::<2>(), &list, &options, &udp].concat();
                let ip = self.ipv6(43, routing);
                self.ethernet(0x86dd, ip)
            }
            // Another protocol on VXLAN's port, and bytes behind a datagram.
            12 => {
                let inner = self.ipv4(17, &[], vec![0; 20]);
                let frame = self.ethernet(0x0800, inner);
                let other = [&[8, 0, 0, 1][..], &self.bytes::<3>(), &[0], &frame].concat();
                let udp = self.udp(Some(4789), other);
                let ip = self.ipv4(17, &[], [udp, payload].concat());
                self.ethernet(0x0800, ip)
            }
            // Two fragment headers, of which the second says that nothing is missing.
            13 => {
                let udp = self.udp(None, payload);
                let second = [&[17, 0, 0, 0][..], &self.bytes::<4>(), &udp].concat();
                let first = [&[44, 0, 0, 1][..], &self.bytes::<4>(), &second].concat();
                let ip = self.ipv6(44, first);
                self.ethernet(0x86dd, ip)
            }
            14 => {
                let udp = self.udp(None, payload);
                let quoted = self.ipv4(17, &[], udp);
                let redirect = [&[5, 1, 0, 0][..], &self.secret::<4>(), &quoted].concat();
                let ip = self.ipv4(1, &[], redirect);
                self.ethernet(0x0800, ip)
            }
            // A loose source route that has further to go.
            15 => {
                let tcp = self.tcp(payload);
                let route = self.route(131, 4);
                let ip = self.ipv4(6, &route, tcp);
                self.ethernet(0x0800, ip)
            }
            // A strict one that was gone to its end, quoted below a router alert.
            16 => {
                let tcp = self.tcp(payload);
                let route = self.route(137, 12);
                let quoted = self.ipv4(6, &route, tcp);
                let error = [vec![3, 5, 0, 0, 0, 0, 0, 0], quoted].concat();
                let ip = self.ipv4(1, &[148, 4, 0, 0], error);
                self.ethernet(0x0800, ip)
            }
            // The same in a tunnel whose route has further to go: each header has its own goal.
            _ => {
                let tcp = self.tcp(payload);
                let route = self.route(137, 12);
                let inner = self.ipv4(6, &route, tcp);
                let route = self.route(131, 8);
                let ip = self.ipv4(4, &route, inner);
                self.ethernet(0x0800, ip)
            }
        }
    }
}

pub(crate) const SHAPES: usize = 18;
