//! Requests to a running responder over the daemon's control socket.
//!
//! Changes of limits and lists are in force at once and last until the next reload or start, which
//! puts the configuration file in force again.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// One request, as a JSON object on the control socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The ledger, a row for each address.
    Ledger,
    /// The busiest source prefixes.
    Top {
        /// Most rows.
        count: usize,
    },
    /// Changes the limits that are given and answers with all of them.
    Limit(LimitChange),
    /// Changes the list of sources that are answered and answers with it.
    Allow(ListChange),
    /// Changes the list of sources that are never answered and answers with it.
    Deny(ListChange),
}

/// New values of limits; absent ones stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitChange {
    /// Requests a second for each source prefix; 0 switches the limit off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Requests that a source prefix may send at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Length of an IPv4 source prefix, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix4: Option<u8>,
    /// Length of an IPv6 source prefix, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix6: Option<u8>,
    /// Ceiling for the node, requests a second; 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_rate: Option<u64>,
    /// Requests that the node answers at once under its ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_burst: Option<u64>,
}

/// Changes of a list of sources: first the removals, then the additions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListChange {
    /// Prefixes to add; one that is there already stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<IpNet>,
    /// Prefixes to remove; each must be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<IpNet>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_back_as_written() {
        let change = LimitChange { rate: Some(5), ..LimitChange::default() };
        let list = ListChange { add: vec!["192.0.2.0/24".parse().unwrap()], remove: vec![] };
        for (request, text) in [
            (Request::Ledger, r#"{"do":"ledger"}"#),
            (Request::Top { count: 10 }, r#"{"do":"top","count":10}"#),
            (Request::Limit(change), r#"{"do":"limit","rate":5}"#),
            (Request::Limit(LimitChange::default()), r#"{"do":"limit"}"#),
            (Request::Deny(list), r#"{"do":"deny","add":["192.0.2.0/24"]}"#),
        ] {
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
            assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
        }
        assert!(serde_json::from_str::<Request>(r#"{"do":"limit","rat":5}"#).is_err());
    }
}
