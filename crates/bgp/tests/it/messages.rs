//! Messages against the bytes of testdata/bgp/messages.txt, and against netgauze's decoder.

use crate::stream::split_all;
use bgp::{
    link_state::Graph,
    message::{
        Families, Family, HEADER, Kind, MAX, keepalive,
        learned::{Format, Learned},
        notification::{self, Notification},
        open::{Ours, Theirs},
        split,
        update::{self, Terms},
    },
    route::Attributes,
    value::{Asn, Community, LargeCommunity},
};
use config::hex;
use ipnet::IpNet;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const ROUTER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 30);
const LARGE: Asn = Asn(4_200_000_012);

/// The message of that name in testdata/bgp/messages.txt.
fn vector(name: &str) -> Vec<u8> {
    let text = include_str!("../../../../testdata/bgp/messages.txt");
    let digits: String = text
        .lines()
        .map(|line| line.split('#').next().unwrap().trim())
        .skip_while(|line| *line != format!("[{name}]"))
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .flat_map(str::chars)
        .filter(|char| !char.is_whitespace())
        .collect();
    assert!(!digits.is_empty(), "no message is called {name}");
    unhex(&digits)
}

fn terms() -> Terms {
    Terms {
        local_as: Asn(12),
        internal: false,
        four_octets: true,
        next_hop4: Some(ROUTER),
        next_hop6: Some("2001:db8:1::30".parse().unwrap()),
    }
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// What `write` appends, as hexadecimal digits that can be compared by eye.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    hex::encode(&out)
}

#[track_caller]
fn assert_is(name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    assert_eq!(written(write), hex::encode(&vector(name)), "{name}");
}

#[test]
fn each_message_has_the_bytes_of_the_rfcs() {
    let both = Families { ipv4: true, ipv6: true };
    let ours =
        Ours { asn: Asn(12), hold_time: 9, identifier: ROUTER, families: both, link_state: false };
    assert_is("open", |out| ours.encode(out));
    let only4 = Families { ipv4: true, ipv6: false };
    assert_is("open-large-as", |out| Ours { asn: LARGE, families: only4, ..ours }.encode(out));
    assert_is("keepalive", keepalive);
    assert_is("shutdown", |out| Notification::shutdown("bye").encode(out));
    assert_is("withdraw4", |out| assert_eq!(update::withdraw(&[net("50.0.0.0/8")], out), 1));
    assert_is("withdraw6", |out| assert_eq!(update::withdraw(&[net("2001:db8:50::/48")], out), 1));
    assert_is("end-of-rib4", |out| update::end_of_rib(Family::Ipv4, out));
    assert_is("end-of-rib6", |out| update::end_of_rib(Family::Ipv6, out));
}

#[test]
fn each_announcement_has_the_bytes_of_the_rfcs() {
    let check = |name: &str, terms: Terms, attributes: Attributes, prefix: &str| {
        assert_is(name, |out| {
            assert_eq!(terms.announce(&attributes, &[net(prefix)], out), 1);
        });
    };
    let plain = Attributes::default();
    let once = Attributes { prepend: 1, ..plain.clone() };
    let full = Attributes {
        prepend: 1,
        med: Some(50),
        communities: vec![Community(12 << 16 | 100)],
        large_communities: vec![LargeCommunity(4_200_000_000, 1, 1)],
    };
    let leaving = full.with(Community::GRACEFUL_SHUTDOWN);
    check("announce4", terms(), leaving, "50.0.0.0/8");
    check("announce6", terms(), plain.clone(), "2001:db8:50::/48");
    let old = Terms { four_octets: false, ..terms() };
    check("announce4-old", Terms { local_as: LARGE, ..old }, once.clone(), "50.0.0.0/8");
    check("announce4-old-small", old, once, "50.0.0.0/8");
    check("announce4-internal", Terms { internal: true, ..terms() }, plain, "50.0.0.0/8");
}

#[test]
fn our_own_open_is_understood() {
    let theirs = Theirs::decode(&vector("open")[HEADER..]).unwrap();
    let both = Families { ipv4: true, ipv6: true };
    let expected = Theirs {
        asn: Asn(12),
        four_octets: true,
        hold_time: 9,
        identifier: ROUTER,
        families: both,
        link_state: false,
        sends_paths: Families::default(),
        receives_paths: Families::default(),
    };
    assert_eq!(theirs, expected);
    let theirs = Theirs::decode(&vector("open-large-as")[HEADER..]).unwrap();
    assert_eq!((theirs.asn, theirs.families.ipv6), (LARGE, false));
}

/// An OPEN's body with these optional parameters.
fn open(parameters: &[u8]) -> Vec<u8> {
    let mut body = vec![4, 0, 4, 0, 90, 172, 16, 0, 29];
    body.push(u8::try_from(parameters.len()).unwrap());
    body.extend(parameters);
    body
}

/// RFC 4271 section 6.2, case by case.
#[test]
fn each_error_in_an_open_has_its_notification() {
    let change = |position: usize, value: &[u8]| {
        let mut body = open(&[]);
        body[position..position + value.len()].copy_from_slice(value);
        body
    };
    let mut long = open(&[]);
    long.push(0);
    let cases: Vec<(&str, Vec<u8>, u8, &[u8])> = vec![
        ("version 3", change(0, &[3]), notification::BAD_VERSION, &[0, 4]),
        ("version 5", change(0, &[5]), notification::BAD_VERSION, &[0, 4]),
        ("hold time 1", change(3, &[0, 1]), notification::BAD_HOLD_TIME, &[0, 1]),
        ("hold time 2", change(3, &[0, 2]), notification::BAD_HOLD_TIME, &[0, 2]),
        ("identifier 0", change(5, &[0; 4]), notification::BAD_IDENTIFIER, &[0; 4]),
        ("length beyond the end", change(9, &[1]), notification::UNSPECIFIC, &[]),
        ("bytes behind the parameters", long, notification::UNSPECIFIC, &[]),
        ("authentication parameter", open(&[1, 0]), notification::BAD_PARAMETER, &[1]),
        ("extended length", open(&[255, 0]), notification::BAD_PARAMETER, &[255]),
        ("a truncated parameter", open(&[2]), notification::UNSPECIFIC, &[]),
        ("parameter cut short", open(&[2, 4, 65, 4]), notification::UNSPECIFIC, &[]),
        ("capability cut short", open(&[2, 3, 65, 4, 0]), notification::UNSPECIFIC, &[]),
        ("AS number of 2 bytes", open(&[2, 4, 65, 2, 0, 4]), notification::UNSPECIFIC, &[]),
        ("family of 1 byte", open(&[2, 3, 1, 1, 0]), notification::UNSPECIFIC, &[]),
    ];
    for (name, body, subcode, data) in cases {
        assert_eq!(Theirs::decode(&body), Err(Notification::open(subcode, data)), "{name}");
    }
}

#[test]
fn capabilities_that_nobody_knows_are_skipped() {
    // Unknown, graceful restart, one unknown family, add-path; in two parameters.
    let body = open(&[
        2, 10, 200, 2, 1, 2, 64, 4, 0, 120, 0, 1, 2, 12, 1, 4, 0, 25, 0, 70, 69, 4, 0, 1, 1, 3,
    ]);
    let theirs = Theirs::decode(&body).unwrap();
    // Multiprotocol was named, IPv4 was not.
    assert_eq!(theirs.families, Families::default());
    assert_eq!((theirs.asn, theirs.four_octets), (Asn(4), false));
    let ipv4 = Families { ipv4: true, ipv6: false };
    assert_eq!((theirs.sends_paths, theirs.receives_paths), (ipv4, ipv4));
    let theirs = Theirs::decode(&open(&[])).unwrap();
    assert_eq!(theirs.families, Families { ipv4: true, ipv6: false }, "RFC 4760 section 8");
    assert_eq!(Theirs::decode(&open(&[])).unwrap().hold_time, 90);
}

/// RFC 9072 section 2: the length of one byte does not count, and may be anything but 0.
#[test]
fn parameters_may_have_lengths_of_two_bytes() {
    let mut many = vec![2, 1, 44];
    for unknown in 0..49 {
        many.extend([200, 4, 0, 0, 0, unknown]);
    }
    many.extend([65, 4, 0, 1, 0, 0]);
    for length in [255, 9] {
        let mut body = open(&[]);
        body[9] = length;
        let total = u16::try_from(many.len()).unwrap();
        body.extend([255]);
        body.extend(total.to_be_bytes());
        body.extend(&many);
        assert_eq!(Theirs::decode(&body).unwrap().asn, Asn(65536));
        for end in 10..body.len() {
            assert!(Theirs::decode(&body[..end]).is_err(), "{end} bytes of {}", body.len());
        }
    }
}

/// RFC 7606 section 3, item b: only lengths that do not fit end the session.
#[test]
fn an_update_is_only_refused_for_its_lengths() {
    let malformed = Err(Notification::update(notification::MALFORMED_ATTRIBUTES));
    let cases: [(&[u8], Result<(), Notification>); 9] = [
        (&[0, 0, 0, 0], Ok(())),
        (&[0, 2, 8, 50, 0, 0], Ok(())),
        (&[0, 0, 0, 1, 0xaa], Ok(())),
        (&[0, 0, 0, 0, 33, 1, 2], Ok(())),
        (&[0, 1, 0, 0], malformed.clone()),
        (&[0, 0, 0, 1], malformed.clone()),
        (&[0xff, 0xff, 0, 0], malformed.clone()),
        (&[0, 1, 7, 0], malformed.clone()),
        (&[0, 0, 0xff, 0xff, 1, 2, 3], malformed),
    ];
    for (body, expected) in cases {
        assert_eq!(update::check(body), expected, "{body:?}");
    }
}

#[test]
fn attributes_past_255_bytes_have_a_long_length() {
    let attributes = Attributes {
        communities: (0..100).map(Community).collect(),
        large_communities: (0..100).map(|n| LargeCommunity(n, 0, 0)).collect(),
        ..Attributes::default()
    };
    let text = written(|out| {
        terms().announce(&attributes, &[net("50.0.0.0/8")], out);
    });
    assert!(text.contains("d0080190") && text.contains("d02004b0"), "{text}");
    let (kind, body) = split_all(&unhex(&text)).pop().unwrap();
    assert_eq!((kind, update::check(&body)), (Kind::Update, Ok(())));
}

fn unhex(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; text.len() / 2];
    assert!(hex::decode(text.as_bytes(), &mut bytes), "{text}");
    bytes
}

/// Many prefixes take several messages, none longer than 4,096 bytes, and none is lost.
#[test]
fn prefixes_fill_messages_to_the_brim() {
    let four: Vec<IpNet> =
        (0..3000u32).map(|n| net(&format!("10.{}.{}.0/24", n >> 8, n & 255))).collect();
    let six: Vec<IpNet> = (0..3000).map(|n| net(&format!("2001:db8:{n:x}::/48"))).collect();
    let attributes = Attributes::default();
    for prefixes in [four, six] {
        for announce in [true, false] {
            let (mut rest, mut lengths) = (&prefixes[..], Vec::new());
            while !rest.is_empty() {
                let mut out = Vec::new();
                let count = if announce {
                    terms().announce(&attributes, rest, &mut out)
                } else {
                    update::withdraw(rest, &mut out)
                };
                assert!(count > 0);
                lengths.push(out.len());
                rest = &rest[count..];
            }
            let (last, full) = lengths.split_last().unwrap();
            assert!(*last <= MAX);
            // Another prefix, 7 bytes at most, would not have fitted.
            assert!(full.iter().all(|length| (MAX - 6..=MAX).contains(length)), "{lengths:?}");
        }
    }
}

#[test]
fn without_a_next_hop_nothing_is_written() {
    let terms = Terms { next_hop6: None, ..terms() };
    assert_eq!(
        written(|out| {
            terms.announce(&Attributes::default(), &[net("2001:db8::/32")], out);
        }),
        ""
    );
}

proptest! {
    /// Nothing that arrives makes the readers panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = split(&bytes);
        let _ = Theirs::decode(&bytes);
        let _ = update::check(&bytes);
        let _ = Notification::decode(&bytes).to_string();
        for four_octets in [false, true] {
            let add_path = Families { ipv4: four_octets, ipv6: four_octets };
            let _ = Learned::default().read(&bytes, Format { four_octets, add_path });
        }
        let mut graph = Graph::new(10);
        let _ = graph.update(&bytes);
        graph.take_changes();
    }

    /// An OPEN of ours reads back as it was meant, for all numbers.
    #[test]
    fn an_open_reads_back(
        asn in 1u32..,
        hold_time in 3u16..,
        id in 1u32..,
        ipv6 in any::<bool>(),
        link_state in any::<bool>(),
    ) {
        let families = Families { ipv4: true, ipv6 };
        let identifier = Ipv4Addr::from(id);
        let ours = Ours { asn: Asn(asn), hold_time, identifier, families, link_state };
        let mut out = Vec::new();
        ours.encode(&mut out);
        let (kind, body) = split(&out).unwrap().unwrap();
        prop_assert_eq!(kind, Kind::Open);
        let asn = Asn(asn);
        let theirs = Theirs {
            asn,
            four_octets: true,
            hold_time,
            identifier,
            families,
            link_state,
            sends_paths: Families::default(),
            receives_paths: Families::default(),
        };
        prop_assert_eq!(Theirs::decode(body), Ok(theirs));
    }
}
