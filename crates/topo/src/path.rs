//! Properties of links, of what lies beyond an exit, and of whole paths (*The P2P-Oracle Server*, section 4.5.5).

use crate::value::RouterId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Properties of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkProperties {
    /// Mbit/s.
    #[serde(rename = "bandwidth_mbit")]
    pub bandwidth: f64,
    /// Milliseconds.
    #[serde(rename = "latency_ms")]
    pub latency: f64,
    /// The internal routing protocol's metric.
    pub weight: u32,
    /// In the unit of its source.
    pub congestion: f64,
    /// Share of packets lost, from 0 to 1.
    pub loss: f64,
}

/// Names one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkKey {
    /// Where packets enter the link.
    pub from: RouterId,
    /// Where they leave it.
    pub to: RouterId,
    /// Distinguishes parallel links: a network card's number, or a link id of BGP-LS.
    pub id: u32,
}

impl fmt::Display for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {} ({})", self.from, self.to, self.id)
    }
}

/// What a route at an exit router is like beyond it. Internal prefixes have 0 and 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ExternalPath {
    /// Number of ASes on the path.
    pub as_distance: u16,
    /// The AS in which the route originates; 0 where it is not known or not distinguished.
    pub as_number: u32,
}

/// Properties of a whole path, from a router to another or to a prefix beyond an exit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PathProperties {
    /// Mbit/s of the narrowest link; infinite within one router.
    pub min_bandwidth: f64,
    /// Milliseconds, the sum of all links.
    pub latency: f64,
    /// Number of links inside the network.
    pub internal_hops: u32,
    /// The AS in which the route originates, else 0.
    pub as_number: u32,
    /// Number of ASes beyond the exit.
    pub as_distance: u32,
    /// Sum of the weights of all links.
    pub weight: u64,
    /// That of the most congested link, 0 within one router.
    pub congestion: f64,
    /// Share of packets lost on all links together.
    pub loss: f64,
}

impl PathProperties {
    /// The path from a router to itself.
    pub const HERE: Self = Self {
        min_bandwidth: f64::INFINITY,
        latency: 0.0,
        internal_hops: 0,
        as_number: 0,
        as_distance: 0,
        weight: 0,
        congestion: 0.0,
        loss: 0.0,
    };

    /// The same path with one more link at its end.
    #[must_use]
    pub fn with_link(&self, link: &LinkProperties) -> Self {
        Self {
            min_bandwidth: self.min_bandwidth.min(link.bandwidth),
            latency: self.latency + link.latency,
            internal_hops: self.internal_hops + 1,
            weight: self.weight + u64::from(link.weight),
            congestion: self.congestion.max(link.congestion),
            loss: 1.0 - (1.0 - self.loss) * (1.0 - link.loss),
            ..*self
        }
    }

    /// The same path, continued beyond the exit at its end.
    #[must_use]
    pub fn with_external(&self, path: ExternalPath) -> Self {
        Self { as_number: path.as_number, as_distance: u32::from(path.as_distance), ..*self }
    }
}
