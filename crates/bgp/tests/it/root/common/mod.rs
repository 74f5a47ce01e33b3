//! Two namespaces and a link: the node with its announcer, and the neighbour's router.

use bgp::{Announcer, Desired, Observed, bfd::Listener, config::Upstream};
use ipnet::IpNet;
use std::{sync::mpsc, time::Duration};
pub(crate) use testbed::LIMIT;
use testbed::{Bird, End, Frr, Namespace, link, wait_until};
use tokio::runtime::{Builder, Runtime};

/// The prefixes that are announced.
pub(crate) const PREFIXES: [&str; 2] = ["50.0.0.0/8", "2001:db8:50::/48"];

/// What a node is to do: announce, and to announce with GRACEFUL_SHUTDOWN.
pub(crate) const ANNOUNCED: Desired = Desired::Announced { graceful_shutdown: false };
pub(crate) const LEAVING: Desired = Desired::Announced { graceful_shutdown: true };

/// The node's and the router's namespace, joined by a link with both families.
pub(crate) struct Pair {
    pub(crate) node: Namespace,
    pub(crate) router: Namespace,
}

impl Pair {
    /// 172.16.0.30 and 2001:db8:1::30 at the node, .29 and ::29 at the router.
    pub(crate) fn new() -> Self {
        let node = Namespace::new("node").unwrap();
        let router = Namespace::new("router").unwrap();
        link(
            End::new(&node, "up0").address("172.16.0.30/30").address("2001:db8:1::30/64"),
            End::new(&router, "down0").address("172.16.0.29/30").address("2001:db8:1::29/64"),
        )
        .unwrap();
        Self { node, router }
    }

    /// Starts the router as BIRD, see [`bird`].
    pub(crate) fn bird(&self, session: &str) -> Bird {
        Bird::start(&self.router, &bird(session)).unwrap()
    }

    /// Starts the router as FRR, see [`frr`].
    pub(crate) fn frr(&self, neighbour: &str) -> Frr {
        Frr::start(&self.router, &frr(neighbour)).unwrap()
    }

    /// Starts an announcer in the node's namespace.
    pub(crate) fn start(&self, configuration: &str) -> Node {
        let upstream: Upstream = toml::from_str(configuration).unwrap();
        let prefixes: Vec<IpNet> = PREFIXES.iter().map(|prefix| prefix.parse().unwrap()).collect();
        assert_eq!(upstream.problems(&prefixes), []);
        self.node.enter(|| {
            // Its worker is started here and so lives in the namespace, like the sockets it opens.
            let runtime =
                Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let guard = runtime.enter();
            let bfd = Listener::default();
            let announcer = Announcer::start(&upstream, prefixes, &bfd).unwrap();
            drop(guard);
            Node { announcer: Some(announcer), runtime, bfd }
        })
    }

    /// The same, and sets it to announce.
    pub(crate) fn announce(&self, configuration: &str) -> Node {
        let node = self.start(configuration);
        node.announcer().set(ANNOUNCED);
        node
    }
}

/// An announcer on a runtime of its own.
pub(crate) struct Node {
    announcer: Option<Announcer>,
    runtime: Runtime,
    bfd: Listener,
}

impl Node {
    pub(crate) fn announcer(&self) -> &Announcer {
        self.announcer.as_ref().unwrap()
    }

    /// Waits until what is observed is so.
    pub(crate) fn until(
        &self,
        what: &str,
        mut condition: impl FnMut(&Observed) -> bool,
    ) -> Duration {
        wait_until(what, LIMIT, || condition(&self.announcer().observed()))
            .unwrap_or_else(|error| panic!("{error}; seen: {:#?}", self.announcer().observed()))
    }

    /// Goes over to another configuration of the upstream; whether that needs no new session.
    pub(crate) fn adopt(&mut self, configuration: &str) -> bool {
        let upstream: Upstream = toml::from_str(configuration).unwrap();
        self.announcer.as_mut().unwrap().adopt(&upstream)
    }

    /// Starts a second announcer for an upstream, as a reload does.
    pub(crate) fn start_another(&self, configuration: &str) -> Announcer {
        let upstream: Upstream = toml::from_str(configuration).unwrap();
        let listener = self.bfd.clone();
        // On the worker, which is in the namespace.
        let start = async move { Announcer::start(&upstream, Vec::new(), &listener).unwrap() };
        self.runtime.block_on(self.runtime.spawn(start)).unwrap()
    }

    /// Stops the announcer cleanly and goes on with another.
    pub(crate) fn replace(&mut self, other: Announcer) {
        let before = self.announcer.replace(other).unwrap();
        self.runtime.block_on(before.stop());
    }

    /// Keeps the announcer's only thread busy until the returned value is dropped.
    pub(crate) fn hang(&self) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel();
        self.runtime.spawn(async move {
            let _ = released.recv();
        });
        release
    }

    /// Stops cleanly.
    pub(crate) fn stop(mut self) {
        let announcer = self.announcer.take().unwrap();
        self.runtime.block_on(announcer.stop());
    }
}

/// What BIRD knows of a prefix, every attribute.
pub(crate) fn route(bird: &Bird, prefix: &str) -> String {
    bird.query(&format!("show route {prefix} all")).unwrap_or_default()
}

/// Waits until BIRD has both prefixes, or neither.
pub(crate) fn wait_for_routes(bird: &Bird, there: bool) -> Duration {
    wait_until("the routes at BIRD", LIMIT, || {
        PREFIXES.iter().all(|prefix| route(bird, prefix).contains(prefix) == there)
    })
    .unwrap()
}

/// An embedded session of AS 12 with AS 4 over IPv4, with more keys in front of the table's others.
pub(crate) fn session(more: &str) -> String {
    format!(
        r#"
        name = "isp-a"
        type = "bgp"
        peer = "172.16.0.29"
        peer_as = 4
        local_as = 12
        local_address = "172.16.0.30"
        next_hop6 = "2001:db8:1::30"
        {more}
        "#
    )
}

/// The router as BIRD: AS 4, waiting for AS 12, with more lines in the session's protocol.
pub(crate) fn bird(session: &str) -> String {
    format!(
        "router id 172.16.0.29;
         protocol device {{}}
         protocol direct {{ ipv4; ipv6; }}
         protocol bgp node {{
           local 172.16.0.29 as 4;
           neighbor 172.16.0.30 as 12;
           ipv4 {{ import all; export none; }};
           ipv6 {{ import all; export none; }};
           {session}
         }}"
    )
}

/// The router as FRR: AS 4, waiting for AS 12, with more lines for the neighbour.
pub(crate) fn frr(neighbour: &str) -> String {
    format!(
        "frr defaults traditional
router bgp 4
 bgp router-id 172.16.0.29
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 172.16.0.30 remote-as 12
 neighbor 172.16.0.30 disable-connected-check
{neighbour}
 address-family ipv4 unicast
  neighbor 172.16.0.30 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor 172.16.0.30 activate
 exit-address-family
"
    )
}
