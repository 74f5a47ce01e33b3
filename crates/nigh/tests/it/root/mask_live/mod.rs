//! `nigh mask live` on the traffic of two hosts: what it gives is what `nigh mask file` makes of a capture of
//! the same packets.

/// Each of these tests with the kernel as the engine, and with the process.
macro_rules! by_both_engines {
    ($($test:ident),* $(,)?) => {
        mod kernel {
            $(#[test] fn $test() { $crate::root::mask_live::by_kernel(super::$test); })*
        }
        mod process {
            $(#[test] fn $test() { super::$test("process"); })*
        }
    };
}

mod blocked;
mod outputs;

use capture::Item;
use nix::sys::signal::Signal;
use std::{
    fs::{self, File},
    path::Path,
    time::Duration,
};
use testbed::{End, Namespace, Process, link, wait_until};

const LIMIT: Duration = Duration::from_secs(120);

by_both_engines! {
    an_interface_is_masked_as_its_capture_would_be,
    only_what_the_filter_wants_is_taken_and_the_rest_is_counted,
    long_packets_are_masked_to_their_ends,
    files_follow_each_other_also_where_another_user_is_at_home,
    the_end_of_the_interface_is_reported_with_what_was_masked,
}

/// The kernel as the engine; one without a cipher is refused, with the reason.
fn by_kernel(test: fn(&str)) {
    if datapath::kernel::cipher().is_ok() {
        return test("kernel");
    }
    let (host, _other) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pcapng");
    let nigh = [env!("CARGO_BIN_EXE_nigh"), "mask", "live", "--engine", "kernel", "eth0"];
    let words = ["--policy", "strict", "--write", out.to_str().expect("a name")];
    let done = host.run(&[&nigh[..], &words].concat(), LIMIT).expect("an end");
    assert!(
        !done.success() && done.stderr.contains("so it cannot mask packets"),
        "{}",
        done.stderr
    );
    assert!(!out.exists(), "nothing is written");
}

/// Two hosts that send nothing by themselves.
fn hosts() -> (Namespace, Namespace) {
    let [one, two] = ["masker", "talker"].map(|name| Namespace::new(name).expect("a namespace"));
    for host in [&one, &two] {
        let off = [("ipv6/conf/default/disable_ipv6", "1")];
        host.sysctl(&off).expect("a setting");
    }
    link(
        End::new(&one, "eth0").address("192.0.2.1/30"),
        End::new(&two, "eth0").address("192.0.2.2/30"),
    )
    .expect("a link");
    (one, two)
}

/// Starts it, and waits until no packet goes by unseen.
fn live(host: &Namespace, engine: &str, words: &[&str]) -> Process {
    live_on(host, engine, &[&["eth0"], words].concat())
}

fn live_on(host: &Namespace, engine: &str, words: &[&str]) -> Process {
    let nigh = [env!("CARGO_BIN_EXE_nigh"), "mask", "--json", "live", "--engine", engine];
    let process = host.spawn(&[&nigh, words].concat()).expect("nigh");
    wait_until("nigh", LIMIT, || process.stderr().contains("SIGINT ends it"))
        .unwrap_or_else(|error| panic!("{error}: {}", process.stderr()));
    let is_told =
        process.stderr().contains("warning: original bytes of packets reach this process");
    assert_eq!(is_told, engine == "process", "{}", process.stderr());
    process
}

fn end(process: Process) -> serde_json::Value {
    process.signal(Signal::SIGINT).expect("it runs");
    summary(process)
}

/// Its final report, which is due.
fn summary(process: Process) -> serde_json::Value {
    let done = process.finish(LIMIT).expect("an end");
    assert!(done.success(), "{}", done.stderr);
    // On stdout, unless the capture goes there.
    let printed =
        done.stdout.lines().chain(done.stderr.lines()).rfind(|line| line.starts_with('{'));
    let printed = printed.unwrap_or_else(|| panic!("{}", done.stderr));
    serde_json::from_str(printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// `nigh mask` with these words, to its end.
fn nigh(host: &Namespace, words: &[&str]) -> String {
    host.check(&[&[env!("CARGO_BIN_EXE_nigh"), "mask"], words].concat()).expect("nigh")
}

/// Starts tcpdump on an interface, and waits until it sees all.
fn dump(host: &Namespace, interface: &str, file: &str) -> Process {
    let words =
        ["tcpdump", "-Z", "root", "-U", "-s", "0", "-B", "8192", "-ni", interface, "-w", file];
    let dump = host.spawn(&words).expect("tcpdump");
    wait_until("tcpdump", LIMIT, || dump.stderr().contains("listening")).expect("tcpdump");
    dump
}

/// The packets of a capture: how long they were, and what is there of them.
fn packets(path: &Path) -> Vec<(u32, Vec<u8>)> {
    let mut packets = Vec::new();
    let file = File::open(path).expect("a capture");
    capture::read_all::<capture::ReadError>(file, |item, _| {
        if let Item::Frame(frame) = item {
            packets.push((frame.length, frame.bytes.to_vec()));
        }
        Ok(())
    })
    .expect("a capture");
    packets
}

/// Frames that a host sends as they are: tagged, of no known type, and cut short.
const FRAMES: &str = r#"
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
macs = b"\xff" * 6 + b"\x02\x00\x00\x00\x00\x07"
ip = bytes.fromhex("450000200001000040110000c0000202c0000201") + b"\x12\x34\x00\x35\x00\x0c\x00\x00secr"
s.send(macs + b"\x81\x00\x60\x05\x08\x00" + ip)
s.send(macs + b"\x88\xb5" + b"secret" * 20)
s.send(macs + b"\x08\x00" + ip[:18])
"#;

fn an_interface_is_masked_as_its_capture_would_be(engine: &str) {
    let (host, other) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let nigh = |words: &[&str]| nigh(&host, words);
    let name = |name: &str| at(name).to_str().expect("a name").to_owned();
    let (key, log) = (name("key"), name("log"));
    nigh(&["key", &key]);
    let (raw, masked, again) = (name("raw.pcap"), name("live.pcapng"), name("file.pcapng"));
    let dump = dump(&host, "eth0", &raw);
    let process = live(
        &host,
        engine,
        &["--policy", "research", "--key", &key, "--write", &masked, "--log", &log],
    );
    // Whatever was needed to begin is given up.
    for task in fs::read_dir(format!("/proc/{}/task", process.pid())).expect("threads") {
        let status = fs::read_to_string(task.expect("one").path().join("status")).expect("it");
        for set in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"] {
            assert!(status.contains(set), "{status}");
        }
    }
    // Nobody else reads its memory, not even whoever has the same user and as few capabilities.
    let environ = format!("/proc/{}/environ", process.pid());
    let words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "cat", &environ];
    let read = host.run(&words, LIMIT).expect("an end");
    assert!(!read.success() && read.stderr.contains("Permission denied"), "{}", read.stderr);
    other.check(&["ping", "-c", "3", "-i", "0.1", "192.0.2.1"]).expect("answers");
    other.check(&["ping", "-c", "1", "-s", "4000", "192.0.2.1"]).expect("an answer in fragments");
    other.check(&["python3", "-c", FRAMES]).expect("frames");
    wait_until("all packets", LIMIT, || packets(Path::new(&raw)).len() >= 19).expect("packets");
    let summary = end(process);
    dump.signal(Signal::SIGINT).expect("it runs");
    dump.finish(LIMIT).expect("an end");

    let (live, original) = (packets(Path::new(&masked)), packets(Path::new(&raw)));
    assert_eq!((&summary["seen"], &summary["engine"]), (&live.len().into(), &engine.into()));
    assert_eq!((&summary["masked"], &summary["seen"]), (&summary["seen"], &summary["masked"]));
    nigh(&["file", "--policy", "research", "--key", &key, &raw, &again]);
    assert_eq!(live, packets(Path::new(&again)), "{original:02x?}");
    let checked = nigh(&["check", &masked, "--against", &raw]);
    assert!(checked.contains("nothing was found"), "{checked}");
    let log = fs::read_to_string(at("log")).expect("a log");
    let begun = log.lines().next().unwrap_or_default();
    assert!(begun.contains(&format!("\"engine\":\"{engine}\"")), "{begun}");
    assert!(log.contains("\"event\":\"end\"") && log.contains("\"input\":\"eth0\""), "{log}");
}

fn only_what_the_filter_wants_is_taken_and_the_rest_is_counted(engine: &str) {
    let (host, other) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pcapng");
    let name = out.to_str().expect("a name");
    let words = ["--policy", "strict", "--filter", "icmp[icmptype] = icmp-echo", "--write", name];
    let process =
        live(&host, engine, &[&words[..], &["--direction", "in", "--count", "3"]].concat());
    other.check(&["ping", "-c", "5", "-i", "0.1", "192.0.2.1"]).expect("answers");
    // It ends by itself.
    let summary = summary(process);
    assert_eq!(summary["output"]["packets"], 3, "{summary}");
    // What comes in beside them is a question of ARP, perhaps two.
    assert!(summary["not_wanted"].as_u64().is_some_and(|count| count <= 2), "{summary}");
    assert!(packets(&out).iter().all(|(length, bytes)| *length == 98 && bytes.len() == 42));
}

/// A policy that keeps payload, so that long packets have long sums.
const PAYLOAD: &str = r#"
about = "all that programs send to each other"
payload = true
time = "keep"
[fields]
"ipv4.*" = "keep"
"ipv4.source" = "prefix"
"ipv4.destination" = "prefix"
"udp.*" = "keep"
"tcp.*" = "keep"
"#;

/// Datagrams of many lengths to a closed port, which answers with ICMP errors.
const LONG: &str = r#"
import socket
for length in list(range(0, 600, 37)) + [4000, 20001, 40003, 60005]:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(bytes(n * 7 & 255 for n in range(length)), ("127.0.0.1", 9))
"#;

fn long_packets_are_masked_to_their_ends(engine: &str) {
    let (host, _other) = hosts();
    host.check(&["ip", "link", "set", "lo", "up"]).expect("lo");
    let folder = tempfile::tempdir().expect("a folder");
    let name = |name: &str| folder.path().join(name).to_str().expect("a name").to_owned();
    fs::write(name("payload.toml"), PAYLOAD).expect("a policy");
    let nigh = |words: &[&str]| nigh(&host, words);
    let [key, policy, raw, masked, again] =
        ["key", "payload.toml", "raw.pcap", "live.pcapng", "file.pcapng"].map(name);
    nigh(&["key", &key]);
    let dump = dump(&host, "lo", &raw);
    let under = ["--policy", &policy, "--key", &key];
    let words = [&["lo"][..], &under, &["--direction", "in", "--write", &masked]].concat();
    let process = live_on(&host, engine, &words);
    host.check(&["python3", "-c", LONG]).expect("datagrams");
    wait_until("all packets", LIMIT, || packets(Path::new(&raw)).len() >= 42).expect("packets");
    let summary = end(process);
    dump.signal(Signal::SIGINT).expect("it runs");
    dump.finish(LIMIT).expect("an end");
    nigh(&[&["file"][..], &under, &[&raw, &again]].concat());
    let live = packets(Path::new(&masked));
    assert_eq!(live, packets(Path::new(&again)));
    assert!(live.iter().any(|(length, bytes)| *length > 60_000 && bytes.len() > 60_000));
    assert_eq!((&summary["cut"], &summary["output"]["packets"]), (&0.into(), &live.len().into()));
}

fn files_follow_each_other_also_where_another_user_is_at_home(engine: &str) {
    let (host, other) = hosts();
    let home = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::chown(home.path(), Some(65_534), Some(65_534)).expect("another user");
    let out = home.path().join("out.pcapng");
    let out = out.to_str().expect("a name");
    let words = ["--policy", "flows", "--forget", "--sample", "2", "--write", out];
    let rotated = ["--rotate-size", "1K", "--files", "3", "--direction", "in"];
    let process = live(&host, engine, &[&words[..], &rotated].concat());
    other.check(&["ping", "-c", "200", "-i", "0.002", "192.0.2.1"]).expect("answers");
    process.signal(Signal::SIGTERM).expect("it runs");
    let summary = summary(process);
    let [seen, masked, not_in_sample] =
        ["seen", "masked", "not_in_sample"].map(|it| summary[it].as_u64().expect("a number"));
    assert_eq!(seen, masked + not_in_sample, "{summary}");
    // Of two hundred, less than 60 or more than 140 are chosen once in 10^8 times.
    assert!((60..=140).contains(&masked), "{summary}");
    let files = fs::read_dir(home.path()).expect("a folder");
    let mut files: Vec<_> = files.map(|it| it.expect("a file").path()).collect();
    files.sort();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in &files {
        assert!(fs::metadata(file).expect("a file").len() <= 1000);
        assert!(!packets(file).is_empty(), "{files:?}");
    }
}

fn the_end_of_the_interface_is_reported_with_what_was_masked(engine: &str) {
    let (host, other) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pcapng");
    let process =
        live(&host, engine, &["--policy", "strict", "--write", out.to_str().expect("a name")]);
    other.check(&["ping", "-c", "3", "-i", "0.1", "192.0.2.1"]).expect("answers");
    host.check(&["ip", "link", "delete", "eth0"]).expect("a link");
    let done = process.finish(LIMIT).expect("an end");
    assert!(!done.success() && done.stderr.contains("the interface is gone"), "{}", done.stderr);
    let summary = done.stdout.lines().find(|line| line.starts_with('{')).expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(summary).expect("JSON");
    assert!(summary["output"]["packets"].as_u64() >= Some(6), "{summary}");
    assert_eq!(summary["output"]["packets"], packets(&out).len());
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let (host, _other) = hosts();
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pcapng");
    let out = out.to_str().expect("a name");
    let policy = folder.path().join("above.toml");
    fs::write(&policy, "about = \"\"\n[fields]\n\"dns.id\" = \"keep\"\n").expect("a policy");
    let above = policy.to_str().expect("a name");
    let pipe = folder.path().join("pipe");
    let pipe = pipe.to_str().expect("a name");
    host.check(&["mkfifo", pipe]).expect("a pipe");
    for (words, why) in [
        (&["eth7", "--policy", "strict", "--write", out][..], "there is no interface \"eth7\""),
        (&["eth0", "--policy", above, "--write", out], "the policy names dns.id"),
        (&["eth0", "--policy", "research", "--write", out], "needs a key"),
        (&["eth0", "--policy", "strict", "--filter", "tcp prot 5", "--write", out], "tcp prot 5"),
        (&["eth0", "--policy", "strict", "--write", "/nowhere/out"], "/nowhere/out"),
        (&["eth0", "--policy", "strict", "--write", pipe], "give it to --fifo"),
        (&["eth0", "--policy", "strict", "--tap", "eth0"], "another name"),
        (
            &["eth0", "--policy", "strict", "--tap", "a-name-that-is-too-long"],
            "not the name of a TAP",
        ),
    ] {
        let words = [&[env!("CARGO_BIN_EXE_nigh"), "mask", "live"], words].concat();
        let done = host.run(&words, LIMIT).expect("an end");
        assert!(!done.success() && done.stderr.contains(why), "{why}: {}", done.stderr);
    }
}
