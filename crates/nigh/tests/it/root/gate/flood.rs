//! A flood of new flows: tables stay as large as they may be, and established flows go on.

use super::{
    sharing::Share,
    site::{EXTERNAL, LIMIT, Site, count, exact},
    talk::Talk,
};
use std::{
    net::{Ipv4Addr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use testbed::{clients::Peer, wait_until};

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
    site.internal.enter(|| flood("0.0.0.0", 0..flows));
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

/// 100,000 one-packet flows a second of one host, in which another's BitTorrent does not hide.
#[test]
fn a_flood_of_one_host_hides_nothing_of_another() {
    const FLOODER: &str = "10.61.0.9";
    const FLOWS_PER_MS: u32 = 100;
    let site = Site::start(&format!(
        "max_flows = {ROOM}\nrefuse_for = \"0s\"\n[[gate.rule]]\nname = \"no-sharing\"\n\
         application = [\"bittorrent\"]\naction = \"deny\"\n"
    ));
    site.gate.check(&["ip", "route", "add", "blackhole", "10.99.0.0/16"]).unwrap();
    site.internal.check(&["ip", "addr", "add", &format!("{FLOODER}/24"), "dev", "eth0"]).unwrap();
    let share = Share::start(&site, 2_000_000, &Peer::new(21_002));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            site.internal.enter(|| {
                let (begin, mut sent) = (Instant::now(), 0);
                while !over.load(Ordering::Relaxed) && begin.elapsed() < LIMIT {
                    let due = u32::try_from(begin.elapsed().as_millis()).unwrap() * FLOWS_PER_MS;
                    flood(FLOODER, sent..due);
                    sent = due;
                    std::thread::sleep(Duration::from_millis(1));
                }
                sent
            })
        });
        site.wait("the flood", |status| count(&status["flows"], "evicted") > ROOM);
        let leech = share.fetch(&site, &Peer::new(21_001));
        let refused = wait_until("a refused flow", LIMIT, || {
            count(&site.status()["refused"], "bittorrent") >= 1 || leech.complete()
        });
        over.store(true, Ordering::Relaxed);
        flooding.join().unwrap();
        assert!(refused.is_ok() && !leech.complete(), "{}", site.state());
    });
}

/// Sends a packet over UDP for each of these numbers, each to another socket.
fn flood(from: &str, flows: std::ops::Range<u32>) {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    for number in flows {
        let host = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 99, 0, 1)) + number / 20_000 % 200);
        let port = u16::try_from(1024 + number % 20_000).unwrap_or(u16::MAX);
        // A full queue of the socket is emptied by the kernel, not by us: nothing is lost by asking again.
        while socket.send_to(&number.to_be_bytes(), (host, port)).is_err() {}
    }
}
