//! Any body of a request to ALTO's update streams, their control, TIPS and the filtered property map. The first
//! byte says to which. What is refused is refused in ALTO's terms, what is answered is JSON, and an event that is
//! cut into lines is read as it was.

use oracle::{
    alto::{
        AltoConfig, Asker, Catalogue, MapSettings, Maps, Method, Problem, Request, properties,
        tips,
        updates::{
            follow::Answers,
            params,
            sse::{Event, Pieces},
        },
    },
    metric::Metric,
    tables::{Adjustments, Policy, Tables},
};
use serde_json::Value;
use std::{
    net::IpAddr,
    sync::{Arc, LazyLock},
    time::UNIX_EPOCH,
};
use topo::{Builder, Change, Feed, Options, RouterId};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&kind, body)) = data.split_first() else { return };
    match kind % 6 {
        0 => check(params::parse_open(body).map(|params| assert!(!params.add.is_empty()))),
        1 => check(params::parse_control(body).map(|_| ())),
        2 => check(tips::parse_open(body).map(|_| ())),
        3 => check(tips::parse_next(body, "groups").map(|request| {
            assert_eq!((request.resource.as_str(), request.input), ("groups", None));
        })),
        4 => look_up(body),
        _ => cut(body),
    }
}

/// An error has a code, and a value only with a field (RFC 7285 section 8.5.2).
fn check(parsed: Result<(), Problem>) {
    if let Err(problem) = parsed {
        assert!(problem.value.is_none() || problem.field.is_some());
        assert!(problem.to_json()["meta"]["code"].is_string());
    }
}

/// The property map of two routers with a prefix within another's.
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut builder = Builder::new(Options::default());
    for (number, prefix) in [(1, "10.0.0.0/8"), (2, "10.1.0.0/16"), (2, "2001:db8::/32")] {
        let router = RouterId(IpAddr::from([10, 255, 0, number]));
        let prefix = prefix.parse().expect("a prefix");
        for change in
            [Change::Router { id: router, name: None }, Change::Internal { prefix, router }]
        {
            builder.apply(Feed::CONFIGURATION, change).expect("it is taken");
        }
    }
    let policy = Policy {
        metrics: vec![Metric::compile("default", "internal_hops").expect("a metric")],
        adjustments: Adjustments::new([]).expect("none"),
        default_router: None,
    };
    let tables = Arc::new(Tables::build(builder.view(), Arc::new(policy), None));
    let settings = MapSettings { config: AltoConfig::default(), name_key: [0; 16] };
    Catalogue::new(Arc::new(Maps::new(tables, Arc::new(settings), None)), String::new())
});

fn look_up(body: &[u8]) {
    let resource = CATALOGUE.resource(properties::FILTERED).expect("it is there");
    let response = CATALOGUE.respond(&Request {
        method: Method::Post,
        path: &resource.path,
        accept: None,
        content_type: resource.accepts,
        body,
        asker: Asker { client: IpAddr::from([10, 0, 0, 1]), now: UNIX_EPOCH },
    });
    let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
    match response.status {
        200 => assert!(answer["property-map"].is_object()),
        400 => assert!(answer["meta"]["code"].is_string()),
        other => panic!("status {other}"),
    }
}

fn cut(body: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return };
    // Not every number is read from its text as it was before it was written.
    let printed = value.to_string();
    let value: Value = serde_json::from_str(&printed).expect("JSON");
    let event = Event { name: "application/json,1".to_owned(), data: printed.into() };
    let text = Pieces::new(event).fold(Vec::new(), |mut text, piece| {
        text.extend_from_slice(&piece);
        text
    });
    let text = String::from_utf8(text).expect("UTF-8");
    let data: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(serde_json::from_str::<Value>(&data.join("\n")).expect("JSON"), value);
}
