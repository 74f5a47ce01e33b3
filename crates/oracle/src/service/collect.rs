//! The oracle's metrics, names `nigh_oracle_*`.

use crate::{
    alto::counters::Figures,
    feeds::FeedState,
    status::{DriverStatus, FeedStatus, SessionStatus, Status},
};
use job::metrics::{Metrics, rows};
use std::fmt;

/// Adds all metrics.
pub(super) fn collect(
    status: &Status,
    figures: Option<&Figures>,
    metrics: &mut Metrics<'_>,
) -> fmt::Result {
    queries(status, metrics)?;
    if let Some(status) = &status.driver {
        driver(status, metrics)?;
    }
    if let Some(figures) = figures {
        alto(figures, metrics)?;
    }
    tables(status, metrics)?;
    feeds(&status.feeds, metrics)?;
    if let Some(unknown_peers) = status.bmp_unknown_peers {
        let (name, help) =
            ("nigh_oracle_bmp_unknown_peers", "BMP connections from addresses not configured");
        metrics.counter(name, help, unknown_peers)?;
    }
    let healthy = i64::from(status.problems.is_empty());
    metrics.gauge("nigh_oracle_healthy", "1 when the oracle is healthy", healthy)
}

/// In each thread received = the sum of replies + the sum of drops.
fn queries(status: &Status, metrics: &mut Metrics<'_>) -> fmt::Result {
    let threads: Vec<_> =
        status.threads.iter().map(|thread| (thread.thread.to_string(), &thread.queries)).collect();
    let threads = || threads.iter().map(|(thread, queries)| (("thread", thread.as_str()), queries));
    metrics.counters(
        "nigh_oracle_received",
        "Datagrams that arrived at the sockets",
        threads().map(|(thread, queries)| ([thread], queries.received)),
    )?;
    metrics.counters(
        "nigh_oracle_replies",
        "Replies, by Rcode",
        threads().flat_map(|(thread, queries)| {
            rows("rcode", &queries.replies).map(move |([rcode], count)| ([thread, rcode], count))
        }),
    )?;
    metrics.counters(
        "nigh_oracle_dropped",
        "Datagrams without a reply, by reason",
        threads().flat_map(|(thread, queries)| {
            rows("reason", &queries.dropped).map(move |([reason], count)| ([thread, reason], count))
        }),
    )
}

/// In the driver received = answered + the sum of passed + the sum of dropped.
fn driver(status: &DriverStatus, metrics: &mut Metrics<'_>) -> fmt::Result {
    for (name, help, value) in [
        ("nigh_oracle_driver_received", "Requests that the XDP program received", status.received),
        ("nigh_oracle_driver_answered", "Requests that the XDP program answered", status.answered),
        (
            "nigh_oracle_filter_passed",
            "Datagrams that the filter passed to the sockets",
            status.filter_passed,
        ),
        (
            "nigh_oracle_filter_dropped",
            "Datagrams of sources over their rate, dropped before the sockets",
            status.filter_dropped,
        ),
    ] {
        metrics.counter(name, help, value)?;
    }
    for (name, help, counts) in [
        ("nigh_oracle_driver_passed", "Requests passed to the sockets, by reason", &status.passed),
        ("nigh_oracle_driver_dropped", "Requests dropped, by reason", &status.dropped),
    ] {
        metrics.counters(name, help, rows("reason", counts))?;
    }
    Ok(())
}

fn alto(figures: &Figures, metrics: &mut Metrics<'_>) -> fmt::Result {
    metrics.counters(
        "nigh_oracle_alto_requests",
        "ALTO requests, by resource and status",
        figures.requests.iter().map(|row| {
            ([("resource", row.resource.clone()), ("status", row.status.to_string())], row.count)
        }),
    )?;
    metrics.counters(
        "nigh_oracle_alto_refused",
        "Connections and requests that ALTO refused or ended, by reason",
        rows("reason", &figures.refused),
    )?;
    for (name, help, value) in [
        ("nigh_oracle_alto_connections", "Connections accepted", figures.connections),
        ("nigh_oracle_alto_in_bytes", "Bytes received", figures.bytes_in),
        ("nigh_oracle_alto_out_bytes", "Bytes sent", figures.bytes_out),
        ("nigh_oracle_alto_events", "Events of update streams", figures.events),
    ] {
        metrics.counter(name, help, value)?;
    }
    for (name, help, value) in [
        ("nigh_oracle_alto_connections_open", "Connections open", figures.connections_open),
        ("nigh_oracle_alto_streams_open", "Update streams open", figures.streams_open),
        ("nigh_oracle_alto_polls_open", "Requests that wait for an update", figures.polls_open),
        ("nigh_oracle_alto_memory_bytes", "Requests and answers in memory", figures.memory_bytes),
    ] {
        metrics.gauge(name, help, value as f64)?;
    }
    Ok(())
}

fn tables(status: &Status, metrics: &mut Metrics<'_>) -> fmt::Result {
    let in_force = i64::from(status.tables.is_some());
    metrics.gauge("nigh_oracle_tables_in_force", "1 when queries can be answered", in_force)?;
    let Some(tables) = &status.tables else { return Ok(()) };
    metrics.counter("nigh_oracle_builds", "Builds of the tables", tables.builds)?;
    for (name, help, value) in [
        (
            "nigh_oracle_tables_generation",
            "Generation of the tables; increases with every change",
            tables.generation as f64,
        ),
        (
            "nigh_oracle_tables_since_seconds",
            "When the tables were put in force, in seconds since 1970",
            tables.since,
        ),
        ("nigh_oracle_build_seconds", "How long the last build took", tables.build_seconds),
        ("nigh_oracle_tables_bytes", "Memory of the tables", tables.bytes as f64),
        ("nigh_oracle_routers", "Routers", tables.routers as f64),
        ("nigh_oracle_links", "Links, counted in each direction", tables.links as f64),
        ("nigh_oracle_groups", "Groups of prefixes", tables.groups as f64),
        ("nigh_oracle_sources", "Routers from which requests come", tables.sources as f64),
    ] {
        metrics.gauge(name, help, value)?;
    }
    Ok(())
}

fn feeds(feeds: &[FeedStatus], metrics: &mut Metrics<'_>) -> fmt::Result {
    const STATES: [FeedState; 6] = [
        FeedState::Loading,
        FeedState::Live,
        FeedState::Waiting,
        FeedState::Stale,
        FeedState::Dropped,
        FeedState::Failed,
    ];
    let states = feeds.iter().flat_map(|feed| {
        STATES.map(|state| {
            let labels = [("feed", feed.name.as_str()), ("state", state.name())];
            (labels, f64::from(feed.state == state))
        })
    });
    metrics.gauges("nigh_oracle_feed_state", "1 for the state of the feed", states)?;
    let rows = || feeds.iter().map(|feed| ([("feed", feed.name.as_str())], feed));
    type Get<T> = fn(&FeedStatus) -> T;
    let gauges: [(&str, &str, Get<f64>); 5] = [
        (
            "nigh_oracle_feed_since_seconds",
            "When the feed changed its state, in seconds since 1970",
            |f| f.since,
        ),
        ("nigh_oracle_feed_routers", "Routers that the feed reports", |f| f.routers as f64),
        ("nigh_oracle_feed_links", "Links that the feed reports", |f| f.links as f64),
        ("nigh_oracle_feed_prefixes", "Internal networks that the feed reports", |f| {
            f.prefixes as f64
        }),
        ("nigh_oracle_feed_routes", "Routes that the feed reports", |f| f.routes as f64),
    ];
    for (name, help, get) in gauges {
        metrics.gauges(name, help, rows().map(|(labels, feed)| (labels, get(feed))))?;
    }
    let counters: [(&str, &str, Get<u64>); 2] = [
        ("nigh_oracle_feed_changes", "Changes that the feed reported", |f| f.changes),
        ("nigh_oracle_feed_refused", "Changes of the feed that were refused", |f| f.refused),
    ];
    for (name, help, get) in counters {
        metrics.counters(name, help, rows().map(|(labels, feed)| (labels, get(feed))))?;
    }
    sessions(feeds, metrics)
}

/// The sessions of live feeds.
fn sessions(feeds: &[FeedStatus], metrics: &mut Metrics<'_>) -> fmt::Result {
    let live = || {
        let live = feeds.iter().filter_map(|feed| Some((feed, feed.session.as_ref()?)));
        live.map(|(feed, session)| ([("feed", feed.name.as_str())], session))
    };
    type Get<T> = fn(&SessionStatus) -> T;
    let counters: [(&str, &str, Get<u64>); 6] = [
        ("nigh_oracle_feed_sessions", "Sessions that came up", |s| s.sessions),
        ("nigh_oracle_feed_errors", "Sessions and attempts that ended with an error", |s| s.errors),
        ("nigh_oracle_feed_messages", "Messages received", |s| s.messages),
        ("nigh_oracle_feed_malformed", "Malformed items that were skipped", |s| s.malformed),
        ("nigh_oracle_feed_ignored", "Items that were ignored, such as unknown types", |s| {
            s.ignored
        }),
        ("nigh_oracle_feed_over_limit", "Refused beyond max_routes or max_objects", |s| {
            s.over_limit
        }),
    ];
    for (name, help, get) in counters {
        metrics.counters(name, help, live().map(|(labels, session)| (labels, get(session))))?;
    }
    let gauges: [(&str, &str, Get<usize>); 2] = [
        ("nigh_oracle_feed_peers", "Peers of the router that are up", |s| s.peers),
        ("nigh_oracle_feed_stale", "Routes left from the previous session", |s| s.stale),
    ];
    for (name, help, get) in gauges {
        metrics.gauges(
            name,
            help,
            live().map(|(labels, session)| (labels, get(session) as f64)),
        )?;
    }
    Ok(())
}
