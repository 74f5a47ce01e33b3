//! Kinds of ports: namespaces and TAP devices that are there already, and interfaces through AF_XDP.

use super::{LIMIT, TWO_HOSTS, binary, lab};
use serde_json::Value;
use testbed::{End, Namespace, link};

#[test]
fn a_namespace_that_is_there_gets_an_interface_and_is_left_alone_at_the_end() {
    let server = Namespace::new("server").unwrap();
    let scene = format!("{TWO_HOSTS}namespace = \"{}\"\ninterface = \"lab0\"\n", server.name());
    let running = lab(&scene);
    // Its routes are its own affair.
    assert!(!server.check(&["ip", "route"]).unwrap().contains("default"));
    server.check(&["ip", "route", "add", "20.0.0.0/24", "via", "30.0.0.1"]).unwrap();
    running.check("pc", &["ping", "-c", "1", "30.0.0.10"]).unwrap();
    running.check("server", &["ping", "-c", "1", "20.0.0.10"]).unwrap();
    drop(running);
    assert!(!server.check(&["ip", "link"]).unwrap().contains("lab0"));
}

#[test]
fn a_tap_device_that_is_there_is_taken_over_and_given_back() {
    let server = Namespace::new("server").unwrap();
    server.check(&["ip", "tuntap", "add", "tap7", "mode", "tap"]).unwrap();
    server.check(&["ip", "address", "add", "30.0.0.10/24", "dev", "tap7"]).unwrap();
    server.check(&["ip", "link", "set", "tap7", "up"]).unwrap();
    server.check(&["ip", "route", "add", "default", "via", "30.0.0.1"]).unwrap();
    let running = lab(&format!("{TWO_HOSTS}namespace = \"{}\"\ntap = \"tap7\"\n", server.name()));
    // The host sends from when it has seen that its device is up.
    testbed::wait_until("an answer", LIMIT, || {
        running.check("pc", &["ping", "-c", "1", "-W", "1", "30.0.0.10"]).is_ok()
    })
    .unwrap();
    drop(running);
    assert!(server.check(&["ip", "link"]).unwrap().contains("tap7"));
}

#[test]
fn a_host_behind_an_interface_is_joined_by_af_xdp() {
    for offloads in [true, false] {
        let (server, edge) = (Namespace::new("server").unwrap(), Namespace::new("edge").unwrap());
        let mut end =
            End::new(&server, "eth0").address("30.0.0.10/24").address("2001:db8:30::10/64");
        if !offloads {
            end = end.no_offloads();
        }
        link(end, End::new(&edge, "out").queues(2)).unwrap();
        for words in [["-4", "30.0.0.1"], ["-6", "2001:db8:30::"]] {
            server.check(&["ip", words[0], "route", "add", "default", "via", words[1]]).unwrap();
        }
        let running = lab(&format!("{TWO_HOSTS}namespace = \"{}\"\nxdp = \"out\"\n", edge.name()));
        for (from, to) in [("20.0.0.10", "30.0.0.10"), ("2001:db8:20::10", "2001:db8:30::10")] {
            // The node learns who is there from what the host sends.
            server.check(&["ping", "-c", "1", from]).unwrap();
            running.check("pc", &["ping", "-c", "2", "-i", "0.1", "-s", "1400", to]).unwrap();
            // Checksums that the neighbour leaves unfinished arrive finished.
            let _server = server.spawn(&["iperf3", "-s", "-1"]).unwrap();
            testbed::wait_until("iperf3", LIMIT, || {
                server.check(&["ss", "-tln"]).unwrap().contains(":5201")
            })
            .unwrap();
            let output = running.check("pc", &["iperf3", "-c", to, "-n", "1M"]).unwrap();
            assert!(output.contains("receiver"), "{output}");
        }
    }
}

#[test]
fn frames_that_an_interface_does_not_take_are_counted_and_nothing_is_lost_count_of() {
    let running = lab(TWO_HOSTS);
    running.check("pc", &["ping", "-c", "1", "30.0.0.10"]).unwrap();
    running.check("server", &["ip", "link", "set", "eth0", "down"]).unwrap();
    let ping = ["ping", "-c", "3", "-i", "0.1", "-W", "1", "30.0.0.10"];
    assert!(!running.run("pc", &ping, LIMIT).unwrap().status.success());
    let status = running.ask(&["status"]).unwrap();
    let packets = &status["packets"];
    assert_eq!(packets["ended"]["host_refused"], 3, "{packets}");
    let sum = |table: &Value| {
        table.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    let number = |key: &str| packets[key].as_u64().unwrap();
    assert_eq!(
        number("received") + sum(&packets["made"]),
        number("sent") + sum(&packets["ended"]) + number("in_flight"),
    );
}

#[test]
fn a_tap_device_that_should_be_there_is_not_made() {
    let server = Namespace::new("server").unwrap();
    let scene = format!("{TWO_HOSTS}namespace = \"{}\"\ntap = \"tap7\"\n", server.name());
    let error = testbed::Lab::start(binary(), &scene).unwrap_err().to_string();
    let advice = format!("make it with `ip -n {} tuntap add tap7 mode tap`", server.name());
    assert!(error.contains(&advice), "{error}");
}
