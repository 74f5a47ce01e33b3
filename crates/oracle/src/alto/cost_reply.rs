//! Writing costs between sources and destinations: the data of cost maps (RFC 7285, 11.2.3.6) and of
//! endpoint costs (11.5.1.6), single, several at once (RFC 8189, 4.1.3) or as calendars
//! (RFC 8896, 5.1.2).
//!
//! Ordinal costs are the exact ranks of all pairs of the reply, from 1 and without gaps; equal costs
//! share a rank. Numerical ones are rounded (classes.rs), and constraints are held against what the
//! client sees, rounded or a rank: else a client could find the exact cost by bisection.

use super::{
    calendar::Calendar,
    classes::Classes,
    cost::Cost,
    cost_request::CostRequest,
    cost_type::{CostMode, CostType},
    costs::Pairs,
};
use serde_json::{Map, Value};
use std::{collections::HashMap, fmt::Write as _, time::SystemTime};

/// What costs are written from.
pub(super) struct CostReply<'a> {
    /// The request.
    pub(super) request: &'a CostRequest<'a>,
    /// Names of the sources; none needs escaping in JSON.
    pub(super) sources: Vec<&'a str>,
    /// Names of the destinations.
    pub(super) destinations: Vec<&'a str>,
    /// Exact costs of each metric that the request names.
    pub(super) costs: HashMap<usize, Pairs>,
    /// The classes of each of these metrics.
    pub(super) classes: HashMap<usize, Classes>,
    /// Which interval of a calendar is the current one.
    pub(super) now: SystemTime,
}

impl CostReply<'_> {
    /// The reply: `meta` as given and with the cost types, and the data in a member of this name.
    pub(super) fn write(&self, mut meta: Map<String, Value>, data: &str) -> Vec<u8> {
        self.add_meta(&mut meta);
        let mut out = format!("{{\"meta\":{},\"{data}\":{{", Value::Object(meta));
        let values = |kinds: &[&CostType]| -> Vec<Vec<Option<f64>>> {
            kinds.iter().map(|kind| self.values(kind)).collect()
        };
        let returned = values(&self.request.types);
        let tested = if self.request.constraints.is_empty() {
            Vec::new()
        } else {
            values(&self.request.tested)
        };
        let factors: Vec<Option<Vec<f64>>> = self
            .request
            .calendars
            .iter()
            .map(|calendar| calendar.map(|calendar: &Calendar| calendar.factors(self.now)))
            .collect();
        let mut pair = 0;
        for (i, source) in self.sources.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(out, "{comma}\"{source}\":{{");
            let mut first = true;
            for destination in &self.destinations {
                let at = |columns: &[Vec<Option<f64>>], column: usize| {
                    columns.get(column).and_then(|values| values.get(pair).copied().flatten())
                };
                let defined = (0..returned.len()).any(|column| at(&returned, column).is_some());
                if defined && self.request.constraints.hold(|index| at(&tested, index)) {
                    let comma = if first { "" } else { "," };
                    let _ = write!(out, "{comma}\"{destination}\":");
                    first = false;
                    if self.request.multi.is_some() {
                        out.push('[');
                    }
                    for (column, (kind, factors)) in
                        self.request.types.iter().zip(&factors).enumerate()
                    {
                        if column > 0 {
                            out.push(',');
                        }
                        let value = at(&returned, column);
                        self.write_value(&mut out, kind, pair, value, factors.as_deref());
                    }
                    if self.request.multi.is_some() {
                        out.push(']');
                    }
                }
                pair += 1;
            }
            out.push('}');
        }
        out.push_str("}}");
        out.into_bytes()
    }

    fn add_meta(&self, meta: &mut Map<String, Value>) {
        match (self.request.multi, self.request.types.first()) {
            (Some(multi), _) => {
                meta.insert("cost-type".into(), Value::Object(Map::new()));
                meta.insert("multi-cost-types".into(), multi.clone());
            }
            (None, Some(kind)) => {
                meta.insert("cost-type".into(), kind.to_json());
            }
            (None, None) => {}
        }
        let mut named: Vec<&str> = Vec::new();
        let mut calendars: Vec<Value> = Vec::new();
        for (kind, calendar) in self.request.types.iter().zip(&self.request.calendars) {
            if let Some(calendar) = calendar
                && !named.contains(&kind.name.as_str())
            {
                named.push(&kind.name);
                calendars.push(calendar.response_attributes(&[&kind.name], self.now));
            }
        }
        if !calendars.is_empty() {
            meta.insert("calendar-response-attributes".into(), calendars.into());
        }
    }

    /// One cost, or one for each interval. Null where a cost among several is not defined.
    fn write_value(
        &self,
        out: &mut String,
        kind: &CostType,
        pair: usize,
        value: Option<f64>,
        factors: Option<&[f64]>,
    ) {
        let Some(value) = value else { return out.push_str("null") };
        let exact =
            self.costs.get(&kind.index).and_then(|pairs| pairs.get(pair).copied().flatten());
        match (factors, exact, self.classes.get(&kind.index)) {
            (Some(factors), Some(cost), Some(classes)) => {
                for (i, factor) in factors.iter().enumerate() {
                    let before = if i == 0 { '[' } else { ',' };
                    let _ = write!(out, "{before}{}", classes.scaled(cost, *factor));
                }
                out.push(']');
            }
            _ => {
                let _ = write!(out, "{value}");
            }
        }
    }

    /// What clients see of a cost type, for each pair.
    fn values(&self, kind: &CostType) -> Vec<Option<f64>> {
        let Some(pairs) = self.costs.get(&kind.index) else { return Vec::new() };
        match kind.mode {
            CostMode::Numerical => {
                let classes = self.classes.get(&kind.index);
                pairs.iter().map(|cost| cost.and_then(|cost| classes?.round(cost))).collect()
            }
            CostMode::Ordinal => ranks(pairs),
        }
    }
}

/// The ranks of costs among all: from 1, equal costs share one.
fn ranks(pairs: &[Option<Cost>]) -> Vec<Option<f64>> {
    let mut order: Vec<(Cost, usize)> =
        pairs.iter().enumerate().filter_map(|(pair, cost)| Some(((*cost)?, pair))).collect();
    order.sort_unstable_by(|(a, _), (b, _)| a.order(b));
    let mut ranks = vec![None; pairs.len()];
    let mut rank = 0.0;
    let mut last: Option<Cost> = None;
    for (cost, pair) in order {
        if last.is_none_or(|last| last.order(&cost).is_ne()) {
            rank += 1.0;
            last = Some(cost);
        }
        if let Some(entry) = ranks.get_mut(pair) {
            *entry = Some(rank);
        }
    }
    ranks
}
