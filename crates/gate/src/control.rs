//! Requests to the running gate over the daemon's control socket.

use crate::{config::Direction, policy::RuntimeAction};
use classify::{
    flow::{Flow, Transport},
    label::Category,
};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, str::FromStr};

/// Most flows that an answer has.
pub const MAX_ROWS: usize = 10_000;

/// One request, as a JSON object on the control socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The known flows, the busiest first.
    Flows(FlowsOrder),
    /// The applications or hosts with the highest rates now.
    Top(TopOrder),
    /// The details of a flow, and why it has its verdict.
    Why {
        /// The flow; either end may come first.
        flow: FlowName,
    },
    /// Adds a rule before all others until the daemon stops.
    Add(Order),
    /// Removes runtime rules: one, or all when no name is given.
    Forget {
        /// The rule's name, such as `runtime-1`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Lets a torrent pass again that was refused for a file in it.
    Unblock {
        /// Its info-hash in hexadecimal digits.
        torrent: String,
    },
    /// Switches the gate off or on.
    Bypass {
        /// Whether it is off.
        on: bool,
    },
}

/// Which flows to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowsOrder {
    /// Of this application only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// With an end in this prefix only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<IpNet>,
    /// With this verdict only: `pass`, `drop`, `reset`, `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Rows at most.
    pub count: usize,
}

/// What is ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopOrder {
    /// What is ranked.
    pub by: By,
    /// Rows at most.
    pub count: usize,
}

/// What is ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Applications.
    #[default]
    Application,
    /// Internal hosts.
    Host,
}

/// A rule that the operator adds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Applications that it fits; all when empty.
    #[serde(default)]
    pub application: Vec<String>,
    /// Kinds of applications that it fits; all when empty.
    #[serde(default)]
    pub category: Vec<Category>,
    /// Internal hosts that it fits; all when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpNet>,
    /// Who began the flows that it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The action on them.
    pub action: RuntimeAction,
}

/// A flow as people name it: the protocol and both ends, in either order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowName {
    /// The transport protocol.
    pub transport: Transport,
    /// Both ends.
    pub ends: [SocketAddr; 2],
}

/// A text does not name a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a flow is named like \"tcp 10.0.0.5:51413 192.0.2.7:6881\", as `nigh gate flows` shows it"
)]
pub struct BadFlow;

impl FromStr for FlowName {
    type Err = BadFlow;

    fn from_str(text: &str) -> Result<Self, BadFlow> {
        let mut words = text.split_whitespace().filter(|word| *word != ">");
        let transport = match words.next() {
            Some("tcp") => Transport::Tcp,
            Some("udp") => Transport::Udp,
            _ => return Err(BadFlow),
        };
        let mut end = || words.next().and_then(|word| word.parse().ok()).ok_or(BadFlow);
        let ends = [end()?, end()?];
        if words.next().is_some() { Err(BadFlow) } else { Ok(Self { transport, ends }) }
    }
}

impl From<Flow> for FlowName {
    fn from(flow: Flow) -> Self {
        Self { transport: flow.transport, ends: [flow.client, flow.server] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_named_as_it_is_shown() {
        let name: FlowName = "tcp 10.0.0.5:51413 > 192.0.2.7:6881".parse().unwrap();
        assert_eq!(name, "tcp 10.0.0.5:51413 192.0.2.7:6881".parse().unwrap());
        assert_eq!(name.transport, Transport::Tcp);
        let v6: FlowName = "udp [2001:db8::1]:1 [2001:db8::2]:2".parse().unwrap();
        assert_eq!(v6.ends[1].port(), 2);
        for text in ["", "tcp", "tcp 10.0.0.5:1", "sctp 1.1.1.1:1 2.2.2.2:2", "tcp 1.1.1.1 2.2.2.2"]
        {
            assert_eq!(text.parse::<FlowName>(), Err(BadFlow), "{text}");
        }
    }

    #[test]
    fn a_request_is_one_object() {
        let request = Request::Bypass { on: true };
        let json = serde_json::to_value(&request).unwrap();
        assert_eq!(json, serde_json::json!({"do": "bypass", "on": true}));
        let why = Request::Why { flow: "udp 10.0.0.1:1 10.0.0.2:2".parse().unwrap() };
        let json = serde_json::to_string(&why).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&json).unwrap(), why);
    }
}
