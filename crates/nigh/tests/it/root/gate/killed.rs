//! The daemon is stopped or killed while traffic goes through: nothing of a decided flow is lost, what is refused stays
//! refused, and the next daemon takes over what the kernel has.

use super::{
    site::{EXTERNAL, LIMIT, Site, count},
    talk::{self, Pings},
    web::{WEB, Web},
};
use nix::sys::signal::Signal;
use std::{
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};
use testbed::{Namespace, Process, clients::noise, wait_until};

/// The banner of an SSH server, on port 22.
const SECTIONS: &str = "refuse_for = \"1h\"\nhold = true\n[[gate.rule]]\nname = \"no-shell\"\n\
                        application = [\"ssh\"]\naction = \"deny\"\n";

#[test]
fn a_transfer_outlives_the_daemon_and_a_refusal_does_too() {
    let mut site = Site::start(SECTIONS);
    let shell = (EXTERNAL, 22);
    let _server = talk::greet(&site.external, shell, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
    // The first attempt is classified, the others end at their first packet.
    let connect = || site.internal.enter(|| TcpStream::connect(shell));
    drop(connect());
    site.wait("a refusal", |status| count(&status["refused"], "ssh") >= 1);
    wait_until("a refusal at the first packet", LIMIT, || connect().is_err()).unwrap();

    let web = Web::start(&site);
    let content = noise(5, 60_000_000);
    web.offer("large.bin", &content);
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fetched.bin");
    let url = "http://10.62.0.2:8080/length/large.bin";
    // Slow enough to be killed in the middle.
    let words = ["curl", "-s", "-S", "--limit-rate", "8M", "-o", to.to_str().unwrap(), url];
    let transfer = site.internal.spawn(&words).unwrap();
    let length = || std::fs::metadata(&to).map_or(0, |file| file.len());
    let pings = Pings::start(&site.internal, &site.external, EXTERNAL);
    wait_until("the first megabytes", LIMIT, || length() > 4_000_000).unwrap();
    // The transfer, and the pings, which nobody can name.
    site.wait("both decided", |status| {
        count(&status["classified"], "http") >= 1 && count(&status["classified"], "unknown") >= 1
    });
    site.nigh.process().kill();
    let before = pings.answered();
    assert!(length() < 60_000_000, "the transfer was over before the daemon was killed");
    let still = connect();
    assert!(still.is_err(), "the refusal is forgotten: {still:?}");
    wait_until("pings without a daemon", LIMIT, || pings.answered() > before + 200).unwrap();

    // A daemon that finds what the killed one has left goes on with it.
    site.restart(SECTIONS);
    let status = site.wait("the next daemon", |status| status["healthy"] == true);
    assert_eq!(status["taken_over"], true, "{status:#}");
    let greeting = site.internal.enter(|| talk::greeting(shell));
    assert!(greeting.is_empty(), "the rule is forgotten: {greeting:?}");
    let before = pings.answered();
    wait_until("pings with the next", LIMIT, || pings.answered() > before + 200).unwrap();
    let done = transfer.finish(LIMIT).unwrap();
    assert!(done.success(), "{}", done.stderr);
    assert!(std::fs::read(&to).unwrap() == content);
    // Each waited for the answer to the one before it, and none was sent twice.
    assert_eq!(pings.stop(), 0, "packets were lost");
    let flows = site.flows("unknown");
    assert!(flows.iter().any(|row| row["verdict"] == "pass"), "{flows:#?}");
}

#[test]
fn without_the_daemon_new_flows_are_refused_where_that_is_asked() {
    let sections = "on_failure = \"drop\"\n";
    let mut site = Site::start(sections);
    let web = Web::start(&site);
    web.offer("page", b"a page");
    let page = |site: &Site| web.fetch(site, "length", "page").is_some();
    assert!(page(&site), "{}", site.state());
    let pings = Pings::start(&site.internal, &site.external, EXTERNAL);
    site.wait("the decided pings", |status| count(&status["classified"], "unknown") >= 1);
    site.nigh.process().kill();
    // The kernel notices after two seconds.
    let connect = || {
        let connected = TcpStream::connect_timeout(&WEB.parse().unwrap(), Duration::from_secs(1));
        connected.is_ok()
    };
    wait_until("a refused flow", LIMIT, || !site.internal.enter(connect)).unwrap();
    let before = pings.answered();
    wait_until("pings without a daemon", LIMIT, || pings.answered() > before + 200).unwrap();
    assert!(!site.internal.enter(connect), "a new flow passed");

    site.restart(sections);
    let status = site.wait("the next daemon", |status| status["healthy"] == true);
    assert_eq!(status["taken_over"], true, "{status:#}");
    assert!(page(&site), "{}", site.state());
    assert_eq!(pings.stop(), 0, "packets were lost");
}

/// A limit far below what the link carries.
const LIMITED: &str = "hold = true\n[[gate.limit]]\nname = \"slow\"\nto_internal = \"24mbit\"\n\
                       [[gate.rule]]\nname = \"slow-web\"\napplication = [\"http\"]\n\
                       action = \"limit\"\nlimit = \"slow\"\n";

/// Has the daemon end as an operator or an upgrade does.
fn stop(site: &mut Site) {
    site.nigh.process().signal(Signal::SIGTERM).unwrap();
    wait_until("the end", LIMIT, || site.nigh.process().ended().is_some()).unwrap();
    assert!(site.nigh.process().ended().unwrap().success(), "{}", site.nigh.wrote());
}

/// What is left of a gate in the kernel: pins, HTB on the interface, the device of queues.
fn left(site: &Site) -> [bool; 3] {
    let pinned = site.gate.enter(datapath::gate::home).unwrap().join("gate_decided").exists();
    let qdiscs = site.gate.check(&["tc", "qdisc", "show", "dev", "lan0"]).unwrap();
    let links = site.gate.check(&["ip", "link", "show"]).unwrap();
    [pinned, qdiscs.contains("htb"), links.contains("nigh-ifb")]
}

#[test]
fn a_limited_flow_keeps_its_rate_over_a_stop_and_a_start() {
    let mut site = Site::start(LIMITED);
    let web = Web::start(&site);
    web.offer("large.bin", &noise(6, 400_000_000));
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("fetched.bin");
    let url = "http://10.62.0.2:8080/length/large.bin";
    let words = ["curl", "-s", "-S", "-o", to.to_str().unwrap(), url];
    let mut transfer = site.internal.spawn(&words).unwrap();
    let length = || std::fs::metadata(&to).map_or(0, |file| file.len());
    // Three megabytes a second, and half as much again for what bursts and the file's own buffers add. The
    // link carries a hundred times as much.
    let keeps = |what: &str| {
        let (begin, from) = (Instant::now(), length());
        wait_until(what, LIMIT, || length() > from + 6_000_000).unwrap();
        let rate = (length() - from) as f64 / begin.elapsed().as_secs_f64();
        assert!(rate < 4_500_000.0, "{what}: {rate} bytes a second");
    };
    site.wait("the limit", |status| count(&status["limits"][0], "bytes_to_internal") > 2_000_000);
    keeps("before the stop");
    stop(&mut site);
    assert_eq!(left(&site), [true; 3]);
    keeps("without a daemon");
    site.restart(LIMITED);
    let status = site.wait("the next daemon", |status| status["healthy"] == true);
    assert_eq!(status["taken_over"], true, "{status:#}");
    keeps("with the next");
    let status = site.wait("its counters", |status| {
        count(&status["limits"][0], "bytes_to_internal") > 2_000_000
    });
    assert_eq!(site.flows("http")[0]["verdict"], "limit", "{status:#}");

    let detach = || {
        let words = [env!("CARGO_BIN_EXE_nigh"), "gate", "detach"];
        site.gate.run(&words, LIMIT).unwrap()
    };
    let refused = detach();
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("another process runs a gate"), "{}", refused.stderr);
    keeps("after a refusal");
    transfer.kill();
}

#[test]
fn a_gate_that_a_stop_left_is_taken_off_on_request_and_by_a_start_without_it() {
    let mut site = Site::start(LIMITED);
    let web = Web::start(&site);
    web.offer("page", b"a page");
    assert!(web.fetch(&site, "length", "page").is_some(), "{}", site.state());
    stop(&mut site);
    assert_eq!(left(&site), [true; 3]);
    let detach = |site: &Site| {
        let words = [env!("CARGO_BIN_EXE_nigh"), "gate", "detach"];
        let done = site.gate.run(&words, LIMIT).unwrap();
        assert!(done.success(), "{}", done.stderr);
        done.stdout
    };
    assert_eq!(detach(&site), "the gate is off\n");
    assert_eq!(left(&site), [false; 3]);
    assert_eq!(detach(&site), "no gate was in force\n");
    assert!(web.fetch(&site, "length", "page").is_some());

    site.restart(LIMITED);
    site.wait("the next daemon", |status| status["healthy"] == true);
    stop(&mut site);
    assert_eq!(left(&site), [true; 3]);
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_nigh"));
    let other = "[probe]\n";
    site.nigh.restart(&site.gate, binary, "gate", other).unwrap();
    assert_eq!(left(&site), [false; 3], "{}", site.nigh.wrote());
}

/// `ip netns exec` gives a command a /sys of its own, as a machine without systemd has it.
#[test]
fn a_gate_starts_where_no_bpf_file_system_is_mounted() {
    let namespace = Namespace::new("gate").unwrap();
    let words = ["ip", "link", "add", "lan0", "type", "veth", "peer", "name", "lan1"];
    namespace.check(&words).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [config, state, control] =
        ["nigh.toml", "state", "control"].map(|name| folder.path().join(name));
    let text = format!(
        "[node]\nname = \"gate\"\nstate = {state:?}\ncontrol = {control:?}\n\
         [gate]\ninternal = [\"lan0\"]\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace.name(), env!("CARGO_BIN_EXE_nigh"), "run"]);
    command.args(["--user", "root", "-c"]);
    command.arg(&config);
    let mut daemon = Process::start(command).unwrap();
    let answers = || {
        let mut status = Command::new(env!("CARGO_BIN_EXE_nigh"));
        status.args(["gate", "status", "-c"]).arg(&config);
        daemon.ended().is_some() || status.output().is_ok_and(|output| output.status.success())
    };
    wait_until("the gate", LIMIT, answers).unwrap();
    assert_eq!(daemon.ended(), None, "{}", daemon.stderr());
    daemon.signal(Signal::SIGTERM).unwrap();
    assert!(daemon.finish(LIMIT).unwrap().success());
}
