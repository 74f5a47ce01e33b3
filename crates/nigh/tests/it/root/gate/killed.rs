//! The daemon is killed while traffic goes through: nothing of a decided flow is lost, what is refused stays
//! refused, and the next daemon takes over what the kernel has.

use super::{
    site::{EXTERNAL, LIMIT, Site, count},
    talk::{self, Pings},
    web::{WEB, Web},
};
use nix::sys::signal::Signal;
use std::{net::TcpStream, process::Command, time::Duration};
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
