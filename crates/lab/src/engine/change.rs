//! Changes of the network while packets are in it.
//!
//! A change takes effect at once for links: a link that goes down carries nothing that comes to it from
//! then on, and says nothing about it. Routing knows it later, after the time of convergence; until
//! then packets are still sent there and lost, as in life. From then on they take another path, or the
//! node that has none left says that it has no route.
//!
//! Packets that are on a run of links when something changes are inspected when their timer ends: one
//! that would have come to a link while it was down is lost, every other goes on from there by what
//! holds then.

use std::{collections::VecDeque, net::IpAddr};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Change, Engine, EventKind, Reason, in_flight::Progress};
use wire::IpNet;

use crate::{LinkId, Nanos, Network, NodeId};

/// Why something cannot change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The network has no such link.
    #[error("there is no link {link}: the network has {links}")]
    NoLink {
        /// The number that was given.
        link: u32,
        /// Links that there are.
        links: u32,
    },
    /// The network has no such node.
    #[error("there is no node {node}: the network has {nodes}")]
    NoNode {
        /// The number that was given.
        node: u32,
        /// Nodes that there are.
        nodes: u32,
    },
    /// A link cannot be changed in both directions.
    #[error("link {0} has no reverse direction")]
    NoWayBack(u32),
}

/// A time during which something was down.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from: Nanos,
    until: Nanos,
    reason: Reason,
}

/// What is down, and what routing does not know yet.
#[derive(Debug, Default)]
pub(super) struct Changes {
    nodes_down: FxHashSet<NodeId>,
    /// The last outage of each link that had one.
    outages: FxHashMap<LinkId, Outage>,
    /// When routing hears of what, in order.
    news: VecDeque<(Nanos, LinkId, bool)>,
    /// Where nodes let nothing pass to.
    prohibited: FxHashMap<NodeId, Vec<IpNet>>,
}

impl Changes {
    /// When routing next hears of something.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.news.front().map(|&(at, ..)| at)
    }

    /// The nodes that are down.
    pub(super) fn nodes_down(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes_down.iter().copied()
    }

    /// Whether a node is down.
    pub(super) fn is_down(&self, node: NodeId) -> bool {
        !self.nodes_down.is_empty() && self.nodes_down.contains(&node)
    }

    /// Whether a node does not let packets pass to an address.
    pub(super) fn prohibits(&self, node: NodeId, address: IpAddr) -> bool {
        let lists = &self.prohibited;
        !lists.is_empty()
            && lists.get(&node).is_some_and(|list| list.iter().any(|net| net.contains(&address)))
    }

    /// Whether one of a link's ends is down.
    pub(super) fn end_is_down(&self, network: &Network, link: LinkId) -> bool {
        !self.nodes_down.is_empty()
            && (self.is_down(network.from(link)) || self.is_down(network.to(link)))
    }
}

impl Engine {
    /// Changes something from now on.
    ///
    /// # Errors
    /// When there is no such thing.
    pub fn apply(&mut self, now: Nanos, change: Change) -> Result<(), ChangeError> {
        self.catch_up(now);
        match change {
            Change::Link { link, both_ways, settings } => {
                let links = self.network.links();
                if link.0 >= links {
                    return Err(ChangeError::NoLink { link: link.0, links });
                }
                let back = match self.network.reverse(link) {
                    None if both_ways => return Err(ChangeError::NoWayBack(link.0)),
                    back => back.filter(|_| both_ways),
                };
                for link in [Some(link), back].into_iter().flatten() {
                    let was_up = self.carries(link);
                    let effect = self.effect(link);
                    settings.apply(&mut self.effects[effect as usize].settings);
                    self.note(now, link, was_up, Reason::LinkDown);
                }
            }
            Change::Prohibit { node, prefix, prohibited } => {
                self.check_node(node)?;
                let list = self.changes.prohibited.entry(node).or_default();
                list.retain(|net| *net != prefix.trunc());
                if prohibited {
                    list.push(prefix.trunc());
                }
            }
            Change::Node { node, up } => {
                self.check_node(node)?;
                let out: Vec<_> = self.network.links_of(node).collect();
                let links = out.iter().filter_map(|&link| self.network.reverse(link));
                let links: Vec<_> = links.chain(out.iter().copied()).collect();
                let were_up: Vec<_> = links.iter().map(|&link| self.carries(link)).collect();
                if up {
                    self.changes.nodes_down.remove(&node);
                } else {
                    self.changes.nodes_down.insert(node);
                }
                for (link, was_up) in links.into_iter().zip(were_up) {
                    self.note(now, link, was_up, Reason::NodeDown);
                }
            }
        }
        self.forget_paths();
        self.events.add(now, EventKind::Changed(change));
        Ok(())
    }

    fn check_node(&self, node: NodeId) -> Result<(), ChangeError> {
        let nodes = self.network.nodes();
        if node.0 < nodes { Ok(()) } else { Err(ChangeError::NoNode { node: node.0, nodes }) }
    }

    /// Whether a link carries packets.
    fn carries(&self, link: LinkId) -> bool {
        self.settings(link).up && !self.changes.end_is_down(&self.network, link)
    }

    /// Takes note of a link that went down or came up, if it did.
    fn note(&mut self, now: Nanos, link: LinkId, was_up: bool, reason: Reason) {
        let up = self.carries(link);
        if up == was_up {
            return;
        }
        if up {
            if let Some(outage) = self.changes.outages.get_mut(&link) {
                outage.until = now;
            }
        } else {
            let outage = Outage { from: now, until: Nanos(u64::MAX), reason };
            self.changes.outages.insert(link, outage);
        }
        // Nobody routes over wires but those who are joined by them.
        if !self.is_wire(link) {
            self.changes.news.push_back((now + self.options.convergence, link, up));
        }
    }

    /// Routing hears of what happened so long ago that it knows by now.
    pub(super) fn converge(&mut self, now: Nanos) {
        let mut heard = false;
        while let Some(&(at, link, up)) = self.changes.news.front()
            && at <= now
        {
            self.changes.news.pop_front();
            self.router.set_usable(link, up);
            self.events.add(at, EventKind::Routed { link, usable: up });
            heard = true;
        }
        // Once for all of it: that is a walk over all that is planned.
        if heard {
            self.forget_paths();
        }
    }

    /// Informs routing of the links that are down from the start.
    pub(super) fn begin_routing(&mut self) {
        if self.network.kinds().iter().all(|kind| kind.settings.up) {
            return;
        }
        for link in (0..self.network.links()).map(LinkId) {
            if !self.network.settings(link).up {
                self.router.set_usable(link, false);
            }
        }
    }

    /// Whether a packet came to a link while that was down, on the leg that ends now.
    pub(super) fn lost_on_leg(&self, progress: &Progress) -> Option<Reason> {
        let path = self.paths.get(progress.path);
        let leg = path.hops.get(usize::from(progress.from)..usize::from(progress.stop))?;
        leg.iter().find_map(|hop| {
            let outage = self.changes.outages.get(&hop.link)?;
            let came = progress.began + (hop.before - path.before(progress.from));
            (outage.from <= came && came < outage.until).then_some(outage.reason)
        })
    }
}
