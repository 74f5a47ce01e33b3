//! The links that routing may use.

use crate::network::{KindId, Network, Relation};
use crate::{LinkId, NodeId};
use rustc_hash::FxHashSet;

/// A network without the links that routing takes for down.
pub(super) struct View<'n> {
    pub(super) network: &'n Network,
    pub(super) unusable: &'n FxHashSet<LinkId>,
}

impl View<'_> {
    fn usable(&self, link: LinkId) -> bool {
        self.unusable.is_empty() || !self.unusable.contains(&link)
    }

    /// The kind of the link back of one of that kind that leaves a node, if it may be used.
    fn kind_back(&self, node: NodeId, link: LinkId, kind: KindId) -> Option<KindId> {
        if self.unusable.is_empty()
            && let Some(mirror) = self.network.mirror(kind)
        {
            return Some(mirror);
        }
        let back = self.network.reverse_from(node, link)?;
        self.usable(back).then(|| self.network.kind_of(back))
    }

    /// The links that leave a node: number, far end, weight.
    pub(super) fn forward(&self, node: NodeId, mut give: impl FnMut(LinkId, NodeId, u64)) {
        for hop in self.network.hops(node) {
            if self.usable(hop.link) {
                give(hop.link, hop.to, self.network.kind_at(hop.kind).weight.into());
            }
        }
    }

    /// The links that lead to a node: near end, weight.
    pub(super) fn back(&self, node: NodeId, mut give: impl FnMut(NodeId, u64)) {
        for hop in self.network.hops(node) {
            if let Some(kind) = self.kind_back(node, hop.link, hop.kind) {
                give(hop.to, self.network.kind_at(kind).weight.into());
            }
        }
        for link in self.network.one_way_to(node).filter(|&link| self.usable(link)) {
            give(self.network.from(link), self.network.weight(link).into());
        }
    }

    /// The links that lead to a node from its AS and its providers: near end, what the node is to that,
    /// weight.
    pub(super) fn heard_by(&self, node: NodeId, mut give: impl FnMut(NodeId, Relation, u32)) {
        for hop in self.network.hops(node) {
            let relation = self.network.kind_at(hop.kind).relation;
            if relation > Relation::Provider {
                break;
            }
            if let Some(kind) = self.kind_back(node, hop.link, hop.kind) {
                give(hop.to, relation.mirrored(), self.network.kind_at(kind).weight);
            }
        }
        for link in self.network.one_way_to(node).filter(|&link| self.usable(link)) {
            let kind = self.network.kind(link);
            if matches!(kind.relation, Relation::None | Relation::Customer) {
                give(self.network.from(link), kind.relation, kind.weight);
            }
        }
    }

    /// The links that leave a node to its AS, its providers and its peers: far end, what it is to the
    /// node, weight.
    pub(super) fn to_above(&self, node: NodeId, mut give: impl FnMut(NodeId, Relation, u32)) {
        for hop in self.network.hops(node) {
            let kind = self.network.kind_at(hop.kind);
            if kind.relation > Relation::Peer {
                break;
            }
            if self.usable(hop.link) {
                give(hop.to, kind.relation, kind.weight);
            }
        }
    }

    /// The links from one node to another of that relation: number, weight.
    pub(super) fn all_between(
        &self,
        from: NodeId,
        to: NodeId,
        relation: Relation,
        mut give: impl FnMut(LinkId, u32),
    ) {
        for link in self.network.between(from, to, relation).map(LinkId) {
            if self.usable(link) {
                give(link, self.network.weight(link));
            }
        }
    }
}
