//! Everything together: a network changes, its tables are published, and clients over TLS see it.

use crate::alto_streams::{
    client::{Client, Event, Held},
    network::{Network, net},
};
use oracle::alto::{
    AltoConfig, Publisher,
    server::{Server, Settings, bind},
    tips,
};
use serde_json::json;
use std::{collections::BTreeMap, fs};

struct Whole {
    server: Server,
    publisher: Publisher,
    network: Network,
    folder: tempfile::TempDir,
}

impl Whole {
    fn new() -> Whole {
        let folder = tempfile::tempdir().expect("a folder");
        let config: AltoConfig = toml::from_str("listen = [\"127.0.0.1:0\"]").expect("it parses");
        let (publisher, snapshots) = Publisher::new(config.clone());
        let bound = bind(Settings::new(&config, folder.path())).expect("an address");
        let server = bound.start(snapshots, job::Pulse::default().beat("alto")).expect("a server");
        let mut whole = Whole { server, publisher, network: Network::new(), folder };
        whole.publish();
        whole
    }

    fn publish(&mut self) {
        self.publisher.publish(self.network.tables());
    }

    async fn client(&self) -> Client {
        let trusted = fs::read(self.folder.path().join("alto.crt")).expect("the certificate");
        let address = self.server.addresses()[0];
        Client::connect(address, &trusted, true).await.expect("TLS")
    }
}

/// Paths of the GET resources that the directory lists, by identity.
async fn listed(client: &mut Client) -> BTreeMap<String, String> {
    let directory = client.get("/directory").await.json();
    let entries = directory["resources"].as_object().expect("entries");
    entries
        .iter()
        .filter(|(_, entry)| entry.get("accepts").is_none())
        .map(|(id, entry)| (id.clone(), entry["uri"].as_str().expect("an address").to_owned()))
        .collect()
}

/// A client follows every GET resource at once through a series of changes of the network, applies what comes, and
/// in the end holds exactly what the server answers; the same with TIPS.
#[tokio::test]
async fn clients_hold_what_the_server_has() {
    let mut whole = Whole::new();
    let (mut client, mut other) = (whole.client().await, whole.client().await);
    let paths = listed(&mut other).await;
    assert!(paths.len() >= 7, "two network maps, four cost maps, one property map");
    let add: serde_json::Map<_, _> =
        paths.keys().map(|id| (id.clone(), json!({ "resource-id": id }))).collect();
    let mut events = client.open_at("/updates", &json!({ "add": add })).await;
    events.control_uri().await;
    let mut held = Held::new();
    for _ in &paths {
        events.next().await.expect("a full replacement").apply(&mut held);
    }
    let mut views = BTreeMap::new();
    for id in paths.keys() {
        let reply = other.post("/tips", tips::PARAMS, &json!({ "resource-id": id })).await;
        assert_eq!(reply.status, 200);
        let answer = reply.json();
        let uri = answer["tips-view-uri"].as_str().expect("an address");
        let path = format!("/{}", uri.splitn(4, '/').nth(3).expect("a path"));
        assert_eq!(other.get(&format!("{path}/ug/0/1")).await.json(), held[id], "{id}");
        views.insert(id.clone(), path);
    }

    let mut changed = 0;
    for step in 0_u8..4 {
        match step {
            0 => whole.network.internal(net("198.51.100.0/24"), 2),
            1 => whole.network.link(1, 2, 1000),
            2 => whole.network.internal(net("10.200.0.0/16"), 4),
            _ => whole.network.internal(net("2001:db8:7::/48"), 1),
        }
        whole.publish();
        // What the server has now, and so what the client must come to.
        let mut now = BTreeMap::new();
        for (id, path) in &paths {
            now.insert(id.clone(), other.get(path).await.json());
        }
        let mut tag = now["groups"]["meta"]["vtag"]["tag"].clone();
        while held != now {
            let event = events.next().await.expect("an update");
            if let Some(found) =
                event.data.pointer("/meta/vtag/tag").filter(|_| event.id == "groups")
            {
                tag = found.clone();
            }
            event.apply(&mut held);
            // Section 6.7.1: whatever a cost map depends on has come before it.
            let depends = &held["groups-num-routingcost"]["meta"]["dependent-vtags"][0]["tag"];
            if event.id == "groups-num-routingcost" {
                assert_eq!(depends, &tag);
            }
            changed += 1;
        }
    }
    assert!(changed > 4);

    for (id, path) in &views {
        let request = json!({ "resource-id": id });
        let summary = other.post(&format!("{path}/ug"), tips::PARAMS, &request).await.json();
        let summary = &summary["tips-view-summary"]["updates-graph-summary"];
        let end = summary["end-seq"].as_u64().expect("a number");
        let mut pulled = other.get(&format!("{path}/ug/0/1")).await.json();
        for from in 1..end {
            let reply = other.get(&format!("{path}/ug/{from}/{}", from + 1)).await;
            let event = Event {
                media_type: reply.header("content-type").to_owned(),
                id: id.clone(),
                data: reply.json(),
            };
            let mut one = BTreeMap::from([(id.clone(), pulled)]);
            event.apply(&mut one);
            pulled = one.remove(id).expect("it is there");
        }
        assert_eq!(pulled, held[id], "{id}");
    }
}

/// Properties over TLS, with the rules of HTTP.
#[tokio::test]
async fn properties_over_tls() {
    let whole = Whole::new();
    let mut client = whole.client().await;
    let kind = "application/alto-propmapparams+json";
    let body = json!({ "entities": ["ipv4:10.1.2.3"], "properties": ["routers.pid"] });
    let reply = client.post("/propmap/lookup", kind, &body).await;
    assert_eq!(reply.header("content-type"), "application/alto-propmap+json");
    assert!(reply.json()["property-map"]["ipv4:10.1.2.3"]["routers.pid"].is_string());
    assert_eq!(client.post("/propmap/lookup", "application/json", &body).await.status, 415);
    assert_eq!(client.get("/propmap/lookup").await.status, 405);
    assert_eq!(client.post("/propmap/full", kind, &body).await.status, 405);
    let html = [("accept", "text/html")];
    assert_eq!(client.request("GET", "/propmap/full", &html, "").await.status, 406);
    let whole = client.get("/propmap/full").await;
    let known = [("if-none-match", whole.header("etag"))];
    assert_eq!(client.request("GET", "/propmap/full", &known, "").await.status, 304);
    let reply = client.request("POST", "/directory", &[], "").await;
    assert_eq!((reply.status, reply.header("allow")), (405, "GET"));
}
