//! The oracle's metrics in Prometheus' form, names `nigh_oracle_*`.

use crate::status::{FeedState, FeedStatus, Status};
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
pub(super) fn collect(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    queries(status, encoder)?;
    tables(status, encoder)?;
    feeds(&status.feeds, encoder)?;
    let (name, help) = ("nigh_oracle_healthy", "1 when nothing ails the oracle");
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

fn tables(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (name, help) = ("nigh_oracle_tables_in_force", "1 when queries can be answered");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::from(status.tables.is_some())).encode(metric)?;
    let Some(tables) = &status.tables else { return Ok(()) };
    let (name, help) = ("nigh_oracle_builds", "How many times tables were built");
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(tables.builds).encode(metric)?;
    for (name, help, value) in [
        ("nigh_oracle_tables_generation", "Rises with every change", tables.generation as f64),
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
    let (name, help) = ("nigh_oracle_feed_state", "1 for what the feed is doing");
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for feed in feeds {
        for state in STATES {
            let labels = [("feed", feed.name.as_str()), ("state", state.word())];
            gauge(&mut metric, &labels, f64::from(u8::from(feed.state == state)))?;
        }
    }
    type Get<T> = fn(&FeedStatus) -> T;
    let gauges: [(&str, &str, Get<f64>); 5] = [
        ("nigh_oracle_feed_since_seconds", "Since when, in seconds since 1970", |f| f.since),
        ("nigh_oracle_feed_routers", "Routers that the feed knows", |f| f.routers as f64),
        ("nigh_oracle_feed_links", "Links that the feed knows", |f| f.links as f64),
        ("nigh_oracle_feed_prefixes", "Own networks that it knows", |f| f.prefixes as f64),
        ("nigh_oracle_feed_routes", "Routes that it knows", |f| f.routes as f64),
    ];
    for (name, help, get) in gauges {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for feed in feeds {
            gauge(&mut metric, &[("feed", feed.name.as_str())], get(feed))?;
        }
    }
    let counters: [(&str, &str, Get<u64>); 2] = [
        ("nigh_oracle_feed_changes", "Changes that the feed sent", |f| f.changes),
        ("nigh_oracle_feed_refused", "Changes that were not taken", |f| f.refused),
    ];
    for (name, help, get) in counters {
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for feed in feeds {
            counter(&mut metric, &[("feed", feed.name.as_str())], get(feed))?;
        }
    }
    Ok(())
}
