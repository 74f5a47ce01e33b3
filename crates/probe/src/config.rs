//! The section `[probe]` of the configuration.
//!
//! The stations, tests and links of a mesh are the same in every station's file; what differs is the
//! station's own name, which `node.name` gives unless `probe.name` does.
//!
//! Parsing (serde) refuses unknown keys and values of the wrong type. What parses can still be
//! wrong: [`ProbeConfig::problems`] names every such value with its dotted key and what to do.
//! The rules are in `config/check.rs`.

mod check;
mod target;
#[cfg(test)]
mod tests;

pub use check::{
    DELAY, HOUR, LONGEST, LONGEST_LEASE, LONGEST_THROUGHPUT, MAX_RATE, MIN_BANDWIDTH, OVERHEAD,
    PING, THROUGHPUT, UNMEASURED,
};
pub use target::{Target, TargetError};

use crate::archive::ArchiveConfig;
use config::Bandwidth;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

/// Port of the stations' control connections, unless another is given.
pub const CONTROL_PORT: u16 = 8620;
/// Port of STAMP (RFC 8762, section 4.1).
pub const STAMP_PORT: u16 = 862;

/// Renamed keys: the old dotted path and the new one.
pub const RENAMED: &[(&str, &str)] = &[
    ("probe.test.length", "probe.test.duration"),
    ("probe.test.means", "probe.test.transport"),
    ("probe.limit.length", "probe.limit.duration"),
];

/// A measuring station: measures delay, loss, throughput and paths to other stations and to allowed addresses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProbeConfig {
    /// This station's name in the mesh; `node.name` when not given.
    pub name: Option<String>,
    /// Authentication of stations: certificates, or one pre-shared key. Without it this station is in no mesh.
    pub security: Option<SecurityConfig>,
    /// The stations of the mesh, this one among them.
    #[serde(rename = "station")]
    pub stations: Vec<StationConfig>,
    /// Scheduled tests.
    #[serde(rename = "test")]
    pub tests: Vec<TestConfig>,
    /// Links that several paths share.
    #[serde(rename = "link")]
    pub links: Vec<LinkConfig>,
    /// Links of the oracle's network on this node, and the stations that measure them.
    pub measured: Vec<MeasuredConfig>,
    /// Prefixes outside the mesh to which tests may send.
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub allow: Vec<IpNet>,
    /// Limits of what other stations may request of this one, and of tests at once.
    pub limit: LimitConfig,
    /// The STAMP reflector (RFC 8762).
    pub reflector: ReflectorConfig,
    /// How long test packets gather before they are processed, at most 100ms; 1ms when not given. Longer times
    /// save processor time and do not change measured delays.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "Option<config::schema::Duration>")]
    pub gather: Option<Duration>,
    /// The largest allowed clock error, and NTP servers that are watched.
    pub clock: ClockConfig,
    /// The archive of measurements: how long they are kept, and where they are exported.
    pub archive: ArchiveConfig,
    /// Tests on request over HTTP; off when not given.
    pub request: Option<RequestConfig>,
}

/// Authentication of stations: certificates, or one key that all stations have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecurityConfig {
    /// PEM file with the authorities that sign stations' certificates.
    pub authority: Option<PathBuf>,
    /// PEM file with this station's certificate, which must have the station's name as a DNS name.
    pub certificate: Option<PathBuf>,
    /// PEM file with the certificate's private key, mode 0600.
    pub key: Option<PathBuf>,
    /// File with the mesh's pre-shared key, mode 0600, instead of the other three.
    pub shared_key: Option<PathBuf>,
}

/// A station of the mesh.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationConfig {
    /// Name of the station, 1 to 63 lower-case letters, digits, `-`, `.`; its certificate must have this name.
    pub name: String,
    /// Addresses from and to which it measures, at most one of each family.
    pub addresses: Vec<IpAddr>,
    /// Address on which it accepts control connections; port 8620 of the first address when not given.
    #[schemars(with = "Option<config::schema::Endpoint>")]
    pub control: Option<SocketAddr>,
    /// Requests that this station accepts from it.
    #[serde(default = "what_is_bounded")]
    pub may: Vec<Service>,
}

/// What one station may request of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// To reflect its STAMP packets.
    Delay,
    /// To be the other end of its throughput tests.
    Throughput,
    /// To run the program iperf3 as a server for its tests. iperf3 accepts whoever connects first, and that
    /// client's rate, duration and direction, so it is off unless named.
    Iperf3,
    /// To reserve time for its pings and traces, and to be their target.
    Slot,
}

/// What is held to what was agreed.
fn what_is_bounded() -> Vec<Service> {
    vec![Service::Delay, Service::Throughput, Service::Slot]
}

/// What is measured.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// One-way delay, loss, reordering, duplication: STAMP.
    #[value(alias = "delay")]
    Owd,
    /// Round trips of ICMP echo.
    Ping,
    /// The routers on the path, and the path's MTU.
    Trace,
    /// Bytes a second.
    Throughput,
    /// The load time of a page.
    Http,
    /// The response time of a name server.
    Dns,
    /// The state of an NTP server's clock.
    Clock,
}

impl What {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Owd => "owd",
            Self::Ping => "ping",
            Self::Trace => "trace",
            Self::Throughput => "throughput",
            Self::Http => "http",
            Self::Dns => "dns",
            Self::Clock => "clock",
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The transport of a throughput test.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// One TCP connection.
    #[default]
    Tcp,
    /// A psock session.
    Psock,
    /// Datagrams at a given rate.
    Udp,
    /// The program iperf3 on both sides.
    Iperf3,
}

impl Transport {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Psock => "psock",
            Self::Udp => "udp",
            Self::Iperf3 => "iperf3",
        }
    }
}

/// Which addresses of a station are used.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema,
)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "ipv4")]
    #[value(name = "ipv4")]
    V4,
    /// IPv6.
    #[serde(rename = "ipv6")]
    #[value(name = "ipv6")]
    V6,
}

impl Family {
    /// Whether an address is of this family.
    pub const fn has(self, address: &IpAddr) -> bool {
        matches!((self, address), (Self::V4, IpAddr::V4(_)) | (Self::V6, IpAddr::V6(_)))
    }
}

/// A scheduled test.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestConfig {
    /// The test's name in the archive.
    pub name: String,
    /// The measurement.
    pub what: What,
    /// Stations that each measure to each other; instead of `from` and `to`.
    #[serde(default)]
    pub mesh: Vec<String>,
    /// Stations that measure.
    #[serde(default)]
    pub from: Vec<String>,
    /// Targets: stations or addresses; pages for `http`, `NAME@SERVER` for `dns`.
    #[serde(default)]
    pub to: Vec<String>,
    /// Interval of the runs, 1s to 7d.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub interval: Duration,
    /// Each run begins within this time after it is due, so that runs do not all begin at once; a tenth of the
    /// interval when not given.
    #[serde(default, with = "humantime_serde")]
    #[schemars(with = "Option<config::schema::Duration>")]
    pub spread: Option<Duration>,
    /// How long a run sends. When not given, `owd` measures all the time and gives a record each
    /// interval, `throughput` sends for 10s, `ping` for 2s.
    #[serde(default, with = "humantime_serde")]
    #[schemars(with = "Option<config::schema::Duration>")]
    pub duration: Option<Duration>,
    /// Packets a second; 10 for `owd` and 5 for `ping` when not given.
    #[schemars(range(min = 1, max = MAX_RATE))]
    pub rate: Option<u32>,
    /// Rate of `throughput` over UDP: `100Mbit`; a number alone is Mbit/s.
    pub bandwidth: Option<Bandwidth>,
    /// The transport of a throughput test.
    #[serde(default)]
    pub transport: Transport,
    /// Run `owd` without authentication, so that the other station can reflect it in the driver.
    #[serde(default)]
    pub plain: bool,
    /// Address family; that of the first common address when not given.
    pub family: Option<Family>,
}

/// A link that all paths from the stations on one side to those on the other share; the timetable keeps
/// conflicting tests on it apart.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Name of the link.
    pub name: String,
    /// Stations on one side.
    pub between: Vec<String>,
    /// Stations on the other side.
    pub and: Vec<String>,
}

/// A link in the oracle's topology that gets the latency and loss that this station measures to another one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredConfig {
    /// The station at the other end.
    pub station: String,
    /// Id of the router at this station's end of the link.
    pub from: IpAddr,
    /// Id of the router at the other station's end.
    pub to: IpAddr,
    /// Report the reverse path for the link in the other direction.
    #[serde(default)]
    pub both: bool,
}

/// Limits of what other stations may request of this one, and of tests at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitConfig {
    /// Most requests a minute from one station.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests: u32,
    /// Most control connections at once.
    #[schemars(range(min = 1, max = 10_000))]
    pub connections: usize,
    /// Most delay sessions of one station at once, and most slots.
    #[schemars(range(min = 1, max = 1000))]
    pub sessions: usize,
    /// Most packets a second of a delay session or a ping.
    #[schemars(range(min = 1, max = MAX_RATE))]
    pub rate: u32,
    /// Longest throughput test that another station may request.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub duration: Duration,
    /// Most time that the throughput tests of one station take in an hour, on average; as much may come at
    /// once after a rest.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub throughput: Duration,
    /// Highest rate of a throughput test over UDP: `1Gbit`; a number alone is Mbit/s.
    pub bandwidth: Bandwidth,
    /// Most tests that this station runs at once, not counting delay sessions without a `duration`.
    #[schemars(range(min = 1, max = 10_000))]
    pub tests: usize,
}

impl Default for LimitConfig {
    fn default() -> Self {
        Self {
            requests: 600,
            connections: 256,
            sessions: 8,
            rate: 1000,
            duration: Duration::from_secs(60),
            throughput: Duration::from_secs(1800),
            bandwidth: Bandwidth(1_000_000_000),
            tests: 16,
        }
    }
}

/// The STAMP reflector (RFC 8762).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReflectorConfig {
    /// UDP port of the reflector.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Interfaces on which plain packets are reflected in the driver (XDP).
    pub interfaces: Vec<String>,
}

impl Default for ReflectorConfig {
    fn default() -> Self {
        Self { port: STAMP_PORT, interfaces: Vec::new() }
    }
}

/// The largest allowed clock error, and NTP servers that are watched.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClockConfig {
    /// The largest allowed clock error; beyond it the node is not healthy. No limit when not given.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "Option<config::schema::Duration>")]
    pub limit: Option<Duration>,
    /// NTP servers whose clocks are watched.
    pub servers: Vec<IpAddr>,
    /// Interval at which the clocks are read.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub interval: Duration,
}

impl Default for ClockConfig {
    fn default() -> Self {
        Self { limit: None, servers: Vec::new(), interval: Duration::from_secs(64) }
    }
}

/// Tests on request over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestConfig {
    /// File with the token that a request must carry; only its owner may read it.
    pub token: PathBuf,
    /// Tests that may be requested; all when not given.
    #[serde(default)]
    pub may: Vec<What>,
}

/// The section, and the values of `[node]` that it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `node.name`.
    pub node: String,
    /// `node.state`, where the archive is kept.
    pub state: PathBuf,
    /// The section `[probe]`.
    pub probe: ProbeConfig,
}

impl Config {
    /// This station's name in the mesh.
    pub fn name(&self) -> &str {
        self.probe.name.as_deref().unwrap_or(&self.node)
    }

    /// This station's own entry, where it has one.
    pub fn own(&self) -> Option<&StationConfig> {
        self.probe.station(self.name())
    }
}

impl ProbeConfig {
    /// The station of this name.
    pub fn station(&self, name: &str) -> Option<&StationConfig> {
        self.stations.iter().find(|station| station.name == name)
    }

    /// Whether tests may send to an address outside the mesh.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|prefix| prefix.contains(&address))
    }
}

impl StationConfig {
    /// Where it accepts control connections.
    pub fn control(&self) -> Option<SocketAddr> {
        let first = || self.addresses.first().map(|ip| SocketAddr::new(*ip, CONTROL_PORT));
        self.control.or_else(first)
    }

    /// Its address of a family, or its first.
    pub fn address(&self, family: Option<Family>) -> Option<IpAddr> {
        let fits = |address: &&IpAddr| family.is_none_or(|family| family.has(address));
        self.addresses.iter().find(fits).copied()
    }
}

impl TestConfig {
    /// How long after its time a run may begin.
    pub fn spread(&self) -> Duration {
        self.spread.unwrap_or(self.interval / 10)
    }

    /// Every pair that this test measures: the station and its target.
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        let mut pairs = Vec::new();
        for (from, to) in [(&self.mesh, &self.mesh), (&self.from, &self.to)] {
            for one in from {
                let others = to.iter().filter(|other| one != *other);
                pairs.extend(others.map(|other| (one.as_str(), other.as_str())));
            }
        }
        pairs
    }
}
