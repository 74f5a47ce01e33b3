//! What an operator is shown of the network.

use super::{ControlError, edit::Down, name};
use crate::{
    control::{RouterName, Side},
    status::{
        CostStatus, LinkStatus, NetworkStatus, NetworksStatus, PathStatus, RouteStatus,
        RouterStatus,
    },
    tables::Tables,
};
use ipnet::IpNet;
use std::{collections::HashMap, net::IpAddr};
use topo::{Graph, Link, PathProperties, Topology, View};

pub(super) fn routers(topology: Topology<'_>) -> Vec<RouterStatus> {
    let mut rows: Vec<RouterStatus> = topology
        .routers()
        .map(|(router, name)| RouterStatus {
            router,
            name: name.map(str::to_owned),
            links: 0,
            networks: 0,
            routes: 0,
        })
        .collect();
    let indexes: HashMap<_, _> =
        rows.iter().enumerate().map(|(index, row)| (row.router, index)).collect();
    let mut count = |router, add: fn(&mut RouterStatus)| {
        if let Some(row) = indexes.get(&router).and_then(|index| rows.get_mut(*index)) {
            add(row);
        }
    };
    topology.links().for_each(|(key, _)| count(key.from, |row| row.links += 1));
    topology.internal().for_each(|(_, router)| count(router, |row| row.networks += 1));
    topology.routes().for_each(|(_, exit, _)| count(exit, |row| row.routes += 1));
    rows
}

pub(super) fn links(
    topology: Topology<'_>,
    down: &Down,
    router: Option<&RouterName>,
) -> Result<Vec<LinkStatus>, ControlError> {
    let only = router.map(|router| name::router(topology, router)).transpose()?;
    let up = topology.links().map(|link| (true, link));
    let down = down.values().flatten().map(|link| (false, *link));
    let mut rows: Vec<_> = up
        .chain(down)
        .filter(|(_, (key, _))| only.is_none_or(|router| router == key.from))
        .map(|(up, (key, properties))| LinkStatus {
            from: key.from,
            to: key.to,
            id: key.id,
            up,
            properties,
        })
        .collect();
    rows.sort_by_key(|row| (row.from, row.to, row.id));
    Ok(rows)
}

pub(super) fn networks(
    topology: Topology<'_>,
    side: Side,
    within: Option<IpNet>,
    count: usize,
) -> NetworksStatus {
    let own = topology.internal().map(|(prefix, router)| NetworkStatus {
        prefix,
        router,
        as_number: 0,
        as_distance: 0,
    });
    let others = topology.routes().map(|(prefix, router, path)| NetworkStatus {
        prefix,
        router,
        as_number: path.as_number,
        as_distance: path.as_distance,
    });
    let mut all: Box<dyn Iterator<Item = NetworkStatus>> = match side {
        Side::Internal => Box::new(own),
        Side::External => Box::new(others),
    };
    if let Some(within) = within {
        all = Box::new(all.filter(move |row| within.contains(&row.prefix)));
    }
    let rows = all.by_ref().take(count).collect();
    NetworksStatus { side, rows, more: all.count() }
}

pub(super) fn route(
    topology: Topology<'_>,
    view: &View,
    router: &RouterName,
    to: Option<&RouterName>,
) -> Result<Vec<RouteStatus>, ControlError> {
    let router = name::router(topology, router)?;
    let only = to.map(|to| name::router(topology, to)).transpose()?;
    let graph = &*view.graph;
    let Some(at) = graph.index(router) else { return Err(ControlError::Loading) };
    let tree = view.tree(at);
    let mut rows = Vec::new();
    for info in graph.routers() {
        let Some(to) = graph.index(info.id) else { continue };
        if to == at || only.is_some_and(|only| only != info.id) {
            continue;
        }
        let hop = tree.next_hop(graph, to);
        let path = tree.to(to);
        rows.push(RouteStatus {
            to: info.id,
            next_hop: hop.map(|link| graph.router(link.to).id),
            link: hop.map(|link| link.id),
            explicit: graph.next_hops().any(|(from, towards, _)| (from, towards) == (at, to)),
            weight: path.map(|path| path.weight),
            hops: path.map(|path| path.internal_hops),
        });
    }
    Ok(rows)
}

fn link(graph: &Graph, link: &Link) -> LinkStatus {
    LinkStatus {
        from: graph.router(link.from).id,
        to: graph.router(link.to).id,
        id: link.id,
        up: true,
        properties: link.properties,
    }
}

/// The path that traffic takes, and what it costs.
pub(super) fn path(
    topology: Topology<'_>,
    tables: &Tables,
    from: IpAddr,
    to: IpAddr,
) -> Result<PathStatus, ControlError> {
    let view = &*tables.view;
    let graph = &*view.graph;
    let Some(source) = tables.source(from) else {
        let message =
            format!("{from} is in no known network, and there is no oracle.default_router");
        return Err(ControlError::Value(message));
    };
    let source_is = match view.source(from) {
        None => "oracle.default_router: the source is in no known network",
        Some(_) if view.groups.get(view.group(from)).internal => "its network is attached there",
        Some(_) => "its network is reached through there",
    };
    let group_id = view.group(to);
    let group = view.groups.get(group_id);
    let tree = view.tree(source);
    let exit = tree.exit(group).map(|exit| exit.router);
    // Tables distinguish origins only where a cost or an adjustment does.
    let beyond = exit.filter(|_| !group.internal);
    let route = beyond.and_then(|exit| topology.route(graph.router(exit).id, to));
    let properties = tree.properties(group).map(|properties| PathProperties {
        as_number: route.map_or(properties.as_number, |(_, path)| path.as_number),
        ..properties
    });
    let links = exit.map(|exit| tree.path(graph, exit)).unwrap_or_default();
    let cost = |(index, metric): (usize, &crate::metric::Metric)| CostStatus {
        metric: metric.name.clone(),
        cost: tables.cost(index, source, group_id).filter(|cost| cost.is_finite()),
        rank: Some(tables.row(index, Some(source)).rank(group_id)).filter(|rank| *rank != u16::MAX),
    };
    Ok(PathStatus {
        from,
        to,
        source: graph.router(source).id,
        source_is: source_is.to_owned(),
        links: links.into_iter().map(|hop| link(graph, hop)).collect(),
        exit: exit.map(|exit| graph.router(exit).id),
        internal: group.internal,
        properties: properties.map(Into::into),
        costs: tables.policy.metrics.iter().enumerate().map(cost).collect(),
    })
}
