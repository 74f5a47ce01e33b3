//! The state as text for people: plain tables without borders, so that lines can be grepped.

use super::{
    DriverStatus, DumpStatus, FeedStatus, FeedsStatus, LinkStatus, MetricStatus, NetworksStatus,
    PathStatus, QueryStatus, RouteStatus, RouterStatus, SessionStatus, Status, ThreadStatus,
};
use crate::control::Side;
use std::fmt::{Display, Write as _};
use terminal::text::{ago, counts, lines, table};

/// A value, or a dash where there is none.
fn or_dash<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The whole state, for `nigh status` and `nigh oracle status`.
pub fn render_status(status: &Status) -> String {
    let mut out = String::new();
    let health = if status.problems.is_empty() { "healthy" } else { "NOT HEALTHY" };
    let listen: Vec<_> = status.listen.iter().map(ToString::to_string).collect();
    let _ = writeln!(out, "oracle: {health}, Proxidor at {}", listen.join(", "));
    for problem in &status.problems {
        let _ = writeln!(out, "  ! {problem}");
    }
    match &status.tables {
        None => out.push_str("tables: none yet, requests are answered \"server busy\"\n"),
        Some(tables) => {
            let _ = writeln!(
                out,
                "tables: generation {} for {}, built in {:.3} s ({} builds), {:.1} MB\n\
                 network: {} routers, {} links, {} groups of prefixes, {} sources",
                tables.generation,
                ago(tables.since),
                tables.build_seconds,
                tables.builds,
                tables.bytes as f64 / 1e6,
                tables.routers,
                tables.links,
                tables.groups,
                tables.sources
            );
        }
    }
    let limit = &status.limit;
    if limit.rate == 0 {
        out.push_str("limit: none\n");
    } else {
        let _ = writeln!(
            out,
            "limit: {} requests a second and {} at once for each /{} (IPv4) and /{} (IPv6)",
            limit.rate, limit.burst, limit.prefix4, limit.prefix6
        );
    }
    out.push('\n');
    out.push_str(&queries(&status.queries));
    if let Some(driver) = &status.driver {
        out.push_str(&render_driver(driver));
    }
    if let Some(alto) = &status.alto {
        let listen: Vec<_> = alto.listen.iter().map(ToString::to_string).collect();
        let requests = alto.figures["requests"].as_array().into_iter().flatten();
        let sum: u64 = requests.filter_map(|row| row["count"].as_u64()).sum();
        let _ = writeln!(
            out,
            "ALTO at {}: {sum} requests, {} connections, certificate {}",
            listen.join(", "),
            alto.figures["connections"],
            alto.fingerprint
        );
    }
    out.push('\n');
    out.push_str(&feeds(&status.feeds, status.bmp_unknown_peers));
    out.push('\n');
    out.push_str(&render_metrics(&status.metrics));
    out
}

fn render_driver(driver: &DriverStatus) -> String {
    let mut out = String::new();
    if let Some(fallback) = &driver.fallback {
        let _ = writeln!(out, "driver: {fallback}");
    }
    // What all have in common is said.
    let interfaces = driver.interfaces.iter().filter(|_| driver.fallback.is_none());
    for interface in interfaces {
        let mode = interface.mode.as_deref();
        let mode = mode.map_or_else(|| "the sockets alone".into(), |mode| format!("{mode} XDP"));
        let why = interface.why.as_deref().map_or_else(String::new, |why| format!(" ({why})"));
        let _ = writeln!(out, "interface {}: {mode}{why}", interface.name);
    }
    if driver.fallback.is_none() && !driver.interfaces.is_empty() {
        let _ = writeln!(
            out,
            "driver: {} received, {} answered, {} passed to the sockets, {} dropped",
            driver.received,
            driver.answered,
            driver.passed.values().sum::<u64>(),
            driver.dropped.values().sum::<u64>()
        );
    }
    if driver.filter_dropped > 0 {
        let _ = writeln!(out, "limit: {} dropped before the sockets", driver.filter_dropped);
    }
    out
}

fn queries(queries: &QueryStatus) -> String {
    format!(
        "queries: {} received\nreplies: {}\ndropped: {}\n",
        queries.received,
        counts(&queries.replies),
        counts(&queries.dropped)
    )
}

/// For `nigh oracle print threads`.
pub fn render_threads(threads: &[ThreadStatus]) -> String {
    let mut table = table(["thread", "core", "received", "replies", "dropped"], 0);
    for ThreadStatus { thread, core, queries } in threads {
        table.add_row([
            thread.to_string(),
            or_dash(*core),
            queries.received.to_string(),
            queries.replies.values().sum::<u64>().to_string(),
            queries.dropped.values().sum::<u64>().to_string(),
        ]);
    }
    lines(&table)
}

/// For `nigh oracle print feeds`.
pub fn render_feeds(status: &FeedsStatus) -> String {
    feeds(&status.feeds, status.bmp_unknown_peers)
}

fn feeds(feeds: &[FeedStatus], unknown_peers: Option<u64>) -> String {
    let header = ["feed", "state", "for", "routers", "links", "networks", "routes", "changes"];
    let mut table = table(header, 3);
    for feed in feeds {
        table.add_row([
            feed.name.clone(),
            feed.state.name().to_owned(),
            ago(feed.since),
            feed.routers.to_string(),
            feed.links.to_string(),
            feed.prefixes.to_string(),
            feed.routes.to_string(),
            feed.changes.to_string(),
        ]);
    }
    let mut out = lines(&table);
    for feed in feeds.iter().filter(|feed| !feed.detail.is_empty()) {
        let _ = writeln!(out, "{}: {}", feed.name, feed.detail);
    }
    let sessions = feeds.iter().filter_map(|feed| Some((feed, feed.session.as_ref()?)));
    out.push_str(&sessions_of(sessions));
    if let Some(unknown_peers) = unknown_peers {
        let _ = writeln!(out, "BMP: {unknown_peers} connections from unknown peers, all closed");
    }
    out
}

/// The sessions of live feeds; empty where there are none.
fn sessions_of<'a>(feeds: impl Iterator<Item = (&'a FeedStatus, &'a SessionStatus)>) -> String {
    let header = [
        "live feed",
        "name",
        "sessions",
        "errors",
        "peers",
        "messages",
        "malformed",
        "ignored",
        "over limit",
        "stale",
    ];
    let mut table = table(header, 2);
    for (feed, session) in feeds {
        table.add_row([
            feed.name.clone(),
            or_dash(session.name.as_deref()),
            session.sessions.to_string(),
            session.errors.to_string(),
            session.peers.to_string(),
            session.messages.to_string(),
            session.malformed.to_string(),
            session.ignored.to_string(),
            session.over_limit.to_string(),
            session.stale.to_string(),
        ]);
    }
    if table.is_empty() { String::new() } else { format!("\n{}", lines(&table)) }
}

/// For `nigh oracle print metrics`.
pub fn render_metrics(metrics: &[MetricStatus]) -> String {
    let mut table = table(["metric", "bit", "cost"], 9);
    for metric in metrics {
        table.add_row([metric.name.clone(), metric.bit.to_string(), metric.cost.clone()]);
    }
    lines(&table)
}

/// For `nigh oracle print routers`.
pub fn render_routers(routers: &[RouterStatus]) -> String {
    let mut table = table(["router", "name", "links", "networks", "routes"], 2);
    for router in routers {
        table.add_row([
            router.router.to_string(),
            or_dash(router.name.as_deref()),
            router.links.to_string(),
            router.networks.to_string(),
            router.routes.to_string(),
        ]);
    }
    lines(&table)
}

/// For `nigh oracle print links`.
pub fn render_links(links: &[LinkStatus]) -> String {
    let header =
        ["from", "to", "interface", "state", "Mbit/s", "ms", "weight", "congestion", "loss"];
    let mut table = table(header, 4);
    for link in links {
        let LinkStatus { from, to, id, up, properties } = link;
        table.add_row([
            from.to_string(),
            to.to_string(),
            id.to_string(),
            if *up { "up" } else { "down" }.to_owned(),
            properties.bandwidth.to_string(),
            properties.latency.to_string(),
            properties.weight.to_string(),
            properties.congestion.to_string(),
            properties.loss.to_string(),
        ]);
    }
    lines(&table)
}

/// For `nigh oracle print networks`.
pub fn render_networks(networks: &NetworksStatus) -> String {
    let mut out = match networks.side {
        Side::Internal => {
            let mut table = table(["network", "router"], 9);
            for row in &networks.rows {
                table.add_row([row.prefix.to_string(), row.router.to_string()]);
            }
            lines(&table)
        }
        Side::External => {
            let mut table = table(["network", "exit", "origin AS", "ASes"], 2);
            for row in &networks.rows {
                table.add_row([
                    row.prefix.to_string(),
                    row.router.to_string(),
                    row.as_number.to_string(),
                    row.as_distance.to_string(),
                ]);
            }
            lines(&table)
        }
    };
    if networks.more > 0 {
        let _ = writeln!(out, "and {} more: --count shows them", networks.more);
    }
    out
}

/// For `nigh oracle print route`.
pub fn render_routes(routes: &[RouteStatus]) -> String {
    let mut table = table(["to", "next hop", "interface", "weight", "hops", "by"], 2);
    for route in routes {
        table.add_row([
            route.to.to_string(),
            or_dash(route.next_hop),
            or_dash(route.link),
            or_dash(route.weight),
            or_dash(route.hops),
            if route.explicit { "hand" } else { "weight" }.to_owned(),
        ]);
    }
    lines(&table)
}

/// For `nigh oracle print path`.
pub fn render_path(path: &PathStatus) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "from {} at router {} ({})", path.from, path.source, path.source_is);
    match path.exit {
        None => {
            let _ = writeln!(out, "to   {}, which is not known", path.to);
        }
        Some(exit) if path.internal => {
            let _ = writeln!(out, "to   {} at router {exit}", path.to);
        }
        Some(exit) => {
            let _ = writeln!(out, "to   {} beyond router {exit}", path.to);
        }
    }
    if !path.links.is_empty() {
        out.push('\n');
        out.push_str(&render_links(&path.links));
    }
    out.push('\n');
    match &path.properties {
        None => out.push_str("no path\n"),
        Some(values) => {
            let bandwidth = values
                .min_bandwidth_mbit
                .map_or_else(|| "unlimited".to_owned(), |value| format!("{value} Mbit/s"));
            for (name, value) in [
                ("min_bandwidth", bandwidth),
                ("latency", format!("{} ms", values.latency_ms)),
                ("internal_hops", values.internal_hops.to_string()),
                ("as_number", values.as_number.to_string()),
                ("as_distance", values.as_distance.to_string()),
                ("weight", values.weight.to_string()),
                ("congestion", values.congestion.to_string()),
                ("loss", values.loss.to_string()),
            ] {
                let _ = writeln!(out, "{name:<14}{value}");
            }
        }
    }
    for cost in &path.costs {
        let value = cost.cost.map_or_else(|| "unknown".to_owned(), |cost| format!("{cost:.6}"));
        let rank = cost.rank.map_or_else(String::new, |rank| format!(", rank {rank}"));
        let _ = writeln!(out, "cost {}: {value}{rank}", cost.metric);
    }
    out
}

/// For `nigh oracle dump`.
pub fn render_dump(dump: &DumpStatus) -> String {
    let mut out = String::new();
    for warning in &dump.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    let _ = writeln!(out, "wrote {} and {}", dump.oracle_conf.display(), dump.file.display());
    out
}
