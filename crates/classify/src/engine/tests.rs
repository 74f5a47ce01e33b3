//! Flows put together by hand, through all three engines.

use super::*;
use crate::{
    dns::tests as dns_tests,
    hosts::{Listed, Source},
    label::{Category, Certainty, Engine as By},
    tls::tests as hello,
};
use std::net::Ipv4Addr;

/// A connection whose bytes are counted.
struct Talk {
    flow: Flow,
    state: State,
    next: [u32; 2],
    at_ns: u64,
}

impl Talk {
    fn new(transport: Transport, port: u16) -> Self {
        let flow = Flow {
            transport,
            client: "10.0.0.5:40000".parse().unwrap(),
            server: format!("192.0.2.7:{port}").parse().unwrap(),
        };
        Self { flow, state: State::new(), next: [1, 1], at_ns: 0 }
    }

    /// The packet that one side says next.
    fn say(&mut self, engine: &mut Engine, from: Side, payload: &[u8]) -> Classification {
        let sequence = self.next[from as usize];
        self.next[from as usize] = sequence.wrapping_add(payload.len() as u32);
        self.segment(engine, from, sequence, Tcp::ACK, payload)
    }

    fn segment(
        &mut self,
        engine: &mut Engine,
        from: Side,
        sequence: u32,
        flags: u8,
        payload: &[u8],
    ) -> Classification {
        self.at_ns += 1_000_000;
        let tcp = Tcp { sequence, acknowledgement: 1, flags };
        let packet = Packet {
            at_ns: self.at_ns,
            from,
            tcp: (self.flow.transport == Transport::Tcp).then_some(tcp),
            payload,
            length: payload.len() as u32,
        };
        engine.packet(&self.flow, &mut self.state, &packet)
    }
}

fn engine() -> Engine {
    Engine::new(&Settings::default()).unwrap()
}

fn label(outcome: Classification) -> Label {
    match outcome {
        Classification::Known(label) => label,
        other => panic!("{other:?}"),
    }
}

/// Bytes that no protocol has.
fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

fn web(name: &str) -> Vec<u8> {
    let body = hello::body(0x0303, &[0x1301, 0xc02f], &[0, 10], &[hello::sni(name)]);
    hello::records(&body, 16_000)
}

#[test]
fn our_parsers_come_first_and_end_the_matter() {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 50_000);
    let mut handshake = b"\x13BitTorrent protocol".to_vec();
    handshake.extend(noise(48, 1));
    let _ = talk.say(&mut engine, Side::Client, &handshake);
    let label = label(talk.say(&mut engine, Side::Server, &handshake));
    assert_eq!((&*label.application, label.engine), ("bittorrent", By::Parser));
    assert_eq!(label.certainty, Certainty::Certain);
    // Known once, known for ever.
    assert_eq!(
        talk.say(&mut engine, Side::Client, b"GET / HTTP/1.1\r\n\r\n"),
        Classification::Known(label)
    );
}

#[test]
fn ndpi_names_the_rest() {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 8080);
    let request =
        b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/8\r\n\r\n";
    let mut outcome = talk.say(&mut engine, Side::Client, request);
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi";
    if outcome == Classification::Pending {
        outcome = talk.say(&mut engine, Side::Server, answer);
    }
    let label = label(outcome);
    assert_eq!((&*label.application, label.category), ("http", Category::Web));
    assert_eq!(label.to_string(), "http (server name www.example.org)");
    assert_eq!(label.engine, By::Ndpi);
}

#[test]
fn a_hello_split_and_out_of_order_is_named() {
    let stream = web("rr4.googlevideo.com");
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 443);
    assert_eq!(talk.segment(&mut engine, Side::Client, 99, Tcp::SYN, &[]), Classification::Pending);
    assert_eq!(
        talk.segment(&mut engine, Side::Client, 140, Tcp::ACK, &stream[40..]),
        Classification::Pending
    );
    let outcome = talk.segment(&mut engine, Side::Client, 100, Tcp::ACK, &stream[..40]);
    assert_eq!(talk.state.facts().server_name.as_deref(), Some("rr4.googlevideo.com"));
    assert_eq!(talk.state.facts().ja4.as_deref().map(str::len), Some(36));
    assert_eq!(label(outcome).to_string(), "tls/youtube (server name rr4.googlevideo.com)");
}

#[test]
fn the_server_s_name_says_what_tls_carries() {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 443);
    let mut outcome = talk.say(&mut engine, Side::Client, &web("rr4.googlevideo.com"));
    if outcome == Classification::Pending {
        outcome = engine.give_up(&talk.flow, &mut talk.state);
    }
    assert_eq!(label(outcome).to_string(), "tls/youtube (server name rr4.googlevideo.com)");
}

#[test]
fn the_name_that_dns_gave_an_address_helps_where_nothing_else_does() {
    let mut engine = engine();
    let mut asked = Talk::new(Transport::Udp, 53);
    let answer = dns_tests::one("rr4.googlevideo.com", Ipv4Addr::new(192, 0, 2, 7), 60);
    let question = dns_tests::question_to(&answer);
    assert_eq!(asked.say(&mut engine, Side::Client, &question), Classification::Pending);
    let outcome = match asked.say(&mut engine, Side::Server, &answer) {
        Classification::Pending => engine.give_up(&asked.flow, &mut asked.state),
        outcome => outcome,
    };
    let found = label(outcome);
    assert_eq!((&*found.application, found.category), ("dns", Category::Network));
    assert_eq!(engine.names().len(), 1);

    // Nobody asked for what comes then, or asked it under another number.
    for question in [None, Some(dns_tests::one("b.example", Ipv4Addr::LOCALHOST, 1))] {
        let mut lies = Talk::new(Transport::Udp, 53);
        if let Some(answer) = question {
            let _ = lies.say(&mut engine, Side::Client, &dns_tests::question_to(&answer));
        }
        let answer = dns_tests::one("windowsupdate.com", Ipv4Addr::new(192, 0, 2, 8), 60);
        let _ = lies.say(&mut engine, Side::Server, &answer);
        assert_eq!(engine.names().len(), 1);
    }

    let mut talk = Talk::new(Transport::Tcp, 9999);
    assert_eq!(talk.say(&mut engine, Side::Client, &[0; 30]), Classification::Pending);
    let found = label(engine.give_up(&talk.flow, &mut talk.state));
    assert_eq!(found.to_string(), "youtube (likely: 192.0.2.7 is rr4.googlevideo.com by DNS)");
    assert_eq!(talk.state.facts().dns_name.as_deref(), Some("rr4.googlevideo.com"));

    // What one host learnt labels no unknown flow of another.
    let mut talk = Talk::new(Transport::Tcp, 9999);
    talk.flow.client = "10.0.0.6:40000".parse().unwrap();
    assert_eq!(talk.say(&mut engine, Side::Client, &[0; 30]), Classification::Pending);
    assert_eq!(engine.give_up(&talk.flow, &mut talk.state), Classification::Unknown);
    engine.forget();
    assert!(engine.names().is_empty());
}

#[test]
fn signatures_name_what_ndpi_does_not_and_refine_what_only_carries() {
    let signatures = toml::from_str::<Config>(
        r#"
        [[signature]]
        name = "house-protocol"
        pattern = '^HOUSE [0-9]+\n'
        [[signature]]
        name = "house-web"
        category = "web"
        side = "client"
        pattern = '\r\nX-House: 1\r\n'
        "#,
    );
    #[derive(serde::Deserialize)]
    struct Config {
        signature: Vec<SignatureConfig>,
    }
    let settings = Settings { signatures: signatures.unwrap().signature, ..Settings::default() };
    let mut engine = Engine::new(&settings).unwrap();
    let mut talk = Talk::new(Transport::Tcp, 4000);
    let mut outcome = talk.say(&mut engine, Side::Client, b"HOUSE ");
    assert_eq!(outcome, Classification::Pending);
    for _ in 0..8 {
        outcome = talk.say(&mut engine, Side::Client, b"12\nabc\n");
        if outcome != Classification::Pending {
            break;
        }
    }
    assert_eq!(label(outcome).to_string(), "house-protocol (signature house-protocol)");

    let mut talk = Talk::new(Transport::Tcp, 80);
    let request = b"GET / HTTP/1.1\r\nHost: h.example\r\nX-House: 1\r\n\r\n";
    let outcome = match talk.say(&mut engine, Side::Client, request) {
        Classification::Pending => engine.give_up(&talk.flow, &mut talk.state),
        outcome => outcome,
    };
    assert_eq!(&*label(outcome).application, "house-web");
}

/// What a connection is found to be whose client says that in segments of a length, in order or each pair
/// of them swapped.
fn cut(bytes: &[u8], length: usize, swapped: bool) -> Classification {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 50_000);
    let _ = talk.segment(&mut engine, Side::Client, u32::MAX - 3, Tcp::SYN, &[]);
    let mut segments: Vec<_> = bytes.chunks(length).enumerate().collect();
    if swapped {
        segments.chunks_mut(2).for_each(<[_]>::reverse);
    }
    let mut outcome = Classification::Pending;
    for (at, bytes) in segments {
        let sequence = (u32::MAX - 2).wrapping_add((at * length) as u32);
        outcome = talk.segment(&mut engine, Side::Client, sequence, Tcp::ACK, bytes);
    }
    match outcome {
        Classification::Pending => engine.give_up(&talk.flow, &mut talk.state),
        outcome => outcome,
    }
}

#[test]
fn how_a_message_is_cut_into_segments_changes_nothing() {
    let handshake = [b"\x13BitTorrent protocol".to_vec(), noise(48, 1)].concat();
    let announce = b"GET /announce?info_hash=%124Vx%9A%BC%DE%F1%23Eg%89%AB%CD%EF%124Vx%9A&\
        peer_id=-TR3000-123456789012&port=51413 HTTP/1.1\r\nHost: t.example\r\n\r\n";
    let page = b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/8\r\n\r\n";
    let sent = b"POST /index.html HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 9\r\n\r\n";
    // A hello of eDonkey: length, code, hash, id, port, a tag, address of the server.
    let mut hello = [&[0xe3, 40, 0, 0, 0, 1, 16][..], &noise(16, 2)].concat();
    hello.extend([1, 2, 3, 4, 0x36, 0x12, 1, 0, 0, 0, 0x83, 0x11, 60, 0, 0, 0]);
    hello.extend([5, 6, 7, 8, 0x35, 0x12]);
    let gnutella = b"GNUTELLA CONNECT/0.6\r\nUser-Agent: a\r\n\r\n";
    let hub = b"HSUP ADBASE ADTIGR\n";
    let mut missed = Vec::new();
    for (bytes, expected) in [
        (&handshake[..], "bittorrent/peer-wire (peer wire handshake)"),
        (announce, "bittorrent/tracker (announcement to a tracker)"),
        (page, "http (server name www.example.org)"),
        (sent, "http (server name www.example.org)"),
        (&hello, "edonkey/tcp (hello of a client)"),
        (gnutella, "gnutella (handshake of Gnutella)"),
        (hub, "directconnect/adc (features of an ADC client or hub)"),
        (&web("rr4.googlevideo.com"), "tls/youtube (server name rr4.googlevideo.com)"),
    ] {
        for pieces in [1, 2, 3, 7, 25] {
            for swapped in [false, true] {
                let outcome = cut(bytes, bytes.len().div_ceil(pieces), swapped);
                let found = match outcome {
                    Classification::Known(label) => label.to_string(),
                    outcome => format!("{outcome:?}"),
                };
                if found != expected {
                    missed.push(format!("{expected}, {pieces} segments, {swapped}: {found}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn segments_that_bring_nothing_new_take_nothing_of_the_budget() {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 6881);
    for _ in 0..20 {
        let outcome = talk.segment(&mut engine, Side::Client, 1, Tcp::ACK, b"\x13Bit");
        assert_eq!(outcome, Classification::Pending);
    }
    assert_eq!(engine.wants(&talk.state), MAX_PACKETS);
    let rest = b"Torrent protocol";
    let found = label(talk.segment(&mut engine, Side::Client, 5, Tcp::ACK, rest));
    assert_eq!(&*found.application, "bittorrent");
}

#[test]
fn after_its_budget_a_flow_is_unknown_and_costs_nothing() {
    for (bytes, budget) in [(200, 8), (5, 32)] {
        let mut engine = engine();
        let mut talk = Talk::new(Transport::Tcp, 6881);
        for count in 1..=budget {
            let outcome = talk.say(&mut engine, Side::Client, &[0x80 | count; 200][..bytes]);
            let expected =
                if count == budget { Classification::Unknown } else { Classification::Pending };
            assert_eq!(outcome, expected, "packet {count} of {bytes} bytes");
            // What carries nothing does not count.
            let _ = talk.say(&mut engine, Side::Server, &[]);
        }
        assert!(talk.state.work.is_none());
        let outcome = talk.say(&mut engine, Side::Client, b"\x13BitTorrent protocol");
        assert_eq!(outcome, Classification::Unknown);
    }
}

#[test]
fn a_peer_that_ends_the_connection_at_once_is_found_when_the_flow_is_given_up() {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 6881);
    let reported_by = "192.0.2.1:6969".parse().unwrap();
    let reported_to = talk.flow.client.ip();
    let (application, source) = (crate::application::Application::BitTorrent, Source::Tracker);
    let (transport, confirmed) = (None, false);
    let listed =
        Listed { application, transport, source, reported_by, reported_to, confirmed, at_ns: 0 };
    engine.hosts.learn(talk.flow.server, listed);
    assert_eq!(talk.say(&mut engine, Side::Client, &noise(300, 7)), Classification::Pending);
    let _ = talk.segment(&mut engine, Side::Server, 1, Tcp::RST, &[]);
    let found = label(engine.give_up(&talk.flow, &mut talk.state));
    let reason = "random first messages to 192.0.2.7:6881, named by the tracker 192.0.2.1:6969";
    assert_eq!(found.to_string(), format!("bittorrent/mse (likely: {reason})"));
}

#[test]
fn a_flow_of_which_nothing_was_said_is_unknown() {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 80);
    assert_eq!(talk.segment(&mut engine, Side::Client, 0, Tcp::SYN, &[]), Classification::Pending);
    assert!(talk.state.work.is_none(), "a flood of SYNs must not take memory");
    assert_eq!(engine.give_up(&talk.flow, &mut talk.state), Classification::Unknown);
}

/// What a flow is whose ends say these by turns.
fn named(transport: Transport, port: u16, payloads: &[Vec<u8>]) -> Classification {
    let mut engine = engine();
    let mut talk = Talk::new(transport, port);
    for (from, payload) in [Side::Client, Side::Server].into_iter().cycle().zip(payloads) {
        if let Classification::Known(label) = talk.say(&mut engine, from, payload) {
            return Classification::Known(label);
        }
    }
    engine.give_up(&talk.flow, &mut talk.state)
}

#[test]
fn a_port_alone_gives_no_name() {
    let payloads = [1, 2, 3, 4].map(|seed| noise(300, seed));
    for port in [53, 853, 3478, 3544, 5001, 5201, 5353, 5355] {
        for transport in [Transport::Tcp, Transport::Udp] {
            let outcome = named(transport, port, &payloads);
            assert_eq!(outcome, Classification::Unknown, "{transport:?} {port}");
        }
    }
}

#[test]
fn what_is_said_and_its_port_give_a_name() {
    let answer = dns_tests::one("a.example", Ipv4Addr::new(192, 0, 2, 7), 60);
    let question = dns_tests::question_to(&answer);
    let framed = |message: &[u8]| [&(message.len() as u16).to_be_bytes()[..], message].concat();
    // A service is announced without that anybody asked.
    let mut announced = answer[..12].to_vec();
    announced[2..8].copy_from_slice(&[0x84, 0, 0, 0, 0, 1]);
    announced.extend(b"\x01a\x05local\0\0\x01\x80\x01\0\0\0\x78\0\x04\xc0\0\x02\x07");
    let binding = [&b"\0\x01\0\0\x21\x12\xa4\x42"[..], &noise(12, 1)].concat();
    for (transport, port, payloads, name) in [
        (Transport::Udp, 53, vec![question.clone(), answer.clone()], "dns"),
        (Transport::Tcp, 53, vec![framed(&question), framed(&answer)], "dns"),
        (Transport::Udp, 5353, vec![announced], "mdns"),
        (Transport::Udp, 5355, vec![question], "llmnr"),
        (Transport::Udp, 3478, vec![binding], "stun"),
    ] {
        assert_eq!(label(named(transport, port, &payloads)).application, name);
    }
}
