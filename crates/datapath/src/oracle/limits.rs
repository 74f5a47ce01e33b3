//! How large the tables can be, and why some cannot be applied.

use super::skeleton::types;
use ipnet::Ipv4Net;

pub(super) const fn limit(value: types::oracle_limits) -> usize {
    value.0 as usize
}

/// Groups, group 0 included, at most.
pub const MAX_GROUPS: usize = limit(types::oracle_limits::ORACLE_FIRST_BLOCK);
/// Networks of 256 addresses with longer prefixes in them, at most.
pub const MAX_BLOCKS: usize = u16::MAX as usize + 1 - MAX_GROUPS;
/// Metrics, at most.
pub const MAX_METRICS: usize = limit(types::oracle_limits::ORACLE_METRICS);
/// Different ranks in a row, the last one of the unknown included, at most.
pub const MAX_RANKS: usize = limit(types::oracle_limits::ORACLE_RANKS);

/// The tables cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The XDP program is not loaded: the kernel [`super::lacks`] what it needs.
    #[error("the XDP program is not loaded")]
    NoProgram,
    /// Too many groups.
    #[error("{0} groups of prefixes; the driver ranks among at most {MAX_GROUPS}")]
    Groups(usize),
    /// Too many /24 networks with longer prefixes.
    #[error(
        "more than {MAX_BLOCKS} networks of 256 addresses have prefixes longer than /24; that is the most that the driver keeps"
    )]
    Blocks,
    /// Too many metrics.
    #[error("{0} metrics; the driver ranks by at most {MAX_METRICS}")]
    Metrics(usize),
    /// A prefix is before one that begins before it or covers it.
    #[error("the prefix {0} is out of order; this is a defect, please report it")]
    Order(Ipv4Net),
    /// A group or row that there is none of, or group 0 not last.
    #[error("{0}; this is a defect, please report it")]
    Inconsistent(&'static str),
}
