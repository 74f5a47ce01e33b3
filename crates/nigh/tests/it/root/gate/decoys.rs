//! EICAR behind segments that its receiver does not take: an external server without a kernel's TCP sends
//! them, and an internal curl fetches the file.

use super::{
    scanned::Scanned,
    site::{LIMIT, Site, count},
};
use datapath::tap::{HEADER, LONGEST, Tap};
use std::{
    collections::HashMap,
    io::{IoSlice, IoSliceMut},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use testbed::{
    clients::eicar,
    segment::{ACK, Answer, FIN, RST, SYN, Segment},
};

const PSH: u8 = 8;
const SERVER: &str = "10.63.0.2:80";
/// Of the server's network's router, which is the external host, and of the server.
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// When what nobody has acknowledged is sent again.
const AGAIN: Duration = Duration::from_millis(300);
/// A clock of TSval that is far from 0.
const NOW: u32 = 1 << 20;

/// The server, until it is dropped.
struct Server {
    stop: Arc<AtomicBool>,
    /// Whether files that are to come late may come.
    late: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A connection of a client.
struct Connection {
    /// A segment of the server without payload.
    plain: Segment,
    /// Its answer, once it was asked, whether that must wait, and when it was sent last.
    answer: Option<(Segment, bool, Instant)>,
}

impl Server {
    fn start(site: &Site) -> Self {
        let tap = site.external.enter(|| Tap::open("decoys")).unwrap();
        let ip = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            site.external.check(&words).unwrap();
        };
        ip("ip link set decoys address 02:00:00:00:00:01 up");
        ip("ip address add 10.63.0.1/24 dev decoys");
        ip("ip neigh replace 10.63.0.2 lladdr 02:00:00:00:00:02 dev decoys");
        site.external.forward().unwrap();
        site.gate.check(&["ip", "route", "add", "10.63.0.0/24", "via", "10.62.0.2"]).unwrap();
        let (stop, late) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let flags = (Arc::clone(&stop), Arc::clone(&late));
        let thread = std::thread::spawn(move || serve(&tap, &flags.0, &flags.1));
        Self { stop, late, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

fn send(tap: &Tap, frame: &[u8]) {
    tap.send(&[IoSlice::new(&[0; HEADER]), IoSlice::new(frame)]).unwrap();
}

fn serve(tap: &Tap, stop: &AtomicBool, late: &AtomicBool) {
    let mut connections = HashMap::<u16, Connection>::new();
    let mut buffer = vec![0; LONGEST];
    while !stop.load(Ordering::Relaxed) {
        while let Some(length) = tap.receive(&mut [IoSliceMut::new(&mut buffer)]).unwrap() {
            if let Some(asked) = Answer::of(&buffer[HEADER..length]) {
                hear(tap, &mut connections, &asked);
            }
        }
        for connection in connections.values_mut() {
            if let Some((answer, waits, sent)) = &mut connection.answer
                && sent.elapsed() >= AGAIN
                && (!*waits || late.load(Ordering::Relaxed))
            {
                *sent = Instant::now();
                send(tap, &answer.whole(MACS));
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Answers a segment of a client.
fn hear(tap: &Tap, connections: &mut HashMap<u16, Connection>, asked: &Answer) {
    if asked.flags & SYN != 0 {
        let plain = Segment {
            from: SERVER.parse().unwrap(),
            to: SocketAddr::new("10.61.0.2".parse().unwrap(), asked.source),
            sequence: 7000,
            acknowledgement: asked.sequence.wrapping_add(1),
            flags: SYN | ACK,
            urgent: 0,
            timestamps: Some([NOW, asked.stamp]),
            payload: Vec::new(),
            options: false,
            spoilt: [false; 2],
        };
        send(tap, &plain.whole(MACS));
        let plain = Segment { sequence: 7001, flags: ACK, ..plain };
        connections.insert(asked.source, Connection { plain, answer: None });
        return;
    }
    let Some(connection) = connections.get_mut(&asked.source) else { return };
    let plain = &mut connection.plain;
    if asked.flags & RST != 0 {
        connections.remove(&asked.source);
        return;
    }
    let end = asked.sequence.wrapping_add(asked.payload.len() as u32);
    if asked.flags & FIN != 0 {
        plain.sequence = asked.acknowledgement;
        plain.acknowledgement = end.wrapping_add(1);
        send(tap, &Segment { flags: FIN | ACK, ..plain.clone() }.whole(MACS));
        connections.remove(&asked.source);
        return;
    }
    if let Some((answer, ..)) = &connection.answer {
        if asked.acknowledgement == answer.sequence.wrapping_add(answer.payload.len() as u32) {
            connection.answer = None;
        }
        return;
    }
    if asked.payload.is_empty() {
        return;
    }
    plain.acknowledgement = end;
    plain.timestamps = Some([NOW + 1, asked.stamp]);
    let head = String::from_utf8_lossy(&asked.payload).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let words: Vec<&str> = path.split('/').collect();
    let &[_, kind, when, content] = &words[..] else { panic!("{head}") };
    let body = if content == "virus" { eicar() } else { vec![b'x'; 68] };
    let answer = |body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let payload = [head.as_bytes(), body].concat();
        Segment { flags: ACK | PSH, payload, ..plain.clone() }
    };
    let real = answer(&body);
    // As long, and harmless; or not, where the file is.
    let decoy = answer(&[b'y'; 68]);
    let decoys = match kind {
        "none" => vec![],
        "options" => {
            vec![Segment { options: true, spoilt: [true, false], ..decoy }.whole(MACS)]
        }
        "no-ack" => vec![Segment { flags: PSH, ..decoy }.whole(MACS)],
        "stamp" => {
            vec![Segment { timestamps: Some([NOW - 100_000, asked.stamp]), ..decoy }.whole(MACS)]
        }
        "fragment" => vec![decoy.cut(MACS, 7, 64)[0].clone()],
        _ => panic!("{kind}"),
    };
    let mut frames = if when == "after" { vec![real.whole(MACS)] } else { vec![] };
    frames.extend(decoys);
    if when == "before" {
        frames.push(real.whole(MACS));
    }
    for frame in &frames {
        send(tap, frame);
    }
    connection.answer = Some((real, when == "late", Instant::now()));
}

#[test]
fn decoys_bring_no_eicar() {
    let Scanned { site, .. } = &Scanned::with("\"http\"", "on_failure = \"refuse\"");
    let server = Server::start(site);
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("file");
    let got = || {
        let got = std::fs::read(&to);
        let _ = std::fs::remove_file(&to);
        got.ok()
    };
    let curl = ["curl", "-s", "-S", "-m", "20", "-o", to.to_str().unwrap()];
    let fetch = |kind: &str, when: &str, content: &str| {
        let url = format!("http://{SERVER}/{kind}/{when}/{content}");
        let whole = site.client(&[&curl[..], &[&url]].concat());
        got().filter(|_| whole)
    };
    // What no receiver takes changes nothing.
    let mut found = 0;
    for (kind, when) in [
        ("none", "before"),
        ("options", "before"),
        ("options", "after"),
        ("no-ack", "before"),
        ("no-ack", "after"),
    ] {
        let got = fetch(kind, when, "clean");
        assert_eq!(got, Some(vec![b'x'; 68]), "{kind} {when}: {}", site.state());
        assert_eq!(fetch(kind, when, "virus"), None, "{kind} {when}: {}", site.state());
        found += 1;
    }
    let status = site.wait("all finds", |status| count(&status["files"], "found") >= found);
    assert_eq!(count(&status["files"], "found"), found, "{status:#}");
    assert_eq!(count(&status["files"], "unscanned"), 0, "{status:#}");
    // Of others nobody knows what their receiver takes.
    for (kind, when) in
        [("stamp", "before"), ("stamp", "after"), ("fragment", "before"), ("fragment", "after")]
    {
        let before = count(&site.status()["files"], "unscanned");
        assert_eq!(fetch(kind, when, "virus"), None, "{kind} {when}: {}", site.state());
        site.wait("what was not scanned", |status| {
            let files = &status["files"];
            count(files, "unscanned") > before || count(files, "found") > found
        });
        found = count(&site.status()["files"], "found");
    }
    // The file comes when what was in its place was scanned, has passed and was dropped.
    let before = site.status()["files"].clone();
    let url = format!("http://{SERVER}/stamp/late/virus");
    let client = site.internal.spawn(&[&curl[..], &[&url]].concat()).unwrap();
    let clean = count(&before, "clean");
    site.wait("the decoy's verdict", |status| count(&status["files"], "clean") > clean);
    server.late.store(true, Ordering::Relaxed);
    client.finish(LIMIT).unwrap();
    assert_ne!(got(), Some(eicar()), "{}", site.state());
    let unscanned = count(&before, "unscanned");
    site.wait("what was not scanned", |status| count(&status["files"], "unscanned") > unscanned);
}
