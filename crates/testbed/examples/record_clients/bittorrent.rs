//! BitTorrent: aria2 and Transmission, plain and hidden, with opentracker, the distributed table,
//! local discovery and uTP.

use super::{Scene, lan::Lan};
use std::time::Duration;
use testbed::{
    Error, Namespace,
    clients::{Aria2, OpenTracker, Peer, Torrent, Transmission, noise},
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
/// Transmission alone. It asks for names of the distributed table, which nobody answers.
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
        play: |lan| swarms(lan, 3, 0, false, &|peer| peer),
    },
    Scene {
        name: "bt-dht",
        least: 60,
        truth: PLAIN,
        play: |lan| swarms(lan, 1, 10, false, &|peer| peer.dht("10.60.0.2:21002").discovery()),
    },
    Scene {
        name: "bt-utp",
        least: 27,
        truth: ALL_PLAIN,
        play: |lan| swarms(lan, 2, 20, true, &Peer::utp),
    },
    Scene {
        name: "bt-hidden",
        least: 90,
        truth: HIDDEN,
        play: |lan| swarms(lan, 4, 30, false, &Peer::hidden),
    },
    Scene {
        name: "bt-hidden-dht",
        least: 120,
        truth: HIDDEN,
        play: |lan| {
            swarms(lan, 2, 40, false, &|peer| peer.hidden().dht("10.60.0.2:21002").discovery())
        },
    },
];

/// How many bytes a swarm shares.
const SIZE: usize = 3_000_000;
/// Hosts of a swarm: the tracker and peers.
const HOSTS: usize = 8;

/// Plays swarms one after the other, each with its own file and ports.
fn swarms(
    lan: &mut Lan,
    count: u64,
    seed: u64,
    udp: bool,
    with: &dyn Fn(Peer) -> Peer,
) -> Result<(), Error> {
    let hosts = lan.hosts(HOSTS)?;
    for round in 0..count {
        swarm(hosts, seed + round, udp, with, &|| Ok(()))?;
    }
    Ok(())
}

/// One swarm: the first host is the tracker, peers alternate between aria2 and Transmission (with `udp` only that), and the first
/// two have the file. Does something `beside` and ends when all have it.
pub(crate) fn swarm(
    hosts: &[Namespace],
    seed: u64,
    udp: bool,
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
    let (mut arias, mut transmissions) = (Vec::new(), Vec::new());
    for (number, host) in (2_u16..).zip(peers) {
        let port = 21_000 + number + u16::try_from(seed % 10).unwrap_or_default() * 100;
        let peer = with(Peer::new(port));
        let has = (number < 4).then_some(&content[..]);
        if udp || number % 2 == 0 {
            transmissions.push(Transmission::start(host, &torrent, has, &peer)?);
        } else {
            arias.push(Aria2::start(
                host,
                &torrent,
                has,
                &peer,
                &["--bt-tracker-connect-timeout=5"],
            )?);
        }
    }
    beside()?;
    let limit = Duration::from_secs(120);
    transmissions.iter().try_for_each(|client| client.wait_complete(limit))?;
    arias.iter().try_for_each(|client| client.wait_complete(limit))
}
