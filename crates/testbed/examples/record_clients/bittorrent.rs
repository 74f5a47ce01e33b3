//! BitTorrent: aria2, Transmission and libtorrent (python3-libtorrent of Debian), plain and hidden, with opentracker, the distributed table,
//! local discovery and uTP.

use super::{Scene, cut::MUCH, lan::Lan, other, programs};
use std::time::Duration;
use testbed::{
    Error, Namespace,
    clients::{Aria2, LibTorrent, OpenTracker, Peer, Torrent, Transmission, noise},
    wait_until,
};

/// aria2, on the odd hosts, hides also when it need not: it begins each connection of its own so.
const PLAIN: &[&str] = &[
    "udp *:* *:53 other plain",
    "tcp *:* *:6969 bittorrent plain",
    "tcp 10.60.0.3:* *:* bittorrent hidden",
    "tcp 10.60.0.5:* *:* bittorrent hidden",
    "tcp 10.60.0.7:* *:* bittorrent hidden",
    "any *:* *:* bittorrent plain",
];
/// No aria2. Transmission asks for names of the distributed table, which nobody answers.
const ALL_PLAIN: &[&str] = &["udp *:* *:53 other plain", "any *:* *:* bittorrent plain"];
/// Trackers, the table and uTP stay readable; connections are hidden.
const HIDDEN: &[&str] = &[
    "udp *:* *:53 other plain",
    "udp *:* *:* bittorrent plain",
    "tcp *:* *:6969 bittorrent plain",
    "tcp *:* *:* bittorrent hidden",
];

pub(crate) const SCENES: &[Scene] = &[
    Scene {
        name: "bt-plain",
        least: 70,
        truth: PLAIN,
        keep: MUCH,
        play: |lan| swarms(lan, 3, 0, Odd::Aria2, &|peer| peer),
    },
    Scene {
        name: "bt-dht",
        least: 60,
        truth: PLAIN,
        keep: MUCH,
        play: |lan| swarms(lan, 1, 10, Odd::Aria2, &|peer| peer.dht("10.60.0.2:21002").discovery()),
    },
    Scene {
        name: "bt-utp",
        least: 27,
        truth: ALL_PLAIN,
        keep: MUCH,
        play: |lan| swarms(lan, 2, 20, Odd::Transmission, &Peer::utp),
    },
    Scene {
        name: "bt-hidden",
        least: 90,
        truth: HIDDEN,
        keep: MUCH,
        play: |lan| swarms(lan, 4, 30, Odd::Aria2, &Peer::hidden),
    },
    Scene {
        name: "bt-hidden-dht",
        least: 120,
        truth: HIDDEN,
        keep: MUCH,
        play: |lan| {
            swarms(lan, 2, 40, Odd::Aria2, &|peer| peer.hidden().dht("10.60.0.2:21002").discovery())
        },
    },
    Scene {
        name: "bt-libtorrent",
        least: 50,
        truth: ALL_PLAIN,
        keep: MUCH,
        play: |lan| {
            swarms(lan, 2, 60, Odd::LibTorrent, &|peer| peer)?;
            swarms(lan, 1, 62, Odd::LibTorrent, &Peer::utp)
        },
    },
    Scene {
        name: "bt-libtorrent-hidden",
        least: 50,
        truth: HIDDEN,
        keep: MUCH,
        play: |lan| swarms(lan, 3, 64, Odd::LibTorrent, &Peer::hidden),
    },
    Scene {
        name: "bt-web-seed",
        least: 25,
        truth: &[
            "udp *:* *:53 other plain",
            "tcp *:* *:80 bittorrent plain",
            "tcp *:* *:6969 bittorrent plain",
            "tcp 10.60.0.2:* *:* bittorrent hidden",
            "tcp 10.60.0.3:* *:* bittorrent hidden",
            "any *:* *:* bittorrent plain",
        ],
        keep: MUCH,
        play: web_seeds,
    },
    Scene {
        name: "bt-ipv6",
        least: 40,
        truth: ALL_PLAIN,
        keep: MUCH,
        play: |lan| over_ipv6(lan, [70, 71], &|peer| peer),
    },
    Scene {
        name: "bt-utp-ipv6",
        least: 20,
        truth: ALL_PLAIN,
        keep: MUCH,
        play: |lan| over_ipv6(lan, [72, 73], &Peer::utp),
    },
];

/// Over IPv6: Transmission and libtorrent in turn, with uTP libtorrent alone (Transmission's goes over IPv4), each
/// called by those after it; there is no tracker, and peers tell each other of more.
fn over_ipv6(lan: &mut Lan, seeds: [u64; 2], with: &dyn Fn(Peer) -> Peer) -> Result<(), Error> {
    let hosts = lan.hosts(HOSTS)?;
    for (number, host) in (1..).zip(hosts) {
        host.sysctl(&[("ipv6.conf.all.disable_ipv6", "0")])?;
        let address = format!("fd60::{number}/64");
        host.check(&["ip", "address", "add", &address, "dev", "eth0", "nodad"])?;
    }
    for seed in seeds {
        let content = noise(seed, SIZE);
        let folder = tempfile::tempdir().map_err(|error| Error::new("making a folder", error))?;
        let file = folder.path().join(format!("swarm-{seed}.iso"));
        std::fs::write(&file, &content).map_err(|error| Error::new("writing a file", error))?;
        let torrent = Torrent::make(&file, &[])?;
        let port = 22_000 + u16::try_from(seed).unwrap_or_default();
        let peer = with(Peer::new(port));
        let (mut transmissions, mut others, mut known) = (Vec::new(), Vec::new(), Vec::new());
        for (number, host) in (1..).zip(hosts) {
            let has = (number == 1).then_some(&content[..]);
            if number % 2 == 1 && !peer.utp {
                transmissions.push(Transmission::start(host, &torrent, has, &peer)?);
            } else {
                let peers: Vec<&str> = known.iter().map(String::as_str).collect();
                others.push(LibTorrent::start(host, &torrent, has, &peer, &peers)?);
            }
            known.extend([format!("fd60::{number}"), port.to_string()]);
        }
        let limit = Duration::from_secs(60);
        others.iter_mut().try_for_each(|client| client.wait_complete(limit))?;
    }
    Ok(())
}

/// The file comes from a web server (nginx, on the tracker's host) and from peers of all three kinds.
fn web_seeds(lan: &mut Lan) -> Result<(), Error> {
    let hosts = lan.hosts(7)?;
    let folder = other::folder()?;
    other::certificate(&hosts[0], folder.path())?;
    let _server = programs::serve(&hosts[0], folder.path(), "nginx", "10.60.0.1")?;
    wait_until("nginx", Duration::from_secs(60), || {
        hosts[0].enter(|| std::net::TcpStream::connect("10.60.0.1:80")).is_ok()
    })?;
    for seed in 80..84 {
        let name = format!("swarm-{seed}.iso");
        let file = folder.path().join(&name);
        std::fs::write(&file, noise(seed, SIZE))
            .map_err(|error| Error::new("writing a file", error))?;
        let torrent = Torrent::make(&file, &["http://10.60.0.1:6969/announce"])?;
        torrent.add_web_seed(&format!("http://10.60.0.1/{name}"))?;
        let _tracker = OpenTracker::start(&hosts[0], "10.60.0.1", &[&torrent.info_hash])?;
        let peer = Peer::new(23_000 + u16::try_from(seed).unwrap_or_default());
        let arias =
            [&hosts[1], &hosts[2]].map(|host| Aria2::start(host, &torrent, None, &peer, &[]));
        let transmissions =
            [&hosts[3], &hosts[4]].map(|host| Transmission::start(host, &torrent, None, &peer));
        let others =
            [&hosts[5], &hosts[6]].map(|host| LibTorrent::start(host, &torrent, None, &peer, &[]));
        let limit = Duration::from_secs(60);
        for client in arias {
            client?.wait_complete(limit)?;
        }
        for client in transmissions {
            client?.wait_complete(limit)?;
        }
        for client in others {
            client?.wait_complete(limit)?;
        }
    }
    Ok(())
}

/// How many bytes a swarm shares.
const SIZE: usize = 3_000_000;
/// Hosts of a swarm: the tracker and peers.
const HOSTS: usize = 8;

/// What runs on hosts with odd numbers; on the others it is Transmission.
#[derive(Clone, Copy)]
pub(crate) enum Odd {
    Aria2,
    LibTorrent,
    Transmission,
}

/// Plays swarms one after the other, each with its own file and ports.
fn swarms(
    lan: &mut Lan,
    count: u64,
    seed: u64,
    odd: Odd,
    with: &dyn Fn(Peer) -> Peer,
) -> Result<(), Error> {
    let hosts = lan.hosts(HOSTS)?;
    for round in 0..count {
        swarm(hosts, seed + round, odd, with, &|| Ok(()))?;
    }
    Ok(())
}

/// One swarm: the first host is the tracker, peers alternate between Transmission and another, and the first
/// two have the file. Does something `beside` and ends when all have it.
pub(crate) fn swarm(
    hosts: &[Namespace],
    seed: u64,
    odd: Odd,
    with: &dyn Fn(Peer) -> Peer,
    beside: &dyn Fn() -> Result<(), Error>,
) -> Result<(), Error> {
    let content = noise(seed, SIZE);
    let folder = tempfile::tempdir().map_err(|error| Error::new("making a folder", error))?;
    let file = folder.path().join(format!("swarm-{seed}.iso"));
    std::fs::write(&file, &content).map_err(|error| Error::new("writing a file", error))?;
    let both = ["udp://10.60.0.1:6969/announce", "http://10.60.0.1:6969/announce"];
    // Transmission has trackers over UDP, too; aria2 asks the first that answers.
    let trackers = if seed.is_multiple_of(2) { &both[1..] } else { &both[..] };
    let torrent = Torrent::make(&file, trackers)?;
    let (Some(tracker), Some(peers)) = (hosts.first(), hosts.get(1..)) else { return Ok(()) };
    let _tracker = OpenTracker::start(tracker, "10.60.0.1", &[&torrent.info_hash])?;
    let (mut arias, mut transmissions, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (number, host) in (2_u16..).zip(peers) {
        let port = 21_000 + number + u16::try_from(seed % 10).unwrap_or_default() * 100;
        let peer = with(Peer::new(port));
        let has = (number < 4).then_some(&content[..]);
        match odd {
            Odd::Aria2 if number % 2 == 1 => {
                let more = ["--bt-tracker-connect-timeout=5"];
                arias.push(Aria2::start(host, &torrent, has, &peer, &more)?);
            }
            Odd::LibTorrent if number % 2 == 1 => {
                others.push(LibTorrent::start(host, &torrent, has, &peer, &[])?);
            }
            _ => transmissions.push(Transmission::start(host, &torrent, has, &peer)?),
        }
    }
    beside()?;
    let limit = Duration::from_secs(120);
    transmissions.iter().try_for_each(|client| client.wait_complete(limit))?;
    arias.iter().try_for_each(|client| client.wait_complete(limit))?;
    others.iter_mut().try_for_each(|client| client.wait_complete(limit))
}
