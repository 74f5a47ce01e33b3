//! The state of an update stream (RFC 8895 sections 6.7 and 7.6), without a connection.

use crate::alto_streams::fake::{COST_MAP, FILTERED, Fake, NETWORK_MAP};
use oracle::alto::{
    error::Code,
    updates::{
        follow::{Answers, Follower, Question},
        graph::Bounds,
        params::{Add, Params, parse_control, parse_open},
        session::{Most, Refused, Session},
        sse::Event,
    },
};
use serde_json::{Value, json};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};
use tokio::sync::watch;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct Bench {
    maps: watch::Sender<Option<Arc<dyn Answers>>>,
    follower: Arc<Follower>,
}

impl Bench {
    fn new() -> Bench {
        let first: Option<Arc<dyn Answers>> = Some(Arc::new(Fake::new()));
        let (maps, current) = watch::channel(first);
        let bounds = Bounds { versions: 16, bytes: 1 << 20 };
        let follower = Arc::new(Follower::new(current, bounds, 64));
        tokio::spawn(follower.clone().run());
        Bench { maps, follower }
    }

    async fn follow(
        &self,
        adds: &[Add],
    ) -> Vec<(Add, Arc<oracle::alto::updates::follow::Followed>)> {
        let mut followed = Vec::new();
        for add in adds {
            let answers = self.follower.answers().expect("maps");
            let resource = answers.resource(&add.resource).expect("a resource");
            let question = Question::new(resource, add.input.clone(), CLIENT);
            let asked = self.follower.follow(question, CLIENT).await.expect("followed");
            followed.push((add.clone(), asked));
        }
        followed
    }

    async fn open(&self, add: Value) -> Session {
        let params = parse_open(json!({ "add": add }).to_string().as_bytes()).expect("a request");
        let most = Most { active: 4, ever: 6 };
        Session::open("https://a/c/1", self.follow(&params.add).await, most).expect("a session")
    }

    async fn control(&self, session: &mut Session, request: Value) -> Result<(), Refused> {
        let params: Params = parse_control(request.to_string().as_bytes()).expect("a request");
        session.check(&params)?;
        let adds = self.follow(&params.add).await;
        session.control(&params, adds)
    }

    /// New maps, and the round of questions that follows.
    async fn publish(&self, fake: Fake) {
        let mut generation = self.follower.generation();
        self.maps.send_replace(Some(Arc::new(fake)));
        generation.changed().await.expect("a follower");
    }
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

fn data(event: &Event) -> Value {
    serde_json::from_slice(&event.data).expect("JSON")
}

fn problem(refused: Result<(), Refused>) -> (Code, String, String) {
    match refused {
        Err(Refused::Problem(problem)) => {
            (problem.code, problem.field.unwrap_or_default(), problem.value.unwrap_or_default())
        }
        other => panic!("{other:?} is no problem"),
    }
}

const NETWORK: &str = "application/alto-networkmap+json";
const COSTS: &str = "application/alto-costmap+json";
const MERGE: &str = "application/merge-patch+json";
const CONTROL: &str = "application/alto-updatestreamcontrol+json";

/// Section 6.7.1: first the control address, then full replacements, what others depend on first, however the
/// client calls them; then changes, in the same order.
#[tokio::test]
async fn the_order_of_events() {
    let bench = Bench::new();
    let add = json!({ "1": { "resource-id": COST_MAP }, "2": { "resource-id": NETWORK_MAP } });
    let mut session = bench.open(add).await;
    let events = session.events();
    let expected = [CONTROL, &format!("{NETWORK},2"), &format!("{COSTS},1")];
    assert_eq!(names(&events), expected);
    assert_eq!(data(&events[0]), json!({ "control-uri": "https://a/c/1" }));
    assert!(session.events().is_empty(), "nothing changed");

    bench.publish(Fake::new().changed()).await;
    let events = session.events();
    let media: Vec<_> = events.iter().map(|event| event.name.split(',').nth(1)).collect();
    assert_eq!(media, [Some("2"), Some("1")], "the network map before the cost map");
}

/// Section 6.5: changes only to a client that takes them; and several versions are several changes.
#[tokio::test]
async fn full_replacements_for_who_takes_no_changes() {
    let bench = Bench::new();
    let add = json!({
        "patched": { "resource-id": COST_MAP },
        "whole": { "resource-id": COST_MAP, "incremental-changes": false },
    });
    let mut session = bench.open(add).await;
    session.events();
    bench.publish(Fake::new().with_cost(9)).await;
    bench.publish(Fake::new().with_cost(8)).await;
    let events = session.events();
    let mut listed = names(&events);
    listed.sort_unstable();
    let merge = format!("{MERGE},patched");
    assert_eq!(listed, [&format!("{COSTS},whole"), &merge, &merge]);
    let changes: Vec<_> = events.iter().filter(|event| event.name == merge).map(data).collect();
    let expected = |cost: u32| json!({ "cost-map": { "PID1": { "PID2": cost } } });
    assert_eq!(changes, [expected(9), expected(8)]);
}

/// Sections 6.5 and 6.7.1: the version that a client has is not sent again if it is the current one, and is
/// replaced whole if it is not.
#[tokio::test]
async fn a_tag_saves_the_first_replacement() {
    let bench = Bench::new();
    let add = json!({
        "same": { "resource-id": NETWORK_MAP, "tag": "t1" },
        "other": { "resource-id": NETWORK_MAP, "tag": "t0" },
    });
    let mut session = bench.open(add).await;
    assert_eq!(names(&session.events()), [CONTROL, &format!("{NETWORK},other")]);
    bench.publish(Fake::new().changed()).await;
    assert_eq!(session.events().len(), 2, "both hear of the change");
}

/// Section 7.6: adding and removing, and the events that report it.
#[tokio::test]
async fn adding_and_removing() {
    let bench = Bench::new();
    let mut session = bench.open(json!({ "net": { "resource-id": NETWORK_MAP } })).await;
    session.events();
    let add = json!({ "costs": { "resource-id": COST_MAP } });
    bench.control(&mut session, json!({ "add": add, "remove": ["net"] })).await.expect("taken");
    let events = session.events();
    assert_eq!(names(&events), [CONTROL, CONTROL, &format!("{COSTS},costs")]);
    assert_eq!(data(&events[0]), json!({ "started": ["costs"] }));
    assert_eq!(data(&events[1])["stopped"], json!(["net"]));
    assert!(data(&events[1])["description"].is_string(), "section 5.3: recommended");
    assert!(!session.is_over());

    // It is legal to remove a substream twice; no further event reports it.
    bench.control(&mut session, json!({ "remove": ["net", "net"] })).await.expect("taken");
    assert!(session.events().is_empty());

    // Removing the last one ends the stream, as an empty list does.
    bench.control(&mut session, json!({ "remove": [] })).await.expect("taken");
    assert_eq!(data(&session.events()[0])["stopped"], json!(["costs"]));
    assert!(session.is_over());
    let refused = bench.control(&mut session, json!({ "remove": ["net"] })).await;
    assert_eq!(refused, Err(Refused::Over), "section 7.6: 404");
}

/// Section 7.6: what must be refused, after which nothing has changed.
#[tokio::test]
async fn wrong_control_requests() {
    let bench = Bench::new();
    let add = json!({ "net": { "resource-id": NETWORK_MAP }, "old": { "resource-id": COST_MAP } });
    let mut session = bench.open(add).await;
    bench.control(&mut session, json!({ "remove": ["old"] })).await.expect("taken");
    session.events();
    let new = json!({ "new": { "resource-id": COST_MAP } });
    for (request, field, value) in [
        (json!({ "remove": ["net", "x", "y"] }), "remove", r#"["x","y"]"#),
        (json!({ "add": new, "remove": ["new"] }), "remove", r#"["new"]"#),
        (json!({ "add": new, "remove": [] }), "remove", "[]"),
        (json!({ "add": { "net": { "resource-id": COST_MAP } } }), "add", r#"["net"]"#),
        (json!({ "add": { "old": { "resource-id": COST_MAP } } }), "add", r#"["old"]"#),
    ] {
        let refused = problem(bench.control(&mut session, request.clone()).await);
        let expected = (Code::InvalidFieldValue, field.to_owned(), value.to_owned());
        assert_eq!(refused, expected, "{request}");
        assert!(session.events().is_empty() && session.active() == 1, "{request}");
    }
}

/// Section 10.1: limits on substreams at once and over the stream's life.
#[tokio::test]
async fn too_many_substreams() {
    let bench = Bench::new();
    let mut session = bench.open(json!({ "0": { "resource-id": NETWORK_MAP } })).await;
    let add = |names: &[&str]| {
        let entry = json!({ "resource-id": NETWORK_MAP });
        let entries: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), entry.clone())).collect();
        json!({ "add": entries })
    };
    let many = bench.control(&mut session, add(&["1", "2", "3", "4"])).await;
    assert!(matches!(many, Err(Refused::TooMany(_))));
    bench.control(&mut session, add(&["1", "2", "3"])).await.expect("four at once");
    bench.control(&mut session, json!({ "remove": ["1", "2", "3"] })).await.expect("taken");
    bench.control(&mut session, add(&["5", "6"])).await.expect("six ever");
    let many = bench.control(&mut session, add(&["7"])).await;
    assert!(matches!(many, Err(Refused::TooMany(_))));
}

/// Section 5.3: a resource that is gone is stopped with the reason; the rest goes on.
#[tokio::test]
async fn a_resource_that_is_gone() {
    let bench = Bench::new();
    let add = json!({
        "net": { "resource-id": NETWORK_MAP },
        "rows": { "resource-id": FILTERED, "input": { "rows": ["PID1"] } },
    });
    let mut session = bench.open(add).await;
    session.events();
    bench.publish(Fake::new().without(FILTERED)).await;
    let events = session.events();
    assert_eq!(names(&events), [CONTROL]);
    assert_eq!(data(&events[0])["stopped"], json!(["rows"]));
    assert!(!session.is_over());
}

/// Section 6.7.2: whoever follows the same reads the same graph.
#[tokio::test]
async fn questions_are_shared() {
    let bench = Bench::new();
    let add = |name: &str, rows: &str| json!({ name: { "resource-id": FILTERED, "input": { "rows": [rows] } } });
    let _one = bench.open(add("a", "PID1")).await;
    let _two = bench.open(add("b", "PID1")).await;
    let other = bench.open(add("c", "PID2")).await;
    assert_eq!(bench.follower.len(), 2);
    drop(other);
    assert_eq!(bench.follower.len(), 1, "what has no follower is not asked any longer");
}

/// Sections 6.5 and 6.6: requests that are wrong in themselves.
#[test]
fn wrong_requests() {
    use Code::{InvalidFieldType, InvalidFieldValue, MissingField, Syntax};
    let entry = json!({ "resource-id": "net" });
    for (body, code, field) in [
        ("", Syntax, None),
        ("[]", Syntax, None),
        (r#"{"add":"#, Syntax, None),
        ("{}", MissingField, Some("add")),
        (r#"{"add":{}}"#, MissingField, Some("add")),
        (r#"{"remove":["x"]}"#, MissingField, Some("add")),
        (r#"{"add":[]}"#, InvalidFieldType, Some("add")),
        (r#"{"add":{"a":1}}"#, InvalidFieldType, Some("add/a")),
        (r#"{"add":{"a":{}}}"#, MissingField, Some("add/a/resource-id")),
        (r#"{"add":{"a":{"resource-id":1}}}"#, InvalidFieldType, Some("add/a/resource-id")),
        (r#"{"add":{"a.b":{"resource-id":"x"}}}"#, InvalidFieldValue, Some("add")),
        (r#"{"add":{"":{"resource-id":"x"}}}"#, InvalidFieldValue, Some("add")),
        (r#"{"add":{"a":{"resource-id":"x","tag":1}}}"#, InvalidFieldType, Some("add/a/tag")),
        (r#"{"add":{"a":{"resource-id":"x","input":1}}}"#, InvalidFieldType, Some("add/a/input")),
        (
            r#"{"add":{"a":{"resource-id":"x","incremental-changes":"no"}}}"#,
            InvalidFieldType,
            Some("add/a/incremental-changes"),
        ),
    ] {
        let problem = parse_open(body.as_bytes()).expect_err(body);
        assert_eq!((problem.code, problem.field.as_deref()), (code, field), "{body}");
    }
    // `remove` is not inspected in a request for a stream, unknown members never.
    let body = json!({ "add": { "a": entry }, "remove": 7, "later": {} }).to_string();
    let params = parse_open(body.as_bytes()).expect("a request");
    assert!(params.add[0].incremental && params.add[0].input.is_none());

    for (body, code, field) in [
        ("{}", MissingField, "add"),
        (r#"{"remove":{}}"#, InvalidFieldType, "remove"),
        (r#"{"remove":[1]}"#, InvalidFieldValue, "remove"),
    ] {
        let problem = parse_control(body.as_bytes()).expect_err(body);
        assert_eq!((problem.code, problem.field.as_deref()), (code, Some(field)), "{body}");
    }
}
