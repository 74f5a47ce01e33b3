//! The program in the driver and the filter before the sockets, as the service uses them.

use super::{PartError, Shared, StartError};
use crate::{
    config::Config,
    proxidor::udp::Sockets,
    proxidor::xdp::{Choice, Driver},
    status::{DriverStatus, InterfaceStatus},
};
use datapath::oracle::{AttachMode, Limit, SourceLimit};
use std::{net::SocketAddr, sync::Weak, time::Duration};
use tracing::warn;

/// Time from one look for interfaces to the next.
const LOOK: Duration = Duration::from_secs(1);

/// What the driver must know of a configuration.
fn choice(config: &Config) -> Choice {
    let oracle = &config.oracle;
    let limit = &oracle.limit;
    Choice {
        listen: oracle.listen.clone(),
        ttl: oracle.ttl,
        limit: SourceLimit {
            limit: Limit { rate: limit.rate, burst: limit.burst },
            prefix4: limit.prefix4,
            prefix6: limit.prefix6,
        },
        authentication_required: oracle.authentication.as_ref().is_some_and(|with| with.required),
    }
}

/// Loads and attaches the programs; where that fails and is not required, returns the reason. What the
/// kernel lacks for the program in the driver is no reason: the sockets answer, and the limit is kept.
///
/// # Errors
/// `oracle.mode` requires what the kernel cannot do.
pub(super) fn open(config: &Config) -> Result<Result<Driver, String>, StartError> {
    let oracle = &config.oracle;
    let driver = match Driver::open() {
        Ok(driver) => driver,
        Err(error) if oracle.mode == crate::proxidor::xdp::Mode::Auto => {
            if wanted(config) {
                warn!("the XDP program and the rate limit are not in force: {error}");
            }
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    for name in &oracle.interfaces {
        driver.attach(name, oracle.mode)?;
    }
    if let Some(lacks) = driver.status().lacks {
        warn!("oracle.interfaces: {}", fallback(lacks));
    }
    let driver = Ok(driver);
    configure(&driver, config)?;
    Ok(driver)
}

/// What happens on a kernel that lacks what the program needs. The cost is that of docs/benchmarks.md.
fn fallback(lacks: &str) -> String {
    format!(
        "the sockets answer all requests, about a quarter as many a second as the driver would: \
         this kernel has no {lacks}"
    )
}

/// Looks for interfaces that have appeared, once a second, until it is aborted.
pub(super) async fn watch(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(shared) = shared.upgrade() else { return };
        let Ok(driver) = &shared.driver else { return };
        let config = shared.config.load_full();
        // A wildcard stands for the addresses of the new one, too.
        if driver.look(config.oracle.mode)
            && let Err(error) = configure(&shared.driver, &config)
        {
            warn!("the addresses of a new interface are not answered for in the driver: {error}");
        }
    }
}

/// Puts the filter before sockets.
pub(super) fn guard(driver: &Result<Driver, String>, sockets: &Sockets) -> Result<(), PartError> {
    match driver {
        Ok(driver) => driver.guard(sockets.fds()).map_err(PartError::Filter),
        Err(_) => Ok(()),
    }
}

/// Configures the programs.
pub(super) fn configure(driver: &Result<Driver, String>, config: &Config) -> Result<(), PartError> {
    match driver {
        Ok(driver) => Ok(driver.configure(&choice(config))?),
        Err(_) => Ok(()),
    }
}

/// Whether the configuration asks for what only the programs can do.
pub(super) fn wanted(config: &Config) -> bool {
    !config.oracle.interfaces.is_empty() || config.oracle.limit.rate > 0
}

/// What the programs are doing.
pub(super) fn status(driver: &Driver) -> DriverStatus {
    let status = driver.status();
    let ledger = status.ledger.unwrap_or_default();
    let interfaces = status.interfaces.into_iter().map(|interface| InterfaceStatus {
        name: interface.name,
        mode: interface.mode.map(|mode: AttachMode| mode.name().to_owned()),
        why: interface.why,
    });
    let counts = |counts: &[(&str, u64)]| {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    DriverStatus {
        interfaces: interfaces.collect(),
        fallback: status.lacks.map(fallback),
        services: status.services.into_iter().map(SocketAddr::V4).collect(),
        refused: status.refused.map(|error| error.to_string()),
        received: ledger.received(),
        answered: ledger.answered,
        passed: counts(&[
            ("sender", ledger.passed_sender),
            ("length", ledger.passed_length),
            ("form", ledger.passed_form),
            ("checksum", ledger.passed_sum),
            ("table", ledger.passed_table),
        ]),
        dropped: counts(&[("source_limit", ledger.over_rate)]),
        filter_passed: ledger.socket_taken,
        filter_dropped: ledger.socket_over_rate,
    }
}

/// The problems, a sentence each.
pub(super) fn problems(config: &Config, driver: &Result<Driver, String>) -> Vec<String> {
    let driver = match driver {
        Ok(driver) => driver,
        Err(error) if wanted(config) => {
            return vec![format!(
                "oracle: the XDP program and the rate limit are not in force: {error}"
            )];
        }
        Err(_) => return Vec::new(),
    };
    let is_auto = config.oracle.mode == crate::proxidor::xdp::Mode::Auto;
    let not_there = driver.status().interfaces.into_iter().filter(|it| it.mode.is_none());
    let problem = not_there.filter_map(|interface| match interface.why {
        None => Some(format!(
            "oracle: interface {} does not exist, or the XDP program was detached from it",
            interface.name
        )),
        // In mode `auto` the sockets may answer.
        Some(why) => (!is_auto).then(|| format!("oracle: interface {}: {why}", interface.name)),
    });
    problem.collect()
}
