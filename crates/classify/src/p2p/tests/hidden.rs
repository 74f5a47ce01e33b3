//! How often the rules for flows that hide are right: BitTorrent with message stream encryption and
//! obfuscated eMule among flows of other protocols that look random too, with hosts of which something is
//! known and hosts of which nothing is. Everything is drawn from a seed.
//!
//! The lengths are those of the specification, and so are the rule's: what is measured here is what the rule
//! does with other protocols and with evidence, not whether clients keep to the specification. That
//! `tests/it/recordings` shows, by what they sent.

use super::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// What the ends say in turn; the client begins.
type Conversation = Vec<Vec<u8>>;

fn random(rng: &mut StdRng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes[..]);
    bytes
}

fn between(rng: &mut StdRng, lengths: std::ops::Range<usize>) -> Vec<u8> {
    let length = rng.random_range(lengths);
    random(rng, length)
}

/// As libtorrent (padding everywhere, handshake within), Transmission (no padding in the third) and aria2
/// (handshake only after the fourth) send it.
fn mse(rng: &mut StdRng) -> Conversation {
    let keys = [between(rng, 96..609), between(rng, 96..609)];
    let third = match rng.random_range(0..3) {
        0 => between(rng, 124..124 + 513),
        1 => random(rng, 124),
        _ => between(rng, 56..56 + 512),
    };
    let [first, second] = keys;
    vec![first, second, third, between(rng, 82..1400)]
}

/// Client Hello and what follows it, with lengths where RFC 8446 has them.
fn tls(rng: &mut StdRng) -> Conversation {
    let record = |kind: u8, body: &[u8]| {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&[kind, 3, 3], &length[..], body].concat()
    };
    let hello = between(rng, 180..500);
    let length = u8::try_from(hello.len() >> 8).unwrap();
    let hello = [&[1, 0, length, hello.len() as u8, 3, 3], &hello[..]].concat();
    let (server, data) = (between(rng, 90..1200), between(rng, 60..600));
    let finished = record(22, &data);
    vec![record(22, &hello), record(22, &server), finished, record(23, &between(rng, 60..600))]
}

/// A connection that was there before: records of data.
fn tls_midway(rng: &mut StdRng) -> Conversation {
    let mut talk = tls(rng);
    talk.drain(..2);
    talk.extend(tls(rng).drain(2..));
    talk
}

fn ssh(rng: &mut StdRng) -> Conversation {
    let mut exchange = vec![0, 0, 4, 0x1c, 9, 20];
    exchange.extend(random(rng, 16));
    exchange.extend_from_slice(
        &b"curve25519-sha256,ssh-ed25519,aes128-gcm@openssh.com,none".repeat(12),
    );
    vec![
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_vec(),
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_vec(),
        exchange.clone(),
        exchange,
    ]
}

/// Noise over TCP: each message has its length before it.
fn noise(rng: &mut StdRng) -> Conversation {
    let frame =
        |body: Vec<u8>| [&u16::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat();
    vec![
        frame(between(rng, 32..400)),
        frame(between(rng, 96..500)),
        frame(between(rng, 64..500)),
        frame(between(rng, 64..500)),
    ]
}

/// Noise_IK with nothing before its messages, as a library that frames them elsewhere sends it.
fn noise_bare(rng: &mut StdRng) -> Conversation {
    vec![random(rng, 96), random(rng, 48), between(rng, 32..900), between(rng, 32..900)]
}

/// WireGuard as tunnels over TCP carry it: type, three bytes of zero, the rest random.
fn wireguard(rng: &mut StdRng) -> Conversation {
    let message = |kind: u8, body: Vec<u8>| [&[kind, 0, 0, 0], &body[..]].concat();
    vec![
        message(1, random(rng, 144)),
        message(2, random(rng, 88)),
        message(4, between(rng, 28..1400)),
        message(4, between(rng, 28..1400)),
    ]
}

/// Shadowsocks with AEAD ciphers: salt, length, target and the client's first bytes; mostly TLS within.
fn shadowsocks(rng: &mut StdRng) -> Conversation {
    let overhead = 32 + 18 + 16;
    let (ask, answer) = match rng.random_range(0..10) {
        0..7 => (rng.random_range(250..620), rng.random_range(900..1400)),
        _ => (rng.random_range(80..400), rng.random_range(150..1400)),
    };
    let target = rng.random_range(7..40);
    vec![
        random(rng, overhead + target + ask),
        random(rng, overhead + answer),
        between(rng, 100..1400),
        between(rng, 100..1400),
    ]
}

/// Random bytes in messages of any length.
fn noise_of_any_length(rng: &mut StdRng) -> Conversation {
    (0..4).map(|_| between(rng, 1..1461)).collect()
}

/// A server that one host uses again and again, or a new one for each flow.
#[derive(Clone, Copy, PartialEq)]
enum Servers {
    One,
    Many,
}

/// A kind of flow that is not BitTorrent, and how a host uses it.
struct Kind {
    name: &'static str,
    talk: fn(&mut StdRng) -> Conversation,
    servers: Servers,
}

const OTHERS: [Kind; 9] = [
    Kind { name: "tls", talk: tls, servers: Servers::Many },
    Kind { name: "tls midway", talk: tls_midway, servers: Servers::Many },
    Kind { name: "ssh", talk: ssh, servers: Servers::Many },
    Kind { name: "noise", talk: noise, servers: Servers::Many },
    Kind { name: "noise without lengths", talk: noise_bare, servers: Servers::Many },
    Kind { name: "wireguard over tcp", talk: wireguard, servers: Servers::One },
    Kind { name: "shadowsocks", talk: shadowsocks, servers: Servers::One },
    Kind { name: "random, one server", talk: noise_of_any_length, servers: Servers::One },
    Kind { name: "random, many servers", talk: noise_of_any_length, servers: Servers::Many },
];

/// An internal host and all that it does.
struct Host {
    address: String,
    hosts: Hosts,
    flows: u16,
}

impl Host {
    fn new(number: u32) -> Self {
        let address = format!("10.0.{}.{}", number / 250, number % 250 + 1);
        Self { address, hosts: Hosts::default(), flows: 0 }
    }

    /// It asks the DHT, so it is known to run BitTorrent; seven of ten peers are named to it.
    fn runs_bittorrent(&mut self) {
        let query = b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe";
        let client = format!("{}:51413", self.address);
        self.talk(Transport::Udp, &client, "192.0.2.99:6881", &[query.to_vec()]);
    }

    /// Calls a peer of BitTorrent that obfuscates; whether it was found.
    fn calls_peer(&mut self, rng: &mut StdRng, named: bool) -> bool {
        let peer = format!("198.{}.{}.7:6881", 18 + self.flows / 250, self.flows % 250);
        if named {
            let reported_by = "192.0.2.1:6969".parse().unwrap();
            let reported_to = self.address.parse().unwrap();
            let (application, transport) = (Application::BitTorrent, None);
            let (source, confirmed, at_ns) = (Source::Tracker, false, 1);
            let listed = Listed {
                application,
                transport,
                source,
                reported_by,
                reported_to,
                confirmed,
                at_ns,
            };
            self.hosts.learn(peer.parse().unwrap(), listed);
        }
        let talk = mse(rng);
        self.calls(&peer, &talk) == "bittorrent/mse?"
    }

    /// Makes another flow; whether it was called BitTorrent or anything else.
    fn makes(&mut self, rng: &mut StdRng, kind: &Kind) -> bool {
        let server = match kind.servers {
            Servers::One => "203.0.113.9:8388".to_owned(),
            Servers::Many => format!("203.0.{}.{}:8443", self.flows / 250, self.flows % 250),
        };
        let talk = (kind.talk)(rng);
        !matches!(self.calls(&server, &talk).as_str(), "more" | "unknown")
    }

    fn calls(&mut self, server: &str, talk: &[Vec<u8>]) -> String {
        self.flows += 1;
        let client = format!("{}:{}", self.address, 20_000 + self.flows);
        self.talk(Transport::Tcp, &client, server, talk)
    }

    fn talk(
        &mut self,
        transport: Transport,
        client: &str,
        server: &str,
        payloads: &[Vec<u8>],
    ) -> String {
        let mut talk = Talk::between(transport, client, server, std::mem::take(&mut self.hosts));
        let mut outcome = "more".to_owned();
        for (turn, payload) in payloads.iter().enumerate() {
            outcome = if turn % 2 == 0 { talk.client(payload) } else { talk.server(payload) };
        }
        self.hosts = talk.hosts;
        outcome
    }

    /// Calls a host that shares files, too, with what it says of both.
    fn calls_one_who_shares(
        &mut self,
        rng: &mut StdRng,
        talk: fn(&mut StdRng) -> Conversation,
    ) -> bool {
        let server = format!("203.0.113.{}", rng.random_range(1..40));
        self.hosts.speaks(server.parse().unwrap(), Application::BitTorrent, 1);
        let talk = talk(rng);
        self.calls(&format!("{server}:8443"), &talk) == "bittorrent/mse?"
    }
}

/// Flows of each host that are not BitTorrent; each kind is tried on that many hosts.
const FLOWS: u32 = 100;
const HOSTS: u32 = 4;

#[test]
fn obfuscated_bittorrent_is_found() {
    let mut rng = StdRng::seed_from_u64(173);
    for (named, least) in [(10, 0.99), (7, 0.99), (3, 0.95), (0, 0.9)] {
        let mut found = 0;
        for number in 0..HOSTS {
            let mut host = Host::new(number);
            host.runs_bittorrent();
            for flow in 0..FLOWS {
                found += u32::from(host.calls_peer(&mut rng, flow % 10 < named));
            }
        }
        let share = f64::from(found) / f64::from(HOSTS * FLOWS);
        println!("{named} of 10 peers named: {share:.4} found");
        assert!(share >= least, "{named} of 10 peers named: {share}");
    }
}

#[test]
fn a_host_of_which_nothing_is_heard_is_found_by_its_many_calls() {
    let mut rng = StdRng::seed_from_u64(174);
    let mut host = Host::new(0);
    let found: Vec<bool> = (0..FLOWS).map(|_| host.calls_peer(&mut rng, false)).collect();
    assert!(found[..10].iter().all(|found| !found));
    let share = found[20..].iter().filter(|found| **found).count() * 100 / (found.len() - 20);
    println!("found after 20 calls: {share} %");
    assert!(share >= 90, "{share} %");
}

#[test]
fn other_flows_are_seldom_called_bittorrent() {
    for kind in &OTHERS {
        let mut rng = StdRng::seed_from_u64(175);
        let (mut with, mut without, mut found) = (0, 0, 0);
        for number in 0..HOSTS {
            // A host that runs BitTorrent, with three such calls to each other one.
            let mut host = Host::new(number);
            host.runs_bittorrent();
            for _ in 0..48 {
                host.calls_peer(&mut rng, true);
            }
            for flow in 0..FLOWS {
                for call in 0..3 {
                    found += u32::from(host.calls_peer(&mut rng, (3 * flow + call) % 10 < 7));
                }
                with += u32::from(host.makes(&mut rng, kind));
            }
            // One that does not.
            let mut host = Host::new(number);
            for _ in 0..FLOWS {
                without += u32::from(host.makes(&mut rng, kind));
            }
        }
        let share = |count: u32, of: u32| f64::from(count) / f64::from(of * HOSTS * FLOWS);
        let (with, without, found) = (share(with, 1), share(without, 1), share(found, 3));
        println!("{:24} with {with:.4}, without {without:.4}; {found:.4} found", kind.name);
        assert!(with <= 0.005, "{}: {with}", kind.name);
        assert!(without <= 0.001, "{}: {without}", kind.name);
        // Seven of ten peers are named.
        assert!(found >= 0.69, "{}: {found} found", kind.name);
    }
}

/// Between two hosts that share files nobody needs to be named, and a tunnel is not taken for what they share.
#[test]
fn of_two_hosts_that_share_their_calls_before_tell() {
    let mut rng = StdRng::seed_from_u64(180);
    let mut found = 0;
    for number in 0..HOSTS {
        let mut host = Host::new(number);
        host.runs_bittorrent();
        found += (0..FLOWS).filter(|_| host.calls_one_who_shares(&mut rng, mse)).count();
    }
    let found = found as f64 / f64::from(HOSTS * FLOWS);
    println!("between two that share: {found:.4} found");
    assert!(found >= 0.95, "{found}");
    for talk in [shadowsocks, noise_of_any_length, noise_bare] {
        let mut wrong = 0;
        for number in 0..HOSTS {
            let mut host = Host::new(number);
            host.runs_bittorrent();
            wrong += (0..FLOWS).filter(|_| host.calls_one_who_shares(&mut rng, talk)).count();
        }
        let wrong = wrong as f64 / f64::from(HOSTS * FLOWS);
        println!("between two that share, something else: {wrong:.4}");
        assert!(wrong <= 0.005, "{wrong}");
    }
}

#[test]
fn a_third_message_in_pieces_is_waited_for() {
    let mut rng = StdRng::seed_from_u64(181);
    for pieces in [1, 20, 40] {
        let mut host = Host::new(0);
        host.runs_bittorrent();
        host.hosts.speaks("192.0.2.7".parse().unwrap(), Application::BitTorrent, 1);
        let hosts = std::mem::take(&mut host.hosts);
        let mut talk = Talk::between(Transport::Tcp, "10.0.0.1:40000", EXTERNAL, hosts);
        talk.client(&random(&mut rng, 300));
        talk.server(&random(&mut rng, 200));
        assert_eq!(talk.client(&random(&mut rng, pieces)), "more");
        assert_eq!(talk.client(&random(&mut rng, 60)), "bittorrent/mse?");
    }
}

#[test]
fn obfuscated_emule_is_found_by_its_sources() {
    let mut rng = StdRng::seed_from_u64(176);
    let mut found = 0;
    for _ in 0..1000 {
        let mut hosts = Hosts::default();
        let listed = Listed {
            application: Application::Edonkey,
            transport: None,
            source: Source::Edonkey,
            reported_by: "192.0.2.1:4661".parse().unwrap(),
            reported_to: "10.0.0.5".parse().unwrap(),
            confirmed: false,
            at_ns: 1,
        };
        hosts.learn("192.0.2.7:6881".parse().unwrap(), listed);
        let mut talk = Talk::between(Transport::Tcp, "10.0.0.5:40000", EXTERNAL, hosts);
        let mut first = between(&mut rng, 12..268);
        first[0] = 0x11;
        talk.client(&first);
        talk.server(&between(&mut rng, 6..262));
        found += u32::from(talk.client(&between(&mut rng, 40..300)) == "edonkey/obfuscated?");
    }
    assert!(found >= 900, "{found} of 1000");

    // With a server, by the lengths, if the host spoke eDonkey elsewhere.
    for (spoke, expected) in [(true, "edonkey/obfuscated?"), (false, "unknown")] {
        let mut hosts = Hosts::default();
        if spoke {
            hosts.speaks("10.0.0.5".parse().unwrap(), Application::Edonkey, 1);
        }
        let mut talk = Talk::between(Transport::Tcp, "10.0.0.5:40000", EXTERNAL, hosts);
        let mut first = random(&mut rng, 100);
        first[0] = 0x11;
        talk.client(&first);
        talk.server(&random(&mut rng, 107));
        assert_eq!(talk.client(&random(&mut rng, 90)), expected);
    }

    let mut datagram = random(&mut rng, 51);
    datagram[0] = 0x10;
    assert_eq!(Talk::new(Transport::Udp).client(&datagram), "more");
    let mut hosts = Hosts::default();
    let listed = Listed {
        application: Application::Edonkey,
        transport: None,
        source: Source::Kad,
        reported_by: "192.0.2.1:4672".parse().unwrap(),
        reported_to: "10.0.0.5".parse().unwrap(),
        confirmed: false,
        at_ns: 1,
    };
    hosts.learn(EXTERNAL.parse().unwrap(), listed);
    let mut talk = Talk::between(Transport::Udp, INTERNAL, EXTERNAL, hosts);
    assert_eq!(talk.client(&datagram), "edonkey/obfuscated?");

    // A server's port for obfuscated datagrams, which nobody names.
    let mut hosts = Hosts::default();
    hosts.speaks("10.0.0.5".parse().unwrap(), Application::Edonkey, 1);
    let mut talk = Talk::between(Transport::Udp, INTERNAL, EXTERNAL, hosts);
    assert_eq!(talk.client(&datagram[..15]), "more");
    talk.hosts.speaks("192.0.2.7".parse().unwrap(), Application::Edonkey, 1);
    assert_eq!(talk.server(&datagram[..15]), "edonkey/obfuscated?");
}

#[test]
fn a_listed_peer_that_refuses_to_answer_is_found_at_the_end() {
    let mut rng = StdRng::seed_from_u64(177);
    let mut host = Host::new(0);
    host.calls_peer(&mut rng, true);
    let mut talk = Talk::between(Transport::Tcp, "10.0.0.1:40000", "198.18.0.7:6881", host.hosts);
    assert_eq!(talk.client(&random(&mut rng, 300)), "more");
    let outcome = talk.classifier.give_up(&mut talk.hosts, 2);
    let Classification::Known(label) = outcome else { panic!("{outcome:?}") };
    assert_eq!(label.certainty, Certainty::Likely);
    assert_eq!(
        label.reason,
        "random first messages to 198.18.0.7:6881, named by the tracker 192.0.2.1:6969"
    );
}

#[test]
fn random_bytes_look_random_and_texts_do_not() {
    let mut rng = StdRng::seed_from_u64(178);
    let mut refused = 0;
    for length in (6..=608).cycle().take(20_000) {
        let bytes = random(&mut rng, length);
        refused += u32::from(!obfuscation::looks_random(&bytes, length as u32));
    }
    println!("random bytes not found to be random: {refused} of 20000");
    assert!(refused <= 40, "{refused}");
    for text in [
        &b"USER nigh\r\nPASS secret\r\n"[..],
        &[0; 100],
        &b"\x05\x01\x00\x00\x00\x00\x00\x08\x05\x01\x00\x03\x00\x01".repeat(5),
    ] {
        assert!(!obfuscation::looks_random(text, text.len() as u32));
    }
}
