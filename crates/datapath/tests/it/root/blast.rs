//! Live frames against the kernel's own echo, over a veth.

use std::{net::IpAddr, time::Duration};

use datapath::{
    blast::{PassGuard, Receiver, Request, Sender, Tally, Transmissions, Verdict, burst},
    clock::monotonic_ns,
};
use testbed::{LIMIT, Namespace, wait_until};
use wire::{
    Identifier, Mac, Sequence,
    echo_frame::{EchoFrame, Kind},
};

/// Those of [`testbed::pair`].
const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

pub(super) fn request(ends: [&str; 2], payload: usize, base: u32, total: u32) -> Request {
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

/// Sends all of a request in calls of `chunk` frames, the next when the replies to one are there, so that no
/// queue is full on however slow a machine; what came back and what the driver took.
fn blast(near: &Namespace, request: &Request, chunk: u32) -> (Tally, u64, u64) {
    near.enter(|| {
        let interface = nix::net::if_::if_nametoindex("eth0").unwrap();
        let start = monotonic_ns();
        let receiver = Receiver::attach(interface, request, start).unwrap();
        let watch = Transmissions::watch(interface).unwrap();
        let sender = Sender::load(interface, request, 0, start).unwrap();
        let mut left = request.total;
        while left > 0 {
            sender.send(chunk.min(left)).unwrap();
            left -= chunk.min(left);
            wait_until("the replies", LIMIT, || receiver.received().unwrap() == watch.counts().0)
                .unwrap();
        }
        assert_eq!(sender.made(), u64::from(request.total));
        assert_eq!(sender.by_second().iter().sum::<u64>(), sender.made());
        let (taken, refused) = watch.counts();
        assert_eq!(taken + refused, sender.made());
        (receiver.tally().unwrap(), taken, refused)
    })
}

#[test]
fn every_frame_is_answered_by_the_kernel_and_matched() {
    let (near, _far) = testbed::pair().unwrap();
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
            let begin = monotonic_ns();
            let (tally, taken, refused) = blast(&near, &request(ends, payload, base, total), chunk);
            assert_eq!((taken, refused), (u64::from(total), 0));
            assert_eq!(tally.received, taken);
            assert_eq!((tally.duplicated, tally.reordered, tally.corrupt), (0, 0, 0));
            assert_eq!(tally.rtt.iter().map(|(_, count)| count).sum::<u64>(), taken);
            assert!(0 < tally.rtt_min && tally.rtt_min <= tally.rtt_max);
            assert!(tally.rtt_max < monotonic_ns() - begin);
            assert_eq!(tally.by_second.iter().sum::<u64>(), taken);
        }
    }
}

#[test]
fn a_burst_is_answered_by_the_kernel_behind_a_program_that_passes() {
    let (near, far) = testbed::pair().unwrap();
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
    println!(
        "{burst:?}: {:.0} replies a second",
        burst.received as f64 / burst.elapsed.as_secs_f64()
    );
    assert_eq!(burst.made, 50_000);
    assert!(burst.received <= burst.sent && burst.sent <= burst.made);
    // The driver's ring may be full at times; what it took comes back but for full queues.
    assert!(burst.received > burst.sent / 2, "{burst:?}");

    // On an interface that has a program already, the error says so.
    let busy = near.enter(|| {
        let _held = PassGuard::attach(interface()).unwrap();
        datapath::blast::burst(interface(), &request, Duration::from_secs(1)).unwrap_err()
    });
    assert!(busy.to_string().contains("no other program"), "{busy}");
}

/// The reply to copy `index` of a request, sent at `stamp`.
fn reply(request: &Request, index: u32, stamp: u64) -> EchoFrame {
    let [from, to] = if request.ipv6 { V6 } else { V4 }.map(|end| end.parse().unwrap());
    let number = request.base.wrapping_add(index);
    let mut payload = request.frame[request.icmp + 8..].to_vec();
    payload[8..16].copy_from_slice(&stamp.to_ne_bytes());
    let asked = EchoFrame {
        source_mac: MACS[0].parse().unwrap(),
        destination_mac: MACS[1].parse().unwrap(),
        identifier: Identifier((number >> 16) as u16),
        sequence: Sequence(number as u16),
        payload,
        ..EchoFrame::request(from, to)
    };
    asked.reply()
}

const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

/// Packets in, verdicts and counts out: every error that a reply can have, for both families and for
/// payloads of even and odd length.
#[test]
fn the_receiver_judges_each_reply() {
    testbed::need_root();
    for (ends, payload) in [(V4, 16), (V4, 18), (V4, 33), (V6, 16), (V6, 19), (V6, 1400)] {
        let mut request = request(ends, payload, u32::MAX - 4, 128);
        request.per_stream = 64;
        let start = monotonic_ns();
        let receiver = Receiver::load(&request, start).unwrap();
        let run = |frame: &EchoFrame| receiver.run(&frame.to_bytes().unwrap()).unwrap();
        let good = |index| reply(&request, index, start + 1_500_000_000);

        // In order, with the number wrapping; then two late for their turn; then one twice.
        for index in [0, 1, 2, 5, 6, 9, 7, 8, 10] {
            assert_eq!(run(&good(index)), Verdict::Drop, "{index}");
        }
        // Index 64 is another thread's first: no later one of that thread has come.
        assert_eq!(run(&good(64)), Verdict::Drop);
        assert_eq!(run(&good(9)), Verdict::Drop);
        assert_eq!(run(&good(127)), Verdict::Drop);
        let tally = receiver.tally().unwrap();
        let counts = (tally.received, tally.duplicated, tally.reordered, tally.corrupt);
        assert_eq!(counts, (11, 1, 2, 0), "{ends:?} {payload}");
        assert_eq!(tally.by_second, [0, 11]);

        // Damaged: any byte of the message but the number.
        let mut corrupt = 0;
        let bytes = good(20).to_bytes().unwrap();
        for at in request.icmp..bytes.len() {
            let place = at - request.icmp;
            // Type: no reply any more. Number: the reply to another request.
            if place == 0 || (4..8).contains(&place) {
                continue;
            }
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            assert_eq!(receiver.run(&bad).unwrap(), Verdict::Drop, "byte {place}");
            corrupt += 1;
        }
        // Words exchanged, or a checksum to match: what a responder would do that makes payload again.
        let mut anew = good(20);
        anew.payload.swap(0, 2);
        assert_eq!(run(&anew), Verdict::Drop);
        corrupt += 1;
        let mut anew = good(20);
        *anew.payload.last_mut().unwrap() ^= 0x40;
        if payload > 16 {
            assert_eq!(run(&anew), Verdict::Drop);
            corrupt += 1;
        }
        if !request.ipv6 {
            let mut bad = bytes.clone();
            bad[14 + 8] -= 1; // TTL, without its checksum.
            assert_eq!(receiver.run(&bad).unwrap(), Verdict::Drop);
            corrupt += 1;
        }
        let mut short = good(20);
        short.payload.truncate(payload - 1);
        if payload > 16 {
            assert_eq!(run(&short), Verdict::Drop);
            corrupt += 1;
        }
        assert_eq!(receiver.tally().unwrap().corrupt, corrupt);
        assert_eq!(receiver.tally().unwrap().received, 11);

        // Not ours: passed to the kernel.
        let other = if request.ipv6 { "2001:db8::3" } else { "192.0.2.3" }.parse().unwrap();
        let elsewhere = EchoFrame { source: other, ..good(20) };
        let to_other = EchoFrame { destination: other, ..good(20) };
        let asked = EchoFrame { kind: Kind::Request, ..good(20) };
        for frame in [good(128), good(u32::MAX), elsewhere, to_other, asked] {
            assert_eq!(run(&frame), Verdict::Pass);
        }
        assert_eq!(receiver.run(&[0; 60]).unwrap(), Verdict::Pass);
        assert_eq!(receiver.run(&bytes[..request.icmp + 20]).unwrap(), Verdict::Pass);
        if !request.ipv6 {
            let mut fragment = bytes.clone();
            fragment[14 + 6] = 0x20;
            assert_eq!(receiver.run(&fragment).unwrap(), Verdict::Pass);
        }
        assert_eq!(receiver.tally().unwrap().received, 11);
    }
}
