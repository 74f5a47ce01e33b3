//! Captures: what is copied for somebody who does not read.

use std::sync::{Arc, mpsc::channel};

use super::table::{MS, row, udp};
use crate::{
    NodeId, PortId,
    engine::{Room, Watch, Watched},
};

/// The room for what waits is bounded; what finds none is counted, and every packet arrives as if nobody
/// watched. Once some was read there is room again.
#[test]
fn a_reader_that_does_not_read_delays_and_loses_nothing_but_copies() {
    let mut table = row(3, "delay=1ms mtu=65535");
    let network = table.engine.network();
    let link = network.link_between(NodeId(0), NodeId(1)).expect("a link");
    let (to, seen) = channel();
    let room = Arc::new(Room::default());
    let watch = Watch { what: Watched::Link(link, None), snap: 262_144, to, room: room.clone() };
    let number = table.engine.watch(watch);
    let packet = udp("10.0.0.10", "10.2.0.10", 64, 9, &[0; 40_000]);
    let send = |table: &mut super::table::Table| {
        let sent = table.now;
        table.send(PortId(0), &packet);
        let left = table.drain();
        let at: Vec<_> = left.iter().map(|left| left.at - sent).collect();
        assert_eq!(at, [2 * MS]);
    };
    let most = (32 << 20) / packet.len() as u64;
    for _ in 0..most + 100 {
        send(&mut table);
    }
    let (kept, lost) = (seen.try_iter().collect::<Vec<_>>(), room.lost());
    assert_eq!(kept.len() as u64 + lost, most + 100, "each is kept or counted");
    assert!((100..120).contains(&lost), "{lost}");
    assert!(kept.iter().all(|seen| seen.bytes.len() == packet.len()));
    for seen in &kept[..10] {
        room.taken(seen);
    }
    for _ in 0..12 {
        send(&mut table);
    }
    assert_eq!((seen.try_iter().count(), room.lost()), (10, lost + 2));
    table.engine.unwatch(number);
    send(&mut table);
    assert_eq!((seen.try_iter().count(), room.lost()), (0, lost + 2));
}
