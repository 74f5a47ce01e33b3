//! Outputs whose reader does not read: what is lost is counted, and the end comes all the same.

use super::*;
use std::io::Read;

by_both_engines! {
    a_pipe_whose_reader_does_not_read_loses_packets_and_ends_in_time,
    a_standard_output_that_blocks_is_waited_for_after_one_signal_and_what_is_lost_is_counted,
    a_second_signal_ends_it_where_nobody_reads,
}

/// Datagrams of 60,000 bytes each.
const FLOOD: &str = r#"
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])):
    s.sendto(bytes(60000), ("127.0.0.1", 9))
"#;

/// A host that sends itself long packets, and the words that have them masked with their payload.
fn flooded(folder: &Path) -> (Namespace, Vec<String>) {
    let (host, _) = hosts();
    host.check(&["ip", "link", "set", "lo", "up"]).expect("lo");
    let policy = folder.join("payload.toml");
    fs::write(&policy, PAYLOAD).expect("a policy");
    let policy = policy.to_str().expect("a name");
    let words = ["lo", "--policy", policy, "--forget", "--direction", "in", "--filter", "udp"];
    (host, words.map(str::to_owned).into())
}

fn flood(host: &Namespace, datagrams: &str) {
    host.check(&["python3", "-c", FLOOD, datagrams]).expect("datagrams");
}

/// `nigh mask live` whose standard output is this pipe, which nobody reads.
fn to_pipe(host: &Namespace, engine: &str, words: &[String], pipe: &str) -> Process {
    host.check(&["mkfifo", pipe]).expect("a pipe");
    let nigh = [env!("CARGO_BIN_EXE_nigh"), "mask", "--json", "live", "--engine", engine];
    // Both ends, so that it does not wait for a reader here.
    let shell = ["sh", "-c", "exec \"$@\" 1<>\"$0\"", pipe];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let process =
        host.spawn(&[&shell[..], &nigh, &["--write", "-"], &words].concat()).expect("nigh");
    wait_until("nigh", LIMIT, || process.stderr().contains("SIGINT ends it"))
        .unwrap_or_else(|error| panic!("{error}: {}", process.stderr()));
    process
}

/// Waits until no signal is pending for the process any more, proc(5): it has taken all that were sent.
fn wait_taken(process: &Process) {
    let file = format!("/proc/{}/status", process.pid());
    wait_until("a signal that is taken", LIMIT, || {
        fs::read_to_string(&file).is_ok_and(|text| text.contains("\nShdPnd:\t0000000000000000\n"))
    })
    .expect("a signal that is taken");
}

fn a_pipe_whose_reader_does_not_read_loses_packets_and_ends_in_time(engine: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let (host, words) = flooded(folder.path());
    let pipe = folder.path().join("pipe");
    let pipe = pipe.to_str().expect("a name");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let process = live_on(&host, engine, &[&words[..], &["--fifo", pipe]].concat());
    // Without a reader they are lost, too.
    flood(&host, "3");
    let reader = host.spawn(&["sh", "-c", "exec 3<\"$0\"; echo open; sleep 600", pipe]);
    let reader = reader.expect("a reader");
    wait_until("a reader", LIMIT, || reader.stdout().contains("open")).expect("a reader");
    // What waits and what the pipe holds are less than ten megabytes.
    flood(&host, "300");
    process.signal(Signal::SIGTERM).expect("it runs");
    let summary = summary(process);
    let output = |what: &str| summary["output"][what].as_u64().expect("a number");
    assert_eq!(output("no_reader"), 3, "{summary}");
    assert!(output("slow_reader") >= 100, "{summary}");
    let became = output("packets") + output("no_reader") + output("slow_reader");
    assert_eq!(became + summary["lost_ring"].as_u64().expect("a number"), 303, "{summary}");
    assert!(!Path::new(pipe).exists());
}

fn a_standard_output_that_blocks_is_waited_for_after_one_signal_and_what_is_lost_is_counted(
    engine: &str,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let (host, words) = flooded(folder.path());
    let pipe = folder.path().join("pipe");
    let name = pipe.to_str().expect("a name");
    let mut process = to_pipe(&host, engine, &words, name);
    // The ring holds 32 MB.
    flood(&host, "800");
    process.signal(Signal::SIGTERM).expect("it runs");
    wait_taken(&process);
    assert!(process.ended().is_none(), "its reader may still come: {}", process.stderr());
    let reader = std::thread::spawn(move || {
        let mut capture = Vec::new();
        File::open(pipe).and_then(|mut pipe| pipe.read_to_end(&mut capture)).map(|_| capture)
    });
    let summary = summary(process);
    let capture = reader.join().expect("a thread").expect("a capture");
    fs::write(folder.path().join("out"), capture).expect("written");
    let written = packets(&folder.path().join("out"));
    assert!(written.iter().all(|(length, bytes)| *length == 60_042 && bytes.len() == 60_042));
    let [masked, lost] = ["masked", "lost_ring"].map(|it| summary[it].as_u64().expect("a number"));
    assert_eq!((masked + lost, masked), (800, written.len() as u64), "{summary}");
    assert!(lost >= 100 && summary["output"]["packets"] == masked, "{summary}");
}

fn a_second_signal_ends_it_where_nobody_reads(engine: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let (host, words) = flooded(folder.path());
    let pipe = folder.path().join("pipe");
    let process = to_pipe(&host, engine, &words, pipe.to_str().expect("a name"));
    flood(&host, "20");
    process.signal(Signal::SIGTERM).expect("it runs");
    wait_taken(&process);
    process.signal(Signal::SIGTERM).expect("it runs");
    let done = process.finish(LIMIT).expect("an end");
    assert_eq!(done.status.code(), Some(128 + 15), "{}", done.stderr);
}
