//! Dumps of routing tables, put together byte by byte from RFC 6396 and RFC 8050.

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use std::{collections::BTreeMap, io::Write, path::Path};
use topo::{
    Change, ExternalPath, IpNet, RouterId,
    load::{
        LoadError,
        mrt::{self, Exits, Summary},
    },
};

/// TABLE_DUMP_V2 (RFC 6396 section 4.3).
const TABLE_DUMP_V2: u16 = 13;

fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut record = 1_700_000_000_u32.to_be_bytes().to_vec();
    record.extend(kind.to_be_bytes());
    record.extend(subtype.to_be_bytes());
    record.extend((body.len() as u32).to_be_bytes());
    record.extend(body);
    record
}

/// The peers 192.0.2.1 with two octets of AS number, 192.0.2.2 with four, and 2001:db8::3 (section
/// 4.3.1).
fn peers() -> Vec<u8> {
    let mut body = vec![192, 0, 2, 254, 0, 4];
    body.extend(b"view");
    body.extend([0, 3]);
    body.extend([0, 10, 0, 0, 1, 192, 0, 2, 1, 0xfd, 0xe8]);
    body.extend([2, 10, 0, 0, 2, 192, 0, 2, 2, 0, 0, 0xfd, 0xe9]);
    body.extend([3, 10, 0, 0, 3]);
    body.extend("2001:db8::3".parse::<std::net::Ipv6Addr>().unwrap().octets());
    body.extend([0, 0, 0xfd, 0xea]);
    record(TABLE_DUMP_V2, 1, &body)
}

/// Segments of an AS path: type and ASes, of four octets each (section 4.3.4).
type Segments<'a> = &'a [(u8, &'a [u32])];

const SET: u8 = 1;
const SEQUENCE: u8 = 2;
const CONFED_SEQUENCE: u8 = 3;

fn attributes(segments: Segments) -> Vec<u8> {
    let mut path = Vec::new();
    for (kind, ases) in segments {
        path.extend([*kind, ases.len() as u8]);
        path.extend(ases.iter().flat_map(|number| number.to_be_bytes()));
    }
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, path.len() as u8];
    attributes.extend(path);
    attributes
}

/// A prefix and the routes that peers have to it.
fn rib(subtype: u16, prefix: &str, routes: &[(u16, Segments)]) -> Vec<u8> {
    let prefix: IpNet = prefix.parse().unwrap();
    let octets = match prefix.addr() {
        std::net::IpAddr::V4(address) => address.octets().to_vec(),
        std::net::IpAddr::V6(address) => address.octets().to_vec(),
    };
    let bits = prefix.prefix_len();
    let mut body = vec![0, 0, 0, 0, bits];
    body.extend(&octets[..usize::from(bits).div_ceil(8)]);
    body.extend((routes.len() as u16).to_be_bytes());
    for (peer, segments) in routes {
        body.extend(peer.to_be_bytes());
        body.extend([0; 4]);
        if matches!(subtype, 8..) {
            // A path identifier (RFC 8050 section 4).
            body.extend([0, 0, 0, 9]);
        }
        let attributes = attributes(segments);
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(attributes);
    }
    record(TABLE_DUMP_V2, subtype, &body)
}

type Route = (IpNet, RouterId, ExternalPath);

fn load(dump: &[u8], exits: &Exits) -> Result<(Vec<Route>, Summary), LoadError> {
    let mut routes = Vec::new();
    let mut each = |change| match change {
        Change::Route { prefix, exit, path } => routes.push((prefix, exit, path)),
        other => panic!("{other:?}"),
    };
    let name = Path::new("rib");
    let summary = mrt::read(dump, None, name, exits, &mut each, &mut |_| ())?;
    Ok((routes, summary))
}

fn router(text: &str) -> RouterId {
    text.parse().unwrap()
}

fn route(prefix: &str, exit: &str, as_distance: u16, as_number: u32) -> Route {
    (prefix.parse().unwrap(), router(exit), ExternalPath { as_distance, as_number })
}

fn one() -> Exits {
    Exits::One(router("10.8.0.1"))
}

/// Two families, plain and with several paths.
fn dump() -> Vec<u8> {
    [
        peers(),
        rib(2, "198.51.100.0/24", &[(0, &[(SEQUENCE, &[65000, 64500, 64500, 64501])])]),
        rib(4, "2001:db8:8000::/33", &[(2, &[(SEQUENCE, &[65002, 4_200_000_000])])]),
        rib(8, "0.0.0.0/0", &[(1, &[(SEQUENCE, &[65001])]), (1, &[(SEQUENCE, &[65001, 2])])]),
        rib(10, "2001:db8::1/128", &[(2, &[(SEQUENCE, &[65002, 3])])]),
    ]
    .concat()
}

fn all() -> Vec<Route> {
    vec![
        route("198.51.100.0/24", "10.8.0.1", 4, 64501),
        route("2001:db8:8000::/33", "10.8.0.1", 2, 4_200_000_000),
        route("0.0.0.0/0", "10.8.0.1", 1, 65001),
        route("2001:db8::1/128", "10.8.0.1", 2, 3),
    ]
}

#[test]
fn unicast_tables_of_both_families_and_with_several_paths_are_read() {
    let (routes, summary) = load(&dump(), &one()).unwrap();
    assert_eq!(routes, all());
    let expected = Summary { records: 5, prefixes: 4, routes: 4, ..Summary::default() };
    assert_eq!(summary, expected);
}

#[test]
fn gzip_and_bzip2_are_known_by_their_contents() {
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&dump()).unwrap();
    assert_eq!(load(&gzip.finish().unwrap(), &one()).unwrap().0, all());
    // Files that are written in parallel have several streams.
    let whole = dump();
    let (first, second) = whole.split_at(100);
    let halves = [first, second].map(|half| {
        let mut bzip2 = BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(half).unwrap();
        bzip2.finish().unwrap()
    });
    assert_eq!(load(&halves.concat(), &one()).unwrap().0, all());
}

#[test]
fn a_set_counts_as_one_and_a_confederation_as_none() {
    // RFC 4271 section 9.1.2.2 a, RFC 5065 section 5.3 c.
    let routes: [(&str, Segments, u16, u32); 5] = [
        ("192.0.2.0/25", &[(SEQUENCE, &[1, 2]), (SET, &[3, 4, 5])], 3, 0),
        ("192.0.2.0/26", &[(SEQUENCE, &[1, 2]), (SET, &[3])], 3, 3),
        ("192.0.2.0/27", &[(CONFED_SEQUENCE, &[9, 8]), (SEQUENCE, &[1, 2])], 2, 2),
        ("192.0.2.0/28", &[], 0, 0),
        ("192.0.2.0/29", &[(SEQUENCE, &[7, 7, 7])], 3, 7),
    ];
    for (prefix, segments, as_distance, as_number) in routes {
        let dump = [peers(), rib(2, prefix, &[(0, segments)])].concat();
        let expected = [route(prefix, "10.8.0.1", as_distance, as_number)];
        assert_eq!(load(&dump, &one()).unwrap().0, expected);
    }
}

#[test]
fn peers_stand_for_exits_and_the_shortest_path_of_an_exit_counts() {
    let exits = Exits::Peers(BTreeMap::from([
        ("192.0.2.1".parse().unwrap(), router("10.8.0.1")),
        ("192.0.2.2".parse().unwrap(), router("10.8.0.1")),
    ]));
    let long: Segments = &[(SEQUENCE, &[1, 2, 3])];
    let short: Segments = &[(SEQUENCE, &[4, 5])];
    let dump = [peers(), rib(2, "192.0.2.0/24", &[(0, long), (1, short), (2, short), (7, short)])]
        .concat();
    let (routes, summary) = load(&dump, &exits).unwrap();
    assert_eq!(routes, [route("192.0.2.0/24", "10.8.0.1", 2, 5)]);
    assert_eq!((summary.unmapped, summary.routes), (2, 1));
    let notices = summary.notices.to_string();
    assert!(notices.contains("2 routes of peers that are not mapped to an exit"), "{notices}");
    assert!(notices.contains("2001:db8::3"), "{notices}");
}

#[test]
fn broken_records_and_others_are_counted_and_skipped() {
    let good = rib(2, "192.0.2.0/24", &[(0, &[(SEQUENCE, &[1])])]);
    // A prefix of 40 bits of IPv4.
    let wrong = record(TABLE_DUMP_V2, 2, &[0, 0, 0, 0, 40, 1, 2, 3, 4, 5, 0, 0]);
    // Two entries are promised, and one is there.
    let mut short = rib(2, "198.51.100.0/24", &[(0, &[(SEQUENCE, &[1])])]);
    short[21] = 2;
    let multicast = rib(3, "203.0.113.0/24", &[(0, &[(SEQUENCE, &[1])])]);
    let unknown = record(99, 0, b"?");
    let dump = [peers(), wrong, short, multicast, unknown, good].concat();
    let (routes, summary) = load(&dump, &one()).unwrap();
    assert_eq!(
        routes,
        [route("198.51.100.0/24", "10.8.0.1", 1, 1), route("192.0.2.0/24", "10.8.0.1", 1, 1)]
    );
    assert_eq!((summary.records, summary.broken, summary.other), (6, 2, 2));
    assert!(summary.notices.to_string().contains("2 broken records"), "{}", summary.notices);
}

#[test]
fn what_came_before_the_end_of_a_cut_file_counts() {
    let whole = dump();
    let (routes, summary) = load(&whole[..whole.len() - 3], &one()).unwrap();
    assert_eq!(routes, all()[..3]);
    assert_eq!(summary.broken, 1);
    assert!(summary.notices.to_string().contains("the record is truncated"), "{}", summary.notices);
}

#[test]
fn what_is_no_dump_at_all_is_refused() {
    for other in [&b"#!/bin/sh\necho hello world\n"[..], b"short", &[0xff; 64]] {
        let Err(LoadError::Bad(notices)) = load(other, &one()) else { panic!("taken") };
        assert!(notices.to_string().contains("is this an MRT dump?"), "{notices}");
    }
    let (routes, summary) = load(b"", &one()).unwrap();
    assert!(routes.is_empty() && !summary.notices.is_empty());
}
