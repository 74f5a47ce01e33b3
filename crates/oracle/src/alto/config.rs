//! The section `[oracle.alto]` of the configuration.

use super::{
    auth::config::UserConfig,
    cost_type::{CostType, cost_types},
    limits::Limits,
    name,
};
use crate::proxidor::Key;
use config::Problem;
use schemars::JsonSchema;
use serde::Deserialize;
use std::{collections::HashSet, net::SocketAddr, path::PathBuf, time::Duration};

/// Most classes of numerical costs: more would give the numbers themselves away.
const MAX_CLASSES: u16 = 1024;
/// Longest identity of a network map: the identities of its cost maps are made from it.
const MAX_MAP_ID: usize = 24;
/// Most intervals of a calendar.
const MAX_INTERVALS: usize = 1000;

/// ALTO (RFC 7285) over HTTPS.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AltoConfig {
    /// The addresses on which HTTPS is served.
    #[schemars(with = "Vec<config::schema::Endpoint>")]
    pub listen: Vec<SocketAddr>,
    /// PEM file with the certificate and its chain; a self-signed one is made when not given.
    pub certificate: Option<PathBuf>,
    /// PEM file with the certificate's private key.
    pub key: Option<PathBuf>,
    /// PEM file with the authorities of client certificates; clients need none when not given.
    pub client_ca: Option<PathBuf>,
    /// Users of HTTP Digest (RFC 7616); without users and `client_ca` all clients are served.
    #[serde(rename = "user")]
    pub users: Vec<UserConfig>,
    /// Host, with a port if it is not 443, in the URIs of the directory, of views and streams. When not given, those of
    /// the directory are relative, and the others have the host that the client asked if the certificate is for it,
    /// else the address that it reached.
    pub host: Option<String>,
    /// Most different numerical costs of a metric: costs are rounded into as many classes, so that clients
    /// cannot recover exact ones.
    #[schemars(range(min = 1, max = MAX_CLASSES))]
    pub classes: u16,
    /// Most PIDs of a network map.
    #[schemars(range(min = 1))]
    pub max_pids: usize,
    /// Most costs in one reply.
    #[schemars(range(min = 1))]
    pub max_costs: usize,
    /// Key of the names of PIDs, 32 hexadecimal digits. With the same key PIDs keep their names over restarts
    /// and on several nodes; a random one at each start when not given.
    pub name_key: Option<Key>,
    /// The network maps, the first the default one; one by group and one by router when not given.
    #[serde(rename = "map")]
    pub maps: Vec<MapConfig>,
    /// Calendars: how costs change over the day or week.
    #[serde(rename = "calendar")]
    pub calendars: Vec<CalendarConfig>,
    /// Cost types, such as `num-routingcost`, that constraints may test; all when not given.
    pub testable: Option<Vec<String>>,
    /// Limits of connections, requests, streams and views.
    pub limit: Limits,
}

impl Default for AltoConfig {
    fn default() -> Self {
        Self {
            listen: vec![
                SocketAddr::from(([0, 0, 0, 0], 6671)),
                SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 6671)),
            ],
            certificate: None,
            key: None,
            client_ca: None,
            users: Vec::new(),
            host: None,
            classes: 16,
            max_pids: 20_000,
            max_costs: 1_000_000,
            name_key: None,
            maps: Vec::new(),
            calendars: Vec::new(),
            testable: None,
            limit: Limits::default(),
        }
    }
}

/// A network map (RFC 7285).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapConfig {
    /// Resource id of the map.
    pub id: String,
    /// What becomes one PID.
    pub by: Grain,
    /// With `by = "site"`: the sites, each a list of ids of routers. A router in no list is a site of its own.
    #[serde(default)]
    #[schemars(with = "Vec<Vec<std::net::IpAddr>>")]
    pub sites: Vec<Vec<topo::RouterId>>,
}

/// What makes a PID of a network map, from fine to coarse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grain {
    /// A group of prefixes with the same exits and paths.
    Group,
    /// All prefixes behind one router: their own, or the exit with the shortest path.
    Router,
    /// All prefixes behind the routers of one site.
    Site,
    /// All prefixes of one AS, as far as the oracle distinguishes ASes.
    As,
}

/// A cost calendar (RFC 8896): how a metric's costs change over time.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalendarConfig {
    /// Name of a configured metric; `routingcost` is the default one.
    pub metric: String,
    /// Duration for which each factor holds.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub interval: Duration,
    /// Factor of the cost in each interval. The list repeats, counted from 1970-01-01 UTC.
    pub factors: Vec<f64>,
}

impl AltoConfig {
    /// The network maps, the default ones if none is configured.
    pub fn maps(&self) -> Vec<MapConfig> {
        let map = |id: &str, by| MapConfig { id: id.to_owned(), by, sites: Vec::new() };
        if self.maps.is_empty() {
            vec![map("groups", Grain::Group), map("routers", Grain::Router)]
        } else {
            self.maps.clone()
        }
    }

    /// Everything that is wrong with the values; keys are relative to this section.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |key: String, message: String| problems.push(Problem { key, message });
        if self.listen.is_empty() {
            add(
                "listen".into(),
                "the list is empty; remove the key for the default addresses".into(),
            );
        }
        match (&self.certificate, &self.key) {
            (Some(_), None) => add("certificate".into(), "needs its key in `key`".into()),
            (None, Some(_)) => add("key".into(), "needs its certificate in `certificate`".into()),
            _ => {}
        }
        if let Some(host) = &self.host
            && !is_host(host)
        {
            add("host".into(), format!("{host:?} is not a host such as alto.example.net:6671"));
        }
        if !(1..=MAX_CLASSES).contains(&self.classes) {
            add("classes".into(), format!("must be from 1 to {MAX_CLASSES}"));
        }
        for (key, value) in [("max_pids", self.max_pids), ("max_costs", self.max_costs)] {
            if value == 0 {
                add(key.into(), "must be at least 1".into());
            }
        }
        for (key, message) in self.limit.problems() {
            add(format!("limit.{key}"), message.to_owned());
        }
        let mut names = HashSet::new();
        for (i, user) in self.users.iter().enumerate() {
            for (key, message) in user.problems() {
                add(format!("user[{i}].{key}"), message);
            }
            if !names.insert(&user.name) {
                add(format!("user[{i}].name"), format!("{:?} is already a user", user.name));
            }
        }
        let mut ids = HashSet::new();
        for (i, map) in self.maps.iter().enumerate() {
            for (key, message) in map_problems(map) {
                add(format!("map[{i}].{key}"), message);
            }
            // The identities of the other resources end in these, so no two maps may share one.
            if !ids.insert(&map.id) {
                add(format!("map[{i}].id"), format!("{:?} is already a map's id", map.id));
            }
        }
        let mut metrics = HashSet::new();
        for (i, calendar) in self.calendars.iter().enumerate() {
            for (key, message) in calendar_problems(calendar) {
                add(format!("calendar[{i}].{key}"), message);
            }
            if !metrics.insert(&calendar.metric) {
                let message = format!("{:?} already has a calendar", calendar.metric);
                add(format!("calendar[{i}].metric"), message);
            }
        }
        problems
    }

    /// Names of metrics and cost types in this section that are not among the configured metrics, the
    /// default one first. [`name::metric`] checks whether ALTO can write a metric's name.
    pub fn problems_with(&self, metrics: &[&str]) -> Vec<Problem> {
        let mut problems = Vec::new();
        let named = |name: &str| name == name::ROUTING_COST || metrics.contains(&name);
        for (i, calendar) in self.calendars.iter().enumerate() {
            if !named(&calendar.metric) {
                problems.push(Problem {
                    key: format!("calendar[{i}].metric"),
                    message: format!("there is no metric {:?}", calendar.metric),
                });
            }
        }
        let types: Vec<CostType> = cost_types(metrics.iter().copied());
        for (i, name) in self.testable.iter().flatten().enumerate() {
            if !types.iter().any(|kind| kind.name == *name) {
                let names: Vec<&str> = types.iter().map(|kind| kind.name.as_str()).collect();
                problems.push(Problem {
                    key: format!("testable[{i}]"),
                    message: format!(
                        "{name:?} is not a cost type; the cost types are {}",
                        names.join(", ")
                    ),
                });
            }
        }
        problems
    }

    /// What goes before the paths of URIs in the directory: nothing, or scheme and host.
    pub fn base(&self) -> String {
        self.host.as_ref().map_or_else(String::new, |host| format!("https://{host}"))
    }

    /// The realm of HTTP Digest.
    pub fn realm(&self) -> String {
        self.host.as_ref().map_or_else(|| "alto".to_owned(), |host| format!("alto@{host}"))
    }
}

/// Whether this can stand between `https://` and a path.
fn is_host(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    !host.is_empty() && host.bytes().all(allowed)
}

fn map_problems(map: &MapConfig) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    // No hyphen: resources made from a map are called `map-...`, so none can meet another's name.
    if !name::is_resource(&map.id) || map.id.len() > MAX_MAP_ID || map.id.contains('-') {
        let message =
            format!("{:?} must be 1 to {MAX_MAP_ID} letters, digits or the signs _ : @", map.id);
        problems.push(("id", message));
    }
    match map.by {
        Grain::Site if map.sites.is_empty() => {
            problems.push(("sites", "is needed with by = \"site\"".to_owned()));
        }
        Grain::Group | Grain::Router | Grain::As if !map.sites.is_empty() => {
            problems.push(("sites", "is only of use with by = \"site\"".to_owned()));
        }
        _ => {}
    }
    let mut routers = HashSet::new();
    if let Some(twice) = map.sites.iter().flatten().find(|router| !routers.insert(**router)) {
        problems.push(("sites", format!("router {twice} is in two sites, or in one twice")));
    }
    problems
}

fn calendar_problems(calendar: &CalendarConfig) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    if calendar.interval < Duration::from_secs(1) || calendar.interval.subsec_nanos() != 0 {
        problems.push(("interval", "must be a whole number of seconds, at least 1s".to_owned()));
    }
    if calendar.interval > Duration::from_secs(366 * 86_400) {
        problems.push(("interval", "must be at most a year".to_owned()));
    }
    if !(1..=MAX_INTERVALS).contains(&calendar.factors.len()) {
        problems.push(("factors", format!("must be 1 to {MAX_INTERVALS} numbers")));
    }
    if calendar.factors.iter().any(|factor| !factor.is_finite() || *factor <= 0.0) {
        problems.push(("factors", "must be numbers above 0".to_owned()));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let config: AltoConfig = toml::from_str(text).expect("it parses");
        config.problems().into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn an_empty_section_is_good_and_has_two_maps() {
        let config: AltoConfig = toml::from_str("").expect("it parses");
        assert_eq!(config, AltoConfig::default());
        assert_eq!(config.problems(), []);
        let maps: Vec<_> = config.maps().into_iter().map(|map| (map.id, map.by)).collect();
        assert_eq!(maps, [("groups".into(), Grain::Group), ("routers".into(), Grain::Router)]);
    }

    #[test]
    fn everything_can_be_written() {
        let text = r#"
            listen = ["127.0.0.1:6671"]
            certificate = "/c.pem"
            key = "/k.pem"
            client_ca = "/ca.pem"
            host = "alto.example.net:6671"
            classes = 8
            max_pids = 10
            max_costs = 100
            name_key = "000102030405060708090a0b0c0d0e0f"
            testable = ["num-routingcost"]
            [[user]]
            name = "Jäsøn Doe"
            password = "Secret, or not?"
            [[user]]
            name = "cache"
            password_file = "/password"
            [[map]]
            id = "fine"
            by = "group"
            [[map]]
            id = "sites"
            by = "site"
            sites = [["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]]
            [[calendar]]
            metric = "routingcost"
            interval = "6h"
            factors = [1.0, 1.5, 2.0, 1.25]
        "#;
        assert_eq!(keys(text), Vec::<String>::new());
        let config: AltoConfig = toml::from_str(text).expect("it parses");
        let key = config.name_key.as_ref().map(|key| *key.bytes());
        assert_eq!(key, Some(std::array::from_fn(|i| i as u8)));
        assert!(format!("{config:?}").contains("name_key: Some(Key(..))"), "a key is not shown");
    }

    #[test]
    fn what_is_wrong_is_named_by_its_key() {
        for (text, expected) in [
            ("listen = []", "listen"),
            ("certificate = \"x\"", "certificate"),
            ("key = \"x\"", "key"),
            ("host = \"a b\"", "host"),
            ("classes = 0", "classes"),
            ("max_pids = 0", "max_pids"),
            ("max_costs = 0", "max_costs"),
            ("[[user]]\nname = \"\"\npassword = \"x\"", "user[0].name"),
            ("[[user]]\nname = \"a:b\"\npassword = \"x\"", "user[0].name"),
            ("[[user]]\nname = \"a\"", "user[0].password"),
            ("[[user]]\nname = \"a\"\npassword = \"\"", "user[0].password"),
            ("[[user]]\nname = \"a\"\npassword = \"x\\ny\"", "user[0].password"),
            (
                "[[user]]\nname = \"a\"\npassword = \"x\"\npassword_file = \"/x\"",
                "user[0].password_file",
            ),
            (
                "[[user]]\nname = \"a\"\npassword = \"x\"\n[[user]]\nname = \"a\"\npassword = \"y\"",
                "user[1].name",
            ),
            ("[limit]\nconnections = 0", "limit.connections"),
            ("[limit]\ntimeout = \"1ms\"", "limit.timeout"),
            ("[limit]\nhead = \"10\"", "limit.head"),
            ("[[map]]\nid = \"a-b\"\nby = \"as\"", "map[0].id"),
            ("[[map]]\nid = \"a\"\nby = \"site\"", "map[0].sites"),
            ("[[map]]\nid = \"a\"\nby = \"as\"\nsites = [[]]", "map[0].sites"),
            ("[[map]]\nid = \"a\"\nby = \"as\"\n[[map]]\nid = \"a\"\nby = \"group\"", "map[1].id"),
            (
                "[[map]]\nid = \"a\"\nby = \"site\"\nsites = [[\"10.0.0.1\"], [\"10.0.0.1\"]]",
                "map[0].sites",
            ),
            (
                "[[calendar]]\nmetric = \"a\"\ninterval = \"1ms\"\nfactors = [1.0]",
                "calendar[0].interval",
            ),
            (
                "[[calendar]]\nmetric = \"a\"\ninterval = \"800d\"\nfactors = [1.0]",
                "calendar[0].interval",
            ),
            (
                "[[calendar]]\nmetric = \"a\"\ninterval = \"1h\"\nfactors = []",
                "calendar[0].factors",
            ),
            (
                "[[calendar]]\nmetric = \"a\"\ninterval = \"1h\"\nfactors = [0.0]",
                "calendar[0].factors",
            ),
        ] {
            assert_eq!(keys(text), [expected], "{text}");
        }
        for text in ["colour = 1", "name_key = \"00\""] {
            assert!(toml::from_str::<AltoConfig>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_must_be_of_configured_metrics() {
        let text = "testable = [\"num-delay\", \"num-hops\"]\n\
                    [[calendar]]\nmetric = \"routingcost\"\ninterval = \"1h\"\nfactors = [1.0]\n\
                    [[calendar]]\nmetric = \"hops\"\ninterval = \"1h\"\nfactors = [1.0]";
        let config: AltoConfig = toml::from_str(text).expect("it parses");
        assert_eq!(config.problems(), []);
        let problems = config.problems_with(&["default", "delay"]);
        let keys: Vec<_> = problems.into_iter().map(|problem| problem.key).collect();
        assert_eq!(keys, ["calendar[1].metric", "testable[1]"]);
    }
}
