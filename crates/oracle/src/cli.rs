//! `nigh oracle ...`: the command line, and the lines of the console.
//!
//! Both have one grammar and one help: the console reads a line with the same parser. Each operation
//! is one request over the control socket and one answer.

use crate::{
    control::{LinkName, Property, Request, RouterName, Side},
    status::{self, MetricStatus, RouterStatus},
};
use clap::{Args, Subcommand, ValueEnum};
use ipnet::IpNet;
use job::command::{AnswerError, ControlCommand, read};
use serde_json::Value;
use std::{net::IpAddr, path::PathBuf};
use topo::{ExternalPath, LinkProperties};

/// `nigh oracle ...`; `T` are the options that select the daemon.
#[derive(Clone, Debug, Subcommand)]
pub enum Command<T: Args> {
    /// A request to the daemon over its control socket.
    #[command(flatten)]
    Operation(Operation<T>),
    /// A request to an oracle over the network, as clients send it.
    #[command(flatten)]
    Client(crate::client::Command),
}

/// A request to the daemon, by a command or by a line of the console.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Operation<T: Args> {
    /// Show routers, links, networks, routes, paths, threads, feeds, metrics
    #[command(subcommand_required = true, arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle print networks internal")]
    Print {
        /// What to show.
        #[command(subcommand)]
        what: Print,
        /// Which daemon to ask, and how.
        #[command(flatten)]
        daemon: T,
    },
    /// Change a property of a link, an interface or a metric
    ///
    /// The change is in force when the command returns, until the next reload or restart.
    #[command(subcommand_required = true, arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle set link 10.0.0.1 10.0.0.2 bandwidth 100Mbit")]
    Set {
        /// What to change.
        #[command(subcommand)]
        what: Set,
        /// Which daemon to ask, and how.
        #[command(flatten)]
        daemon: T,
    },
    /// Create a router, link or network
    ///
    /// The change is in force when the command returns, until the next reload or restart.
    #[command(subcommand_required = true, arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle create router 10.0.0.9 --name leipzig")]
    Create {
        /// What to create.
        #[command(subcommand)]
        what: Create,
        /// Which daemon to ask, and how.
        #[command(flatten)]
        daemon: T,
    },
    /// Delete a router, link or network
    ///
    /// The change is in force when the command returns, until the next reload or restart.
    #[command(subcommand_required = true, arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle delete network internal 192.0.2.0/24 10.0.0.9")]
    Delete {
        /// What to delete.
        #[command(subcommand)]
        what: Delete,
        /// Which daemon to ask, and how.
        #[command(flatten)]
        daemon: T,
    },
    /// Read the topology files again; changes by set, create and delete are discarded
    #[command(after_help = "Example:\n  nigh oracle reload")]
    Reload {
        /// Which daemon to ask, and how.
        #[command(flatten)]
        daemon: T,
    },
    /// Write the topology in force into a folder, in TOML and in the format oracle.conf
    ///
    /// The daemon writes it, with its permissions. The files can be named in [oracle.topology] as they are.
    #[command(arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle dump /var/lib/nigh/dump")]
    Dump {
        /// The folder, created when it does not exist
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Which daemon to ask, and how.
        #[command(flatten)]
        daemon: T,
    },
}

/// `print ...`
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Print {
    /// Print all routers
    #[command(after_help = "Example:\n  nigh oracle print routers")]
    Routers,
    /// Print all links, or those of a router
    #[command(after_help = "Example:\n  nigh oracle print links 10.0.0.1")]
    Links {
        /// Address or name of the router at which they begin
        router: Option<RouterName>,
    },
    /// Print internal networks (our own) or external ones (those of others)
    #[command(arg_required_else_help = true)]
    #[command(
        after_help = "Examples:\n  nigh oracle print networks internal\n  nigh oracle print networks external 193.0.0.0/16 --count 50"
    )]
    Networks {
        /// Which ones
        #[arg(value_enum, ignore_case = true)]
        side: SideArg,
        /// Only those in this prefix
        #[arg(value_name = "PREFIX")]
        within: Option<IpNet>,
        /// Rows to show at most
        #[arg(short = 'n', long, default_value_t = 1000, value_name = "ROWS")]
        count: usize,
    },
    /// Print the next hops of a router to other routers
    #[command(arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle print route 10.0.0.1 10.8.0.1")]
    Route {
        /// Address or name of the router that forwards
        router: RouterName,
        /// Address or name of one destination
        to: Option<RouterName>,
    },
    /// Print the path from an address to another: hops, properties, costs
    #[command(arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle print path 130.149.1.7 8.8.8.8")]
    Path {
        /// Address of the source
        from: IpAddr,
        /// Address of the destination
        to: IpAddr,
    },
    /// Print the threads that answer, with their counters
    #[command(after_help = "Example:\n  nigh oracle print threads")]
    Threads,
    /// Print the sources of the topology: files, sessions, stations, the console
    #[command(after_help = "Example:\n  nigh oracle print feeds")]
    Feeds,
    /// Print the metrics and their expressions
    #[command(after_help = "Example:\n  nigh oracle print metrics")]
    Metrics,
}

/// `set ...`
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Set {
    /// Change a property of a link: bandwidth, latency, weight, congestion, loss
    #[command(arg_required_else_help = true)]
    #[command(
        after_help = "Examples:\n  nigh oracle set link 10.0.0.1 10.0.0.2 bandwidth 100Mbit\n  nigh oracle set link berlin munich weight 20 --both"
    )]
    Link {
        /// The link.
        #[command(flatten)]
        link: LinkArgs,
        /// The property
        #[arg(value_enum, ignore_case = true)]
        property: Property,
        /// 100Mbit, 5ms, a whole number, the source's unit, 1%; a number alone is Mbit/s, ms or 0 to 1
        #[arg(allow_negative_numbers = true)]
        value: String,
    },
    /// Set an interface of a router up or down, with its links in both directions
    #[command(arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle set interface 10.0.0.1 2 down")]
    Interface {
        /// Address or name of the router
        router: RouterName,
        /// Number of the interface: the id of its link
        interface: u32,
        /// The new state
        #[arg(value_enum, ignore_case = true)]
        state: InterfaceState,
    },
    /// Change the expression of a metric
    ///
    /// Variables: min_bandwidth latency internal_hops as_number as_distance weight congestion loss.
    #[command(arg_required_else_help = true)]
    #[command(
        after_help = "Example:\n  nigh oracle set metric default \"8 * as_distance + latency\""
    )]
    Metric {
        /// Its name; `default` is that of oracle.cost
        name: String,
        /// The expression
        #[arg(num_args = 1.., required = true, allow_negative_numbers = true)]
        cost: Vec<String>,
    },
}

/// `create ...`
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Create {
    /// Create a router
    #[command(arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle create router 10.0.0.9 --name leipzig")]
    Router {
        /// Its address
        address: IpAddr,
        /// Its name, for people
        #[arg(long)]
        name: Option<String>,
    },
    /// Create a link from one router to another
    #[command(arg_required_else_help = true)]
    #[command(
        after_help = "Example:\n  nigh oracle create link 10.0.0.9 10.0.0.1 --bandwidth 1Gbit --latency 4ms --both"
    )]
    Link {
        /// The link.
        #[command(flatten)]
        link: LinkArgs,
        /// Its properties.
        #[command(flatten)]
        properties: PropertyArgs,
    },
    /// Create an internal network (our own) or an external one (beyond an exit router)
    #[command(arg_required_else_help = true)]
    #[command(
        after_help = "Examples:\n  nigh oracle create network internal 192.0.2.0/24 10.0.0.9\n  nigh oracle create network external 198.51.100.0/24 10.8.0.1 --as 64500 --distance 3"
    )]
    Network {
        /// Which side
        #[arg(value_enum, ignore_case = true)]
        side: SideArg,
        /// The prefix
        prefix: IpNet,
        /// Address or name of the router to which it is attached, or by which it is reached
        router: RouterName,
        /// For external: the AS in which the route originates
        #[arg(long = "as", value_name = "NUMBER", default_value_t = 0)]
        as_number: u32,
        /// For external: length of the AS path
        #[arg(long, value_name = "ASES", default_value_t = 1)]
        distance: u16,
    },
}

/// `delete ...`
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Delete {
    /// Delete a router
    #[command(arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle delete router 10.0.0.9")]
    Router {
        /// Its address or name
        router: RouterName,
    },
    /// Delete a link
    #[command(arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle delete link 10.0.0.9 10.0.0.1 --both")]
    Link {
        /// The link.
        #[command(flatten)]
        link: LinkArgs,
    },
    /// Delete an internal or external network
    #[command(arg_required_else_help = true)]
    #[command(after_help = "Example:\n  nigh oracle delete network internal 192.0.2.0/24 10.0.0.9")]
    Network {
        /// Which side
        #[arg(value_enum, ignore_case = true)]
        side: SideArg,
        /// The prefix
        prefix: IpNet,
        /// Address or name of its router
        router: RouterName,
    },
}

/// A link.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct LinkArgs {
    /// Address or name of the router where packets enter the link
    from: RouterName,
    /// Address or name of the router where they leave it
    to: RouterName,
    /// Number of the link, if several join the two
    #[arg(long)]
    id: Option<u32>,
    /// Also the link in the other direction
    #[arg(long)]
    both: bool,
}

impl LinkArgs {
    fn name(&self) -> LinkName {
        let Self { from, to, id, both } = self.clone();
        LinkName { from, to, id, both }
    }

    /// The link for people: `link a -> b (id 2), both directions`.
    fn shown(&self) -> String {
        let Self { from, to, id, both } = self;
        let id = id.map_or_else(String::new, |id| format!(" (id {id})"));
        let both = if *both { ", both directions" } else { "" };
        format!("link {from} -> {to}{id}{both}")
    }
}

/// Properties of a link.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct PropertyArgs {
    /// The rate
    #[arg(long, default_value = "1Gbit", value_parser = config::mbit)]
    bandwidth: f64,
    /// The delay
    #[arg(long, default_value = "1ms", value_parser = config::milliseconds)]
    latency: f64,
    /// The IGP metric
    #[arg(long, default_value_t = 1)]
    weight: u32,
    /// Congestion, in the unit of its source
    #[arg(long, default_value_t = 0.0)]
    congestion: f64,
    /// Share of packets lost
    #[arg(long, default_value = "0%", value_parser = config::share)]
    loss: f64,
}

/// Which side a network is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SideArg {
    /// Our own networks, which send requests
    Internal,
    /// External networks, beyond exit routers
    External,
}

impl From<SideArg> for Side {
    fn from(side: SideArg) -> Self {
        match side {
            SideArg::Internal => Self::Internal,
            SideArg::External => Self::External,
        }
    }
}

/// The state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InterfaceState {
    /// In use
    Up,
    /// Out of use
    Down,
}

/// The routers for a shell, by name or else by address; `ask` asks the oracle.
pub fn routers(ask: impl Fn(&Request) -> Option<Value>) -> Vec<String> {
    let answer = ask(&Request::Routers);
    let rows: Option<Vec<RouterStatus>> = answer.and_then(|it| serde_json::from_value(it).ok());
    let name = |row: RouterStatus| row.name.unwrap_or_else(|| row.router.to_string());
    rows.into_iter().flatten().map(name).collect()
}

/// The names of metrics for a shell; `ask` asks the oracle.
pub fn metrics(ask: impl Fn(&Request) -> Option<Value>) -> Vec<String> {
    let answer = ask(&Request::Metrics);
    let rows: Option<Vec<MetricStatus>> = answer.and_then(|it| serde_json::from_value(it).ok());
    rows.into_iter().flatten().map(|metric| metric.name).collect()
}

/// An operation cannot be requested.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A relative path, and nothing to which it is relative.
    #[error("the working directory is not known: {0}")]
    Folder(#[from] std::io::Error),
    /// A value that a property cannot have.
    #[error("`{0}`: {1}")]
    Value(String, String),
}

/// The value of a property in its unit, from a text that may have another one.
fn value_of(property: Property, text: &str) -> Result<f64, RequestError> {
    let value = match property {
        Property::Bandwidth => config::mbit(text).map_err(|error| error.to_string()),
        Property::Latency => config::milliseconds(text).map_err(|error| error.to_string()),
        Property::Loss => config::share(text).map_err(|error| error.to_string()),
        Property::Weight | Property::Congestion => {
            text.parse().map_err(|_| "expected a number".to_owned())
        }
    };
    value.map_err(|why| RequestError::Value(text.to_owned(), why))
}

impl<T: Args> Operation<T> {
    /// How the daemon is reached.
    pub fn daemon(&self) -> &T {
        match self {
            Self::Print { daemon, .. }
            | Self::Set { daemon, .. }
            | Self::Create { daemon, .. }
            | Self::Delete { daemon, .. }
            | Self::Reload { daemon }
            | Self::Dump { daemon, .. } => daemon,
        }
    }
}

impl<T: Args> ControlCommand for Operation<T> {
    type Request = Request;

    fn request(&self) -> Result<Request, job::Error> {
        Ok(match self {
            Self::Print { what, .. } => what.clone().request(),
            Self::Set { what, .. } => match what.clone() {
                Set::Link { link, property, value } => {
                    let value = value_of(property, &value)?;
                    Request::SetLink { link: link.name(), property, value }
                }
                Set::Interface { router, interface, state } => {
                    Request::SetInterface { router, interface, up: state == InterfaceState::Up }
                }
                Set::Metric { name, cost } => Request::SetMetric { name, cost: cost.join(" ") },
            },
            Self::Create { what, .. } => match what.clone() {
                Create::Router { address, name } => Request::CreateRouter { address, name },
                Create::Link { link, properties } => {
                    let PropertyArgs { bandwidth, latency, weight, congestion, loss } = properties;
                    let properties =
                        LinkProperties { bandwidth, latency, weight, congestion, loss };
                    Request::CreateLink { link: link.name(), properties }
                }
                Create::Network { side, prefix, router, as_number, distance } => {
                    let beyond = ExternalPath { as_distance: distance, as_number };
                    let beyond = (side == SideArg::External).then_some(beyond);
                    Request::CreateNetwork { prefix, router, beyond }
                }
            },
            Self::Delete { what, .. } => match what.clone() {
                Delete::Router { router } => Request::DeleteRouter { router },
                Delete::Link { link } => Request::DeleteLink(link.name()),
                Delete::Network { side, prefix, router } => {
                    Request::DeleteNetwork { side: side.into(), prefix, router }
                }
            },
            Self::Reload { .. } => Request::Reload,
            Self::Dump { folder, .. } => Request::Dump { folder: std::path::absolute(folder)? },
        })
    }

    fn render(&self, answer: &Value) -> Result<String, AnswerError> {
        Ok(match self {
            Self::Print { what, .. } => match what {
                Print::Routers => status::render_routers(&read::<Vec<_>>(answer)?),
                Print::Links { .. } => status::render_links(&read::<Vec<_>>(answer)?),
                Print::Networks { .. } => status::render_networks(&read(answer)?),
                Print::Route { .. } => status::render_routes(&read::<Vec<_>>(answer)?),
                Print::Path { .. } => status::render_path(&read(answer)?),
                Print::Threads => status::render_threads(&read::<Vec<_>>(answer)?),
                Print::Feeds => status::render_feeds(&read(answer)?),
                Print::Metrics => status::render_metrics(&read::<Vec<_>>(answer)?),
            },
            Self::Dump { .. } => status::render_dump(&read(answer)?),
            Self::Set { what, .. } => format!("{}\n", what.done()),
            Self::Create { what, .. } => format!("{}\n", what.done()),
            Self::Delete { what, .. } => format!("{}\n", what.done()),
            Self::Reload { .. } => "the topology files were read again\n".to_owned(),
        })
    }
}

impl Print {
    fn request(self) -> Request {
        match self {
            Self::Routers => Request::Routers,
            Self::Links { router } => Request::Links { router },
            Self::Networks { side, within, count } => {
                Request::Networks { side: side.into(), within, count }
            }
            Self::Route { router, to } => Request::Route { router, to },
            Self::Path { from, to } => Request::Path { from, to },
            Self::Threads => Request::Threads,
            Self::Feeds => Request::Feeds,
            Self::Metrics => Request::Metrics,
        }
    }
}

impl Set {
    /// The change that is now in force, as one line.
    fn done(&self) -> String {
        match self {
            Self::Link { link, property, value } => {
                let (name, unit) = match property {
                    Property::Bandwidth => ("bandwidth", " Mbit/s"),
                    Property::Latency => ("latency", " ms"),
                    Property::Weight => ("weight", ""),
                    Property::Congestion => ("congestion", ""),
                    Property::Loss => ("loss", ""),
                };
                // What was given with a unit already has it.
                let unit = if value.parse::<f64>().is_ok() { unit } else { "" };
                format!("{}: {name} {value}{unit}", link.shown())
            }
            Self::Interface { router, interface, state } => {
                let state = if *state == InterfaceState::Up { "up" } else { "down" };
                format!("interface {interface} of router {router}: {state}")
            }
            Self::Metric { name, cost } => format!("metric {name}: {}", cost.join(" ")),
        }
    }
}

impl Create {
    /// The change that is now in force, as one line.
    fn done(&self) -> String {
        match self {
            Self::Router { address, name: Some(name) } => {
                format!("router {address} ({name}): created")
            }
            Self::Router { address, name: None } => format!("router {address}: created"),
            Self::Link { link, .. } => format!("{}: created", link.shown()),
            Self::Network { prefix, router, .. } => {
                format!("network {prefix} at router {router}: created")
            }
        }
    }
}

impl Delete {
    /// The change that is now in force, as one line.
    fn done(&self) -> String {
        match self {
            Self::Router { router } => format!("router {router}: deleted"),
            Self::Link { link } => format!("{}: deleted", link.shown()),
            Self::Network { prefix, router, .. } => {
                format!("network {prefix} at router {router}: deleted")
            }
        }
    }
}
