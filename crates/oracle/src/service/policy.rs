//! What the operator wants, from the configuration to the form that tables are made from.

use crate::{
    config::{AdjustConfig, DEFAULT_METRIC, Exits, MetricConfig, OracleConfig, Verdict},
    metric::{ExpressionError, Metric},
    tables::{Adjustment, AdjustmentError, Adjustments, Policy, Subject},
};
use topo::{ExitChoice, Options, RouterId};

/// The policy is wrong; `nigh check` finds this before.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// An expression does not compile.
    #[error("metric {name}: {source}")]
    Expression {
        /// The metric.
        name: String,
        /// Where and why.
        source: ExpressionError,
    },
    /// An adjustment cannot be used.
    #[error("oracle.adjust: {0}")]
    Adjustment(#[from] AdjustmentError),
}

/// The expressions, the default one first: each with its name.
fn expressions(config: &OracleConfig) -> impl Iterator<Item = (&str, &str)> {
    let more = config.metrics.iter().map(|MetricConfig { name, cost }| (&**name, &**cost));
    std::iter::once((DEFAULT_METRIC, &*config.cost)).chain(more)
}

/// Compiles one metric.
pub(super) fn metric(name: &str, cost: &str) -> Result<Metric, PolicyError> {
    Metric::compile(name, cost)
        .map_err(|source| PolicyError::Expression { name: name.to_owned(), source })
}

/// The policy that the section asks for.
pub(super) fn policy(config: &OracleConfig) -> Result<Policy, PolicyError> {
    let metrics = expressions(config).map(|(name, cost)| metric(name, cost));
    let metrics = metrics.collect::<Result<_, _>>()?;
    let adjustments = Adjustments::new(config.adjustments.iter().filter_map(adjustment))?;
    Ok(Policy { metrics, adjustments, default_router: config.default_router.map(RouterId) })
}

fn adjustment(config: &AdjustConfig) -> Option<(Subject, Adjustment)> {
    let subject = match (config.prefix, config.as_number) {
        (Some(prefix), _) => Subject::Prefix(prefix),
        (None, number) => Subject::As(number?),
    };
    let adjustment = match config.verdict {
        Some(Verdict::Prefer) => Adjustment::Prefer,
        Some(Verdict::Avoid) => Adjustment::Avoid,
        None => Adjustment::Penalty(config.penalty?),
    };
    Some((subject, adjustment))
}

/// What the topology must distinguish for this policy.
pub(super) fn options(exits: Exits, policy: &Policy) -> Options {
    let exits = match exits {
        Exits::Nearest => ExitChoice::Nearest,
        Exits::ShortestAsPath => ExitChoice::ShortestAsPath,
    };
    Options { exits, ases: policy.interest(), marks: policy.marks() }
}
