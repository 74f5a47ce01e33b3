//! Longest-prefix match, graph, shortest paths, path properties and topology loaders.
//!
//! An operator's network as the oracle sees it: routers and directed links between them, the prefixes
//! that are attached to its own routers, and the prefixes that its exit routers have learned from
//! other networks. Of the path beyond an exit only its length in ASes and its origin are known.
//!
//! - [`change`]: what a feed can report of the network; there may be several feeds at a time.
//! - [`builder`]: collects it and makes [`view`]s: immutable snapshots for many readers.
//! - [`graph`], [`tree`]: routers, links and the shortest paths between them.
//! - [`group`]: prefixes with the same exits and paths. A question about a prefix is one about its group.
//! - [`lpm`]: from an address to its group.
//! - [`measured`]: what stations measured of a link.
//! - [`load`], [`dump`]: files about the network, read and written.
//! - [`generate`]: networks made by rule, among them the test networks of *The P2P-Oracle Server* (I.
//!   Poese, diploma thesis, TU Berlin, 2009), the report whose cost and file format (`oracle.conf`) nigh
//!   takes over.
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
