//! A BGP neighbour that is far away, through a lab.

use super::site::{BINARY, LIMIT, SERVICE4, SERVICE6, is_same_session, upstream};
use std::path::Path;
use testbed::{
    Bird, Lab, Namespace, Nigh,
    lab::{host, row},
    wait_until,
};

/// The neighbour's and the node's address.
const NEIGHBOUR: &str = "192.0.2.2";
const NODE: &str = "198.18.0.2";

/// The session comes up and stays up though packets get lost. When the link is cut in the middle, no
/// interface shows it: the hold time ends the session at both ends, and it comes back with the link.
#[test]
fn a_session_outlives_loss_and_ends_by_its_hold_time_when_the_way_is_cut() {
    let (neighbour, node) = (Namespace::new("neighbour").unwrap(), Namespace::new("node").unwrap());
    let route = "default_route = true";
    let hosts = [
        host("node", &node, &[&format!("{NODE}/24")], route),
        host("neighbour", &neighbour, &[&format!("{NEIGHBOUR}/24")], route),
    ];
    // Two routers between them, 50 ms each way, and packets that get lost.
    let scene = row(["", ""], ["delay = \"50ms\"\nloss = \"5%\""], hosts);
    let scene = format!("[lab]\nconvergence = \"0ms\"\n{scene}");
    let lab = Lab::start(Path::new(BINARY), &scene).unwrap();
    let bird = Bird::start(
        &neighbour,
        &format!(
            "router id {NEIGHBOUR};\nprotocol device {{}}\n\
             protocol bgp node {{ local {NEIGHBOUR} as 4; neighbor {NODE} as 12; multihop; \
             hold time 3; connect delay time 1; connect retry time 1; error wait time 1, 2; \
             ipv4 {{ import all; export none; }}; ipv6 {{ import all; export none; }}; }}\n"
        ),
    )
    .unwrap();
    let sections = format!(
        "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"{SERVICE4}\", \"{SERVICE6}\"]\n\
         [anycast]\nprefixes = [\"50.0.0.0/8\", \"2001:db8:50::/48\"]\n\
         [anycast.health]\nprobe = \"program\"\n\
         [[anycast.upstream]]\nname = \"isp\"\ntype = \"bgp\"\npeer = \"{NEIGHBOUR}\"\n\
         peer_as = 4\nlocal_as = 12\nnext_hop6 = \"2001:db8:50::1\"\nhold_time = \"3s\"\n"
    );
    let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &sections).unwrap();
    let has_routes = |there: bool| {
        ["50.0.0.0/8", "2001:db8:50::/48"].iter().all(|prefix| {
            let answer = bird.query(&format!("show route {prefix} all"));
            answer.is_ok_and(|answer| answer.contains(prefix)) == there
        })
    };
    wait_until("the routes", LIMIT, || has_routes(true)).unwrap();
    let before = bird.query("show protocols node").unwrap();
    // Four packets a second: a keepalive and its acknowledgement each way.
    let packets = || lab.ask(&["status"]).unwrap()["packets"]["received"].as_u64().unwrap();
    let some = packets() + 16;
    wait_until("as many packets as a hold time has", LIMIT, || packets() >= some).unwrap();
    let now = bird.query("show protocols node").unwrap();
    assert!(is_same_session(&before, &now), "{before}{now}");
    let session = || upstream(&nigh)["session"].as_str().unwrap_or_default().to_owned();
    assert_eq!(session(), "Established", "{}", upstream(&nigh));

    lab.ask(&["link", "r1-r2", "set", "up=false"]).unwrap();
    assert!(bird.established("node"), "nothing has shown it yet");
    wait_until("its hold time", LIMIT, || !bird.established("node")).unwrap();
    let text = bird.query("show protocols all node").unwrap();
    assert!(text.contains("Hold timer expired"), "{text}");
    wait_until("the loss of the routes", LIMIT, || has_routes(false)).unwrap();
    wait_until("our hold time", LIMIT, || session() != "Established").unwrap();

    lab.ask(&["link", "r1-r2", "set", "up=true"]).unwrap();
    wait_until("the routes again", LIMIT, || has_routes(true)).unwrap();
}
