//! Whether the arrays of a file fit together: what is found here once need not be inspected again.
//!
//! Everything that is used as an index into another array is below its length, and what is searched is in
//! order.

use super::build_error::MOST_NODES;
use super::column::Column;
use super::layout::{Layout, Section};
use super::prefixes::Prefixes;
use super::storage::Storage;
use super::{Kind, Naming, Network, Plan, Relation};
use crate::NodeId;
use thiserror::Error;

/// What is wrong.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{what} (array {array}, index {index})")]
pub struct Wrong {
    /// What should hold and does not.
    pub what: &'static str,
    /// Which array.
    pub array: String,
    /// Where in it.
    pub index: usize,
}

/// The network, if it is sound.
pub(super) fn network(
    bytes: Storage,
    layout: Layout,
    nodes: u32,
    links: u32,
) -> Result<Network, Wrong> {
    let wrong = |what, array: &str| Wrong { what, array: array.to_owned(), index: 0 };
    let kinds = read_kinds(&bytes, &layout)?;
    let plan = read_plan(&bytes, &layout);
    let (plan, naming) = plan.ok_or_else(|| wrong("this is not a plan", "Plan"))?;
    if nodes > MOST_NODES || links == u32::MAX {
        return Err(wrong("there are more nodes or links than numbers", "FirstLink"));
    }
    let network = Network { bytes, layout, nodes, links, plan, naming, kinds };
    let check = Check { network: &network };
    check.lengths()?;
    check.links()?;
    check.one_way()?;
    check.names()?;
    check.addresses()?;
    check.plan()?;
    let firsts = [Section::FirstEntry4, Section::FirstEntry6];
    let addresses = [Section::Entry4, Section::Entry6];
    let lengths = [Section::Entry4Length, Section::Entry6Length];
    let slots = [Section::Entry4Link, Section::Entry6Link];
    for family in 0..2 {
        check.entries(firsts[family], addresses[family], lengths[family], slots[family])?;
    }
    Ok(network)
}

struct Check<'n> {
    network: &'n Network,
}

impl Check<'_> {
    fn column(&self, section: Section) -> Column {
        self.network.column(section)
    }

    fn get(&self, section: Section, index: usize) -> u32 {
        self.network.get(section, index)
    }

    fn iter(&self, section: Section) -> impl Iterator<Item = u32> + '_ {
        self.column(section).iter(&self.network.bytes)
    }

    fn wrong<T>(&self, what: &'static str, section: Section, index: usize) -> Result<T, Wrong> {
        Err(Wrong { what, array: format!("{section:?}"), index })
    }

    /// Arrays that go together are equally long.
    fn lengths(&self) -> Result<(), Wrong> {
        use Section as S;
        let len = |section| self.column(section).len;
        let nodes = self.network.nodes as usize + 1;
        let expected = [
            (S::FirstLink, nodes),
            (S::FirstEntry4, nodes),
            (S::FirstEntry6, nodes),
            (S::To, self.network.links as usize),
            (S::KindOf, self.network.links as usize),
            (S::Mirrors, self.network.kinds.len()),
            (S::OneWay, len(S::OneWayTo)),
            (S::NameEnd, len(S::Named)),
            (S::ByName, len(S::Named)),
            (S::Own4Address, len(S::Own4)),
            (S::Own6Address, len(S::Own6)),
            (S::Interface4Address, len(S::Interface4)),
            (S::Interface6Address, len(S::Interface6)),
            (S::Prefix4Length, len(S::Prefix4)),
            (S::Prefix4Owner, len(S::Prefix4)),
            (S::Prefix6Length, len(S::Prefix6)),
            (S::Prefix6Owner, len(S::Prefix6)),
            (S::Entry4Length, len(S::Entry4)),
            (S::Entry4Link, len(S::Entry4)),
            (S::Entry6Length, len(S::Entry6)),
            (S::Entry6Link, len(S::Entry6)),
        ];
        for (section, expected) in expected {
            if len(section) != expected {
                return self.wrong("it has another length than it should", section, len(section));
            }
        }
        // A width of nothing says that all numbers are 0; these are longer than one number.
        let ascending = [S::Named, S::Group, S::Own4, S::Own6, S::Interface4, S::Interface6];
        for section in ascending.into_iter().chain([S::To, S::Prefix4Length, S::Prefix6Length]) {
            if self.column(section).width == 0 && len(section) > 1 {
                return self.wrong("it is long without taking space", section, len(section));
            }
        }
        Ok(())
    }

    /// That array counts up from 0 to a total.
    fn counts(&self, section: Section, total: usize) -> Result<(), Wrong> {
        let mut before = 0;
        if self.column(section).width == 0 && total == 0 {
            return Ok(());
        }
        for (index, number) in self.iter(section).enumerate() {
            if number < before || (index == 0 && number != 0) {
                return self.wrong("its numbers do not ascend from 0", section, index);
            }
            before = number;
        }
        if before as usize == total { Ok(()) } else { self.wrong("its total is wrong", section, 0) }
    }

    /// That array ascends and stays below a bound.
    fn ascends(&self, section: Section, below: u32) -> Result<(), Wrong> {
        let mut next = 0;
        for (index, number) in self.iter(section).enumerate() {
            if number < next || number >= below {
                return self.wrong("its numbers do not ascend or are too large", section, index);
            }
            next = number + 1;
        }
        Ok(())
    }

    fn links(&self) -> Result<(), Wrong> {
        let network = self.network;
        self.counts(Section::FirstLink, network.links as usize)?;
        let relations: Vec<Relation> = network.kinds.iter().map(|kind| kind.relation).collect();
        // Where there are links each node takes bytes of the file, so this is as long as it.
        let nodes = if network.links == 0 { 0 } else { network.nodes };
        for node in (0..nodes).map(NodeId) {
            let mut before = (Relation::None, NodeId(0));
            for hop in network.hops(node) {
                let index = hop.link.0 as usize;
                let Some(&relation) = relations.get(usize::from(hop.kind.0)) else {
                    return self.wrong("there is no such kind", Section::KindOf, index);
                };
                if hop.to.0 >= network.nodes || hop.to == node {
                    return self.wrong("a link leads to no other node", Section::To, index);
                }
                if (relation, hop.to) < before {
                    return self.wrong("a node's links are not in order", Section::To, index);
                }
                before = (relation, hop.to);
            }
        }
        let kinds = network.kinds.len() as u32;
        for (index, mirror) in self.iter(Section::Mirrors).enumerate() {
            if mirror >= kinds && mirror != super::NO_MIRROR {
                return self.wrong("there is no such kind", Section::Mirrors, index);
            }
        }
        Ok(())
    }

    fn one_way(&self) -> Result<(), Wrong> {
        let mut before = None;
        for (index, to) in self.iter(Section::OneWayTo).enumerate() {
            let link = self.get(Section::OneWay, index);
            let fits = link < self.network.links && self.get(Section::To, link as usize) == to;
            if !fits || Some((to, link)) <= before {
                return self.wrong("it is not the list of its links", Section::OneWay, index);
            }
            before = Some((to, link));
        }
        Ok(())
    }

    fn names(&self) -> Result<(), Wrong> {
        let network = self.network;
        self.ascends(Section::Named, network.nodes)?;
        let bytes = self.column(Section::NameBytes);
        let text = network.bytes.get(bytes.start..bytes.start + bytes.len).unwrap_or_default();
        let text = match std::str::from_utf8(text) {
            Ok(text) if bytes.width == 1 || bytes.len == 0 => text,
            _ => return self.wrong("names are not UTF-8", Section::NameBytes, 0),
        };
        // They are shown in terminals.
        if let Some(index) = text.find(char::is_control) {
            return self.wrong("a name has control characters", Section::NameBytes, index);
        }
        let mut before = 0;
        for (index, end) in self.iter(Section::NameEnd).enumerate() {
            if end < before || !text.is_char_boundary(end as usize) {
                return self.wrong("a name does not end there", Section::NameEnd, index);
            }
            before = end;
        }
        if before as usize != text.len() {
            return self.wrong("the names end elsewhere", Section::NameEnd, 0);
        }
        let named = self.column(Section::Named).len;
        let mut before = None;
        for (index, number) in self.iter(Section::ByName).enumerate() {
            let name = (number as usize) < named;
            let name = name.then(|| network.given_name(number as usize));
            if name.is_none() || (index > 0 && name <= before) {
                return self.wrong("names are not in order", Section::ByName, index);
            }
            before = name;
        }
        self.ascends(Section::Group, network.nodes)?;
        let from_first = network.naming == Naming::Numbers
            || network.nodes == 0
            || self.iter(Section::Group).next() == Some(0);
        if from_first { Ok(()) } else { self.wrong("the first group is late", Section::Group, 0) }
    }

    fn addresses(&self) -> Result<(), Wrong> {
        let network = self.network;
        self.ascends(Section::Own4, network.nodes)?;
        self.ascends(Section::Own6, network.nodes)?;
        self.ascends(Section::Interface4, network.links)?;
        self.ascends(Section::Interface6, network.links)?;
        let families = [
            (network.prefixes4(), 32, Section::Prefix4, Section::Prefix4Owner),
            (network.prefixes6(), 128, Section::Prefix6, Section::Prefix6Owner),
        ];
        for (prefixes, longest, section, owner) in families {
            self.prefixes(prefixes, longest, section)?;
            for (index, owner_of) in self.iter(owner).enumerate() {
                if owner_of >> 1 >= network.nodes {
                    return self.wrong("there is no such node", owner, index);
                }
            }
        }
        Ok(())
    }

    /// What is counted out stays among the addresses.
    fn plan(&self) -> Result<(), Wrong> {
        let network = self.network;
        let node = NodeId(network.nodes.saturating_sub(1));
        let link = crate::LinkId(network.links.saturating_sub(1));
        let plan = network.plan;
        let fits = (plan.node4.is_none() || plan.of_node4(node).is_some())
            && (plan.link4.is_none() || plan.of_link4(link).is_some())
            && (plan.node6.is_none() || plan.of_node6(node).is_some())
            && (plan.link6.is_none() || plan.of_link6(link).is_some());
        if fits { Ok(()) } else { self.wrong("addresses run over", Section::Plan, 0) }
    }

    /// Prefixes are in order, and no bit is set beyond their length.
    fn prefixes(&self, prefixes: Prefixes<'_>, longest: u8, section: Section) -> Result<(), Wrong> {
        let mut before = None;
        for index in prefixes.from..prefixes.to {
            let (address, length) = prefixes.at(index);
            let beyond = address.checked_shl(length.into()).unwrap_or(0);
            if length > longest || beyond != 0 {
                return self.wrong("this is not a prefix", section, index);
            }
            if before >= Some((address, length)) {
                return self.wrong("prefixes are not in order", section, index);
            }
            before = Some((address, length));
        }
        Ok(())
    }

    fn entries(
        &self,
        first: Section,
        address: Section,
        length: Section,
        slot: Section,
    ) -> Result<(), Wrong> {
        let network = self.network;
        let (addresses, lengths) = (self.column(address), self.column(length));
        self.counts(first, addresses.len)?;
        if addresses.len == 0 {
            return Ok(());
        }
        let longest = if addresses.width == 16 { 128 } else { 32 };
        for node in 0..network.nodes {
            let from = self.get(first, node as usize) as usize;
            let to = self.get(first, node as usize + 1) as usize;
            let bytes = &network.bytes;
            self.prefixes(Prefixes { bytes, addresses, lengths, from, to }, longest, address)?;
            let degree = network.range(NodeId(node)).len() as u32;
            if let Some(index) = (from..to).find(|&index| self.get(slot, index) >= degree) {
                return self.wrong("the node has no such link", slot, index);
            }
        }
        Ok(())
    }
}

/// The kinds and the plan, which are not used as they lie in the file.
fn read_kinds(bytes: &[u8], layout: &Layout) -> Result<Vec<Kind>, Wrong> {
    let column = layout.column(Section::Kinds);
    let text = bytes.get(column.start..column.start + column.len).unwrap_or_default();
    let wrong = |index| Wrong { what: "this is not a kind of link", array: "Kinds".into(), index };
    if column.width > 1 {
        return Err(wrong(0));
    }
    let text = std::str::from_utf8(text).map_err(|error| wrong(error.valid_up_to()))?;
    let lines = text.lines().enumerate();
    lines.map(|(line, text)| Kind::from_line(text).ok_or_else(|| wrong(line))).collect()
}

/// The plan.
fn read_plan(bytes: &[u8], layout: &Layout) -> Option<(Plan, Naming)> {
    let column = layout.column(Section::Plan);
    let plan = bytes.get(column.start..column.start + column.len)?;
    Plan::from_bytes(plan).filter(|_| column.width == 1)
}
