//! Measuring stations at both enterprises and both sites; and at each enterprise an oracle that ranks by
//! what the enterprise's station measures.
//!
//! Stations at the sites are a section more of the `nigh run` there ([`Mesh::sections`]), at the enterprises
//! they have one of their own ([`Enterprise`]).

use super::Internet;
use crate::{Error, Namespace, Nigh, Process, folder};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// AS numbers and names of the stations.
const STATIONS: [(u32, &str); 4] = [(20, "ent-a"), (21, "ent-b"), (12, "dinr-a"), (13, "dinr-b")];

/// The address of the station in an AS; at the sites it is not the service's, which both have.
pub fn station_address(asn: u32) -> String {
    format!("{asn}.0.0.10")
}

/// What all stations have in common.
#[derive(Debug)]
pub struct Mesh {
    files: TempDir,
}

impl Mesh {
    /// A mesh with a key of its own.
    ///
    /// # Errors
    ///
    /// When its files cannot be written.
    pub fn new() -> Result<Self, Error> {
        let mesh = Self { files: folder::new()? };
        let mut key = [0; 32];
        let key = fs::File::open("/dev/urandom")
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut key).map(|()| key))
            .map_err(|error| Error::new("making a key", error))?;
        let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        mesh.write("mesh.key", &key)?;
        Ok(mesh)
    }

    fn write(&self, name: &str, text: &str) -> Result<String, Error> {
        let path = self.files.path().join(name);
        let permissions = fs::Permissions::from_mode(0o600);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, permissions))
            .map_err(|error| Error::new(format!("writing {}", path.display()), error))?;
        Ok(path.display().to_string())
    }

    /// The key that all stations have.
    pub fn key(&self) -> PathBuf {
        self.files.path().join("mesh.key")
    }

    /// A folder that goes with this.
    pub fn folder(&self) -> &Path {
        self.files.path()
    }

    /// The section `[probe]` of the station in an AS: it measures to all others, all the time.
    ///
    /// # Panics
    ///
    /// When the AS has no station.
    pub fn sections(&self, asn: u32) -> String {
        let own = STATIONS.iter().find(|(of, _)| *of == asn);
        let (_, own) = own.unwrap_or_else(|| panic!("no station in AS {asn}"));
        let names = STATIONS.map(|(_, name)| format!("\"{name}\"")).join(", ");
        let key = self.key();
        let mut text = format!(
            "[probe]\nname = \"{own}\"\n[probe.security]\nshared_key = \"{}\"\n\
             [[probe.test]]\nname = \"always\"\nwhat = \"owd\"\nmesh = [{names}]\n\
             interval = \"1s\"\nrate = 20\n",
            key.display()
        );
        for (asn, name) in STATIONS {
            let address = station_address(asn);
            text += &format!("[[probe.station]]\nname = \"{name}\"\naddresses = [\"{address}\"]\n");
        }
        text
    }

    /// The section `[oracle]` of an enterprise: its network has a link to every other station, about which
    /// its file says the same, and the station knows better.
    fn oracle(&self, asn: u32) -> Result<String, Error> {
        let router = |asn: u32| format!("{asn}.0.0.1");
        let (mut network, mut measured) = (String::new(), String::new());
        for (of, name) in STATIONS {
            let there = router(of);
            network += &format!(
                "[[router]]\nid = \"{there}\"\nname = \"{name}\"\n\
                 [[internal]]\nprefix = \"{of}.0.0.0/8\"\nrouter = \"{there}\"\n"
            );
            if of != asn {
                let ends = format!("from = \"{}\"\nto = \"{there}\"\nboth = true\n", router(asn));
                network +=
                    &format!("[[link]]\n{ends}bandwidth = 1000\nlatency = 1000\nweight = 1\n");
                measured += &format!("[[probe.measured]]\nstation = \"{name}\"\n{ends}");
            }
        }
        let file = self.write(&format!("network-{asn}.toml"), &network)?;
        Ok(format!(
            "{measured}[oracle]\ncost = \"latency\"\n[oracle.topology]\nfile = \"{file}\"\n"
        ))
    }
}

/// `nigh run` at an enterprise's PC: its station, and its oracle.
#[derive(Debug)]
pub struct Enterprise<'a> {
    asn: u32,
    host: &'a Namespace,
    binary: &'a Path,
    nigh: Nigh,
}

/// What a station measured of the way to another one and back, over a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    /// The median, in milliseconds; `None` when all was lost.
    pub median: Option<f64>,
    /// The true median differs by no more, in milliseconds.
    pub error: f64,
    /// Share of packets lost.
    pub loss: f64,
    /// When, nanoseconds since 1970.
    pub at_ns: i64,
}

impl<'a> Enterprise<'a> {
    /// Starts it; stations find each other by themselves.
    ///
    /// # Errors
    ///
    /// As [`Nigh::start`].
    pub fn start(
        internet: &'a Internet,
        asn: u32,
        mesh: &Mesh,
        binary: &'a Path,
    ) -> Result<Self, Error> {
        let host = internet.host(asn);
        let sections = mesh.sections(asn) + &mesh.oracle(asn)?;
        let nigh = Nigh::start(host, binary, internet.router(asn).name, &sections)?;
        Ok(Self { asn, host, binary, nigh })
    }

    /// The daemon.
    pub fn nigh(&mut self) -> &mut Nigh {
        &mut self.nigh
    }

    /// Asks its oracle, as a program on the PC would: the addresses, best first.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn rank(&self, candidates: &[&str]) -> Result<Vec<String>, Error> {
        let (binary, server) = (self.binary.to_string_lossy(), station_address(self.asn));
        let words = [&*binary, "oracle", "rank", "--json", "--server", &server];
        let text = self.host.check(&[&words[..], candidates].concat())?;
        let answer: Value =
            serde_json::from_str(&text).map_err(|error| Error::new("reading a ranking", error))?;
        let list = answer["candidates"].as_array().into_iter().flatten();
        Ok(list.filter_map(|row| row.as_str()).map(str::to_owned).collect())
    }

    /// What its station measured last of the way to another one and back.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read; `None` when it has nothing of the last ten seconds.
    pub fn round_trip(&self, station: &str) -> Result<Option<RoundTrip>, Error> {
        let text = self.show(&["--json", "--since", "10s", "--to", station])?;
        let entries: Vec<Value> =
            serde_json::from_str(&text).map_err(|error| Error::new("reading delays", error))?;
        let newest = entries.iter().max_by_key(|entry| entry["at_ns"].as_i64());
        Ok(newest.and_then(round_trip))
    }

    /// The round trips to another station over so long a time, drawn for a terminal.
    ///
    /// # Errors
    ///
    /// When the archive cannot be read.
    pub fn chart(&self, station: &str, since: &str) -> Result<String, Error> {
        self.show(&["--direction", "round-trip", "--since", since, "--to", station])
    }

    /// `nigh probe show delay` of what is measured all the time.
    fn show(&self, more: &[&str]) -> Result<String, Error> {
        let (binary, archive) = (self.binary.to_string_lossy(), self.nigh.state().join("probe"));
        let archive = archive.to_string_lossy();
        let words = [&*binary, "probe", "show", "delay", "--test", "always", "--archive", &archive];
        self.host.check(&[&words[..], more].concat())
    }

    /// Starts `nigh probe run throughput` to a station: one TCP connection for so many seconds.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn load(&self, station: &str, duration: Duration) -> Result<Process, Error> {
        let (binary, socket) = (self.binary.to_string_lossy(), self.nigh.socket());
        let duration = format!("{}s", duration.as_secs());
        let socket = socket.to_string_lossy();
        let words = ["probe", "run", "throughput", station, "--duration", &duration, "--json"];
        let line = [&[&*binary], &words[..], &["--socket", &socket]].concat();
        self.host.spawn(&line)
    }
}

fn round_trip(entry: &Value) -> Option<RoundTrip> {
    let series = &entry["figures"]["round_trip"];
    let count = |name: &str| series[name].as_f64().filter(|_| series[name].is_u64());
    let milliseconds = |name: &str| series["median"][name].as_f64().map(|value| value / 1e6);
    let (median, low, high) =
        (milliseconds("estimate_ns"), milliseconds("low_ns"), milliseconds("high_ns"));
    let error = match (median, low, high) {
        (Some(median), Some(low), Some(high)) => (median - low).max(high - median),
        _ => f64::INFINITY,
    };
    let loss = count("lost")? / count("sent").filter(|sent| *sent > 0.0)?;
    Some(RoundTrip { median, error, loss, at_ns: entry["at_ns"].as_i64()? })
}
