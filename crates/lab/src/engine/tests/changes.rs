//! Changes while packets are in flight.

use super::table::{MS, Table, ring, row, row_of, udp};
use crate::{
    LinkId, Nanos, NodeId, PortId,
    engine::{Change, ChangeError, Reason},
    settings::SettingsChange,
};

const FROM: &str = "10.0.0.10";

fn change(table: &mut Table, from: u32, to: u32, settings: &str) {
    let link = table.engine.network().link_between(NodeId(from), NodeId(to)).expect("a link");
    let settings = settings.parse().expect("settings");
    let change = Change::Link { link, both_ways: true, settings };
    table.engine.apply(Nanos(table.now), change).expect("links");
}

/// A packet a millisecond for 50 ms; the link from node 2 to node 3 goes down at 25 ms and comes up at
/// 35 ms. Lost is what comes to it between, by the packet's clock: what set out from 5 to 15 ms.
#[test]
fn a_link_that_is_down_loses_what_comes_to_it_in_that_time() {
    let mut table = row(5, "delay=10ms");
    let mut left = Vec::new();
    for number in 0..50 {
        left.extend(table.until(number * MS));
        match number {
            25 => change(&mut table, 2, 3, "up=false"),
            35 => change(&mut table, 2, 3, "up=true"),
            _ => {}
        }
        table.send(PortId(0), &udp(FROM, "10.4.0.10", 64, number as u16, b"x"));
    }
    left.extend(table.drain());
    let came: Vec<_> = left.iter().map(|left| u16::from(left.ip()[23])).collect();
    let right: Vec<u16> = (0..50).filter(|number| !(5..15).contains(number)).collect();
    assert_eq!(came, right);
    assert_eq!(table.engine.ledger()[Reason::LinkDown], 10);
    assert!(left.iter().all(|left| left.at == (u64::from(left.ip()[23]) + 40) * MS));
}

/// The packet was due at the second link before the change, though the engine is asked only after it.
#[test]
fn a_change_does_not_overtake_packets_that_were_due_before_it() {
    let settings = |link| if link == 1 { "delay=10ms rate=1Gbit" } else { "delay=10ms" };
    for (at, comes) in [(12, 1), (8, 0)] {
        let mut table = row_of(4, settings);
        table.send(PortId(0), &udp(FROM, "10.3.0.10", 64, 9, b"x"));
        table.now = at * MS;
        change(&mut table, 1, 2, "loss=100%");
        assert_eq!(table.drain().len(), comes, "at {at} ms");
    }
}

/// Four nodes in a ring, the short path from 0 to 1 is the link between them. It goes down; for a
/// second packets are lost, then they take the long path; it comes up, and a second later they are back.
#[test]
fn routing_follows_after_the_time_of_convergence() {
    let mut table = ring(4, "delay=10ms");
    let went = |table: &mut Table| {
        let sent = table.now;
        table.send(PortId(0), &udp(FROM, "10.1.0.10", 64, 9, b"x"));
        let left = table.until(sent + 100 * MS);
        left.first().map(|left| ((left.at - sent) / MS, left.ip()[8]))
    };
    assert_eq!(went(&mut table), Some((10, 62)));
    change(&mut table, 0, 1, "up=false");
    assert_eq!(went(&mut table), None);
    table.until(900 * MS);
    assert_eq!(went(&mut table), None);
    table.until(1200 * MS);
    assert_eq!(went(&mut table), Some((30, 60)));
    change(&mut table, 0, 1, "up=true");
    assert_eq!(went(&mut table), Some((30, 60)));
    table.until(2400 * MS);
    assert_eq!(went(&mut table), Some((10, 62)));
    assert_eq!(table.engine.ledger()[Reason::LinkDown], 2);
}

/// Four links change at a time, in both directions: what is planned is forgotten once, when it is known.
#[test]
fn what_routing_hears_at_a_time_is_taken_in_at_once() {
    let mut table = ring(4, "delay=10ms");
    let node = Change::Node { node: NodeId(1), up: false };
    table.engine.apply(Nanos(table.now), node).expect("a node");
    let before = table.engine.generation;
    let due = table.engine.due().expect("news");
    table.until(due.0);
    assert_eq!(table.engine.generation, before + 1);
    assert_eq!(table.engine.due(), None);
}

/// In a row there is no other path: first silence, then the node before the gap says so.
#[test]
fn where_no_way_is_left_the_last_node_says_that_it_has_no_route() {
    let mut table = row(5, "delay=10ms");
    change(&mut table, 2, 3, "up=false");
    table.send(PortId(0), &udp(FROM, "10.4.0.10", 64, 9, b"x"));
    assert_eq!(table.until(500 * MS), []);
    table.until(1100 * MS);
    table.send(PortId(0), &udp(FROM, "10.4.0.10", 64, 9, b"x"));
    let left = table.drain();
    // Routing knows of no path at all, so the first node has none.
    assert_eq!((left.len(), left[0].port), (1, PortId(0)));
    assert_eq!(left[0].ip()[20..22], [3, 0]);
}

#[test]
fn a_node_that_is_down_neither_forwards_nor_answers_nor_serves_its_ports() {
    let mut table = ring(4, "delay=10ms");
    let node = |table: &mut Table, node, up| {
        table.engine.apply(Nanos(table.now), Change::Node { node: NodeId(node), up }).expect("it");
    };
    node(&mut table, 1, false);
    table.send(PortId(0), &udp(FROM, "10.1.0.10", 64, 9, b"x"));
    table.send(PortId(0), &udp(FROM, "10.1.0.1", 64, 9, b"x"));
    table.send(PortId(1), &udp("10.1.0.10", FROM, 64, 9, b"x"));
    assert_eq!(table.until(900 * MS), []);
    assert_eq!(table.engine.ledger()[Reason::NodeDown], 3);
    node(&mut table, 1, true);
    table.until(3000 * MS);
    table.send(PortId(0), &udp(FROM, "10.1.0.10", 64, 9, b"x"));
    assert_eq!(table.drain().len(), 1);
}

#[test]
fn a_new_delay_holds_for_packets_that_set_out_after_it() {
    let mut table = row(5, "delay=10ms");
    table.send(PortId(0), &udp(FROM, "10.4.0.10", 64, 1, b"x"));
    change(&mut table, 1, 2, "delay=50ms");
    table.send(PortId(0), &udp(FROM, "10.4.0.10", 64, 2, b"x"));
    let at: Vec<_> = table.drain().iter().map(|left| left.at / MS).collect();
    assert_eq!(at, [40, 80]);
}

/// A packet keeps the delays of the run that it began; one that set out later arrives by the new ones, and
/// before it if they are shorter.
#[test]
fn packets_overtake_those_inside_when_a_delay_becomes_shorter() {
    let mut table = row(5, "delay=10ms");
    table.send(PortId(0), &udp(FROM, "10.4.0.10", 64, 1, b"x"));
    let mut left = table.until(5 * MS);
    change(&mut table, 1, 2, "delay=0ms");
    change(&mut table, 2, 3, "delay=0ms");
    table.send(PortId(0), &udp(FROM, "10.4.0.10", 64, 2, b"x"));
    left.extend(table.drain());
    let came: Vec<_> = left.iter().map(|left| (left.ip()[23], left.at / MS)).collect();
    assert_eq!(came, [(2, 25), (1, 40)]);
}

/// A link that does more than delay ends a run: what has not come to it yet when it changes gets the new
/// delay, what is on it keeps the one with which it was put there.
#[test]
fn on_a_link_that_does_more_the_delay_holds_with_which_a_packet_was_put_there() {
    let settings = |link| if link == 2 { "delay=10ms rate=1Gbit" } else { "delay=10ms" };
    let mut table = super::table::row_of(5, settings);
    for number in [1, 2] {
        table.send(PortId(0), &udp(FROM, "10.4.0.10", 64, number, b"x"));
        // The first is on the link from node 2 to node 3, the second on that from 0 to 1.
        assert_eq!(table.until(if number == 1 { 25 } else { 30 } * MS), []);
    }
    change(&mut table, 2, 3, "delay=50ms");
    let at: Vec<_> = table.drain().iter().map(|left| left.at / MS).collect();
    assert_eq!(at, [40, 105]);
}

#[test]
fn what_is_not_there_cannot_change() {
    let mut table = row(2, "delay=10ms");
    let settings = SettingsChange::default();
    let link = Change::Link { link: LinkId(2), both_ways: false, settings };
    let right = Err(ChangeError::NoLink { link: 2, links: 2 });
    assert_eq!(table.engine.apply(Nanos::ZERO, link), right);
    let node = Change::Node { node: NodeId(2), up: false };
    let right = Err(ChangeError::NoNode { node: 2, nodes: 2 });
    assert_eq!(table.engine.apply(Nanos::ZERO, node), right);
}
