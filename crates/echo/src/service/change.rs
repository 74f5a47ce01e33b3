//! Computes changes of limits and lists at run time: what would be in force, and the answer.

use super::ControlError;
use crate::{
    config::Limit,
    control::{LimitChange, ListChange, Request},
    status::{LimitStatus, ListStatus},
};
use config::Problem;
use ipnet::IpNet;
use serde_json::Value;

/// What would be in force.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) limit: Limit,
    pub(super) lists: [Vec<IpNet>; 2],
    /// The answer.
    pub(super) answer: Value,
}

/// Applies a request to the limits and to the lists `allow` and `deny`.
pub(super) fn apply(
    request: Request,
    limit: Limit,
    lists: &[Vec<IpNet>; 2],
) -> Result<Change, ControlError> {
    let mut lists = lists.clone();
    let listed = |list: &'static str, prefixes: &Vec<IpNet>| {
        let prefixes = prefixes.clone();
        serde_json::to_value(ListStatus { list: list.to_owned(), prefixes })
    };
    let (limit, answer) = match request {
        Request::Limit(change) => {
            let limit = limited(limit, change)?;
            (limit, serde_json::to_value(LimitStatus { limit }))
        }
        Request::Allow(change) => {
            listed_anew("allow", &mut lists[0], change)?;
            (limit, listed("allow", &lists[0]))
        }
        Request::Deny(change) => {
            listed_anew("deny", &mut lists[1], change)?;
            (limit, listed("deny", &lists[1]))
        }
        Request::Ledger | Request::Top { .. } => (limit, Ok(Value::Null)),
    };
    Ok(Change { limit, lists, answer: answer.unwrap_or_default() })
}

fn limited(old: Limit, change: LimitChange) -> Result<Limit, ControlError> {
    let limit = Limit {
        rate: change.rate.unwrap_or(old.rate),
        burst: change.burst.unwrap_or(old.burst),
        prefix4: change.prefix4.unwrap_or(old.prefix4),
        prefix6: change.prefix6.unwrap_or(old.prefix6),
        node_rate: change.node_rate.unwrap_or(old.node_rate),
        node_burst: change.node_burst.unwrap_or(old.node_burst),
    };
    match limit.problems().first() {
        None => Ok(limit),
        Some(Problem { key, message }) => {
            let key = key.trim_start_matches("echo.limit.");
            Err(ControlError::Values(format!("{key}: {message}")))
        }
    }
}

fn listed_anew(
    list: &'static str,
    prefixes: &mut Vec<IpNet>,
    change: ListChange,
) -> Result<(), ControlError> {
    for prefix in change.remove {
        let at = prefixes.iter().position(|listed| *listed == prefix);
        prefixes.remove(at.ok_or(ControlError::NotListed { prefix, list })?);
    }
    for prefix in change.add {
        if prefix.trunc() != prefix {
            let message =
                format!("{prefix} has bits set after its length; write {}", prefix.trunc());
            return Err(ControlError::Values(message));
        }
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_not_given_stays() {
        let change = LimitChange { rate: Some(7), node_rate: Some(50), ..LimitChange::default() };
        let change = LimitChange { node_burst: Some(60), ..change };
        let new = limited(Limit::default(), change).unwrap();
        assert_eq!(new, Limit { rate: 7, node_rate: 50, node_burst: 60, ..Limit::default() });
    }

    #[test]
    fn limits_that_cannot_be_are_refused() {
        for (change, key) in [
            (LimitChange { burst: Some(0), ..LimitChange::default() }, "burst"),
            (LimitChange { rate: Some(1_000_000), ..LimitChange::default() }, "burst"),
            (LimitChange { prefix4: Some(0), ..LimitChange::default() }, "prefix4"),
            (LimitChange { node_rate: Some(5), ..LimitChange::default() }, "node_burst"),
        ] {
            let error = limited(Limit::default(), change).unwrap_err().to_string();
            assert!(error.starts_with(key), "{error}");
        }
    }

    #[test]
    fn lists_change_by_prefix() {
        let mut list = nets(&["192.0.2.0/24", "198.51.100.0/24"]);
        let change = ListChange {
            add: nets(&["2001:db8::/32", "198.51.100.0/24"]),
            remove: nets(&["192.0.2.0/24"]),
        };
        listed_anew("deny", &mut list, change).unwrap();
        assert_eq!(list, nets(&["198.51.100.0/24", "2001:db8::/32"]));
        let absent = ListChange { add: vec![], remove: nets(&["192.0.2.0/24"]) };
        let error = listed_anew("deny", &mut list, absent).unwrap_err().to_string();
        assert_eq!(error, "192.0.2.0/24 is not in the list deny");
        let crooked = ListChange { add: nets(&["192.0.2.1/24"]), remove: vec![] };
        assert!(listed_anew("deny", &mut list, crooked).is_err());
    }
}
