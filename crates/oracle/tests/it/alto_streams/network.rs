//! A network of four routers, and the catalogue of its maps.

use ipnet::IpNet;
use oracle::{
    alto::{
        AltoConfig, Asker, Catalogue, MapSettings, Maps, Method, Request, Response,
        updates::follow::Answers,
    },
    metric::Metric,
    tables::{Adjustments, Policy, Tables},
};
use serde_json::Value;
use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};
use topo::{Builder, Change, ExternalPath, Feed, LinkKey, LinkProperties, Options, RouterId};

/// A router by its number, 1 to 4; they are in a row.
pub(crate) fn router(number: u8) -> RouterId {
    RouterId(IpAddr::from([10, 255, 0, number]))
}

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

pub(crate) struct Network {
    builder: Builder,
    policy: Arc<Policy>,
}

impl Network {
    /// Four routers in a row and no prefix.
    pub(crate) fn bare() -> Network {
        let metrics = vec![
            Metric::compile("default", "8 * as_distance + 0.5 * internal_hops").expect("a metric"),
        ];
        let adjustments = Adjustments::new([]).expect("none");
        let policy = Arc::new(Policy { metrics, adjustments, default_router: None });
        let mut network = Network { builder: Builder::new(Options::default()), policy };
        for number in 1..=4 {
            network.apply(Change::Router { id: router(number), name: None });
        }
        for number in 1..=3 {
            for (from, to) in [(number, number + 1), (number + 1, number)] {
                network.link(from, to, 10);
            }
        }
        network
    }

    /// The same with prefixes of both families, one within another.
    pub(crate) fn new() -> Network {
        let mut network = Network::bare();
        for (prefix, at) in [
            ("10.0.0.0/8", 1),
            ("10.1.0.0/16", 2),
            ("10.1.2.0/24", 1),
            ("192.0.2.0/25", 3),
            ("192.0.2.128/25", 4),
            ("2001:db8::/32", 2),
            ("2001:db8:1::/48", 3),
        ] {
            network.internal(net(prefix), at);
        }
        let path = ExternalPath { as_distance: 3, as_number: 64_500 };
        network.apply(Change::Route { prefix: net("203.0.113.0/24"), exit: router(4), path });
        network
    }

    pub(crate) fn apply(&mut self, change: Change) {
        self.builder.apply(Feed::CONFIGURATION, change).expect("it is taken");
    }

    pub(crate) fn link(&mut self, from: u8, to: u8, weight: u32) {
        let key = LinkKey { from: router(from), to: router(to), id: 0 };
        let (bandwidth, latency, congestion, loss) = (1000.0, 5.0, 0.0, 0.0);
        let properties = LinkProperties { bandwidth, latency, weight, congestion, loss };
        self.apply(Change::Link { key, properties });
    }

    pub(crate) fn internal(&mut self, prefix: IpNet, at: u8) {
        self.apply(Change::Internal { prefix, router: router(at) });
    }

    pub(crate) fn tables(&mut self) -> Arc<Tables> {
        Arc::new(Tables::build(self.builder.view(), self.policy.clone(), None))
    }

    pub(crate) fn catalogue(&mut self, config: &str) -> Catalogue {
        let config: AltoConfig = toml::from_str(config).expect("it parses");
        let settings = Arc::new(MapSettings { config, name_key: [7; 16] });
        let maps = Maps::new(self.tables(), settings, None);
        Catalogue::new(Arc::new(maps), "https://alto.example.net".to_owned())
    }
}

/// Asks a resource as the directory describes.
pub(crate) fn ask(catalogue: &Catalogue, path: &str, body: Option<&Value>) -> Response {
    let body = body.map(Value::to_string);
    let asker =
        Asker { client: IpAddr::from([10, 0, 0, 9]), now: UNIX_EPOCH + Duration::from_secs(1) };
    catalogue.respond(&Request {
        method: if body.is_some() { Method::Post } else { Method::Get },
        path,
        accept: None,
        content_type: catalogue.resource_at(path).and_then(|resource| resource.accepts),
        body: body.as_deref().unwrap_or_default().as_bytes(),
        asker,
    })
}

/// The same, which must be answered.
pub(crate) fn json(catalogue: &Catalogue, path: &str, body: Option<&Value>) -> Value {
    let response = ask(catalogue, path, body);
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert_eq!(response.status, 200, "{path} {body:?}: {text}");
    serde_json::from_str(&text).expect("JSON")
}
