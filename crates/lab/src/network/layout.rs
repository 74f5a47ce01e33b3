//! Where the arrays of a network lie in its bytes.

use super::column::{Column, SPARE};

/// Bytes before the first array: the head ([`super::file`]) and the list of arrays.
pub(super) const HEAD: usize = 64;
/// Bytes that describe one array.
pub(super) const ROW: usize = 24;
/// Each array begins at a multiple of this.
const ALIGN: usize = 8;

/// Declares the sections once, for their numbers and their list.
macro_rules! sections {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The arrays of a network, in the order of the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Section { $($(#[$doc])* $name,)* }

        impl Section {
            /// All of them.
            pub(super) const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

sections! {
    /// Numbers that hold for the whole network: [`super::plan`].
    Plan,
    /// For each node its first link, and the number of links behind the last one.
    FirstLink,
    /// For each link the node it leads to.
    To,
    /// For each link its kind.
    KindOf,
    /// The kinds, as bytes.
    Kinds,
    /// For each kind the one that all links back have, or `NO_MIRROR`.
    Mirrors,
    /// Links to which none leads back, in order of the node they lead to: that node.
    OneWayTo,
    /// And the link.
    OneWay,
    /// The nodes that were given names, ascending.
    Named,
    /// For each of them where its name ends, counted from the end of the one before.
    NameEnd,
    /// The names, one behind the other.
    NameBytes,
    /// Places in `Named`, in order of the names.
    ByName,
    /// The first node of each group of nodes, ascending.
    Group,
    /// Nodes that were given IPv4 addresses of their own, ascending.
    Own4,
    /// And the address.
    Own4Address,
    /// Nodes that were given IPv6 addresses of their own, ascending.
    Own6,
    /// And the address.
    Own6Address,
    /// Links of which the near interface was given an IPv4 address, ascending.
    Interface4,
    /// And the address.
    Interface4Address,
    /// Links of which the near interface was given an IPv6 address, ascending.
    Interface6,
    /// And the address.
    Interface6Address,
    /// The IPv4 addresses and prefixes that were given, in order of address, then length.
    Prefix4,
    /// And the prefix length.
    Prefix4Length,
    /// And twice the node, and one more if a network is behind it.
    Prefix4Owner,
    /// The IPv6 addresses and prefixes that were given, in order of address, then length.
    Prefix6,
    /// And the prefix length.
    Prefix6Length,
    /// And twice the node, and one more if a network is behind it.
    Prefix6Owner,
    /// For each node its first IPv4 forwarding entry, and their number.
    FirstEntry4,
    /// The prefix of each entry; a node's are in order of address, then length.
    Entry4,
    /// And its length.
    Entry4Length,
    /// And which of the node's links it takes.
    Entry4Link,
    /// For each node its first IPv6 forwarding entry, and their number.
    FirstEntry6,
    /// The prefix of each entry; a node's are in order of address, then length.
    Entry6,
    /// And its length.
    Entry6Length,
    /// And which of the node's links it takes.
    Entry6Link,
}

/// How many arrays there are.
pub(super) const SECTIONS: usize = Section::ALL.len();

/// Where each array lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout([Column; SECTIONS]);

impl Layout {
    /// Arrays of these lengths and widths, one behind the other, and how many bytes they end at.
    pub(super) fn new(sizes: impl Fn(Section) -> (usize, u8)) -> (Self, usize) {
        let mut end = HEAD + SECTIONS * ROW;
        let mut columns = [Column::default(); SECTIONS];
        for (column, &section) in columns.iter_mut().zip(Section::ALL) {
            let (len, width) = sizes(section);
            *column = Column { start: end, len, width };
            end = (end + len * usize::from(width)).next_multiple_of(ALIGN);
        }
        (Self(columns), (end + SPARE).next_multiple_of(ALIGN))
    }

    /// Makes arrays shorter than was thought. What lay behind stays where it is.
    pub(super) fn shorten(&mut self, sections: &[Section], len: usize) {
        for &section in sections {
            let column = &mut self.0[section as usize];
            column.len = len.min(column.len);
        }
    }

    /// Those arrays.
    pub(super) fn from_columns(columns: [Column; SECTIONS]) -> Self {
        Self(columns)
    }

    /// Where that array lies.
    #[inline]
    pub(super) fn column(&self, section: Section) -> Column {
        self.0[section as usize]
    }
}
