//! What a flow is found by: its two sockets, the lower one first, so that both directions have one.

use crate::control::FlowName;
use classify::flow::{Flow, Transport};
use std::net::SocketAddr;

/// The transport protocol and both sockets in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id {
    transport: Transport,
    ends: [SocketAddr; 2],
}

impl Id {
    /// Of a flow, whoever began it.
    pub(super) fn of(flow: &Flow) -> Self {
        FlowName::from(*flow).into()
    }
}

impl From<FlowName> for Id {
    fn from(name: FlowName) -> Self {
        let [a, b] = name.ends;
        let ends = if a <= b { [a, b] } else { [b, a] };
        Self { transport: name.transport, ends }
    }
}
