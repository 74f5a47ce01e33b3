//! The state of the oracle as values, and as text for people.
//!
//! The values are what `nigh status --json`, `/api/v1/status` and `nigh oracle ... --json` print: their
//! field names are an interface. Times are seconds since 1970 (UTC) or durations in the unit of the
//! field's name. Costs and topology are in answers over the control socket only, never in a reply to a
//! client.

mod render;

use crate::{
    config::LimitConfig,
    control::Side,
    feeds::{self, FeedState},
    proxidor::udp::Counters,
    proxidor::{Rcode, Reason},
};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};
use topo::{LinkProperties, RouterId};

pub use render::{
    render_dump, render_feeds, render_links, render_metrics, render_networks, render_path,
    render_routers, render_routes, render_status, render_threads,
};

/// Everything about the running oracle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Why it is not healthy, a sentence each; the contract adds them to its JSON.
    #[serde(default, skip_serializing)]
    pub problems: Vec<String>,
    /// Where Proxidor is answered.
    pub listen: Vec<SocketAddr>,
    /// What queries read; none before the files of the topology have been read.
    pub tables: Option<TablesStatus>,
    /// Requests over UDP, by their outcome.
    pub queries: QueryStatus,
    /// The limit in force.
    pub limit: LimitConfig,
    /// The metrics, in the order of their bits.
    pub metrics: Vec<MetricStatus>,
    /// Where the knowledge of the network comes from.
    pub feeds: Vec<FeedStatus>,
    /// Connections to the BMP listener from addresses that are not configured, all closed; none where
    /// nothing listens.
    pub bmp_unknown_peers: Option<u64>,
    /// The threads that answer.
    pub threads: Vec<ThreadStatus>,
    /// The program in the driver and the filter of the sockets; none where it could not be loaded.
    pub driver: Option<DriverStatus>,
    /// ALTO, where it is configured.
    pub alto: Option<AltoStatus>,
}

/// The program that answers the plain request in the driver, and the filter before the sockets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverStatus {
    /// The interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// What answers instead where the kernel cannot run the program, what that costs, and what the
    /// kernel lacks; none where no interface is to answer.
    #[serde(default)]
    pub fallback: Option<String>,
    /// Addresses and ports that are answered for.
    pub services: Vec<SocketAddr>,
    /// Why the tables in force are not those of the driver, which then answers nothing.
    pub refused: Option<String>,
    /// Requests that the program saw: answered + the sum of passed + dropped.
    pub received: u64,
    /// Requests that it answered.
    pub answered: u64,
    /// Requests that it left to the sockets, by reason.
    pub passed: BTreeMap<String, u64>,
    /// Requests that it dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Requests that the filter let in to the sockets.
    pub filter_passed: u64,
    /// Requests that it dropped because the source prefix is over its rate.
    pub filter_dropped: u64,
}

/// An interface on which the plain request is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// Where the program runs, `native` or `generic`; none where the sockets alone answer.
    pub mode: Option<String>,
    /// Why it is not in the driver.
    pub why: Option<String>,
}

/// The ALTO server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AltoStatus {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// The certificate's fingerprint, so that a self-signed one can be recognized.
    pub fingerprint: String,
    /// Its counters.
    pub figures: serde_json::Value,
}

/// The tables in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TablesStatus {
    /// Rises with every change of the network.
    pub generation: u64,
    /// When they were applied.
    pub since: f64,
    /// How long it took to build them.
    pub build_seconds: f64,
    /// How many times tables were built.
    pub builds: u64,
    /// Routers.
    pub routers: usize,
    /// Links, counted in each direction.
    pub links: usize,
    /// Groups of prefixes with the same exits and paths.
    pub groups: usize,
    /// Routers that have a row.
    pub sources: usize,
    /// Memory of the tables.
    pub bytes: usize,
}

/// What was asked over UDP: received = the sum of replies + the sum of drops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryStatus {
    /// Datagrams that arrived at the sockets.
    pub received: u64,
    /// Replies by Rcode.
    pub replies: BTreeMap<String, u64>,
    /// Datagrams without a reply, by reason.
    pub dropped: BTreeMap<String, u64>,
}

impl From<&Counters> for QueryStatus {
    fn from(counters: &Counters) -> Self {
        let word = |name: &str| name.replace(' ', "_");
        let replies = Rcode::ALL.iter().map(|code| (word(code.name()), counters.replies(*code)));
        let dropped =
            Reason::ALL.iter().map(|reason| (word(reason.name()), counters.drops(*reason)));
        let unsent = ("unsent".to_owned(), counters.unsent);
        Self {
            received: counters.received,
            replies: replies.collect(),
            dropped: dropped.chain([unsent]).collect(),
        }
    }
}

/// One thread that answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadStatus {
    /// Its number.
    pub thread: usize,
    /// The core that it is pinned to.
    pub core: Option<usize>,
    /// What it was asked.
    #[serde(flatten)]
    pub queries: QueryStatus,
}

/// One metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricStatus {
    /// Its bit in the servcode.
    pub bit: usize,
    /// Its name.
    pub name: String,
    /// Its expression.
    pub cost: String,
}

/// Where a part of the knowledge of the network comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedStatus {
    /// Its name, such as `bmp 10.8.0.1` or a file's name.
    pub name: String,
    /// What it is doing.
    pub state: FeedState,
    /// Since when.
    pub since: f64,
    /// More about it, in a few words.
    pub detail: String,
    /// Routers that it knows.
    pub routers: usize,
    /// Links that it knows.
    pub links: usize,
    /// Networks of our own that it knows.
    pub prefixes: usize,
    /// Routes to networks of others that it knows.
    pub routes: usize,
    /// Changes that it has reported.
    pub changes: u64,
    /// Those of them that were refused.
    pub refused: u64,
    /// Its sessions, if it is a live one.
    pub session: Option<SessionStatus>,
}

/// What a live feed has received since its configuration last changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// The router's own name, if it sent one.
    pub name: Option<String>,
    /// Sessions that came up.
    pub sessions: u64,
    /// Sessions and attempts that ended with an error.
    pub errors: u64,
    /// What the last one ended with, or what is waited for; none while a session is up.
    pub problem: Option<String>,
    /// Peers of the router that are up now.
    pub peers: usize,
    /// Routes or objects that are left from the session before.
    pub stale: usize,
    /// Messages.
    pub messages: u64,
    /// Routes or objects beyond `max_routes` or `max_objects`, which were refused.
    pub over_limit: u64,
    /// Malformed items that were skipped without ending the session.
    pub malformed: u64,
    /// Items that were skipped: unknown types, other tables, routes from inside the AS.
    pub ignored: u64,
}

impl From<&feeds::Status> for SessionStatus {
    fn from(status: &feeds::Status) -> Self {
        Self {
            name: status.name.clone(),
            sessions: status.sessions,
            errors: status.errors,
            problem: status.problem.clone(),
            peers: status.peers,
            stale: status.stale,
            messages: status.messages,
            over_limit: status.refused,
            malformed: status.malformed,
            ignored: status.ignored,
        }
    }
}

/// All feeds, for `nigh oracle print feeds`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeedsStatus {
    /// The feeds.
    pub feeds: Vec<FeedStatus>,
    /// As in [`Status`].
    pub bmp_unknown_peers: Option<u64>,
}

/// A router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterStatus {
    /// Its address.
    pub router: RouterId,
    /// Its name.
    pub name: Option<String>,
    /// Links that begin at it.
    pub links: usize,
    /// Networks of our own at it.
    pub networks: usize,
    /// Routes to networks of others that it has.
    pub routes: usize,
}

/// A link in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Where packets enter it.
    pub from: RouterId,
    /// Where they leave it.
    pub to: RouterId,
    /// Its number: that of the interface at its beginning.
    pub id: u32,
    /// Whether it is in use; not when its interface was set down.
    pub up: bool,
    /// Its properties.
    #[serde(flatten)]
    pub properties: LinkProperties,
}

/// Networks of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworksStatus {
    /// Which side.
    pub side: Side,
    /// The networks, in order of address; one with several routers has a row for each.
    pub rows: Vec<NetworkStatus>,
    /// How many more there are.
    pub more: usize,
}

/// A network at a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkStatus {
    /// The prefix.
    pub prefix: IpNet,
    /// The router.
    pub router: RouterId,
    /// The AS in which the route originates; 0 for our own.
    pub as_number: u32,
    /// Length of the AS path; 0 for our own.
    pub as_distance: u16,
}

/// The next hop of a router to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteStatus {
    /// The router to which.
    pub to: RouterId,
    /// The next hop; none where there is no path.
    pub next_hop: Option<RouterId>,
    /// The number of the link to it.
    pub link: Option<u32>,
    /// Whether it is given by hand instead of by weight.
    pub explicit: bool,
    /// The weight of the whole path.
    pub weight: Option<u64>,
    /// Links on the whole path.
    pub hops: Option<u32>,
}

/// The path from one address to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathStatus {
    /// The source.
    pub from: IpAddr,
    /// The destination.
    pub to: IpAddr,
    /// The router that the source is at.
    pub source: RouterId,
    /// Why it is that router, in a few words.
    pub source_is: String,
    /// The links of the path inside the network, the first one first.
    pub links: Vec<LinkStatus>,
    /// The router at which the path leaves the network, or at which the destination is.
    pub exit: Option<RouterId>,
    /// Whether the destination is in the network.
    pub internal: bool,
    /// The properties of the path; none where there is no path.
    pub properties: Option<PathValues>,
    /// Its cost by each metric.
    pub costs: Vec<CostStatus>,
}

/// Properties of a path, as JSON can hold them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathValues {
    /// Mbit/s of the narrowest link; none within one router, where nothing is narrow.
    pub min_bandwidth_mbit: Option<f64>,
    /// Milliseconds.
    pub latency_ms: f64,
    /// Links inside the network.
    pub internal_hops: u32,
    /// The AS in which the route originates.
    pub as_number: u32,
    /// ASes beyond the exit.
    pub as_distance: u32,
    /// Sum of the weights.
    pub weight: u64,
    /// That of the most congested link.
    pub congestion: f64,
    /// Share of packets lost.
    pub loss: f64,
}

impl From<topo::PathProperties> for PathValues {
    fn from(path: topo::PathProperties) -> Self {
        Self {
            min_bandwidth_mbit: path.min_bandwidth.is_finite().then_some(path.min_bandwidth),
            latency_ms: path.latency,
            internal_hops: path.internal_hops,
            as_number: path.as_number,
            as_distance: path.as_distance,
            weight: path.weight,
            congestion: path.congestion,
            loss: path.loss,
        }
    }
}

/// The cost of a path by one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostStatus {
    /// The metric's name.
    pub metric: String,
    /// The cost with adjustments; none where the path is not known.
    pub cost: Option<f64>,
    /// The rank of the cost among all costs from this source: 0 is the best.
    pub rank: Option<u16>,
}

/// What `dump` has written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DumpStatus {
    /// The main file in the format `oracle.conf`.
    pub oracle_conf: PathBuf,
    /// The file in TOML.
    pub file: PathBuf,
    /// What one of the formats cannot express and so omits, a sentence each.
    pub warnings: Vec<String>,
}
