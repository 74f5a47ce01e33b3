//! The gate of Enterprise_B: BitTorrent is limited there, while the enterprise's oracle sends the PC's client
//! to the near one of two peers.
//!
//! The peers and the client speak the peer wire protocol (BEP 3) as far as a transfer needs it; the gate
//! recognizes it by that, on a port that is not registered. The page beside it is fetched over HTTP from the
//! same host at the same time; no rule concerns it.

use crate::{ENTERPRISES, screen::Screen};
use nix::sys::signal::Signal;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use testbed::{
    Error, Namespace, Nigh,
    dinr::{Enterprise, Internet, SITES, station_address},
    wait_until,
};

const LIMIT: Duration = Duration::from_secs(20);
/// Where the peers listen, and the page's server.
const PEER: u16 = 28_711;
const PAGE: u16 = 80;
/// How long both are measured, and until they have come up to speed.
const MEASURE: Duration = Duration::from_secs(3);
const WARM: Duration = Duration::from_secs(1);
/// The limit, and by how much payload may miss it: headers are counted too.
const RATE: &str = "4mbit";
const MEGABITS: f64 = 4.0;
const HEADERS: f64 = 0.9;

/// The gate's section: one limit, one rule.
fn section() -> String {
    format!(
        "[gate]\ninternal = [\"lan\"]\n\
         [[gate.limit]]\nname = \"slow\"\nto_internal = \"{RATE}\"\n\
         [[gate.rule]]\nname = \"bittorrent-is-slow\"\napplication = [\"bittorrent\"]\n\
         action = \"limit\"\nlimit = \"slow\"\n"
    )
}

/// The handshake of the peer wire protocol.
fn handshake(name: &[u8; 20]) -> Vec<u8> {
    let mut message = b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0".to_vec();
    message.extend([0x21; 20]);
    message.extend(name);
    message
}

/// A block of 16 KB as its message: length, `piece` (7), index and begin.
fn piece() -> Vec<u8> {
    let mut message = (9 + (16_u32 << 10)).to_be_bytes().to_vec();
    message.push(7);
    message.extend([0; 8]);
    message.resize(13 + (16 << 10), 0x55);
    message
}

/// Answers each connection with these bytes, then with others again and again, until stopped.
fn serve(listener: &TcpListener, first: &[u8], then: &[u8], stop: &AtomicBool) {
    thread::scope(|scope| {
        for stream in listener.incoming() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let Ok(mut stream) = stream else { return };
            scope.spawn(move || {
                let mut request = [0; 1024];
                let asked = stream.read(&mut request).is_ok_and(|length| length > 0);
                // A client that has enough hangs up.
                let _ = stream.set_write_timeout(Some(LIMIT));
                let mut sent = asked && stream.write_all(first).is_ok();
                while sent && !stop.load(Ordering::Relaxed) {
                    sent = stream.write_all(then).is_ok();
                }
            });
        }
    });
}

/// Asks a server and reads what comes: megabits a second, without the beginning.
fn fetch(host: &Namespace, to: SocketAddr, request: &[u8]) -> Result<f64, Error> {
    let get = || -> std::io::Result<f64> {
        let mut stream = TcpStream::connect_timeout(&to, LIMIT)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(request)?;
        let (begin, mut bytes) = (Instant::now(), 0);
        let mut chunk = vec![0; 64 << 10];
        while begin.elapsed() < WARM + MEASURE {
            let length = stream.read(&mut chunk)?;
            if length == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if begin.elapsed() >= WARM {
                bytes += length;
            }
        }
        Ok(bytes as f64 * 8.0 / 1e6 / (begin.elapsed() - WARM).as_secs_f64())
    };
    host.enter(get).map_err(|error| Error::new(format!("fetching from {to}"), error))
}

/// What the transfers brought, megabits a second: from the peer, and the page.
struct Rates {
    peer: f64,
    page: f64,
}

/// A peer's transfer and a page's from the same host at the same time.
fn both(internet: &Internet, peer: &str, meanwhile: impl FnOnce()) -> Result<Rates, Error> {
    let host = internet.host(ENTERPRISES[1]);
    let address = |port| -> Result<SocketAddr, Error> {
        format!("{peer}:{port}").parse().map_err(|error| Error::new("a peer's address", error))
    };
    let (wire, web) = (address(PEER)?, address(PAGE)?);
    thread::scope(|scope| {
        let client = handshake(b"-NG0001-client-pc-b!");
        let peer = scope.spawn(move || fetch(host, wire, &client));
        let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", web.ip());
        let page = scope.spawn(move || fetch(host, web, request.as_bytes()));
        thread::sleep(WARM + MEASURE / 2);
        meanwhile();
        let died = || Error::new("a transfer", "it died");
        Ok(Rates {
            peer: peer.join().map_err(|_| died())??,
            page: page.join().map_err(|_| died())??,
        })
    })
}

/// Shows how the oracle steers and the gate limits.
pub(crate) fn show(
    screen: &mut Screen,
    internet: &Internet,
    enterprises: &[Enterprise<'_>; 2],
    binary: &Path,
) -> Result<(), Error> {
    let stop = AtomicBool::new(false);
    let listen = |port| -> Result<Vec<(SocketAddr, TcpListener)>, Error> {
        let bind = |asn: u32| {
            let failed = |error: &dyn std::fmt::Display| Error::new("a peer", error.to_string());
            let at: SocketAddr = format!("{}:{port}", station_address(asn))
                .parse()
                .map_err(|error| failed(&error))?;
            let listener = internet.service(asn).enter(|| TcpListener::bind(at));
            Ok((at, listener.map_err(|error| failed(&error))?))
        };
        SITES.into_iter().map(bind).collect()
    };
    let (peers, pages) = (listen(PEER)?, listen(PAGE)?);
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1000000000\r\n\r\n";
    let (answer, block) = (handshake(b"-NG0001-peer-of-demo"), piece());
    thread::scope(|scope| {
        for (_, listener) in &peers {
            scope.spawn(|| serve(listener, &answer, &block, &stop));
        }
        for (_, listener) in &pages {
            scope.spawn(|| serve(listener, head, &block, &stop));
        }
        let shown = steer_and_limit(screen, internet, enterprises, binary);
        stop.store(true, Ordering::Relaxed);
        for (asn, (at, _)) in SITES.into_iter().zip(&peers).chain(SITES.into_iter().zip(&pages)) {
            // A connection that wakes it up.
            internet.service(asn).enter(|| drop(TcpStream::connect_timeout(at, LIMIT)));
        }
        shown
    })
}

fn steer_and_limit(
    screen: &mut Screen,
    internet: &Internet,
    enterprises: &[Enterprise<'_>; 2],
    binary: &Path,
) -> Result<(), Error> {
    let [far, near] = SITES.map(station_address);
    let candidates = [far.as_str(), near.as_str()];
    screen.line(&format!("The torrent's peers are {far} at DINR_A and {near} at DINR_B."));
    let order = enterprises[1].rank(&candidates)?;
    screen.faint(&format!("ENT_B-testPC$ nigh oracle rank {far} {near}"));
    screen.line(&order.join("  "));
    let chosen = order.first().cloned().unwrap_or_default();
    screen.check(chosen == near, "the oracle of Enterprise_B sends its client to the near peer");

    let free = both(internet, &chosen, || {})?;
    let gate = &internet.router(ENTERPRISES[1]).namespace;
    let mut nigh = Nigh::start(gate, binary, "enterprise-b", &section())?;
    let socket = nigh.socket();
    let mut top = String::new();
    let mut asked = Ok(());
    let limited = both(internet, &chosen, || {
        let (binary, socket) = (binary.to_string_lossy(), socket.to_string_lossy());
        asked = gate.check(&[&binary, "gate", "flows", "--socket", &socket]).map(|text| top = text);
    })?;
    let status = nigh.control(&serde_json::json!({"do": "status"}))?;
    let named = status["gate"]["classified"]["bittorrent"].as_u64().unwrap_or_default();
    // As an operator ends it: nothing stays in the kernel.
    nigh.process().signal(Signal::SIGTERM)?;
    wait_until("the gate's end", LIMIT, || nigh.process().ended().is_some())?;
    gate.check(&[&binary.to_string_lossy(), "gate", "detach"])?;
    asked?;

    screen.line("");
    screen.name("Enterprise_B's router: nigh run, with");
    for line in section().lines() {
        screen.faint(&format!("  {line}"));
    }
    screen.line("");
    screen.faint("Enterprise_B$ nigh gate flows");
    for line in top.lines().take(6) {
        screen.line(line);
    }
    screen.line("");
    screen.faint(&format!("{:<28}{:>14}{:>14}", "Mbit/s to ENT_B-testPC", "no gate", "gate"));
    for (name, before, after) in [
        ("BitTorrent, the near peer", free.peer, limited.peer),
        ("a page from there", free.page, limited.page),
    ] {
        screen.line(&format!("{name:<28}{before:>14.1}{after:>14.1}"));
    }
    screen.line("");
    let text =
        format!("the gate identified {named} flow of BitTorrent, on a port that is not registered");
    screen.check(named == 1, &text);
    screen.check(
        (MEGABITS * HEADERS..=MEGABITS * 1.03).contains(&limited.peer),
        &format!("BitTorrent has its {MEGABITS} Mbit/s, headers included, and no more"),
    );
    screen.check(
        free.peer > 2.0 * MEGABITS && limited.page > 2.0 * MEGABITS,
        "and had more before; the page goes on without a limit",
    );
    Ok(())
}
