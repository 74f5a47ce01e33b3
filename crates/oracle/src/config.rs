//! The section `[oracle]` of the configuration.
//!
//! Parsing (serde) refuses unknown keys and values of the wrong type. What parses can still be
//! wrong: [`OracleConfig::problems`] names every such value with its dotted key and what to do.
//! The rules are in `check.rs`; those of a feed and of ALTO are beside the part that they
//! configure.

#[cfg(test)]
mod tests;

use crate::{
    alto::AltoConfig,
    feeds::{BgpLsConfig, BmpConfig},
    metric::DEFAULT_COST,
    proxidor::{Key, PORT, xdp::Mode},
};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

/// Name of the metric with the configured `cost`, bit 0 of the servcode.
pub const DEFAULT_METRIC: &str = "default";
/// Most threads that answer.
pub(crate) const MAX_THREADS: usize = 256;

/// Renamed keys: the old dotted path and the new one.
pub const RENAMED: &[(&str, &str)] = &[
    ("oracle.topology.seed", "oracle.topology.oracle_conf"),
    ("oracle.alto.limit.patience", "oracle.alto.limit.timeout"),
    ("oracle.alto.limit.versions_bytes", "oracle.alto.limit.versions_size"),
];

/// Ranks lists of candidate addresses by the operator's own topology and routes, over Proxidor (UDP) and ALTO
/// (HTTPS).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OracleConfig {
    /// The UDP addresses on which Proxidor requests are answered.
    #[schemars(with = "Vec<config::schema::Endpoint>")]
    pub listen: Vec<SocketAddr>,
    /// Threads that answer, each on its own core; 0 means one for each core.
    #[schemars(range(max = MAX_THREADS))]
    pub threads: usize,
    /// Interfaces on which the plain request (IPv4 addresses, no options) is answered in the driver by XDP.
    pub interfaces: Vec<String>,
    /// Where the XDP program runs.
    pub mode: Mode,
    /// How long clients may keep a ranking, whole seconds.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub ttl: Duration,
    /// The default metric: an expression over properties of the path.
    pub cost: String,
    /// The exit that a path takes if there are several.
    pub exits: Exits,
    /// Prefixes of clients that may rank from another source than their own address.
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub sources: Vec<IpNet>,
    /// Router from which clients in unknown networks rank; without it only adjustments count for them.
    pub default_router: Option<IpAddr>,
    /// Further metrics; clients ask for them by bits 1, 2, ... of the servcode, in this order.
    #[serde(rename = "metric")]
    pub metrics: Vec<MetricConfig>,
    /// Prefixes and ASes to prefer or avoid.
    #[serde(rename = "adjust")]
    pub adjustments: Vec<AdjustConfig>,
    /// Rate limit: a token bucket for each source prefix. Requests beyond it are dropped.
    pub limit: LimitConfig,
    /// Authentication of Proxidor requests by a pre-shared key; off when not given.
    pub authentication: Option<AuthenticationConfig>,
    /// Files with the network: topology and routes.
    pub topology: TopologyConfig,
    /// Live routes from routers over BMP (RFC 7854); off when not given.
    pub bmp: Option<BmpConfig>,
    /// Speakers that advertise the topology over BGP-LS.
    pub bgp_ls: Vec<BgpLsConfig>,
    /// ALTO (RFC 7285) over HTTPS; off when not given.
    pub alto: Option<AltoConfig>,
}

impl Default for OracleConfig {
    fn default() -> Self {
        let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        Self {
            listen: any.map(|address| SocketAddr::new(address, PORT)).to_vec(),
            threads: 0,
            interfaces: Vec::new(),
            mode: Mode::default(),
            ttl: Duration::from_secs(60),
            cost: DEFAULT_COST.to_owned(),
            exits: Exits::default(),
            sources: Vec::new(),
            default_router: None,
            metrics: Vec::new(),
            adjustments: Vec::new(),
            limit: LimitConfig::default(),
            authentication: None,
            topology: TopologyConfig::default(),
            bmp: None,
            bgp_ls: Vec::new(),
            alto: None,
        }
    }
}

/// Which exit a path takes if there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exits {
    /// The one of lowest internal weight (hot potato).
    #[default]
    Nearest,
    /// The one with the shortest AS path, as BGP decides.
    ShortestAsPath,
}

/// A further metric beside the default one.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricConfig {
    /// Name of the metric in status and, with `priv:` before it, in ALTO.
    pub name: String,
    /// Expression over properties of the path.
    pub cost: String,
}

/// An adjustment of the rank of a prefix or an AS.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdjustConfig {
    /// Prefix that is adjusted, with all longer ones; required unless `as` is given.
    #[schemars(with = "Option<config::schema::Prefix>")]
    pub prefix: Option<IpNet>,
    /// AS number in which the adjusted routes originate; required unless `prefix` is given.
    #[serde(rename = "as")]
    #[schemars(range(min = 1))]
    pub as_number: Option<u32>,
    /// Rank before or after all others, regardless of cost; required unless `penalty` is given.
    #[serde(rename = "do")]
    pub verdict: Option<Verdict>,
    /// Added to the cost; required unless `do` is given.
    pub penalty: Option<f64>,
}

/// How a candidate ranks whatever its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It ranks before all others.
    Prefer,
    /// It ranks after all others that are known.
    Avoid,
}

/// Rate limit: a token bucket for each source prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitConfig {
    /// Requests a second for each source prefix; 0 switches the limit off.
    #[schemars(range(max = config::MAX_RATE))]
    pub rate: u64,
    /// Burst: requests that a source prefix may send at once.
    #[schemars(range(max = config::MAX_RATE))]
    pub burst: u64,
    /// Length of an IPv4 source prefix, in bits.
    #[schemars(range(min = 1, max = 32))]
    pub prefix4: u8,
    /// Length of an IPv6 source prefix, in bits.
    #[schemars(range(min = 1, max = 64))]
    pub prefix6: u8,
}

impl Default for LimitConfig {
    fn default() -> Self {
        Self { rate: 1000, burst: 2000, prefix4: 24, prefix6: 56 }
    }
}

/// Authentication of Proxidor requests by a pre-shared key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthenticationConfig {
    /// Pre-shared key of SipHash-2-4, 32 hexadecimal digits.
    pub key: Key,
    /// Refuse requests without authentication.
    #[serde(default)]
    pub required: bool,
}

/// Files with the network: topology and routes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TopologyConfig {
    /// Main file in the format `oracle.conf`; it names the folder with one file for each router.
    pub oracle_conf: Option<PathBuf>,
    /// File with the network in TOML.
    pub file: Option<PathBuf>,
    /// RIB dumps of exit routers, in MRT (RFC 6396).
    pub mrt: Vec<MrtConfig>,
}

/// A RIB dump in MRT (RFC 6396) with the routes of one exit router.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MrtConfig {
    /// The dump, plain or compressed with gzip or bzip2.
    pub file: PathBuf,
    /// Id of the exit router in the topology.
    pub router: IpAddr,
}

/// The section, and the values of `[node]` that it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `node.name`.
    pub node: String,
    /// `node.state`, the directory for state that must survive a restart.
    pub state: PathBuf,
    /// The section `[oracle]`.
    pub oracle: OracleConfig,
}
