//! A mesh of stations behind one bridge:
//!
//! ```text
//!   alfa 10.77.0.1, fd77::1 ──┐
//!   bravo 10.77.0.2, fd77::2 ─┼── switch      unknown 10.77.0.9
//!   carol 10.77.0.3, fd77::3 ─┘
//! ```

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use testbed::{End, Finished, Lab, Namespace, Nigh, link, wait_until};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
pub(crate) use testbed::LIMIT;
/// The stations in the order of their addresses.
pub(crate) const NAMES: [&str; 3] = ["alfa", "bravo", "carol"];

/// How stations know each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    Certificates,
    SharedKey,
}

/// Namespaces joined by a bridge, and the files of stations.
pub(crate) struct Stage {
    pub(crate) files: TempDir,
    pub(crate) places: Vec<Namespace>,
    pub(crate) stations: Vec<Nigh>,
    proof: Proof,
    apart: bool,
    pub(crate) switch: Namespace,
}

impl Stage {
    /// So many stations with this part of `[probe]`; every one has the same.
    pub(crate) fn start(count: usize, proof: Proof, more: &str) -> Self {
        let stage = Self::empty(count, proof);
        stage.begin(more)
    }

    /// So many stations that a lab is to join: 10.77.1.1, 10.77.2.1 and so on.
    pub(crate) fn apart(count: usize, proof: Proof) -> Self {
        let mut stage = Self::empty(0, proof);
        stage.places = NAMES[..count].iter().map(|name| Namespace::new(name).unwrap()).collect();
        stage.apart = true;
        stage
    }

    /// Joins the stations by a lab with a router for each, named as it in capitals, and these links.
    pub(crate) fn join(&self, links: &str) -> Lab {
        let mut scene = "[lab]\nseed = 7\n".to_owned();
        for ((number, name), host) in (1..).zip(NAMES).zip(&self.places) {
            let (router, namespace) = (name.to_uppercase(), host.name());
            scene += &format!(
                "[[node]]\nname = \"{router}\"\n[[host]]\nname = \"{name}\"\nattach = \"{router}\"\n\
                 address = \"10.77.{number}.1/24\"\nnamespace = \"{namespace}\"\ndefault_route = true\n"
            );
        }
        Lab::start(Path::new(BINARY), &(scene + links)).unwrap()
    }

    /// The namespaces and files only.
    pub(crate) fn empty(count: usize, proof: Proof) -> Self {
        let switch = Namespace::new("switch").unwrap();
        switch.check(&["ip", "link", "add", "br0", "type", "bridge"]).unwrap();
        switch.check(&["ip", "link", "set", "br0", "up"]).unwrap();
        let mut places = Vec::new();
        for (number, name) in (1..=count).zip(NAMES) {
            places.push(join(&switch, name, number));
        }
        let files = tempfile::tempdir().unwrap();
        let stage = Self { files, places, stations: Vec::new(), proof, apart: false, switch };
        let authority = Authority::new("mesh");
        std::fs::write(stage.file("mesh.pem"), authority.pem()).unwrap();
        for name in NAMES {
            authority.issue(name, &stage.file(name));
        }
        private(&stage.file("mesh.key"), &format!("{}\n", "5a".repeat(32)));
        stage
    }

    /// Starts the daemons.
    pub(crate) fn begin(mut self, more: &str) -> Self {
        for (number, host) in self.places.iter().enumerate() {
            let sections = self.sections(number, more);
            let nigh = Nigh::start(host, Path::new(BINARY), NAMES[number], &sections).unwrap();
            self.stations.push(nigh);
        }
        self
    }

    /// Another host behind the switch.
    pub(crate) fn unknown(&self) -> Namespace {
        join(&self.switch, "unknown", 9)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The section of a station; the mesh is the same for all.
    pub(crate) fn sections(&self, number: usize, more: &str) -> String {
        let folder = self.files.path().display();
        let name = NAMES[number];
        let security = match self.proof {
            Proof::Certificates => format!(
                "authority = \"{folder}/mesh.pem\"\ncertificate = \"{folder}/{name}.pem\"\n\
                 key = \"{folder}/{name}.key\""
            ),
            Proof::SharedKey => format!("shared_key = \"{folder}/mesh.key\""),
        };
        let mut text = format!("[probe]\n{more}\n[probe.security]\n{security}\n");
        for (number, name) in (1..=self.places.len()).zip(NAMES) {
            if self.apart {
                text += &format!(
                    "[[probe.station]]\nname = \"{name}\"\naddresses = [\"10.77.{number}.1\"]\n"
                );
                continue;
            }
            text += &format!(
                "[[probe.station]]\nname = \"{name}\"\naddresses = [\"10.77.0.{number}\", \"fd77::{number}\"]\n\
                 may = [\"delay\", \"throughput\", \"iperf3\", \"slot\"]\n"
            );
        }
        text
    }

    /// The value of `probe` in a station's status.
    pub(crate) fn status(&self, number: usize) -> Value {
        self.stations[number].control(&json!({"do": "status"})).unwrap()["probe"].clone()
    }

    /// Runs a test on request and gives the record.
    pub(crate) fn order(&self, number: usize, order: Value) -> Result<Value, testbed::Error> {
        let mut request = json!({"do": "run"});
        for (key, value) in order.as_object().unwrap() {
            request[key] = value.clone();
        }
        self.stations[number].control(&json!({"do": "probe", "request": request}))
    }

    /// Runs `nigh probe ...` against a station.
    pub(crate) fn probe(&self, number: usize, words: &[&str]) -> Finished {
        let socket = self.stations[number].socket();
        let socket = socket.to_str().unwrap();
        let line = [&[BINARY, "probe"][..], words, &["--socket", socket]].concat();
        self.places[number].run(&line, LIMIT).unwrap()
    }

    /// Runs `nigh probe ...` with a station's configuration file, as what reads the archive needs it.
    pub(crate) fn read(&self, number: usize, words: &[&str]) -> Finished {
        let file = self.stations[number].configuration();
        let line = [&[BINARY, "probe"][..], words, &["-c", file.to_str().unwrap()]].concat();
        self.places[number].run(&line, LIMIT).unwrap()
    }

    /// What a station's archive has, by `nigh probe show --json`.
    pub(crate) fn kept(&self, number: usize, words: &[&str]) -> Value {
        let shown = self.read(number, &[&["show"], words, &["--json"]].concat());
        assert!(shown.success(), "{}", shown.stderr);
        serde_json::from_str(&shown.stdout).unwrap()
    }

    /// Waits until a station's status is so.
    pub(crate) fn wait(&self, what: &str, number: usize, so: impl Fn(&Value) -> bool) {
        if wait_until(what, LIMIT, || so(&self.status(number))).is_err() {
            panic!("{what}: {:#}\n{}", self.status(number), self.stations[number].wrote());
        }
    }
}

/// How many runs of a test were done.
pub(crate) fn done(status: &Value, test: &str) -> u64 {
    let tests = status["tests"].as_array().unwrap().iter();
    tests.filter(|one| one["test"] == test).map(|one| one["done"].as_u64().unwrap()).sum()
}

/// A host behind the switch.
fn join(switch: &Namespace, name: &str, number: usize) -> Namespace {
    let host = Namespace::new(name).unwrap();
    let port = format!("port{number}");
    let (v4, v6) = (format!("10.77.0.{number}/24"), format!("fd77::{number}/64"));
    link(End::new(&host, "eth0").address(&v4).address(&v6).no_offloads(), End::new(switch, &port))
        .unwrap();
    switch.check(&["ip", "link", "set", &port, "master", "br0"]).unwrap();
    host
}

/// Writes a file that only its owner may read.
pub(crate) fn private(path: &Path, text: &str) {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut file = std::fs::OpenOptions::new();
    let file = file.write(true).create(true).truncate(true).mode(0o600).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

/// Who vouches for stations.
pub(crate) struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: rcgen::Issuer::new(params, key), pem }
    }

    fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a name, in `FILE.pem` and `FILE.key`.
    pub(crate) fn issue(&self, name: &str, file: &Path) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(file.with_extension("pem"), certificate.pem()).unwrap();
        private(&file.with_extension("key"), &key.serialize_pem());
    }
}
