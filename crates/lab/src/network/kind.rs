//! Kinds of links: what many links have in common is kept once.

use crate::LinkSettings;

/// What the far end of a link is to the near one, as business goes between networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// Of the same network, or nobody asks.
    #[default]
    None,
    /// The far end sells transit to the near one.
    Provider,
    /// They exchange their customers' traffic.
    Peer,
    /// The far end buys transit from the near one.
    Customer,
}

impl Relation {
    /// All of them, in the order in which a node's links are kept.
    pub(crate) const ALL: [Self; 4] = [Self::None, Self::Provider, Self::Peer, Self::Customer];

    /// What the near end is to the far one.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Provider => Self::Customer,
            Self::Customer => Self::Provider,
            other => other,
        }
    }
}

/// A kind of link: the properties of a directed link except its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// What the link does to packets.
    pub settings: LinkSettings,
    /// What routing adds up along a path, at least 1.
    pub weight: u32,
    /// What the far end is to the near one.
    pub relation: Relation,
}

impl Kind {
    /// The kind as words, which [`Kind::from_line`] reads.
    pub(super) fn to_line(self) -> String {
        let relation = RELATIONS[self.relation as usize];
        format!("{} {relation} {}\n", self.weight, self.settings)
    }

    /// The kind in these words; `None` if they have none.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        let weight = words.next()?.parse().ok().filter(|&weight| weight > 0)?;
        let relation = words.next()?;
        let relation = RELATIONS.iter().position(|&name| name == relation)?;
        let settings = words.next()?.parse().ok()?;
        Some(Self { settings, weight, relation: Relation::ALL[relation] })
    }
}

/// The relations in a file, in order.
const RELATIONS: [&str; 4] = ["none", "provider", "peer", "customer"];

/// The number of a kind in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(pub u16);
