//! Live frames against the kernel's own echo, over a veth.

use std::{net::IpAddr, time::Duration};

use datapath::blast::{
    PassGuard, Receiver, Request, Sender, Tally, Transmissions, burst, monotonic_now,
};
use testbed::{End, Namespace, link, wait_until};
use wire::{Identifier, Mac, Sequence, echo_frame::EchoFrame};

const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

fn request(ends: [&str; 2], payload: usize, base: u32, total: u32) -> Request {
    let [from, to] = ends.map(|end| end.parse::<IpAddr>().unwrap());
    let [near, far] = MACS.map(|mac| mac.parse::<Mac>().unwrap());
    let mut bytes: Vec<u8> = (0..payload).map(|at| at as u8).collect();
    bytes[..8].copy_from_slice(b"nigh\x01\x02\x03\x04");
    let frame = EchoFrame {
        source_mac: near,
        destination_mac: far,
        identifier: Identifier((base >> 16) as u16),
        sequence: Sequence(base as u16),
        payload: bytes,
        ..EchoFrame::request(from, to)
    };
    Request {
        icmp: frame.ethernet_len() + if from.is_ipv4() { 20 } else { 40 },
        ipv6: from.is_ipv6(),
        frame: frame.to_bytes().unwrap(),
        base,
        total,
        per_stream: total,
        stamp_every: 1,
    }
}

/// Sends all of a request in calls of `chunk` frames; what came back and what the driver took.
fn blast(near: &Namespace, request: &Request, chunk: u32) -> (Tally, u64, u64) {
    near.enter(|| {
        let interface = nix::net::if_::if_nametoindex("eth0").unwrap();
        let start = monotonic_now();
        let receiver = Receiver::attach(interface, request, start).unwrap();
        let watch = Transmissions::watch(interface).unwrap();
        let sender = Sender::load(interface, request, 0, start).unwrap();
        let mut left = request.total;
        while left > 0 {
            sender.send(chunk.min(left)).unwrap();
            left -= chunk.min(left);
        }
        assert_eq!(sender.made(), u64::from(request.total));
        assert_eq!(sender.by_second().iter().sum::<u64>(), sender.made());
        let (taken, refused) = watch.counts();
        assert_eq!(taken + refused, sender.made());
        let _ = wait_until("the replies", Duration::from_secs(2), || {
            receiver.received().unwrap() == taken
        });
        (receiver.tally().unwrap(), taken, refused)
    })
}

#[test]
fn every_frame_is_answered_by_the_kernel_and_matched() {
    if !testbed::require_root() {
        return;
    }
    let near = Namespace::new("near").unwrap();
    let far = Namespace::new("far").unwrap();
    link(
        End::new(&near, "eth0").mac(MACS[0]).address("192.0.2.1/24").address("2001:db8::1/64"),
        End::new(&far, "eth0").mac(MACS[1]).address("192.0.2.2/24").address("2001:db8::2/64"),
    )
    .unwrap();
    for ping in [["ping", "-c1", "192.0.2.2"], ["ping", "-c1", "2001:db8::2"]] {
        near.check(&ping).unwrap();
    }
    // A base near the end, so that the 32-bit number wraps within the run.
    for (ends, base) in [
        (["192.0.2.1", "192.0.2.2"], u32::MAX - 100),
        (["2001:db8::1", "2001:db8::2"], 0xfffe_fff0),
    ] {
        for payload in [16, 17, 18, 99, 1400] {
            let total = 3000;
            // The kernel's ICMP socket holds some 50 large replies before it drops one.
            let chunk = if payload < 1000 { 64 } else { 16 };
            let (tally, taken, refused) = blast(&near, &request(ends, payload, base, total), chunk);
            assert_eq!((taken, refused), (u64::from(total), 0));
            assert_eq!(tally.received, taken);
            assert_eq!((tally.duplicated, tally.reordered, tally.corrupt), (0, 0, 0));
            assert_eq!(tally.rtt.iter().map(|(_, count)| count).sum::<u64>(), taken);
            assert!(0 < tally.rtt_min && tally.rtt_min <= tally.rtt_max);
            assert!(tally.rtt_max < 2_000_000_000);
            assert_eq!(tally.by_second.iter().sum::<u64>(), taken);
        }
    }
}

#[test]
fn a_burst_is_answered_by_the_kernel_behind_a_program_that_passes() {
    if !testbed::require_root() {
        return;
    }
    let near = Namespace::new("near").unwrap();
    let far = Namespace::new("far").unwrap();
    link(
        End::new(&near, "eth0").mac(MACS[0]).address("192.0.2.1/24"),
        End::new(&far, "eth0").mac(MACS[1]).address("192.0.2.2/24"),
    )
    .unwrap();
    near.check(&["ping", "-c1", "192.0.2.2"]).unwrap();
    let interface = || nix::net::if_::if_nametoindex("eth0").unwrap();
    let _pass = far.enter(|| PassGuard::attach(interface()).unwrap());
    let frame = EchoFrame {
        source_mac: MACS[0].parse().unwrap(),
        destination_mac: MACS[1].parse().unwrap(),
        payload: vec![7; 18],
        ..EchoFrame::request("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap())
    };
    let request = Request::copies(&frame, 50_000).unwrap();
    let burst = near.enter(|| burst(interface(), &request, Duration::from_secs(1)).unwrap());
    println!("{burst:?}: {:.0} replies a second", burst.replies_per_second());
    assert_eq!(burst.made, 50_000);
    assert!(burst.received <= burst.sent && burst.sent <= burst.made);
    // The driver's ring may be full at times; what it took comes back but for full queues.
    assert!(burst.received > 25_000);

    // On an interface that has a program already, the error says so.
    let busy = near.enter(|| {
        let _held = PassGuard::attach(interface()).unwrap();
        datapath::blast::burst(interface(), &request, Duration::from_secs(1)).unwrap_err()
    });
    assert!(busy.to_string().contains("no other program"), "{busy}");
}
