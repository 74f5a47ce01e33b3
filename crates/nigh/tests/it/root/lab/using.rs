//! Commands on a running lab: what they change shows in what programs see.

use super::{LIMIT, TWO_HOSTS, binary, lab};
use crate::commandline::offered;
use serde_json::Value;
use std::{
    io::Read,
    process::{Command, Output, Stdio},
};
use testbed::{Lab, wait_until};

/// Runs `nigh lab WORDS --lab PID`.
pub(super) fn nigh(lab: &mut Lab, words: &[&str]) -> Output {
    let pid = lab.process().pid().to_string();
    let mut command = Command::new(binary());
    command.arg("lab").args(words).args(["--lab", &pid]).output().unwrap()
}

/// What it prints.
pub(super) fn text_of(lab: &mut Lab, words: &[&str]) -> String {
    let output = nigh(lab, words);
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// What it prints as JSON.
pub(super) fn ask(lab: &mut Lab, words: &[&str]) -> Value {
    let words: Vec<_> = words.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&text_of(lab, &words)).unwrap()
}

/// The path of packets that do not arrive: the exit code shows it too.
pub(super) fn stopped_path(lab: &mut Lab, from: &str, to: &str) -> Value {
    let output = nigh(lab, &["path", from, to, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last number of replies that ping reports.
fn replies(output: &str) -> u32 {
    let line = output.lines().find(|line| line.contains("packets transmitted")).unwrap();
    let words: Vec<_> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|word| *word == "received").unwrap();
    words[at - 1].parse().unwrap()
}

pub(super) fn ping(lab: &Lab, count: &str) -> String {
    let words = ["ping", "-c", count, "-i", "0.02", "-W", "1", "30.0.0.10"];
    lab.run("pc", &words, LIMIT).unwrap().stdout
}

#[test]
fn a_links_change_shows_in_pings_times_and_loss() {
    let mut lab = lab(TWO_HOSTS);
    let before = ask(&mut lab, &["path", "pc", "server"]);
    assert_eq!(before["delay"], "10ms");
    assert_eq!(before["host"], "server");
    let shown = text_of(&mut lab, &["link", "r1-r2", "set", "delay=40ms"]);
    assert!(shown.contains("r1>r2  delay=10ms  ->  delay=40ms"), "{shown}");
    assert!(shown.contains("r2>r1  delay=10ms  ->  delay=40ms"), "{shown}");
    let output = ping(&lab, "3");
    let times = super::programs::times(&output);
    assert!(times.len() == 3 && times.iter().all(|time| *time >= 80.0), "{output}");
    let shown = text_of(&mut lab, &["path", "20.0.0.10", "server"]);
    assert!(shown.contains("one way: delay 40.000 ms, MTU 1500"), "{shown}");

    text_of(&mut lab, &["link", "r1>r2", "set", "loss=100%", "delay=0ms"]);
    assert_eq!(replies(&ping(&lab, "20")), 0);
    let links = ask(&mut lab, &["links", "--sort", "drops"]);
    assert_eq!(links["links"][0]["from"], "r1");
    assert_eq!(links["links"][0]["dropped"], 20);
    let status = ask(&mut lab, &["status"]);
    assert_eq!(status["packets"]["ended"]["loss"], 20);
    assert_eq!(status["touched"][0]["changed"], true);
    let shown = text_of(&mut lab, &["status"]);
    assert!(shown.contains("20 ended: loss"), "{shown}");

    text_of(&mut lab, &["link", "r1-r2", "set", "loss=none"]);
    assert_eq!(replies(&ping(&lab, "20")), 20);
}

#[test]
fn a_shell_offers_the_names_of_a_lab_that_runs() {
    let mut lab = lab(TWO_HOSTS);
    let pid = lab.process().pid().to_string();
    for (line, names) in [
        ("node r", &["r1", "r2"][..]),
        ("link r", &["r1-r2"]),
        ("capture r1", &["r1", "r1-r2"]),
        ("path p", &["pc"]),
        ("path pc r", &["r1", "r2"]),
        ("exec serv", &["server"]),
    ] {
        let (command, rest) = line.split_once(' ').unwrap();
        let words = ["nigh", "lab", command, "--lab", &pid];
        let words: Vec<_> = words.into_iter().chain(rest.split(' ')).collect();
        // Hosts of labs of other tests may stand beside those of this one, and a busy lab may answer too
        // late for the shell.
        let mut found = Vec::new();
        wait_until(line, LIMIT, || {
            found = offered(&words);
            names.iter().all(|name| found.iter().any(|it| it == name))
        })
        .unwrap();
        let typed = rest.rsplit(' ').next().unwrap();
        assert!(found.iter().all(|name| name.starts_with(typed)), "{line}: {found:?}");
    }
}

#[test]
fn a_command_in_a_host_ends_as_by_env() {
    let mut lab = lab(TWO_HOSTS);
    let pid = lab.process().pid().to_string();
    for (words, code) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["no-program-of-this-name"], 127),
        (&["/etc/hosts"], 126),
    ] {
        let mut command = Command::new(binary());
        let done = command.args(["lab", "exec", "--lab", &pid, "pc"]).args(words).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{words:?}: {}", text(&done.stderr));
    }
}

/// Starts `nigh lab events --json`, which has reported a change of link r1-r2 by then.
pub(super) fn follow_events(lab: &mut Lab) -> testbed::Process {
    let pid = lab.process().pid().to_string();
    let mut command = Command::new(binary());
    command.args(["lab", "events", "--json", "--lab", &pid]);
    let events = testbed::Process::start(command).unwrap();
    // The first event may come before the follower is there: the change is made until it is seen.
    wait_until("the follower", LIMIT, || {
        text_of(lab, &["link", "r1-r2", "set", "mtu=1400"]);
        events.stdout().contains("\"event\":\"link\"")
    })
    .unwrap();
    events
}

#[test]
fn a_node_that_is_down_loses_packets_and_is_reported() {
    let mut lab = lab(TWO_HOSTS);
    let events = follow_events(&mut lab);
    let shown = text_of(&mut lab, &["node", "r2", "down"]);
    assert!(shown.contains("r2  up -> down"), "{shown}");
    assert_eq!(replies(&ping(&lab, "5")), 0);
    assert_eq!(ask(&mut lab, &["status"])["down"][0], "r2");
    let path = stopped_path(&mut lab, "pc", "server");
    assert!(path["stopped"].is_string(), "{path}");
    wait_until("what routing does", LIMIT, || {
        let text = events.stdout();
        text.contains(r#""event":"node","node":"r2","up":false"#)
            && text.contains(r#""event":"routing""#)
    })
    .unwrap();
    text_of(&mut lab, &["node", "r2", "up"]);
    wait_until("the return path", LIMIT, || replies(&ping(&lab, "1")) == 1).unwrap();
}

#[test]
fn a_capture_is_read_by_tcpdump() {
    let mut lab = lab(TWO_HOSTS);
    let pid = lab.process().pid().to_string();
    for (what, count, lines) in [("r1-r2", "6", 6), ("r1>r2", "3", 3), ("r2", "8", 8)] {
        let file = lab.folder().join("out.pcapng");
        let mut command = Command::new(binary());
        command.args(["lab", "capture", what, "--lab", &pid, "--count", count, "-w"]).arg(&file);
        let mut capture = testbed::Process::start(command).unwrap();
        let mut status = None;
        wait_until("the capture's end", LIMIT, || {
            ping(&lab, "4");
            status = capture.ended();
            status.is_some()
        })
        .unwrap();
        assert!(status.unwrap().success(), "{what}: {}", capture.stderr());
        assert!(capture.stderr().contains(&format!("{count} packets")), "{}", capture.stderr());
        let read = Command::new("tcpdump").args(["-vnr"]).arg(&file).output().unwrap();
        let text = text(&read.stdout);
        assert!(read.status.success(), "{}", self::text(&read.stderr));
        let echoes = text.lines().filter(|line| line.contains("ICMP echo")).count();
        assert_eq!(echoes, lines, "{what}: {text}");
        assert!(!text.contains("bad cksum"), "{text}");
        if what == "r1>r2" {
            // 64 as the host sends it, less the first router.
            assert!(text.contains("ttl 63") && !text.contains("echo reply"), "{text}");
        }
    }
}

#[test]
fn a_capture_that_is_piped_ends_with_its_reader() {
    let mut lab = lab(TWO_HOSTS);
    let pid = lab.process().pid().to_string();
    let mut capture = Command::new(binary())
        .args(["lab", "capture", "r1", "--lab", &pid, "-w", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = Command::new("tcpdump")
        .args(["-nr", "-", "-c", "2"])
        .stdin(capture.stdout.take().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the reader's and then the capture's end", LIMIT, || {
        ping(&lab, "4");
        let read = reader.try_wait().unwrap();
        read.is_some() && capture.try_wait().unwrap().is_some()
    })
    .unwrap();
}

/// A reader that does not read: the lab goes on, and what found no room is counted and reported.
#[test]
fn a_capture_that_nobody_reads_holds_nobody_up() {
    let mut lab = lab(TWO_HOSTS);
    let pid = lab.process().pid().to_string();
    let mut capture = Command::new(binary())
        .args(["lab", "capture", "r1>r2", "--lab", &pid, "--duration", "1s", "-w", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The head of the file: the capture has begun.
    let mut file = capture.stdout.take().unwrap();
    file.read_exact(&mut [0; 28]).unwrap();
    let _server = lab.spawn("server", &["iperf3", "-s"]).unwrap();
    wait_until("iperf3", LIMIT, || lab.check("server", &["ss", "-tln"]).unwrap().contains(":5201"))
        .unwrap();
    // More than the 32 MB that may wait, and what pipes and sockets hold.
    lab.check("pc", &["iperf3", "-c", "server", "-n", "60M"]).unwrap();
    assert_eq!(replies(&ping(&lab, "5")), 5);
    let put = ask(&mut lab, &["links"])["links"].as_array().unwrap().clone();
    let put = put.iter().find(|link| link["from"] == "r1").unwrap()["packets"].clone();
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    let output = capture.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    // "N packets, M more were dropped from the capture"
    let printed = text(&output.stderr);
    let counts: Vec<u64> =
        printed.split([' ', '\n']).filter_map(|word| word.parse().ok()).collect();
    let [written, lost] = counts[..] else { panic!("{printed}") };
    assert!(printed.contains("more were dropped from the capture") && lost > 0, "{printed}");
    // Those that came before it had begun are not in it.
    assert!(written + lost <= put.as_u64().unwrap(), "{printed}: {put}");
    assert!(rest.len() > 20 << 20, "{} bytes", rest.len());
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let mut lab = lab(TWO_HOSTS);
    for (words, sentence) in [
        (&["path", "pcc", "server"][..], "there is no host and no node pcc: did you mean pc?"),
        (&["path", "pc", "9.9.9.9"], "no node of this network has 9.9.9.9"),
        (&["link", "r1-r3"], "there is no node r3: did you mean r1 or r2?"),
        (&["link", "r1"], "a link is two nodes"),
        (&["link", "r1-r2", "set", "delay=-1ms"], "delay"),
        (&["link", "r1-r2", "set", "dely=1ms"], "no setting `dely`"),
        (&["node", "r9", "down"], "there is no node r9"),
        (&["capture", "r1-r9", "-w", "-"], "there is no node r9"),
    ] {
        let output = nigh(&mut lab, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let printed = text(&output.stderr);
        assert!(printed.contains(sentence), "{words:?}: {printed}");
    }
    let output =
        Command::new(binary()).args(["lab", "status", "--lab", "nobody"]).output().unwrap();
    assert!(text(&output.stderr).contains("no lab nobody runs"), "{}", text(&output.stderr));
    // Nothing of it has changed anything, and the lab still works.
    assert_eq!(replies(&ping(&lab, "2")), 2);
}
