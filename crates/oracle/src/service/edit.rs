//! Changes of the network that an operator asks for, as changes that the builder takes.

use super::{ControlError, name};
use crate::control::{LinkName, Property, Request};
use std::collections::BTreeMap;
use topo::{Builder, Change, Feed, LinkKey, LinkProperties, RouterId, Topology};

/// Links that were removed because their interface was set down.
pub(super) type Down = BTreeMap<(RouterId, u32), Vec<(LinkKey, LinkProperties)>>;

/// Does what `request` asks of the network.
///
/// # Errors
/// A name is not known or the change cannot be; then nothing was changed.
pub(super) fn apply(
    request: &Request,
    builder: &mut Builder,
    down: &mut Down,
) -> Result<(), ControlError> {
    if let Request::SetInterface { router, interface, up } = request {
        let router = name::router(builder.topology(), router)?;
        return set_interface(router, *interface, *up, builder, down);
    }
    for change in changes(request, builder.topology())? {
        builder.apply(Feed::OPERATOR, change)?;
    }
    Ok(())
}

fn changes(request: &Request, topology: Topology<'_>) -> Result<Vec<Change>, ControlError> {
    let changes = match request {
        Request::SetLink { link, property, value } => {
            let mut changes = Vec::new();
            for (key, properties) in name::links(topology, link)? {
                let properties = set(properties, *property, *value)?;
                changes.push(Change::Link { key, properties });
            }
            changes
        }
        Request::CreateRouter { address, name } => {
            if topology.routers().any(|(id, _)| id.0 == *address) {
                return Err(ControlError::Value(format!("there already is a router {address}")));
            }
            vec![Change::Router { id: RouterId(*address), name: name.clone() }]
        }
        Request::CreateLink { link, properties } => create_link(topology, link, *properties)?,
        Request::CreateNetwork { prefix, router, beyond } => {
            if let Some(message) = config::host_bits(prefix) {
                return Err(ControlError::Value(message));
            }
            let (prefix, router) = (*prefix, name::router(topology, router)?);
            vec![match beyond {
                None => Change::Internal { prefix, router },
                Some(path) => Change::Route { prefix, exit: router, path: *path },
            }]
        }
        Request::DeleteRouter { router } => {
            vec![Change::RemoveRouter(name::router(topology, router)?)]
        }
        Request::DeleteLink(link) => {
            name::links(topology, link)?.iter().map(|(key, _)| Change::RemoveLink(*key)).collect()
        }
        Request::DeleteNetwork { side, prefix, router } => {
            let (prefix, router) = (*prefix, name::router(topology, router)?);
            vec![match side {
                crate::control::Side::Internal => Change::RemoveInternal { prefix, router },
                crate::control::Side::External => Change::Withdraw { prefix, exit: router },
            }]
        }
        _ => Vec::new(),
    };
    for change in &changes {
        change.check()?;
    }
    Ok(changes)
}

/// The properties with one of them changed.
fn set(
    mut properties: LinkProperties,
    property: Property,
    value: f64,
) -> Result<LinkProperties, ControlError> {
    match property {
        Property::Bandwidth => properties.bandwidth = value,
        Property::Latency => properties.latency = value,
        Property::Congestion => properties.congestion = value,
        Property::Loss => properties.loss = value,
        Property::Weight => {
            if value.fract() != 0.0 || !(0.0..=f64::from(u32::MAX)).contains(&value) {
                let message = format!("a weight is a whole number from 0 to {}", u32::MAX);
                return Err(ControlError::Value(message));
            }
            properties.weight = value as u32;
        }
    }
    Ok(properties)
}

fn create_link(
    topology: Topology<'_>,
    link: &LinkName,
    properties: LinkProperties,
) -> Result<Vec<Change>, ControlError> {
    let (from, to) = name::ends(topology, link)?;
    let directions = if link.both { vec![(from, to), (to, from)] } else { vec![(from, to)] };
    let mut changes = Vec::new();
    for (from, to) in directions {
        // An interface has one link: without a number the link gets the first free one.
        let taken: Vec<u32> =
            topology.links().filter(|(key, _)| key.from == from).map(|(key, _)| key.id).collect();
        let id = match link.id {
            Some(id) if topology.links().any(|(key, _)| key == LinkKey { from, to, id }) => {
                let message = format!("there already is a link {id} from {from} to {to}");
                return Err(ControlError::Value(message));
            }
            Some(id) => id,
            None => (0..).find(|id| !taken.contains(id)).unwrap_or_default(),
        };
        changes.push(Change::Link { key: LinkKey { from, to, id }, properties });
    }
    Ok(changes)
}

fn set_interface(
    router: RouterId,
    interface: u32,
    up: bool,
    builder: &mut Builder,
    down: &mut Down,
) -> Result<(), ControlError> {
    let key = (router, interface);
    match (up, down.contains_key(&key)) {
        (true, true) => {
            for (key, properties) in down.get(&key).into_iter().flatten() {
                builder
                    .apply(Feed::OPERATOR, Change::Link { key: *key, properties: *properties })?;
            }
            down.remove(&key);
        }
        (true, false) => drop(name::on_interface(builder.topology(), router, interface)?),
        (false, true) => {}
        (false, false) => {
            let links = name::on_interface(builder.topology(), router, interface)?;
            let mut taken = Vec::new();
            for (key, properties) in links {
                if let Err(refusal) = builder.apply(Feed::OPERATOR, Change::RemoveLink(key)) {
                    for (key, properties) in taken {
                        builder.apply(Feed::OPERATOR, Change::Link { key, properties })?;
                    }
                    return Err(refusal.into());
                }
                taken.push((key, properties));
            }
            down.insert(key, taken);
        }
    }
    Ok(())
}
