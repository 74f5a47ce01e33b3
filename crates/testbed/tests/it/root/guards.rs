//! The guards themselves: what they make is there, and nothing of it is left when they go.

use std::time::{Duration, Instant};
use testbed::{Bird, End, Frr, Namespace, link, wait_until};

fn pair() -> (Namespace, Namespace) {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    link(
        End::new(&left, "eth0")
            .mac("02:00:00:00:00:01")
            .address("192.0.2.1/30")
            .address("2001:db8::1/64"),
        End::new(&right, "eth0")
            .mac("02:00:00:00:00:02")
            .address("192.0.2.2/30")
            .address("2001:db8::2/64")
            .no_offloads(),
    )
    .unwrap();
    (left, right)
}

fn exists(name: &str) -> bool {
    std::path::Path::new("/run/netns").join(name).exists()
}

#[test]
fn a_link_carries_both_families_at_once() {
    let (left, _right) = pair();
    left.check(&["ping", "-c", "1", "-W", "20", "192.0.2.2"]).unwrap();
    left.check(&["ping", "-6", "-c", "1", "-W", "20", "2001:db8::2"]).unwrap();
    let shown = left.check(&["ip", "link", "show", "eth0"]).unwrap();
    assert!(shown.contains("02:00:00:00:00:01") && shown.contains("mtu 1500"), "{shown}");
}

#[test]
fn a_namespace_takes_everything_along_when_the_test_panics() {
    let (sent, seen) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let namespace = Namespace::new("doomed").unwrap();
        // Not held by a guard: only the namespace knows of it.
        let stray =
            namespace.enter(|| std::process::Command::new("sleep").arg("1000").spawn().unwrap());
        let process = namespace.spawn(&["sleep", "1000"]).unwrap();
        sent.send((namespace.name().to_owned(), process.pid(), stray)).unwrap();
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    let (name, pid, mut stray) = seen.recv().unwrap();
    assert!(!exists(&name));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(!stray.wait().unwrap().success(), "the stray process was killed");
}

#[test]
fn namespaces_of_dead_processes_are_removed() {
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let dead = gone.id();
    gone.wait().unwrap();
    let host = Namespace::new("host").unwrap();
    let name = format!("nigh.{dead}.0.left-behind");
    host.check(&["ip", "netns", "add", &name]).unwrap();
    testbed::namespace::remove_stale();
    assert!(!exists(&name));
    assert!(exists(host.name()), "a living process's namespace stays");
}

#[test]
fn a_program_that_takes_too_long_is_killed() {
    let namespace = Namespace::new("slow").unwrap();
    let begin = Instant::now();
    let error = namespace.run(&["sleep", "1000"], Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("sleep 1000"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(namespace.pids().is_empty());
}

#[test]
fn output_of_a_running_program_can_be_read() {
    let namespace = Namespace::new("talk").unwrap();
    let process = namespace.spawn(&["sh", "-c", "echo out; echo err >&2; sleep 1000"]).unwrap();
    wait_until("both lines", Duration::from_secs(5), || {
        process.stdout() == "out\n" && process.stderr() == "err\n"
    })
    .unwrap();
}

#[test]
fn bird_and_frr_speak_bgp_with_each_other() {
    let (left, right) = pair();
    let bird = Bird::start(
        &left,
        "router id 192.0.2.1;\nprotocol device {}\n\
         protocol static own { ipv4; route 198.51.100.0/24 blackhole; }\n\
         protocol bgp peer { local 192.0.2.1 as 64501; neighbor 192.0.2.2 as 64502; \
         connect delay time 0; ipv4 { import all; export all; }; }\n",
    )
    .unwrap();
    let frr = Frr::start(
        &right,
        "router bgp 64502\n bgp router-id 192.0.2.2\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n neighbor 192.0.2.1 remote-as 64501\n \
         address-family ipv4 unicast\n  network 203.0.113.0/24\n exit-address-family\n",
    )
    .unwrap();
    let limit = Duration::from_secs(20);
    wait_until("the session", limit, || bird.established("peer")).unwrap();
    wait_until("FRR's route at BIRD", limit, || {
        bird.query("show route").is_ok_and(|answer| answer.contains("203.0.113.0/24"))
    })
    .unwrap();
    wait_until("BIRD's route at FRR", limit, || {
        frr.query("show bgp ipv4 unicast json").is_ok_and(|json| json.contains("198.51.100.0/24"))
    })
    .unwrap();
    assert!(bird.query("no such command").is_err());
}

#[test]
fn bird_says_why_it_does_not_start() {
    let namespace = Namespace::new("wrong").unwrap();
    let error = Bird::start(&namespace, "nonsense;").unwrap_err();
    assert!(error.to_string().contains("syntax error"), "{error}");
}
