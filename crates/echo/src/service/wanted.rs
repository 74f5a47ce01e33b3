//! What a configuration requires of the worker.

use crate::{
    config::{AnycastConfig, Config, HealthConfig, Probe},
    drain::Times,
    health::Rules,
};
use std::{net::IpAddr, time::Duration};

/// The addresses that a configuration adds to `lo`.
pub(super) fn assigned(config: &Config) -> Vec<IpAddr> {
    if config.echo.assign { config.echo.addresses.clone() } else { Vec::new() }
}

/// The health section in force: without `[anycast]` there is no gateway to probe through.
pub(super) fn health_config(config: &Config) -> HealthConfig {
    match &config.anycast {
        Some(anycast) => anycast.health.clone(),
        None => HealthConfig { probe: Probe::Program, ..HealthConfig::default() },
    }
}

pub(super) fn rules(config: &HealthConfig) -> Rules {
    Rules { rise: config.rise, fall: config.fall }
}

pub(super) fn times(config: &Config) -> Times {
    match &config.anycast {
        Some(AnycastConfig { quiet, drain_timeout, .. }) => {
            Times { quiet: *quiet, timeout: *drain_timeout }
        }
        None => Times { quiet: Duration::ZERO, timeout: Duration::ZERO },
    }
}
