//! The oracle's metrics in Prometheus' form, names `nigh_oracle_*`.

use crate::{
    alto::counters::Figures,
    feeds::FeedState,
    status::{DriverStatus, FeedStatus, SessionStatus, Status},
};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use std::fmt;

fn counter(
    encoder: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    value: u64,
) -> fmt::Result {
    ConstCounter::new(value).encode(encoder.encode_family(labels)?)
}

fn gauge(encoder: &mut MetricEncoder<'_>, labels: &impl EncodeLabelSet, value: f64) -> fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_family(labels)?)
}

/// Adds all metrics.
pub(super) fn collect(
    status: &Status,
    figures: Option<&Figures>,
    encoder: &mut DescriptorEncoder<'_>,
) -> fmt::Result {
    queries(status, encoder)?;
    if let Some(status) = &status.driver {
        driver(status, encoder)?;
    }
    if let Some(figures) = figures {
        alto(figures, encoder)?;
    }
    tables(status, encoder)?;
    feeds(&status.feeds, encoder)?;
    if let Some(unknown_peers) = status.bmp_unknown_peers {
        let (name, help) =
            ("nigh_oracle_bmp_unknown_peers", "BMP connections from addresses not configured");
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(unknown_peers).encode(metric)?;
    }
    let (name, help) = ("nigh_oracle_healthy", "1 when the oracle is healthy");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::from(status.healthy)).encode(metric)
}

/// In each thread received = the sum of replies + the sum of drops.
fn queries(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let threads: Vec<_> =
        status.threads.iter().map(|thread| (thread.thread.to_string(), &thread.queries)).collect();
    let (name, help) = ("nigh_oracle_received", "Datagrams that arrived at the sockets");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (thread, queries) in &threads {
        counter(&mut metric, &[("thread", thread.as_str())], queries.received)?;
    }
    let (name, help) = ("nigh_oracle_replies", "Replies, by Rcode");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (thread, queries) in &threads {
        for (rcode, count) in &queries.replies {
            let labels = [("thread", thread.as_str()), ("rcode", rcode.as_str())];
            counter(&mut metric, &labels, *count)?;
        }
    }
    let (name, help) = ("nigh_oracle_dropped", "Datagrams without a reply, by reason");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (thread, queries) in &threads {
        for (reason, count) in &queries.dropped {
            let labels = [("thread", thread.as_str()), ("reason", reason.as_str())];
            counter(&mut metric, &labels, *count)?;
        }
    }
    Ok(())
}

/// In the driver received = answered + the sum of passed + the sum of dropped.
fn driver(status: &DriverStatus, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, value) in [
        ("nigh_oracle_driver_received", "Requests that the XDP program received", status.received),
        ("nigh_oracle_driver_answered", "Requests that the XDP program answered", status.answered),
        ("nigh_oracle_filter_passed", "Datagrams let in to the sockets", status.filter_passed),
        (
            "nigh_oracle_filter_dropped",
            "Datagrams of sources over their rate, dropped before the sockets",
            status.filter_dropped,
        ),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)?;
    }
    for (name, help, counts) in [
        ("nigh_oracle_driver_passed", "Requests left to the sockets, by reason", &status.passed),
        ("nigh_oracle_driver_dropped", "Requests dropped, by reason", &status.dropped),
    ] {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (reason, count) in counts {
            counter(&mut metric, &[("reason", reason.as_str())], *count)?;
        }
    }
    Ok(())
}

fn alto(figures: &Figures, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (name, help) = ("nigh_oracle_alto_requests", "ALTO requests, by resource and status");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for row in &figures.requests {
        let status = row.status.to_string();
        let labels = [("resource", row.resource.as_str()), ("status", status.as_str())];
        counter(&mut metric, &labels, row.count)?;
    }
    let (name, help) =
        ("nigh_oracle_alto_refused", "Connections and requests that ALTO refused, by reason");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (reason, count) in &figures.refused {
        counter(&mut metric, &[("reason", *reason)], *count)?;
    }
    for (name, help, value) in [
        ("nigh_oracle_alto_connections", "Connections accepted", figures.connections),
        ("nigh_oracle_alto_in_bytes", "Bytes received", figures.bytes_in),
        ("nigh_oracle_alto_out_bytes", "Bytes sent", figures.bytes_out),
        ("nigh_oracle_alto_events", "Events of update streams", figures.events),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)?;
    }
    for (name, help, value) in [
        ("nigh_oracle_alto_connections_open", "Connections open", figures.connections_open),
        ("nigh_oracle_alto_streams_open", "Update streams open", figures.streams_open),
        ("nigh_oracle_alto_polls_open", "Requests that wait for an update", figures.polls_open),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value as f64).encode(metric)?;
    }
    Ok(())
}

fn tables(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (name, help) = ("nigh_oracle_tables_in_force", "1 when queries can be answered");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::from(status.tables.is_some())).encode(metric)?;
    let Some(tables) = &status.tables else { return Ok(()) };
    let (name, help) = ("nigh_oracle_builds", "Builds of the tables");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(tables.builds).encode(metric)?;
    for (name, help, value) in [
        (
            "nigh_oracle_tables_generation",
            "Number of the tables; rises with every change",
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
        ("nigh_oracle_links", "Links, each direction by itself", tables.links as f64),
        ("nigh_oracle_groups", "Groups of prefixes", tables.groups as f64),
        ("nigh_oracle_sources", "Routers that requests come from", tables.sources as f64),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)?;
    }
    Ok(())
}

fn feeds(feeds: &[FeedStatus], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    const STATES: [FeedState; 6] = [
        FeedState::Loading,
        FeedState::Live,
        FeedState::Waiting,
        FeedState::Stale,
        FeedState::Dropped,
        FeedState::Failed,
    ];
    let (name, help) = ("nigh_oracle_feed_state", "1 for the state of the feed");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for feed in feeds {
        for state in STATES {
            let labels = [("feed", feed.name.as_str()), ("state", state.name())];
            gauge(&mut metric, &labels, f64::from(u8::from(feed.state == state)))?;
        }
    }
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
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for feed in feeds {
            gauge(&mut metric, &[("feed", feed.name.as_str())], get(feed))?;
        }
    }
    let counters: [(&str, &str, Get<u64>); 2] = [
        ("nigh_oracle_feed_changes", "Changes that the feed reported", |f| f.changes),
        ("nigh_oracle_feed_refused", "Changes of the feed that were refused", |f| f.refused),
    ];
    for (name, help, get) in counters {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for feed in feeds {
            counter(&mut metric, &[("feed", feed.name.as_str())], get(feed))?;
        }
    }
    sessions(feeds, encoder)
}

/// The sessions of live feeds.
fn sessions(feeds: &[FeedStatus], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let live: Vec<_> = feeds
        .iter()
        .filter_map(|feed| Some(([("feed", feed.name.as_str())], feed.session.as_ref()?)))
        .collect();
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
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, session) in &live {
            counter(&mut metric, labels, get(session))?;
        }
    }
    let gauges: [(&str, &str, Get<usize>); 2] = [
        ("nigh_oracle_feed_peers", "Peers of the router that are up", |s| s.peers),
        ("nigh_oracle_feed_stale", "Routes left from the session before", |s| s.stale),
    ];
    for (name, help, get) in gauges {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, session) in &live {
            gauge(&mut metric, labels, get(session) as f64)?;
        }
    }
    Ok(())
}
