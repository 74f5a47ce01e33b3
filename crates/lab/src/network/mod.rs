//! A simulated network: nodes, directed links between them, their names, addresses and forwarding
//! entries. It never changes.
//!
//! It is kept in one run of bytes, which is also its file: what [`Network::save`] writes and
//! [`Network::open`] maps. Its arrays are as narrow as their numbers allow (`column`), and what
//! follows from a number is not kept at all (`plan`):
//!
//! ```text
//! FirstLink   node 0 | node 1 | node 2 | ...                for each node where its links begin
//!               |        '------------.
//! To          node | node | node | node | node | ...        for each link where it leads to
//! KindOf      kind | kind | kind | kind | kind | ...        and its kind, of which there are few
//!                |
//! Kinds       settings, weight, relation | ...
//! ```
//!
//! The links of a node are in order of relation, then of the node they lead to. So the few links to
//! providers come before the many to customers, and the reverse path of a link is found by searching.
mod assemble;
mod build_error;
mod builder;
mod check;
mod column;
mod file;
mod kind;
mod layout;
mod plan;
mod prefixes;
mod storage;
#[cfg(test)]
mod tests;

use crate::{LinkId, LinkSettings, NodeId};
use column::{Column, partition_point};
use layout::{Layout, Section};
use prefixes::{Prefixes, left4};
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use storage::Storage;
use topo::{IpNet, Ipv4Net, Ipv6Net};

pub(crate) use assemble::{Edge, PrefixEntry, Source, from_source};
pub use build_error::BuildError;
pub use builder::{Builder, Draft};
pub use check::Wrong;
pub use file::{FormatError, OpenError};
pub use kind::{Kind, KindId, Relation};
pub use plan::{Naming, Plan};

/// The mirror of kinds whose links back differ, or have none.
const NO_MIRROR: u32 = u32::MAX;

/// Whose an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// It is an address of that node itself.
    Node(NodeId),
    /// It is in that network, which is behind that node.
    Prefix(NodeId, IpNet),
}

impl Owner {
    /// The node to which packets for the address go.
    pub fn node(self) -> NodeId {
        match self {
            Self::Node(node) | Self::Prefix(node, _) => node,
        }
    }
}

/// A directed link as its near node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) link: LinkId,
    pub(crate) to: NodeId,
    pub(crate) kind: KindId,
}

/// The network. Numbers of nodes and links that it does not have are mistakes of the caller; it answers
/// them with something, but does not panic.
#[derive(Debug)]
pub struct Network {
    bytes: Storage,
    layout: Layout,
    nodes: u32,
    links: u32,
    plan: Plan,
    naming: Naming,
    kinds: Vec<Kind>,
}

impl Network {
    /// How many nodes there are: their numbers are those below.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// How many directed links there are: their numbers are those below.
    pub fn links(&self) -> u32 {
        self.links
    }

    /// How many kinds of links there are.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    #[inline]
    fn get(&self, section: Section, index: usize) -> u32 {
        self.layout.column(section).get(&self.bytes, index)
    }

    fn column(&self, section: Section) -> Column {
        self.layout.column(section)
    }

    /// The links that leave a node, as numbers.
    #[inline]
    fn range(&self, node: NodeId) -> std::ops::Range<u32> {
        if node.0 >= self.nodes {
            return 0..0;
        }
        let at = node.0 as usize;
        self.get(Section::FirstLink, at)..self.get(Section::FirstLink, at + 1)
    }

    /// The links that leave a node, in order of relation, then of the nodes that they lead to.
    pub fn links_of(
        &self,
        node: NodeId,
    ) -> impl ExactSizeIterator<Item = LinkId> + DoubleEndedIterator + use<> {
        // A range of u32 does not have an exact size, one of usize does.
        let range = self.range(node);
        (range.start as usize..range.end as usize).map(|link| LinkId(link as u32))
    }

    /// The links that leave a node, with what is asked of each in searches.
    #[inline]
    pub(crate) fn hops(&self, node: NodeId) -> impl Iterator<Item = Hop> + '_ {
        let to = self.column(Section::To);
        let kind = self.column(Section::KindOf);
        self.range(node).map(move |link| Hop {
            link: LinkId(link),
            to: NodeId(to.get(&self.bytes, link as usize)),
            kind: KindId(kind.get(&self.bytes, link as usize) as u16),
        })
    }

    /// The node that a link leaves.
    pub fn from(&self, link: LinkId) -> NodeId {
        let first = self.column(Section::FirstLink);
        let nodes = self.nodes as usize;
        let after = partition_point(0, nodes, |at| first.get(&self.bytes, at) <= link.0);
        NodeId(after.saturating_sub(1) as u32)
    }

    /// The node that a link leads to.
    #[inline]
    pub fn to(&self, link: LinkId) -> NodeId {
        if link.0 < self.links { NodeId(self.get(Section::To, link.0 as usize)) } else { NodeId(0) }
    }

    /// The number of a link's kind.
    #[inline]
    pub(crate) fn kind_of(&self, link: LinkId) -> KindId {
        if link.0 < self.links {
            KindId(self.get(Section::KindOf, link.0 as usize) as u16)
        } else {
            KindId(0)
        }
    }

    /// What a link is like.
    #[inline]
    pub fn kind(&self, link: LinkId) -> &Kind {
        // A network with links has kinds, and each link one of them.
        &self.kinds[usize::from(self.kind_of(link).0)]
    }

    /// What links of that kind are like.
    #[inline]
    pub(crate) fn kind_at(&self, kind: KindId) -> &Kind {
        &self.kinds[usize::from(kind.0)]
    }

    /// What a link does to packets.
    pub fn settings(&self, link: LinkId) -> &LinkSettings {
        &self.kind(link).settings
    }

    /// What routing adds up along a path: at least 1.
    pub fn weight(&self, link: LinkId) -> u32 {
        self.kind(link).weight
    }

    /// What the far end of a link is to the near one.
    pub fn relation(&self, link: LinkId) -> Relation {
        self.kind(link).relation
    }

    /// Whether any link has the relation of its ends, so that valley-free paths mean something.
    pub fn has_relations(&self) -> bool {
        self.kinds.iter().any(|kind| kind.relation != Relation::None)
    }

    /// The links from one node to another with that relation, as numbers.
    pub(crate) fn between(
        &self,
        from: NodeId,
        to: NodeId,
        relation: Relation,
    ) -> std::ops::Range<u32> {
        let range = self.range(from);
        let key = |link: usize| {
            let link = LinkId(link as u32);
            (self.relation(link), self.to(link))
        };
        let (first, end) = (range.start as usize, range.end as usize);
        let start = partition_point(first, end, |link| key(link) < (relation, to));
        let end = partition_point(start, end, |link| key(link) <= (relation, to));
        start as u32..end as u32
    }

    /// The link back: of parallel links the first belongs to the first of the other direction, and so on.
    pub fn reverse(&self, link: LinkId) -> Option<LinkId> {
        self.reverse_from(self.from(link), link)
    }

    /// The link back of one that leaves that node.
    pub(crate) fn reverse_from(&self, from: NodeId, link: LinkId) -> Option<LinkId> {
        let (to, relation) = (self.to(link), self.relation(link));
        let rank = link.0.checked_sub(self.between(from, to, relation).start)?;
        let mut back = self.between(to, from, relation.mirrored());
        back.nth(rank as usize).map(LinkId)
    }

    /// The kind that all links back of this kind have, if they do.
    #[inline]
    pub(crate) fn mirror(&self, kind: KindId) -> Option<KindId> {
        match self.get(Section::Mirrors, usize::from(kind.0)) {
            NO_MIRROR => None,
            kind => Some(KindId(kind as u16)),
        }
    }

    /// The links to a node to which none leads back.
    pub(crate) fn one_way_to(&self, node: NodeId) -> impl Iterator<Item = LinkId> + '_ {
        let to = self.column(Section::OneWayTo);
        let from = if to.len == 0 { 0 } else { to.lower_bound(&self.bytes, node.0) };
        (from..to.len)
            .take_while(move |&at| to.get(&self.bytes, at) == node.0)
            .map(|at| LinkId(self.get(Section::OneWay, at)))
    }

    /// The first link from one node to another.
    #[cfg(test)]
    pub(crate) fn link_between(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        Relation::ALL
            .into_iter()
            .find_map(|relation| self.between(from, to, relation).next())
            .map(LinkId)
    }

    /// What a node is called.
    pub fn name(&self, node: NodeId) -> Cow<'_, str> {
        match self.column(Section::Named).position(&self.bytes, node.0) {
            Some(index) => Cow::Borrowed(self.given_name(index)),
            None => Cow::Owned(self.counted_name(node)),
        }
    }

    /// The name of the node at that index of `Named`.
    fn given_name(&self, index: usize) -> &str {
        let ends = self.column(Section::NameEnd);
        let from = index.checked_sub(1).map_or(0, |before| ends.get(&self.bytes, before));
        let to = ends.get(&self.bytes, index);
        let bytes = self.column(Section::NameBytes);
        let name = self.bytes.get(bytes.start + from as usize..bytes.start + to as usize);
        name.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or("")
    }

    /// What a node is called that was given no name.
    fn counted_name(&self, node: NodeId) -> String {
        let groups = self.column(Section::Group);
        let first = |group: usize| groups.get(&self.bytes, group);
        match partition_point(0, groups.len, |group| first(group) <= node.0) {
            0 => format!("n{}", node.0),
            number => match node.0 - first(number - 1) {
                0 => format!("as{number}"),
                rank => format!("as{number}.{rank}"),
            },
        }
    }

    /// The node with that name or that address.
    pub fn find(&self, text: &str) -> Option<NodeId> {
        if let Ok(address) = text.parse() {
            return self.owner(address).map(Owner::node);
        }
        let order = self.column(Section::ByName);
        let name = |index: usize| self.given_name(order.get(&self.bytes, index) as usize);
        let index = partition_point(0, order.len, |index| name(index) < text);
        if index < order.len && name(index) == text {
            return Some(NodeId(self.get(Section::Named, order.get(&self.bytes, index) as usize)));
        }
        let node = self.counted(text)?;
        (self.name(node) == text).then_some(node)
    }

    /// The node that would be called that if no names were given.
    fn counted(&self, text: &str) -> Option<NodeId> {
        let node = match self.naming {
            Naming::Numbers => text.strip_prefix('n')?.parse().ok()?,
            Naming::Groups => {
                let text = text.strip_prefix("as")?;
                let (group, rank) = text.split_once('.').unwrap_or((text, "0"));
                let group: usize = group.parse().ok()?;
                let groups = self.column(Section::Group);
                let group = group.checked_sub(1).filter(|&group| group < groups.len)?;
                groups.get(&self.bytes, group).checked_add(rank.parse().ok()?)?
            }
        };
        (node < self.nodes).then_some(NodeId(node))
    }

    /// A node's own IPv4 address.
    pub fn address4(&self, node: NodeId) -> Option<Ipv4Addr> {
        match self.column(Section::Own4).position(&self.bytes, node.0) {
            Some(index) => Some(Ipv4Addr::from_bits(self.get(Section::Own4Address, index))),
            None => self.plan.of_node4(node),
        }
    }

    /// A node's own IPv6 address.
    pub fn address6(&self, node: NodeId) -> Option<Ipv6Addr> {
        match self.column(Section::Own6).position(&self.bytes, node.0) {
            Some(index) => {
                let column = self.column(Section::Own6Address);
                Some(Ipv6Addr::from_bits(column.get_wide(&self.bytes, index)))
            }
            None => self.plan.of_node6(node),
        }
    }

    /// The IPv4 address of the interface where a link leaves its node.
    pub fn interface4(&self, link: LinkId) -> Option<Ipv4Addr> {
        match self.column(Section::Interface4).position(&self.bytes, link.0) {
            Some(index) => Some(Ipv4Addr::from_bits(self.get(Section::Interface4Address, index))),
            None => self.plan.of_link4(link),
        }
    }

    /// The IPv6 address of the interface where a link leaves its node.
    pub fn interface6(&self, link: LinkId) -> Option<Ipv6Addr> {
        match self.column(Section::Interface6).position(&self.bytes, link.0) {
            Some(index) => {
                let column = self.column(Section::Interface6Address);
                Some(Ipv6Addr::from_bits(column.get_wide(&self.bytes, index)))
            }
            None => self.plan.of_link6(link),
        }
    }

    /// The given IPv4 addresses and prefixes.
    fn prefixes4(&self) -> Prefixes<'_> {
        let addresses = self.column(Section::Prefix4);
        let lengths = self.column(Section::Prefix4Length);
        Prefixes { bytes: &self.bytes, addresses, lengths, from: 0, to: addresses.len }
    }

    /// The given IPv6 addresses and prefixes.
    fn prefixes6(&self) -> Prefixes<'_> {
        let addresses = self.column(Section::Prefix6);
        let lengths = self.column(Section::Prefix6Length);
        Prefixes { bytes: &self.bytes, addresses, lengths, from: 0, to: addresses.len }
    }

    /// Whose an address is: that of a node, or else in the longest prefix that contains it.
    pub fn owner(&self, address: IpAddr) -> Option<Owner> {
        match address {
            IpAddr::V4(address) => self.owner4(address),
            IpAddr::V6(address) => self.owner6(address),
        }
    }

    fn owner4(&self, address: Ipv4Addr) -> Option<Owner> {
        let bits = address.to_bits();
        let prefixes = self.prefixes4();
        let owner_at = |index| (prefixes.at(index).1, self.get(Section::Prefix4Owner, index));
        let found = prefixes.longest(left4(bits), 32, |_| true).map(owner_at);
        if let Some((32, owner)) = found {
            return Some(owner_of(owner, Ipv4Net::new_assert(address, 32).into()));
        }
        let counted = |base: Option<Ipv4Addr>, count: u32| {
            bits.checked_sub(base?.to_bits()).filter(|&number| number < count)
        };
        if let Some(node) = counted(self.plan.node4, self.nodes).map(NodeId) {
            // A node that was given another address does not have the one that was counted out.
            if self.address4(node) == Some(address) {
                return Some(Owner::Node(node));
            }
        }
        if let Some(link) = counted(self.plan.link4, self.links).map(LinkId)
            && self.interface4(link) == Some(address)
        {
            return Some(Owner::Node(self.from(link)));
        }
        let (length, owner) = found?;
        Some(owner_of(owner, Ipv4Net::new(address, length).ok()?.trunc().into()))
    }

    fn owner6(&self, address: Ipv6Addr) -> Option<Owner> {
        let bits = address.to_bits();
        let prefixes = self.prefixes6();
        let owner_at = |index| (prefixes.at(index).1, self.get(Section::Prefix6Owner, index));
        let found = prefixes.longest(bits, 128, |_| true).map(owner_at);
        if let Some((128, owner)) = found {
            return Some(owner_of(owner, Ipv6Net::new_assert(address, 128).into()));
        }
        let counted = |base: Option<Ipv6Addr>, count: u32| {
            let number = bits.checked_sub(base?.to_bits())?;
            u32::try_from(number).ok().filter(|&number| number < count)
        };
        if let Some(node) = counted(self.plan.node6, self.nodes).map(NodeId)
            && self.address6(node) == Some(address)
        {
            return Some(Owner::Node(node));
        }
        if let Some(link) = counted(self.plan.link6, self.links).map(LinkId)
            && self.interface6(link) == Some(address)
        {
            return Some(Owner::Node(self.from(link)));
        }
        let (length, owner) = found?;
        Some(owner_of(owner, Ipv6Net::new(address, length).ok()?.trunc().into()))
    }

    /// The given addresses and prefixes and whose they are, in order, IPv4 first.
    pub fn prefixes(&self) -> impl Iterator<Item = (IpNet, Owner)> + '_ {
        let v4 = (0..self.column(Section::Prefix4).len).filter_map(|index| {
            let (address, length) = self.prefixes4().at(index);
            let net = Ipv4Net::new(Ipv4Addr::from_bits((address >> 96) as u32), length).ok()?;
            Some((net.into(), owner_of(self.get(Section::Prefix4Owner, index), net.into())))
        });
        let v6 = (0..self.column(Section::Prefix6).len).filter_map(|index| {
            let (address, length) = self.prefixes6().at(index);
            let net = Ipv6Net::new(Ipv6Addr::from_bits(address), length).ok()?;
            Some((net.into(), owner_of(self.get(Section::Prefix6Owner, index), net.into())))
        });
        v4.chain(v6)
    }

    /// The link of the longest of a node's forwarding entries that contains the address and whose link
    /// is wanted.
    pub(crate) fn entry(
        &self,
        node: NodeId,
        address: IpAddr,
        wanted: impl Fn(LinkId) -> bool,
    ) -> Option<LinkId> {
        let (first, addresses, lengths, links, bits, longest) = match address {
            IpAddr::V4(address) => (
                Section::FirstEntry4,
                Section::Entry4,
                Section::Entry4Length,
                Section::Entry4Link,
                left4(address.to_bits()),
                32,
            ),
            IpAddr::V6(address) => (
                Section::FirstEntry6,
                Section::Entry6,
                Section::Entry6Length,
                Section::Entry6Link,
                address.to_bits(),
                128,
            ),
        };
        let first = self.column(first);
        if first.width == 0 || node.0 >= self.nodes {
            return None;
        }
        let (addresses, lengths) = (self.column(addresses), self.column(lengths));
        let links = self.column(links);
        let at = node.0 as usize;
        let (from, to) = (first.get(&self.bytes, at), first.get(&self.bytes, at + 1));
        let (from, to) = (from as usize, to as usize);
        let entries = Prefixes { bytes: &self.bytes, addresses, lengths, from, to };
        let range = self.range(node);
        let link = |index| LinkId(range.start + links.get(&self.bytes, index));
        entries.longest(bits, longest, |index| wanted(link(index))).map(link)
    }

    /// How many forwarding entries all nodes have together.
    pub fn entries(&self) -> u64 {
        (self.column(Section::Entry4).len + self.column(Section::Entry6).len) as u64
    }

    /// How many bytes the network's arrays take.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// What `Prefix4Owner` and `Prefix6Owner` say.
fn owner_of(value: u32, net: IpNet) -> Owner {
    let node = NodeId(value >> 1);
    if value & 1 == 0 { Owner::Node(node) } else { Owner::Prefix(node, net) }
}
