//! Why a network cannot be built, and how large it can be.

use super::Relation;
use thiserror::Error;
use topo::IpNet;

/// Why a network cannot be built.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// That node was not made.
    #[error("there is no node {0}: only {1} were made")]
    NoNode(u32, u32),
    /// That link was not made.
    #[error("there is no such link")]
    NoLink,
    /// Nodes are numbered in 31 bits.
    #[error("a network has at most {} nodes", MOST_NODES)]
    TooManyNodes,
    /// Links are numbered in 32 bits.
    #[error("a network has less than {} directed links", u32::MAX)]
    TooManyLinks,
    /// Kinds are numbered in 16 bits.
    #[error("a network has at most {} kinds of links: round delays and weights", MOST_KINDS)]
    TooManyKinds,
    /// Names and entries are numbered in 32 bits.
    #[error("names or forwarding entries take more than 4 GB")]
    TooMuch,
    /// A link needs two ends.
    #[error("node {0} cannot be linked to itself")]
    Itself(u32),
    /// Paths must grow longer with each link.
    #[error("a link's weight is at least 1")]
    NoWeight,
    /// Files could not say this.
    #[error("there is no such link in words: {0}")]
    Unspeakable(String),
    /// What one end is to the other decides what that is to it.
    #[error("of a link, the far end is a {0:?} and the near end a {1:?}: these do not agree")]
    Relations(Relation, Relation),
    /// An entry takes a link of another node.
    #[error("the entry for {0} at node {1} takes a link that leaves node {2}")]
    Elsewhere(IpNet, u32, u32),
    /// Two entries for one prefix.
    #[error("node {0} has two entries for {1}")]
    TwoEntries(u32, IpNet),
    /// Two nodes have it.
    #[error("{0} is both at node {1} and at node {2}")]
    TwoOwners(IpNet, u32, u32),
    /// Names are shown in terminals.
    #[error("{0:?} cannot be a node's name: it has control characters")]
    Control(String),
    /// A node without a name is called that.
    #[error("node {0} cannot be called {1:?}: node {2}, which has no name, is called that")]
    NameTaken(u32, String, u32),
}

/// One less than the numbers of 31 bits.
pub(super) const MOST_NODES: u32 = (1 << 31) - 1;
/// The last number says that there is no link back.
pub(super) const MOST_KINDS: usize = u16::MAX as usize;
