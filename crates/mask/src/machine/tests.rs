//! Packets with planted secrets, nested four deep and cut everywhere: what is removed leaves no trace.

mod every;

use super::*;
use crate::{policy::Policy, program::Program};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::{IpProtocol, checksum};

const KEY: [u8; 32] = [
    21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121,
    121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
];

fn program(name: &str) -> Program {
    Policy::shipped(name).expect("a policy").compile().expect("a program")
}

fn unit(program: Program) -> Unit {
    Unit::new(program, Secrets::new(&KEY, MappingName::CryptoPan).expect("a key"))
}

fn of(text: &str) -> Unit {
    unit(Policy::read(text).expect("a policy").compile().expect("a program"))
}

fn masked(unit: &mut Unit, packet: &[u8]) -> Vec<u8> {
    let mut out = vec![0xee; 7];
    unit.mask(Link::Ethernet, packet, 1, &mut out);
    out
}

/// What a packet hides; each value of the source gives other secrets and the same shape.
pub(crate) struct Plant {
    state: u64,
    /// The addresses, payloads and options that it wrote, each of 4 bytes or more.
    secrets: Vec<Vec<u8>>,
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
    fn secret<const N: usize>(&mut self) -> [u8; N] {
        let secret = self.bytes();
        self.secrets.push(secret.to_vec());
        secret
    }

    fn ethernet(&mut self, kind: u16, payload: Vec<u8>) -> Vec<u8> {
        let [to, from] = [self.secret::<6>(), self.secret()];
        [&to[..], &from, &kind.to_be_bytes(), &payload].concat()
    }

    fn vlan(&mut self, kind: u16, payload: Vec<u8>) -> Vec<u8> {
        let id = u16::from_be_bytes(self.bytes()) & 0x0fff;
        [&id.to_be_bytes()[..], &kind.to_be_bytes(), &payload].concat()
    }

    fn mpls(&mut self, payload: Vec<u8>) -> Vec<u8> {
        let [a, b, c, ttl] = self.bytes();
        [&[a, b, c & 0xf0 | 1, ttl][..], &payload].concat()
    }

    fn ipv4(&mut self, protocol: u8, options: &[u8], payload: Vec<u8>) -> Vec<u8> {
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

    fn ipv6(&mut self, next: u8, payload: Vec<u8>) -> Vec<u8> {
        let [a, b, c, hops] = self.bytes();
        let length = (payload.len() as u16).to_be_bytes();
        let mut out = vec![0x60, a & 15, b, c, length[0], length[1], next, hops];
        out.extend(self.secret::<16>());
        out.extend(self.secret::<16>());
        [out, payload].concat()
    }

    fn udp(&mut self, to: Option<u16>, payload: Vec<u8>) -> Vec<u8> {
        let to = to.map_or_else(|| self.bytes(), u16::to_be_bytes);
        // VXLAN's own port would make a tunnel of what is none.
        let to = if to == [0x12, 0xb5] && payload.len() < 30 { [0, 53] } else { to };
        let length = ((8 + payload.len()) as u16).to_be_bytes();
        [&self.bytes::<2>()[..], &to, &length, &[1, 2], &payload].concat()
    }

    fn tcp(&mut self, payload: Vec<u8>) -> Vec<u8> {
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

    fn payload(&mut self) -> Vec<u8> {
        self.secret::<24>().to_vec()
    }

    /// IPv4's option of a route with two addresses, 12 bytes.
    fn route(&mut self, kind: u8, pointer: u8) -> Vec<u8> {
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

/// What stands in itself many times.
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

#[test]
fn what_strict_gives_depends_on_no_secret_wherever_the_packet_is_cut() {
    let mut unit = unit(program("strict"));
    for shape in 0..SHAPES {
        let one = Plant::new(0x1234_5678_9abc_def1).shape(shape);
        let other = Plant::new(0xfedc_ba98_7654_3211).shape(shape);
        assert_eq!(one.len(), other.len());
        for cut in 0..=one.len() {
            let (a, b) = (masked(&mut unit, &one[..cut]), masked(&mut unit, &other[..cut]));
            assert_eq!(a, b, "shape {shape} cut at {cut}");
            assert!(a.len() <= cut);
        }
    }
}

/// A header that is wholly there is done in one step, one that is cut field by field: both give the same.
#[test]
fn one_step_does_what_field_by_field_does() {
    for (name, _) in crate::policy::SHIPPED {
        let mut unit = unit(program(name));
        for shape in 0..SHAPES {
            let packet = Plant::new(shape as u64 + 5).shape(shape);
            let whole = masked(&mut unit, &packet);
            // The first 34 bytes hold IPv4's header, which is cut at each length; its fields that are
            // there are the same as in the whole, but for the checksum.
            for cut in 14..34.min(packet.len()) {
                let part = masked(&mut unit, &packet[..cut]);
                for (at, byte) in part.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                    assert_eq!(*byte, whole[at], "{name}, shape {shape} cut at {cut}, byte {at}");
                }
            }
        }
    }
}

#[test]
fn below_mpls_is_ip_only_if_it_proves_to_be() {
    let mut unit = unit(program("debug"));
    for shape in [9, 10] {
        let packet = Plant::new(40).shape(shape);
        assert_eq!(masked(&mut unit, &packet).len(), 18, "{shape}");
    }
    for version in [4, 6] {
        let mut plant = Plant::new(41);
        let udp = plant.udp(Some(53), vec![]);
        let (ip, header) = match version {
            4 => (plant.ipv4(17, &[], udp), 20),
            _ => (plant.ipv6(17, udp), 40),
        };
        let labelled = plant.mpls(ip);
        let packet = plant.ethernet(0x8847, labelled);
        assert_eq!(masked(&mut unit, &packet).len(), 18 + header + 8);
        // One of which a part is missing proves nothing.
        assert_eq!(masked(&mut unit, &packet[..packet.len() - 1]).len(), 18);
        let mut wrong = packet;
        wrong[18 + 5] ^= 1;
        let kept = 18;
        assert_eq!(masked(&mut unit, &wrong).len(), kept, "{version}");
    }
}

#[test]
fn a_second_fragment_header_does_not_make_a_packet_whole() {
    let mut unit = of("about = \"\"\npayload = true\n[fields]\n\"udp.*\" = \"keep\"");
    let packet = Plant::new(3).shape(13);
    // The headers, of which UDP's is the last.
    assert_eq!(masked(&mut unit, &packet).len(), 14 + 40 + 16 + 8);
}

#[test]
fn what_is_behind_a_datagram_is_none_of_it() {
    let mut unit = of("about = \"\"\npayload = true\n[fields]\n\"udp.*\" = \"keep\"\n\
        \"ipv4.*\" = \"keep\"");
    let mut plant = Plant::new(6);
    let udp = plant.udp(Some(53), vec![7; 10]);
    let ip = plant.ipv4(17, &[], [udp, vec![8; 12]].concat());
    let out = masked(&mut unit, &plant.ethernet(0x0800, ip));
    assert_eq!(out.len(), 14 + 20 + 18);
    let ends = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&out[at..at + 4]).expect("4 bytes"));
    let sum = checksum::pseudo(ends(26), ends(30), 18, IpProtocol::UDP).expect("one family");
    assert_eq!(sum.bytes(&out[34..]).fold(), 0xffff);
}

#[test]
fn segments_are_addresses_and_their_options_are_not() {
    let mut unit = unit(program("research"));
    let packet = Plant::new(12).shape(11);
    let out = masked(&mut unit, &packet);
    let pan = crate::mapping::CryptoPan::new(&KEY);
    let bits = |bytes: &[u8]| u128::from_be_bytes(bytes.try_into().expect("16 bytes"));
    // The index of the last segment is kept, flags and tag are not.
    assert_eq!(out[54..62], [17, 6, 4, 1, 1, 0, 0, 0]);
    for at in [62, 78] {
        assert_eq!(bits(&out[at..at + 16]), pan.map6(bits(&packet[at..at + 16])));
    }
    assert_eq!(out[94..110], [0; 16]);
    // More segments than there is room for.
    let mut wrong = packet;
    wrong[58] = 3;
    assert_eq!(masked(&mut unit, &wrong).len(), 14 + 40 + 56);
}

#[test]
fn checksums_of_what_is_kept_are_right() {
    // Everything kept: each checksum comes out as a stack would compute it.
    let mut unit = of("about = \"all\"\npayload = true\n[fields]\n\"ethernet.*\" = \"keep\"\n\
        \"ipv4.*\" = \"keep\"\n\"ipv6.*\" = \"keep\"\n\"tcp.*\" = \"keep\"\n\"udp.*\" = \"keep\"\n\
        \"icmp.*\" = \"keep\"\n\"icmpv6.*\" = \"keep\"");
    let mut plant = Plant::new(5);
    let payload = plant.payload();
    let tcp = plant.tcp(payload.clone());
    let ip = plant.ipv4(6, &[], tcp);
    let out = masked(&mut unit, &plant.ethernet(0x0800, ip));
    assert!(checksum::verifies(&out[14..34]));
    let ends = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&out[at..at + 4]).expect("4 bytes"));
    let segment = &out[34..];
    let length = segment.len() as u32;
    let sum = checksum::pseudo(ends(26), ends(30), length, IpProtocol::TCP).expect("one family");
    assert_eq!(sum.bytes(segment).fold(), 0xffff);
    assert_eq!(&out[out.len() - 24..], payload);

    let udp = plant.udp(Some(53), payload);
    let ip = plant.ipv6(17, udp);
    let out = masked(&mut unit, &plant.ethernet(0x86dd, ip));
    let ends = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&out[at..at + 16]).expect("16"));
    let datagram = &out[54..];
    let sum = checksum::pseudo_v6(ends(22), ends(38), datagram.len() as u32, IpProtocol::UDP);
    assert_eq!(sum.bytes(datagram).fold(), 0xffff);
}

#[test]
fn a_removed_payload_is_cut_and_its_checksum_is_that_of_zeros() {
    let mut unit = unit(program("research"));
    let mut plant = Plant::new(9);
    let (payload, mut zeros) = (plant.payload(), vec![0; 24]);
    let udp = Plant::new(3).udp(Some(53), payload);
    let ip = Plant::new(4).ipv4(17, &[], udp);
    let out = masked(&mut unit, &plant.ethernet(0x0800, ip));
    assert_eq!(out.len(), 14 + 20 + 8);
    zeros.splice(0..0, out[34..].iter().copied());
    let ends = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&out[at..at + 4]).expect("4 bytes"));
    let sum = checksum::pseudo(ends(26), ends(30), 32, IpProtocol::UDP).expect("one family");
    assert_eq!(sum.bytes(&zeros).fold(), 0xffff);
}

#[test]
fn options_of_neighbour_discovery_keep_their_type_and_what_the_policy_names() {
    let mut unit = unit(program("research"));
    let packet = Plant::new(8).shape(5);
    let out = masked(&mut unit, &packet);
    let option = 14 + 40 + 16;
    // Type, length, the prefix's length and flags, both lifetimes; then the prefix, mapped.
    assert_eq!(out[option..option + 12], packet[option..option + 12]);
    assert_eq!(out[option + 12..option + 16], [0; 4]);
    let bits = |bytes: &[u8]| u128::from_be_bytes(bytes.try_into().expect("16 bytes"));
    let pan = crate::mapping::CryptoPan::new(&KEY);
    let mapped = pan.map6(bits(&packet[option + 16..option + 32]));
    assert_eq!(bits(&out[option + 16..option + 32]), mapped);
    // An unknown one is empty.
    assert_eq!(out[option + 32..], [&[25, 2][..], &[0; 14]].concat());
}

/// What stands behind a quote is no packet, even where the quoted headers would go on there.
#[test]
fn extensions_behind_a_quote_are_removed() {
    let mut unit = unit(program("research"));
    let mut plant = Plant::new(31);
    // Six headers of 20 bytes, then TCP's, of which 8 are quoted.
    let tunnels = (0..6).fold(vec![0x77; 20], |inner, depth| {
        plant.ipv4(if depth == 0 { 6 } else { 4 }, &[], inner)
    });
    let extension = [0x5a; 24];
    for (kind, words) in [(3, 32), (11, 0), (12, 32)] {
        let start = [kind, 0, 0, 0, 0, words, 0, 0];
        let error = [&start[..], &tunnels[..128], &extension].concat();
        let ip = Plant::new(2).ipv4(1, &[], error);
        let out = masked(&mut unit, &Plant::new(3).ethernet(0x0800, ip));
        assert_eq!(out.len(), 14 + 20 + 8 + 128);
        // The ports and the sequence number are the last that is there.
        assert_eq!(out[out.len() - 8..], [0x77; 8]);
    }
}

#[test]
fn addresses_are_mapped_alike_wherever_they_stand() {
    let mut unit = unit(program("research"));
    let mut plant = Plant::new(21);
    let quoted = plant.ipv4(17, &[], vec![0; 8]);
    let error = [vec![11, 0, 0, 0, 0, 0, 0, 0], quoted.clone()].concat();
    let mut ip = plant.ipv4(1, &[], error);
    // The error goes back to who sent the packet.
    ip[16..20].copy_from_slice(&quoted[12..16]);
    let out = masked(&mut unit, &plant.ethernet(0x0800, ip.clone()));
    assert_eq!(out[30..34], out[14 + 28 + 12..14 + 28 + 16]);
    let pan = crate::mapping::CryptoPan::new(&KEY);
    let original = Ipv4Addr::from(<[u8; 4]>::try_from(&ip[16..20]).expect("4 bytes"));
    let mapped = Ipv4Addr::from(<[u8; 4]>::try_from(&out[30..34]).expect("4 bytes"));
    assert_eq!(pan.map(original.into()), IpAddr::from(mapped));
}

#[test]
fn operations_do_what_they_say() {
    let mut packet = Plant::new(1).ethernet(0x0800, Plant::new(2).ipv4(17, &[], vec![0x12; 8]));
    packet[26..30].copy_from_slice(&[198, 51, 100, 7]);
    packet[22] = 250;
    let source = |action: &str| -> [u8; 4] {
        let mut unit = of(&format!(
            "about = \"\"\n[fields]\n\"ipv4.source\" = {action}\n\"ipv4.ttl\" = \"keep\""
        ));
        let out = masked(&mut unit, &packet);
        assert_eq!(out[22], 250);
        out[26..30].try_into().expect("4 bytes")
    };
    assert_eq!(source("\"keep\""), [198, 51, 100, 7]);
    assert_eq!(source("\"remove\""), [0; 4]);
    assert_eq!(source("{ constant = 0x01020304 }"), [1, 2, 3, 4]);
    assert_eq!(source("{ xor = 0xff }"), [198, 51, 100, 248]);
    assert_eq!(source("{ shift = 0xffffffff }"), [198, 51, 100, 6]);
    assert_eq!(source("{ truncate = 24 }"), [198, 51, 100, 0]);
    assert_eq!(source("{ truncate = 0 }"), [0; 4]);
    assert_eq!(source("{ truncate = 32 }"), [198, 51, 100, 7]);
    assert_eq!(source("{ permute = 16 }")[..2], [198, 51]);
    assert_ne!(source("{ permute = 16 }")[2..], [100, 7]);
    assert_eq!(source("\"encrypt\""), source("{ permute = 0 }"));
    assert_ne!(source("\"hash\""), source("\"random\""));
}

#[test]
fn bits_at_an_offset_are_named_by_a_field_before_them() {
    let packet = Plant::new(1).ethernet(0x0800, Plant::new(2).ipv4(17, &[], vec![0x12; 8]));
    let mut unit = of("about = \"\"\n[fields]\n\"ethernet.source+0:16\" = \"keep\"\n\
        \"ipv4.source+3:8\" = { constant = 1 }\n\"ipv4.source+1:16\" = \"encrypt\"");
    let out = masked(&mut unit, &packet);
    assert_eq!(out[6..12], [packet[6], packet[7], 0, 0, 0, 0]);
    assert_eq!((out[26], out[29]), (0, 1));
    assert_ne!(out[27..29], packet[27..29]);
    let refused = |line: &str| {
        let text = format!("about = \"\"\n[fields]\n{line}");
        Policy::read(&text).expect("TOML").compile().expect_err(line).to_string()
    };
    for (line, says) in [
        ("\"ipv4.source+0:12\" = \"keep\"", "FIELD+BYTES:8 or FIELD+BYTES:16"),
        ("\"ipv4.source+x:8\" = \"keep\"", "FIELD+BYTES:8 or FIELD+BYTES:16"),
        ("\"ipv4.sorce+0:8\" = \"keep\"", "did you mean \"ipv4.source\""),
        ("\"ipv4.source+250:8\" = \"keep\"", "FIELD+BYTES:8 or FIELD+BYTES:16"),
        ("\"ipv4.source+8:8\" = \"keep\"", "beyond the header's fixed part"),
        // A checksum, structure, and what another line is about.
        ("\"ipv4.ttl+2:16\" = \"keep\"", "there is no field"),
        ("\"ipv4.ttl+1:8\" = { constant = 6 }", "another instruction writes there"),
        (
            "\"ipv4.*\" = \"keep\"\n\"ipv4.source+0:8\" = \"keep\"",
            "another instruction writes there",
        ),
    ] {
        assert!(refused(line).contains(says), "{line}: {}", refused(line));
    }
}

#[test]
fn random_differs_from_packet_to_packet_and_hash_does_not() {
    let packet = Plant::new(1).ethernet(0x0800, Plant::new(2).ipv4(17, &[], vec![0x12; 8]));
    let mut unit = of("about = \"\"\n[fields]\n\"ipv4.source\" = \"random\"\n\
        \"ipv4.destination\" = \"hash\"");
    let (mut one, mut two) = (Vec::new(), Vec::new());
    unit.mask(Link::Ethernet, &packet, 1, &mut one);
    unit.mask(Link::Ethernet, &packet, 2, &mut two);
    assert_ne!(one[26..30], two[26..30]);
    assert_eq!(one[30..34], two[30..34]);
}

proptest! {
    #[test]
    fn any_bytes_are_masked_without_harm(packet in prop::collection::vec(any::<u8>(), 0..200)) {
        for (name, _) in crate::policy::SHIPPED {
            let mut unit = unit(program(name));
            for link in [Link::Ethernet, Link::Ip] {
                let mut out = Vec::new();
                unit.mask(link, &packet, 0, &mut out);
                prop_assert!(out.len() <= packet.len());
            }
        }
    }

    #[test]
    fn permutations_are_ones(bits in 1u32..=12, tweak: u128) {
        let secrets = Secrets::new(&KEY, MappingName::CryptoPan).expect("a key");
        let mut seen = vec![false; 1 << bits];
        for value in 0..1u128 << bits {
            let to = secrets.permute(9, tweak, value, bits);
            prop_assert!(!std::mem::replace(&mut seen[to as usize], true), "{value} of {bits}");
        }
    }

    #[test]
    fn what_is_remembered_is_what_would_be_computed(
        values in prop::collection::vec((0u32..100, 0usize..4), 1..40),
    ) {
        let actions = ["\"encrypt\"", "\"hash\"", "{ permute = 8 }", "{ permute = 16 }"];
        let mut units = actions.map(|action| of(&format!(
            "about = \"\"\n[fields]\n\"ipv4.source\" = {action}\n\"ipv4.identification\" = {action}"
        )));
        for (value, which) in values {
            let mut packet = Plant::new(1).ethernet(0x0800, Plant::new(2).ipv4(17, &[], vec![0x12; 8]));
            packet[26..30].copy_from_slice(&value.to_be_bytes());
            packet[18..20].copy_from_slice(&(value as u16).to_be_bytes());
            let mut fresh = of(&format!(
                "about = \"\"\n[fields]\n\"ipv4.source\" = {0}\n\"ipv4.identification\" = {0}",
                actions[which]
            ));
            prop_assert_eq!(masked(&mut units[which], &packet), masked(&mut fresh, &packet));
        }
    }

    #[test]
    fn the_cache_gives_what_the_mapping_gives(addresses in prop::collection::vec(0u32..4096, 1..200)) {
        let pan = crate::mapping::CryptoPan::new(&KEY);
        let mut secrets = Secrets::new(&KEY, MappingName::CryptoPan).expect("a key");
        for address in addresses {
            prop_assert_eq!(secrets.prefix4(address), pan.map4(address));
            let wide = u128::from(address) << 64 | 7;
            prop_assert_eq!(secrets.prefix6(wide), pan.map6(wide));
        }
    }
}
