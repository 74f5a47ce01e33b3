//! Longest-prefix match, graph, shortest paths, path properties and topology loaders.
//!
//! An operator's network as the oracle sees it: routers and directed links between them, the prefixes
//! that are attached to its own routers, and the prefixes that its exit routers have heard of from
//! other networks. Nothing is known of the way beyond an exit but its length in ASes and its origin.
//!
//! - [`change`] what can be told about the network, piece by piece, by several feeds at a time.
//! - [`builder`] collects it and makes [`view`]s: immutable snapshots for many readers.
//! - [`graph`], [`tree`]: routers, links and the shortest paths between them.
//! - [`group`]: prefixes that nothing tells apart. A question about a prefix is one about its group.
//! - [`lpm`]: from an address to its group.
//! - [`measured`]: what stations say of a link.
//! - [`load`], [`dump`]: files about the network, read and written.
//! - [`generate`]: networks made by rule, the seed's among them.
#![forbid(unsafe_code)]

pub mod builder;
pub mod change;
pub mod dump;
pub mod generate;
pub mod graph;
pub mod group;
pub mod load;
pub mod lpm;
pub mod measured;
pub mod options;
pub mod path;
pub mod tree;
pub mod value;
pub mod view;

pub use builder::{Builder, FeedCounts, Topology};
pub use change::{Change, Refusal};
pub use graph::{Graph, Link, RouterInfo};
pub use group::{Exit, Group, Groups};
pub use measured::{MeasuredLatency, MeasuredLink};
pub use options::{AsInterest, ExitChoice, Options};
pub use path::{ExternalPath, LinkKey, LinkProperties, PathProperties};
pub use tree::Tree;
pub use value::{Feed, GroupId, Mark, RouterId, RouterIndex};
pub use view::View;

pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
