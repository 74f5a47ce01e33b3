//! Wires: two interfaces joined directly, between which everything crosses as it is.

use super::{
    LIMIT, TWO_HOSTS, binary, lab,
    programs::times,
    using::{ask, text_of},
};
use testbed::{Lab, Namespace, wait_until};

/// Two namespaces that are there, as those of two routers, with a wire between them.
fn pair(settings: &str) -> (Namespace, Namespace, Lab) {
    let (one, other) = (Namespace::new("one").unwrap(), Namespace::new("other").unwrap());
    let scene = format!(
        r#"
[[wire]]
between = [
  {{ name = "as-1", namespace = "{}", interface = "peer", address = ["172.16.0.1/30", "2001:db8::1/64"] }},
  {{ name = "as-2", namespace = "{}", interface = "peer", address = ["172.16.0.2/30", "2001:db8::2/64"] }},
]
{settings}
"#,
        one.name(),
        other.name()
    );
    let lab = lab(&scene);
    (one, other, lab)
}

#[test]
fn a_ping_crosses_with_its_ttl_and_takes_what_the_wire_takes() {
    let (one, other, mut lab) = pair("delay = \"10ms\"");
    for address in ["172.16.0.2", "2001:db8::2"] {
        // TTL 1 gets there: no router is between. The reply keeps its 64.
        let ping = ["ping", "-n", "-t", "1", "-c", "3", "-i", "0.1", address];
        let output = one.check(&ping).unwrap();
        assert!(output.contains("ttl=64"), "{output}");
        let times = times(&output);
        assert!(times.len() == 3 && times.iter().all(|time| *time >= 20.0), "{output}");
    }
    // Each knows the other by the MAC address that the other has.
    let shown = other.check(&["ip", "link", "show", "peer"]).unwrap();
    let mac = shown.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(one.check(&["ip", "neigh", "show", "172.16.0.2"]).unwrap().contains(mac));

    let shown = text_of(&mut lab, &["link", "as-1-as-2", "set", "delay=40ms"]);
    assert!(shown.contains("as-1>as-2  delay=10ms  ->  delay=40ms"), "{shown}");
    let output = one.check(&["ping", "-n", "-c", "2", "-i", "0.1", "172.16.0.2"]).unwrap();
    assert!(times(&output).iter().all(|time| *time >= 80.0), "{output}");

    let status = ask(&mut lab, &["status"]);
    assert_eq!(status["hosts"][0]["name"], "as-1");
    assert_eq!(status["hosts"][0]["namespace"], one.name());
    assert_eq!(status["touched"][0]["wire"], true);
    assert!(text_of(&mut lab, &["status"]).contains("wire delay=40ms"));
    let links = ask(&mut lab, &["links"]);
    assert_eq!(links["total"], 2);
    assert!(links["links"][0]["packets"].as_u64().unwrap() >= 10, "{links}");
    let node = ask(&mut lab, &["node", "as-1"]);
    assert_eq!(node["addresses"][0], "172.16.0.1");
    // Whoever is at the ends routes, not the lab.
    let output = super::using::nigh(&mut lab, &["path", "as-1", "as-2"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("as-1 is at the end of a wire"), "{printed}");

    text_of(&mut lab, &["link", "as-1-as-2", "set", "up=false"]);
    let ping = ["ping", "-n", "-c", "1", "-W", "1", "172.16.0.2"];
    assert!(!one.run(&ping, LIMIT).unwrap().success());
    drop(lab);
    // Its interfaces are gone, the namespaces are not.
    assert!(!other.check(&["ip", "link"]).unwrap().contains("peer"));
}

#[test]
fn tcp_crosses_and_frames_are_captured_with_their_headers() {
    // Whole, and one by one.
    for settings in ["delay = \"1ms\"", "delay = \"1ms\"\nrate = \"1Gbit\""] {
        let (one, other, mut lab) = pair(settings);
        let pid = lab.process().pid().to_string();
        let file = lab.folder().join("out.pcapng");
        // Several rounds of ARP and ping: the first frames of a new interface are among them.
        let mut command = std::process::Command::new(binary());
        command.args(["lab", "capture", "as-1-as-2", "--lab", &pid, "--count", "16", "-w"]);
        let mut capture = testbed::Process::start({
            command.arg(&file);
            command
        })
        .unwrap();
        wait_until("the capture's end", LIMIT, || {
            // What was known of the neighbour is forgotten, so that there is ARP to see.
            one.check(&["ip", "neigh", "flush", "all"]).unwrap();
            one.check(&["ping", "-n", "-c", "1", "172.16.0.2"]).unwrap();
            capture.ended().is_some()
        })
        .unwrap();
        let read = std::process::Command::new("tcpdump").args(["-enr"]).arg(&file).output();
        let text = String::from_utf8(read.unwrap().stdout).unwrap();
        assert!(text.contains("ethertype ARP") && text.contains("Request who-has"), "{text}");

        let _server = other.spawn(&["iperf3", "-s", "-1"]).unwrap();
        wait_until("iperf3", LIMIT, || other.check(&["ss", "-tln"]).unwrap().contains(":5201"))
            .unwrap();
        let output = one.check(&["iperf3", "-c", "172.16.0.2", "-n", "10M"]).unwrap();
        assert!(output.contains("receiver"), "{output}");
    }
}

/// Three systems in a row, of which the one in the middle is a router; one of them is a host of the
/// simulated network as well.
#[test]
fn the_lab_makes_what_wires_are_plugged_into() {
    let wires = r#"
[[wire]]
between = [
  { name = "pc", interface = "eth1", address = "192.168.1.2/24" },
  { name = "router", interface = "west", address = "192.168.1.1/24" },
]
delay = "5ms"

[[wire]]
between = [
  { name = "router", interface = "east", address = "192.168.2.1/24" },
  { name = "far", address = "192.168.2.2/24" },
]

[[event]]
at = "1s"
link = "router-far"
set = { delay = "50ms" }
"#;
    let lab = lab(&format!("{TWO_HOSTS}{wires}"));
    lab.check("router", &["sysctl", "-w", "net.ipv4.ip_forward=1"]).unwrap();
    lab.check("pc", &["ip", "route", "add", "192.168.2.0/24", "via", "192.168.1.1"]).unwrap();
    lab.check("far", &["ip", "route", "add", "192.168.1.0/24", "via", "192.168.2.1"]).unwrap();
    // Through the router with its own TTL, by names that all know; and through the simulated network.
    let output = lab.check("pc", &["ping", "-n", "-c", "1", "far"]).unwrap();
    assert!(output.contains("ttl=63"), "{output}");
    lab.check("pc", &["ping", "-n", "-c", "1", "server"]).unwrap();
    wait_until("the event", LIMIT, || {
        let output = lab.check("pc", &["ping", "-n", "-c", "1", "192.168.2.2"]).unwrap();
        times(&output).iter().all(|time| *time >= 110.0)
    })
    .unwrap();
    let names = ["pc", "router", "far"].map(|name| lab.namespace(name));
    drop(lab);
    for name in names {
        assert!(!std::path::Path::new("/run/netns").join(&name).exists(), "{name}");
    }
}

/// TAP devices that are there, and interfaces behind which the systems are.
#[test]
fn ends_are_taps_and_interfaces_as_well() {
    let (one, other) = (Namespace::new("one").unwrap(), Namespace::new("other").unwrap());
    let edge = Namespace::new("edge").unwrap();
    one.check(&["ip", "tuntap", "add", "tap7", "mode", "tap"]).unwrap();
    one.check(&["ip", "address", "add", "172.16.0.1/30", "dev", "tap7"]).unwrap();
    one.check(&["ip", "link", "set", "tap7", "up"]).unwrap();
    let end = testbed::End::new(&other, "eth0").address("172.16.0.2/30");
    testbed::link(end, testbed::End::new(&edge, "out")).unwrap();
    let running = lab(&format!(
        r#"
[[wire]]
between = [
  {{ name = "a", namespace = "{}", tap = "tap7" }},
  {{ name = "b", namespace = "{}", xdp = "out" }},
]
delay = "10ms"
"#,
        one.name(),
        edge.name()
    ));
    let output = one.check(&["ping", "-n", "-c", "2", "-t", "1", "172.16.0.2"]).unwrap();
    assert!(times(&output).iter().all(|time| *time >= 20.0), "{output}");
    let _server = other.spawn(&["iperf3", "-s", "-1"]).unwrap();
    wait_until("iperf3", LIMIT, || other.check(&["ss", "-tln"]).unwrap().contains(":5201"))
        .unwrap();
    let output = one.check(&["iperf3", "-c", "172.16.0.2", "-n", "1M"]).unwrap();
    assert!(output.contains("receiver"), "{output}");
    drop(running);
}

#[test]
fn mistakes_in_wires_are_reported_with_their_position() {
    let wire =
        |one: &str, other: &str| format!("[[wire]]\nbetween = [{{ {one} }}, {{ {other} }}]\n");
    for (scene, printed) in [
        (wire("name = \"a\"", ""), "wire[0].between[1].name: say what the wire is plugged into"),
        (wire("name = \"a\"", "name = \"a\""), "a wire joins two systems"),
        (wire("name = \"a\"", "name = \"b/c\""), "cannot name a namespace"),
        (wire("name = \"a\"", "name = \"b\", mtu = 9000"), "unknown key"),
        (wire("name = \"a\"", "name = \"b\", address = \"10.0.0.1/33\""), "between[1].address"),
        (wire("name = \"a\"", "name = \"b\"") + "delya = \"1ms\"\n", "no setting `delya`"),
        (
            wire("name = \"a\"", "name = \"b\"") + &wire("name = \"a\"", "name = \"c\""),
            "wire[1].between[0].interface: a has an interface eth0 already",
        ),
        (
            wire("name = \"a\"", "name = \"b\"")
                + &wire("name = \"a\", namespace = \"x\"", "name = \"c\""),
            "a is in another namespace elsewhere",
        ),
        (format!("{TWO_HOSTS}{}", wire("name = \"r1\"", "name = \"b\"")), "r1 is a simulated node"),
        (
            format!(
                "{}{}",
                TWO_HOSTS.replace("attach = \"r2\"", "attach = \"b\""),
                wire("name = \"a\"", "name = \"b\"")
            ),
            "host[1].attach: there is no node b",
        ),
        (
            "[lab]\nnetwork = \"x.nigh\"\n".to_owned() + &wire("name = \"a\"", "name = \"b\""),
            "wires need a network that is written in the scene, or no network",
        ),
    ] {
        let text = super::scenes::complaint(&scene);
        assert!(text.contains(printed), "{scene}\n{text}");
    }
}
