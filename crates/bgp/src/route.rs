//! Routes: what is to be announced, and with which attributes.

use crate::value::{Community, LargeCommunity};
use ipnet::IpNet;
use std::{collections::BTreeMap, sync::Arc};

/// The attributes of a route that an operator chooses; the others follow from the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// How often our AS number is put into AS_PATH again.
    pub prepend: u8,
    /// MULTI_EXIT_DISC, if any.
    pub med: Option<u32>,
    /// Communities, ascending, each once.
    pub communities: Vec<Community>,
    /// Large communities, ascending, each once.
    pub large_communities: Vec<LargeCommunity>,
}

impl Attributes {
    /// The same with one community more. What is there stays: a community is added to the set, never
    /// put in place of it, also if it is a well-known one (RFC 8642 section 4).
    pub fn with(mut self, community: Community) -> Self {
        if let Err(position) = self.communities.binary_search(&community) {
            self.communities.insert(position, community);
        }
        self
    }
}

/// Prefixes, each with its attributes.
pub type Routes = BTreeMap<IpNet, Arc<Attributes>>;
