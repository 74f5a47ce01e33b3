//! Entity properties (RFC 9240) of addresses, prefixes and PIDs.
//!
//! | domain | properties | meaning |
//! |---|---|---|
//! | `ipv4`, `ipv6` | `<map>.pid` | the PID in each network map (section 8.7.1) |
//! | `<map>.pid` | `.priv:nigh-routed` | `no` for the PID of what the operator has no route to, else `yes` |
//!
//! Both can be read out of the network and cost maps; nothing is disclosed here that they hide (decision 108). Values
//! of a prefix hold for what is in it until a longer prefix overrides them (section 6.1.3).

mod entity;
mod filtered;

use super::{failure::Failure, maps::Maps, network_map::NetworkMap, resource::Resource};
use entity::{Property, write_net};
use serde_json::{Map, Value, json};
use std::{fmt::Write, sync::Arc};

pub use filtered::filtered;

/// Media type of a property map (section 7.1).
pub const PROPERTY_MAP: &str = "application/alto-propmap+json";
/// Media type of the input of a filtered one (section 8.3).
pub const PROPERTY_MAP_PARAMETERS: &str = "application/alto-propmapparams+json";
/// Identity of the full property map.
pub const FULL: &str = "property-map";
/// Identity of the filtered one.
pub const FILTERED: &str = "property-map-filtered";

/// The full and the filtered property map (sections 7.4 and 8.4).
pub fn resources(maps: &Maps) -> Vec<Resource> {
    let ids: Vec<&str> = maps.network_map_ids().collect();
    let pids: Vec<String> = ids.iter().map(|id| format!("{id}.pid")).collect();
    let mut mappings = Map::new();
    mappings.insert("ipv4".to_owned(), json!(pids));
    mappings.insert("ipv6".to_owned(), json!(pids));
    for pid in pids {
        mappings.insert(pid, json!([entity::ROUTED]));
    }
    let capabilities = json!({ "mappings": mappings });
    let resource = |id: &str, path: &str, accepts| {
        let uses = ids.iter().map(|id| (*id).to_owned()).collect();
        let (id, path) = (id.to_owned(), path.to_owned());
        Resource::other(id, path, PROPERTY_MAP, accepts, capabilities.clone(), uses)
    };
    vec![
        resource(FULL, "/propmap/full", None),
        resource(FILTERED, "/propmap/lookup", Some(PROPERTY_MAP_PARAMETERS)),
    ]
}

/// The whole property map (section 7.6). What a prefix inherits is omitted.
///
/// # Errors
///
/// It has more PIDs than are given out at once.
pub fn full(maps: &Maps) -> Result<Arc<[u8]>, Failure> {
    maps.check_all()?;
    let all = network_maps(maps);
    for map in &all {
        maps.check_pids(map.pids().len())?;
    }
    let mut prefixes: Vec<_> = (0..)
        .zip(&all)
        .flat_map(|(index, map)| map.prefixes().map(move |(net, pid)| (net, index, pid)))
        .collect();
    prefixes.sort_unstable();
    let mut out = begin(all.iter());
    for of_net in prefixes.chunk_by(|(one, ..), (other, ..)| one == other) {
        let Some((net, ..)) = of_net.first() else { continue };
        let values = of_net.iter().map(|(_, index, pid)| (Property::Pid(*index), *pid));
        entry(&mut out, &all, &write_net(*net), values);
    }
    for (index, map) in all.iter().enumerate() {
        for pid in map.pids() {
            let value = (Property::Routed, entity::routed(map, pid));
            entry(&mut out, &all, &entity::write_pid(&all, index, pid), [value].into_iter());
        }
    }
    Ok(end(out))
}

/// The network maps, in the order of the directory.
fn network_maps(maps: &Maps) -> Vec<Arc<NetworkMap>> {
    maps.network_map_ids().filter_map(|id| maps.network_map(id)).collect()
}

/// The beginning of an answer that depends on these network maps.
fn begin<'a>(depends: impl Iterator<Item = &'a Arc<NetworkMap>>) -> String {
    let tags: Vec<Value> = depends.map(|map| map.vtag()).collect();
    let meta = if tags.is_empty() { json!({}) } else { json!({ "dependent-vtags": tags }) };
    format!("{{\"meta\":{meta},\"property-map\":{{")
}

/// One entity. Names and values have no signs that JSON would write differently.
fn entry<'a>(
    out: &mut String,
    all: &[Arc<NetworkMap>],
    entity: &str,
    values: impl Iterator<Item = (Property, &'a str)>,
) {
    let comma = if out.ends_with('{') { "" } else { "," };
    // Writing to a string does not fail.
    let _ = write!(out, "{comma}\"{entity}\":{{");
    for (index, (property, value)) in values.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\"{}\":\"{value}\"", property.name(all));
    }
    out.push('}');
}

fn end(mut out: String) -> Arc<[u8]> {
    out.push_str("}}");
    out.into_bytes().into()
}
