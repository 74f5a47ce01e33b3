//! The control socket of a running lab: a Unix stream socket in /run/nigh-lab, mode 0600, one JSON
//! object a line in each direction.
//!
//! | request | answer |
//! |---|---|
//! | `{"do":"status"}` | [`Status`] |
//! | `{"do":"path","from":"pc","to":"server"}` | [`Path`] |
//! | `{"do":"link","link":"as1-as2"}` | [`LinkView`]s before and after; with `"set":{"loss":"1%"}` they differ |
//! | `{"do":"node","node":"as1","up":false}` | [`NodeView`] |
//! | `{"do":"links","sort":"bytes","limit":100}` | [`Links`] |
//! | `{"do":"nodes","first":0,"limit":100}` | [`Nodes`] |
//! | `{"do":"events"}` | `{"ok":{}}`, then one [`Event`] a line until either side ends |
//! | `{"do":"capture","what":"as1"}` | `{"ok":{}}`, then a pcapng file until either side ends |
//!
//! Answers are `{"ok":VALUE}` or `{"error":"sentence"}`. Names are looked up and answers are put together
//! beside the engine; it is asked between two packets for what only it knows. That includes a path: packets
//! wait while one is searched for that none has taken before.

mod capture;
mod choose;
pub mod cli;
mod events;
pub mod files;
mod find;
pub(crate) mod inspect;
mod log;
mod map;
pub mod names;
mod route;
mod server;
mod show;
mod view;

#[cfg(test)]
mod tests;

pub use ::control::{Answer, AskError};
pub use choose::ChooseError;
pub use events::{Event, What};
pub use find::{FindError, Finder, Meant};
pub use inspect::{Context, ReplyError};
pub use log::{EventLog, EventPage};
pub use map::MOST_DRAWN;
pub use server::Server;
pub use view::{
    HostView, LinkChange, LinkView, Links, Map, MapNode, NodeView, Nodes, Path, PathHop, Sort,
    Status, Totals,
};

use crate::SettingsChange;
use serde::{Deserialize, Serialize};

/// Most rows of one answer.
pub const MOST_ROWS: usize = 10_000;

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// How the lab is.
    Status {},
    /// The path of packets.
    Path {
        /// A host, a node or an address.
        from: String,
        /// A host, a node or an address.
        to: String,
    },
    /// What a link does, after it was changed if anything is to be set.
    Link {
        /// `A-B` for both directions, `A>B` for one.
        link: String,
        /// What to change.
        #[serde(default, skip_serializing_if = "SettingsChange::is_empty")]
        set: SettingsChange,
    },
    /// Whether a node is there, after it was changed if `up` is given.
    Node {
        /// Its name or one of its addresses.
        node: String,
        /// Whether it is to be there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up: Option<bool>,
    },
    /// The links that packets came to, and those that were changed.
    Links {
        /// What comes first.
        #[serde(default)]
        sort: Sort,
        /// Most rows.
        #[serde(default = "some_rows")]
        limit: usize,
        /// Whether links are listed as well that nothing has come to, in the order of their numbers.
        #[serde(default)]
        all: bool,
    },
    /// A part of all nodes.
    Nodes {
        /// The number of the first.
        #[serde(default)]
        first: u32,
        /// Most rows.
        #[serde(default = "some_rows")]
        limit: usize,
    },
    /// What happens from now on, one event a line.
    Events {},
    /// What passes a link or a node from now on, as a pcapng file.
    Capture {
        /// A node, or a link: `A-B` for both directions, `A>B` for one.
        what: String,
        /// Bytes that are kept of each packet.
        #[serde(default = "whole")]
        snap: u32,
        /// Packets after which it ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
        /// Seconds after which it ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<f64>,
    },
}

/// Bytes of a packet in a capture by default: all of them.
fn whole() -> u32 {
    262_144
}

/// Rows of an answer by default.
fn some_rows() -> usize {
    100
}

/// Reads a request from a line.
///
/// # Errors
/// A sentence, when it is none.
pub fn parse(line: &[u8]) -> Result<Request, String> {
    ::control::parse(line)
}
