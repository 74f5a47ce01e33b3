//! The names that a shell offers for arguments of `nigh gate`.

use crate::{event::ANNOUNCED, policy::RuntimeRule};
use classify::{application::Application, label::UNKNOWN, ndpi_names};
use serde_json::Value;

/// The applications that flows can be named as, without their parts.
pub fn applications() -> Vec<String> {
    let ours = Application::ALL.iter().map(|one| one.name()).chain([UNKNOWN]).chain(ANNOUNCED);
    let mut names: Vec<_> = ours.map(str::to_owned).chain(ndpi_names().iter().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The runtime rules in a gate's `status`.
pub fn rules(status: Option<Value>) -> Vec<String> {
    let rules = status.map(|mut status| status["runtime_rules"].take());
    let rules = rules.and_then(|rules| serde_json::from_value::<Vec<RuntimeRule>>(rules).ok());
    rules.into_iter().flatten().map(|rule| rule.name).collect()
}

/// The torrents that are refused for a file in them, in a gate's `status`.
pub fn torrents(status: Option<Value>) -> Vec<String> {
    let torrents = status.map(|mut status| status["torrents"].take());
    torrents.and_then(|torrents| serde_json::from_value(torrents).ok()).unwrap_or_default()
}
