//! `[oracle.bmp]` and `[[oracle.bgp_ls]]` of the configuration file.

use bgp::{
    bmp::Internal,
    config::{BgpUpstream, Password, Upstream},
    value::Asn,
};
use config::{Bandwidth, Problem};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};
use topo::RouterId;

/// The port that routers are usually given for BMP; RFC 7854 section 3.2 leaves it to the operator.
pub const BMP_PORT: u16 = 11019;

/// All live feeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `[oracle.bmp]`.
    pub bmp: Option<BmpConfig>,
    /// `[[oracle.bgp_ls]]`.
    pub bgp_ls: Vec<BgpLsConfig>,
}

/// Live routes from routers over BMP (RFC 7854).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BmpConfig {
    /// Addresses to which routers connect.
    #[serde(default = "listen")]
    #[schemars(with = "Vec<config::schema::Endpoint>")]
    pub listen: Vec<SocketAddr>,
    /// How long a router's routes are kept after its session is lost.
    #[serde(default = "hold", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub hold: Duration,
    /// Most paths that a router may report; paths beyond are refused and counted.
    #[serde(default = "max_routes")]
    #[schemars(range(min = 1))]
    pub max_routes: usize,
    /// Routers that may connect.
    #[serde(default, rename = "router")]
    pub routers: Vec<BmpRouter>,
}

/// A router that may connect over BMP.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BmpRouter {
    /// Address from which the router connects.
    pub address: IpAddr,
    /// Id of the router in the topology.
    #[schemars(with = "std::net::IpAddr")]
    pub router: RouterId,
    /// Action on routes that the router has learned from inside its AS.
    #[serde(default)]
    pub internal: Internal,
}

/// A session with a BGP-LS speaker, which advertises routers, links and internal networks (RFC 9552).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BgpLsConfig {
    /// The speaker's address.
    pub peer: IpAddr,
    /// Port on which the speaker listens.
    #[serde(default = "port")]
    #[schemars(range(min = 1))]
    pub port: u16,
    /// The speaker's AS number.
    #[schemars(range(min = 1, max = u32::MAX - 1))]
    pub peer_as: Asn,
    /// Our AS number.
    #[schemars(range(min = 1, max = u32::MAX - 1))]
    pub local_as: Asn,
    /// The address to connect from; the system's choice when absent.
    pub local_address: Option<IpAddr>,
    /// Our BGP identifier; our IPv4 address of the session when absent.
    pub router_id: Option<Ipv4Addr>,
    /// Key of TCP MD5 (RFC 2385 section 2), 1 to 80 bytes; TCP MD5 is off when absent.
    pub password: Option<Password>,
    /// A file with the key as its only line, instead of `password`.
    pub password_file: Option<PathBuf>,
    /// TTL security: send TTL 255 and accept nothing lower (RFC 5082 section 3).
    #[serde(default)]
    pub ttl_security: bool,
    /// Proposed hold time of the session, whole seconds.
    #[serde(default = "hold_time", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub hold_time: Duration,
    /// How long what the speaker has advertised is kept after the session is lost.
    #[serde(default = "hold", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub hold: Duration,
    /// Most nodes, links and prefixes together that the speaker may advertise; objects beyond are refused
    /// and counted.
    #[serde(default = "max_objects")]
    #[schemars(range(min = 1))]
    pub max_objects: usize,
    /// Bandwidth of links that are advertised without one: `10Gbit`; a number alone is Mbit/s.
    #[serde(default = "bandwidth")]
    pub default_bandwidth: Bandwidth,
}

fn listen() -> Vec<SocketAddr> {
    vec![SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), BMP_PORT)]
}

fn hold() -> Duration {
    Duration::from_secs(600)
}

fn max_routes() -> usize {
    4_000_000
}

fn port() -> u16 {
    bgp::config::PORT
}

fn hold_time() -> Duration {
    Duration::from_secs(90)
}

fn max_objects() -> usize {
    500_000
}

fn bandwidth() -> Bandwidth {
    Bandwidth(10_000_000_000)
}

impl BmpConfig {
    /// Everything that is wrong with the values, by key inside `[oracle.bmp]`.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut report = |key: String, message: &str| problems.push(Problem::new(key, message));
        if self.listen.is_empty() {
            report(
                "listen".into(),
                "the list is empty; give an address, such as \"0.0.0.0:11019\"",
            );
        }
        for (index, address) in self.listen.iter().enumerate() {
            if address.port() == 0 {
                report(format!("listen[{index}]"), "0 is not a port; 11019 is usual for BMP");
            }
            if self.listen.iter().take(index).any(|other| other == address) {
                report(format!("listen[{index}]"), "this address is in the list twice; remove one");
            }
        }
        if self.max_routes == 0 {
            report("max_routes".into(), "0 refuses every route; give the most paths of one router");
        }
        if self.routers.is_empty() {
            report("router".into(), "no router may connect; add an [[oracle.bmp.router]] for each");
        }
        let (mut addresses, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for (index, router) in self.routers.iter().enumerate() {
            if router.address.is_unspecified() || router.address.is_multicast() {
                let message =
                    "this is not a unicast address; give the one from which the router connects";
                report(format!("router[{index}].address"), message);
            }
            if !addresses.insert(router.address.to_canonical()) {
                let message = "another router has this address; each connects from its own";
                report(format!("router[{index}].address"), message);
            }
            if !ids.insert(router.router) {
                let message = "another entry names this router too; it needs only one session";
                report(format!("router[{index}].router"), message);
            }
        }
        problems
    }
}

impl BgpLsConfig {
    /// Everything that is wrong with the values, by key inside its `[[oracle.bgp_ls]]`.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Upstream::Bgp(self.session()).problems(&[]);
        if self.port == 0 {
            problems.push(Problem::new("port", "0 is not a port; BGP speakers listen on 179"));
        }
        if self.max_objects == 0 {
            let message =
                "0 refuses every object; give the most nodes, links and prefixes together";
            problems.push(Problem::new("max_objects", message));
        }
        if self.default_bandwidth == Bandwidth(0) {
            let message = "the bandwidth must be above 0; give a rate, such as \"10Gbit\"";
            problems.push(Problem::new("default_bandwidth", message));
        }
        problems
    }

    /// The session as the `bgp` crate configures it.
    pub(super) fn session(&self) -> BgpUpstream {
        BgpUpstream {
            name: self.peer.to_string(),
            peer: self.peer,
            peer_as: self.peer_as,
            local_as: self.local_as,
            local_address: self.local_address,
            router_id: self.router_id,
            next_hop4: None,
            next_hop6: None,
            password: self.password.clone(),
            password_file: self.password_file.clone(),
            ttl_security: self.ttl_security,
            communities: Vec::new(),
            large_communities: Vec::new(),
            prepend: 0,
            med: None,
            bfd: None,
            hold_time: self.hold_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BMP: &str = "[[router]]\naddress = \"192.0.2.1\"\nrouter = \"10.8.0.1\"\n";
    const LS: &str = "peer = \"192.0.2.9\"\npeer_as = 64500\nlocal_as = 64500\n";

    fn bmp(more: &str) -> Result<BmpConfig, toml::de::Error> {
        toml::from_str(&format!("{more}\n{BMP}"))
    }

    fn keys(problems: Vec<Problem>) -> Vec<String> {
        problems.into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn the_shortest_tables_are_enough() {
        let config = bmp("").unwrap();
        assert_eq!(config.listen, ["0.0.0.0:11019".parse().unwrap()]);
        assert_eq!((config.hold, config.problems()), (Duration::from_secs(600), vec![]));
        assert_eq!(config.routers[0].internal, Internal::Ignore);
        let config: BgpLsConfig = toml::from_str(LS).unwrap();
        assert_eq!((config.port, config.problems()), (179, vec![]));
    }

    #[test]
    fn each_senseless_value_is_named() {
        for (more, expected) in [
            ("listen = []", vec!["listen"]),
            ("listen = [\"0.0.0.0:0\"]", vec!["listen[0]"]),
            ("listen = [\"[::]:1\", \"[::]:1\"]", vec!["listen[1]"]),
            ("max_routes = 0", vec!["max_routes"]),
            ("[[router]]\naddress = \"0.0.0.0\"\nrouter = \"10.0.0.1\"", vec!["router[0].address"]),
            (
                "[[router]]\naddress = \"::ffff:192.0.2.1\"\nrouter = \"10.8.0.1\"",
                vec!["router[1].address", "router[1].router"],
            ),
        ] {
            assert_eq!(keys(bmp(more).unwrap().problems()), expected, "{more}");
        }
        let alone: BmpConfig = toml::from_str("").unwrap();
        assert_eq!(keys(alone.problems()), ["router"]);
        for (more, expected) in [
            ("port = 0", "port"),
            ("max_objects = 0", "max_objects"),
            ("default_bandwidth = 0.0", "default_bandwidth"),
            ("hold_time = \"2s\"", "hold_time"),
            ("password = \"\"", "password"),
            ("router_id = \"0.0.0.0\"", "router_id"),
        ] {
            let config: BgpLsConfig = toml::from_str(&format!("{LS}{more}")).unwrap();
            assert_eq!(keys(config.problems()), [expected], "{more}");
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(bmp("lisen = []").is_err());
        assert!(toml::from_str::<BgpLsConfig>(&format!("{LS}peers = 1")).is_err());
    }
}
