//! BGP-LS from bytes to a network, field by field as RFC 9552 and RFC 8571 give them.

use bgp::{
    link_state::{Graph, GraphChange, LinkId, Properties},
    message::learned::Unreadable,
};
use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

/// A TLV: type and length of two octets each.
fn tlv(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes
}

const OSPF: u8 = 3;
const ISIS: u8 = 2;

/// An NLRI's descriptors of a node: AS 64500 and an IGP Router-ID (RFC 9552 section 5.2.1).
fn node(kind: u16, igp: &[u8]) -> Vec<u8> {
    tlv(kind, &[tlv(512, &64500_u32.to_be_bytes()), tlv(515, igp)].concat())
}

/// An NLRI: its type, a protocol, the instance 0, and what follows.
fn nlri(kind: u16, protocol: u8, rest: &[Vec<u8>]) -> Vec<u8> {
    tlv(kind, &[vec![protocol], vec![0; 8], rest.concat()].concat())
}

fn node_nlri(protocol: u8, igp: &[u8]) -> Vec<u8> {
    nlri(1, protocol, &[node(256, igp)])
}

fn link_nlri(protocol: u8, from: &[u8], to: &[u8], descriptors: &[Vec<u8>]) -> Vec<u8> {
    nlri(2, protocol, &[node(256, from), node(257, to), descriptors.concat()])
}

fn prefix_nlri(protocol: u8, at: &[u8], descriptors: &[Vec<u8>]) -> Vec<u8> {
    nlri(3, protocol, &[node(256, at), descriptors.concat()])
}

/// TLV 265: length in bits and as many octets as hold them.
fn reachable(length: u8, octets: &[u8]) -> Vec<u8> {
    tlv(265, &[&[length], octets].concat())
}

fn attribute(code: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x90, code];
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes
}

fn update(attributes: &[Vec<u8>]) -> Vec<u8> {
    let attributes = attributes.concat();
    let mut bytes = vec![0, 0];
    bytes.extend((attributes.len() as u16).to_be_bytes());
    bytes.extend(attributes);
    bytes
}

/// An UPDATE that announces NLRIs with one BGP-LS Attribute.
fn announce(nlris: &[Vec<u8>], about: &[Vec<u8>]) -> Vec<u8> {
    let reach = [&[0x40, 0x04, 71, 4, 192, 0, 2, 1, 0][..], &nlris.concat()].concat();
    update(&[attribute(14, &reach), attribute(29, &about.concat())])
}

fn withdraw(nlris: &[Vec<u8>]) -> Vec<u8> {
    update(&[attribute(15, &[&[0x40, 0x04, 71][..], &nlris.concat()].concat())])
}

/// A database, and what someone knows who takes every change.
struct Seen {
    graph: Graph,
    now: Instant,
    routers: BTreeMap<IpAddr, Option<String>>,
    links: BTreeMap<LinkId, Properties>,
    prefixes: Vec<String>,
}

impl Seen {
    fn new() -> Self {
        let now = Instant::now();
        let mut graph = Graph::new(100);
        graph.begin(now);
        let (routers, links) = (BTreeMap::new(), BTreeMap::new());
        Self { graph, now, routers, links, prefixes: Vec::new() }
    }

    fn update(&mut self, body: &[u8]) {
        self.graph.update(body).unwrap();
        for change in self.graph.take_changes() {
            match change {
                GraphChange::Router { id, name } => {
                    self.routers.insert(id, name);
                }
                GraphChange::RemoveRouter(id) => assert!(self.routers.remove(&id).is_some()),
                GraphChange::Link(id, properties) => {
                    self.links.insert(id, properties);
                }
                GraphChange::RemoveLink(id) => assert!(self.links.remove(&id).is_some()),
                GraphChange::Prefix(prefix, at) => self.prefixes.push(format!("{prefix} {at}")),
                GraphChange::RemovePrefix(prefix, at) => {
                    let text = format!("{prefix} {at}");
                    let place = self.prefixes.iter().position(|other| *other == text);
                    self.prefixes.remove(place.expect("it was there"));
                }
            }
        }
        self.prefixes.sort();
    }

    fn links(&self) -> Vec<String> {
        self.links
            .iter()
            .map(|(id, properties)| {
                format!("{}>{} {} {:?}", id.from, id.to, id.id, properties.igp_metric)
            })
            .collect()
    }
}

const A: [u8; 4] = [10, 8, 0, 1];
const B: [u8; 4] = [10, 8, 0, 2];
const C: [u8; 4] = [10, 8, 0, 3];

#[test]
fn a_link_has_its_attributes_in_the_units_of_this_program() {
    let mut seen = Seen::new();
    seen.update(&announce(&[node_nlri(OSPF, &A)], &[tlv(1026, b"core-1")]));
    seen.update(&announce(&[node_nlri(OSPF, &B)], &[]));
    assert_eq!(seen.routers[&IpAddr::from(A)].as_deref(), Some("core-1"));
    assert_eq!(seen.routers[&IpAddr::from(B)], None);
    // 10 Gbit/s is 1.25e9 bytes a second, 0x4e9502f9 as an IEEE float.
    let ten = 0x4e95_02f9_u32.to_be_bytes();
    let about = [
        tlv(1089, &ten),
        tlv(1091, &[&[0; 28][..], &ten].concat()),
        tlv(1092, &700_u32.to_be_bytes()),
        tlv(1095, &[0, 10]),
        // Delay: the anomalous flag, then 3,000 microseconds in 24 bits.
        tlv(1114, &[0x80, 0, 0x0b, 0xb8]),
        tlv(1115, &[0, 0, 1, 0, 0, 0, 2, 0]),
        // Loss of 1 %: 333,333 steps of 0.000003 %.
        tlv(1117, &[0, 0x05, 0x16, 0x15]),
        tlv(1120, &ten),
        // A route tag means nothing to a link, and one of a future type means nothing at all.
        tlv(1153, &[0, 0, 0, 1]),
        tlv(64000, &[1, 2, 3]),
    ];
    let link = link_nlri(OSPF, &A, &B, &[tlv(258, &[0, 0, 0, 7, 0, 0, 0, 8])]);
    seen.update(&announce(std::slice::from_ref(&link), &about));
    let id = LinkId { from: A.into(), to: B.into(), id: 7 };
    let properties = seen.links[&id];
    assert_eq!(properties.bandwidth, Some(10_000.0));
    assert_eq!((properties.unreserved, properties.utilized), (Some(10_000.0), Some(10_000.0)));
    assert_eq!((properties.igp_metric, properties.te_metric), (Some(10), Some(700)));
    assert_eq!(properties.delay, Some(3.0));
    assert!((properties.loss.unwrap() - 0.01).abs() < 1e-6, "{properties:?}");
    // Without the average the least delay is taken; the old, the wide metric.
    seen.update(&announce(
        std::slice::from_ref(&link),
        &[tlv(1115, &[0, 0, 1, 0, 0, 0, 2, 0]), tlv(1095, &[1, 0, 0])],
    ));
    assert_eq!(seen.links[&id].delay, Some(0.256));
    assert_eq!(seen.links[&id].igp_metric, Some(65536));
    seen.update(&announce(std::slice::from_ref(&link), &[tlv(1095, &[0xff])]));
    assert_eq!(seen.links[&id].igp_metric, Some(63));
    // Not a number, negative, cut short.
    let wrong = [tlv(1089, &[0x7f, 0xc0, 0, 0]), tlv(1120, &[0xff, 0x80, 0, 0]), tlv(1092, &[1])];
    seen.update(&announce(std::slice::from_ref(&link), &wrong));
    assert_eq!(seen.links[&id], Properties::default());
    assert_eq!(seen.graph.counters().malformed, 2, "the route tag and the metric");
    seen.update(&withdraw(&[link]));
    seen.update(&withdraw(&[node_nlri(OSPF, &A)]));
    assert_eq!((seen.links.len(), seen.routers.len()), (0, 1));
}

#[test]
fn parallel_links_are_distinguished_by_identifier_or_address() {
    let mut seen = Seen::new();
    seen.update(&announce(
        &[
            link_nlri(OSPF, &A, &B, &[tlv(259, &[192, 0, 2, 1]), tlv(260, &[192, 0, 2, 2])]),
            link_nlri(OSPF, &A, &B, &[tlv(259, &[192, 0, 2, 5]), tlv(260, &[192, 0, 2, 6])]),
        ],
        &[tlv(1095, &[0, 5])],
    ));
    let expected = ["10.8.0.1>10.8.0.2 3221225985 Some(5)", "10.8.0.1>10.8.0.2 3221225989 Some(5)"];
    assert_eq!(seen.links(), expected);
}

/// RFC 9552 section 5.2.1.4: OSPF's 8 octets and IS-IS's 7 name a network between routers.
#[test]
fn a_network_between_routers_becomes_links_between_them() {
    for (protocol, routers, lan) in [
        (OSPF, [&A[..], &B, &C], &[10, 8, 0, 1, 192, 0, 2, 1][..]),
        (
            ISIS,
            [&[0, 0, 0, 0, 0, 1][..], &[0, 0, 0, 0, 0, 2], &[0, 0, 0, 0, 0, 3]],
            &[0, 0, 0, 0, 0, 1, 4],
        ),
    ] {
        let mut seen = Seen::new();
        for (at, router) in routers.iter().enumerate() {
            let id = tlv(1028, &[10, 8, 0, at as u8 + 1]);
            seen.update(&announce(&[node_nlri(protocol, router)], &[id]));
            let metric = tlv(1095, &[0, 10 * (at as u8 + 1)]);
            let address = tlv(259, &[0, 0, 0, at as u8 + 1]);
            seen.update(&announce(&[link_nlri(protocol, router, lan, &[address])], &[metric]));
            seen.update(&announce(&[link_nlri(protocol, lan, router, &[])], &[tlv(1095, &[0, 0])]));
        }
        seen.update(&announce(&[node_nlri(protocol, lan)], &[]));
        assert_eq!(seen.routers.len(), 3, "the network is no router");
        assert_eq!(
            seen.links(),
            [
                "10.8.0.1>10.8.0.2 1 Some(10)",
                "10.8.0.1>10.8.0.3 1 Some(10)",
                "10.8.0.2>10.8.0.1 2 Some(20)",
                "10.8.0.2>10.8.0.3 2 Some(20)",
                "10.8.0.3>10.8.0.1 3 Some(30)",
                "10.8.0.3>10.8.0.2 3 Some(30)",
            ]
        );
        // A prefix of the network is at every router on it.
        seen.update(&announce(&[prefix_nlri(protocol, lan, &[reachable(24, &[192, 0, 2])])], &[]));
        assert_eq!(seen.prefixes.len(), 3);
        // A router that leaves it loses its links to and from the others.
        seen.update(&withdraw(&[link_nlri(protocol, lan, routers[2], &[])]));
        seen.update(&withdraw(&[link_nlri(protocol, routers[2], lan, &[tlv(259, &[0, 0, 0, 3])])]));
        assert_eq!((seen.links.len(), seen.prefixes.len()), (2, 2));
    }
}

#[test]
fn a_router_is_known_by_the_first_address_that_is_reported() {
    let system = [0x19, 0x21, 0x68, 0, 0, 1];
    let link = link_nlri(ISIS, &system, &[0x19, 0x21, 0x68, 0, 0, 2], &[]);
    let mut seen = Seen::new();
    let routers = |seen: &Seen| seen.routers.keys().map(IpAddr::to_string).collect::<Vec<_>>();
    seen.update(&announce(&[node_nlri(ISIS, &system)], &[]));
    assert_eq!(routers(&seen), ["fe80::1921:6800:1"], "nothing but the system's identifier");
    seen.update(&announce(std::slice::from_ref(&link), &[tlv(1028, &A), tlv(1030, &B)]));
    assert_eq!(routers(&seen), ["10.8.0.1"], "beside a link");
    assert_eq!(seen.links(), ["10.8.0.1>10.8.0.2 0 None"]);
    let six = tlv(1029, &"2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    seen.update(&announce(&[node_nlri(ISIS, &system)], std::slice::from_ref(&six)));
    assert_eq!(routers(&seen), ["2001:db8::1"], "IPv6 of the node");
    seen.update(&announce(&[node_nlri(ISIS, &system)], &[six, tlv(1028, &C)]));
    assert_eq!(routers(&seen), ["10.8.0.3"], "IPv4 of the node");
    assert_eq!(seen.links(), ["10.8.0.3>10.8.0.2 0 None"]);
    // The same system with a 0 behind it, and in another level.
    seen.update(&announce(&[node_nlri(1, &[0x19, 0x21, 0x68, 0, 0, 1, 0])], &[tlv(1028, &C)]));
    assert_eq!(routers(&seen), ["10.8.0.3"]);
    // BGP's own identifier (RFC 9086).
    let bgp = tlv(256, &[tlv(512, &[0, 0, 0, 1]), tlv(516, &[192, 0, 2, 9])].concat());
    seen.update(&announce(&[nlri(1, 7, &[bgp])], &[]));
    assert_eq!(routers(&seen), ["10.8.0.3", "192.0.2.9"]);
}

#[test]
fn a_prefix_is_where_it_is_had_best() {
    let mut seen = Seen::new();
    let at = |router: &[u8], kind: u8| {
        prefix_nlri(OSPF, router, &[tlv(264, &[kind]), reachable(24, &[198, 51, 100])])
    };
    let metric = |metric: u32| tlv(1155, &metric.to_be_bytes());
    seen.update(&announce(&[at(&C, 5)], &[metric(1)]));
    assert_eq!(seen.prefixes, ["198.51.100.0/24 10.8.0.3"], "from outside, but nothing better");
    seen.update(&announce(&[at(&B, 2)], &[metric(1)]));
    assert_eq!(seen.prefixes, ["198.51.100.0/24 10.8.0.2"], "from another area");
    seen.update(&announce(&[at(&A, 1)], &[metric(100)]));
    seen.update(&announce(&[at(&C, 1)], &[metric(10)]));
    assert_eq!(seen.prefixes, ["198.51.100.0/24 10.8.0.3"], "its own, at the least metric");
    seen.update(&withdraw(&[at(&C, 1)]));
    assert_eq!(seen.prefixes, ["198.51.100.0/24 10.8.0.1"]);
    // IPv6, in a topology of its own (RFC 9552 section 5.2.2.1); a default route is no place.
    let six =
        nlri(4, OSPF, &[node(256, &A), tlv(263, &[0, 2]), reachable(32, &[0x20, 1, 0x0d, 0xb8])]);
    let default = prefix_nlri(OSPF, &A, &[reachable(0, &[])]);
    seen.update(&announce(&[six, default], &[]));
    assert_eq!(seen.prefixes, ["198.51.100.0/24 10.8.0.1", "2001:db8::/32 10.8.0.1"]);
    // Links of that topology would count twice.
    seen.update(&announce(&[link_nlri(OSPF, &A, &B, &[tlv(263, &[0, 2])])], &[]));
    assert_eq!(seen.links.len(), 0);
}

#[test]
fn what_cannot_be_read_costs_only_itself() {
    let mut seen = Seen::new();
    let unknown = tlv(99, &[1, 2, 3]);
    let policy = tlv(5, &[1; 12]);
    let broken = tlv(1, &[OSPF, 0, 0]);
    seen.update(&announce(
        &[unknown, policy, broken, node_nlri(OSPF, &A)],
        &[tlv(1026, b"a\x1b[2J")],
    ));
    assert_eq!(seen.routers[&IpAddr::from(A)].as_deref(), Some("a\u{fffd}[2J"));
    assert_eq!(seen.graph.counters().unknown, 3);
    let mut cut = announce(&[node_nlri(OSPF, &A)], &[]);
    assert_eq!(seen.graph.update(&cut[..3]), Err(Unreadable::Lengths));
    // An NLRI whose length is beyond its end.
    cut[20] = 0xff;
    assert_eq!(seen.graph.update(&cut), Err(Unreadable::Lengths));
    // Another family in the same session is passed over.
    seen.update(&update(&[attribute(14, &[0, 1, 1, 4, 192, 0, 2, 1, 0, 8, 10])]));
    for number in 0..200_u8 {
        seen.update(&announce(&[node_nlri(OSPF, &[10, 9, 0, number])], &[]));
    }
    assert_eq!((seen.graph.len(), seen.graph.counters().refused), (100, 101));
}

#[test]
fn a_session_that_comes_back_replaces_the_old_one_without_a_gap() {
    let mut seen = Seen::new();
    seen.update(&announce(&[node_nlri(OSPF, &A), node_nlri(OSPF, &B)], &[]));
    seen.graph.begin(seen.now);
    assert_eq!(seen.graph.take_changes(), []);
    seen.update(&announce(&[node_nlri(OSPF, &A)], &[]));
    assert_eq!(seen.routers.len(), 2);
    seen.update(&withdraw(&[]));
    assert_eq!(seen.routers.keys().copied().collect::<Vec<_>>(), [IpAddr::from(A)]);
    // Without End-of-RIB after a time.
    seen.graph.begin(seen.now);
    seen.graph.settle(seen.now + Duration::from_secs(59));
    assert_eq!(seen.graph.take_changes(), []);
    seen.graph.settle(seen.now + Duration::from_secs(60));
    assert_eq!(seen.graph.take_changes(), [GraphChange::RemoveRouter(A.into())]);
}
