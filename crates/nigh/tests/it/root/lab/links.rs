//! The settings of links, compared with what programs at their ends see.

use super::{LIMIT, TWO_HOSTS, lab};
use serde_json::Value;
use testbed::{Lab, wait_until};

/// Two hosts, and these settings on the link between their routers.
fn with(settings: &str) -> Lab {
    lab(&TWO_HOSTS.replace("delay = \"10ms\"", &format!("delay = \"10ms\"\n{settings}")))
}

/// The link from the first router to the second.
fn link(lab: &Lab) -> Value {
    lab.ask(&["link", "r1>r2"]).unwrap()["after"][0].clone()
}

/// Waits until a host listens on a port.
fn listens(lab: &Lab, words: &[&str], port: &str) {
    let listening = || lab.check("server", words).unwrap().contains(port);
    wait_until("somebody who listens", LIMIT, listening).unwrap();
}

#[test]
fn tcp_carries_most_of_a_links_rate_and_never_more() {
    for rate in [5e6, 50e6] {
        let lab = with(&format!("rate = \"{}Mbit\"", rate / 1e6));
        let _server = lab.spawn("server", &["iperf3", "-s"]).unwrap();
        listens(&lab, &["ss", "-tln"], ":5201");
        let report = lab.check("pc", &["iperf3", "-J", "-c", "server", "-t", "4"]).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert!(report["error"].is_null(), "{report}");
        let received = &report["end"]["sum_received"];
        let carried = received["bits_per_second"].as_f64().unwrap();
        assert!(carried <= rate, "{carried} of {rate}");
        assert!(carried >= rate / 2.0, "{carried} of {rate}");
        // The lab counts headers too.
        let bytes = link(&lab)["bytes"].as_u64().unwrap();
        assert!(bytes > received["bytes"].as_u64().unwrap(), "{bytes}: {received}");
    }
}

/// Sends numbers one by one.
const SENDER: &str = "
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(int(sys.argv[1])):
    s.sendto(n.to_bytes(4, 'big'), ('30.0.0.10', 7000))
    time.sleep(0.0003)
";

/// Prints how many came, and how many of them after a higher one.
const RECEIVER: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(('30.0.0.10', 7000))
came, late, highest = 0, 0, -1
try:
    while True:
        n = int.from_bytes(s.recv(100), 'big')
        s.settimeout(3)
        came += 1
        late += n < highest
        highest = max(n, highest)
except TimeoutError:
    print(came, late)
";

#[test]
fn receivers_miss_what_the_lab_counts_as_lost_and_see_late_packets_as_often_as_set() {
    let lab = with("loss = \"5%\"\nreorder = \"10%,late=60ms\"");
    let mut receiver = lab.spawn("server", &["python3", "-c", RECEIVER]).unwrap();
    listens(&lab, &["ss", "-uln"], ":7000");
    let sent = 3_000;
    lab.check("pc", &["python3", "-c", SENDER, &sent.to_string()]).unwrap();
    wait_until("the receiver's end", LIMIT, || receiver.ended().is_some()).unwrap();
    let printed = receiver.stdout();
    let numbers: Vec<u64> = printed.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [came, late] = numbers[..] else { panic!("{printed}: {}", receiver.stderr()) };
    let link = link(&lab);
    let count = |key: &str| link[key].as_u64().unwrap();
    assert_eq!(count("packets"), sent, "{link}");
    assert_eq!(count("dropped"), sent - came, "{link}");
    let ended = lab.ask(&["status"]).unwrap()["packets"]["ended"]["loss"].as_u64();
    assert_eq!(ended, Some(sent - came));
    // Each within four standard deviations of what was set.
    let near = |seen: u64, of: u64, share: f64| {
        let (seen, of) = (seen as f64, of as f64);
        let spread = 4.0 * (of * share * (1.0 - share)).sqrt();
        assert!((seen - of * share).abs() <= spread, "{seen} of {of} is not {share}");
    };
    near(sent - came, sent, 0.05);
    near(late, came, 0.1);
}
