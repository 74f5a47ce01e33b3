//! Requests to the running oracle over the daemon's control socket.
//!
//! Changes are in force when they are answered, and last until the next reload or start, which puts
//! the files of the configuration in force again; `dump` writes the changed network into files.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, path::PathBuf, str::FromStr};
use topo::{ExternalPath, LinkProperties};

/// A router as an operator names it: by its address or by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouterName(pub String);

impl FromStr for RouterName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RouterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A link as an operator names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkName {
    /// Where packets enter it.
    pub from: RouterName,
    /// Where they leave it.
    pub to: RouterName,
    /// Its number, where several links join the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Whether the link in the other direction is meant too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub both: bool,
}

/// The side of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Our own networks, where requests come from.
    Internal,
    /// Networks of others, beyond exit routers.
    External,
}

/// A property of a link that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Property {
    /// Mbit/s.
    Bandwidth,
    /// Milliseconds.
    Latency,
    /// The internal routing protocol's metric.
    Weight,
    /// As its source gives it.
    Congestion,
    /// Share of packets lost, from 0 to 1.
    Loss,
}

/// One request, as a JSON object on the control socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The routers.
    Routers,
    /// The links; of one router where one is named.
    Links {
        /// The router at which they begin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        router: Option<RouterName>,
    },
    /// The networks of one side.
    Networks {
        /// Which side.
        side: Side,
        /// Only those in this prefix.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<IpNet>,
        /// How many rows at most.
        count: usize,
    },
    /// The next hops of a router to others.
    Route {
        /// The router that forwards.
        router: RouterName,
        /// The router to which; all where none is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<RouterName>,
    },
    /// The path from one address to another, with its properties and costs.
    Path {
        /// Where it begins: an address of a client.
        from: IpAddr,
        /// Where it ends.
        to: IpAddr,
    },
    /// The threads that answer.
    Threads,
    /// The sources of the topology.
    Feeds,
    /// The metrics.
    Metrics,
    /// Sets a property of a link.
    SetLink {
        /// The link.
        #[serde(flatten)]
        link: LinkName,
        /// The property.
        property: Property,
        /// Its value, in the property's unit.
        value: f64,
    },
    /// Sets all links of an interface down or up.
    SetInterface {
        /// The router.
        router: RouterName,
        /// The interface's number.
        interface: u32,
        /// Whether it is to be up.
        up: bool,
    },
    /// Changes the expression of a metric.
    SetMetric {
        /// Its name.
        name: String,
        /// The expression.
        cost: String,
    },
    /// Creates a router.
    CreateRouter {
        /// Its address.
        address: IpAddr,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Creates a link.
    CreateLink {
        /// The link.
        #[serde(flatten)]
        link: LinkName,
        /// Its properties.
        properties: LinkProperties,
    },
    /// Creates a network.
    CreateNetwork {
        /// The prefix.
        prefix: IpNet,
        /// The router to which it is attached, or by which it is reached.
        router: RouterName,
        /// The path beyond the router; none for an internal network.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beyond: Option<ExternalPath>,
    },
    /// Deletes a router.
    DeleteRouter {
        /// The router.
        router: RouterName,
    },
    /// Deletes a link.
    DeleteLink(LinkName),
    /// Deletes a network.
    DeleteNetwork {
        /// Which side.
        side: Side,
        /// The prefix.
        prefix: IpNet,
        /// The router to which it is attached, or by which it is reached.
        router: RouterName,
    },
    /// Reads the files of the topology again; changes over this socket are discarded.
    Reload,
    /// Writes the topology in force into files.
    Dump {
        /// The folder, an absolute path.
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_back_as_written() {
        let name = |text: &str| RouterName(text.to_owned());
        let link = LinkName { from: name("a"), to: name("10.0.0.2"), id: None, both: true };
        for (request, text) in [
            (Request::Routers, r#"{"do":"routers"}"#),
            (
                Request::Networks { side: Side::External, within: None, count: 5 },
                r#"{"do":"networks","side":"external","count":5}"#,
            ),
            (
                Request::SetLink { link: link.clone(), property: Property::Loss, value: 0.5 },
                r#"{"do":"set-link","from":"a","to":"10.0.0.2","both":true,"property":"loss","value":0.5}"#,
            ),
            (
                Request::DeleteLink(link),
                r#"{"do":"delete-link","from":"a","to":"10.0.0.2","both":true}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
        }
        assert!(serde_json::from_str::<Request>(r#"{"do":"routers!"}"#).is_err());
    }
}
