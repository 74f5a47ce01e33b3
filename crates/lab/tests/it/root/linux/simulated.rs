//! The same network, simulated.

use std::sync::Arc;

use lab::{
    Builder, Change, Engine, EngineOptions, IcmpLimits, LinkSettings, Nanos, NodeId, PortId,
    Relation, pool::IP,
};
use wire::Mac;

use super::CapturedPacket;

/// The engine and its clock.
pub(crate) struct Simulated {
    engine: Engine,
    now: Nanos,
}

impl Simulated {
    /// The network that [`super::Chain`] makes of namespaces.
    pub(crate) fn build() -> Self {
        Self::with(IcmpLimits::OFF)
    }

    /// The same with the limits of errors that Linux has by default.
    pub(crate) fn limited() -> Self {
        Self::with(IcmpLimits::default())
    }

    fn with(icmp: IcmpLimits) -> Self {
        let mut builder = Builder::new();
        for n in 0..5 {
            let node = builder.node(&format!("r{n}")).expect("a node");
            for prefix in [format!("10.{n}.0.0/16"), format!("2001:db8:{n}::/48")] {
                builder.prefix(node, prefix.parse().expect("a prefix")).expect("a node");
            }
            for address in [format!("10.{n}.0.1"), format!("2001:db8:{n}::1")] {
                builder.node_address(node, address.parse().expect("an address")).expect("a node");
            }
        }
        for n in 0..4u32 {
            let mtu = if n == 2 { 1280 } else { 1500 };
            let settings = LinkSettings { delay: Nanos(1000), mtu, ..LinkSettings::default() };
            let (a, b) = (NodeId(n), NodeId(n + 1));
            let drafts = builder.link(a, b, &settings, 1, Relation::None).expect("a link");
            for (draft, [own, far]) in drafts.into_iter().zip([[n, n + 1], [n + 1, n]]) {
                for address in
                    [format!("172.16.{own}.{far}"), format!("2001:db8:ffff:{own}::{far}")]
                {
                    builder.address(draft, address.parse().expect("an address")).expect("a link");
                }
            }
        }
        let network = builder.finish().expect("a network");
        let options = EngineOptions { icmp, frames: 256, spills: 16, ..EngineOptions::default() };
        let mut engine = Engine::new(Arc::new(network), options);
        for node in [0, 4] {
            let addresses = [format!("10.{node}.0.10/16"), format!("2001:db8:{node}::10/48")];
            let addresses = addresses.map(|net| net.parse().expect("a prefix")).to_vec();
            let port = engine.add_port(NodeId(node), Mac([2, 0, 0, 0, 0, 1]), addresses);
            engine.learn(port, Mac([2, 0, 0, 0, 0, 0x10]));
        }
        for prefix in ["10.4.99.0/24", "2001:db8:4:99::/64"] {
            let prefix = prefix.parse().expect("a prefix");
            let change = Change::Prohibit { node: NodeId(2), prefix, prohibited: true };
            engine.apply(Nanos::ZERO, change).expect("a node");
        }
        Self { engine, now: Nanos::ZERO }
    }

    /// Sends a packet from the first host, and gives what comes to both hosts.
    pub(crate) fn send(&mut self, packet: &[u8]) -> Vec<CapturedPacket> {
        self.send_many(packet, 1)
    }

    /// As [`Simulated::send`], so many times at once.
    pub(crate) fn send_many(&mut self, packet: &[u8], count: usize) -> Vec<CapturedPacket> {
        for _ in 0..count {
            self.put_in(packet);
        }
        let mut seen = Vec::new();
        let mut out = Vec::new();
        while let Some(due) = self.engine.due() {
            self.now = self.now.max(due);
            self.engine.advance(self.now, &mut out);
            for (port, frame) in out.drain(..) {
                let pool = self.engine.pool();
                seen.push((usize::from(port.0), pool.pieces(&frame).concat()[IP..].to_vec()));
                pool.give_back(frame);
            }
        }
        assert_eq!(self.engine.ledger().in_flight(), 0);
        seen
    }

    fn put_in(&mut self, packet: &[u8]) {
        let pool = self.engine.pool();
        let mut frame = pool.take().expect("a frame");
        let kind = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
        let macs = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10];
        let bytes = [&[0; 12][..], &macs, &kind, packet].concat();
        pool.buffers(&mut frame)[0][..bytes.len()].copy_from_slice(&bytes);
        pool.filled(&mut frame, bytes.len());
        self.engine.ingress(self.now, PortId(0), frame);
    }
}
