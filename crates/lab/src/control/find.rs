//! What people mean by a name.

use crate::{LinkId, Network, NodeId, engine::Watched, network::Owner, scene::HostTable};
use std::{borrow::Cow, net::IpAddr};

/// So many names are compared with one that is not there.
const COMPARED: u32 = 1 << 20;
/// So many near names are shown.
const SHOWN: usize = 3;

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
    /// The text can mean several links.
    #[error("{text} can mean {}: write `>`, or addresses of the nodes", .readings.join(" or "))]
    Several {
        /// What was asked for.
        text: String,
        /// Some that it can mean.
        readings: Vec<String>,
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
    /// The link is one-way.
    #[error("the link from {from} to {to} has no reverse direction: write `{from}>{to}`")]
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
        let meant = self.direction(text)?;
        if meant.both_ways && self.network.reverse(meant.link).is_none() {
            let (from, to) = (self.network.from(meant.link), self.network.to(meant.link));
            return Err(FindError::OneWay { from: self.name(from), to: self.name(to) });
        }
        Ok(meant)
    }

    /// As [`Finder::link`], but it needs no reverse direction. Names may have hyphens and `#2` in them, so
    /// everything that the text can mean is tried.
    ///
    /// # Errors
    /// See [`FindError`].
    pub fn direction(&self, text: &str) -> Result<Meant, FindError> {
        let numbered =
            text.rsplit_once('#').and_then(|(pair, number)| Some((pair, number.parse().ok()?)));
        let mut wrong = None;
        let mut found = Vec::new();
        for (pair, number) in numbered.into_iter().chain([(text, 1)]) {
            match self.readings(pair, number, &mut found) {
                Ok(()) => {}
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        match (&found[..], wrong) {
            (&[meant], _) => Ok(meant),
            ([], Some(FindError::NoNode(name, _))) => {
                let near = self.near(&name, false);
                Err(FindError::NoNode(name, near))
            }
            ([], Some(error)) => Err(error),
            ([], None) => Err(FindError::NoPair(text.to_owned())),
            (several, _) => Err(FindError::Several {
                text: text.to_owned(),
                readings: several.iter().take(SHOWN).map(|meant| self.called(*meant)).collect(),
            }),
        }
    }

    fn name(&self, node: NodeId) -> String {
        self.network.name(node).into_owned()
    }

    /// A link by its ends.
    fn called(&self, meant: Meant) -> String {
        let (from, to) = (self.network.from(meant.link), self.network.to(meant.link));
        format!("{}>{}", self.name(from), self.name(to))
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

    /// Finds the links that two names can mean, by every hyphen or `>` between them; or says why there
    /// is none.
    fn readings(&self, pair: &str, number: usize, found: &mut Vec<Meant>) -> Result<(), FindError> {
        let mark = if pair.contains('>') { '>' } else { '-' };
        let both_ways = mark == '-';
        let before = found.len();
        let (mut wrong, mut missing) = (None, None);
        for (at, _) in pair.match_indices(mark) {
            let (from, to) = (&pair[..at], &pair[at + 1..]);
            match (self.network.find(from), self.network.find(to)) {
                (Some(from), Some(to)) => match self.nth(from, to, number) {
                    Ok(link) => found.push(Meant { link, both_ways }),
                    Err(error) => missing = missing.or(Some(error)),
                },
                (Some(_), None) => wrong = Some(to),
                (None, _) => wrong = wrong.or(Some(from)),
            }
        }
        match (missing, wrong) {
            _ if found.len() > before => Ok(()),
            (Some(error), _) => Err(error),
            (None, Some(name)) => Err(FindError::NoNode(name.to_owned(), Vec::new())),
            (None, None) => Err(FindError::NoPair(pair.to_owned())),
        }
    }

    /// One of the links from one node to another.
    fn nth(&self, from: NodeId, to: NodeId, number: usize) -> Result<LinkId, FindError> {
        let links = || self.network.links_of(from).filter(|link| self.network.to(*link) == to);
        if let Some(link) = number.checked_sub(1).and_then(|before| links().nth(before)) {
            return Ok(link);
        }
        let there = links().count();
        let (from, to, name) = (self.name(from), self.name(to), from);
        if there > 0 {
            return Err(FindError::NoSuch { from, to, there });
        }
        let near = self.network.links_of(name).take(SHOWN);
        let near = near.map(|link| self.name(self.network.to(link))).collect();
        Err(FindError::NoLink { from, to, near })
    }

    /// The names that are most like this one.
    fn near(&self, name: &str, with_hosts: bool) -> Vec<String> {
        let hosts = self.hosts.iter().filter(|_| with_hosts).map(|h| Cow::from(&h.name));
        let nodes = (0..self.network.nodes().min(COMPARED)).map(|n| self.network.name(NodeId(n)));
        config::alike(name, hosts.chain(nodes)).into_iter().map(Cow::into_owned).collect()
    }
}
