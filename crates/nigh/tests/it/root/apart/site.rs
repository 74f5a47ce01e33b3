//! A node that runs all jobs, beside the router of the announcement's tests:
//!
//! ```text
//!   client ── router: BIRD, station "b" ── 172.16.0.30 eth0 node "a" lan0 ── internal
//! ```

use super::super::{
    anycast::site::{Core, LIMIT, SERVICE4, sections},
    oracle::stage::NETWORK,
};
use oracle::{
    candidate::Candidate,
    proxidor::{Query, Rcode, Reply},
};
use serde_json::{Value, json};
use std::{
    net::{Ipv4Addr, TcpStream, UdpSocket},
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use testbed::{End, Namespace, Nigh, link, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
pub(super) const JOBS: [&str; 4] = ["echo", "oracle", "probe", "gate"];
/// Where node a answers Proxidor, serves ALTO, and takes other stations.
pub(super) const PROXIDOR: &str = "172.16.0.30:8899";
pub(super) const ALTO: &str = "172.16.0.30:6671";
pub(super) const STATION: &str = "172.16.0.30:8620";

/// The sections of node a, each a part of the file.
#[derive(Clone)]
pub(super) struct Sections {
    pub(super) echo: String,
    pub(super) oracle: String,
    pub(super) probe: String,
    pub(super) gate: String,
}

impl Sections {
    pub(super) fn text(&self) -> String {
        [&*self.echo, &self.oracle, &self.probe, &self.gate].join("\n")
    }
}

pub(super) struct Site {
    pub(super) a: Nigh,
    /// A measuring station, on the router.
    pub(super) b: Nigh,
    pub(super) core: Core,
    pub(super) sections: Sections,
    _internal: Namespace,
    files: TempDir,
}

/// `[probe]` of a station; the mesh is the same for both.
fn probe(key: &Path) -> String {
    format!(
        "[probe]\n[probe.security]\nshared_key = {key:?}\n\
         [[probe.station]]\nname = \"a\"\naddresses = [\"172.16.0.30\"]\nmay = [\"delay\", \"slot\"]\n\
         [[probe.station]]\nname = \"b\"\naddresses = [\"172.16.0.29\"]\nmay = [\"delay\", \"slot\"]\n"
    )
}

impl Site {
    /// Starts both; all jobs work when this returns.
    pub(super) fn start() -> Self {
        let core = Core::new();
        let internal = Namespace::new("internal").unwrap();
        let lan = End::new(core.node(0), "lan0").address("10.61.0.1/24");
        link(lan, End::new(&internal, "eth0").address("10.61.0.2/24")).unwrap();
        let files = tempfile::tempdir().unwrap();
        let [network, key, audit] =
            ["network.toml", "mesh.key", "audit"].map(|name| files.path().join(name));
        std::fs::write(&network, NETWORK).unwrap();
        private(&key, &("5a".repeat(32) + "\n"));
        let commands = "commands = [[\"/bin/true\"]]";
        let sections = Sections {
            echo: sections(0, commands),
            oracle: format!(
                "[oracle]\nlisten = [\"{PROXIDOR}\"]\nthreads = 1\n\
                 [oracle.topology]\nfile = {network:?}\n[oracle.alto]\nlisten = [\"{ALTO}\"]\n"
            ),
            probe: probe(&key),
            gate: format!("[gate]\ninternal = [\"lan0\"]\n[gate.audit]\nfolder = {audit:?}\n"),
        };
        let binary = Path::new(BINARY);
        let text = sections.text();
        let a = Nigh::start_to_panic(core.node(0), binary, "a", &text).unwrap();
        let b = Nigh::start(&core.router, binary, "b", &probe(&key)).unwrap();
        let site = Self { a, b, core, sections, _internal: internal, files };
        site.await_jobs(&JOBS);
        site
    }

    /// Starts node a again.
    pub(super) fn restart(&mut self) {
        let text = self.sections.text();
        self.a.restart(self.core.node(0), Path::new(BINARY), "a", &text).unwrap();
        self.await_jobs(&JOBS);
    }

    /// The file of the network's topology.
    pub(super) fn network(&self) -> PathBuf {
        self.files.path().join("network.toml")
    }

    /// Waits until these jobs of node a do what they are for.
    pub(super) fn await_jobs(&self, jobs: &[&str]) {
        for job in jobs {
            let what = format!("{job} at work");
            if wait_until(&what, LIMIT, || self.works(job)).is_err() {
                panic!("{what}: {:#}\n{}", self.status(job), self.a.wrote());
            }
        }
    }

    fn works(&self, job: &str) -> bool {
        match job {
            "echo" => self.core.routes(0) == [true; 2] && self.is_pinged(),
            "oracle" => self.core.router.enter(rank) == Some(Rcode::NO_ERROR),
            "probe" => self.is_measured(),
            _ => {
                let request =
                    json!({"do": "gate", "request": {"do": "top", "by": "host", "count": 1}});
                self.a.control(&request).is_ok()
            }
        }
    }

    fn is_pinged(&self) -> bool {
        self.core.client.run(&["ping", "-c", "1", "-W", "1", SERVICE4], LIMIT).unwrap().success()
    }

    /// Whether station b and the one of node a agree on a test, which a's then takes part in.
    pub(super) fn is_measured(&self) -> bool {
        let test = json!({"do": "run", "what": "owd", "to": "a", "duration": "100ms"});
        self.b.control(&json!({"do": "probe", "request": test})).is_ok()
    }

    /// What node a says of a job.
    pub(super) fn status(&self, job: &str) -> Value {
        self.a.control(&json!({"do": "status", "job": job})).unwrap()
    }

    /// The number of node a's process.
    pub(super) fn pid(&self) -> u64 {
        self.a.control(&json!({"do": "status"})).unwrap()["node"]["pid"].as_u64().unwrap()
    }

    /// Connects to node a from the router.
    pub(super) fn connects(&self, to: &str) -> bool {
        let to = to.parse().unwrap();
        let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(1));
        self.core.router.enter(connect).is_ok()
    }

    /// Has node a read these sections.
    pub(super) fn reload(&self, sections: &Sections) -> Value {
        self.a.configure("a", &sections.text()).unwrap();
        self.a.control(&json!({"do": "reload"})).unwrap()
    }
}

/// How the oracle answers, if it does.
pub(super) fn rank() -> Option<Rcode> {
    let mut request = Vec::new();
    let candidates = [Candidate::V4(Ipv4Addr::new(198, 51, 100, 7))];
    let query = Query { identification: 7, candidates: &candidates, ..Query::default() };
    query.emit(&mut request).unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect(PROXIDOR).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    socket.send(&request).ok()?;
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).ok()?;
    Some(Reply::parse(&buffer[..length], None).ok()?.header.rcode)
}

/// Writes a file that only its owner may read.
fn private(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
