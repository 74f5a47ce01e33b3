use super::*;

fn handshake(id: u8) -> Vec<u8> {
    let mut bytes = peer_wire::GREETING.to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0x10, 0, 5]);
    bytes.extend_from_slice(&[id; 40]);
    bytes
}

fn message(code: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 2).unwrap();
    [&length.to_be_bytes()[..], &[20, code], payload].concat()
}

#[test]
fn a_handshake_is_known_and_peer_exchange_names_peers() {
    let mut talk = Talk::new(Transport::Tcp);
    let hello = handshake(1);
    assert_eq!(talk.client(&hello[..10]), "more");
    assert_eq!(talk.client(&hello[10..20]), "bittorrent/peer-wire");
    talk.client(&hello[20..]);
    talk.server(&[&handshake(2)[..], &message(0, b"d1:md6:ut_pexi1eee")].concat());
    talk.client(&message(0, b"d1:md6:ut_pexi7ee1:pi51000ee"));
    let exchange = b"d5:added6:\xc6\x33\x64\x07\x1a\xe1\
        6:added618:\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x1a\xe1e";
    talk.client(&message(7, exchange));
    assert_eq!(talk.listed("198.51.100.7:6881"), None, "the server wants it under another code");
    let exchange = message(1, exchange);
    talk.client(&exchange[..9]);
    talk.client(&exchange[9..]);
    assert_eq!(talk.listed("198.51.100.7:6881"), Some(("bittorrent", Source::PeerExchange)));
    assert!(talk.listed("[2001:db8::1]:6881").is_some());
    assert_eq!(talk.listed("10.0.0.5:51000"), Some(("bittorrent", Source::Announced)));
    assert_eq!(talk.listed(EXTERNAL), Some(("bittorrent", Source::Spoken)));
    assert!(talk.hosts.spoke("192.0.2.7".parse().unwrap(), Application::BitTorrent, talk.at_ns));
}

#[test]
fn what_a_proxy_carries_is_read() {
    let talks: [&[(Side, &[u8])]; 4] = [
        &[
            (Side::Client, b"CONNECT 192.0.2.9:6881 HTTP/1.1\r\nHost: 192.0.2.9:6881\r\n\r\n"),
            (Side::Server, b"HTTP/1.1 200 Connection established\r\n\r\n"),
        ],
        &[
            (Side::Client, b"\x05\x01\x00"),
            (Side::Server, b"\x05\x00"),
            (Side::Client, b"\x05\x01\x00\x01\xc0\x00\x02\x09\x1a\xe1"),
            (Side::Server, b"\x05\x00\x00\x01\0\0\0\0\0\0"),
        ],
        &[
            (Side::Client, b"\x05\x02\x00\x02"),
            (Side::Server, b"\x05\x02"),
            (Side::Client, b"\x01\x01a\x01b"),
            (Side::Server, b"\x01\x00"),
            (Side::Client, b"\x05\x01\x00\x03\x09a.example\x1a\xe1"),
            (Side::Server, b"\x05\x00\x00\x01\0\0\0\0\0\0"),
        ],
        &[
            (Side::Client, b"\x04\x01\x1a\xe1\xc0\x00\x02\x09user\0"),
            (Side::Server, b"\0\x5a\0\0\0\0\0\0"),
        ],
    ];
    for messages in talks {
        let mut talk = Talk::new(Transport::Tcp);
        for (from, bytes) in messages {
            assert_eq!(name(talk.say(*from, bytes)), "more", "{bytes:?}");
        }
        assert_eq!(talk.client(&handshake(1)), "bittorrent/peer-wire");
        talk.server(&handshake(2));
        talk.client(&message(0, b"d1:md6:ut_pexi1ee1:pi51000ee"));
        assert_eq!(talk.listed("10.0.0.5:51000"), Some(("bittorrent", Source::Announced)));
        assert_eq!(talk.listed(EXTERNAL), None, "the proxy is no peer");
        // What is no file sharing stays what it is.
        let mut talk = Talk::new(Transport::Tcp);
        for (from, bytes) in messages {
            let _ = talk.say(*from, bytes);
        }
        assert_eq!(talk.client(b"SSH-2.0-OpenSSH_9.2\r\n"), "unknown");
    }
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(b"\x05\x02\x00\x02"), "more");
    talk.server(b"\x05\xff");
    assert_eq!(talk.client(&handshake(1)), "unknown", "the proxy has refused");
}

#[test]
fn what_only_begins_like_a_handshake_is_not() {
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(b"\x13BitTorrent protoco"), "more");
    assert_eq!(talk.client(b"X"), "unknown");
}

#[test]
fn dht_messages_are_known_by_one_datagram() {
    let query = b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe";
    assert_eq!(Talk::new(Transport::Udp).client(query), "bittorrent/dht");
    let error = b"d1:eli201e23:A Generic Error Ocurrede1:t2:aa1:y1:ee";
    assert_eq!(Talk::new(Transport::Udp).server(error), "bittorrent/dht");
    for no in [
        &b"d1:ad2:id19:abcdefghij012345678e1:q4:ping1:t2:aa1:y1:qe"[..],
        b"d1:q4:ping1:t2:aa1:y1:qe",
        b"d1:y1:qe",
        b"de",
        b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qex",
    ] {
        assert_eq!(Talk::new(Transport::Udp).client(no), "more");
    }
}

#[test]
fn who_was_only_spoken_to_is_no_peer() {
    let query = b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe";
    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(query), "bittorrent/dht");
    let spoke = |talk: &Talk, host: &str| {
        talk.hosts.spoke(host.parse().unwrap(), Application::BitTorrent, talk.at_ns)
    };
    assert!(spoke(&talk, "10.0.0.5") && !spoke(&talk, "192.0.2.7"));
    assert_eq!(talk.listed(EXTERNAL), None);
    talk.server(b"d1:rd2:id20:abcdefghij0123456789e1:t2:aa1:y1:re");
    assert!(spoke(&talk, "192.0.2.7"));
    assert_eq!(talk.listed(EXTERNAL), Some(("bittorrent", Source::Spoken)));
    // The port from which one asks may be that of a router behind which others live.
    assert_eq!(talk.listed(INTERNAL), None);

    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(&handshake(1)), "bittorrent/peer-wire");
    talk.server(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(!spoke(&talk, "192.0.2.7"));
}

#[test]
fn one_answer_names_no_more_peers_than_programs_write_into_one() {
    let mut talk = Talk::new(Transport::Udp);
    let values: Vec<u8> = (0..1000_u16)
        .flat_map(|number| [&b"6:\xc6\x12"[..], &number.to_be_bytes(), b"\x1a\xe1"].concat())
        .collect();
    let begin = &b"d1:rd2:id20:abcdefghij01234567896:valuesl"[..];
    talk.server(&[begin, &values, b"ee1:t2:aa1:y1:re"].concat());
    // And the socket that was called.
    assert_eq!(talk.hosts.counts().0, 64 + 1);
}

#[test]
fn the_dht_names_nodes_values_and_the_port_announced() {
    let mut talk = Talk::new(Transport::Udp);
    let answer = b"d1:rd2:id20:abcdefghij01234567895:nodes26:mnopqrstuvwxyz123456\
        \xc6\x33\x64\x08\x1a\xe16:valuesl6:\xc6\x33\x64\x09\x1a\xe1ee1:t2:aa1:y1:re";
    talk.server(answer);
    assert_eq!(talk.listed("198.51.100.8:6881"), Some(("bittorrent", Source::DhtNode)));
    assert_eq!(talk.listed("198.51.100.9:6881"), Some(("bittorrent", Source::Dht)));
    talk.client(
        b"d1:ad2:id20:abcdefghij01234567899:info_hash20:mnopqrstuvwxyz1234564:porti6999e\
        5:token8:aoeusnthe1:q13:announce_peer1:t2:aa1:y1:qe",
    );
    assert_eq!(talk.listed("10.0.0.5:6999"), Some(("bittorrent", Source::Announced)));
}

#[test]
fn trackers_over_http_are_known_by_the_request() {
    let request = b"GET /announce?info_hash=%124Vx%9A%BC%DE%F1%23Eg%89%AB%CD%EF%124Vx%9A&\
        peer_id=-TR3000-123456789012&port=51413&uploaded=0&compact=1 HTTP/1.1\r\n\
        Host: tracker.example\r\n\r\n";
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(&request[..40]), "more");
    assert_eq!(talk.client(&request[40..]), "bittorrent/tracker");
    assert!(talk.classifier.learns());
    talk.server(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nd8:intervali1800e5:peers12:");
    talk.server(b"\xc6\x33\x64\x07\x1a\xe1\xc6\x33\x64\x08\x1a\xe1e");
    assert!(!talk.classifier.learns());
    assert_eq!(talk.listed("198.51.100.8:6881"), Some(("bittorrent", Source::Tracker)));
    assert_eq!(talk.listed("10.0.0.5:51413"), Some(("bittorrent", Source::Announced)));
    assert!(!talk.hosts.spoke("192.0.2.7".parse().unwrap(), Application::BitTorrent, 1));

    let mut talk = Talk::new(Transport::Tcp);
    talk.client(request);
    talk.server(
        b"HTTP/1.0 200 OK\r\n\r\nd8:intervali1800e5:peersl\
        d2:ip12:198.51.100.97:peer id20:-TR3000-1234567890124:porti6882eed2:ip1:x4:porti1eeee",
    );
    assert_eq!(talk.listed("198.51.100.9:6882"), Some(("bittorrent", Source::Tracker)));
}

#[test]
fn other_requests_are_no_trackers() {
    for (request, expected) in [
        (&b"GET /scrape?info_hash=aaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n\r\n"[..], "bittorrent/tracker"),
        (
            b"GET /x/scrape.php?a=b&info_hash=%61aaaaaaaaaaaaaaaaaaa HTTP/1.0\r\n\r\n",
            "bittorrent/tracker",
        ),
        (b"GET /page?info_hash=aaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n\r\n", "unknown"),
        (b"GET /scrape?info_hash=aaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n\r\n", "unknown"),
        (b"GET /announce?info_hash=x&peer_id=y&port=1 HTTP/1.1\r\n\r\n", "unknown"),
        (b"GET /announce HTTP/1.1\r\n\r\n", "unknown"),
        (b"POST /scrape?info_hash=aaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n\r\n", "unknown"),
    ] {
        let text = String::from_utf8_lossy(request);
        assert_eq!(Talk::new(Transport::Tcp).client(request), expected, "{text}");
    }
}

#[test]
fn trackers_over_udp_are_known_by_the_magic_or_by_two_that_agree() {
    let connect = b"\0\0\x04\x17\x27\x10\x19\x80\0\0\0\0abcd";
    assert_eq!(Talk::new(Transport::Udp).client(connect), "bittorrent/tracker");

    let mut announce = b"idididid\0\0\0\x01abcd".to_vec();
    announce.extend_from_slice(&[b'h'; 40]);
    announce.extend_from_slice(&[0; 24]);
    announce.extend_from_slice(&2_u32.to_be_bytes());
    announce.extend_from_slice(&[0; 8]);
    announce.extend_from_slice(&(-1_i32).to_be_bytes());
    announce.extend_from_slice(&51_413_u16.to_be_bytes());
    assert_eq!(announce.len(), 98);
    let answer = |transaction: &[u8]| {
        let head = [b"\0\0\0\x01", transaction, &[0; 12]].concat();
        [&head[..], b"\xc6\x33\x64\x07\x1a\xe1"].concat()
    };
    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(&announce), "more");
    assert_eq!(talk.server(&answer(b"abce")), "more");
    assert_eq!(talk.server(&answer(b"abcd")), "bittorrent/tracker");
    assert_eq!(talk.listed("198.51.100.7:6881"), Some(("bittorrent", Source::Tracker)));

    let mut talk = Talk::new(Transport::Udp);
    talk.client(connect);
    talk.server(b"\0\0\0\0abcdidididid");
    talk.client(&announce);
    talk.server(&answer(b"abcd"));
    assert_eq!(talk.listed("10.0.0.5:51413"), Some(("bittorrent", Source::Announced)));
    assert_eq!(talk.listed("198.51.100.7:6881"), Some(("bittorrent", Source::Tracker)));
}

fn utp(kind: u8, connection: u16, sequence: u16, acknowledgement: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind << 4 | 1, 0];
    bytes.extend_from_slice(&connection.to_be_bytes());
    bytes.extend_from_slice(&[0x5a; 8]);
    bytes.extend_from_slice(&0x0010_0000_u32.to_be_bytes());
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(&acknowledgement.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn utp_needs_both_ends_or_a_greeting() {
    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(&utp(4, 700, 1, 0, b"")), "more");
    assert_eq!(talk.client(&utp(4, 700, 1, 0, b"")), "more");
    assert_eq!(talk.server(&utp(2, 700, 9000, 1, b"")), "bittorrent/utp");
    assert_eq!(talk.listed(EXTERNAL), Some(("bittorrent", Source::Spoken)));

    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.server(&utp(0, 701, 50, 900, b"data")), "more");
    assert_eq!(talk.client(&utp(2, 703, 900, 50, b"")), "more");
    assert_eq!(talk.client(&utp(2, 700, 900, 50, b"")), "bittorrent/utp");

    let greeting = utp(0, 1, 2, 3, &handshake(1));
    assert_eq!(Talk::new(Transport::Udp).client(&greeting), "bittorrent/utp");

    // WireGuard's handshake begins like data of connection 0.
    let mut talk = Talk::new(Transport::Udp);
    let mut first = vec![1, 0, 0, 0];
    first.extend_from_slice(&[0x11; 144]);
    assert_eq!(talk.client(&first), "more");
    let mut second = vec![2, 0, 0, 0];
    second.extend_from_slice(&[0x12; 88]);
    assert_eq!(talk.server(&second), "more");
}

#[test]
fn local_discovery_names_its_sender() {
    let mut talk =
        Talk::between(Transport::Udp, "10.0.0.5:6771", "239.192.152.143:6771", Hosts::default());
    let text = b"BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\nPort: 51413\r\n\
        Infohash: 0123456789abcdef0123456789ABCDEF01234567\r\n\r\n\r\n";
    assert_eq!(talk.client(text), "bittorrent/lsd");
    assert_eq!(talk.listed(INTERNAL), Some(("bittorrent", Source::Announced)));
}

#[test]
fn web_seeds_are_certain_by_the_piece_and_likely_by_the_client() {
    let piece = b"GET /s.php?info_hash=aaaaaaaaaaaaaaaaaaaa&piece=3&ranges=0-9 HTTP/1.1\r\n\r\n";
    assert_eq!(Talk::new(Transport::Tcp).client(piece), "bittorrent/web-seed");
    let part = |agent: &str| {
        format!("GET /f HTTP/1.1\r\nUser-Agent: {agent}\r\nRange: bytes=0-9\r\n\r\n").into_bytes()
    };
    let ask = |agent: &str| Talk::new(Transport::Tcp).client(&part(agent));
    assert_eq!(ask("Transmission/3.00"), "bittorrent/web-seed?");
    assert_eq!(ask("curl/7.88.1"), "unknown");
    assert_eq!(ask("aria2/1.36.0"), "unknown", "it loads by HTTP too");
    let mut hosts = Hosts::default();
    hosts.speaks("10.0.0.5".parse().unwrap(), Application::BitTorrent, 1);
    let mut talk = Talk::between(Transport::Tcp, INTERNAL, EXTERNAL, hosts);
    assert_eq!(talk.client(&part("aria2/1.36.0")), "bittorrent/web-seed?");
    let whole = b"GET /f HTTP/1.1\r\nUser-Agent: Transmission/3.00\r\n\r\n";
    assert_eq!(Talk::new(Transport::Tcp).client(whole), "unknown");
}

#[test]
fn a_message_of_the_dht_that_was_cut_is_known_by_its_beginning() {
    let mut talk = Talk::new(Transport::Udp);
    let payload = b"d1:rd2:id20:abcdefghij01234567895:nodes416:mnopqrstuvwxyz";
    let packet = Packet { at_ns: 1, from: Side::Server, tcp: None, payload, length: 500 };
    assert_eq!(name(talk.classifier.packet(&packet, &mut talk.hosts)), "bittorrent/dht");
}
