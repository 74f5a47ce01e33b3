//! Any conversation through the classifier of peer-to-peer protocols. The input is a first byte for the
//! transport and then packets: one byte for the end that speaks and how (in order, early, again, cut), two
//! for the length, the payload. What is known stays known, the hosts stay bounded, and nothing that no
//! peer can have is named as a peer's socket.

use classify::{
    flow::{Flow, Side, Transport},
    hosts::{Bounds, Hosts},
    label::{Certainty, Classification, Engine},
    p2p::Classifier,
    packet::{Packet, Tcp},
};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else { return };
    let transport = if first & 1 == 0 { Transport::Tcp } else { Transport::Udp };
    let flow = Flow {
        transport,
        client: ([10, 0, 0, 5], 51413).into(),
        server: ([192, 0, 2, 7], 6881).into(),
    };
    let mut hosts = Hosts::new(Bounds { sockets: 16, hosts: 8, lifetime_ns: 1 << 40 });
    let mut classifier = Classifier::new(&flow);
    let mut next = [7_u32, u32::MAX - 3];
    let mut known = None;
    let mut at_ns = 0;
    while let [how, high, low, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]) & 0x7ff).min(more.len());
        let (payload, after) = more.split_at(length);
        rest = after;
        at_ns += 1;
        let from = if how & 1 == 0 { Side::Client } else { Side::Server };
        let flags = Tcp::ACK | if how & 2 != 0 { Tcp::FIN } else { 0 };
        // On the wire it may have been longer than what was copied.
        let length = length as u32 + if how & 4 != 0 { 100 } else { 0 };
        let place = &mut next[from as usize];
        let sequence = match how >> 3 & 3 {
            0 | 1 => *place,
            2 => place.wrapping_add(length),
            _ => place.wrapping_sub(length / 2),
        };
        if how >> 3 & 3 < 2 {
            *place = place.wrapping_add(length);
        }
        let tcp = Tcp { sequence, acknowledgement: 0, flags };
        let tcp = (transport == Transport::Tcp).then_some(tcp);
        let packet = Packet { at_ns, from, tcp, payload, length };
        let outcome = classifier.packet(&packet, &mut hosts);
        match (outcome, &known) {
            (Classification::Known(label), Some(before)) => assert_eq!(label, *before),
            (Classification::Known(label), None) => {
                let certain = label.certainty == Certainty::Certain;
                assert_eq!(certain, label.engine == Engine::Parser);
                assert!(!label.reason.is_empty());
                known = Some(label);
            }
            (outcome, Some(_)) => panic!("{outcome:?} after it was known"),
            (Classification::Pending | Classification::Unknown, None) => {
                assert!(!classifier.learns())
            }
        }
        let (sockets, held) = hosts.counts();
        assert!(sockets <= 16 + 4 && held <= 8);
        assert_eq!(hosts.listed(([10, 0, 0, 5], 0).into(), Transport::Tcp, at_ns), None);
        assert_eq!(hosts.listed(([0, 0, 0, 0], 6881).into(), Transport::Tcp, at_ns), None);
    }
}
