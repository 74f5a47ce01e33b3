//! `nigh psock send` and `nigh psock recv`.

use super::stage::{BINARY, LIMIT, LISTEN, PATHS, Stage, noise};
use ring::digest::{Context, SHA256, digest};
use serde_json::Value;
use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use testbed::{Process, wait_until};

/// What an end printed with `--json` when it had ended well.
fn report(end: Process) -> Value {
    let finished = end.finish(LIMIT).unwrap();
    assert!(finished.success(), "{}{}", finished.stdout, finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn a_file_crosses_two_paths() {
    let stage = Stage::new();
    let content = noise(24_000_000);
    fs::write(stage.path("original"), &content).unwrap();
    let (key, original, copy) = (stage.file("key"), stage.file("original"), stage.file("copy"));
    let more = ["--key", &key, "--json"];
    let recv = stage.spawn("right", &[&["recv", &copy], &more, &LISTEN]);
    stage.listening("right", 7000);
    // It is not called so before it is whole.
    assert!(!stage.path("copy").exists());
    let send = stage.spawn("left", &[&["send", &original], &more, &PATHS]);
    let (sent, received) = (report(send), report(recv));
    let copied = fs::read(stage.path("copy")).unwrap();
    assert_eq!(digest(&SHA256, &copied).as_ref(), digest(&SHA256, &content).as_ref());
    assert!(!stage.path("copy.part").exists());
    assert_eq!((&sent["bytes"], &received["bytes"]), (&24_000_000.into(), &24_000_000.into()));
    // Equal paths are both needed.
    let connections = sent["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 2);
    assert!(connections.iter().all(|one| one["bytes_sent"].as_u64() > Some(0)), "{sent:#}");
}

#[test]
fn pipes_stay_pipes_and_announced_addresses_become_paths_where_that_is_wanted() {
    let stage = Stage::new();
    let (key, from, into) = (stage.file("key"), stage.file("from"), stage.file("into"));
    stage.lab.check("left", &["mkfifo", &from, &into]).unwrap();
    let end = ["--key", &key, "--json", "--congestion", "reno"];
    let recv = stage.spawn("right", &[&["recv", &into], &end, &LISTEN]);
    stage.listening("right", 7000);
    let send = stage.spawn("left", &[&["send", &from, "--follow-announced"], &end, &PATHS[..2]]);
    let mut pipe = OpenOptions::new().write(true).open(&from).unwrap();
    let other = ["ss", "-tnH", "state", "established", "dst", "10.1.2.2"];
    wait_until("a connection to the other address", LIMIT, || {
        !stage.lab.check("left", &other).unwrap().trim().is_empty()
    })
    .unwrap();
    // Both ends' connections have the congestion control that was chosen.
    for host in ["left", "right"] {
        let text = stage.lab.check(host, &["ss", "-tniH", "state", "established"]).unwrap();
        let mut states = text.lines().filter(|line| line.starts_with(char::is_whitespace));
        assert!(states.clone().count() > 0, "{text}");
        assert!(states.all(|line| line.split_whitespace().any(|word| word == "reno")), "{text}");
    }
    pipe.write_all(b"over either").unwrap();
    drop(pipe);
    assert_eq!(stage.lab.check("left", &["cat", &into]).unwrap(), "over either");
    assert_eq!(report(send)["connections"].as_array().unwrap().len(), 2);
    assert_eq!(report(recv)["bytes"], 11);
    assert!(fs::metadata(&into).unwrap().file_type().is_fifo());
}

#[test]
fn what_is_counted_goes_to_stdout_unless_that_has_the_data() {
    let stage = Stage::new();
    let key = stage.file("key");
    let end = ["--key", &key, "--json"];
    let recv = stage.spawn("right", &[&["recv"], &end, &LISTEN]);
    stage.listening("right", 7000);
    let send =
        format!("printf piped | {BINARY} psock send --key {key} --json --path 10.1.1.2:7000");
    let send = report(stage.lab.spawn("left", &["sh", "-c", &send]).unwrap());
    assert_eq!(send["bytes"], 5);
    let recv = recv.finish(LIMIT).unwrap();
    assert!(recv.success(), "{}", recv.stderr);
    assert_eq!(recv.stdout, "piped");
    assert!(recv.stderr.contains("{\"bytes\":5,"), "{}", recv.stderr);
}

#[test]
fn a_path_is_cut_and_returns_under_a_stream() {
    let stage = Stage::new();
    let (key, pipe, copy) = (stage.file("key"), stage.file("pipe"), stage.file("copy"));
    stage.lab.check("left", &["mkfifo", &pipe]).unwrap();
    let more = ["--key", &key, "--json", "--path-timeout", "500ms"];
    let recv = stage.spawn("right", &[&["recv", &copy], &more, &LISTEN]);
    stage.listening("right", 7000);
    let send = stage.spawn("left", &[&["send", &pipe], &more, &PATHS]);

    // Something writes for as long as the paths need to be cut, to die and to come back.
    let (ended, written) = (AtomicBool::new(false), Mutex::new((Context::new(&SHA256), 0_u64)));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut pipe = OpenOptions::new().write(true).open(&pipe).unwrap();
            let chunk = noise(100_003);
            while !ended.load(Ordering::Relaxed) {
                pipe.write_all(&chunk).unwrap();
                let mut written = written.lock().unwrap();
                written.0.update(&chunk);
                written.1 += chunk.len() as u64;
            }
        });
        // When something here fails, the writer ends too.
        let _end = End(&ended);
        let used = || stage.sent_on_first_path().is_some_and(|sent| sent > 1_000_000);
        wait_until("use of the first path", LIMIT, used).unwrap();
        stage.first_path(false);
        wait_until("the first path's death", LIMIT, || stage.sent_on_first_path().is_none())
            .unwrap();
        let then = written.lock().unwrap().1;
        wait_until("bytes over the other", LIMIT, || written.lock().unwrap().1 > then + 3_000_000)
            .unwrap();
        stage.first_path(true);
        wait_until("use of the first path again", LIMIT, used).unwrap();
        ended.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    let (sent, received) = (report(send), report(recv));
    let (hash, length) = written.into_inner().unwrap();
    assert_eq!((&sent["bytes"], &received["bytes"]), (&length.into(), &length.into()));
    let copied = fs::read(stage.path("copy")).unwrap();
    assert_eq!(digest(&SHA256, &copied).as_ref(), hash.finish().as_ref());
    let first = &sent["connections"][0];
    assert!(first["failures"].as_u64() >= Some(1), "{sent:#}");
    assert!(first["recoveries"].as_u64() >= Some(1), "{sent:#}");
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn another_key_is_refused_and_both_ends_report_it() {
    let stage = Stage::new();
    fs::write(stage.path("original"), b"for the right one only").unwrap();
    let (key, other) = (stage.file("key"), stage.file("other"));
    let (original, copy) = (stage.file("original"), stage.file("copy"));
    stage.nigh("right", &["key", &other]);
    let recv = stage.spawn("right", &[&["recv", &copy, "--key", &key], &LISTEN]);
    stage.listening("right", 7000);
    let send = stage.spawn("left", &[&["send", &original, "--key", &other], &PATHS]);
    let send = send.finish(LIMIT).unwrap();
    assert!(!send.success());
    assert!(send.stderr.contains("the other end has another key"), "{}", send.stderr);
    wait_until("the refusal", LIMIT, || recv.stderr().contains("refused 10.1.")).unwrap();
    let reason = "the other end does not accept this end's key";
    assert!(recv.stderr().contains(reason), "{}", recv.stderr());
    // The right one is still awaited.
    let send = stage.spawn("left", &[&["send", &original, "--key", &key], &PATHS]);
    assert!(send.finish(LIMIT).unwrap().success());
    assert!(recv.finish(LIMIT).unwrap().success());
    assert_eq!(fs::read(stage.path("copy")).unwrap(), b"for the right one only");
}

#[test]
fn a_sender_that_dies_leaves_no_file_that_looks_whole() {
    let stage = Stage::new();
    let (key, copy) = (stage.file("key"), stage.file("copy"));
    let more = ["--key", &key, "--survive", "2s"];
    let recv = stage.spawn("right", &[&["recv", &copy], &more, &LISTEN]);
    stage.listening("right", 7000);
    let mut send = stage.spawn("left", &[&["send", "/dev/zero"], &more, &PATHS]);
    wait_until("some bytes", LIMIT, || {
        fs::metadata(stage.path("copy.part")).is_ok_and(|file| file.len() > 1_000_000)
    })
    .unwrap();
    send.kill();
    let recv = recv.finish(LIMIT).unwrap();
    assert!(!recv.success());
    assert!(recv.stderr.contains("no path to the peer has worked for 2 s"), "{}", recv.stderr);
    assert!(!stage.path("copy").exists());
}

#[test]
fn keys_are_made_once_and_for_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let key = || {
        let mut command = std::process::Command::new(BINARY);
        command.args(["psock", "key"]).arg(&file);
        testbed::process::run(command, LIMIT).unwrap()
    };
    assert!(key().success());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.len() == 65 && text.trim().bytes().all(|byte| byte.is_ascii_hexdigit()));
    let again = key();
    assert!(!again.success() && again.stderr.contains("exists"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}
