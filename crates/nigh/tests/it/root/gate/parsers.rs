//! A parser's process is killed or hangs under traffic: its flows are decided by `on_failure` and counted,
//! the next ones are named by the process after it, and the daemon goes on.

use super::{
    site::{EXTERNAL, Site},
    talk::{self, Talk},
    web::Web,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use testbed::clients::noise;

/// The banner of an SSH server, on port 22.
const SECTIONS: &str = "hold = true\nrefuse_for = \"0s\"\n[[gate.rule]]\nname = \"no-shell\"\n\
                        application = [\"ssh\"]\naction = \"deny\"\n";

fn pid(status: &Value, parser: &str) -> Option<i32> {
    status["parsers"][parser]["pid"].as_i64().and_then(|pid| pid.try_into().ok())
}

/// Sends a signal to a parser's process.
fn signal(site: &Site, parser: &str, signal: Signal) -> i32 {
    let pid = pid(&site.status(), parser).expect("a process");
    kill(Pid::from_raw(pid), signal).unwrap();
    pid
}

/// Waits until another process is in the place of one.
fn replaced(site: &Site, parser: &str, old: i32, kind: &str) -> Value {
    site.wait("another process", |status| {
        status["parsers"][parser][kind] == 1 && pid(status, parser).is_some_and(|pid| pid != old)
    })
}

#[test]
fn a_killed_parser_leaves_its_flows_to_on_failure_and_is_started_again() {
    for (on_failure, passes) in [("pass", true), ("drop", false)] {
        let site = Site::start(&format!("on_failure = \"{on_failure}\"\n{SECTIONS}"));
        let mut undecided = Talk::open(&site.internal, &site.external, EXTERNAL);
        undecided.send(b"?");
        let old = signal(&site, "names", Signal::SIGKILL);
        let status = replaced(&site, "names", old, "died");
        assert_eq!(status["parsers"]["names"]["lost_flows"], 1, "{status:#}");
        if passes {
            undecided.send(b"and it goes on");
        }
        let row = site.flows("unknown").pop().expect("the flow");
        let verdict = if passes { "pass" } else { "drop" };
        assert_eq!((&row["verdict"], &row["rule"]), (&verdict.into(), &"gate.on_failure".into()));
        // What comes next is named.
        let shell = (EXTERNAL, 22);
        let _server = talk::greet(&site.external, shell, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
        let greeting = site.internal.enter(|| talk::greeting(shell));
        assert!(greeting.is_empty(), "{greeting:?}\n{}", site.state());
    }
}

#[test]
fn a_parser_that_hangs_is_killed_and_the_daemon_goes_on() {
    let site = Site::start(SECTIONS);
    let old = signal(&site, "names", Signal::SIGSTOP);
    // The packet that waits for it.
    let mut talk = Talk::open(&site.internal, &site.external, EXTERNAL);
    talk.send(b"?");
    let status = replaced(&site, "names", old, "hung");
    assert_eq!(status["parsers"]["names"]["lost_flows"], 1, "{status:#}");
    talk.send(b"and it goes on");
}

#[test]
fn files_go_on_when_the_parser_that_reads_them_is_killed_and_the_next_ones_are_read() {
    let site = Site::start(
        "[[gate.file]]\nname = \"no-film\"\nnames = [\"*.avi\"]\naction = \"deny\"\n\
         [[gate.file]]\nname = \"others\"\naction = \"allow\"\n",
    );
    let web = Web::start(&site);
    web.offer("large.bin", &noise(5, 20_000_000));
    web.offer("film.avi", &noise(6, 1000));
    let get = |name: &str, rate: &str| {
        let url = format!("http://{EXTERNAL}:8080/length/{name}");
        site.internal
            .spawn(&["curl", "-sS", "--limit-rate", rate, "-o", "/dev/null", &url])
            .unwrap()
    };
    let transfer = get("large.bin", "4M");
    site.wait("the file is read", |status| status["files"]["seen"] == 1);
    let old = signal(&site, "contents", Signal::SIGKILL);
    let status = replaced(&site, "contents", old, "died");
    assert_eq!(status["parsers"]["contents"]["lost_flows"], 1, "{status:#}");
    assert!(transfer.finish(super::site::LIMIT).unwrap().success());
    assert!(!get("film.avi", "4M").finish(super::site::LIMIT).unwrap().success());
    site.wait("the film is denied", |status| status["files"]["denied"] == 1);
}
