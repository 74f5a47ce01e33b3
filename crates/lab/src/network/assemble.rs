//! From links in any order to a network's bytes.
//!
//! The links are asked for twice: once to count those of each node, once to put each at its index
//! (counting sort). So there is nothing but the result and one number a node, however many links there
//! are. A node's few links are sorted where they lie.

use super::build_error::BuildError;
use super::column::width_for;
use super::layout::{Layout, SECTIONS, Section};
use super::plan::{Naming, Plan};
use super::storage::Storage;
use super::{Kind, KindId, NO_MIRROR, Network};
use crate::{LinkId, NodeId};
use rustc_hash::FxHashSet;

/// Two nodes that are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) a: NodeId,
    pub(crate) b: NodeId,
    /// The kind of the link from `a` to `b`.
    pub(crate) forward: KindId,
    /// The kind of the link from `b` to `a`, if there is one.
    pub(crate) reverse: Option<KindId>,
}

/// A source of links that can be read several times, always with the same links.
pub(crate) trait Source {
    /// How many nodes there are. The ends of all edges are below.
    fn nodes(&self) -> u32;
    /// Gives each edge.
    fn edges(&self, give: impl FnMut(Edge));
    /// The first node of each group, ascending, for [`Naming::Groups`].
    fn groups(&self) -> &[u32] {
        &[]
    }
    /// Gives each IPv4 address and prefix, in order of address, then length, none twice.
    fn prefixes4(&self, give: impl FnMut(PrefixEntry<u32>));
    /// Gives each IPv6 address and prefix, as [`Source::prefixes4`].
    fn prefixes6(&self, give: impl FnMut(PrefixEntry<u128>));
}

/// The first address and the length of a prefix, and twice the node whose it is, and one more if a network
/// is behind that. An address of a node itself has the full length.
pub(crate) type PrefixEntry<A> = (A, u8, u32);

/// What must be known of prefixes before they are put down.
#[derive(Clone, Copy, Debug, Default)]
struct PrefixCount {
    count: usize,
    /// The largest owner.
    most: u32,
}

impl PrefixCount {
    fn count<A>(&mut self, entry: PrefixEntry<A>) {
        self.count += 1;
        self.most = self.most.max(entry.2);
    }
}

/// What is small of a network. Everything is in the order of the arrays.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) plan: Plan,
    pub(super) naming: Naming,
    pub(super) named: Vec<u32>,
    pub(super) name_ends: Vec<u32>,
    pub(super) name_bytes: Vec<u8>,
    pub(super) by_name: Vec<u32>,
    pub(super) own4: Vec<(u32, u32)>,
    pub(super) own6: Vec<(u32, u128)>,
    /// How many interfaces and entries will be filled in.
    pub(super) interfaces4: usize,
    pub(super) interfaces6: usize,
    pub(super) entries4: usize,
    pub(super) entries6: usize,
}

/// The network, and the pairs of nodes with several links of one relation in one direction.
pub(super) type Assembled = (Network, FxHashSet<(NodeId, NodeId)>);

/// The network of a source, in which nothing has a name or an address that cannot be counted out.
pub(crate) fn from_source(
    source: &impl Source,
    kinds: Vec<Kind>,
    plan: Plan,
    naming: Naming,
) -> Result<Network, BuildError> {
    Ok(assemble(source, kinds, Parts { plan, naming, ..Parts::default() })?.0)
}

/// Counts, lays out and fills in. The interfaces and entries are left empty.
pub(super) fn assemble(
    source: &impl Source,
    kinds: Vec<Kind>,
    parts: Parts,
) -> Result<Assembled, BuildError> {
    let nodes = source.nodes();
    let mut ends = vec![0_u32; nodes as usize];
    let (mut links, mut one_way) = (0_u64, 0_usize);
    source.edges(|edge| {
        ends[edge.a.0 as usize] += 1;
        links += 1;
        if edge.reverse.is_some() {
            ends[edge.b.0 as usize] += 1;
            links += 1;
        } else {
            one_way += 1;
        }
    });
    let links = u32::try_from(links).ok().filter(|&links| links < u32::MAX);
    let links = links.ok_or(BuildError::TooManyLinks)?;
    let most = ends.iter().copied().max().unwrap_or(0);
    let text: String = kinds.iter().map(|kind| kind.to_line()).collect();
    let count = (kinds.len(), text.len());
    let (mut prefixes4, mut prefixes6) = (PrefixCount::default(), PrefixCount::default());
    source.prefixes4(|entry| prefixes4.count(entry));
    source.prefixes6(|entry| prefixes6.count(entry));
    let counts = Counts {
        nodes,
        links,
        most,
        one_way,
        kinds: count,
        groups: source.groups().len(),
        prefixes4,
        prefixes6,
    };
    let (layout, total) = Layout::new(|section| counts.size(section, &parts));
    let mut bytes = vec![0; total];

    // From numbers of links to where each node's begin; filling in moves that to where they end.
    let mut begin = 0;
    for end in &mut ends {
        (*end, begin) = (begin, begin + *end);
    }
    let to = layout.column(Section::To);
    let kind_of = layout.column(Section::KindOf);
    let mut put = |bytes: &mut [u8], at: NodeId, far: NodeId, kind: KindId| {
        let index = &mut ends[at.0 as usize];
        to.set(bytes, *index as usize, far.0);
        kind_of.set(bytes, *index as usize, kind.0.into());
        *index += 1;
    };
    let mut mirrors = vec![None; kinds.len()];
    source.edges(|Edge { a, b, forward, reverse }| {
        let Some(reverse) = reverse else { return };
        put(&mut bytes, a, b, forward);
        put(&mut bytes, b, a, reverse);
        mirror(&mut mirrors, forward, reverse.0.into());
        mirror(&mut mirrors, reverse, forward.0.into());
    });
    let mut alone = Vec::with_capacity(one_way);
    if one_way > 0 {
        // Behind the others, so that the first of parallel links are those with one back.
        source.edges(|Edge { a, b, forward, reverse }| {
            if reverse.is_none() {
                put(&mut bytes, a, b, forward);
                mirror(&mut mirrors, forward, NO_MIRROR);
                alone.push((a, b, forward));
            }
        });
    }
    let first = layout.column(Section::FirstLink);
    for (node, &end) in ends.iter().enumerate() {
        first.set(&mut bytes, node + 1, end);
    }
    drop(ends);

    let mut network = Network {
        bytes: Storage::Memory(bytes),
        layout,
        nodes,
        links,
        plan: parts.plan,
        naming: parts.naming,
        kinds,
    };
    let parallel = network.sort_links();
    let column = network.column(Section::Mirrors);
    for (kind, mirror) in mirrors.into_iter().enumerate() {
        column.set(network.bytes.fillable(), kind, mirror.unwrap_or(NO_MIRROR));
    }
    network.put(Section::Kinds, text.bytes().map(u32::from));
    network.put_one_way(alone);
    network.put_parts(&parts);
    network.put_prefixes(source);
    Ok((network, parallel))
}

/// Remembers that a link back has that kind, and that kinds differ if they do.
fn mirror(mirrors: &mut [Option<u32>], kind: KindId, reverse: u32) {
    if let Some(mirror) = mirrors.get_mut(usize::from(kind.0)) {
        *mirror = match *mirror {
            Some(other) if other != reverse => Some(NO_MIRROR),
            _ => Some(reverse),
        };
    }
}

/// What decides how large the arrays are.
#[derive(Clone, Copy, Debug)]
struct Counts {
    nodes: u32,
    links: u32,
    /// Links of the node that has most.
    most: u32,
    one_way: usize,
    /// How many kinds there are, and the bytes of their text.
    kinds: (usize, usize),
    groups: usize,
    prefixes4: PrefixCount,
    prefixes6: PrefixCount,
}

impl Counts {
    /// How long and wide an array is.
    fn size(&self, section: Section, parts: &Parts) -> (usize, u8) {
        let Self { nodes, links, most, one_way, kinds, groups, prefixes4, prefixes6 } = *self;
        let node = width_for(nodes.saturating_sub(1));
        let link = width_for(links.saturating_sub(1));
        let slot = width_for(most.saturating_sub(1));
        let kind = width_for(kinds.0.saturating_sub(1) as u32);
        let per_node = nodes as usize + 1;
        let names = width_for(parts.name_bytes.len() as u32);
        match section {
            Section::Plan => (super::plan::PLAN_BYTES, 1),
            Section::FirstLink => (per_node, width_for(links)),
            Section::To => (links as usize, node),
            Section::KindOf => (links as usize, kind),
            Section::Kinds => (kinds.1, 1),
            Section::Mirrors => (kinds.0, 4),
            Section::OneWayTo => (one_way, node),
            Section::OneWay => (one_way, link),
            Section::Named => (parts.named.len(), node),
            Section::NameEnd => (parts.name_ends.len(), names),
            Section::NameBytes => (parts.name_bytes.len(), 1),
            Section::ByName => (parts.by_name.len(), width_for(parts.named.len() as u32)),
            Section::Group => (groups, node),
            Section::Own4 => (parts.own4.len(), node),
            Section::Own4Address => (parts.own4.len(), 4),
            Section::Own6 => (parts.own6.len(), node),
            Section::Own6Address => (parts.own6.len(), 16),
            Section::Interface4 => (parts.interfaces4, link),
            Section::Interface4Address => (parts.interfaces4, 4),
            Section::Interface6 => (parts.interfaces6, link),
            Section::Interface6Address => (parts.interfaces6, 16),
            Section::Prefix4 => (prefixes4.count, 4),
            Section::Prefix4Length => (prefixes4.count, 1),
            Section::Prefix4Owner => (prefixes4.count, width_for(prefixes4.most)),
            Section::Prefix6 => (prefixes6.count, 16),
            Section::Prefix6Length => (prefixes6.count, 1),
            Section::Prefix6Owner => (prefixes6.count, width_for(prefixes6.most)),
            Section::FirstEntry4 => (per_node, width_for(parts.entries4 as u32)),
            Section::Entry4 => (parts.entries4, 4),
            Section::Entry4Length => (parts.entries4, 1),
            Section::Entry4Link => (parts.entries4, slot),
            Section::FirstEntry6 => (per_node, width_for(parts.entries6 as u32)),
            Section::Entry6 => (parts.entries6, 16),
            Section::Entry6Length => (parts.entries6, 1),
            Section::Entry6Link => (parts.entries6, slot),
        }
    }
}

const _: () = assert!(SECTIONS == 35, "a section without a size would not compile");

impl Network {
    /// Puts the links of each node in order, and marks those of which there are several.
    fn sort_links(&mut self) -> FxHashSet<(NodeId, NodeId)> {
        let mut parallel = FxHashSet::default();
        let to = self.column(Section::To);
        let kind_of = self.column(Section::KindOf);
        let mut links = Vec::new();
        for node in 0..self.nodes {
            let range = self.range(NodeId(node));
            links.clear();
            links.extend(self.hops(NodeId(node)).map(|hop| {
                let relation = self.kinds[usize::from(hop.kind.0)].relation;
                (relation, hop.to, hop.kind)
            }));
            // Stable: parallel links stay in the order in which they were made.
            links.sort_by_key(|&(relation, to, _)| (relation, to));
            for (index, &(_, far, kind)) in range.clone().zip(&links) {
                to.set(self.bytes.fillable(), index as usize, far.0);
                kind_of.set(self.bytes.fillable(), index as usize, kind.0.into());
            }
            for pair in links.windows(2) {
                if let [(relation, to, _), (same, again, _)] = *pair
                    && (relation, to) == (same, again)
                {
                    parallel.insert((NodeId(node), to));
                }
            }
        }
        parallel
    }

    /// Finds the links to which none leads back, of those that were made for one direction.
    fn put_one_way(&mut self, mut alone: Vec<(NodeId, NodeId, KindId)>) {
        for edge in &mut alone {
            // Their relation shows where they are: any kind that has it will do.
            let relation = self.kinds[usize::from(edge.2.0)].relation;
            edge.2 = KindId(relation as u16);
        }
        alone.sort_unstable();
        alone.dedup();
        let mut found = Vec::new();
        for (from, to, relation) in alone {
            let relation = super::Relation::ALL[usize::from(relation.0)];
            for link in self.between(from, to, relation).map(LinkId) {
                if self.reverse_from(from, link).is_none() {
                    found.push((to, link));
                }
            }
        }
        found.sort_unstable();
        // Links of one direction may make up a pair; what is left of the arrays must end them in order.
        self.layout.shorten(&[Section::OneWayTo, Section::OneWay], found.len());
        let (to, link) = (self.column(Section::OneWayTo), self.column(Section::OneWay));
        for (index, (far, number)) in found.into_iter().enumerate() {
            to.set(self.bytes.fillable(), index, far.0);
            link.set(self.bytes.fillable(), index, number.0);
        }
    }

    /// Fills in what was ready before.
    fn put_parts(&mut self, parts: &Parts) {
        let bytes = parts.plan.to_bytes(parts.naming);
        self.put(Section::Plan, bytes.into_iter().map(u32::from));
        self.put(Section::Named, parts.named.iter().copied());
        self.put(Section::NameEnd, parts.name_ends.iter().copied());
        self.put(Section::NameBytes, parts.name_bytes.iter().map(|&byte| byte.into()));
        self.put(Section::ByName, parts.by_name.iter().copied());
        self.put(Section::Own4, parts.own4.iter().map(|own| own.0));
        self.put(Section::Own4Address, parts.own4.iter().map(|own| own.1));
        self.put(Section::Own6, parts.own6.iter().map(|own| own.0));
        self.put_wide(Section::Own6Address, parts.own6.iter().map(|own| own.1));
    }

    /// Fills in addresses, prefixes and groups.
    fn put_prefixes(&mut self, source: &impl Source) {
        let [address, length, owner] =
            [Section::Prefix4, Section::Prefix4Length, Section::Prefix4Owner]
                .map(|it| self.column(it));
        let (bytes, mut at) = (self.bytes.fillable(), 0);
        source.prefixes4(|entry| {
            address.set(bytes, at, entry.0);
            length.set(bytes, at, entry.1.into());
            owner.set(bytes, at, entry.2);
            at += 1;
        });
        let [address, length, owner] =
            [Section::Prefix6, Section::Prefix6Length, Section::Prefix6Owner]
                .map(|it| self.column(it));
        let (bytes, mut at) = (self.bytes.fillable(), 0);
        source.prefixes6(|entry| {
            address.set_wide(bytes, at, entry.0);
            length.set(bytes, at, entry.1.into());
            owner.set(bytes, at, entry.2);
            at += 1;
        });
        self.put(Section::Group, source.groups().iter().copied());
    }

    /// Fills in an array.
    pub(super) fn put(&mut self, section: Section, values: impl Iterator<Item = u32>) {
        let column = self.column(section);
        for (index, value) in values.enumerate() {
            column.set(self.bytes.fillable(), index, value);
        }
    }

    /// Fills in an array of IPv6 addresses.
    pub(super) fn put_wide(&mut self, section: Section, values: impl Iterator<Item = u128>) {
        let column = self.column(section);
        for (index, value) in values.enumerate() {
            column.set_wide(self.bytes.fillable(), index, value);
        }
    }
}
