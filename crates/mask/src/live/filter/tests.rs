use super::step::{BY_X, DIV, LSH, MOD, RSH};
use super::*;
use crate::file::link_and_bytes;
use proptest::prelude::*;
use std::{fs::File, path::Path};

/// Expressions, as operators give them.
const EXPRESSIONS: [&str; 33] = [
    "",
    "ip",
    "ip6",
    "tcp",
    "tcp or udp",
    "udp port 53",
    "tcp port https",
    "not port 22",
    "portrange 1024-65535",
    "src host 10.0.0.2",
    "dst net 10.0.0.0/8",
    "host 10.0.0.1 or host 10.0.0.2",
    "ip6 net fe80::/10",
    "ip6 host 2001:db8::1",
    "ip[0] & 0xf > 5",
    "ip[ip[0] & 0xf] = 1",
    "ip[2:2] - 20 > ip[8] * 3",
    "ip[4:4] % (1 + ip[9]) = 2",
    "ip[8] / ip[1] = 1",
    "ip[1] << ip[8] = 0",
    "ip[12:4] >> 8 ^ ip[16:4] = 7",
    "-ip[0] < 0xffffff00",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
    "icmp[icmptype] = icmp-echo or icmp6[icmp6type] = icmp6-echo",
    "udp[8:4] = 0x64313a61",
    "greater 100",
    "less 60",
    "len - 14 = ip[2:2]",
    "ip proto \\udp and ip[6:2] & 0x3fff = 0",
    "ip multicast or ip6 multicast",
    "igmp or pim or vrrp or ah or esp or sctp",
    "port domain and (udp[10] & 0x80 = 0 or tcp)",
];

/// And those that need an Ethernet header.
const OF_ETHERNET: [&str; 8] = [
    "arp",
    "ether broadcast or ether multicast",
    "ether host 02:00:00:00:00:01",
    "vlan",
    "vlan 7 and udp port 53",
    "mpls and ip",
    "pppoes and tcp",
    "ether[12:2] > 1500",
];

/// Each expression for the links it is for, with libpcap's own program.
fn filters() -> Vec<(&'static str, Link, Filter, pcap::BpfProgram)> {
    let ethernet = EXPRESSIONS.iter().chain(&OF_ETHERNET).map(|text| (*text, Link::Ethernet));
    let all = ethernet.chain(EXPRESSIONS.map(|text| (text, Link::Ip)));
    all.map(|(text, link)| {
        let filter = Filter::compile(text, link).expect(text);
        (text, link, filter, compiled(text, link).expect(text))
    })
    .collect()
}

#[test]
fn recordings_are_filtered_as_libpcap_filters_them() {
    let filters = filters();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let mut wanted = vec![0u64; filters.len()];
    for name in
        ["gate/background.pcap", "gate/bt-ipv6.pcap", "gate/programs.pcap", "echo/link.pcap"]
    {
        let file = File::open(folder.join(name)).expect(name);
        capture::read::<capture::ReadError>(file, |frame, _| {
            let Some((link, bytes)) = link_and_bytes(&frame) else { return Ok(()) };
            for ((text, of, filter, program), wanted) in filters.iter().zip(&mut wanted) {
                if *of == link {
                    let taken = filter.matches(bytes, bytes.len() as u32);
                    assert_eq!(taken, program.filter(bytes), "{text} on {bytes:02x?}");
                    *wanted += u64::from(taken);
                }
            }
            Ok(())
        })
        .expect(name);
    }
    // These recordings have something for most of them, so that it is not always "no".
    assert!(wanted.iter().filter(|count| **count > 0).count() > 20, "{wanted:?}");
}

/// Bytes that begin like a frame or a packet more often than chance would have it.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let ethernet = prop_oneof![
        Just(vec![8, 0]),
        Just(vec![0x86, 0xdd]),
        Just(vec![0x81, 0, 0, 7, 8, 0]),
        Just(vec![0x88, 0x47, 0, 0, 0x11, 0x40]),
        Just(vec![]),
    ];
    let ip = prop_oneof![Just(vec![0x45]), Just(vec![0x47]), Just(vec![0x60]), Just(vec![])];
    let protocol = prop_oneof![Just(6u8), Just(17), Just(1), Just(58), any::<u8>()];
    let bytes = prop::collection::vec(any::<u8>(), 0..120);
    (any::<bool>(), ethernet, ip, protocol, bytes).prop_map(
        |(framed, kind, ip, protocol, bytes)| {
            let mut packet = if framed {
                [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &kind[..]].concat()
            } else {
                vec![]
            };
            let at = packet.len() + if ip.first() == Some(&0x60) { 6 } else { 9 };
            packet.extend(ip);
            packet.extend(bytes);
            if let Some(byte) = packet.get_mut(at) {
                *byte = protocol;
            }
            packet
        },
    )
}

#[test]
fn random_packets_are_filtered_as_libpcap_filters_them() {
    let filters = filters();
    proptest!(ProptestConfig::with_cases(4000), |(packet in packet())| {
        for (text, link, filter, program) in &filters {
            let taken = filter.matches(&packet, packet.len() as u32);
            prop_assert_eq!(taken, program.filter(&packet), "{} on {:?}", text, link);
        }
    });
}

#[test]
fn lengths_are_those_on_the_wire() {
    let filter = Filter::compile("greater 1000", Link::Ethernet).expect("a filter");
    assert!(filter.matches(&[0; 14], 1000));
    assert!(!filter.matches(&[0; 14], 999));
}

#[test]
fn a_packet_that_ends_before_what_is_asked_for_is_not_wanted() {
    let filter = Filter::compile("not ip[19] = 1", Link::Ip).expect("a filter");
    let packet = [&[0x45][..], &[0; 19]].concat();
    assert!(filter.matches(&packet, 20));
    assert!(!filter.matches(&packet[..19], 20));
    assert!(!filter.matches(&[], 0));
}

#[test]
fn instructions_are_those_of_libpcap() {
    let filter = Filter::compile("ip", Link::Ethernet).expect("a filter");
    let shown: Vec<_> = filter.instructions().iter().map(ToString::to_string).collect();
    // tcpdump -ddd -y EN10MB ip
    assert_eq!(shown[..3], ["40 0 0 12", "21 0 1 2048", "6 0 0 65535"]);
    let jump = filter.instructions()[1];
    assert_eq!((jump.code(), jump.jt(), jump.jf(), jump.k()), (0x15, 0, 1, 0x800));
}

fn why(text: &str) -> Why {
    Filter::compile(text, Link::Ethernet).expect_err(text).why
}

#[test]
fn what_the_engine_cannot_do_is_refused() {
    for text in ["inbound", "outbound and tcp", "ifindex 3"] {
        assert_eq!(why(text), Why::Beside, "{text}");
    }
    assert_eq!(why("ip6 protochain 6"), Why::Loop);
    assert_eq!(why("host example.org"), Why::Name("example.org".to_owned()));
    let hosts: Vec<_> = (0..3000u32).map(|n| format!("ip[{}:4] = {}", n % 50, n * 7919)).collect();
    assert!(matches!(why(&hosts.join(" or ")), Why::TooLong(4097..)));
}

#[test]
fn an_error_names_the_expression_and_has_libpcaps_words() {
    let error = Filter::compile("tcp port 99999", Link::Ethernet).expect_err("no port").to_string();
    assert!(error.starts_with("filter \"tcp port 99999\": "), "{error}");
    assert!(error.contains("illegal port number"), "{error}");
    let error = Filter::compile("tcp and (", Link::Ethernet).expect_err("no end").to_string();
    assert!(error.contains("syntax error"), "{error}");
    assert!(Filter::compile("tcp \0", Link::Ethernet).is_err());
    assert!(matches!(
        Filter::compile("ether host 02:00:00:00:00:01", Link::Ip).expect_err("no Ethernet").why,
        Why::Syntax(_)
    ));
}

/// What a program returns for a packet.
fn run(program: &[(u16, u8, u8, u32)], packet: &[u8]) -> Result<bool, Why> {
    let program: Vec<_> =
        program.iter().map(|&(code, jt, jf, k)| Instruction { code, jt, jf, k }).collect();
    check(&program)?;
    Ok(Filter(program).matches(packet, 1000))
}

#[test]
fn what_divides_by_zero_takes_no_packet_and_great_shifts_give_zero() {
    // A = 40, X = A or 0; A = A op X; return A.
    let by_x = |operation, x| {
        run(
            &[(0x00, 0, 0, 40), (0x01, 0, 0, x), (4 | operation | BY_X, 0, 0, 0), (0x16, 0, 0, 0)],
            &[],
        )
    };
    assert_eq!(by_x(DIV, 40), Ok(true));
    assert_eq!(by_x(DIV, 0), Ok(false));
    assert_eq!(by_x(MOD, 7), Ok(true));
    assert_eq!(by_x(MOD, 0), Ok(false));
    assert_eq!(by_x(LSH, 3), Ok(true));
    assert_eq!(by_x(LSH, 32), Ok(false));
    assert_eq!(by_x(RSH, 32), Ok(false));
}

#[test]
fn programs_that_libpcap_should_never_give_are_refused() {
    let unfit: [&[(u16, u8, u8, u32)]; 12] = [
        &[],
        // No end; jumps beyond it, and back.
        &[(0x00, 0, 0, 1)],
        &[(0x15, 0, 1, 0), (0x06, 0, 0, 1)],
        &[(0x05, 0, 0, 1), (0x06, 0, 0, 1)],
        &[(0x05, 0, 0, u32::MAX), (0x06, 0, 0, 1)],
        // A place that memory has not, constants that divide by zero or shift too far.
        &[(0x02, 0, 0, 16), (0x06, 0, 0, 1)],
        &[(0x34, 0, 0, 0), (0x06, 0, 0, 1)],
        &[(0x64, 0, 0, 32), (0x06, 0, 0, 1)],
        // Codes that are none.
        &[(0x8c, 0, 0, 0), (0x06, 0, 0, 1)],
        &[(0x0106, 0, 0, 1)],
        &[(0x0e, 0, 0, 1)],
        // The packet's interface.
        &[(0x20, 0, 0, 0xffff_f008), (0x06, 0, 0, 1)],
    ];
    for program in unfit {
        assert!(run(program, &[]).is_err(), "{program:?}");
    }
    assert_eq!(run(&[(0x05, 0, 0, 0), (0x06, 0, 0, 1)], &[]), Ok(true));
}

#[test]
fn numbers_that_have_a_name_have_it_in_the_library_that_is_there() {
    let is_number = |word: &&str| ["icmp-", "icmp6-", "tcp-"].iter().any(|it| word.starts_with(it));
    let words: Vec<_> = words::WORDS.split_ascii_whitespace().filter(is_number).collect();
    assert!(words.len() > 40);
    for word in words {
        Filter::compile(&format!("ip[0] = {word}"), Link::Ip).expect(word);
    }
}
