//! The exact cost of a pair.

use crate::tables::{Class, Row};
use std::cmp::Ordering;
use topo::GroupId;

/// The cost of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    /// What the operator prefers goes before, what they avoid behind all others.
    pub(super) class: Class,
    /// The value by which rankings are ordered.
    pub(super) value: f64,
    /// Whether that is a cost, as it is from a router. Where no path is known there is only the
    /// order that the operator's adjustments make.
    pub(super) is_cost: bool,
}

impl Cost {
    pub(super) fn of(row: Row<'_>, group: GroupId, sourced: bool) -> Option<Self> {
        Some(Self { class: row.class(group)?, value: row.cost(group)?, is_cost: sourced })
    }

    /// The order that rankings have.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        self.class.cmp(&other.class).then_with(|| self.value.total_cmp(&other.value))
    }
}
