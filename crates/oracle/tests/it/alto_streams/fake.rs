//! Maps that a test writes itself, and a server that serves them.

use crate::alto_streams::client::Client;
use oracle::alto::{
    error::Problem,
    failure::Failure,
    limits::Limits,
    media,
    resource::{Method, Request, Resource, Response},
    server::{Access, Server, Settings, bind},
    tips,
    tls::Source,
    updates::{follow::Answers, service},
};
use serde_json::{Value, json};
use std::{net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::sync::watch;

/// A network map, a cost map that uses it, a resource with input that uses the cost map, and the services.
#[derive(Clone)]
pub(crate) struct Fake {
    resources: Vec<Resource>,
    pub(crate) network_map: Value,
    pub(crate) cost_map: Value,
    /// How many bytes `/large` answers with, made anew for each request as a filtered map is.
    pub(crate) large: usize,
}

pub(crate) const NETWORK_MAP: &str = "net";
pub(crate) const COST_MAP: &str = "costs";
pub(crate) const FILTERED: &str = "filtered";

impl Fake {
    /// The example of RFC 8895 section 3.1.2.
    pub(crate) fn new() -> Fake {
        let resource = |id: &str, media_type, accepts, uses: &[&str]| {
            let uses = uses.iter().map(|used| (*used).to_owned()).collect();
            Resource::other(id.into(), format!("/{id}"), media_type, accepts, Value::Null, uses)
        };
        let followed = [NETWORK_MAP, COST_MAP, FILTERED];
        let filter = Some(media::COST_MAP_FILTER);
        Fake {
            resources: vec![
                resource(NETWORK_MAP, media::NETWORK_MAP, None, &[]),
                resource(COST_MAP, media::COST_MAP, None, &[NETWORK_MAP]),
                resource(FILTERED, media::COST_MAP, filter, &[NETWORK_MAP]),
                resource("stream", service::EVENT_STREAM, Some(service::PARAMS), &followed),
                resource("pull", tips::TIPS, Some(tips::PARAMS), &followed),
                resource("unrelated", media::COST_MAP, None, &[]),
            ],
            large: 0,
            network_map: json!({
                "meta": { "vtag": { "resource-id": "net", "tag": "t1" } },
                "network-map": {
                    "PID1": { "ipv4": ["192.0.2.0/24", "198.51.100.0/25"] },
                    "PID2": { "ipv4": ["198.51.100.128/25"] },
                    "PID3": { "ipv4": ["0.0.0.0/0"], "ipv6": ["::/0"] },
                },
            }),
            cost_map: json!({
                "meta": {
                    "dependent-vtags": [{ "resource-id": "net", "tag": "t1" }],
                    "cost-type": { "cost-mode": "numerical", "cost-metric": "routingcost" },
                },
                "cost-map": {
                    "PID1": { "PID1": 1, "PID2": 5, "PID3": 10 },
                    "PID2": { "PID1": 5, "PID2": 1, "PID3": 15 },
                    "PID3": { "PID1": 20, "PID2": 15 },
                },
            }),
        }
    }

    /// The example's change: PID1 gets prefixes, PID2 goes, some costs change.
    pub(crate) fn changed(&self) -> Fake {
        let mut changed = self.clone();
        changed.network_map = json!({
            "meta": { "vtag": { "resource-id": "net", "tag": "t2" } },
            "network-map": {
                "PID1": {
                    "ipv4": ["192.0.2.0/24", "198.51.100.0/25", "203.0.113.0/25"],
                    "ipv6": ["2001:db8:8000::/33"],
                },
                "PID3": { "ipv4": ["0.0.0.0/0"], "ipv6": ["::/0"] },
            },
        });
        changed.cost_map = json!({
            "meta": {
                "dependent-vtags": [{ "resource-id": "net", "tag": "t2" }],
                "cost-type": { "cost-mode": "numerical", "cost-metric": "routingcost" },
            },
            "cost-map": {
                "PID1": { "PID1": 1, "PID3": 10 },
                "PID3": { "PID1": 20, "PID3": 1 },
            },
        });
        changed
    }

    /// The same with another cost from PID1 to PID2.
    pub(crate) fn with_cost(&self, cost: u32) -> Fake {
        let mut changed = self.clone();
        changed.cost_map["cost-map"]["PID1"]["PID2"] = cost.into();
        changed
    }

    /// The same without a resource.
    pub(crate) fn without(&self, id: &str) -> Fake {
        let mut changed = self.clone();
        changed.resources.retain(|resource| resource.id != id);
        changed
    }

    /// The cost map's rows that the input names.
    fn filtered(&self, body: &[u8]) -> Response {
        let Ok(input) = serde_json::from_slice::<Value>(body) else {
            return Failure::from(Problem::syntax("no JSON")).response();
        };
        let Some(rows) = input["rows"].as_array() else {
            return Failure::from(Problem::missing("rows")).response();
        };
        let mut map = self.cost_map.clone();
        if let Some(costs) = map["cost-map"].as_object_mut() {
            costs.retain(|pid, _| rows.iter().any(|row| row == pid));
        }
        Response::ok(media::COST_MAP, map.to_string().into_bytes())
    }
}

impl Answers for Fake {
    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn respond(&self, request: &Request<'_>) -> Response {
        let map = match request.path {
            "/net" => (media::NETWORK_MAP, &self.network_map),
            "/costs" => (media::COST_MAP, &self.cost_map),
            "/filtered" if request.method == Method::Post => return self.filtered(request.body),
            "/large" => return Response::ok(media::COST_MAP, vec![b' '; self.large]),
            "/panic" => panic!("as the test asks for"),
            _ => return Failure::NotFound.response(),
        };
        if request.method != Method::Get {
            return Failure::Method("GET").response();
        }
        if !media::accepts(request.accept, map.0) {
            return Failure::NotAcceptable(map.0).response();
        }
        Response::ok(map.0, map.1.to_string().into_bytes())
    }
}

/// A server on loopback, its maps, and the certificate that it made.
pub(crate) struct Served {
    pub(crate) server: Server,
    maps: watch::Sender<Option<Arc<dyn Answers>>>,
    pub(crate) folder: tempfile::TempDir,
}

impl Served {
    pub(crate) fn new(limits: Limits) -> Served {
        let served = Served::empty(limits);
        served.publish(Fake::new());
        served
    }

    /// One that has no maps yet.
    pub(crate) fn empty(limits: Limits) -> Served {
        Served::with(limits, Access::default(), Ipv4Addr::LOCALHOST)
    }

    /// One that listens on an address.
    pub(crate) fn at(address: Ipv4Addr, limits: Limits) -> Served {
        Served::with(limits, Access::default(), address)
    }

    /// One for some clients only.
    pub(crate) fn guarded(access: Access) -> Served {
        let served = Served::with(Limits::default(), access, Ipv4Addr::LOCALHOST);
        served.publish(Fake::new());
        served
    }

    fn with(limits: Limits, access: Access, address: Ipv4Addr) -> Served {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            listen: vec![(address, 0).into()],
            source: Source::SelfMade {
                directory: folder.path().to_owned(),
                names: vec!["localhost".to_owned()],
            },
            base: String::new(),
            access,
            limits,
        };
        let (maps, snapshots) = watch::channel(None);
        let server = bind(settings)
            .expect("an address")
            .start(snapshots, job::Pulse::default().beat("alto"))
            .expect("a server");
        Served { server, maps, folder }
    }

    pub(crate) fn publish(&self, fake: Fake) {
        self.maps.send_replace(Some(Arc::new(fake)));
    }

    pub(crate) fn trusted(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("alto.crt")).expect("the certificate")
    }

    /// A client over HTTP/2.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.server.addresses()[0], &self.trusted(), true).await.expect("TLS")
    }

    /// A client over HTTP/2 from another address.
    pub(crate) async fn client_from(&self, host: u8) -> Client {
        let address = self.server.addresses()[0];
        Client::from([127, 0, 0, host].into(), address, &self.trusted()).await.expect("TLS")
    }

    /// A client over HTTP/1.1.
    pub(crate) async fn old_client(&self) -> Client {
        Client::connect(self.server.addresses()[0], &self.trusted(), false).await.expect("TLS")
    }

    /// How often something was refused for this reason.
    pub(crate) fn refused(&self, reason: &str) -> u64 {
        self.server.figures().refused[reason]
    }
}

/// Waits until something holds, while the test's other tasks go on.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert!(waited.is_ok(), "waiting for: {what}");
}
