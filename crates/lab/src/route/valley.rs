//! Paths as ASes choose them: routes of customers before those of peers before those of providers, then
//! the fewest ASes, then the least weight inside them (Gao and Rexford, "Stable Internet routing without
//! global coordination", 2001).
//!
//! An AS advertises all its routes to customers, to peers and providers only its own and its customers'. So a path
//! goes up to providers, then over at most one link between peers, then down to customers. Links without
//! relation are inside an AS, and its routers share what they know.
//!
//! Two small parts of the network decide. What is above the destination ([`Valley::above`]) has a route
//! by customers: providers of it, their providers, and so on. What is above the source
//! ([`Valley::below`]) is all that it can hear of: each of these has its route by customers, or else by
//! a peer of it that has one, or else by a provider of it. A router's few providers and peers come first
//! among its links, so that customers of large ones need not be inspected.

use super::View;
use super::cache::{Cache, Hops};
use crate::NodeId;
use crate::network::Relation;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How good a route is: the lowest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) class: Class,
    ases: u32,
    weight: u64,
}

/// From whom a route was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// From nobody or a customer.
    Customer,
    Peer,
    Provider,
}

impl Rank {
    /// The route to a router itself.
    pub(super) const OWN: Self = Self { class: Class::Customer, ases: 0, weight: 0 };

    /// What this route of the far end is to the near one of a link; `None` if it is not advertised.
    pub(super) fn over(self, relation: Relation, weight: u32) -> Option<Self> {
        let class = match relation {
            Relation::None => {
                return Some(Self { weight: self.weight + u64::from(weight), ..self });
            }
            Relation::Provider => Class::Provider,
            _ if self.class != Class::Customer => return None,
            Relation::Peer => Class::Peer,
            Relation::Customer => Class::Customer,
        };
        Some(Self { class, ases: self.ases + 1, ..self })
    }
}

/// A link that a search saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    from: NodeId,
    to: NodeId,
    relation: Relation,
    weight: u32,
}

/// The searches. They keep their memory for the next time.
#[derive(Debug, Default)]
pub(super) struct Valley {
    ranks: FxHashMap<NodeId, Rank>,
    queue: BinaryHeap<Reverse<(Rank, NodeId)>>,
    /// In order of near ends, when a search is over.
    seen: Vec<Seen>,
    /// The same in order of far ends.
    back: Vec<Seen>,
    /// Routers that the source can hear of and that have no route by customers, when they were found.
    reach: FxHashMap<NodeId, ()>,
    todo: Vec<NodeId>,
}

impl Valley {
    /// Finds the next hops at `from` and at all routers on best paths to `to`.
    pub(super) fn search(&mut self, view: &View<'_>, from: NodeId, to: NodeId, cache: &mut Cache) {
        self.ranks.clear();
        self.queue.clear();
        self.seen.clear();
        self.back.clear();
        self.reach.clear();
        self.above(view, to);
        if !self.ranks.contains_key(&from) {
            self.below(view, from);
        }
        if !self.ranks.contains_key(&from) {
            cache.insert(from, to, Hops::None);
            return;
        }
        self.seen.sort_unstable();
        self.seen.dedup();
        self.keep(view, from, to, cache);
    }

    /// Ranks all routers that have a route by customers.
    fn above(&mut self, view: &View<'_>, to: NodeId) {
        let Self { ranks, queue, seen, .. } = self;
        ranks.insert(to, Rank::OWN);
        queue.push(Reverse((Rank::OWN, to)));
        while let Some(Reverse((rank, node))) = queue.pop() {
            if ranks.get(&node) != Some(&rank) {
                continue;
            }
            view.heard_by(node, |from, relation, weight| {
                seen.push(Seen { from, to: node, relation, weight });
                let Some(next) = rank.over(relation, weight) else { return };
                let known = ranks.get(&from);
                if known.is_none_or(|&known| next < known) {
                    ranks.insert(from, next);
                    queue.push(Reverse((next, from)));
                }
            });
        }
    }

    /// Ranks what the source can hear of and has no route by customers, as far as it has a route.
    fn below(&mut self, view: &View<'_>, from: NodeId) {
        let Self { ranks, queue, seen, back, reach, todo } = self;
        todo.push(from);
        reach.insert(from, ());
        while let Some(node) = todo.pop() {
            view.to_above(node, |to, relation, weight| {
                let link = Seen { from: node, to, relation, weight };
                let known = ranks.contains_key(&to);
                if relation == Relation::Peer {
                    if known {
                        seen.push(link);
                        back.push(link);
                    }
                    return;
                }
                seen.push(link);
                back.push(link);
                if !known && reach.insert(to, ()).is_none() {
                    todo.push(to);
                }
            });
        }
        back.sort_unstable_by_key(|link| link.to);
        // First those with a route by peers: theirs is better, however long it is.
        for class in [Class::Peer, Class::Provider] {
            for link in &*back {
                if let Some(&rank) = ranks.get(&link.to)
                    && let Some(next) = rank.over(link.relation, link.weight)
                    && next.class == class
                {
                    queue.push(Reverse((next, link.from)));
                }
            }
            while let Some(Reverse((rank, node))) = queue.pop() {
                // What has a rank has a better one: of a better class, or it left the queue before.
                if ranks.contains_key(&node) {
                    continue;
                }
                ranks.insert(node, rank);
                let first = back.partition_point(|link| link.to < node);
                for link in back.iter().skip(first).take_while(|link| link.to == node) {
                    if let Some(next) = rank.over(link.relation, link.weight)
                        && next.class == class
                    {
                        queue.push(Reverse((next, link.from)));
                    }
                }
            }
        }
    }

    /// Remembers the next hops of the source and of all routers on its best paths.
    fn keep(&mut self, view: &View<'_>, from: NodeId, to: NodeId, cache: &mut Cache) {
        let Self { ranks, seen, reach, todo, .. } = self;
        reach.clear();
        reach.insert(from, ());
        todo.push(from);
        let mut links = Vec::new();
        while let Some(node) = todo.pop() {
            let Some(&rank) = ranks.get(&node).filter(|_| node != to) else { continue };
            links.clear();
            let first = seen.partition_point(|link| link.from < node);
            for link in seen.iter().skip(first).take_while(|link| link.from == node) {
                let over =
                    ranks.get(&link.to).and_then(|rank| rank.over(link.relation, link.weight));
                if over == Some(rank) {
                    view.all_between(link.from, link.to, link.relation, |number, weight| {
                        // The weight of links between ASes does not count.
                        if link.relation != Relation::None || weight == link.weight {
                            links.push(number);
                        }
                    });
                    if reach.insert(link.to, ()).is_none() {
                        todo.push(link.to);
                    }
                }
            }
            links.sort_unstable();
            links.dedup();
            cache.insert(node, to, Hops::new(&links));
        }
    }

    /// How much memory the searches have taken.
    pub(super) fn bytes(&self) -> usize {
        let slots = self.ranks.capacity() * (size_of::<(NodeId, Rank)>() + 1)
            + self.reach.capacity() * (size_of::<NodeId>() + 1);
        slots * 8 / 7
            + self.queue.capacity() * size_of::<Reverse<(Rank, NodeId)>>()
            + (self.seen.capacity() + self.back.capacity()) * size_of::<Seen>()
            + self.todo.capacity() * size_of::<NodeId>()
    }
}
