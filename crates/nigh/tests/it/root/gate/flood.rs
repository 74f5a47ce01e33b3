//! A flood of new flows: tables stay as large as they may be, and established flows go on.

use super::{
    site::{EXTERNAL, LIMIT, Site, count, exact},
    talk::Talk,
};
use std::net::{Ipv4Addr, UdpSocket};
use testbed::wait_until;

/// What the tables hold.
const ROOM: u64 = 16_384;

#[test]
fn many_new_flows_neither_grow_the_tables_nor_end_established_ones() {
    established_flows_outlive(100_000);
}

#[test]
fn soak_a_million_new_flows_neither_grow_the_tables_nor_end_established_ones() {
    established_flows_outlive(1_000_000);
}

/// A flood of so many new flows.
fn established_flows_outlive(flows: u32) {
    let site = Site::start(&format!("max_flows = {ROOM}"));
    // Where the flood goes, the gate throws it away without a word.
    site.gate.check(&["ip", "route", "add", "blackhole", "10.99.0.0/16"]).unwrap();
    let mut talk = Talk::open(&site.internal, &site.external, EXTERNAL);
    // Bytes sent before the daemon looks pass unseen, so the flow is decided only while more follow.
    wait_until("a decided flow", LIMIT, || {
        for number in 0..40 {
            talk.send(format!("before the flood {number}").as_bytes());
        }
        count(&site.status()["flows"], "decided") >= 1
    })
    .unwrap();
    site.internal.enter(|| flood(flows));
    talk.send(b"after the flood");
    let status = site.wait("a quiet gate", |status| {
        count(&status["packets"]["from_internal"], "received") >= u64::from(flows) && exact(status)
    });
    assert!(count(&status["flows"], "decided") <= ROOM, "{status:#}");
    assert!(count(&status["flows"], "undecided") <= ROOM, "{status:#}");
    for number in 0..40 {
        talk.send(format!("long after the flood {number}").as_bytes());
    }
}

/// Sends so many packets over UDP, each to another socket.
fn flood(flows: u32) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for number in 0..flows {
        let host = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 99, 0, 1)) + number / 20_000);
        let port = u16::try_from(1024 + number % 20_000).unwrap_or(u16::MAX);
        // A full queue of the socket is emptied by the kernel, not by us: nothing is lost by asking again.
        while socket.send_to(&number.to_be_bytes(), (host, port)).is_err() {}
    }
}
