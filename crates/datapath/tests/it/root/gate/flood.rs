//! A flood of new flows: tables stay as large as they are, and what is decided goes on.

use super::frame::{Packet, SYN};
use super::site::Site;
use super::through::exchange;
use datapath::gate::{Direction, FlowVerdict, Gate, Key, Meta, Protocol, Settings};
use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    time::Duration,
};

#[test]
fn many_new_flows_push_out_no_decided_one() {
    decided_flows_outlive(200_000);
}

#[test]
fn soak_a_million_new_flows_push_out_no_decided_one() {
    decided_flows_outlive(1_000_000);
}

/// A flood of so many new flows.
fn decided_flows_outlive(flows: u32) {
    let site = Site::new();
    let gate = site.gate();
    let table = gate.table();
    let listener = site.server.enter(|| TcpListener::bind((super::site::SERVER[0], 0))).unwrap();
    let to = listener.local_addr().unwrap();
    let mut client = site.client.enter(|| TcpStream::connect(to)).unwrap();
    let mut server = listener.accept().unwrap().0;
    for end in [&client, &server] {
        end.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    }
    let key = Key::new(Protocol::Tcp, client.local_addr().unwrap(), to);
    table.decide(&key, &FlowVerdict { label: 4, ..FlowVerdict::default() }).unwrap();

    // SYNs and datagrams with payload, each of another flow; every so often the decided one speaks.
    let mut frames = [Packet::tcp(0, SYN, b"").bytes(), Packet::udp(0, b"hello").bytes()];
    for flow in 0..flows {
        let frame = &mut frames[flow as usize & 1];
        let [_, high, middle, low] = flow.to_be_bytes();
        // The last bytes of the source's address, and its port; checksums are not inspected.
        frame[14 + 13..14 + 16].copy_from_slice(&[high, middle, low]);
        frame[14 + 20 + 1] = low;
        let (_, _, _) = gate.run(Direction::FromInternal, frame, Meta::default()).unwrap();
        if flow % 4096 == 0 {
            client.write_all(&flow.to_be_bytes()).unwrap();
            let mut bytes = [0; 4];
            server.read_exact(&mut bytes).unwrap();
            assert_eq!(u32::from_be_bytes(bytes), flow);
        }
    }
    let (mut fresh, mut decided) = (0, 0);
    table
        .for_each(|_, flow| match flow.verdict {
            Some(_) => decided += 1,
            None => fresh += 1,
        })
        .unwrap();
    assert_eq!(decided, 1);
    // As many as there is room for; the kernel keeps some entries ready on each CPU.
    assert!((1..=4096).contains(&fresh), "{fresh}");
    let flow = table.get(&key).unwrap().unwrap();
    assert_eq!(flow.verdict.unwrap().label, 4);
    let up = flow.sent(key.side_of(client.local_addr().unwrap()).unwrap());
    assert!(up.packets >= u64::from(flows / 4096), "{up:?}");
    let counts = gate.ledger().unwrap().from_internal;
    assert_eq!(counts.accounted(), counts.received, "{counts:?}");
    assert!(counts.received > u64::from(flows));
    // Nobody read the ring: it is full, and that was counted.
    assert!(counts.missed > 0 && counts.copied + counts.missed >= u64::from(flows / 2));
    exchange(&site, 0, 100_000);
}

/// The kernel hands over whole buckets: a part may have fewer flows than there is room for and not be the
/// last.
#[test]
fn every_flow_of_a_large_table_is_shown_once() {
    const DECIDED: u32 = 20_000;
    testbed::need_root();
    let settings = Settings { max_flows: 32_768, ..super::site::settings() };
    let gate = Gate::open(&settings).unwrap();
    let table = gate.table();
    let to = ([192, 0, 2, 1], 80).into();
    let key = |flow: u32| {
        let [_, high, middle, low] = flow.to_be_bytes();
        Key::new(Protocol::Tcp, ([10, high, middle, low], 1024).into(), to)
    };
    for flow in 0..DECIDED {
        table.decide(&key(flow), &FlowVerdict { label: flow, ..FlowVerdict::default() }).unwrap();
    }
    let mut walk = table.walk();
    // A second walk of the same is as whole as the first.
    for _ in 0..2 {
        let mut shown = HashMap::new();
        let mut parts = 1;
        let mut show = |key: &Key, flow: &datapath::gate::Flow| {
            *shown.entry((*key, flow.verdict.map(|verdict| verdict.label))).or_insert(0) += 1;
        };
        while walk.part(&mut show).unwrap() {
            parts += 1;
        }
        assert!(parts > 2);
        assert_eq!(shown.len(), DECIDED as usize);
        assert!((0..DECIDED).all(|flow| shown.get(&(key(flow), Some(flow))) == Some(&1)));
    }
}
