//! What people mean by a name.

use crate::{LinkId, Network, NodeId, engine::Watched, network::Owner, scene::HostTable};
use std::{borrow::Cow, net::IpAddr};

/// So many names are compared with one that is not there.
const COMPARED: u32 = 1 << 20;
/// So many near names are shown.
const SHOWN: usize = 3;
/// Names less alike than this are other names.
const ALIKE: f64 = 0.65;

/// A name does not say what is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// No node has this name or address.
    #[error("there is no node {}{}", .0, did_you_mean(.1))]
    NoNode(String, Vec<String>),
    /// Neither host nor node has this name.
    #[error("there is no host and no node {}{}", .0, did_you_mean(.1))]
    Nobody(String, Vec<String>),
    /// The text is not two nodes.
    #[error("a link is two nodes, `A-B` for both directions or `A>B` for one: {0} is not")]
    NoPair(String),
    /// The nodes are there, a link between them is not.
    #[error("there is no link from {from} to {to}; {from} has links to {}", .near.join(", "))]
    NoLink {
        /// The one node.
        from: String,
        /// The other.
        to: String,
        /// Some that there are links to.
        near: Vec<String>,
    },
    /// There are not so many links between the two.
    #[error("there are {there} links from {from} to {to}: `#1` is the first")]
    NoSuch {
        /// The one node.
        from: String,
        /// The other.
        to: String,
        /// Links between them.
        there: usize,
    },
    /// The link leads one way only.
    #[error("the link from {from} to {to} has none back: write `{from}>{to}`")]
    OneWay {
        /// The one node.
        from: String,
        /// The other.
        to: String,
    },
    /// The node or host has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// Nobody has the address.
    #[error("no node of this network has {0}, nor a network that contains it")]
    NoOwner(IpAddr),
}

fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(": did you mean {}?", names.join(" or ")),
    }
}

/// What a link's name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meant {
    /// The link.
    pub link: LinkId,
    /// Whether the one back is meant as well.
    pub both_ways: bool,
}

/// The end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The node.
    pub(super) node: NodeId,
    /// The address, where one was meant or is known.
    pub(super) address: Option<IpAddr>,
    /// The host that was meant.
    pub(super) host: Option<String>,
}

/// Looks names up.
#[derive(Clone, Copy, Debug)]
pub struct Finder<'a> {
    network: &'a Network,
    hosts: &'a [HostTable],
}

impl<'a> Finder<'a> {
    /// In a network with these hosts.
    pub fn new(network: &'a Network, hosts: &'a [HostTable]) -> Self {
        Self { network, hosts }
    }

    /// The node with this name or address.
    ///
    /// # Errors
    /// [`FindError::NoNode`].
    pub fn node(&self, name: &str) -> Result<NodeId, FindError> {
        self.network
            .find(name)
            .ok_or_else(|| FindError::NoNode(name.to_owned(), self.near(name, false)))
    }

    /// Where a path begins or ends: a host comes before a node of the same name.
    pub(super) fn end(&self, name: &str) -> Result<End, FindError> {
        if let Ok(address) = name.parse() {
            return self.address(address);
        }
        if let Some(host) = self.hosts.iter().find(|host| host.name == name) {
            let node = self.node(&host.attach)?;
            let address = host.address.first().map(|net| net.addr());
            return Ok(End { node, address, host: Some(host.name.clone()) });
        }
        let node = self
            .network
            .find(name)
            .ok_or_else(|| FindError::Nobody(name.to_owned(), self.near(name, true)))?;
        Ok(End { node, address: self.addresses(node).into_iter().next(), host: None })
    }

    /// Whose an address is: a host's before a node's.
    fn address(&self, address: IpAddr) -> Result<End, FindError> {
        let mut hosts = self.hosts.iter();
        if let Some(host) = hosts.find(|host| host.address.iter().any(|a| a.addr() == address)) {
            let node = self.node(&host.attach)?;
            return Ok(End { node, address: Some(address), host: Some(host.name.clone()) });
        }
        let near = || self.hosts.iter().find(|h| h.address.iter().any(|a| a.contains(&address)));
        let node = match (self.network.owner(address).map(Owner::node), near()) {
            (Some(node), _) => node,
            (None, Some(host)) => self.node(&host.attach)?,
            (None, None) => return Err(FindError::NoOwner(address)),
        };
        Ok(End { node, address: Some(address), host: None })
    }

    /// A node's own addresses, IPv4 first.
    pub(super) fn addresses(&self, node: NodeId) -> Vec<IpAddr> {
        let four = self.network.address4(node).map(IpAddr::V4);
        four.into_iter().chain(self.network.address6(node).map(IpAddr::V6)).collect()
    }

    /// The link that is meant by `A-B` or `A>B`; `#2` after it means the second of several.
    ///
    /// # Errors
    /// See [`FindError`].
    pub fn link(&self, text: &str) -> Result<Meant, FindError> {
        let (pair, number) = match text.rsplit_once('#') {
            Some((pair, number)) => match number.parse::<usize>() {
                Ok(number) => (pair, number),
                Err(_) => return Err(FindError::NoPair(text.to_owned())),
            },
            None => (text, 1),
        };
        let (from, to, both_ways) = self.pair(pair)?;
        let links = || self.network.links_of(from).filter(|link| self.network.to(*link) == to);
        let name = |node| self.network.name(node).into_owned();
        let Some(link) = number.checked_sub(1).and_then(|before| links().nth(before)) else {
            let there = links().count();
            if there > 0 {
                return Err(FindError::NoSuch { from: name(from), to: name(to), there });
            }
            let near = self.network.links_of(from).take(SHOWN).map(|l| name(self.network.to(l)));
            return Err(FindError::NoLink { from: name(from), to: name(to), near: near.collect() });
        };
        if both_ways && self.network.reverse(link).is_none() {
            return Err(FindError::OneWay { from: name(from), to: name(to) });
        }
        Ok(Meant { link, both_ways })
    }

    /// What is to be captured: a node, or a link.
    pub(crate) fn watched(&self, text: &str) -> Result<Watched, FindError> {
        if let Some(node) = self.network.find(text) {
            return Ok(Watched::Node(node));
        }
        if !text.contains(['-', '>']) {
            return self.node(text).map(Watched::Node);
        }
        let Meant { link, both_ways } = self.link(text)?;
        Ok(Watched::Link(link, self.network.reverse(link).filter(|_| both_ways)))
    }

    /// Two nodes and whether both directions are meant. Names may have hyphens in them, so every
    /// hyphen is tried.
    fn pair(&self, text: &str) -> Result<(NodeId, NodeId, bool), FindError> {
        if let Some((from, to)) = text.split_once('>') {
            return Ok((self.node(from)?, self.node(to)?, false));
        }
        let mut wrong = None;
        for (at, _) in text.match_indices('-') {
            let (from, to) = (&text[..at], &text[at + 1..]);
            match (self.network.find(from), self.network.find(to)) {
                (Some(from), Some(to)) => return Ok((from, to, true)),
                (Some(_), None) => wrong = Some(to),
                (None, _) => wrong = wrong.or(Some(from)),
            }
        }
        match wrong {
            Some(name) => Err(FindError::NoNode(name.to_owned(), self.near(name, false))),
            None => Err(FindError::NoPair(text.to_owned())),
        }
    }

    /// The names that are most like this one.
    fn near(&self, name: &str, with_hosts: bool) -> Vec<String> {
        let hosts = self.hosts.iter().filter(|_| with_hosts).map(|h| Cow::from(&h.name));
        let nodes = (0..self.network.nodes().min(COMPARED)).map(|n| self.network.name(NodeId(n)));
        let mut best: Vec<(f64, Cow<'_, str>)> = Vec::new();
        for other in hosts.chain(nodes) {
            let alike = strsim::jaro_winkler(name, &other);
            if alike < ALIKE || best.iter().any(|(_, known)| *known == other) {
                continue;
            }
            let place = best.iter().position(|(least, _)| alike > *least).unwrap_or(best.len());
            best.insert(place, (alike, other));
            best.truncate(SHOWN);
        }
        best.into_iter().map(|(_, name)| name.into_owned()).collect()
    }
}
