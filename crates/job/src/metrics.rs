//! How metrics are exported, in the OpenMetrics text form: one call for each name.

use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
    },
    metrics::MetricType,
    registry::Registry,
};
use std::{collections::BTreeMap, fmt};

/// Takes the metrics of a scrape.
///
/// A row of a metric with labels is `([("label", value), ...], number)`. A method fails only where a
/// value does not format, which is a mistake in the program.
#[derive(Debug)]
pub struct Metrics<'a>(DescriptorEncoder<'a>);

impl Metrics<'_> {
    /// Adds a counter; in the text `_total` is appended to its name.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        count: impl EncodeCounterValue,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
    }

    /// Adds a counter with a row for each set of labels.
    pub fn counters<L: EncodeLabelSet, C: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (L, C)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        rows.into_iter().try_for_each(|(labels, count)| {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)
        })
    }

    /// Adds a gauge.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// Adds a gauge with a row for each set of labels.
    pub fn gauges<L: EncodeLabelSet, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        rows.into_iter()
            .try_for_each(|(labels, value)| metric.encode_family(&labels)?.encode_gauge(&value))
    }

    /// Adds a histogram: sum and count of its samples, and how many of them each bucket has up to its
    /// bound.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        (sum, count): (f64, u64),
        buckets: &[(f64, u64)],
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(sum, count, buckets, None)
    }

    /// Adds facts that do not change; in the text `_info` is appended to the name.
    pub fn info(&mut self, name: &str, help: &str, facts: &impl EncodeLabelSet) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(facts)
    }
}

/// The rows of a metric that has one label, from numbers by its value.
pub fn rows<'a, K: AsRef<str>>(
    label: &'a str,
    counts: &'a BTreeMap<K, u64>,
) -> impl Iterator<Item = ([(&'a str, &'a str); 1], u64)> {
    counts.iter().map(move |(word, count)| ([(label, word.as_ref())], *count))
}

/// The text of what `collect` adds.
///
/// # Errors
///
/// The error of `collect`.
pub fn text(
    collect: impl Fn(&mut Metrics<'_>) -> fmt::Result + Send + Sync + 'static,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Source(collect)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

/// What a registry asks at each scrape.
struct Source<F>(F);

impl<F> fmt::Debug for Source<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl<F: Fn(&mut Metrics<'_>) -> fmt::Result + Send + Sync + 'static> Collector for Source<F> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)(&mut Metrics(encoder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_openmetrics() {
        let text = text(|metrics| {
            metrics.info("build", "What runs", &[("version", "1")])?;
            metrics.counter("runs", "Runs", 2u64)?;
            metrics.counter("cpu_seconds", "Time", 0.5)?;
            metrics.counters("lost", "Lost", [([("why", "full")], 3u64), ([("why", "old")], 0)])?;
            metrics.counters("none", "No row", [([("why", "")], 0u64); 0])?;
            metrics.gauge("healthy", "Healthy", 1i64)?;
            metrics.gauges("size", "Size", [([("of", "a"), ("in", "b")], 4.0)])?;
            metrics.histogram("took", "Took", (1.5, 3), &[(1.0, 2), (f64::INFINITY, 1)])
        });
        assert_eq!(
            text.unwrap(),
            "# HELP build What runs\n# TYPE build info\nbuild_info{version=\"1\"} 1\n\
             # HELP runs Runs\n# TYPE runs counter\nruns_total 2\n\
             # HELP cpu_seconds Time\n# TYPE cpu_seconds counter\ncpu_seconds_total 0.5\n\
             # HELP lost Lost\n# TYPE lost counter\n\
             lost_total{why=\"full\"} 3\nlost_total{why=\"old\"} 0\n\
             # HELP none No row\n# TYPE none counter\n\
             # HELP healthy Healthy\n# TYPE healthy gauge\nhealthy 1\n\
             # HELP size Size\n# TYPE size gauge\nsize{of=\"a\",in=\"b\"} 4.0\n\
             # HELP took Took\n# TYPE took histogram\ntook_sum 1.5\ntook_count 3\n\
             took_bucket{le=\"1.0\"} 2\ntook_bucket{le=\"+Inf\"} 3\n# EOF\n"
        );
    }
}
