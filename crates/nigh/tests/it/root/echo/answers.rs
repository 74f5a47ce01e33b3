//! Real programs get their answers, in every mode.

use super::site::{BINARY, LIMIT, NO_LIMIT, SERVICE4, SERVICE6, Site, all, ping, row, sections};
use datapath::probe_socket::{Family, ProbeSocket};
use serde_json::json;
use std::path::Path;
use testbed::{Nigh, wait_until};
use wire::{Identifier, Mac, echo_frame::EchoFrame, ethernet::VlanTag};

#[test]
fn ping_of_any_size_is_answered() {
    let site = Site::start(NO_LIMIT);
    assert_eq!(site.status()["interfaces"][0]["mode"], "native");
    for (address, family) in [(SERVICE4, "-4"), (SERVICE6, "-6")] {
        for (size, whole) in [("56", true), ("1400", true), ("4000", false), ("30000", false)] {
            let before = site.row(address);
            let pinged = site.ping(&[family, "-c", "5", "-i", "0.05", "-s", size, address]);
            assert_eq!(pinged, all(5), "{size} bytes to {address}");
            let after = site.row(address);
            let answered = after.answered - before.answered;
            let passed = after.passed - before.passed;
            // What does not fit in one packet the kernel puts together and answers.
            assert_eq!(answered, if whole { 5 } else { 0 }, "{size} bytes to {address}");
            assert_eq!(passed == 0, whole, "{size} bytes to {address}: {passed} passed");
        }
        let reply = site.client.check(&["ping", "-n", "-c", "1", family, address]).unwrap();
        assert!(reply.contains("ttl=63"), "64 less one router: {reply}");
    }
}

#[test]
fn traceroute_and_fping_are_answered() {
    let site = Site::start(NO_LIMIT);
    let hops =
        site.client.check(&["traceroute", "-I", "-n", "-q", "1", "-w", "20", SERVICE4]).unwrap();
    let hops: Vec<_> =
        hops.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(hops, ["172.17.0.1", SERVICE4]);
    let hops = site
        .client
        .check(&["traceroute", "-6", "-I", "-n", "-q", "1", "-w", "20", SERVICE6])
        .unwrap();
    assert!(hops.lines().last().unwrap().contains(SERVICE6), "{hops}");
    for address in [SERVICE4, SERVICE6] {
        let line = ["fping", "-q", "-c", "100", "-p", "5", address];
        let finished = site.client.run(&line, LIMIT).unwrap();
        let printed = format!("{}{}", finished.stdout, finished.stderr);
        assert!(printed.contains("100/100/0%"), "{printed}");
    }
}

#[test]
fn the_kernel_is_left_what_is_not_ours() {
    let site = Site::start(NO_LIMIT);
    // The node's own address, whose neighbour discovery and ARP also pass the program.
    for address in ["172.16.0.30", "2001:db8:1::30"] {
        assert_eq!(site.ping(&["-c", "3", "-i", "0.05", address]), all(3));
    }
    assert_eq!((site.row(SERVICE4).received, site.row(SERVICE6).received), (0, 0));
}

#[test]
fn generic_mode_answers_too() {
    let site = Site::start(&format!("mode = \"generic\"\n{NO_LIMIT}"));
    assert_eq!(site.status()["interfaces"][0]["mode"], "generic");
    for address in [SERVICE4, SERVICE6] {
        assert_eq!(site.ping(&["-c", "20", "-i", "0.02", "-s", "1400", address]), all(20));
        assert_eq!(site.row(address).answered, 20);
    }
}

#[test]
fn a_driver_without_xdp_gets_generic_mode_by_itself() {
    let (client, _router, node, _receiver) = row();
    // A bridge has no native XDP; the node's addresses move to it.
    for line in [
        "ip link add br0 type bridge",
        "ip link set br0 address 02:00:00:00:00:30",
        "ip address flush dev eth0",
        "ip -6 route delete default",
        "ip link set eth0 master br0",
        "ip link set br0 up",
        "ip address add 172.16.0.30/30 dev br0",
        "ip address add 2001:db8:1::30/64 dev br0 nodad",
        "ip route add default via 172.16.0.29",
        "ip route add default via 2001:db8:1::29",
    ] {
        node.check(&line.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let text = sections(NO_LIMIT).replace("eth0", "br0");
    let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &text).unwrap();
    let status = nigh.control(&json!({"do": "status"})).unwrap()["echo"].clone();
    assert_eq!(status["interfaces"][0]["mode"], "generic");
    let why = status["interfaces"][0]["why"].as_str().unwrap();
    assert!(why.contains("native"), "{why}");
    for (i, address) in [SERVICE4, SERVICE6].into_iter().enumerate() {
        wait_until("an answer", LIMIT, || ping(&client, &["-c", "1", address]) == all(1)).unwrap();
        assert_eq!(ping(&client, &["-c", "10", "-i", "0.02", address]), all(10));
        let ledger = nigh.control(&json!({"do": "echo", "request": {"do": "ledger"}})).unwrap();
        assert!(ledger["rows"][i]["answered"].as_u64().unwrap() >= 11, "{ledger}");
    }
}

#[test]
fn answers_follow_the_routing_table_when_configured() {
    let site = Site::start(&format!("return = \"fib\"\n{NO_LIMIT}"));
    // Without forwarding on the interface the kernel refuses to look up, and answers itself.
    assert_eq!(site.ping(&["-c", "3", "-i", "0.02", SERVICE4]), all(3));
    assert_eq!(site.row(SERVICE4).passed, 3);
    site.node.forward().unwrap();
    for address in [SERVICE4, SERVICE6] {
        // The first may wait for the neighbour table, which the kernel then fills.
        site.ping(&["-c", "1", address]);
        let before = site.row(address);
        assert_eq!(site.ping(&["-c", "20", "-i", "0.02", address]), all(20));
        assert_eq!(site.row(address).answered - before.answered, 20);
    }
}

#[test]
fn without_a_program_the_kernel_answers_and_nothing_is_invented() {
    let site = Site::start("mode = \"kernel\"\n");
    let status = site.status();
    assert_eq!(status["interfaces"][0]["mode"], "kernel");
    assert_eq!(status["ledger"]["counted"], false);
    assert_eq!(status["ledger"]["rows"].as_array().unwrap().len(), 0);
    for address in [SERVICE4, SERVICE6] {
        assert_eq!(site.ping(&["-c", "3", "-i", "0.05", address]), all(3));
    }
    let ledger = site.ask(&["echo", "ledger"]);
    assert!(ledger.success() && ledger.stdout.contains("the kernel itself answers"));
    assert!(!site.ask(&["echo", "limit", "--rate", "5"]).success());
    let metrics = site.nigh.http(&site.node, "/metrics").unwrap().1;
    assert!(!metrics.contains("nigh_echo_received"), "counters without a counter");
    assert!(metrics.contains("nigh_echo_interface{interface=\"eth0\",mode=\"kernel\"} 1"));
}

#[test]
fn tagged_frames_are_answered_with_their_tags() {
    let site = Site::start(NO_LIMIT);
    let mac = |namespace: &testbed::Namespace| -> (u32, Mac) {
        let text = namespace.check(&["ip", "-j", "link", "show", "dev", "eth0"]).unwrap();
        let links: serde_json::Value = serde_json::from_str(&text).unwrap();
        let index = links[0]["ifindex"].as_u64().unwrap().try_into().unwrap();
        (index, links[0]["address"].as_str().unwrap().parse().unwrap())
    };
    let ((index, source_mac), (_, destination_mac)) = (mac(&site.router), mac(&site.node));
    let socket = site.router.enter(|| ProbeSocket::open(index, Family::V4, 7)).unwrap();
    for (tags, shown) in [
        (vec![VlanTag::customer(100)], vec!["vlan 100,"]),
        (vec![VlanTag::service(200), VlanTag::customer(300)], vec!["vlan 200,", "vlan 300,"]),
    ] {
        let dump =
            site.router.spawn(&["tcpdump", "-lnne", "-i", "eth0", "-Q", "in", "vlan"]).unwrap();
        wait_until("tcpdump", LIMIT, || dump.stderr().contains("listening")).unwrap();
        let frame = EchoFrame {
            source_mac,
            destination_mac,
            tags,
            identifier: Identifier(7),
            ..EchoFrame::request("172.16.0.29".parse().unwrap(), SERVICE4.parse().unwrap())
        };
        let before = site.row(SERVICE4).answered;
        socket.send(&frame.to_bytes().unwrap()).unwrap();
        wait_until("the reply", LIMIT, || dump.stdout().contains("echo reply")).unwrap();
        let line = dump.stdout();
        for tag in shown {
            assert!(line.contains(tag), "{tag} is not in {line}");
        }
        assert_eq!(site.row(SERVICE4).answered - before, 1);
    }
}
