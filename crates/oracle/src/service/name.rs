//! What an operator means by the name of a router or a link.

use crate::control::{LinkName, RouterName};
use std::net::IpAddr;
use topo::{LinkKey, LinkProperties, RouterId, Topology};

/// A name does not identify a router or link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No router has this name.
    #[error("no router has the address or name {0}: `print routers` shows all")]
    Router(String),
    /// Several routers have this name.
    #[error("several routers are named {0}: use an address, {1}")]
    Routers(String, String),
    /// No such link.
    #[error("there is no link from {0} to {1}: `print links {0}` shows all that begin there")]
    Link(RouterId, RouterId),
    /// Several links join the two.
    #[error("several links lead from {0} to {1}: choose one with --id, {2}")]
    Links(RouterId, RouterId, String),
    /// No link is on this interface.
    #[error("no link is on interface {1} of {0}: `print links {0}` shows all")]
    Interface(RouterId, u32),
}

/// The words of a list.
fn list(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" or ")
}

/// The router that is meant.
pub(super) fn router(
    topology: Topology<'_>,
    RouterName(name): &RouterName,
) -> Result<RouterId, NameError> {
    let meant: Vec<RouterId> = match name.parse::<IpAddr>() {
        Ok(address) => topology.routers().map(|(id, _)| id).filter(|id| id.0 == address).collect(),
        Err(_) => topology.routers().filter(|(_, n)| *n == Some(name)).map(|(id, _)| id).collect(),
    };
    match meant[..] {
        [router] => Ok(router),
        [] => Err(NameError::Router(name.clone())),
        _ => {
            let addresses = list(meant.iter().map(ToString::to_string));
            Err(NameError::Routers(name.clone(), addresses))
        }
    }
}

/// Both ends of a link that may not be there yet.
pub(super) fn ends(
    topology: Topology<'_>,
    link: &LinkName,
) -> Result<(RouterId, RouterId), NameError> {
    Ok((router(topology, &link.from)?, router(topology, &link.to)?))
}

/// The links that are meant: one, and with `both` that in the other direction too.
pub(super) fn links(
    topology: Topology<'_>,
    link: &LinkName,
) -> Result<Vec<(LinkKey, LinkProperties)>, NameError> {
    let (from, to) = ends(topology, link)?;
    let there = one(topology, from, to, link.id)?;
    if !link.both {
        return Ok(vec![there]);
    }
    let reverse = opposite(topology, there.0).ok_or(NameError::Link(to, from))?;
    Ok(vec![there, reverse])
}

/// The one link between two routers, of this number where one is given.
fn one(
    topology: Topology<'_>,
    from: RouterId,
    to: RouterId,
    id: Option<u32>,
) -> Result<(LinkKey, LinkProperties), NameError> {
    let all = between(topology, from, to);
    let meant: Vec<_> = all.iter().filter(|(key, _)| id.is_none_or(|id| id == key.id)).collect();
    match meant[..] {
        [link] => Ok(*link),
        [] => Err(NameError::Link(from, to)),
        _ => Err(NameError::Links(from, to, list(meant.iter().map(|(key, _)| key.id.to_string())))),
    }
}

/// All links from one router to another, in order of their numbers.
fn between(topology: Topology<'_>, from: RouterId, to: RouterId) -> Vec<(LinkKey, LinkProperties)> {
    topology.links().filter(|(key, _)| key.from == from && key.to == to).collect()
}

/// The other direction of a link. The numbers at both ends need not be the same: the first link in
/// one direction belongs to the first one in the other, and so on.
fn opposite(topology: Topology<'_>, key: LinkKey) -> Option<(LinkKey, LinkProperties)> {
    let index = between(topology, key.from, key.to).iter().take_while(|(k, _)| *k != key).count();
    between(topology, key.to, key.from).into_iter().nth(index)
}

/// The links on an interface, in both directions.
pub(super) fn on_interface(
    topology: Topology<'_>,
    router: RouterId,
    interface: u32,
) -> Result<Vec<(LinkKey, LinkProperties)>, NameError> {
    let out: Vec<_> =
        topology.links().filter(|(key, _)| key.from == router && key.id == interface).collect();
    if out.is_empty() {
        return Err(NameError::Interface(router, interface));
    }
    let reverse: Vec<_> = out.iter().filter_map(|(key, _)| opposite(topology, *key)).collect();
    Ok(out.into_iter().chain(reverse).collect())
}
