//! Torrents through the gate, fetched by Transmission: their files are scanned when they are whole.

use super::site::{EXTERNAL, LIMIT, Site, count};
use serde_json::Value;
use testbed::{
    Process,
    clients::{Clamd, OpenTracker, Peer, Torrent, Transmission, eicar, noise},
    wait_until,
};

/// Bytes of the shared file: some pieces, and a last block that is short.
const SIZE: usize = 200_000;
const SEED: u16 = 21_002;
const LEECH: u16 = 21_001;

/// An external seed with its tracker, and a web server that has the `.torrent` file.
struct Share {
    torrent: Torrent,
    content: Vec<u8>,
    _tracker: OpenTracker,
    _seed: Transmission,
    web: Process,
    folder: tempfile::TempDir,
}

impl Share {
    fn start(site: &Site, content: Vec<u8>, peer: &Peer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shared.bin");
        std::fs::write(&file, &content).unwrap();
        let torrent = Torrent::make(&file, &["http://10.62.0.2:6969/announce"]).unwrap();
        let tracker = OpenTracker::start(&site.external, EXTERNAL, &[&torrent.info_hash]).unwrap();
        let seed = Transmission::start(&site.external, &torrent, Some(&content), peer).unwrap();
        let at = folder.path().to_string_lossy().into_owned();
        let serve =
            ["python3", "-m", "http.server", "--bind", EXTERNAL, "--directory", &at, "8000"];
        let web = site.external.spawn(&serve).unwrap();
        wait_until("the web server", LIMIT, || {
            site.external.enter(|| std::net::TcpStream::connect((EXTERNAL, 8000))).is_ok()
        })
        .unwrap();
        Self { torrent, content, _tracker: tracker, _seed: seed, web, folder }
    }

    /// An internal client that has the `.torrent` file from the web and fetches what it describes.
    fn fetch(&mut self, site: &Site, peer: &Peer) -> Transmission {
        let url = format!("http://{EXTERNAL}:8000/{}.torrent", self.torrent.name);
        let path = self.folder.path().join("fetched.torrent");
        let fetched = path.to_string_lossy().into_owned();
        let done =
            site.internal.check(&["curl", "-sS", "--fail", "-m", "60", "-o", &fetched, &url]);
        assert!(done.is_ok(), "{done:?} {} {}", self.web.stderr(), site.state());
        let torrent = Torrent { path, ..self.torrent.clone() };
        Transmission::start(&site.internal, &torrent, None, peer).unwrap()
    }
}

/// Fetches a file with and without EICAR in it, by peers with these settings, over TCP or UDP.
fn eicar_is_stopped_and_what_is_clean_arrives(peer: fn(u16) -> Peer, transport: &str) {
    for harm in [false, true] {
        let mut content = noise(62, SIZE);
        if harm {
            content[SIZE / 2..][..eicar().len()].copy_from_slice(&eicar());
        }
        let scanner = testbed::Namespace::new("clamd").unwrap();
        let clamd = Clamd::start(&scanner, None).unwrap();
        // A packet that passes uninspected, since the machine is busy, would be missing from the file.
        let site = Site::start(&format!(
            "on_failure = \"drop\"\n[gate.scan]\nclamd = {:?}\non_failure = \"refuse\"\n\
             [[gate.file]]\nname = \"scan-shared\"\napplication = [\"bittorrent\"]\naction = \"scan\"\n",
            clamd.socket()
        ));
        let mut share = Share::start(&site, content, &peer(SEED));
        let leech = share.fetch(&site, &peer(LEECH));
        let state = || format!("{:#?} {}", site.flows("bittorrent"), site.state());
        if harm {
            site.wait("the find", |status| count(&status["files"], "found") >= 1);
            site.wait("the refusal", |status| count(&status["refused"], "bittorrent") >= 1);
            let flows = site.flows("bittorrent");
            let refused = |row: &Value| row["flow"]["transport"] == transport;
            assert!(flows.iter().any(refused), "{}", state());
            // Over TCP it tries again, and is refused by the torrent's hash.
            if transport == "tcp" {
                site.wait("another attempt", |status| count(&status["files"], "denied") >= 1);
            }
            assert!(!leech.complete(), "{}", state());
        } else {
            let whole = leech.wait_complete(LIMIT);
            assert!(whole.is_ok(), "{whole:?}: {}", state());
            assert_eq!(std::fs::read(leech.file()).unwrap(), share.content);
            let status = site.wait("the scan", |status| count(&status["files"], "clean") >= 1);
            assert_eq!(count(&status["files"], "found"), 0);
        }
    }
}

#[test]
fn a_torrent_with_eicar_in_it_is_stopped_and_a_clean_one_arrives() {
    eicar_is_stopped_and_what_is_clean_arrives(Peer::new, "tcp");
}

#[test]
fn the_same_over_utp() {
    eicar_is_stopped_and_what_is_clean_arrives(|port| Peer::new(port).utp(), "udp");
}
