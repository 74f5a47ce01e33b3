//! One router with BIRD, a client behind it, and one or two nodes with the responder:
//!
//! ```text
//!   client .2 -- 172.17.0.0/30 -- .1 lan  router  a .29 -- 172.16.0.28/30 -- .30 eth0 node a
//!                                                 b .33 -- 172.16.0.32/30 -- .34 eth0 node b
//! ```
//!
//! The router prefers node a, honours GRACEFUL_SHUTDOWN (RFC 8326 section 4.3) and forwards packets.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
pub(crate) use testbed::LIMIT;
use testbed::{Bird, End, Namespace, Nigh, Pings, Receiver, link, pings, wait_until};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
pub(crate) const SERVICE4: &str = "50.50.50.50";
pub(crate) const SERVICE6: &str = "2001:db8:50::50";

/// The network of a node: label, last number of the router's address, and the preference.
const NODES: [(&str, u8, u32); 2] = [("a", 29, 200), ("b", 33, 100)];

/// The router's side.
pub(crate) struct Core {
    pub(crate) bird: Bird,
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    nodes: Vec<Namespace>,
    _receivers: Vec<Receiver>,
}

impl Core {
    /// The namespaces, their links, and BIRD.
    pub(crate) fn new() -> Self {
        let client = Namespace::new("client").unwrap();
        let router = Namespace::new("router").unwrap();
        router.forward().unwrap();
        link(
            End::new(&client, "eth0").address("172.17.0.2/30").address("2001:db8:2::2/64"),
            End::new(&router, "lan").address("172.17.0.1/30").address("2001:db8:2::1/64"),
        )
        .unwrap();
        client.check(&["ip", "route", "add", "default", "via", "172.17.0.1"]).unwrap();
        client.check(&["ip", "route", "add", "default", "via", "2001:db8:2::1"]).unwrap();
        let mut conf = String::from(
            "router id 172.16.0.29;\nprotocol device {}\n\
             protocol kernel { ipv4 { export all; }; }\nprotocol kernel { ipv6 { export all; }; }\n",
        );
        let (mut nodes, mut receivers) = (Vec::new(), Vec::new());
        for (label, last, preference) in NODES {
            let node = Namespace::new(label).unwrap();
            link(
                End::new(&router, label)
                    .address(&format!("172.16.0.{last}/30"))
                    .address(&format!("2001:db8:{last}::1/64")),
                End::new(&node, "eth0")
                    .address(&format!("172.16.0.{}/30", last + 1))
                    .address(&format!("2001:db8:{last}::2/64")),
            )
            .unwrap();
            let via = format!("172.16.0.{last}");
            node.check(&["ip", "route", "add", "default", "via", &via]).unwrap();
            let via = format!("2001:db8:{last}::1");
            node.check(&["ip", "route", "add", "default", "via", &via]).unwrap();
            let import = format!(
                "import filter {{ bgp_local_pref = {preference}; \
                 if (65535, 0) ~ bgp_community then bgp_local_pref = 0; accept; }}; export none;"
            );
            conf.push_str(&format!(
                "protocol bgp {label} {{ local 172.16.0.{last} as 4; neighbor 172.16.0.{} as 12; \
                 ipv4 {{ {import} }}; ipv6 {{ {import} }}; }}\n",
                last + 1
            ));
            receivers.push(Receiver::new(&router, label).unwrap());
            nodes.push(node);
        }
        let bird = Bird::start(&router, &conf).unwrap();
        Self { bird, client, router, nodes, _receivers: receivers }
    }

    /// The namespace of node a (0) or b (1).
    pub(crate) fn node(&self, i: usize) -> &Namespace {
        &self.nodes[i]
    }

    /// Starts the daemon on a node; `health` is the rest of `[anycast.health]`.
    pub(crate) fn start(&self, i: usize, health: &str) -> Nigh {
        let text = sections(i, health);
        Nigh::start(self.node(i), Path::new(BINARY), NODES[i].0, &text).unwrap()
    }

    /// The router's view of a node's routes: the BGP protocol's lines for both families.
    pub(crate) fn routes(&self, i: usize) -> [bool; 2] {
        ["50.0.0.0/8", "2001:db8:50::/48"].map(|prefix| {
            let query = format!("show route {prefix} protocol {}", NODES[i].0);
            self.bird.query(&query).is_ok_and(|answer| answer.contains(prefix))
        })
    }

    /// Waits until the router has both routes of a node, or none. Returns how long that took.
    pub(crate) fn await_routes(&self, i: usize, there: bool) -> Duration {
        let what = format!("routes of node {} to be there: {there}", NODES[i].0);
        wait_until(&what, LIMIT, || self.routes(i) == [there; 2]).unwrap()
    }

    /// How many times the router has imported a route from a node, both families together.
    pub(crate) fn imports(&self, i: usize) -> u64 {
        let answer = self.bird.query(&format!("show protocols all {}", NODES[i].0)).unwrap();
        // "Import updates:  received rejected filtered ignored accepted"
        let lines = answer.lines().filter(|line| line.contains("Import updates:"));
        let counts = lines.map(|line| line.split_whitespace().nth(2).unwrap().parse::<u64>());
        counts.map(|count| count.unwrap()).sum()
    }
}

/// The sections of the configuration of a node.
pub(crate) fn sections(i: usize, health: &str) -> String {
    let last = NODES[i].1;
    format!(
        "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"{SERVICE4}\", \"{SERVICE6}\"]\n\
         [echo.limit]\nrate = 0\n\
         [anycast]\nprefixes = [\"50.0.0.0/8\", \"2001:db8:50::/48\"]\n\
         quiet = \"500ms\"\ndrain_timeout = \"10s\"\n\
         [anycast.health]\n{health}\n\
         [[anycast.upstream]]\nname = \"isp\"\ntype = \"bgp\"\npeer = \"172.16.0.{last}\"\n\
         peer_as = 4\nlocal_as = 12\nnext_hop6 = \"2001:db8:{last}::2\"\n"
    )
}

/// The value of `echo` in a daemon's status.
pub(crate) fn status(nigh: &Nigh) -> Value {
    nigh.control(&json!({"do": "status"})).unwrap()["echo"].clone()
}

/// The first upstream of a daemon's status.
pub(crate) fn upstream(nigh: &Nigh) -> Value {
    status(nigh)["anycast"]["upstreams"][0].clone()
}

/// How many requests a daemon has answered, all addresses together.
pub(crate) fn answered(nigh: &Nigh) -> u64 {
    let rows = status(nigh)["ledger"]["rows"].clone();
    rows.as_array().unwrap().iter().map(|row| row["answered"].as_u64().unwrap()).sum()
}

/// The daemon reports that a fault was seen, then the withdrawal requested, then the UPDATE written.
pub(crate) fn assert_withdrawal_in_order(upstream: &Value) {
    let withdrawal = &upstream["withdrawal"];
    let at = |key: &str| withdrawal[key].as_f64().unwrap_or_else(|| panic!("{key}: {upstream}"));
    assert!(at("detected") <= at("requested") && at("requested") <= at("written"), "{withdrawal}");
}

/// Stops node a under pings: its routes go first, so none is lost.
pub(crate) fn stop_without_loss(core: &Core, a: &mut Nigh) {
    let running = Pings::start(&core.client, SERVICE4, Duration::from_millis(5)).unwrap();
    wait_until("pings", testbed::LIMIT, || running.replies().len() > 50).unwrap();
    a.process().signal(Signal::SIGTERM).unwrap();
    wait_until("the end", LIMIT, || a.process().ended().is_some()).unwrap();
    assert!(a.process().ended().unwrap().success(), "{}", a.wrote());
    assert_eq!(core.routes(0), [false; 2]);
    let seen = running.replies().len();
    wait_until("pings afterwards", testbed::LIMIT, || running.replies().len() > seen + 50).unwrap();
    let replies = running.finish().unwrap();
    assert_eq!(pings::lost(&replies), 0, "of {}", replies.len());
}

/// Whether two answers of BIRD to `show protocols a` show the same session: `up` since the same
/// time. BIRD works that time out again for each answer, to some milliseconds; a new session would
/// take a second and more.
pub(crate) fn is_same_session(one: &str, other: &str) -> bool {
    let since = |answer: &str| {
        let words = answer.split_whitespace().skip_while(|word| *word != "up");
        let time = words.into_iter().nth(1)?;
        time.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
    };
    match (since(one), since(other)) {
        (Some(one), Some(other)) => (one - other).abs() < 0.5,
        _ => false,
    }
}
