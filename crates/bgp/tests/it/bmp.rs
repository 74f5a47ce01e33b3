//! BMP sessions message by message: which routes are seen after a router's reports.

use crate::monitored::*;
use bgp::bmp::{SessionError, Settings, Status, message::Kind};
use netgauze_bmp_pkt::{BmpPeerType, PeerHeader, v3};
use netgauze_iana::address_family::AddressType;
use netgauze_parse_utils::WritablePdu;
use std::time::Duration;

const A: &str = "198.51.100.1";
const B: &str = "198.51.100.2";

#[test]
fn routes_come_and_go_with_their_peer() {
    let mut router = Monitored::new();
    router.send(&initiation());
    assert_eq!(
        (router.session.name(), router.session.description()),
        (Some("r1"), Some("a router"))
    );
    let (a, b) = (header(pre(), A, 64501), header(pre(), B, 64502));
    router.send(&peer_up(a.clone()));
    router.send(&peer_up(b.clone()));
    router.update(&a, announce("203.0.113.0/24", &[64501, 64510]));
    router.update(&a, announce("2001:db8:1::/48", &[64501]));
    router.update(&b, announce("203.0.113.0/24", &[64502]));
    // The shortest path to each prefix.
    let both = [("2001:db8:1::/48", 1, 64501), ("203.0.113.0/24", 1, 64502)];
    assert_eq!(router.seen(), both);
    router.update(&b, withdraw("203.0.113.0/24", None));
    assert_eq!(router.seen(), [both[0], ("203.0.113.0/24", 2, 64510)]);
    router.update(&a, withdraw("2001:db8:1::/48", None));
    assert_eq!(router.seen(), [("203.0.113.0/24", 2, 64510)]);
    router.send(&peer_down(a.clone()));
    assert_eq!(router.seen(), []);
    assert_eq!(router.rib.size().prefixes, 0);
    // A peer that is down reports nothing.
    router.update(&a, announce("203.0.113.0/24", &[64501]));
    assert_eq!((router.seen().len(), router.session.counters().unannounced), (0, 1));
    // Up again without a word about it having been down: what was reported before is gone.
    router.send(&peer_up(b.clone()));
    router.update(&b, announce("192.0.2.0/24", &[64502]));
    router.send(&peer_up(b));
    assert_eq!(router.seen(), []);
}

#[test]
fn the_last_announcement_of_a_peer_counts() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let a = header(pre(), A, 64501);
    router.send(&peer_up(a.clone()));
    router.update(&a, announce("203.0.113.0/24", &[64501]));
    router.update(&a, announce("203.0.113.0/24", &[64501, 64501, 64502]));
    assert_eq!(router.seen(), [("203.0.113.0/24", 3, 64502)]);
    assert_eq!(router.rib.size().routes, 1);
}

/// RFC 7854 section 3 and RFC 9069: the table nearest to what the router does counts.
#[test]
fn loc_rib_goes_before_post_policy_and_that_before_pre_policy() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let (a, a_post, l) =
        (header(pre(), A, 64501), header(post(), A, 64501), header(loc(), A, LOCAL_AS));
    router.send(&peer_up(a.clone()));
    router.update(&a, announce("203.0.113.0/24", &[64501]));
    router.update(&a, announce("198.51.100.0/24", &[64501]));
    router.send(&ends(&a));
    // Policy prepends to one and drops the other, which shows when the table is complete.
    router.update(&a_post, announce("203.0.113.0/24", &[64501, 64501]));
    assert_eq!(router.seen(), [("198.51.100.0/24", 1, 64501), ("203.0.113.0/24", 2, 64501)]);
    router.send(&ends(&a_post));
    assert_eq!(router.seen(), [("203.0.113.0/24", 2, 64501)]);
    // The router itself has chosen something else.
    router.send(&peer_up(l.clone()));
    router.update(&l, announce("192.0.2.0/24", &[64509, 64508, 64507]));
    router.send(&ends(&l));
    assert_eq!(router.seen(), [("192.0.2.0/24", 3, 64507)]);
    // Loc-RIB is not sent any more: the other table counts again.
    router.send(&peer_down(l));
    assert_eq!(router.seen(), [("203.0.113.0/24", 2, 64501)]);
}

#[test]
fn path_identifiers_are_read_when_the_peers_agreed_on_them() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let a = header(pre(), A, 64501);
    let four = AddressType::Ipv4Unicast;
    router.send(&peer_up_with(
        a.clone(),
        open(LOCAL_AS, &[(four, false, true)]),
        open(64501, &[(four, true, false)]),
    ));
    for (id, path) in [(1, &[64501, 64502, 64503][..]), (2, &[64501, 64502])] {
        router.update(&a, announce_via("203.0.113.0/24", path, "192.0.2.77", Some(id)));
    }
    assert_eq!((router.seen(), router.rib.size().routes), (vec![("203.0.113.0/24", 2, 64502)], 2));
    router.update(&a, withdraw("203.0.113.0/24", Some(2)));
    assert_eq!(router.seen(), [("203.0.113.0/24", 3, 64503)]);
    // The other direction alone means nothing for what the router receives.
    let b = header(pre(), B, 64502);
    router.send(&peer_up_with(
        b.clone(),
        open(LOCAL_AS, &[(four, true, false)]),
        open(64502, &[(four, false, true)]),
    ));
    router.update(&b, announce("192.0.2.0/24", &[64502]));
    assert_eq!(router.seen()[0], ("192.0.2.0/24", 1, 64502));
}

#[test]
fn as_numbers_of_two_octets_are_read_where_the_header_says_so() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let a = header(global(false, true), A, 64501);
    router.send(&peer_up(a.clone()));
    router.update(&a, announce_narrow("203.0.113.0/24", &[64501, 23456], &[64501, 4_200_000_001]));
    assert_eq!(router.seen(), [("203.0.113.0/24", 2, 4_200_000_001)]);
}

/// FRR reports what it monitors as if it advertised it onwards, with its own AS number in front.
#[test]
fn a_number_that_the_router_has_added_itself_does_not_count() {
    for (description, distance) in [("FRRouting 8.4.4", 1), ("a router", 2)] {
        let mut router = Monitored::new();
        router.send(&initiation_of(description));
        let a = header(post(), A, 64501);
        router.send(&peer_up(a.clone()));
        router.update(&a, announce("203.0.113.0/24", &[LOCAL_AS, 64501]));
        assert_eq!(router.seen(), [("203.0.113.0/24", distance, 64501)], "{description}");
    }
}

#[test]
fn routes_from_inside_the_as_belong_to_another_router() {
    let inside = header(pre(), A, LOCAL_AS);
    let mut router = Monitored::new();
    router.send(&initiation());
    router.send(&peer_up(inside.clone()));
    router.update(&inside, announce("203.0.113.0/24", &[64501]));
    assert_eq!((router.view.len(), router.session.counters().internal), (0, 1));
    // A reflector reports for others: the next hop names them, each with its best path.
    let mut router = Monitored::reflector();
    router.send(&initiation());
    let other = header(pre(), B, LOCAL_AS);
    router.send(&peer_up(inside.clone()));
    router.send(&peer_up(other.clone()));
    router.update(&inside, announce_via("203.0.113.0/24", &[64501], "10.8.0.1", None));
    router.update(&other, announce_via("203.0.113.0/24", &[64502, 64501], "10.8.0.2", None));
    let exit = |address: &str| ("203.0.113.0/24".to_owned(), Some(address.parse().unwrap()));
    assert_eq!(router.view[&exit("10.8.0.1")], (1, 64501));
    assert_eq!(router.view[&exit("10.8.0.2")], (2, 64501));
    router.update(&other, announce_via("203.0.113.0/24", &[64502, 64501], "10.8.0.3", None));
    assert_eq!(router.view[&exit("10.8.0.3")], (2, 64501));
    assert_eq!(router.view.len(), 2);
}

/// In Loc-RIB the next hop shows where a route was learned.
#[test]
fn a_chosen_route_from_inside_is_not_an_exit_here() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let l = header(loc(), A, LOCAL_AS);
    router.send(&peer_up(header(pre(), "10.8.0.2", LOCAL_AS)));
    router.send(&peer_up(l.clone()));
    router.update(&l, announce_via("203.0.113.0/24", &[64501], "192.0.2.77", None));
    router.update(&l, announce_via("198.51.100.0/24", &[64501], "10.8.0.2", None));
    assert_eq!(router.seen(), [("203.0.113.0/24", 1, 64501)]);
}

#[test]
fn a_router_that_comes_back_replaces_what_it_reported_without_a_gap() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let (a, b) = (header(pre(), A, 64501), header(pre(), B, 64502));
    router.send(&peer_up(a.clone()));
    router.send(&peer_up(b.clone()));
    for prefix in ["203.0.113.0/24", "198.51.100.0/24"] {
        router.update(&a, announce(prefix, &[64501]));
    }
    router.update(&b, announce("192.0.2.0/24", &[64502]));
    router.send(&ends(&a));
    router.send(&ends(&b));
    let all = router.view.clone();
    router.reconnect();
    router.send(&peer_up(a.clone()));
    assert_eq!(router.view, all, "nothing is lost by reconnecting");
    router.update(&a, announce("203.0.113.0/24", &[64501, 64503]));
    assert_eq!(router.seen()[2], ("203.0.113.0/24", 2, 64503), "what is reported anew counts");
    assert_eq!(router.seen().len(), 3);
    router.send(&ends(&a));
    assert_eq!(router.seen(), [("203.0.113.0/24", 2, 64503)], "the rest goes at the end");
    assert_eq!(router.rib.size().stale, 0);
    // Without End-of-RIB markers it goes after a time.
    router.reconnect();
    router.send(&peer_up(a));
    assert_eq!(router.seen().len(), 1);
    router.pass(Duration::from_secs(121));
    assert_eq!(router.seen(), []);
}

#[test]
fn a_session_that_breaks_off_early_leaves_the_whole_table_before_it() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let a = header(pre(), A, 64501);
    router.send(&peer_up(a.clone()));
    router.update(&a, announce("203.0.113.0/24", &[64501]));
    router.send(&ends(&a));
    let all = router.view.clone();
    for _ in 0..3 {
        router.reconnect();
        router.send(&peer_up(a.clone()));
        router.update(&a, announce("198.51.100.0/24", &[64501]));
        assert_eq!(router.seen().len(), 2);
    }
    router.reconnect();
    assert_eq!(router.view, all);
    assert_eq!((router.rib.size().routes, router.rib.size().stale), (0, 1));
}

#[test]
fn routes_beyond_the_limit_are_refused_and_counted() {
    let mut router = Monitored::with(Settings::default(), 2);
    router.send(&initiation());
    let a = header(pre(), A, 64501);
    router.send(&peer_up(a.clone()));
    for prefix in ["203.0.113.0/24", "198.51.100.0/24", "192.0.2.0/24"] {
        router.update(&a, announce(prefix, &[64501]));
    }
    assert_eq!((router.seen().len(), router.session.counters().refused), (2, 1));
    router.update(&a, withdraw("203.0.113.0/24", None));
    router.update(&a, announce("192.0.2.0/24", &[64501]));
    assert_eq!((router.seen().len(), router.session.counters().refused), (2, 1));
}

/// RFC 8671 and other instances: counted and passed over.
#[test]
fn other_tables_do_not_count() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let a = header(pre(), A, 64501);
    router.send(&peer_up(a.clone()));
    let out = |adj_rib_out| BmpPeerType::GlobalInstancePeer {
        ipv6: false,
        post_policy: true,
        asn2: false,
        adj_rib_out,
    };
    router.update(&header(out(true), A, 64501), announce("203.0.113.0/24", &[64501]));
    let instance = BmpPeerType::RdInstancePeer {
        ipv6: false,
        post_policy: false,
        asn2: false,
        adj_rib_out: false,
    };
    router.update(&header(instance, A, 64501), announce("203.0.113.0/24", &[64501]));
    assert_eq!((router.view.len(), router.session.counters().other_tables), (0, 2));
    router.send(&[3, 0, 0, 0, 7, 99, 1]);
    router.send(&[3, 0, 0, 0, 8, 6, 1, 1]);
    router.send(&bytes(v3::BmpMessageValue::StatisticsReport(v3::StatisticsReportMessage::new(
        a,
        vec![],
    ))));
    let counters = router.session.counters();
    assert_eq!((counters.unknown, counters.mirroring, counters.statistics), (1, 1, 1));
}

#[test]
fn a_router_says_why_it_ends_the_session() {
    let mut router = Monitored::new();
    router.send(&initiation());
    let reason =
        |reason| bytes(v3::BmpMessageValue::Termination(v3::TerminationMessage::new(vec![reason])));
    let text = reason(v3::TerminationInformation::String("maintenance\n".into()));
    assert_eq!(router.try_send(&text), Ok(Status::Terminated("maintenance ".into())));
    let code = [3, 0, 0, 0, 12, 5, 0, 1, 0, 2, 0, 2];
    assert_eq!(router.try_send(&code), Ok(Status::Terminated("out of resources".into())));
}

#[test]
fn bytes_may_come_in_any_pieces() {
    let a = header(pre(), A, 64501);
    let mut all = initiation();
    all.extend(peer_up(a.clone()));
    all.extend(monitoring(a.clone(), announce("203.0.113.0/24", &[64501])));
    all.extend(monitoring(a, announce("2001:db8:1::/48", &[64501])));
    for size in [1, 7, 100, all.len()] {
        let mut router = Monitored::new();
        for chunk in all.chunks(size) {
            router.send(chunk);
        }
        assert_eq!(router.seen().len(), 2, "in pieces of {size}");
        assert!(!router.session.in_message());
    }
}

#[test]
fn what_is_wrong_with_the_router_itself_ends_the_session_with_its_reason() {
    let cases: &[(&[u8], &str)] = &[
        (b"GET / HTTP/1.1\r\n", "version 71 where BMP version 3 is expected"),
        (&[3, 0, 0, 0, 5, 0], "shorter than its header"),
        (&[3, 0xff, 0, 0, 0, 0], "longer than the 131072 that are taken"),
        (&[3, 0, 0, 0, 8, 4, 0, 1], "Initiation: its information is cut short"),
        (&[3, 0, 0, 0, 8, 5, 0, 1], "Termination: its information is cut short"),
    ];
    for (bytes, part) in cases {
        let mut router = Monitored::new();
        router.send(&initiation());
        let error = router.try_send(bytes).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    let mut router = Monitored::new();
    let up = peer_up(header(pre(), A, 64501));
    assert_eq!(router.try_send(&up), Err(SessionError::Begin(Kind::PeerUp)));
}

#[test]
fn what_is_wrong_with_a_peer_costs_that_peer_its_routes_and_nobody_else() {
    let (a, b) = (header(pre(), A, 64501), header(pre(), B, 64502));
    let up = peer_up(a.clone());
    let update = monitoring(a.clone(), announce("203.0.113.0/24", &[64501]));
    let mut long_prefix = update.clone();
    let at = long_prefix.len() - 4;
    long_prefix[at] = 33;
    let cut = |bytes: &[u8], length: u8| {
        let mut bytes = bytes[..usize::from(length)].to_vec();
        bytes[4] = length;
        bytes
    };
    let cases: &[(&[u8], &str)] = &[
        (&cut(&up, 60), "Peer Up: it is cut short"),
        (&cut(&up, 90), "Peer Up: it is cut short in the OPEN that was sent"),
        (&cut(&update, 50), "Route Monitoring: there is no whole UPDATE in it"),
        (&cut(&update, 80), "Route Monitoring: there is no whole UPDATE in it"),
        (&long_prefix, "Route Monitoring: an UPDATE has a prefix that is too long"),
    ];
    for (bytes, part) in cases {
        let mut router = Monitored::new();
        router.send(&initiation());
        router.send(&up);
        router.send(&update);
        router.send(&peer_up(b.clone()));
        router.update(&b, announce("192.0.2.0/24", &[64502]));
        router.send(bytes);
        let fault = router.session.fault().unwrap();
        assert_eq!(fault.peer, Some(A.parse().unwrap()));
        assert!(fault.to_string().contains(part), "{part}: {fault}");
        // Its routes are gone, and new ones are not taken until it comes up.
        router.send(&update);
        assert_eq!(router.seen(), [("192.0.2.0/24", 1, 64502)], "{part}");
        let counters = router.session.counters();
        assert_eq!((counters.faults, counters.unannounced, router.session.peers()), (1, 1, 1));
        router.send(&up);
        router.send(&update);
        assert_eq!(router.seen().len(), 2, "{part}");
        assert_eq!(router.session.fault(), None, "{part}");
    }
    let mut router = Monitored::new();
    router.send(&initiation());
    router.send(&up);
    router.send(&[3, 0, 0, 0, 10, 3, 0, 0, 0, 0]);
    let fault = router.session.fault().unwrap().to_string();
    assert_eq!(fault, "a peer: Peer Up: its header is cut short");
    assert_eq!(router.session.peers(), 1);
}

#[test]
fn one_peer_too_many_is_refused_and_the_others_stay() {
    let mut router = Monitored::with(Settings { peers: 1, ..Settings::default() }, 10);
    router.send(&initiation());
    let up = peer_up(header(pre(), A, 64501));
    router.send(&up);
    router.send(&up);
    router.send(&peer_up(header(pre(), B, 64502)));
    let counters = router.session.counters();
    assert_eq!((counters.refused, counters.faults, router.session.peers()), (0, 1, 1));
    let fault = router.session.fault().unwrap().to_string();
    assert_eq!(fault, format!("peer {B}: Peer Up: the router has more than 1 peers"));
}

#[test]
fn a_chosen_route_by_way_of_a_refused_internal_peer_is_not_an_exit_here() {
    let mut router = Monitored::new();
    router.send(&initiation());
    router.send(&peer_up(header(loc(), A, LOCAL_AS)));
    let mut up = peer_up(header(pre(), "192.0.2.77", LOCAL_AS));
    up.truncate(90);
    up[4] = 90;
    router.send(&up);
    assert!(router.session.fault().is_some());
    let route = announce_via("203.0.113.0/24", &[64501], "192.0.2.77", None);
    router.update(&header(loc(), A, LOCAL_AS), route);
    assert_eq!((router.seen(), router.session.counters().internal), (vec![], 1));
}

/// FRR writes a header alone for an OPEN that it has lost in a collision of connections.
#[test]
fn a_peer_whose_open_was_lost_counts_as_one_without_path_identifiers() {
    let sent = open(LOCAL_AS, &[(AddressType::Ipv4Unicast, false, true)]);
    let lost = |header: PeerHeader, opens: &[&[u8]]| {
        let whole = peer_up_with(header, sent.clone(), sent.clone());
        let mut bytes = whole[..6 + 42 + 20].to_vec();
        bytes.extend(opens.concat());
        let length = u32::try_from(bytes.len()).unwrap();
        bytes[1..5].copy_from_slice(&length.to_be_bytes());
        bytes
    };
    let mut none = [0xff; 19];
    none[16..].copy_from_slice(&[0, 19, 1]);
    let mut written = Vec::new();
    sent.write(&mut written).unwrap();
    let (a, b) = (header(pre(), A, 64501), header(pre(), B, 64502));
    let mut router = Monitored::new();
    router.send(&initiation());
    // Nothing shows yet whether the peer is in the router's own AS.
    router.send(&lost(a.clone(), &[&none, &none]));
    let fault = router.session.fault().unwrap().to_string();
    assert!(fault.ends_with("it has no OPEN that shows the router's AS number"), "{fault}");
    router.send(&lost(b.clone(), &[&written, &none]));
    router.send(&lost(a.clone(), &[&none, &none]));
    router.update(&a, announce("203.0.113.0/24", &[64501]));
    router.update(&b, announce("192.0.2.0/24", &[64502]));
    assert_eq!(router.seen(), [("192.0.2.0/24", 1, 64502), ("203.0.113.0/24", 1, 64501)]);
    assert_eq!(router.session.counters().faults, 1);
}
