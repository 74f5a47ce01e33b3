//! The responder far from those who ask: behind a lab whose link lets packets overtake each other, and is
//! narrower than what they send.

use super::site::{BINARY, NO_LIMIT, SERVICE4, SERVICE6, all, ledger_row, ping, sections};
use std::path::Path;
use testbed::{
    Lab, Namespace, Nigh,
    lab::{host, row},
};

/// A link whose packets overtake each other.
const LINK: &str = r#"
delay = "5ms"
jitter = "2ms,normal,reorder"
reorder = "5%,late=5ms"
mtu = 1280
"#;

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
    let (four, six) = (format!("{SERVICE4}/32"), format!("{SERVICE6}/128"));
    let addresses = ["172.16.0.30/30", "2001:db8:1::30/64", &four, &six];
    let hosts = [
        host("client", &client, &["172.17.0.2/30", "2001:db8:2::2/64"], "default_route = true"),
        host("node", &node, &addresses, "tap = \"eth0\""),
    ];
    let lab = Lab::start(Path::new(BINARY), &row(["", ""], [LINK], hosts)).unwrap();
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
