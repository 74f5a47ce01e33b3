//! The information resource directory (RFC 7285, 9.2).

use super::{
    config::MapConfig,
    cost_request::Offer,
    resource::{Kind, Resource},
};
use serde_json::{Map, Value, json};

/// The resources of these network maps: of each the map, its filtered form, a full cost map
/// for each cost type and a filtered one; and the two endpoint services.
pub(super) fn resources(maps: &[MapConfig], offer: &Offer) -> Vec<Resource> {
    let mut resources = Vec::new();
    let mut add = |id: String, path: String, kind: Kind, capabilities: Value, uses: &[&str]| {
        let (media_type, accepts) = kind.media_types();
        let uses = uses.iter().map(|id| (*id).to_owned()).collect();
        resources.push(Resource { id, path, media_type, accepts, capabilities, uses, kind });
    };
    for (index, map) in maps.iter().enumerate() {
        let id = map.id.as_str();
        let none = Value::Null;
        add(id.to_owned(), format!("/networkmap/{id}"), Kind::NetworkMap(index), none.clone(), &[]);
        let (name, path) = (format!("{id}-filtered"), format!("/networkmap/{id}/filtered"));
        add(name, path, Kind::FilteredNetworkMap(index), none, &[id]);
        for kind in &offer.types {
            let (name, path) =
                (format!("{id}-{}", kind.name), format!("/costmap/{id}/{}", kind.name));
            let capabilities = json!({ "cost-type-names": [kind.name] });
            add(name, path, Kind::CostMap { map: index, kind: kind.clone() }, capabilities, &[id]);
        }
        let (name, path) = (format!("{id}-costs-filtered"), format!("/costmap/{id}/filtered"));
        add(name, path, Kind::FilteredCostMap(index), offer.capabilities(), &[id]);
    }
    let properties: Vec<String> = maps.iter().map(|map| format!("{}.pid", map.id)).collect();
    let capabilities = json!({ "prop-types": properties });
    let path = "/endpointprop/lookup".to_owned();
    add("endpoint-property".into(), path, Kind::EndpointProperty, capabilities, &[]);
    let path = "/endpointcost/lookup".to_owned();
    add("endpoint-cost".into(), path, Kind::EndpointCost, offer.capabilities(), &[]);
    resources
}

/// The directory as JSON.
pub(super) fn write<'a>(
    base: &str,
    offer: &Offer,
    resources: impl Iterator<Item = &'a Resource> + Clone,
) -> Vec<u8> {
    let types: Map<String, Value> =
        offer.types.iter().map(|kind| (kind.name.clone(), kind.to_json())).collect();
    let default = resources.clone().find(|resource| matches!(resource.kind, Kind::NetworkMap(_)));
    let entries: Map<String, Value> =
        resources.map(|resource| (resource.id.clone(), resource.entry(base))).collect();
    json!({
        "meta": {
            "cost-types": types,
            "default-alto-network-map": default.map(|resource| &resource.id),
        },
        "resources": entries,
    })
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alto::DIRECTORY_PATH;

    #[test]
    fn the_manual_asks_for_resources_that_are_there() {
        let offer = Offer { types: Vec::new(), testable: None, calendars: Vec::new() };
        let resources = resources(&[], &offer);
        let manual = include_str!("../../../../docs/oracle.md");
        let ends = |c: char| c.is_whitespace() || c == '`';
        let urls = manual.split("https://localhost:6671").skip(1);
        let paths: Vec<&str> = urls.filter_map(|rest| rest.split(ends).next()).collect();
        assert!(paths.len() >= 3, "{paths:?}");
        for path in paths {
            let there = path == DIRECTORY_PATH || resources.iter().any(|it| it.path == path);
            assert!(there, "{path}");
        }
    }
}
