//! What filtered cost maps and the endpoint cost service have in common in their input: cost types,
//! constraints and calendars (RFC 7285, 11.3.2.3; RFC 8189, 4.1.2; RFC 8896, 5.1.1).

use super::{
    calendar::Calendar,
    constraint::{Constraint, Constraints},
    cost_type::CostType,
    error::Problem,
    input::Object,
};
use serde_json::{Value, json};

/// What a resource offers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offer {
    /// The cost types, which are also the most that one request may ask for at once.
    pub(super) types: Vec<CostType>,
    /// Names of those that constraints may test; none: all.
    pub(super) testable: Option<Vec<String>>,
    /// The calendar of each metric.
    pub(super) calendars: Vec<Option<Calendar>>,
}

/// What a request asks for.
#[derive(Debug)]
pub(super) struct CostRequest<'a> {
    /// The cost types whose values are returned.
    pub(super) types: Vec<&'a CostType>,
    /// The member `multi-cost-types`, if values are arrays.
    pub(super) multi: Option<&'a Value>,
    /// The cost types that the constraints' indexes are of.
    pub(super) tested: Vec<&'a CostType>,
    /// The constraints.
    pub(super) constraints: Constraints,
    /// For each cost type the calendar whose values are returned, if they are.
    pub(super) calendars: Vec<Option<&'a Calendar>>,
}

impl CostRequest<'_> {
    /// How many numbers the reply has for each pair.
    pub(super) fn values(&self) -> usize {
        self.calendars.iter().map(|calendar| calendar.map_or(1, Calendar::intervals)).sum()
    }
}

impl Offer {
    /// The capabilities (RFC 8189, 4.1.1; RFC 8896, 4.1).
    pub(super) fn capabilities(&self) -> Value {
        let names: Vec<&str> = self.types.iter().map(|kind| kind.name.as_str()).collect();
        let mut capabilities = json!({ "cost-type-names": names, "max-cost-types": names.len() });
        match &self.testable {
            None => capabilities["cost-constraints"] = true.into(),
            Some(names) => {
                capabilities["cost-constraints"] = false.into();
                if !names.is_empty() {
                    capabilities["testable-cost-type-names"] = names.clone().into();
                }
            }
        }
        let calendars: Vec<Value> = self
            .types
            .iter()
            .filter_map(|kind| {
                Some(Value::Object(self.calendar(kind)?.attributes(&[kind.name.as_str()])))
            })
            .collect();
        if !calendars.is_empty() {
            capabilities["calendar-attributes"] = calendars.into();
        }
        capabilities
    }

    /// The calendar of a cost type. Ordinal costs have none: one factor for all changes no order.
    fn calendar(&self, kind: &CostType) -> Option<&Calendar> {
        if kind.mode == super::CostMode::Ordinal {
            return None;
        }
        self.calendars.get(kind.index)?.as_ref()
    }

    fn may_test(&self, kind: &CostType) -> bool {
        self.testable.as_ref().is_none_or(|names| names.contains(&kind.name))
    }

    /// Reads a request.
    pub(super) fn request<'a>(&'a self, body: Object<'a>) -> Result<CostRequest<'a>, Problem> {
        let (types, multi) = self.types(body)?;
        let calendars = self.calendars(body, &types)?;
        let (tested, constraints) = if calendars.iter().any(Option::is_some) {
            // Constraints and calendars exclude each other; the server ignores the former
            // (RFC 8896, 5.2.1).
            (Vec::new(), Constraints::default())
        } else {
            self.constraints(body, &types)?
        };
        Ok(CostRequest { types, multi, tested, constraints, calendars })
    }

    fn types<'a>(
        &'a self,
        body: Object<'a>,
    ) -> Result<(Vec<&'a CostType>, Option<&'a Value>), Problem> {
        // RFC 8896's own example has an empty cost-type beside multi-cost-types; that is none.
        let single = body.get("cost-type").filter(|value| {
            body.get("multi-cost-types").is_none()
                || value.as_object().is_none_or(|o| !o.is_empty())
        });
        match (single, body.array("multi-cost-types")?) {
            (Some(value), None) => {
                Ok((vec![CostType::find(&self.types, value, "cost-type")?], None))
            }
            (None, Some(values)) => {
                let field = "multi-cost-types";
                if values.is_empty() || values.len() > self.types.len() {
                    return Err(Problem::invalid_value(field, &values.into()));
                }
                Ok((self.find_all(values, field)?, body.get(field)))
            }
            (Some(value), Some(_)) => Err(Problem::invalid_value("cost-type", value)),
            (None, None) => Err(Problem::missing("cost-type")),
        }
    }

    /// The cost types of an array; an element that is no object is an invalid value (8.5.2).
    fn find_all<'a>(&'a self, values: &[Value], field: &str) -> Result<Vec<&'a CostType>, Problem> {
        values
            .iter()
            .map(|value| {
                if !value.is_object() {
                    return Err(Problem::invalid_value(field, value));
                }
                CostType::find(&self.types, value, field)
            })
            .collect()
    }

    fn calendars<'a>(
        &'a self,
        body: Object<'a>,
        types: &[&CostType],
    ) -> Result<Vec<Option<&'a Calendar>>, Problem> {
        let none = vec![None; types.len()];
        // A resource without calendars does not know the member (RFC 7285, 8.3.7).
        if self.types.iter().all(|kind| self.calendar(kind).is_none()) {
            return Ok(none);
        }
        let Some(values) = body.array("calendared")? else { return Ok(none) };
        if values.len() != types.len() {
            return Err(Problem::invalid_value("calendared", &values.into()));
        }
        types
            .iter()
            .zip(values)
            .map(|(kind, value)| match value {
                Value::Bool(true) => Ok(self.calendar(kind)),
                Value::Bool(false) => Ok(None),
                _ => Err(Problem::invalid_value("calendared", value)),
            })
            .collect()
    }

    fn constraints<'a>(
        &'a self,
        body: Object<'a>,
        types: &[&'a CostType],
    ) -> Result<(Vec<&'a CostType>, Constraints), Problem> {
        let tested = match body.array("testable-cost-types")? {
            None => types.to_vec(),
            Some(values) => {
                let field = "testable-cost-types";
                if values.is_empty() {
                    return Err(Problem::invalid_value(field, &values.into()));
                }
                let tested = self.find_all(values, field)?;
                for (kind, value) in tested.iter().zip(values) {
                    if !self.may_test(kind) {
                        return Err(Problem::invalid_value(field, value));
                    }
                }
                tested
            }
        };
        let plain = body.array("constraints")?;
        let alternatives = body.array("or-constraints")?;
        let constraints = match (plain, alternatives) {
            (Some(_), Some(values)) => {
                return Err(Problem::invalid_value("or-constraints", &values.into()));
            }
            (None, None) => Constraints::default(),
            (Some(values), None) => Constraints(vec![self.all(values, "constraints", &tested)?]),
            (None, Some(values)) => {
                let field = "or-constraints";
                if values.is_empty() {
                    return Err(Problem::invalid_value(field, &values.into()));
                }
                let alternative = |value: &Value| match value {
                    Value::Array(all) if !all.is_empty() => self.all(all, field, &tested),
                    other => Err(Problem::invalid_value(field, other)),
                };
                Constraints(values.iter().map(alternative).collect::<Result<_, _>>()?)
            }
        };
        Ok((tested, constraints))
    }

    /// Constraints that must all hold.
    fn all(
        &self,
        values: &[Value],
        field: &str,
        tested: &[&CostType],
    ) -> Result<Vec<Constraint>, Problem> {
        values
            .iter()
            .map(|value| {
                let constraint = value.as_str().and_then(|text| Constraint::parse(text, true));
                constraint
                    .filter(|constraint| {
                        tested.get(constraint.index).is_some_and(|kind| self.may_test(kind))
                    })
                    .ok_or_else(|| Problem::invalid_value(field, value))
            })
            .collect()
    }
}
