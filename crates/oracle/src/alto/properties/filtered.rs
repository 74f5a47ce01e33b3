//! The filtered property map (RFC 9240 section 8).
//!
//! For a prefix the answer has the prefix itself with its values, inherited ones too, and every longer prefix in
//! it at which a value changes, so that it holds for every address in the prefix. What the longer prefixes cover
//! completely is omitted again.

use super::{
    begin, end,
    entity::{self, Entity, Property, write_net, write_pid},
    entry, network_maps,
};
use crate::alto::{
    address::AddressType,
    failure::Failure,
    input::{self, Object},
    maps::Maps,
    network_map::NetworkMap,
};
use ipnet::IpNet;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

/// Answers a request (section 8.6).
///
/// # Errors
///
/// The request is wrong, or the answer would have more PIDs than are given out at once.
pub fn filtered(maps: &Maps, body: &[u8]) -> Result<Arc<[u8]>, Failure> {
    let all = network_maps(maps);
    let members = input::parse(body)?;
    let body = Object::body(&members);
    let entities = body.required_list("entities", |text| entity::parse(&all, text))?;
    let properties = body.list("properties", |text| Property::parse(&all, text))?;
    let chosen: Vec<Entity> = entities.into_iter().map(|(entity, _)| entity).collect();
    let Some(properties) = properties else { return names_alone(maps, &all, &chosen) };
    let mut properties: Vec<_> = properties.into_iter().map(|(property, _)| property).collect();
    if properties.is_empty() {
        properties = Property::all(&all);
    }
    let chosen = if chosen.is_empty() { everything(&all) } else { chosen };
    let of: Vec<usize> = properties.iter().filter_map(|property| property.map()).collect();
    let nets = nets(&all, &chosen, &of);
    check(maps, &nets, &of)?;
    let mut out = begin(depends(&all, &chosen, &of).into_iter());
    for (net, pids) in &nets {
        let values = of.iter().zip(pids).map(|(map, pid)| (Property::Pid(*map), *pid));
        entry(&mut out, &all, &write_net(*net), values);
    }
    if properties.contains(&Property::Routed) {
        for (index, map, pid) in pids(&all, &chosen) {
            let value = (Property::Routed, entity::routed(map, pid));
            entry(&mut out, &all, &write_pid(&all, index, pid), [value].into_iter());
        }
    }
    Ok(end(out))
}

/// Everything that the property map covers: all prefixes are in these two.
fn everything(all: &[Arc<NetworkMap>]) -> Vec<Entity> {
    let nets = AddressType::ALL.map(|kind| Entity::Net(kind.everything()));
    let pids = all.iter().enumerate().flat_map(|(index, map)| {
        map.pids().map(move |pid| Entity::Pid { map: index, pid: pid.to_owned() })
    });
    nets.into_iter().chain(pids).collect()
}

/// The answer without properties: the entities alone (section 8.3), each of which has one.
fn names_alone(
    maps: &Maps,
    all: &[Arc<NetworkMap>],
    chosen: &[Entity],
) -> Result<Arc<[u8]>, Failure> {
    let every: Vec<usize> = (0..all.len()).collect();
    let mut names = BTreeSet::new();
    let whole;
    let chosen = if chosen.is_empty() {
        for map in all {
            maps.check_pids(map.pids().len())?;
            names.extend(map.prefixes().map(|(net, _)| write_net(net)));
        }
        whole = everything(all);
        &whole
    } else {
        names.extend(chosen.iter().filter_map(Entity::net).map(write_net));
        chosen
    };
    names.extend(pids(all, chosen).map(|(index, _, pid)| write_pid(all, index, pid)));
    let mut out = begin(depends(all, chosen, &every).into_iter());
    for name in &names {
        entry(&mut out, all, name, std::iter::empty());
    }
    Ok(end(out))
}

/// The PIDs among the entities, each with its network map.
fn pids<'a>(
    all: &'a [Arc<NetworkMap>],
    chosen: &'a [Entity],
) -> impl Iterator<Item = (usize, &'a NetworkMap, &'a str)> {
    chosen.iter().filter_map(|entity| match entity {
        Entity::Pid { map, pid } => Some((*map, &**all.get(*map)?, pid.as_str())),
        Entity::Net(_) => None,
    })
}

/// The network maps that the answer depends on: all if an entity belongs to none of them, else those of the
/// entities and the properties (section 8.6).
fn depends<'a>(
    all: &'a [Arc<NetworkMap>],
    chosen: &[Entity],
    of: &[usize],
) -> Vec<&'a Arc<NetworkMap>> {
    let agnostic = chosen.iter().any(|entity| entity.net().is_some());
    let own: HashSet<usize> = pids(all, chosen).map(|(index, ..)| index).collect();
    let needed = |index: &usize| agnostic || own.contains(index) || of.contains(index);
    all.iter().enumerate().filter(|(index, _)| needed(index)).map(|(_, map)| map).collect()
}

/// The prefixes of the answer with their PIDs in the network maps `of`.
fn nets<'a>(
    all: &'a [Arc<NetworkMap>],
    chosen: &[Entity],
    of: &[usize],
) -> BTreeMap<IpNet, Vec<&'a str>> {
    let wanted: Vec<&NetworkMap> =
        of.iter().filter_map(|map| all.get(*map)).map(|map| &**map).collect();
    let mut nets: BTreeMap<IpNet, Vec<&str>> = BTreeMap::new();
    if wanted.is_empty() {
        return nets;
    }
    for net in chosen.iter().filter_map(Entity::net) {
        let inside = wanted.iter().flat_map(|map| map.prefixes_in(net)).map(|(inner, _)| inner);
        for net in inside.chain([net]) {
            nets.entry(net)
                .or_insert_with(|| wanted.iter().map(|map| map.pid_of_prefix(net)).collect());
        }
    }
    let covered = covered(nets.keys().copied());
    nets.retain(|net, _| !covered.contains(net));
    nets
}

/// The prefixes, of these in order, that others of them cover completely.
fn covered(nets: impl Iterator<Item = IpNet>) -> HashSet<IpNet> {
    let mut covered = HashSet::new();
    // The prefixes around the current one with the number of addresses that longer ones in them have. That of
    // all IPv6 addresses is one too many for the type, and wraps to nothing.
    let mut around: Vec<(IpNet, u128, bool)> = Vec::new();
    let mut close = |(net, inside, any): (IpNet, u128, bool)| {
        if any && inside == size(net) {
            covered.insert(net);
        }
    };
    for net in nets {
        while let Some((outer, inside, any)) = around.pop() {
            if outer.contains(&net) {
                around.push((outer, inside.wrapping_add(size(net)), true));
                break;
            }
            close((outer, inside, any));
        }
        around.push((net, 0, false));
    }
    around.into_iter().rev().for_each(&mut close);
    covered
}

/// How many addresses a prefix has.
fn size(net: IpNet) -> u128 {
    1_u128.checked_shl(u32::from(net.max_prefix_len() - net.prefix_len())).unwrap_or(0)
}

/// Refuses an answer with too many PIDs of one network map.
fn check(maps: &Maps, nets: &BTreeMap<IpNet, Vec<&str>>, of: &[usize]) -> Result<(), Failure> {
    for index in 0..of.len() {
        let names: HashSet<_> = nets.values().filter_map(|pids| pids.get(index)).collect();
        maps.check_pids(names.len())?;
    }
    Ok(())
}
