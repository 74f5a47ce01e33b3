//! Between the kernel's flows and those of this crate.

use super::core::{Counted, FlowAction};
use crate::config::Deny;
use classify::{
    flow::{Flow, Side, Transport},
    packet::{Packet, Tcp},
};
use datapath::gate::{self, CacheKey, Key, Manage, Protocol, Record};

/// The table's key of a flow.
pub(super) fn key(flow: &Flow) -> Key {
    Key::new(protocol(flow.transport), flow.client, flow.server)
}

const fn protocol(transport: Transport) -> Protocol {
    match transport {
        Transport::Tcp => Protocol::Tcp,
        Transport::Udp => Protocol::Udp,
    }
}

/// What is wanted of client and server, in the order of the key's sides.
pub(super) fn manage(flow: &Flow, [client, server]: [Manage; 2]) -> [Manage; 2] {
    match key(flow).side_of(flow.client) {
        Some(gate::Side::Higher) => [server, client],
        Some(gate::Side::Lower) | None => [client, server],
    }
}

/// What new flows between the same ends are refused by.
pub(super) fn refusal(flow: &Flow) -> CacheKey {
    CacheKey { source: flow.client.ip(), target: flow.server, protocol: protocol(flow.transport) }
}

pub(super) const fn action(action: FlowAction) -> gate::PacketAction {
    match action {
        FlowAction::Pass => gate::PacketAction::Pass,
        FlowAction::Refuse(deny) => refuse(deny),
    }
}

pub(super) const fn refuse(deny: Deny) -> gate::PacketAction {
    match deny {
        Deny::Drop => gate::PacketAction::Drop,
        Deny::Reset => gate::PacketAction::Reset,
    }
}

/// The flow of a key whose client is this side.
fn flow(key: &Key, client: gate::Side) -> Flow {
    let transport = match key.protocol() {
        Protocol::Tcp => Transport::Tcp,
        Protocol::Udp => Transport::Udp,
    };
    Flow { transport, client: key.socket(client), server: key.socket(client.other()) }
}

fn side(client: gate::Side, side: gate::Side) -> Side {
    if side == client { Side::Client } else { Side::Server }
}

/// A record's flow, which end is internal, and its packet. Where nobody knows who began, it is who is seen
/// first.
pub(super) fn packet<'a>(record: &Record<'a>) -> (Flow, Side, Packet<'a>) {
    let client = record.client.unwrap_or(record.from);
    let internal = record.internal.unwrap_or(match record.direction {
        gate::Direction::FromInternal => record.from,
        gate::Direction::ToInternal => record.from.other(),
    });
    let flow = flow(&record.key, client);
    let tcp = (flow.transport == Transport::Tcp).then_some(Tcp {
        sequence: record.sequence,
        acknowledgement: record.acknowledgement,
        flags: record.tcp_flags,
    });
    let packet = Packet {
        at_ns: record.at_ns,
        from: side(client, record.from),
        tcp,
        payload: record.payload(),
        length: record.payload_length,
    };
    (flow, side(client, internal), packet)
}

/// The sequence numbers of the SYN of client and server, where they were seen.
pub(super) fn begins(record: &Record<'_>) -> [Option<u32>; 2] {
    let [lower, higher] = record.first.map(|first| (first != 0).then_some(first));
    match record.client.unwrap_or(record.from) {
        gate::Side::Lower => [lower, higher],
        gate::Side::Higher => [higher, lower],
    }
}

/// A flow as the kernel counts it at `now_ns` of CLOCK_MONOTONIC.
pub(super) fn counted(key: &Key, entry: &gate::Flow, now_ns: u64) -> Counted {
    let client = entry.client.unwrap_or(gate::Side::Lower);
    let internal = entry.internal.unwrap_or(client);
    let ends = [entry.sent(client), entry.sent(client.other())];
    let since = |time: std::time::Duration| {
        now_ns.saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    };
    Counted {
        flow: flow(key, client),
        internal: side(client, internal),
        decided: entry.verdict.is_some(),
        label: entry.verdict.map_or(0, |verdict| verdict.label),
        managed: ends.iter().any(|sent| sent.manage != Manage::default()),
        copied: entry.copied,
        budget: entry.budget,
        packets: ends.map(|sent| sent.packets),
        bytes: ends.map(|sent| sent.bytes),
        flags: ends.map(|sent| sent.tcp_flags),
        age_ns: since(entry.began),
        idle_ns: since(entry.seen),
    }
}
