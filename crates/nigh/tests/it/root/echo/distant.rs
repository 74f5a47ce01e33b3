//! The responder far from those who ask: behind a lab whose link lets packets overtake each other, and is
//! narrower than what they send.

use super::site::{BINARY, NO_LIMIT, SERVICE4, SERVICE6, all, ledger_row, ping, sections};
use std::path::Path;
use testbed::{Lab, Namespace, Nigh};

/// A client in a namespace, and the responder behind a TAP device in another.
fn scene(client: &Namespace, node: &Namespace) -> String {
    format!(
        r#"
        [lab]
        seed = 7
        [[node]]
        name = "near"
        [[node]]
        name = "far"
        [[link]]
        between = ["near", "far"]
        delay = "5ms"
        jitter = "2ms,normal,reorder"
        reorder = "5%,late=5ms"
        mtu = 1280
        [[host]]
        name = "client"
        attach = "near"
        address = ["172.17.0.2/30", "2001:db8:2::2/64"]
        namespace = "{}"
        default_route = true
        [[host]]
        name = "node"
        attach = "far"
        address = ["172.16.0.30/30", "2001:db8:1::30/64", "{SERVICE4}/32", "{SERVICE6}/128"]
        namespace = "{}"
        tap = "eth0"
        "#,
        client.name(),
        node.name(),
    )
}

/// All requests are answered whatever their order, those that fit in a packet by the driver; those that
/// do not come in fragments, cut by the client or on the way, overtaking each other, and the kernel puts
/// them together.
#[test]
fn requests_that_overtake_each_other_in_fragments_are_answered() {
    let (client, node) = (Namespace::new("client").unwrap(), Namespace::new("node").unwrap());
    for line in [
        "ip tuntap add eth0 mode tap",
        "ip address add 172.16.0.30/30 dev eth0",
        "ip address add 2001:db8:1::30/64 dev eth0 nodad",
        "ip link set eth0 up",
    ] {
        node.check(&line.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let lab = Lab::start(Path::new(BINARY), &scene(&client, &node)).unwrap();
    for line in ["ip route add default via 172.16.0.29", "ip route add default via 2001:db8:1::"] {
        node.check(&line.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &sections(NO_LIMIT)).unwrap();
    for (address, family) in [(SERVICE4, "-4"), (SERVICE6, "-6")] {
        // The first has the MAC address and the path's MTU found out.
        ping(&client, &[family, "-c", "3", "-i", "0.2", "-s", "1400", address]);
        for (size, count, whole) in
            [("56", 100, true), ("1200", 100, true), ("1400", 20, false), ("8000", 20, false)]
        {
            let before = ledger_row(&nigh, address);
            let pinged = ping(
                &client,
                &[family, "-c", &count.to_string(), "-i", "0.01", "-s", size, address],
            );
            assert_eq!(pinged, all(count), "{size} bytes to {address}");
            let after = ledger_row(&nigh, address);
            let answered = after.answered - before.answered;
            assert_eq!(answered, if whole { count } else { 0 }, "{size} bytes to {address}");
        }
    }
    let ended = &lab.ask(&["status"]).unwrap()["packets"]["ended"];
    assert!(ended["too_big"].as_u64().is_some_and(|count| count > 0), "{ended}");
}
