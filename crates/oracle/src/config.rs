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

/// The section `[oracle]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OracleConfig {
    /// The UDP addresses on which Proxidor requests are answered.
    #[schemars(with = "Vec<config::schema::Endpoint>")]
    pub listen: Vec<SocketAddr>,
    /// Threads that answer, each on its own core; 0 means one for each core.
    #[schemars(range(max = MAX_THREADS))]
    pub threads: usize,
    /// Interfaces on which the plain request is answered in the driver.
    pub interfaces: Vec<String>,
    /// How the program is attached there.
    pub mode: Mode,
    /// How long a client may keep a ranking; whole seconds, as in the header.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub ttl: Duration,
    /// The default metric: an expression over the properties of the path.
    pub cost: String,
    /// Which exit a path takes if there are several.
    pub exits: Exits,
    /// Clients that may rank for a source other than themselves.
    #[schemars(with = "Vec<config::schema::Prefix>")]
    pub sources: Vec<IpNet>,
    /// The router from which unknown clients rank; without it only adjustments count for them.
    pub default_router: Option<IpAddr>,
    /// Further metrics: bits 1, 2, ... of the servcode in this order.
    #[serde(rename = "metric")]
    pub metrics: Vec<MetricConfig>,
    /// Prefixes and ASes to prefer or avoid.
    #[serde(rename = "adjust")]
    pub adjustments: Vec<AdjustConfig>,
    /// The rate limit for each source prefix.
    pub limit: LimitConfig,
    /// The key that clients may or must use.
    pub authentication: Option<AuthenticationConfig>,
    /// The network from files.
    pub topology: TopologyConfig,
    /// Routers that report their routes over BMP.
    pub bmp: Option<BmpConfig>,
    /// Speakers that advertise the topology over BGP-LS.
    pub bgp_ls: Vec<BgpLsConfig>,
    /// ALTO over HTTPS.
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

/// One `[[oracle.metric]]`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricConfig {
    /// Its name in status and ALTO.
    pub name: String,
    /// Its expression over the properties of the path.
    pub cost: String,
}

/// One `[[oracle.adjust]]`: a prefix or an AS, and how its rank is changed.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdjustConfig {
    /// The prefix, with all longer ones; or `as`.
    #[schemars(with = "Option<config::schema::Prefix>")]
    pub prefix: Option<IpNet>,
    /// The AS number in which the routes originate; or `prefix`.
    #[serde(rename = "as")]
    #[schemars(range(min = 1))]
    pub as_number: Option<u32>,
    /// Whether it is preferred or avoided; or `penalty`.
    #[serde(rename = "do")]
    pub verdict: Option<Verdict>,
    /// An addition to its cost; or `do`.
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

/// The section `[oracle.limit]`: a token bucket for each source prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitConfig {
    /// Requests a second for each source prefix; 0 switches the limit off.
    #[schemars(range(max = config::MAX_RATE))]
    pub rate: u64,
    /// Requests that a source prefix may send at once.
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

/// The section `[oracle.authentication]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthenticationConfig {
    /// The pre-shared key of SipHash-2-4.
    pub key: Key,
    /// Whether requests without it are refused.
    #[serde(default)]
    pub required: bool,
}

/// The section `[oracle.topology]`: the network from files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TopologyConfig {
    /// A main file in the format `oracle.conf`; it names the folder with a file a router.
    pub oracle_conf: Option<PathBuf>,
    /// A file of the network in TOML.
    pub file: Option<PathBuf>,
    /// RIB dumps of exit routers.
    pub mrt: Vec<MrtConfig>,
}

/// One `[[oracle.topology.mrt]]`: the routes of an exit router.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MrtConfig {
    /// The dump, plain or packed with gzip or bzip2.
    pub file: PathBuf,
    /// The router of the topology that has these routes.
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
