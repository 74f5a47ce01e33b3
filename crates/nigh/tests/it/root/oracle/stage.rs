//! A client and a node with the oracle, and the network in the node's topology:
//!
//! ```text
//!   client eth0 192.0.2.2 ── 192.0.2.1 eth0 node          10.0.0.2 ── 10.8.0.1 ──  198.51.100.0/24
//!                                                        /        exit "west"
//!   192.0.2.0/24 is attached to router berlin, 10.0.0.1 ⟨
//!                                                        \        exit "east"
//!                                                         10.0.0.3 ── 10.8.0.2 ──  203.0.113.0/24
//! ```
//!
//! Both paths are alike except for the last link: 100 Mbit/s in the west, 50 in the east.

use oracle::{
    candidate::Candidate,
    proxidor::{Query, Rcode, Reply},
};
use serde_json::{Value, json};
use std::{
    net::{IpAddr, UdpSocket},
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
pub(crate) use testbed::LIMIT;
use testbed::{Finished, Namespace, Nigh, wait_until};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
pub(crate) const WEST: &str = "198.51.100.7";
pub(crate) const EAST: &str = "203.0.113.7";
pub(crate) const UNKNOWN: &str = "100.64.0.1";

/// The network of the picture.
pub(crate) const NETWORK: &str = r#"
[[router]]
id = "10.0.0.1"
name = "berlin"
[[router]]
id = "10.0.0.2"
[[router]]
id = "10.0.0.3"
[[router]]
id = "10.8.0.1"
name = "west"
[[router]]
id = "10.8.0.2"
name = "east"

[[link]]
from = "10.0.0.1"
to = "10.0.0.2"
id = 0
bandwidth = 1000
latency = 1.5
weight = 10
both = true
[[link]]
from = "10.0.0.1"
to = "10.0.0.3"
id = 1
bandwidth = 1000
latency = 1.5
weight = 10
both = true
[[link]]
from = "10.0.0.2"
to = "10.8.0.1"
id = 2
bandwidth = 100
latency = 2
weight = 10
both = true
[[link]]
from = "10.0.0.3"
to = "10.8.0.2"
id = 3
bandwidth = 50
latency = 2
weight = 10
both = true

[[internal]]
prefix = "192.0.2.0/24"
router = "10.0.0.1"
[[external]]
prefix = "198.51.100.0/24"
exit = "10.8.0.1"
as_distance = 2
as_number = 64501
[[external]]
prefix = "203.0.113.0/24"
exit = "10.8.0.2"
as_distance = 2
as_number = 64502
"#;

/// Two namespaces and the daemon.
pub(crate) struct Stage {
    pub(crate) nigh: Nigh,
    pub(crate) client: Namespace,
    pub(crate) node: Namespace,
    /// Where the files of the topology are.
    pub(crate) files: TempDir,
}

/// The namespaces only.
pub(crate) fn pair() -> (Namespace, Namespace) {
    // Checksums that are left to hardware which a veth has not, the driver cannot answer.
    let (node, client) = testbed::pair_without_offloads().unwrap();
    (client, node)
}

/// `[oracle]` with the network of `file` and no limit; `more` follows the section's own keys.
pub(crate) fn sections(file: &Path, more: &str) -> String {
    format!(
        "[oracle]\nthreads = 2\n{more}\n[oracle.limit]\nrate = 0\n[oracle.topology]\nfile = \"{}\"\n",
        file.display()
    )
}

impl Stage {
    /// Starts the daemon; see [`sections`].
    pub(crate) fn start(more: &str) -> Self {
        Self::between(pair(), more)
    }

    /// Starts the daemon in the second of two namespaces that are joined already.
    pub(crate) fn between((client, node): (Namespace, Namespace), more: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        let file = files.path().join("network.toml");
        std::fs::write(&file, NETWORK).unwrap();
        let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &sections(&file, more)).unwrap();
        Self { nigh, client, node, files }.ready()
    }

    /// Starts the daemon again, perhaps with other sections.
    pub(crate) fn restart(self, sections: &str) -> Self {
        let Self { mut nigh, client, node, files } = self;
        nigh.restart(&node, Path::new(BINARY), "node-a", sections).unwrap();
        Self { nigh, client, node, files }.ready()
    }

    /// Waits for the first tables: until then requests are answered "server busy".
    fn ready(self) -> Self {
        wait_until("tables", LIMIT, || self.status()["tables"].is_object()).unwrap();
        self
    }

    /// The file of the topology.
    pub(crate) fn file(&self) -> PathBuf {
        self.files.path().join("network.toml")
    }

    /// Writes other files and sections and has them read.
    pub(crate) fn reload(&self, network: &str, more: &str) -> Result<Value, testbed::Error> {
        let file = self.file();
        std::fs::write(&file, network).unwrap();
        self.nigh.configure("node-a", &sections(&file, more)).unwrap();
        self.nigh.control(&json!({"do": "reload"}))
    }

    /// Runs `nigh oracle ...` against the daemon.
    pub(crate) fn oracle(&self, words: &[&str]) -> Finished {
        let socket = self.nigh.socket();
        let line =
            [&[BINARY, "oracle"][..], words, &["--socket", socket.to_str().unwrap()]].concat();
        self.node.run(&line, LIMIT).unwrap()
    }

    /// As [`Self::oracle`], for a command that must succeed; what it printed.
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let finished = self.oracle(words);
        assert!(finished.success(), "{words:?}: {}{}", finished.stdout, finished.stderr);
        finished.stdout
    }

    /// The value of `oracle` in the status.
    pub(crate) fn status(&self) -> Value {
        self.nigh.control(&json!({"do": "status"})).unwrap()["oracle"].clone()
    }

    /// Asks from the client's namespace over a plain socket.
    pub(crate) fn rank(&self, candidates: &[&str]) -> (Rcode, Vec<String>) {
        self.client.enter(|| Asker::new("192.0.2.1:8899").rank(candidates))
    }

    /// The candidates of the picture, best first.
    pub(crate) fn order(&self) -> Vec<String> {
        let (rcode, order) = self.rank(&[UNKNOWN, EAST, WEST]);
        assert_eq!(rcode, Rcode::NO_ERROR);
        order
    }
}

/// A plain socket that asks; in the namespace in which it was made.
pub(crate) struct Asker {
    socket: UdpSocket,
    next: u32,
}

impl Asker {
    pub(crate) fn new(server: &str) -> Self {
        let any = if server.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(server).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Self { socket, next: 1 }
    }

    /// Sends one request and reads the reply to it.
    pub(crate) fn rank(&mut self, candidates: &[&str]) -> (Rcode, Vec<String>) {
        let list: Vec<Candidate> = candidates
            .iter()
            .map(|text| match text.parse().unwrap() {
                IpAddr::V4(address) => Candidate::V4(address),
                IpAddr::V6(address) => Candidate::V6(address),
            })
            .collect();
        let mut request = Vec::new();
        let query = Query { identification: self.next, candidates: &list, ..Query::default() };
        query.emit(&mut request).unwrap();
        self.socket.send(&request).unwrap();
        let mut buffer = [0; 2048];
        let length = self.socket.recv(&mut buffer).expect("a reply within five seconds");
        let reply = Reply::parse(&buffer[..length], None).unwrap();
        assert_eq!(reply.header.identification, self.next);
        self.next += 1;
        let order = reply.candidates.iter().map(|candidate| match candidate {
            Candidate::V4(address) => address.to_string(),
            Candidate::V6(address) => address.to_string(),
            other => panic!("{other:?}"),
        });
        (reply.header.rcode, order.collect())
    }
}

/// The sum of a metric's samples whose line contains all of `labels`.
pub(crate) fn metric(text: &str, name: &str, labels: &[&str]) -> f64 {
    let matches = |line: &&str| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    };
    let samples = text.lines().filter(matches);
    samples.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}
