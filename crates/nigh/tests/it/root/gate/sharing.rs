//! BitTorrent's real clients through the gate: named, refused, limited.

use super::{
    site::{EXTERNAL, LIMIT, Site, count},
    talk::Talk,
};
use serde_json::Value;
use std::time::Instant;
use testbed::{
    clients::{Aria2, OpenTracker, Peer, Torrent, Transmission, noise},
    wait_until,
};

/// A file that an external seed shares, with its tracker.
pub(super) struct Share {
    torrent: Torrent,
    content: Vec<u8>,
    _tracker: OpenTracker,
    _seed: Transmission,
    _folder: tempfile::TempDir,
}

impl Share {
    pub(super) fn start(site: &Site, length: usize, peer: &Peer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let content = noise(61, length);
        let file = folder.path().join("shared.iso");
        std::fs::write(&file, &content).unwrap();
        let torrent = Torrent::make(&file, &["http://10.62.0.2:6969/announce"]).unwrap();
        let tracker = OpenTracker::start(&site.external, EXTERNAL, &[&torrent.info_hash]).unwrap();
        let seed = Transmission::start(&site.external, &torrent, Some(&content), peer).unwrap();
        // The seed is known to the tracker before anybody asks that.
        let hash = torrent.info_hash.as_bytes().chunks(2);
        let hash: String =
            hash.map(|digits| format!("%{}", String::from_utf8_lossy(digits))).collect();
        let scrape = format!("http://10.62.0.2:6969/scrape?info_hash={hash}");
        let ask = ["curl", "-s", "-S", &scrape];
        let known = wait_until("the seed at the tracker", LIMIT, || {
            site.external.check(&ask).is_ok_and(|stats| stats.contains("completei1e"))
        });
        assert!(known.is_ok(), "{:?}", site.external.check(&ask));
        Self { torrent, content, _tracker: tracker, _seed: seed, _folder: folder }
    }

    /// An internal client that fetches it.
    pub(super) fn fetch(&self, site: &Site, peer: &Peer) -> Aria2 {
        Aria2::start(&site.internal, &self.torrent, None, peer, &["--bt-stop-timeout=0"]).unwrap()
    }
}

#[test]
fn bittorrent_is_refused_by_name_and_let_through_when_allowed() {
    let site = Site::start(
        "refuse_for = \"1s\"\n[[gate.rule]]\nname = \"no-sharing\"\n\
         application = [\"bittorrent\"]\naction = \"deny\"\n",
    );
    let share = Share::start(&site, 2_000_000, &Peer::new(21_002));
    let refused = share.fetch(&site, &Peer::new(21_001));
    site.wait("a refused flow", |status| count(&status["refused"], "bittorrent") >= 1);
    assert!(!refused.complete());
    drop(refused);
    // Everything else passes meanwhile.
    Talk::open(&site.internal, &site.external, EXTERNAL).send(b"not file sharing");
    site.ask(&["allow", "bittorrent"]);
    let allowed = share.fetch(&site, &Peer::new(21_003));
    let whole = allowed.wait_complete(LIMIT);
    assert!(whole.is_ok(), "{whole:?}: {:#?} {}", site.flows("bittorrent"), site.state());
    assert_eq!(std::fs::read(allowed.file()).unwrap(), share.content);
    let flows = site.flows("bittorrent");
    assert!(flows.iter().any(|row| row["verdict"] == "pass"), "{flows:#?}");
}

#[test]
fn hidden_bittorrent_is_known_by_its_hosts() {
    let site = Site::start("");
    let share = Share::start(&site, 2_000_000, &Peer::new(21_002).hidden());
    let leech = share.fetch(&site, &Peer::new(21_001).hidden());
    let whole = leech.wait_complete(LIMIT);
    assert!(whole.is_ok(), "{whole:?}: {:#?} {}", site.flows("bittorrent"), site.state());
    assert_eq!(std::fs::read(leech.file()).unwrap(), share.content);
    let hidden = |row: &Value| row["application"] == "bittorrent/mse";
    let named =
        wait_until("a hidden flow's name", LIMIT, || site.flows("bittorrent").iter().any(hidden));
    assert!(named.is_ok(), "{:#?}", site.flows("bittorrent"));
}

#[test]
fn limited_bittorrent_has_its_rate() {
    let site = Site::start(
        "[[gate.limit]]\nname = \"slow\"\nto_internal = \"8mbit\"\n[[gate.rule]]\n\
         name = \"slow-sharing\"\napplication = [\"bittorrent\"]\naction = \"limit\"\n\
         limit = \"slow\"\n",
    );
    let share = Share::start(&site, 12_000_000, &Peer::new(21_002));
    // aria2 asks for six blocks at once, and Transmission answers twice a second: too few for a rate.
    let leech = Transmission::start(&site.internal, &share.torrent, None, &Peer::new(21_001));
    let leech = leech.unwrap();
    // What passes before the flow is known is not limited, nor is the first full bucket.
    let reached = |bytes| {
        let arrived = wait_until("the transfer", LIMIT, || received(&site) >= bytes);
        assert!(arrived.is_ok(), "{bytes}: {:#?} {}", site.flows("bittorrent"), site.state());
        (Instant::now(), received(&site))
    };
    let (begin, end) = (reached(4_000_000), reached(10_000_000));
    let rate = (end.1 - begin.1) as f64 / (end.0 - begin.0).as_secs_f64();
    let share_of_rate = rate / 1_000_000.0;
    assert!((0.5..=1.2).contains(&share_of_rate), "{share_of_rate}: {}", site.state());
    let whole = leech.wait_complete(LIMIT);
    assert!(whole.is_ok(), "{whole:?}: {:#?} {}", site.flows("bittorrent"), site.state());
    assert_eq!(std::fs::read(leech.file()).unwrap(), share.content);
}

/// Bytes that the internal host has received.
fn received(site: &Site) -> u64 {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let text = site.internal.enter(read);
    let row = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    row.split_whitespace().next().unwrap().parse().unwrap()
}
