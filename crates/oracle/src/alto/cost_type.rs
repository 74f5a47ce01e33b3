//! Cost modes, metrics and types (RFC 7285, 6.1, 10.5 to 10.7).

use super::{error::Problem, name};
use serde_json::{Value, json};

/// How a cost is to be read (10.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CostMode {
    /// A number to calculate with, here rounded into classes (6.1.2.1).
    Numerical,
    /// A rank in the order of all pairs of one reply (6.1.2.2).
    Ordinal,
}

impl CostMode {
    /// The mode as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Numerical => "numerical",
            Self::Ordinal => "ordinal",
        }
    }

    /// The mode of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Numerical, Self::Ordinal].into_iter().find(|mode| mode.as_str() == name)
    }

    /// The mode in the names of cost types and resources.
    pub fn short(self) -> &'static str {
        match self {
            Self::Numerical => "num",
            Self::Ordinal => "ord",
        }
    }
}

/// A metric of the configuration in one mode: what a cost map is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostType {
    /// Which of the configured metrics: bit of Proxidor's servcode.
    pub index: usize,
    /// The metric as ALTO writes it: `routingcost` or `priv:name`.
    pub metric: String,
    /// The mode.
    pub mode: CostMode,
    /// Its name in the directory, such as `num-routingcost`.
    pub name: String,
}

impl CostType {
    /// The cost type of a configured metric; none if its name cannot be written in ALTO.
    pub fn new(index: usize, configured: &str, mode: CostMode) -> Option<Self> {
        let metric = name::metric(index, configured)?;
        let plain = metric.strip_prefix(name::PRIVATE).unwrap_or(&metric).replace(':', "-");
        Some(Self { index, name: format!("{}-{plain}", mode.short()), metric, mode })
    }

    /// As it is in `meta` (10.7).
    pub fn to_json(&self) -> Value {
        json!({ "cost-mode": self.mode.as_str(), "cost-metric": self.metric })
    }

    /// The one of `offered` that a request names in `field`: an object with `cost-metric` and
    /// `cost-mode`. A description is ignored (11.3.2.3).
    pub fn find<'a>(offered: &'a [Self], value: &Value, field: &str) -> Result<&'a Self, Problem> {
        let Value::Object(object) = value else { return Err(Problem::invalid_type(field)) };
        let text = |member: &str| {
            let path = format!("{field}/{member}");
            match object.get(member) {
                None => Err(Problem::missing(path)),
                Some(Value::String(text)) => Ok((path, text)),
                Some(_) => Err(Problem::invalid_type(path)),
            }
        };
        let (metric_path, metric) = text("cost-metric")?;
        let (mode_path, mode_text) = text("cost-mode")?;
        let wrong = |path, text: &str| Problem::invalid_value(path, &Value::from(text));
        let Some(mode) = CostMode::parse(mode_text) else {
            return Err(wrong(mode_path, mode_text));
        };
        let mut metrics = offered.iter().filter(|offered| offered.metric == *metric).peekable();
        if metrics.peek().is_none() {
            return Err(wrong(metric_path, metric));
        }
        metrics.find(|offered| offered.mode == mode).ok_or_else(|| wrong(mode_path, mode_text))
    }
}

/// The cost types of metrics, the default one first: each in both modes, without those whose names
/// ALTO cannot write. Two names that only differ in what a cost type's name cannot distinguish (a colon
/// and a hyphen) are taken once.
pub(super) fn cost_types<'m>(metrics: impl Iterator<Item = &'m str>) -> Vec<CostType> {
    let mut types: Vec<CostType> = Vec::new();
    for (index, metric) in metrics.enumerate() {
        for mode in [CostMode::Numerical, CostMode::Ordinal] {
            if let Some(kind) = CostType::new(index, metric, mode)
                && !types.iter().any(|other| other.name == kind.name)
            {
                types.push(kind);
            }
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alto::error::Code;

    fn offered() -> Vec<CostType> {
        let mut types = cost_types(["the default", "delay"].into_iter());
        types.retain(|kind| kind.name != "num-delay");
        types
    }

    #[test]
    fn each_metric_has_two_cost_types_and_each_name_one() {
        let names = |metrics: &[&str]| -> Vec<String> {
            cost_types(metrics.iter().copied()).into_iter().map(|kind| kind.name).collect()
        };
        assert_eq!(names(&["", "a b"]), ["num-routingcost", "ord-routingcost"]);
        assert_eq!(names(&["", "a:b", "a-b"])[2..], ["num-a-b", "ord-a-b"]);
        // A second one of the default's name would have the same resources.
        assert_eq!(names(&["", "routingcost"]).len(), 2);
    }

    #[test]
    fn the_names_of_cost_types() {
        let names: Vec<_> = offered().into_iter().map(|kind| kind.name).collect();
        assert_eq!(names, ["num-routingcost", "ord-routingcost", "ord-delay"]);
    }

    #[test]
    fn what_is_wrong_with_a_cost_type_is_said_with_its_path() {
        let offered = offered();
        for (value, code, field, wrong) in [
            (json!(7), Code::InvalidFieldType, "cost-type", None),
            (json!({"cost-mode": "ordinal"}), Code::MissingField, "cost-type/cost-metric", None),
            (
                json!({"cost-metric": "routingcost"}),
                Code::MissingField,
                "cost-type/cost-mode",
                None,
            ),
            (
                json!({"cost-metric": 1, "cost-mode": "ordinal"}),
                Code::InvalidFieldType,
                "cost-type/cost-metric",
                None,
            ),
            (
                json!({"cost-metric": "hops", "cost-mode": "ordinal"}),
                Code::InvalidFieldValue,
                "cost-type/cost-metric",
                Some("hops"),
            ),
            (
                json!({"cost-metric": "routingcost", "cost-mode": "foo"}),
                Code::InvalidFieldValue,
                "cost-type/cost-mode",
                Some("foo"),
            ),
            (
                json!({"cost-metric": "priv:delay", "cost-mode": "numerical"}),
                Code::InvalidFieldValue,
                "cost-type/cost-mode",
                Some("numerical"),
            ),
        ] {
            let problem = CostType::find(&offered, &value, "cost-type").expect_err("it is wrong");
            assert_eq!(problem.code, code, "{value}");
            assert_eq!(problem.field.as_deref(), Some(field), "{value}");
            assert_eq!(problem.value.as_deref(), wrong, "{value}");
        }
    }

    #[test]
    fn a_description_is_not_inspected() {
        let value = json!({"cost-metric": "routingcost", "cost-mode": "ordinal", "description": 7});
        let offered = offered();
        assert_eq!(CostType::find(&offered, &value, "cost-type"), Ok(&offered[1]));
    }
}
