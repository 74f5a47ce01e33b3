//! What can be asked of the running oracle over the daemon's control socket.
//!
//! Changes are in force when they are answered, and last until the next reload or start, which puts
//! the files of the configuration in force again; `dump` writes them down before.

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

/// Networks of which side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The network's own: where requests come from.
    Src,
    /// Those of others, beyond exit routers.
    Ext,
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
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
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
        /// How many rows at the most.
        count: usize,
    },
    /// Where a router sends what is for another.
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
    /// The state of everything.
    Status,
    /// Where the knowledge of the network comes from.
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
    /// Takes all links of a network card away or brings them back.
    SetNic {
        /// The router.
        router: RouterName,
        /// The card's number.
        nic: u32,
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
    /// Makes a router known.
    CreateRouter {
        /// Its address.
        address: IpAddr,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Makes a link known.
    CreateLink {
        /// The link.
        #[serde(flatten)]
        link: LinkName,
        /// Its properties.
        properties: LinkProperties,
    },
    /// Makes a network known.
    CreateNetwork {
        /// The prefix.
        prefix: IpNet,
        /// The router to which it is attached, or by which it is reached.
        router: RouterName,
        /// What lies beyond the router; none for a network of our own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beyond: Option<ExternalPath>,
    },
    /// Forgets a router.
    DeleteRouter {
        /// The router.
        router: RouterName,
    },
    /// Forgets a link.
    DeleteLink(LinkName),
    /// Forgets a network.
    DeleteNetwork {
        /// Which side.
        side: Side,
        /// The prefix.
        prefix: IpNet,
        /// The router to which it is attached, or by which it is reached.
        router: RouterName,
    },
    /// Reads the files of the topology again; what was changed over this socket is forgotten.
    Reload,
    /// Writes the topology in force down.
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
            (Request::Routers, r#"{"ask":"routers"}"#),
            (
                Request::Networks { side: Side::Ext, within: None, count: 5 },
                r#"{"ask":"networks","side":"ext","count":5}"#,
            ),
            (
                Request::SetLink { link: link.clone(), property: Property::Loss, value: 0.5 },
                r#"{"ask":"set-link","from":"a","to":"10.0.0.2","both":true,"property":"loss","value":0.5}"#,
            ),
            (
                Request::DeleteLink(link),
                r#"{"ask":"delete-link","from":"a","to":"10.0.0.2","both":true}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
        }
        assert!(serde_json::from_str::<Request>(r#"{"ask":"routers!"}"#).is_err());
    }
}
