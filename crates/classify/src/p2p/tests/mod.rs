//! Whole conversations through the classifier, as the specifications write them.

mod bittorrent;
mod hidden;
mod others;

use super::*;
use crate::{label::Classification, packet::Tcp};

/// A flow under test with the hosts that it reveals.
pub(super) struct Talk {
    pub(super) hosts: Hosts,
    flow: Flow,
    classifier: Classifier,
    next: [u32; 2],
    pub(super) at_ns: u64,
}

pub(super) const INTERNAL: &str = "10.0.0.5:51413";
pub(super) const EXTERNAL: &str = "192.0.2.7:6881";

impl Talk {
    pub(super) fn new(transport: Transport) -> Self {
        Self::between(transport, INTERNAL, EXTERNAL, Hosts::default())
    }

    pub(super) fn between(transport: Transport, client: &str, server: &str, hosts: Hosts) -> Self {
        let client = client.parse().expect("a socket");
        let server = server.parse().expect("a socket");
        let flow = Flow { transport, client, server };
        let next = [1000, u32::MAX - 10];
        Self { hosts, flow, classifier: Classifier::new(&flow), next, at_ns: 1 }
    }

    /// One end says something; what the flow is found to be after it.
    pub(super) fn say(&mut self, from: Side, payload: &[u8]) -> Classification {
        self.at_ns += 1_000_000;
        let tcp = (self.flow.transport == Transport::Tcp).then_some(Tcp {
            sequence: self.next[from as usize],
            acknowledgement: self.next[from.other() as usize],
            flags: Tcp::ACK,
        });
        let length = u32::try_from(payload.len()).expect("a packet");
        self.next[from as usize] = self.next[from as usize].wrapping_add(length);
        let packet = Packet { at_ns: self.at_ns, from, tcp, payload, length };
        self.classifier.packet(&packet, &mut self.hosts)
    }

    pub(super) fn client(&mut self, payload: &[u8]) -> String {
        name(self.say(Side::Client, payload))
    }

    pub(super) fn server(&mut self, payload: &[u8]) -> String {
        name(self.say(Side::Server, payload))
    }

    /// Who was announced to listen at a socket.
    pub(super) fn listed(&self, socket: &str) -> Option<(&'static str, Source)> {
        let socket = socket.parse().expect("a socket");
        let over = |over| self.hosts.listed(socket, over, self.at_ns);
        let listed = over(Transport::Tcp).or_else(|| over(Transport::Udp))?;
        Some((listed.application.name(), listed.source))
    }
}

/// `bittorrent/dht`, `bittorrent/mse?` if it is only likely, `more`, `unknown`.
pub(super) fn name(outcome: Classification) -> String {
    match outcome {
        Classification::Pending => "more".into(),
        Classification::Unknown => "unknown".into(),
        Classification::Known(label) => {
            let likely = if label.certainty == Certainty::Likely { "?" } else { "" };
            format!("{}/{}{likely}", label.application, label.detail.unwrap_or_default())
        }
    }
}
