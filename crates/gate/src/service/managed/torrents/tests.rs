//! Connections of BitTorrent and of HTTP through the managers, with a scanner that finds one word.

use super::*;
use crate::{
    config::{Day, GateConfig},
    policy::{Moment, Policy},
    scan::Scanner,
    service::{managed, records::Log},
};
use classify::{
    flow::{Flow, Side, Transport},
    label::{Category, Certainty, Engine, Label},
    packet::{Packet, Tcp},
};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::{
    io::Write,
    os::unix::net::UnixListener,
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

/// What the scanner finds.
const HARM: &[u8] = b"harm";
/// Far longer than an answer takes.
const LONG: Duration = Duration::from_secs(60);

struct Site {
    managers: Managers,
    policy: Policy,
    log: Log,
    reports: Receiver<Report>,
    commands: Vec<WorkerCommand>,
    _folder: tempfile::TempDir,
}

/// A connection: both sides' next sequence numbers.
struct Talk(Id, Flow, [u32; 2]);

impl Site {
    fn new(rules: &str, on_failure: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clamd = folder.path().join("clamd");
        let listener = UnixListener::bind(&clamd).unwrap();
        std::thread::spawn(move || listener.incoming().flatten().try_for_each(scan));
        let text = format!(
            "internal = [\"lan\"]\n{rules}\n[scan]\nclamd = {clamd:?}\non_failure = \"{on_failure}\"\n"
        );
        let config: GateConfig = toml::from_str(&text).unwrap();
        let (sender, reports) = channel();
        let scanner: Option<Scanner> = managed::scanner(&config, move |report| {
            let _ = sender.send(report);
        });
        Self {
            managers: Managers::new(
                &config,
                scanner,
                folder.path().join("torrents"),
                managed::tests::parser(),
            ),
            policy: Policy::new(&config, &[]),
            log: Log::new(None, 0),
            reports,
            commands: Vec::new(),
            _folder: folder,
        }
    }

    fn with<T>(
        &mut self,
        act: impl FnOnce(&mut Managers, &Around<'_>, &mut Vec<WorkerCommand>) -> T,
    ) -> T {
        let moment = Moment { day: Day::Mon, minute: 0 };
        let around = Around { policy: &self.policy, moment, now_ns: 0, log: &self.log };
        let done = act(&mut self.managers, &around, &mut self.commands);
        self.managers.exchange(&around, &mut self.commands);
        done
    }

    /// A connection from this internal port.
    fn open(&mut self, application: &str, port: u16) -> Talk {
        let flow = Flow {
            transport: Transport::Tcp,
            client: ([10, 0, 0, 5], port).into(),
            server: ([192, 0, 2, 7], 6881).into(),
        };
        let label = Label {
            application: application.to_owned().into(),
            detail: None,
            category: Category::PeerToPeer,
            certainty: Certainty::Certain,
            engine: Engine::Parser,
            reason: "".into(),
        };
        let (id, label) = (Id::of(&flow), Some(label));
        let now = Packet { at_ns: 0, from: Side::Client, tcp: None, payload: &[], length: 0 };
        self.with(|managers, around, commands| {
            let new = managed::NewFlow {
                flow,
                internal: Side::Client,
                label,
                began_ns: 0,
                expectation: None,
                syns: [None; 2],
                now: Some(&now),
            };
            managers.begin(new, around, commands);
        });
        Talk(id, flow, [1; 2])
    }

    fn send(&mut self, talk: &mut Talk, from: Side, payload: &[u8]) {
        let [own, other] = [from as usize, from.other() as usize];
        let tcp = Tcp { sequence: talk.2[own], acknowledgement: talk.2[other], flags: Tcp::ACK };
        let length = payload.len() as u32;
        talk.2[own] += length;
        let packet = Packet { at_ns: 0, from, tcp: Some(tcp), payload, length };
        self.with(|managers, around, commands| {
            managers.packet(talk.0, &packet, None, None, around, commands);
        });
    }

    /// Takes the scanner's next report.
    fn report(&mut self) {
        let report = self.reports.recv_timeout(LONG).unwrap();
        self.with(|managers, around, commands| managers.report(report, around, commands));
    }

    /// The flows that were refused since this was asked last, and by what.
    fn refused(&mut self) -> Vec<(Flow, String)> {
        let refused =
            std::mem::take(&mut self.commands).into_iter().filter_map(|command| match command {
                WorkerCommand::Refuse(flow, by) => Some((flow, by.rule)),
                _ => None,
            });
        refused.collect()
    }

    /// Whether the last packet of the server waits.
    fn waits(&self, talk: &Talk) -> bool {
        let managed = &self.managers.flows[&talk.0];
        managed.wants().0[1].is_some_and(|from| from < talk.2[1])
    }
}

/// clamd with one signature.
fn scan(mut stream: std::os::unix::net::UnixStream) -> std::io::Result<()> {
    let mut command = [0; 10];
    stream.read_exact(&mut command)?;
    let mut content = Vec::new();
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length == 0 {
            break;
        }
        Read::by_ref(&mut stream).take(length.into()).read_to_end(&mut content)?;
    }
    let found = content.windows(HARM.len()).any(|window| window == HARM);
    stream.write_all(if found { b"stream: Harm FOUND\0" } else { b"stream: OK\0" })
}

/// The `info` of a torrent of one piece.
fn info(name: &str, content: &[u8]) -> Vec<u8> {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, content);
    let (size, long) = (content.len(), name.len());
    let info = format!("d6:lengthi{size}e4:name{long}:{name}12:piece lengthi32768e6:pieces20:");
    [info.as_bytes(), hash.as_ref(), b"e"].concat()
}

fn handshake(info: &[u8]) -> Vec<u8> {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, info);
    [&b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\0"[..], hash.as_ref(), &[b'p'; 20]].concat()
}

fn message(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes(), body].concat()
}

fn metadata(info: &[u8]) -> Vec<u8> {
    let dict = format!("d8:msg_typei1e5:piecei0e10:total_sizei{}ee", info.len());
    message(&[b"\x14\x03", dict.as_bytes(), info].concat())
}

fn block(begin: u32, bytes: &[u8]) -> Vec<u8> {
    message(&[&b"\x07\0\0\0\0"[..], &begin.to_be_bytes(), bytes].concat())
}

const SCAN: &str =
    "[[file]]\nname = \"scan-shared\"\napplication = [\"bittorrent\"]\naction = \"scan\"";

#[test]
fn a_name_in_a_torrents_metadata_refuses_what_brings_it_and_then_the_torrent() {
    let rule = "[[file]]\nname = \"no-iso\"\nnames = [\"*.iso\"]\naction = \"deny\"";
    let mut site = Site::new(rule, "pass");
    let (film, text) = (info("film.iso", b"12345"), info("text.txt", b"12345"));
    for (info, denied) in [(&text, false), (&film, true)] {
        let mut web = site.open("http", 40_000);
        site.send(&mut web, Side::Client, b"GET /a.torrent HTTP/1.1\r\n\r\n");
        let file = [&b"d8:announce12:http://t/ann4:info"[..], info, b"e"].concat();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
        site.send(&mut web, Side::Server, head.as_bytes());
        site.send(&mut web, Side::Server, &file[..file.len() - 1]);
        assert_eq!(site.refused(), []);
        site.send(&mut web, Side::Server, b"e");
        let expected = denied.then(|| (web.1, "no-iso".to_owned()));
        assert_eq!(site.refused(), Vec::from_iter(expected));
    }
    for (info, denied) in [(&text, false), (&film, true)] {
        let mut peers = site.open("bittorrent", 40_001);
        site.send(&mut peers, Side::Client, &handshake(info));
        let expected = denied.then(|| (peers.1, "no-iso".to_owned()));
        assert_eq!(site.refused(), Vec::from_iter(expected));
    }
    // Metadata between peers of a torrent that nobody knew.
    let other = info("other.iso", b"12345");
    let mut peers = site.open("bittorrent", 40_002);
    assert_eq!(site.managers.counts.without_names, 0);
    site.send(&mut peers, Side::Client, &handshake(&other));
    assert_eq!(site.managers.counts.without_names, 1);
    site.send(&mut peers, Side::Server, &handshake(&other));
    site.send(&mut peers, Side::Client, &message(b"\x14\0d1:md11:ut_metadatai3eee"));
    assert_eq!(site.refused(), []);
    site.send(&mut peers, Side::Server, &metadata(&other));
    assert_eq!(site.refused(), [(peers.1, "no-iso".to_owned())]);
    assert_eq!(site.managers.counts.denied, 3);
}

#[test]
fn the_block_that_makes_a_file_whole_waits_and_with_a_find_the_torrent_is_refused() {
    for harm in [false, true] {
        let mut site = Site::new(SCAN, "pass");
        let mut content = vec![b'x'; 20_000];
        if harm {
            // Across the blocks of two peers.
            content[16_382..16_386].copy_from_slice(HARM);
        }
        let info = info("shared.bin", &content);
        let mut peers = [site.open("bittorrent", 40_001), site.open("bittorrent", 40_002)];
        for peer in &mut peers {
            site.send(peer, Side::Client, &handshake(&info));
            site.send(peer, Side::Server, &handshake(&info));
        }
        let [one, other] = &mut peers;
        // Its metadata comes on one of the connections, and counts for both.
        site.send(one, Side::Client, &message(b"\x14\0d1:md11:ut_metadatai3eee"));
        site.send(one, Side::Server, &metadata(&info));
        site.send(one, Side::Server, &block(0, &content[..16_384]));
        assert!(!site.waits(one));
        site.send(other, Side::Server, &block(16_384, &content[16_384..]));
        assert!(site.waits(other) && !site.waits(one));
        // Who fetches the same again waits as well.
        site.send(one, Side::Server, &block(16_384, &content[16_384..]));
        assert!(site.waits(one));
        assert_eq!(site.refused(), []);
        site.report();
        let counts = site.managers.counts;
        assert_eq!(
            (counts.scanned, counts.found, counts.unscanned),
            (u64::from(!harm), u64::from(harm), 0)
        );
        let (one, other) = (&peers[0], &peers[1]);
        if harm {
            let by = |talk: &Talk| (talk.1, "scan-shared".to_owned());
            assert_eq!(site.refused(), [by(one), by(other)]);
            let mut again = site.open("bittorrent", 40_003);
            site.send(&mut again, Side::Client, &handshake(&info));
            assert_eq!(site.refused(), [(again.1, EARLIER.to_owned())]);
            // Until it is taken back.
            let torrents = &mut site.managers.torrents;
            let [hash] = &torrents.refused().collect::<Vec<_>>()[..] else { panic!("one is") };
            assert!(!torrents.unblock("00") && torrents.unblock(&hash.to_uppercase()));
            assert!(!torrents.unblock(hash) && torrents.refused().next().is_none());
            let mut unblocked = site.open("bittorrent", 40_004);
            site.send(&mut unblocked, Side::Client, &handshake(&info));
            assert_eq!(site.refused(), []);
        } else {
            assert!(!site.waits(one) && !site.waits(other));
            assert_eq!(site.refused(), []);
        }
        assert!(site.managers.torrents.parts.is_empty());
    }
}

#[test]
fn a_torrent_without_metadata_follows_what_is_configured_for_what_cannot_be_scanned() {
    for (on_failure, refused) in [("pass", 0), ("refuse", 1)] {
        let mut site = Site::new(SCAN, on_failure);
        let info = info("shared.bin", &[b'x'; 20_000]);
        let mut peers = site.open("bittorrent", 40_001);
        site.send(&mut peers, Side::Client, &handshake(&info));
        site.send(&mut peers, Side::Server, &handshake(&info));
        for _ in 0..2 {
            site.send(&mut peers, Side::Server, &block(0, &[b'x'; 16_384]));
        }
        assert_eq!(site.refused().len(), refused);
        let counts = site.managers.counts;
        assert_eq!((counts.scanned, counts.unscanned, counts.without_names), (0, 1, 0));
        assert!(refused == 1 || !site.waits(&peers));
        site.with(|managers, _, _| managers.forget(&peers.0));
        assert!(site.managers.torrents.flows.is_empty());
    }
}
