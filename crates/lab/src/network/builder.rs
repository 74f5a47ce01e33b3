//! Collects a network piece by piece.

use super::assemble::{Edge, Parts, PrefixEntry, Source, assemble};
use super::build_error::{BuildError, MOST_KINDS, MOST_NODES};
use super::layout::Section;
use super::{Kind, KindId, Naming, Network, Owner, Plan, Relation, owner_of};
use crate::{LinkId, LinkSettings, NodeId};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use topo::IpNet;

/// A link that was added to a [`Builder`]. Its number in the network is another one:
/// [`Builder::finish_with`] returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draft(u32);

/// One edge as it is kept: 12 bytes.
#[derive(Clone, Copy, Debug)]
struct Stored {
    a: u32,
    b: u32,
    forward: u16,
    /// `u16::MAX`: there is no link back.
    reverse: u16,
}

/// A forwarding entry: node, prefix, draft.
#[derive(Clone, Copy, Debug)]
struct Entry<A> {
    node: u32,
    address: A,
    length: u8,
    draft: u32,
}

/// Collects nodes, links, addresses, prefixes and forwarding entries in any order.
#[derive(Debug, Default)]
pub struct Builder {
    nodes: u32,
    plan: Plan,
    named: Vec<u32>,
    name_ends: Vec<u32>,
    name_bytes: String,
    /// Places in `named`, by the hash of the name.
    names: HashTable<u32>,
    kinds: Vec<Kind>,
    known_kinds: FxHashMap<Kind, u16>,
    edges: Vec<Stored>,
    own: Vec<(u32, IpAddr)>,
    interfaces: Vec<(u32, IpAddr)>,
    prefixes: Vec<(u32, IpNet)>,
    entries4: Vec<Entry<u32>>,
    entries6: Vec<Entry<u128>>,
    /// In order, when everything was added.
    prefixes4: Vec<PrefixEntry<u32>>,
    prefixes6: Vec<PrefixEntry<u128>>,
}

impl Builder {
    /// Nothing yet. Addresses are only those that are given.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing yet; addresses that are not given are counted out.
    pub fn with_plan(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }

    /// Makes room for that many nodes and links of both directions.
    pub fn reserve(&mut self, edges: usize) {
        self.edges.reserve_exact(edges);
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The name at that index in `named`.
    fn slice<'b>(ends: &[u32], bytes: &'b str, index: u32) -> &'b str {
        let from = index.checked_sub(1).map_or(0, |before| ends[before as usize]);
        &bytes[from as usize..ends[index as usize] as usize]
    }

    /// The node with that name. It is made if there is none.
    ///
    /// # Errors
    ///
    /// There are too many nodes or names, or the name has control characters.
    pub fn node(&mut self, name: &str) -> Result<NodeId, BuildError> {
        if let Some(node) = self.known(name) {
            return Ok(node);
        }
        if name.contains(char::is_control) {
            return Err(BuildError::Control(name.to_owned()));
        }
        let end = self.name_bytes.len() + name.len();
        let end = u32::try_from(end).map_err(|_| BuildError::TooMuch)?;
        let node = self.unnamed(1)?;
        let index = self.named.len() as u32;
        self.name_bytes.push_str(name);
        self.name_ends.push(end);
        self.named.push(node.0);
        let (ends, bytes) = (&self.name_ends, &self.name_bytes);
        let hash = |index: &u32| FxBuildHasher.hash_one(Self::slice(ends, bytes, *index));
        self.names.insert_unique(FxBuildHasher.hash_one(name), index, hash);
        Ok(node)
    }

    /// The node with that name, if there is one.
    pub fn known(&self, name: &str) -> Option<NodeId> {
        let (ends, bytes) = (&self.name_ends, &self.name_bytes);
        let same = |index: &u32| Self::slice(ends, bytes, *index) == name;
        let index = self.names.find(FxBuildHasher.hash_one(name), same)?;
        self.named.get(*index as usize).copied().map(NodeId)
    }

    /// Adds that many nodes without names, and returns the first of them.
    ///
    /// # Errors
    ///
    /// There are too many nodes.
    pub fn unnamed(&mut self, count: u32) -> Result<NodeId, BuildError> {
        let nodes = self.nodes.checked_add(count).filter(|&nodes| nodes <= MOST_NODES);
        let first = self.nodes;
        self.nodes = nodes.ok_or(BuildError::TooManyNodes)?;
        Ok(NodeId(first))
    }

    /// The number of a kind of links.
    ///
    /// # Errors
    ///
    /// There are too many kinds, the weight is 0, or a setting is beyond what its words allow.
    pub fn kind(&mut self, kind: &Kind) -> Result<KindId, BuildError> {
        if let Some(&known) = self.known_kinds.get(kind) {
            return Ok(KindId(known));
        }
        if kind.weight == 0 {
            return Err(BuildError::NoWeight);
        }
        if self.kinds.len() >= MOST_KINDS {
            return Err(BuildError::TooManyKinds);
        }
        let line = kind.to_line();
        if Kind::from_line(line.trim_end()) != Some(*kind) {
            return Err(BuildError::Unspeakable(line.trim_end().to_owned()));
        }
        let number = self.kinds.len() as u16;
        self.kinds.push(*kind);
        self.known_kinds.insert(*kind, number);
        Ok(KindId(number))
    }

    fn check_node(&self, node: NodeId) -> Result<(), BuildError> {
        if node.0 < self.nodes { Ok(()) } else { Err(BuildError::NoNode(node.0, self.nodes)) }
    }

    /// Joins two nodes in both directions with the same settings. `relation` says what `b` is to `a`. The drafts
    /// are those of the link from `a` and of the one from `b`.
    ///
    /// # Errors
    ///
    /// There are no such nodes, or they are the same; there are too many links or kinds.
    pub fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        settings: &LinkSettings,
        weight: u32,
        relation: Relation,
    ) -> Result<[Draft; 2], BuildError> {
        let forward = Kind { settings: *settings, weight, relation };
        let reverse = Kind { relation: relation.mirrored(), ..forward };
        let (forward, reverse) = (self.kind(&forward)?, self.kind(&reverse)?);
        self.join(a, b, forward, reverse)
    }

    /// Joins two nodes in both directions with the kind of the link from `a` and of the one from `b`.
    ///
    /// # Errors
    ///
    /// As [`Builder::link`]; or what they are to each other does not agree.
    pub fn join(
        &mut self,
        a: NodeId,
        b: NodeId,
        forward: KindId,
        reverse: KindId,
    ) -> Result<[Draft; 2], BuildError> {
        let relation = |kind: KindId| self.kinds.get(usize::from(kind.0)).map(|kind| kind.relation);
        let far = relation(forward).ok_or(BuildError::NoLink)?;
        let near = relation(reverse).ok_or(BuildError::NoLink)?;
        if near != far.mirrored() {
            return Err(BuildError::Relations(far, near));
        }
        let draft = self.store(a, b, forward.0, reverse.0)?;
        Ok([draft, Draft(draft.0 + 1)])
    }

    /// A link from `a` to `b` without one back.
    ///
    /// # Errors
    ///
    /// As [`Builder::link`].
    pub fn one_way(&mut self, a: NodeId, b: NodeId, kind: KindId) -> Result<Draft, BuildError> {
        if usize::from(kind.0) >= self.kinds.len() {
            return Err(BuildError::NoLink);
        }
        self.store(a, b, kind.0, u16::MAX)
    }

    fn store(
        &mut self,
        a: NodeId,
        b: NodeId,
        forward: u16,
        reverse: u16,
    ) -> Result<Draft, BuildError> {
        self.check_node(a)?;
        self.check_node(b)?;
        if a == b {
            return Err(BuildError::Itself(a.0));
        }
        let number = u32::try_from(self.edges.len()).ok().and_then(|edges| edges.checked_mul(2));
        let number = number.filter(|&number| number < u32::MAX - 2);
        let draft = Draft(number.ok_or(BuildError::TooManyLinks)?);
        self.edges.push(Stored { a: a.0, b: b.0, forward, reverse });
        Ok(draft)
    }

    /// Where a link begins and ends, and its kind.
    fn ends(&self, draft: Draft) -> Result<(NodeId, NodeId, KindId), BuildError> {
        let edge = self.edges.get(draft.0 as usize / 2).ok_or(BuildError::NoLink)?;
        match draft.0 % 2 {
            0 => Ok((NodeId(edge.a), NodeId(edge.b), KindId(edge.forward))),
            _ if edge.reverse != u16::MAX => {
                Ok((NodeId(edge.b), NodeId(edge.a), KindId(edge.reverse)))
            }
            _ => Err(BuildError::NoLink),
        }
    }

    /// Gives an address to the interface where a link leaves its node. Several links of a node may have
    /// the same.
    ///
    /// # Errors
    ///
    /// There is no such link.
    pub fn address(&mut self, draft: Draft, address: IpAddr) -> Result<(), BuildError> {
        self.ends(draft)?;
        self.interfaces.push((draft.0, address));
        Ok(())
    }

    /// Gives a node an address of its own. The first of each family is the one with which it answers;
    /// it has the others as well.
    ///
    /// # Errors
    ///
    /// There is no such node.
    pub fn node_address(&mut self, node: NodeId, address: IpAddr) -> Result<(), BuildError> {
        self.check_node(node)?;
        self.own.push((node.0, address));
        Ok(())
    }

    /// Puts a network behind a node.
    ///
    /// # Errors
    ///
    /// There is no such node.
    pub fn prefix(&mut self, node: NodeId, prefix: IpNet) -> Result<(), BuildError> {
        self.check_node(node)?;
        self.prefixes.push((node.0, prefix.trunc()));
        Ok(())
    }

    /// A forwarding entry: packets at `node` to addresses in `prefix` take that link of it.
    ///
    /// # Errors
    ///
    /// The link does not leave that node.
    pub fn entry(&mut self, node: NodeId, prefix: IpNet, draft: Draft) -> Result<(), BuildError> {
        let (from, _, _) = self.ends(draft)?;
        if from != node {
            return Err(BuildError::Elsewhere(prefix, node.0, from.0));
        }
        let (node, draft) = (node.0, draft.0);
        match prefix.trunc() {
            IpNet::V4(net) => {
                let (address, length) = (net.addr().to_bits(), net.prefix_len());
                self.entries4.push(Entry { node, address, length, draft });
            }
            IpNet::V6(net) => {
                let (address, length) = (net.addr().to_bits(), net.prefix_len());
                self.entries6.push(Entry { node, address, length, draft });
            }
        }
        Ok(())
    }

    /// The network.
    ///
    /// # Errors
    ///
    /// An address or prefix has two owners, a node two entries for a prefix, or a name is taken.
    pub fn finish(self) -> Result<Network, BuildError> {
        Ok(self.finish_with(&[])?.0)
    }

    /// The network, and the numbers that those links have in it.
    ///
    /// # Errors
    ///
    /// As [`Builder::finish`], or there is no such link.
    pub fn finish_with(mut self, drafts: &[Draft]) -> Result<(Network, Vec<LinkId>), BuildError> {
        let parts = self.parts()?;
        let kinds = std::mem::take(&mut self.kinds);
        let (mut network, parallel) = assemble(&self, kinds, parts)?;
        self.check_names(&network)?;
        let ranks = self.ranks(&network, &parallel);
        let find = |network: &Network, draft: Draft| -> Result<LinkId, BuildError> {
            let (from, to, kind) = self.ends(draft)?;
            let relation = network.kinds[usize::from(kind.0)].relation;
            let rank = ranks.get(&draft.0).copied().unwrap_or(0);
            let link = network.between(from, to, relation).nth(rank as usize);
            link.map(LinkId).ok_or(BuildError::NoLink)
        };

        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for &(draft, address) in &self.interfaces {
            let link = find(&network, Draft(draft))?;
            match address {
                IpAddr::V4(address) => v4.push((link.0, address.to_bits())),
                IpAddr::V6(address) => v6.push((link.0, address.to_bits())),
            }
        }
        // Of several addresses of one interface the first one counts; the others are the node's too.
        v4.sort_by_key(|&(link, _)| link);
        v4.dedup_by_key(|&mut (link, _)| link);
        v6.sort_by_key(|&(link, _)| link);
        v6.dedup_by_key(|&mut (link, _)| link);
        network.layout.shorten(&[Section::Interface4, Section::Interface4Address], v4.len());
        network.layout.shorten(&[Section::Interface6, Section::Interface6Address], v6.len());
        network.put(Section::Interface4, v4.iter().map(|&(link, _)| link));
        network.put(Section::Interface4Address, v4.iter().map(|&(_, address)| address));
        network.put(Section::Interface6, v6.iter().map(|&(link, _)| link));
        network.put_wide(Section::Interface6Address, v6.iter().map(|&(_, address)| address));

        for (index, entry) in self.entries4.iter().enumerate() {
            let link = find(&network, Draft(entry.draft))?;
            let slot = link.0 - network.range(NodeId(entry.node)).start;
            network.column(Section::Entry4Link).set(network.bytes.fillable(), index, slot);
        }
        network.put(Section::FirstEntry4, firsts(self.nodes, &self.entries4));
        network.put(Section::Entry4, self.entries4.iter().map(|entry| entry.address));
        network.put(Section::Entry4Length, self.entries4.iter().map(|entry| entry.length.into()));
        for (index, entry) in self.entries6.iter().enumerate() {
            let link = find(&network, Draft(entry.draft))?;
            let slot = link.0 - network.range(NodeId(entry.node)).start;
            network.column(Section::Entry6Link).set(network.bytes.fillable(), index, slot);
        }
        network.put(Section::FirstEntry6, firsts(self.nodes, &self.entries6));
        network.put_wide(Section::Entry6, self.entries6.iter().map(|entry| entry.address));
        network.put(Section::Entry6Length, self.entries6.iter().map(|entry| entry.length.into()));

        let links = drafts.iter().map(|&draft| find(&network, draft)).collect::<Result<_, _>>()?;
        Ok((network, links))
    }

    /// All but the links, in order.
    fn parts(&mut self) -> Result<Parts, BuildError> {
        self.names = HashTable::new();
        self.known_kinds = FxHashMap::default();
        let mut by_name: Vec<u32> = (0..self.named.len() as u32).collect();
        let (ends, bytes) = (&self.name_ends, &self.name_bytes);
        by_name.sort_unstable_by_key(|&index| Self::slice(ends, bytes, index));

        let (mut prefixes4, mut prefixes6) = (Vec::new(), Vec::new());
        let mut add = |net: IpNet, owner: u32| match net {
            IpNet::V4(net) => prefixes4.push((net.addr().to_bits(), net.prefix_len(), owner)),
            IpNet::V6(net) => prefixes6.push((net.addr().to_bits(), net.prefix_len(), owner)),
        };
        for &(node, address) in &self.own {
            add(address.into(), node << 1);
        }
        for &(draft, address) in &self.interfaces {
            add(address.into(), self.ends(Draft(draft))?.0.0 << 1);
        }
        for &(node, prefix) in &self.prefixes {
            add(prefix, node << 1 | 1);
        }
        self.prefixes = Vec::new();
        let net4 = |address, length| {
            IpNet::new(IpAddr::V4(Ipv4Addr::from_bits(address)), length).unwrap_or_default()
        };
        let net6 = |address, length| {
            IpNet::new(IpAddr::V6(Ipv6Addr::from_bits(address)), length).unwrap_or_default()
        };
        sort_prefixes(&mut prefixes4, net4)?;
        sort_prefixes(&mut prefixes6, net6)?;
        sort_entries(&mut self.entries4, net4)?;
        sort_entries(&mut self.entries6, net6)?;

        (self.prefixes4, self.prefixes6) = (prefixes4, prefixes6);

        self.own.sort_by_key(|&(node, _)| node);
        let (mut own4, mut own6) = (Vec::new(), Vec::new());
        for (node, address) in std::mem::take(&mut self.own) {
            match address {
                IpAddr::V4(address) => own4.push((node, address.to_bits())),
                IpAddr::V6(address) => own6.push((node, address.to_bits())),
            }
        }
        own4.dedup_by_key(|own| own.0);
        own6.dedup_by_key(|own| own.0);
        let v4 = self.interfaces.iter().filter(|(_, address)| address.is_ipv4()).count();
        let too_many = [&self.entries4.len(), &self.entries6.len()]
            .iter()
            .any(|&&entries| u32::try_from(entries).is_err());
        if too_many {
            return Err(BuildError::TooMuch);
        }
        Ok(Parts {
            plan: self.plan,
            naming: Naming::Numbers,
            named: std::mem::take(&mut self.named),
            name_ends: std::mem::take(&mut self.name_ends),
            name_bytes: std::mem::take(&mut self.name_bytes).into_bytes(),
            by_name,
            own4,
            own6,
            interfaces4: v4,
            interfaces6: self.interfaces.len() - v4,
            entries4: self.entries4.len(),
            entries6: self.entries6.len(),
        })
    }

    /// Refuses a given name that a node without one would be called.
    fn check_names(&self, network: &Network) -> Result<(), BuildError> {
        for index in 0..network.column(Section::Named).len {
            let node = network.get(Section::Named, index);
            let name = network.given_name(index);
            if let Some(other) = network.counted(name)
                && other.0 != node
                && network.column(Section::Named).position(&network.bytes, other.0).is_none()
            {
                return Err(BuildError::NameTaken(node, name.to_owned(), other.0));
            }
        }
        Ok(())
    }

    /// Of links beside others, the how manyth each is.
    fn ranks(
        &self,
        network: &Network,
        parallel: &FxHashSet<(NodeId, NodeId)>,
    ) -> FxHashMap<u32, u32> {
        let mut ranks = FxHashMap::default();
        if parallel.is_empty() {
            return ranks;
        }
        let mut counts: FxHashMap<(NodeId, NodeId, Relation), u32> = FxHashMap::default();
        for one_way in [false, true] {
            for (edge, stored) in (0_u32..).zip(&self.edges) {
                if (stored.reverse == u16::MAX) != one_way {
                    continue;
                }
                for draft in [edge * 2, edge * 2 + 1] {
                    let Ok((from, to, kind)) = self.ends(Draft(draft)) else { continue };
                    if parallel.contains(&(from, to)) {
                        let relation = network.kinds[usize::from(kind.0)].relation;
                        let count = counts.entry((from, to, relation)).or_default();
                        ranks.insert(draft, *count);
                        *count += 1;
                    }
                }
            }
        }
        ranks
    }
}

impl Source for Builder {
    fn nodes(&self) -> u32 {
        self.nodes
    }

    fn edges(&self, mut give: impl FnMut(Edge)) {
        for edge in &self.edges {
            give(Edge {
                a: NodeId(edge.a),
                b: NodeId(edge.b),
                forward: KindId(edge.forward),
                reverse: (edge.reverse != u16::MAX).then_some(KindId(edge.reverse)),
            });
        }
    }

    fn prefixes4(&self, give: impl FnMut(PrefixEntry<u32>)) {
        self.prefixes4.iter().copied().for_each(give);
    }

    fn prefixes6(&self, give: impl FnMut(PrefixEntry<u128>)) {
        self.prefixes6.iter().copied().for_each(give);
    }
}

/// Puts addresses and prefixes in order. One that is given twice for one node is kept once; an address of
/// the node itself counts more than a network of that length behind it.
fn sort_prefixes<A: Copy + Ord>(
    prefixes: &mut Vec<PrefixEntry<A>>,
    net: impl Fn(A, u8) -> IpNet,
) -> Result<(), BuildError> {
    prefixes.sort_unstable();
    for pair in prefixes.windows(2) {
        let [(a, length, owner), (b, same, other)] = *pair else { continue };
        if (a, length) == (b, same) && owner >> 1 != other >> 1 {
            let [one, two] = [owner, other].map(|owner| owner_of(owner, net(a, length)));
            let [one, two] = [one, two].map(Owner::node);
            return Err(BuildError::TwoOwners(net(a, length), one.0, two.0));
        }
    }
    prefixes.dedup_by_key(|&mut (address, length, _)| (address, length));
    Ok(())
}

/// Puts entries in order of node, address and length.
fn sort_entries<A: Copy + Ord>(
    entries: &mut [Entry<A>],
    net: impl Fn(A, u8) -> IpNet,
) -> Result<(), BuildError> {
    let key = |entry: &Entry<A>| (entry.node, entry.address, entry.length);
    entries.sort_unstable_by_key(key);
    let twice = entries.windows(2).find(|pair| matches!(pair, [a, b] if key(a) == key(b)));
    match twice {
        Some([entry, ..]) => {
            Err(BuildError::TwoEntries(entry.node, net(entry.address, entry.length)))
        }
        _ => Ok(()),
    }
}

/// For each node and one more, how many entries come before its own.
fn firsts<A>(nodes: u32, entries: &[Entry<A>]) -> impl Iterator<Item = u32> {
    let mut before = 0;
    (0..=nodes).map(move |node| {
        while entries.get(before).is_some_and(|entry| entry.node < node) {
            before += 1;
        }
        before as u32
    })
}
