//! Any request to ALTO's core: the answer has a status of those that RFC 7285 and HTTP have for it,
//! what is JSON parses, and an error says what the RFC lets it say.
//!
//! The first line is the method's first letter and the path, or `#` and the place of a resource in the
//! directory; the second the content type, or nothing for the right one; the third what is accepted.
//! The rest is the body.

use ipnet::IpNet;
use oracle::{
    alto::{Asker, MapSettings, Maps, Method, Request},
    metric::Metric,
    tables::{Policy, Tables},
};
use serde_json::Value;
use std::{
    net::IpAddr,
    str,
    sync::{Arc, LazyLock},
    time::{Duration, UNIX_EPOCH},
};
use topo::{Builder, Change, ExternalPath, Feed, LinkKey, LinkProperties, Options, RouterId};

const CONFIG: &str = r#"
    max_pids = 4
    max_costs = 40
    [[map]]
    id = "groups"
    by = "group"
    [[map]]
    id = "ases"
    by = "as"
    [[calendar]]
    metric = "routingcost"
    interval = "1h"
    factors = [1.0, 2.0]
"#;

static MAPS: LazyLock<Maps> = LazyLock::new(maps);

/// Three routers in a row; prefixes at two of them and beyond the third.
fn maps() -> Maps {
    let router = |last| RouterId(IpAddr::from([10, 255, 0, last]));
    let net = |text: &str| text.parse::<IpNet>().expect("a prefix");
    let mut builder = Builder::new(Options::default());
    let mut apply = |change| builder.apply(Feed::CONFIGURATION, change).expect("it is taken");
    for last in 1..=3 {
        apply(Change::Router { id: router(last), name: None });
    }
    for (from, to) in [(1, 2), (2, 1), (2, 3), (3, 2)] {
        let key = LinkKey { from: router(from), to: router(to), id: 0 };
        let properties = LinkProperties {
            bandwidth: 100.0,
            latency: 1.0,
            weight: 1,
            congestion: 0.0,
            loss: 0.0,
        };
        apply(Change::Link { key, properties });
    }
    apply(Change::Internal { prefix: net("192.0.2.0/24"), router: router(1) });
    apply(Change::Internal { prefix: net("192.0.2.128/25"), router: router(2) });
    let path = ExternalPath { as_distance: 3, as_number: 64_500 };
    apply(Change::Route { prefix: net("2001:db8::/32"), exit: router(3), path });
    let metric = |name, cost| Metric::compile(name, cost).expect("a metric");
    let policy = Policy {
        metrics: vec![metric("", "as_distance"), metric("delay", "latency")],
        ..Policy::default()
    };
    let tables = Arc::new(Tables::build(builder.view(), Arc::new(policy), None));
    let config = toml::from_str(CONFIG).expect("a section");
    Maps::new(tables, Arc::new(MapSettings { config, name_key: [1; 16] }), None)
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(4, |byte| *byte == b'\n');
    let mut line = || str::from_utf8(parts.next().unwrap_or_default()).ok();
    let (Some(first), Some(content_type), Some(accept)) = (line(), line(), line()) else { return };
    let body = parts.next().unwrap_or_default();
    let method = match first.as_bytes().first() {
        Some(b'G') => Method::Get,
        Some(b'P') => Method::Post,
        _ => Method::Other,
    };
    let path = first.get(1..).unwrap_or_default();
    let place = path.strip_prefix('#').and_then(|place| place.parse::<usize>().ok());
    let resource = place.and_then(|place| MAPS.resources().get(place));
    let path = resource.map_or(path, |resource| &resource.path);
    let right = MAPS.at(path).and_then(|resource| resource.accepts);
    let response = MAPS.respond(&Request {
        method,
        path,
        accept: (!accept.is_empty()).then_some(accept),
        content_type: if content_type.is_empty() { right } else { Some(content_type) },
        body,
        asker: Asker {
            client: IpAddr::from([192, 0, 2, 1]),
            now: UNIX_EPOCH + Duration::from_secs(body.len() as u64 * 1000),
        },
    });
    assert!(matches!(response.status, 200 | 400 | 404 | 405 | 406 | 415 | 503), "{response:?}");
    assert_eq!(response.allow.is_some(), response.status == 405);
    assert!(!response.media_type.is_empty());
    if !matches!(response.status, 200 | 400) {
        return;
    }
    let value: Value = serde_json::from_slice(&response.body).expect("the body is JSON");
    let meta = value["meta"].as_object().expect("8.4: every response has `meta`");
    if response.status == 400 {
        assert_eq!(response.media_type, "application/alto-error+json");
        let code = meta["code"].as_str().expect("8.5.2: an error has a code");
        let codes =
            ["E_SYNTAX", "E_MISSING_FIELD", "E_INVALID_FIELD_TYPE", "E_INVALID_FIELD_VALUE"];
        assert!(codes.contains(&code), "{code}");
        assert!(!meta.contains_key("value") || meta.contains_key("field"), "{meta:?}");
        assert!(meta.values().all(Value::is_string), "{meta:?}");
    }
}
