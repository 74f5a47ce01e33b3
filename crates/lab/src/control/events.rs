//! Events of a running lab, as they occur.

use super::{Context, inspect::ReplyError};
use crate::{
    LinkId, Nanos, SettingsChange,
    engine::{self, Change, EventKind, Ledger, Reason},
};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Drops are reported as a sum once in this time.
const DROPS_EVERY: Nanos = Nanos(1_000_000_000);

/// Ways of ending that are part of every packet's life, or that hosts bring about all the time.
const USUAL: [Reason; 7] = [
    Reason::ToNode,
    Reason::Neighbour,
    Reason::Split,
    Reason::Fragmented,
    Reason::NotForNode,
    Reason::Address,
    Reason::TtlExceeded,
];

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, since the lab's start.
    pub at: Nanos,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// A link does something else.
    Link {
        /// `A-B` for both directions, `A>B` for one.
        link: String,
        /// What it does from now on.
        set: SettingsChange,
    },
    /// A node went down or came up.
    Node {
        /// Its name.
        node: String,
        /// Whether it is there.
        up: bool,
    },
    /// A node lets packets pass to a network, or not.
    Prohibit {
        /// Its name.
        node: String,
        /// The network.
        prefix: IpNet,
        /// Whether it does not.
        prohibited: bool,
    },
    /// Routing has converged after a change of a link.
    Routing {
        /// The link.
        link: String,
        /// Whether it can be used.
        usable: bool,
    },
    /// Packets were lost since the last event of this kind.
    Drops {
        /// Why.
        reason: String,
        /// How many.
        packets: u64,
    },
    /// More events occurred than are kept.
    Missed {
        /// Events that were skipped.
        events: u64,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.0 as f64 / 1e9;
        write!(f, "{seconds:10.3}  ")?;
        match &self.what {
            What::Link { link, set } => write!(f, "link {link} set {set}"),
            What::Node { node, up: true } => write!(f, "node {node} is up"),
            What::Node { node, up: false } => write!(f, "node {node} is down"),
            What::Prohibit { node, prefix, prohibited: true } => {
                write!(f, "node {node} prohibits {prefix}")
            }
            What::Prohibit { node, prefix, prohibited: false } => {
                write!(f, "node {node} no longer prohibits {prefix}")
            }
            What::Routing { link, usable: true } => write!(f, "routing uses {link} again"),
            What::Routing { link, usable: false } => write!(f, "routing avoids {link}"),
            What::Drops { reason, packets } => write!(f, "dropped {packets} packets: {reason}"),
            What::Missed { events } => write!(f, "{events} events were skipped"),
        }
    }
}

/// A client that follows events.
#[derive(Debug)]
pub(super) struct Follower {
    seen: u64,
    ledger: Ledger,
    counted: Nanos,
}

impl Follower {
    /// Begins now.
    pub(super) fn new(lab: &Context) -> Result<Self, ReplyError> {
        Ok(lab.handle().call(|engine, now| {
            let (_, seen) = engine.events_since(u64::MAX);
            Self { seen, ledger: engine.ledger().clone(), counted: now }
        })?)
    }

    /// What has happened since the last call.
    pub(super) fn next(&mut self, lab: &Context) -> Result<Vec<Event>, ReplyError> {
        let seen = self.seen;
        let (news, total, ledger, now) = lab.handle().call(move |engine, now| {
            let (news, total) = engine.events_since(seen);
            (news, total, engine.ledger().clone(), now)
        })?;
        let missed = (total - self.seen).saturating_sub(news.len() as u64);
        self.seen = total;
        let mut events: Vec<_> = news.iter().map(|news| event(lab, news)).collect();
        if missed > 0 {
            let at = news.first().map_or(now, |news| news.at);
            events.insert(0, Event { at, what: What::Missed { events: missed } });
        }
        if now.since(self.counted) >= DROPS_EVERY {
            for reason in Reason::ALL.iter().filter(|reason| !USUAL.contains(reason)) {
                let packets = ledger[*reason] - self.ledger[*reason];
                if packets > 0 {
                    let what = What::Drops { reason: reason.word().to_owned(), packets };
                    events.push(Event { at: now, what });
                }
            }
            (self.ledger, self.counted) = (ledger, now);
        }
        Ok(events)
    }
}

/// News with names instead of numbers.
fn event(lab: &Context, news: &engine::Event) -> Event {
    let both = |link: LinkId| lab.link_name(link).replace('>', "-");
    let what = match news.what {
        EventKind::Changed(Change::Link { link, both_ways, settings }) => {
            let link = if both_ways { both(link) } else { lab.link_name(link) };
            What::Link { link, set: settings }
        }
        EventKind::Changed(Change::Node { node, up }) => What::Node { node: lab.name(node), up },
        EventKind::Changed(Change::Prohibit { node, prefix, prohibited }) => {
            What::Prohibit { node: lab.name(node), prefix, prohibited }
        }
        EventKind::Routed { link, usable } => What::Routing { link: lab.link_name(link), usable },
    };
    Event { at: news.at, what }
}
