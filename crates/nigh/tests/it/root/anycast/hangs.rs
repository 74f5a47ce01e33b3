//! A daemon that stands still, with BFD.

use super::site::{BINARY, LIMIT, upstream};
use nix::sys::signal::Signal;
use std::path::Path;
use testbed::{Bird, End, Namespace, Nigh, link, wait_until};

/// The kernel keeps the connection of a stopped process open, and the hold time is an hour: only BFD tells the
/// neighbour.
#[test]
fn a_daemon_that_hangs_loses_its_routes_and_gets_them_back() {
    let (node, router) = (Namespace::new("node").unwrap(), Namespace::new("router").unwrap());
    link(
        End::new(&node, "eth0").address("172.16.0.2/30"),
        End::new(&router, "eth0").address("172.16.0.1/30"),
    )
    .unwrap();
    node.check(&["ip", "route", "add", "default", "via", "172.16.0.1"]).unwrap();
    let bird = Bird::start(
        &router,
        "router id 172.16.0.1;\nprotocol device {}\n\
         protocol bfd { interface \"eth0\" { interval 300 ms; multiplier 3; }; }\n\
         protocol bgp node { local 172.16.0.1 as 4; neighbor 172.16.0.2 as 12; bfd on; \
         hold time 3600; error wait time 1, 2; ipv4 { import all; export none; }; }\n",
    )
    .unwrap();
    let sections = "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"50.0.0.1\"]\n\
         [anycast]\nprefixes = [\"50.0.0.0/8\"]\n[anycast.health]\nprobe = \"program\"\n\
         [[anycast.upstream]]\nname = \"isp\"\ntype = \"bgp\"\npeer = \"172.16.0.1\"\npeer_as = 4\n\
         local_as = 12\nhold_time = \"1h\"\nbfd = {}\n";
    let mut nigh = Nigh::start(&node, Path::new(BINARY), "node-a", sections).unwrap();
    let routed = |there: bool| {
        let routed = || bird.query("show route 50.0.0.0/8").is_ok_and(|it| it.contains("50.0.0.0"));
        wait_until(&format!("the route to be there: {there}"), LIMIT, || routed() == there)
            .unwrap();
    };
    routed(true);
    wait_until("BFD", LIMIT, || upstream(&nigh)["bfd"]["state"] == "Up").unwrap();
    nigh.process().signal(Signal::SIGSTOP).unwrap();
    routed(false);
    nigh.process().signal(Signal::SIGCONT).unwrap();
    routed(true);
    wait_until("BFD again", LIMIT, || upstream(&nigh)["bfd"]["state"] == "Up").unwrap();
    assert!(upstream(&nigh)["bfd"]["failures"].as_u64() >= Some(1), "{:#}", upstream(&nigh));
}
