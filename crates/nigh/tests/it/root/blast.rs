//! `nigh blast` end to end: against the kernel's own echo, against `nigh run`, and with packets lost
//! on purpose at each of the four points.

use std::{path::Path, process::Command, thread, time::Duration};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testbed::{End, Finished, LIMIT, Namespace, Process, Receiver, link, pair, wait_until};

const NIGH: &str = env!("CARGO_BIN_EXE_nigh");

fn blast(namespace: &Namespace, words: &str) -> Finished {
    let mut all = vec![NIGH, "blast"];
    all.extend(words.split_whitespace());
    namespace.run(&all, LIMIT).unwrap()
}

/// The JSON of a run, which must have succeeded.
fn report(namespace: &Namespace, words: &str) -> Value {
    let finished = blast(namespace, &format!("{words} --json"));
    assert!(finished.success(), "{words}: {}{}", finished.stdout, finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} in {value:#}"))
}

/// A `nigh run` whose HTTP service others reach.
struct Responder {
    _process: Process,
    _folder: tempfile::TempDir,
}

fn responder(namespace: &Namespace, http: &str, echo: &str) -> Responder {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = path("nigh.toml");
    let (control, state) = (path("control.sock"), path("state"));
    std::fs::create_dir(&state).unwrap();
    let text = format!(
        "[node]\nname = \"far\"\ncontrol = {control:?}\nhttp = \"{http}\"\nstate = {state:?}\n\
         [echo]\ninterfaces = [\"eth0\"]\naddresses = [\"198.51.100.1\", \"2001:db8:50::1\"]\n{echo}"
    );
    std::fs::write(&file, text).unwrap();
    let mut process =
        namespace.spawn(&[NIGH, "run", "--user", "root", "-c", file.to_str().unwrap()]).unwrap();
    let socket = control.to_str().unwrap().to_owned();
    let answers = || {
        let mut status = Command::new(NIGH);
        status.args(["status", "--socket", &socket]);
        status.output().is_ok_and(|output| output.status.success())
    };
    if let Err(error) = wait_until("the responder", Duration::from_secs(10), answers) {
        panic!("{error}: {:?} {}", process.ended(), process.stderr());
    }
    assert!(Path::new(&socket).exists());
    Responder { _process: process, _folder: folder }
}

/// Packets that have arrived at an interface.
fn arrived(namespace: &Namespace, interface: &str) -> u64 {
    let count = format!("/sys/class/net/{interface}/statistics/rx_packets");
    // A shell that `ip netns exec` starts sees the namespace's own /sys.
    let words = ["ip", "netns", "exec", namespace.name(), "cat", &count];
    namespace.check(&words).unwrap().trim().parse().unwrap()
}

/// Waits until so many packets have arrived at an interface since it had `before`.
fn wait_for_arrivals(namespace: &Namespace, interface: &str, before: u64, packets: u64) {
    let so = || arrived(namespace, interface) >= before + packets;
    wait_until(&format!("{packets} packets"), LIMIT, so).unwrap();
}

const NO_LIMIT: &str = "[echo.limit]\nrate = 0\n";

#[test]
fn every_engine_counts_what_the_kernel_answers() {
    let (near, _far) = pair().unwrap();
    for engine in ["raw", "packet", "live"] {
        for (target, sizes) in [("192.0.2.2", [64, 1518]), ("2001:db8::2", [82, 1518])] {
            for size in sizes {
                let words = format!("{target} -e {engine} -n 600 -r 2000 -s {size}");
                let report = report(&near, &words);
                let count = |key| number(&report, key);
                assert_eq!((count("sent"), count("received")), (600, 600), "{words}: {report:#}");
                let others = ["not_sent", "lost", "duplicated", "reordered", "corrupt", "overruns"];
                for key in others {
                    assert_eq!(count(key), 0, "{words}: {key}");
                }
                let rate = report["packets_per_second"].as_f64().unwrap();
                // Never faster than asked for; on a busy machine the last packet may be late.
                assert!((1.0..=2000.5).contains(&rate), "{words}: {rate}");
                let rtt = |key: &str| report["rtt_ns"][key].as_u64().unwrap();
                assert!(0 < rtt("min") && rtt("min") <= rtt("p50"), "{words}: {report:#}");
                assert!(rtt("p50") <= rtt("p99") && rtt("p99.9") <= rtt("max"));
                let line_rate = report["line_packets_per_second"].as_f64().unwrap();
                let right = 1e9 / 8.0 / f64::from(size + 20);
                assert!((line_rate - right).abs() < 0.01, "{words}: {line_rate}");
            }
        }
    }
    let loopback = report(&near, "127.0.0.1 -n 50");
    assert_eq!(number(&loopback, "received"), 50);
    let threads = report(&near, "192.0.2.2 -n 601 -r 3000 -t 3");
    assert_eq!((number(&threads, "received"), number(&threads, "reordered")), (601, 0));
    let live = report(&near, "192.0.2.2 -e live -n 601 -r 3000 -t 2");
    assert_eq!((number(&live, "received"), number(&live, "reordered")), (601, 0));
}

/// Overdue packets go out at once, but not in bursts that the target cannot answer.
#[test]
fn a_run_that_is_held_up_catches_up_without_a_loss() {
    let (near, far) = pair().unwrap();
    for (engine, target) in [
        ("raw", "192.0.2.2"),
        ("packet", "192.0.2.2"),
        ("live", "192.0.2.2"),
        ("live", "2001:db8::2"),
    ] {
        let words = format!("blast {target} -e {engine} -n 3000 -r 2000 -s 1518 --json");
        let before = arrived(&far, "eth0");
        let mut all = vec![NIGH];
        all.extend(words.split_whitespace());
        let process = near.spawn(&all).unwrap();
        wait_for_arrivals(&far, "eth0", before, 200);
        // Long enough for 400 packets to become due.
        process.signal(Signal::SIGSTOP).unwrap();
        thread::sleep(Duration::from_millis(200));
        process.signal(Signal::SIGCONT).unwrap();
        let finished = process.finish(LIMIT).unwrap();
        assert!(finished.success(), "{words}: {}{}", finished.stdout, finished.stderr);
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        for (key, count) in [("sent", 3000), ("received", 3000), ("not_sent", 0), ("lost", 0)] {
            assert_eq!(number(&report, key), count, "{words}: {report:#}");
        }
    }
}

#[test]
fn what_cannot_be_done_is_one_clear_sentence() {
    let (near, far) = pair().unwrap();
    for (words, sentence) in [
        ("8.8.8.8", "add --allow 8.8.8.8/32"),
        ("2606:4700::1111", "add --allow 2606:4700::1111/128"),
        ("8.8.8.8 --allow 8.0.0.0/8", "there is no route to 8.8.8.8"),
        ("192.0.2.2 -s 63", "choose --size from 64 to 1518"),
        ("2001:db8::2 -s 1519", "choose --size from 82 to 1518"),
        ("192.0.2.9 -e packet", "192.0.2.9 does not answer ARP or neighbour discovery on eth0"),
        ("127.0.0.1 -e live", "only --engine raw can send to it"),
        ("192.0.2.2 -n 4000000000", "too many for one run"),
        ("192.0.2.2 --peer http://192.0.2.2:1", "reading the ledger of http://192.0.2.2:1/api"),
        ("192.0.2.2 -d 0s", "--duration must be longer than 0s"),
    ] {
        let finished = blast(&near, words);
        assert!(!finished.success(), "{words}");
        assert_eq!(finished.stdout, "", "{words}");
        assert!(finished.stderr.contains(sentence), "{words}: {}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{words}: {}", finished.stderr);
    }
    // A veth whose peer has neither program nor GRO takes no live frames.
    far.check(&["ethtool", "-K", "eth0", "gro", "off"]).unwrap();
    let finished = blast(&near, "192.0.2.2 -e live -n 20 -w 100ms");
    assert!(finished.stderr.contains("eth0 took none of the live frames"), "{}", finished.stderr);
    far.check(&["ethtool", "-K", "eth0", "gro", "on"]).unwrap();
    // Nothing comes back: a report, and failure.
    far.sysctl(&[("ipv4.icmp_echo_ignore_all", "1")]).unwrap();
    for engine in ["raw", "packet", "live"] {
        let words = format!("192.0.2.2 -e {engine} -n 20 -w 100ms --json");
        let finished = blast(&near, &words);
        assert!(!finished.success(), "{words}");
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!((number(&report, "sent"), number(&report, "lost")), (20, 20), "{words}");
        assert_eq!(report["rtt_ns"], Value::Null);
    }
}

#[test]
fn progress_is_shown_on_a_terminal_only() {
    let here = Namespace::new("bar").unwrap();
    let words = "127.0.0.1 --count 600";
    // script(1) runs a command on a terminal of its own; nothing is drawn on a dumb one.
    let line = format!("TERM=xterm {NIGH} blast {words}");
    let shown = here.check(&["script", "-qec", &line, "/dev/null"]).unwrap();
    assert!(shown.contains("/600 sent, "), "{shown:?}");
    let plain = blast(&here, words);
    assert!(plain.success() && plain.stderr.is_empty(), "{}", plain.stderr);
}

#[test]
fn interrupt_ends_a_run_with_its_report() {
    let (near, far) = pair().unwrap();
    for engine in ["raw", "live"] {
        let words = [NIGH, "blast", "192.0.2.2", "-e", engine, "-d", "50s", "--json"];
        let before = arrived(&far, "eth0");
        let process = near.spawn(&words).unwrap();
        wait_for_arrivals(&far, "eth0", before, 100);
        process.signal(Signal::SIGINT).unwrap();
        let finished = process.finish(Duration::from_secs(5)).unwrap();
        assert!(finished.success(), "{}", finished.stderr);
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!(report["interrupted"], true);
        let sent = number(&report, "sent");
        assert!((1..5000).contains(&sent), "{sent}");
        assert_eq!(number(&report, "received"), sent);
    }
}

/// near -- middle -- far, where far runs nigh for 198.51.100.1 and 2001:db8:50::1.
struct Chain {
    near: Namespace,
    middle: Namespace,
    far: Namespace,
    _wakes: Receiver,
}

const PEER: &str = "--peer http://203.0.113.2:9160";

fn chain() -> Chain {
    let near = Namespace::new("near").unwrap();
    let middle = Namespace::new("middle").unwrap();
    let far = Namespace::new("far").unwrap();
    link(
        End::new(&near, "eth0").address("192.0.2.1/24"),
        End::new(&middle, "near").address("192.0.2.2/24"),
    )
    .unwrap();
    link(
        End::new(&middle, "far").address("203.0.113.1/24"),
        End::new(&far, "eth0").address("203.0.113.2/24"),
    )
    .unwrap();
    middle.forward().unwrap();
    near.check(&["ip", "route", "add", "default", "via", "192.0.2.2"]).unwrap();
    far.check(&["ip", "route", "add", "default", "via", "203.0.113.1"]).unwrap();
    middle.check(&["ip", "route", "add", "198.51.100.1/32", "via", "203.0.113.2"]).unwrap();
    let _wakes = Receiver::new(&middle, "far").unwrap();
    Chain { near, middle, far, _wakes }
}

/// The report of a run and where packets were lost.
fn losses(chain: &Chain, words: &str) -> (Value, Value) {
    let words = format!("198.51.100.1 {PEER} -w 300ms --json {words}");
    let finished = blast(&chain.near, &words);
    let report: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|_| panic!("{words}: {}{}", finished.stdout, finished.stderr));
    let losses = report["loss"].clone();
    assert_eq!(number(&losses, "others"), 0, "{report:#}");
    (report, losses)
}

#[test]
fn what_the_limit_of_a_source_drops_is_named() {
    let chain = chain();
    let limited = "[echo.limit]\nrate = 100\nburst = 200\n";
    let _responder = responder(&chain.far, "203.0.113.2:9160", limited);

    // Nothing vanishes below the limit.
    let (report, found) = losses(&chain, "-n 100 -r 400");
    assert_eq!((number(&report, "received"), number(&report, "lost")), (100, 0));
    assert_eq!(number(&found, "responder_received"), 100);

    // A burst of 200, then 100 a second for a second.
    let (report, found) = losses(&chain, "-n 1000 -r 1000");
    let lost = number(&report, "lost");
    assert!((600..=850).contains(&lost), "{lost}");
    assert_eq!(number(&found["dropped"], "source_limit"), lost);
    for elsewhere in ["not_sent", "lost_forward", "passed", "lost_reverse"] {
        assert_eq!(number(&found, elsewhere), 0, "{elsewhere}: {report:#}");
    }
}

#[test]
fn the_path_on_which_packets_are_lost_is_named() {
    let chain = chain();
    let _responder = responder(&chain.far, "203.0.113.2:9160", NO_LIMIT);

    // The return path ends in the middle. (Its ledger is read over another address of ours.)
    chain.near.check(&["ip", "address", "add", "192.0.2.9/24", "dev", "eth0"]).unwrap();
    let back = ["ip", "route", "replace", "203.0.113.2/32", "via", "192.0.2.2", "src", "192.0.2.9"];
    chain.near.check(&back).unwrap();
    let blackhole = |action| {
        chain.middle.check(&["ip", "route", action, "blackhole", "192.0.2.1/32"]).unwrap();
    };
    blackhole("add");
    let (report, found) = losses(&chain, "-n 100 -r 400");
    // One more was asked for before the run, so that neighbours are known; it is not counted.
    assert_eq!((number(&report, "received"), number(&report, "lost")), (0, 100));
    assert_eq!(number(&found, "lost_reverse"), 100, "{report:#}");
    blackhole("del");

    // The forward path ends in the middle.
    chain.middle.check(&["ip", "route", "replace", "blackhole", "198.51.100.1/32"]).unwrap();
    let (report, found) = losses(&chain, "-n 100 -r 400");
    assert_eq!(number(&report, "lost"), 100);
    assert_eq!(number(&found, "lost_forward"), 100, "{report:#}");
    assert_eq!(number(&found, "responder_received"), 0);
}

#[test]
fn a_search_reports_the_limit_of_a_source_if_it_finds_it() {
    let chain = chain();
    let limited = "[echo.limit]\nrate = 100\nburst = 20\n";
    let _responder = responder(&chain.far, "203.0.113.2:9160", limited);
    let words = "198.51.100.1 --find-max -r 1000 --trial 500ms --settle 300ms -w 300ms";
    // A busy machine loses packets of its own, also where the limit does not.
    let mut searches = (0..5).map(|_| report(&chain.near, &format!("{words} {PEER}")));
    let found = searches.find(|found| {
        assert_eq!(found["limit"], "loss", "{found:#}");
        let step = &found["steps"][0];
        found["limited_by"] == "source_limit"
            && step["loss"]["dropped"]["source_limit"] == step["lost"]
    });
    assert!(found.is_some(), "the limit was never named");
    // Without the ledger there is nothing to name.
    let found = report(&chain.near, words);
    assert_eq!((&found["limit"], &found["limited_by"]), (&json!("loss"), &Value::Null));
}

#[test]
fn losses_are_shown_in_their_second() {
    let chain = chain();
    let _responder = responder(&chain.far, "203.0.113.2:9160", NO_LIMIT);
    let words = [NIGH, "blast", "198.51.100.1", "-r", "500", "-d", "10s", "--json"];
    let before = arrived(&chain.middle, "near");
    let process = chain.near.spawn(&words).unwrap();
    // The first second is over.
    wait_for_arrivals(&chain.middle, "near", before, 600);
    let gate = |verb| {
        chain.middle.check(&["ip", "route", verb, "blackhole", "192.0.2.1/32"]).unwrap();
    };
    gate("add");
    wait_for_arrivals(&chain.middle, "near", arrived(&chain.middle, "near"), 150);
    gate("del");
    let finished = process.finish(LIMIT).unwrap();
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let seconds = report["seconds"].as_array().unwrap();
    let lost: Vec<u64> = seconds.iter().map(|second| number(second, "lost")).collect();
    let sent: u64 = seconds.iter().map(|second| number(second, "sent")).sum();
    assert_eq!(sent, number(&report, "sent"));
    assert_eq!(lost.iter().sum::<u64>(), number(&report, "lost"));
    assert!(number(&report, "lost") >= 100, "{report:#}");
    // Some from the second second on, none in the last.
    assert_eq!((lost.first(), lost.get(9)), (Some(&0), Some(&0)), "{lost:?}");
}

#[test]
fn the_search_finds_the_limit_of_the_node() {
    let (near, far) = pair().unwrap();
    near.check(&["ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.2"]).unwrap();
    let limits = "[echo.limit]\nrate = 0\nnode_rate = 5000\nnode_burst = 1000\n";
    let _responder = responder(&far, "192.0.2.2:9160", limits);
    let words = "198.51.100.1 -e live --find-max -r 20000 --trial 1s --settle 500ms";
    let report = report(&near, words);
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(number(&steps[0], "requested_packets_per_second"), 20_000);
    assert!(number(&steps[0], "lost") > 10_000, "{report:#}");
    assert_eq!(report["limit"], "loss");
    // In a trial of one second pass 5000 and the burst of 1000.
    let rate = report["packets_per_second"].as_f64().unwrap();
    assert!((5000.0..=6100.0).contains(&rate), "{report:#}");
    let share = report["share_of_line_rate"].as_f64().unwrap();
    assert!((share - rate / 1_488_095.238).abs() < 1e-9);
}
