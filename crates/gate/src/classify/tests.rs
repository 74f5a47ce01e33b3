//! Flows put together by hand, through all three engines.

use super::*;
use crate::{
    dns::tests as dns_tests,
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
    fn say(&mut self, engine: &mut Engine, from: Side, payload: &[u8]) -> Outcome {
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
    ) -> Outcome {
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

fn label(outcome: Outcome) -> Label {
    match outcome {
        Outcome::Known(label) => label,
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
        Outcome::Known(label)
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
    if outcome == Outcome::More {
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
    assert_eq!(talk.segment(&mut engine, Side::Client, 99, Tcp::SYN, &[]), Outcome::More);
    assert_eq!(
        talk.segment(&mut engine, Side::Client, 140, Tcp::ACK, &stream[40..]),
        Outcome::More
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
    if outcome == Outcome::More {
        outcome = engine.give_up(&talk.flow, &mut talk.state);
    }
    assert_eq!(label(outcome).to_string(), "tls/youtube (server name rr4.googlevideo.com)");
}

#[test]
fn the_name_that_dns_gave_an_address_helps_where_nothing_else_does() {
    let mut engine = engine();
    let mut asked = Talk::new(Transport::Udp, 53);
    let answer = dns_tests::one("rr4.googlevideo.com", Ipv4Addr::new(192, 0, 2, 7), 60);
    let mut question = answer[..answer.len() - 16].to_vec();
    question[2..8].copy_from_slice(&[1, 0, 0, 1, 0, 0]);
    assert_eq!(asked.say(&mut engine, Side::Client, &question), Outcome::More);
    let outcome = match asked.say(&mut engine, Side::Server, &answer) {
        Outcome::More => engine.give_up(&asked.flow, &mut asked.state),
        outcome => outcome,
    };
    let found = label(outcome);
    assert_eq!((&*found.application, found.category), ("dns", Category::Network));
    assert_eq!(engine.names().len(), 1);

    let mut talk = Talk::new(Transport::Tcp, 9999);
    assert_eq!(talk.say(&mut engine, Side::Client, &[0; 30]), Outcome::More);
    let found = label(engine.give_up(&talk.flow, &mut talk.state));
    assert_eq!(found.to_string(), "youtube (likely: 192.0.2.7 is rr4.googlevideo.com by DNS)");
    assert_eq!(talk.state.facts().dns_name.as_deref(), Some("rr4.googlevideo.com"));
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
    assert_eq!(outcome, Outcome::More);
    for _ in 0..8 {
        outcome = talk.say(&mut engine, Side::Client, b"12\nabc\n");
        if outcome != Outcome::More {
            break;
        }
    }
    assert_eq!(label(outcome).to_string(), "house-protocol (signature house-protocol)");

    let mut talk = Talk::new(Transport::Tcp, 80);
    let request = b"GET / HTTP/1.1\r\nHost: h.example\r\nX-House: 1\r\n\r\n";
    let outcome = match talk.say(&mut engine, Side::Client, request) {
        Outcome::More => engine.give_up(&talk.flow, &mut talk.state),
        outcome => outcome,
    };
    assert_eq!(&*label(outcome).application, "house-web");
}

#[test]
fn after_its_budget_a_flow_is_unknown_and_costs_nothing() {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 6881);
    for count in 1..=8 {
        let outcome = talk.say(&mut engine, Side::Client, &[0x80, count, 0x80, 0x80, 0x80]);
        let expected = if count == 8 { Outcome::Unknown } else { Outcome::More };
        assert_eq!(outcome, expected, "packet {count}");
        // What carries nothing does not count.
        let _ = talk.say(&mut engine, Side::Server, &[]);
    }
    assert!(talk.state.work.is_none());
    assert_eq!(talk.say(&mut engine, Side::Client, b"\x13BitTorrent protocol"), Outcome::Unknown);
}

#[test]
fn a_flow_of_which_nothing_was_said_is_unknown() {
    let mut engine = engine();
    let mut talk = Talk::new(Transport::Tcp, 80);
    assert_eq!(talk.segment(&mut engine, Side::Client, 0, Tcp::SYN, &[]), Outcome::More);
    assert!(talk.state.work.is_none(), "a flood of SYNs must not take memory");
    assert_eq!(engine.give_up(&talk.flow, &mut talk.state), Outcome::Unknown);
}
