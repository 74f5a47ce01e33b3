//! The section `[gate.audit.ipfix]` of the configuration.

use config::{Problem, Report};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{net::SocketAddr, time::Duration};

const SHORTEST_REFRESH: Duration = Duration::from_secs(1);
const LONGEST_REFRESH: Duration = Duration::from_secs(86_400);

/// Export of flows as IPFIX, to files, a collector or both.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Write flows to `flows.ipfix` beside `eve.json`.
    pub file: bool,
    /// Collector to which flows are sent over UDP; none when not given.
    #[schemars(with = "Option<config::schema::Endpoint>")]
    pub collector: Option<SocketAddr>,
    /// Observation domain: the number by which collectors distinguish this gate from other exporters.
    #[schemars(range(min = 1))]
    pub domain: u32,
    /// Interval at which templates, which describe the fields of records, are sent to the collector.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub refresh: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { file: false, collector: None, domain: 1, refresh: Duration::from_secs(600) }
    }
}

impl Config {
    /// Everything that is wrong with the values, each key as in the section; empty if they are valid.
    pub(in crate::audit) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "");
        if !self.file && self.collector.is_none() {
            report.add(
                "file",
                "flows are not exported anywhere: set file = true or name a collector",
            );
        }
        if self.collector.is_some_and(|it| it.port() == 0 || it.ip().is_unspecified()) {
            report.add(
                "collector",
                "is not an address to send to; give an address with its port, usually 4739",
            );
        }
        if self.domain == 0 {
            report.add("domain", "0 means no domain (RFC 7011, section 3.1); give another number");
        }
        if !(SHORTEST_REFRESH..=LONGEST_REFRESH).contains(&self.refresh) {
            report.add("refresh", "must be from 1s to 1day");
        }
        problems
    }
}
