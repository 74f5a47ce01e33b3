//! Clients that follow ALTO's resources by update streams (RFC 8895) and TIPS (RFC 9569) while the network changes.
//! Limits hold, and a client that applies all that it is sent, or takes all edges of a view, has what it would get by
//! asking.
//!
//! Each line is a step: a letter, a digit that chooses among four clients, one that chooses a stream or view, and a
//! body.
//!
//! | letter | step |
//! |---|---|
//! | `o`, `c` | opens a stream, sends a request to one's control |
//! | `r`, `x` | reads all that a stream has, closes it |
//! | `t`, `p` | opens a view, asks it for the next edge |
//! | `e` | asks for an edge, and goes away if it has to wait |
//! | `n` | another network, which the second digit chooses |
//! | `y` | views are tidied up |

use axum::{
    body::{Body, BodyDataStream},
    http::Response,
};
use futures_util::{FutureExt, StreamExt};
use oracle::{
    alto::{
        Asker, Catalogue, MapSettings, Maps, Method, Request,
        counters::Counters,
        limits::Limits,
        tips::{TIPS, Tips},
        updates::{
            follow::{Answers, Follower},
            graph::{Bounds, JSON_PATCH, MERGE_PATCH},
            service::{EVENT_STREAM, Streams},
            session::CONTROL,
        },
    },
    metric::Metric,
    tables::{Policy, Tables},
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    net::IpAddr,
    str,
    sync::{Arc, LazyLock},
    time::{Duration, Instant, UNIX_EPOCH},
};
use tokio::sync::watch;
use topo::{Builder, Change, ExternalPath, Feed, LinkKey, LinkProperties, Options, RouterId};

const CONFIG: &str = r#"
    [[map]]
    id = "groups"
    by = "group"
    [[map]]
    id = "ases"
    by = "as"
"#;

/// Networks that follow each other.
static NETWORKS: LazyLock<[Arc<dyn Answers>; 4]> = LazyLock::new(|| {
    let config = toml::from_str(CONFIG).expect("a section");
    let settings = Arc::new(MapSettings { config, name_key: [1; 16] });
    let mut last: Option<Arc<Maps>> = None;
    std::array::from_fn(|number| {
        let maps = Maps::new(tables(number as u8), settings.clone(), last.as_deref());
        last = Some(Arc::new(maps));
        let maps = last.clone().expect("it was made");
        Arc::new(Catalogue::new(maps, String::new())) as Arc<dyn Answers>
    })
});

/// Routers in a row, whose links and prefixes depend on the number.
fn tables(number: u8) -> Arc<Tables> {
    let router = |last| RouterId(IpAddr::from([10, 255, 0, last]));
    let routers = 3 + number % 2;
    let mut builder = Builder::new(Options::default());
    let mut apply = |change| builder.apply(Feed::CONFIGURATION, change).expect("it is taken");
    for last in 1..=routers {
        apply(Change::Router { id: router(last), name: None });
    }
    for last in 1..routers {
        for (from, to) in [(last, last + 1), (last + 1, last)] {
            let key = LinkKey { from: router(from), to: router(to), id: 0 };
            let latency = 1.0 + f64::from(number * last);
            let properties =
                LinkProperties { bandwidth: 100.0, latency, weight: 1, congestion: 0.0, loss: 0.0 };
            apply(Change::Link { key, properties });
        }
    }
    for place in 0..12 + 4 * number {
        let prefix = format!("192.0.2.{}/28", 16 * (place % 16)).parse().expect("a prefix");
        apply(Change::Internal { prefix, router: router(1 + (place + number / 2) % routers) });
    }
    let path = ExternalPath { as_distance: 3, as_number: 64_500 + u32::from(number) };
    let prefix = "2001:db8::/32".parse().expect("a prefix");
    apply(Change::Route { prefix, exit: router(3), path });
    let metric = |name, cost| Metric::compile(name, cost).expect("a metric");
    let metrics = vec![metric("", "as_distance"), metric("delay", "latency")];
    Arc::new(Tables::build(builder.view(), Arc::new(Policy { metrics, ..Policy::default() }), None))
}

fn limits() -> Limits {
    Limits {
        streams: 3,
        streams_per_source: 2,
        substreams: 3,
        substreams_ever: 6,
        followed: 8,
        views: 8,
        polls: 8,
        view_idle: Duration::from_secs(5),
        ..Limits::default()
    }
}

/// What a client has of a stream.
struct Stream {
    body: BodyDataStream,
    /// Bytes that are no whole event yet.
    text: Vec<u8>,
    control: String,
    /// Resources without input by the names of their substreams, and what the client has of them.
    resources: BTreeMap<String, String>,
    values: BTreeMap<String, Value>,
}

/// The server, and what all clients have.
struct World {
    current: watch::Sender<Option<Arc<dyn Answers>>>,
    seen: watch::Receiver<Option<Arc<dyn Answers>>>,
    follower: Arc<Follower>,
    counters: Arc<Counters>,
    streams: Arc<Streams>,
    tips: Tips,
    open: Vec<Stream>,
    views: Vec<String>,
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    crate::RUNTIME.with_borrow(|runtime| runtime.block_on(steps(data)));
}

async fn steps(data: &[u8]) {
    let (current, seen) = watch::channel(Some(NETWORKS[0].clone()));
    let bounds = Bounds { versions: 3, bytes: 1 << 16 };
    let limits = limits();
    let follower = Arc::new(Follower::new(seen.clone(), bounds, limits.followed));
    let counters = Arc::<Counters>::default();
    let streams = Arc::new(Streams::new(follower.clone(), limits.clone(), counters.clone()));
    let tips = Tips::new(follower.clone(), limits, counters.clone());
    let (open, views) = (Vec::new(), Vec::new());
    let mut world = World { current, seen, follower, counters, streams, tips, open, views };
    for line in data.split(|byte| *byte == b'\n').take(64) {
        let [what, client, number, body @ ..] = line else { continue };
        world.step(*what, client % 4, usize::from(number % 8), body).await;
        let open = world.counters.figures().streams_open;
        assert!(open <= 3 && world.open.len() >= open as usize && world.tips.len() <= 8 + 8);
        let resources = NETWORKS[0].resources().len();
        assert!(world.follower.len() <= 8 + resources);
    }
    world.open.clear();
    assert_eq!(world.counters.figures().streams_open, 0);
}

impl World {
    async fn step(&mut self, what: u8, client: u8, number: usize, body: &[u8]) {
        let source = IpAddr::from([192, 0, 2, client]);
        let answers = self.current.borrow().clone().expect("there is one");
        match what {
            b'o' => {
                let service = answers.resource_of(EVENT_STREAM).expect("it is there");
                let response = self.streams.open(service, "", body, source).await;
                if response.status() == 200 {
                    let resources = added(body, &*answers);
                    let body = response.into_body().into_data_stream();
                    let (text, control) = (Vec::new(), String::new());
                    let values = BTreeMap::new();
                    self.open.push(Stream { body, text, control, resources, values });
                    self.open.last_mut().expect("it is there").read(&*answers);
                }
            }
            b'c' if number < self.open.len() => {
                let service = answers.resource_of(EVENT_STREAM).expect("it is there");
                let stream = &mut self.open[number];
                let response = self.streams.control(service, &stream.control, body, source).await;
                if response.status() == 204 {
                    stream.resources.extend(added(body, &*answers));
                }
            }
            b'r' if number < self.open.len() => {
                let over = self.open[number].read(&*answers);
                if over {
                    self.open.remove(number);
                }
            }
            b'x' if number < self.open.len() => drop(self.open.remove(number)),
            b't' => {
                let service = answers.resource_of(TIPS).expect("it is there");
                let response = self.tips.open(service, "", body, source).await;
                if response.status() == 200 {
                    self.view(json(response).await, body, source, &*answers).await;
                }
            }
            b'p' if number < self.views.len() => {
                let response = self.tips.next(&self.views[number], body);
                if response.status() == 200 {
                    let (start, from, to, end) = edges(&json(response).await);
                    assert!(from <= to && (from == 0 || from >= start) && to <= end + 1);
                }
            }
            b'e' if number < self.views.len() => {
                let Ok(path) = str::from_utf8(body) else { return };
                let view = &self.views[number];
                let edge = self.tips.edge(view, path, None, source);
                if let Some(response) = edge.now_or_never() {
                    assert!([200, 404, 410, 425, 429].contains(&response.status().as_u16()));
                }
                assert_eq!(self.counters.figures().polls_open, 0, "who has gone still waits");
            }
            b'n' => {
                self.current.send_replace(Some(NETWORKS[number % 4].clone()));
                self.follower.round(&mut self.seen).await;
            }
            b'y' => self.tips.tidy(Instant::now() + Duration::from_secs(9)),
            _ => {}
        }
    }

    /// Takes all edges of a view that was opened.
    async fn view(&mut self, answer: Value, body: &[u8], source: IpAddr, answers: &dyn Answers) {
        let token = answer["tips-view-uri"].as_str().expect("an address").to_owned();
        let (_, from, to, end) = edges(&answer);
        let asked: Value = serde_json::from_slice(body).expect("it was taken");
        let id = asked["resource-id"].as_str().unwrap_or_default();
        let resource = answers.resource(id).expect("it is followed");
        // With a tag the client has the first version already, or all of them.
        if from == 0 && to <= end {
            let mut value = Value::Null;
            for (from, to) in [(from, to)].into_iter().chain((to..end).map(|from| (from, from + 1)))
            {
                let path = format!("{from}/{to}");
                let edge = self.tips.edge(&token, &path, None, source).now_or_never();
                let response = edge.expect("it exists");
                if response.status() == 404 && from > 0 {
                    // No patch can express it.
                    let path = format!("0/{to}");
                    let whole = self.tips.edge(&token, &path, None, source);
                    value = json(whole.now_or_never().expect("it exists")).await;
                    continue;
                }
                assert_eq!(response.status(), 200, "{path}");
                let kind = response.headers()["content-type"].to_str().expect("text").to_owned();
                apply(&mut value, &kind, json(response).await);
            }
            if resource.accepts.is_none() {
                assert_eq!(value, now(answers, id));
            }
        }
        if !self.views.contains(&token) {
            self.views.push(token);
        }
    }
}

impl Stream {
    /// Reads what there is; whether the stream has ended.
    fn read(&mut self, answers: &dyn Answers) -> bool {
        let over = loop {
            match self.body.next().now_or_never() {
                None => break false,
                Some(None) => break true,
                Some(Some(piece)) => self.text.extend_from_slice(&piece.expect("a piece")),
            }
        };
        let text = std::mem::take(&mut self.text);
        let text = str::from_utf8(&text).expect("UTF-8");
        for event in text.split_terminator("\n\n").filter(|event| *event != ":") {
            let name = event.lines().find_map(|line| line.strip_prefix("event: "));
            let data: Vec<_> = event.lines().filter_map(|it| it.strip_prefix("data: ")).collect();
            let data = serde_json::from_str(&data.join("\n")).expect("JSON");
            self.event(name.expect("a name"), data);
        }
        if !over {
            for (name, resource) in &self.resources {
                // Without a value the client had the right one before.
                if let Some(value) = self.values.get(name) {
                    assert_eq!(*value, now(answers, resource), "{name}");
                }
            }
        }
        over
    }

    fn event(&mut self, name: &str, data: Value) {
        if name == CONTROL {
            if let Some(control) = data["control-uri"].as_str() {
                self.control = control.to_owned();
            }
            for name in data["stopped"].as_array().into_iter().flatten() {
                self.resources.remove(name.as_str().expect("a name"));
            }
            return;
        }
        let (kind, name) = name.split_once(',').expect("a substream");
        apply(self.values.entry(name.to_owned()).or_default(), kind, data);
    }
}

/// The substreams without input that a request adds.
fn added(body: &[u8], answers: &dyn Answers) -> BTreeMap<String, String> {
    let body: Value = serde_json::from_slice(body).expect("it was taken");
    let adds = body["add"].as_object().into_iter().flatten();
    adds.filter_map(|(name, add)| {
        let resource = add["resource-id"].as_str()?;
        let has_input = answers.resource(resource)?.accepts.is_some();
        (!has_input).then(|| (name.clone(), resource.to_owned()))
    })
    .collect()
}

/// What a resource without input is now.
fn now(answers: &dyn Answers, id: &str) -> Value {
    let response = answers.respond(&Request {
        method: Method::Get,
        path: &answers.resource(id).expect("it is there").path,
        accept: None,
        content_type: None,
        body: b"",
        asker: Asker { client: [0; 4].into(), now: UNIX_EPOCH },
    });
    serde_json::from_slice(&response.into_bytes()).expect("JSON")
}

async fn json(response: Response<Body>) -> Value {
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

/// The first version, the edge to begin with, and the last version.
fn edges(answer: &Value) -> (u64, u64, u64, u64) {
    let summary = &answer["tips-view-summary"]["updates-graph-summary"];
    let edge = &summary["start-edge-rec"];
    let number = |value: &Value| value.as_u64().expect("a number");
    (
        number(&summary["start-seq"]),
        number(&edge["seq-i"]),
        number(&edge["seq-j"]),
        number(&summary["end-seq"]),
    )
}

/// Takes an event or edge over.
fn apply(value: &mut Value, media_type: &str, data: Value) {
    match media_type {
        MERGE_PATCH => merge(value, data),
        JSON_PATCH => data.as_array().expect("a list").iter().for_each(|it| patch(value, it)),
        _ => *value = data,
    }
}

/// RFC 7396 section 2.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else { return *target = patch };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let target = target.as_object_mut().expect("an object");
    for (name, value) in patch {
        if value.is_null() {
            target.remove(&name);
        } else {
            merge(target.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// RFC 6902 section 4, of which the server uses three operations.
fn patch(target: &mut Value, operation: &Value) {
    let path = operation["path"].as_str().expect("a path");
    let (parent, last) = path.rsplit_once('/').expect("not the whole");
    let last = last.replace("~1", "/").replace("~0", "~");
    let index = || last.parse::<usize>().expect("an index");
    let value = || operation["value"].clone();
    let parent = target.pointer_mut(parent).expect("it exists");
    match (operation["op"].as_str().expect("an operation"), parent) {
        ("add", Value::Array(list)) => list.insert(index(), value()),
        ("remove", Value::Array(list)) => drop(list.remove(index())),
        ("replace", Value::Array(list)) => list[index()] = value(),
        ("add", Value::Object(object)) => drop(object.insert(last, value())),
        ("remove", Value::Object(object)) => drop(object.remove(&last).expect("it exists")),
        ("replace", Value::Object(object)) => {
            *object.get_mut(&last).expect("it exists") = value();
        }
        other => panic!("{other:?}"),
    }
}
