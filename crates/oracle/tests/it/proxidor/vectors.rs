//! Reads testdata/proxidor.

use std::{collections::BTreeMap, fs, net::IpAddr, path::PathBuf, sync::Arc};

use config::hex;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use oracle::{
    candidate::Candidate,
    metric::Metric,
    tables::{Policy, Tables},
};
use serde::{Deserialize, de::DeserializeOwned};
use topo::{Builder, Change, ExternalPath, Feed, LinkKey, LinkProperties, Options, RouterId};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vector {
    pub(crate) name: String,
    #[serde(rename = "rule")]
    _rule: String,
    pub(crate) network: Option<String>,
    pub(crate) settings: Settings,
    pub(crate) from: IpAddr,
    pub(crate) query: Option<Query>,
    pub(crate) request: String,
    pub(crate) rcode: Option<u8>,
    pub(crate) reply: Option<String>,
    pub(crate) ranking: Option<Vec<String>>,
    pub(crate) drop: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) ttl: u16,
    pub(crate) sources: Vec<IpNet>,
    pub(crate) key: Option<String>,
    pub(crate) required: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    pub(crate) identification: u32,
    pub(crate) metric: Option<u8>,
    pub(crate) source4: Option<Ipv4Net>,
    pub(crate) source6: Option<Ipv6Net>,
    pub(crate) key: Option<String>,
    pub(crate) candidates: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Network {
    routers: Vec<RouterId>,
    links: Vec<Link>,
    internal: Vec<Internal>,
    routes: Vec<Route>,
    metrics: Vec<Cost>,
    default_router: Option<RouterId>,
}

#[derive(Deserialize)]
struct Link {
    from: RouterId,
    to: RouterId,
    #[serde(flatten)]
    properties: LinkProperties,
}

#[derive(Deserialize)]
struct Internal {
    prefix: IpNet,
    router: RouterId,
}

#[derive(Deserialize)]
struct Route {
    prefix: IpNet,
    exit: RouterId,
    #[serde(flatten)]
    path: ExternalPath,
}

#[derive(Deserialize)]
struct Cost {
    name: String,
    cost: String,
}

impl Vector {
    pub(crate) fn request(&self) -> Vec<u8> {
        bytes(&self.request)
    }

    pub(crate) fn reply_bytes(&self) -> Option<Vec<u8>> {
        self.reply.as_deref().map(bytes)
    }
}

fn bytes(digits: &str) -> Vec<u8> {
    let mut bytes = vec![0; digits.len() / 2];
    assert!(hex::decode(digits.as_bytes(), &mut bytes), "{digits}");
    bytes
}

pub(crate) fn candidates(texts: &[String]) -> Vec<Candidate> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/proxidor");
    let path = folder.join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(crate) fn vectors() -> impl Iterator<Item = Vector> {
    ["plain", "lists", "sources", "authentication", "errors"]
        .into_iter()
        .flat_map(|name| read::<Vec<Vector>>(&format!("{name}.json")))
}

/// The networks, by name.
pub(crate) fn networks() -> BTreeMap<String, Tables> {
    let networks: BTreeMap<String, Network> = read("networks.json");
    networks.into_iter().map(|(name, network)| (name, tables(network))).collect()
}

fn tables(network: Network) -> Tables {
    let routers = network.routers.into_iter().map(|id| Change::Router { id, name: None });
    let links = network.links.into_iter().map(|Link { from, to, properties }| Change::Link {
        key: LinkKey { from, to, id: 0 },
        properties,
    });
    let internal = network.internal.into_iter();
    let internal = internal.map(|Internal { prefix, router }| Change::Internal { prefix, router });
    let routes = network.routes.into_iter();
    let routes = routes.map(|Route { prefix, exit, path }| Change::Route { prefix, exit, path });
    let mut builder = Builder::new(Options::default());
    for change in routers.chain(links).chain(internal).chain(routes) {
        builder.apply(Feed::CONFIGURATION, change).unwrap();
    }
    let metrics = network.metrics.iter();
    let policy = Policy {
        metrics: metrics.map(|m| Metric::compile(&m.name, &m.cost).unwrap()).collect(),
        default_router: network.default_router,
        ..Policy::default()
    };
    Tables::build(builder.view(), Arc::new(policy), None)
}
