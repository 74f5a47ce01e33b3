//! The network that all tests ask about, and how they ask.
//!
//! ```text
//!  inside: 10.0.0.0/8 15.0.0.0/8      192.168.0.0/16       192.168.10.0/24
//!                  r1 ───────────────────── r2 ────────────────── r3
//!                 ╱  ╲                     ╱  ╲
//!               p1    p2                 t1    t2
//!      128.0.0.0/16  130.0.0.0/16   132.0.0.0/16  135.0.0.0/16
//!       1 AS         2001:db8::/32   4 ASes        6 ASes
//!                    2 ASes
//! ```
//!
//! Everything else routes nowhere.

use ipnet::IpNet;
use oracle::{
    alto::{AltoConfig, Asker, MapSettings, Maps, Method, Request, Response},
    metric::Metric,
    tables::{Adjustment, Adjustments, Policy, Subject, Tables},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};
use topo::{Builder, Change, ExternalPath, Feed, LinkKey, LinkProperties, Options, RouterId};

/// The address that requests come from: inside, at r1.
pub(crate) const CLIENT: &str = "10.0.0.99";
/// The default metric of the tests.
const ROUTING: &str = "8 * as_distance + 0.5 * internal_hops";

pub(crate) fn router(name: &str) -> RouterId {
    let last = match name {
        "r1" => 1,
        "r2" => 2,
        "r3" => 3,
        "p1" => 4,
        "p2" => 5,
        "t1" => 6,
        "t2" => 7,
        other => panic!("there is no router {other}"),
    };
    RouterId(IpAddr::from([10, 255, 0, last]))
}

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

/// The network of the picture.
pub(crate) fn network(options: Options) -> Builder {
    let mut builder = Builder::new(options);
    let mut apply = |change| builder.apply(Feed::CONFIGURATION, change).expect("it is taken");
    for name in ["r1", "r2", "r3", "p1", "p2", "t1", "t2"] {
        apply(Change::Router { id: router(name), name: Some(name.to_owned()) });
    }
    for (a, b) in
        [("r1", "r2"), ("r2", "r3"), ("r1", "p1"), ("r1", "p2"), ("r2", "t1"), ("r2", "t2")]
    {
        for (from, to) in [(a, b), (b, a)] {
            let key = LinkKey { from: router(from), to: router(to), id: 0 };
            let properties = LinkProperties {
                bandwidth: 1000.0,
                latency: 5.0,
                weight: 10,
                congestion: 0.0,
                loss: 0.0,
            };
            apply(Change::Link { key, properties });
        }
    }
    for (prefix, at) in [
        ("10.0.0.0/8", "r1"),
        ("15.0.0.0/8", "r1"),
        ("192.168.0.0/16", "r2"),
        ("192.168.10.0/24", "r3"),
    ] {
        apply(Change::Internal { prefix: net(prefix), router: router(at) });
    }
    for (prefix, exit, as_distance) in [
        ("128.0.0.0/16", "p1", 1),
        ("130.0.0.0/16", "p2", 2),
        ("2001:db8::/32", "p2", 2),
        ("132.0.0.0/16", "t1", 4),
        ("135.0.0.0/16", "t2", 6),
    ] {
        let path = ExternalPath { as_distance, as_number: 64_500 + u32::from(as_distance) };
        apply(Change::Route { prefix: net(prefix), exit: router(exit), path });
    }
    builder
}

/// One address in each PID of the map by group, by the names of the interoperability cases.
pub(crate) const SITES: [(&str, &str); 8] = [
    ("mypid1", "10.1.2.3"),
    ("mypid2", "192.168.1.1"),
    ("mypid3", "192.168.10.1"),
    ("peeringpid1", "128.0.0.1"),
    ("peeringpid2", "130.0.0.1"),
    ("transitpid1", "132.0.0.1"),
    ("transitpid2", "135.0.0.1"),
    ("defaultpid", "203.0.113.1"),
];

/// A server's core, and what stands around it in a test.
pub(crate) struct Ground {
    pub(crate) tables: Arc<Tables>,
    pub(crate) settings: Arc<MapSettings>,
    pub(crate) maps: Maps,
}

/// How a test differs from the usual.
#[derive(Default)]
pub(crate) struct Setup<'a> {
    pub(crate) config: &'a str,
    pub(crate) adjustments: Vec<(Subject, Adjustment)>,
    pub(crate) default_router: Option<RouterId>,
}

impl Setup<'_> {
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            metrics: vec![
                Metric::compile("default", ROUTING).expect("a metric"),
                Metric::compile("delay", "latency").expect("a metric"),
            ],
            adjustments: Adjustments::new(self.adjustments.clone()).expect("they are good"),
            default_router: self.default_router,
        }
    }

    pub(crate) fn ground(&self) -> Ground {
        let policy = self.policy();
        let options =
            Options { marks: policy.marks(), ases: policy.interest(), ..Options::default() };
        let mut builder = network(options);
        self.of(&mut builder, policy)
    }

    pub(crate) fn of(&self, builder: &mut Builder, policy: Policy) -> Ground {
        let config: AltoConfig = toml::from_str(self.config).expect("it parses");
        assert_eq!(config.problems(), []);
        let settings = Arc::new(MapSettings { config, name_key: [7; 16] });
        let tables = Arc::new(Tables::build(builder.view(), Arc::new(policy), None));
        let maps = Maps::new(Arc::clone(&tables), Arc::clone(&settings), None);
        Ground { tables, settings, maps }
    }
}

/// The usual ground.
pub(crate) fn ground() -> Ground {
    Setup::default().ground()
}

pub(crate) fn asker() -> Asker {
    Asker {
        client: CLIENT.parse().expect("an address"),
        now: UNIX_EPOCH + Duration::from_secs(3600),
    }
}

/// The request that asks a resource as the directory describes.
pub(crate) fn request<'a>(method: Method, path: &'a str, body: &'a [u8]) -> Request<'a> {
    Request { method, path, accept: None, content_type: None, body, asker: asker() }
}

/// What is wrong, as a client sees it.
#[derive(Debug, PartialEq)]
pub(crate) struct Wrong {
    pub(crate) code: String,
    pub(crate) field: Option<String>,
    pub(crate) value: Option<String>,
}

pub(crate) fn wrong(code: &str, field: Option<&str>, value: Option<&str>) -> Wrong {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Wrong { code: code.to_owned(), field: owned(field), value: owned(value) }
}

pub(crate) fn json(response: &Response) -> Value {
    serde_json::from_slice(&response.body).expect("the body is JSON")
}

impl Ground {
    pub(crate) fn respond(&self, request: &Request<'_>) -> Response {
        self.maps.respond(request)
    }

    /// GET of a resource that must be there.
    pub(crate) fn get(&self, path: &str) -> Value {
        let response = self.respond(&request(Method::Get, path, b""));
        assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
        json(&response)
    }

    /// POST with the media type that the directory gives.
    pub(crate) fn post_bytes(&self, path: &str, body: &[u8]) -> Response {
        let content_type = self.maps.at(path).and_then(|resource| resource.accepts);
        self.respond(&Request { content_type, ..request(Method::Post, path, body) })
    }

    /// POST that must be answered.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let response = self.post_bytes(path, body.to_string().as_bytes());
        assert_eq!(response.status, 200, "{body}: {}", String::from_utf8_lossy(&response.body));
        json(&response)
    }

    /// POST that must be refused with an ALTO error.
    pub(crate) fn refused(&self, path: &str, body: &Value) -> Wrong {
        let response = self.post_bytes(path, body.to_string().as_bytes());
        assert_eq!(response.status, 400, "{body}");
        assert_eq!(response.media_type, "application/alto-error+json");
        let meta = &json(&response)["meta"];
        let text = |name: &str| meta.get(name).map(|text| text.as_str().expect("text").to_owned());
        Wrong { code: text("code").expect("a code"), field: text("field"), value: text("value") }
    }

    /// The PID of a site of the interoperability cases.
    pub(crate) fn pid(&self, site: &str) -> String {
        let (_, address) = SITES.iter().find(|(name, _)| *name == site).expect("one of the sites");
        let map = self.maps.network_map("groups").expect("the map by group");
        map.pid_of(address.parse().expect("an address")).to_owned()
    }

    /// The site that a PID of the map by group is.
    pub(crate) fn site(&self, pid: &str) -> &'static str {
        let found = SITES.iter().find(|(name, _)| self.pid(name) == pid);
        found.unwrap_or_else(|| panic!("PID {pid} is none of the sites")).0
    }

    /// The pairs of a cost map, by sites and sorted, with their costs.
    pub(crate) fn pairs(&self, reply: &Value) -> Vec<(&'static str, &'static str, Value)> {
        let mut pairs = Vec::new();
        for (source, costs) in reply["cost-map"].as_object().expect("an object") {
            for (destination, cost) in costs.as_object().expect("an object") {
                pairs.push((self.site(source), self.site(destination), cost.clone()));
            }
        }
        pairs.sort_by_key(|(source, destination, _)| (*source, *destination));
        pairs
    }
}

/// The names of an object's members.
pub(crate) fn members(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

pub(crate) fn routing(mode: &str) -> Value {
    json!({ "cost-mode": mode, "cost-metric": "routingcost" })
}

pub(crate) fn delay(mode: &str) -> Value {
    json!({ "cost-mode": mode, "cost-metric": "priv:delay" })
}
