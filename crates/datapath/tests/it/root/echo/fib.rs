//! Answers by the kernel's routing table: `bpf_fib_lookup` in a namespace with routes and neighbours.

use super::frame::{Frame, Ip};
use super::{CLIENT4, CLIENT6, SERVICE4, SERVICE6};
use datapath::echo::{ReturnPath, Settings, Verdict};
use testbed::{End, Namespace, link};

const GATEWAY: [u8; 6] = [0x02, 0, 0, 0, 0xee, 0x01];
const OWN: [u8; 6] = [0x02, 0, 0, 0, 0xee, 0x02];

#[test]
fn answers_follow_the_routing_table() {
    let settings = Settings { return_path: ReturnPath::Fib, ..super::settings() };
    let program = super::program(&settings);
    let (here, there) = (Namespace::new("fib").unwrap(), Namespace::new("fibgw").unwrap());
    link(
        End::new(&here, "eth0")
            .mac("02:00:00:00:ee:02")
            .address("172.16.0.29/30")
            .address("2001:db8:ff00::29/64"),
        End::new(&there, "eth0").mac("02:00:00:00:ee:01"),
    )
    .unwrap();
    here.forward().unwrap();
    let ifindex = super::attach::index(&here, "eth0");
    let run = |frame: &Frame| here.enter(|| program.run(Some(ifindex), &frame.bytes())).unwrap();

    let frames = [Ip::V4(CLIENT4, SERVICE4), Ip::V6(CLIENT6, SERVICE6)].map(Frame::request);
    for frame in &frames {
        let (verdict, out) = run(frame);
        assert_eq!(verdict, Verdict::Pass, "no route: the kernel decides");
        assert_eq!(out, frame.bytes());
    }
    here.check(&["ip", "route", "add", "default", "via", "172.16.0.30"]).unwrap();
    here.check(&["ip", "-6", "route", "add", "default", "via", "2001:db8:ff00::30"]).unwrap();
    for frame in &frames {
        assert_eq!(run(frame).0, Verdict::Pass, "no neighbour yet: the kernel resolves it");
    }
    for gateway in ["172.16.0.30", "2001:db8:ff00::30"] {
        let mac = "02:00:00:00:ee:01";
        here.check(&["ip", "neigh", "replace", gateway, "lladdr", mac, "dev", "eth0"]).unwrap();
    }
    for frame in &frames {
        let (verdict, out) = run(frame);
        assert_eq!(verdict, Verdict::Tx);
        // Not to the MAC address that the request came from, but to the gateway's.
        let mut reply = frame.reply();
        (reply.link.to, reply.link.from) = (GATEWAY, OWN);
        assert_eq!(out, reply.bytes());

        let mut tagged = frame.clone();
        tagged.link.tags = vec![(0x8100, 7)];
        assert_eq!(run(&tagged), (Verdict::Pass, tagged.bytes()), "the kernel must tag it");
    }
    // What does not fit the outgoing interface is the kernel's: it sends an error, or fragments.
    here.check(&["ip", "link", "set", "eth0", "mtu", "1280"]).unwrap();
    for (frame, headers) in frames.iter().zip([28, 48]) {
        let with = |payload| Frame { payload: vec![0x5a; payload], ..frame.clone() };
        assert_eq!(run(&with(1280 - headers)).0, Verdict::Tx, "as long as the MTU");
        assert_eq!(run(&with(1281 - headers)).0, Verdict::Pass, "one byte more");
    }
    // The probe must come back to the MAC address it was sent from: a route to our own address
    // would end here.
    let mut probe = Frame::request(Ip::V4(super::LINK4, super::LINK4));
    probe.ident = super::PROBE_ID;
    assert_eq!(run(&probe), (Verdict::Tx, probe.reply().bytes()));
    let ledger = program.ledger().unwrap();
    for row in ledger.rows {
        let counters = row.counters;
        assert_eq!((counters.received, counters.answered, counters.passed), (6, 2, 4));
    }
}
