//! The demo passes its own checks, and leaves nothing behind, wherever it is interrupted.

use nix::sys::signal::Signal;
use std::{
    path::{Path, PathBuf},
    process::Command,
};
use testbed::{LIMIT, Process, wait_until};

/// What bears the process's number: namespaces, temporary folders, and the lab's own files.
fn left(pid: u32) -> Vec<PathBuf> {
    let prefix = format!("nigh.{pid}.");
    let lab = Path::new("/run/nigh-lab");
    let folders = [Path::new("/run/netns"), &std::env::temp_dir(), lab].map(std::fs::read_dir);
    let entries = folders.into_iter().flatten().flatten().flatten();
    let ours = |entry: &std::fs::DirEntry| {
        let path = entry.path();
        entry.file_name().to_string_lossy().starts_with(&prefix)
            || path.extension().is_some_and(|kind| kind == "json")
                && path.starts_with(lab)
                && std::fs::read_to_string(path).is_ok_and(|text| text.contains(&prefix))
    };
    entries.filter(ours).map(|entry| entry.path()).collect()
}

/// Starts the demo.
fn start() -> Process {
    testbed::need_root();
    let demo = Path::new(env!("CARGO_BIN_EXE_nigh")).with_file_name("examples").join("demo");
    assert!(demo.exists(), "build it first: cargo build -p nigh --example demo");
    let mut command = Command::new(demo);
    command.env("DEMO_ONCE", "1");
    Process::start(command).unwrap()
}

/// Interrupts the demo once it has written `text`, and looks for what is left.
fn interrupt(signal: Signal, text: &str) {
    let mut process = start();
    wait_until(&format!("the demo to write {text}"), LIMIT, || {
        process.ended().is_some() || process.stdout().contains(text)
    })
    .unwrap();
    // Not while it rests: namespaces and processes are being made.
    wait_until("something to remove", LIMIT, || left(process.pid()).len() > 3).unwrap();
    let pid = process.pid();
    process.signal(signal).unwrap();
    let finished = process.finish(LIMIT).unwrap();
    assert_eq!(finished.status.code(), Some(130), "{}{}", finished.stdout, finished.stderr);
    assert_eq!(left(pid), Vec::<PathBuf>::new());
    let command = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let commands = std::fs::read_dir("/proc").unwrap().flatten().filter_map(command);
    for command in commands.map(|words| String::from_utf8_lossy(&words).into_owned()) {
        assert!(!command.contains(&format!("/nigh.{pid}.")), "still runs: {command}");
    }
}

#[test]
fn nothing_is_left_after_an_interruption_while_it_is_built() {
    interrupt(Signal::SIGINT, "Ten routers");
}

#[test]
fn soak_nothing_is_left_after_a_termination_while_nigh_runs() {
    interrupt(Signal::SIGTERM, "What the routers know");
}

#[test]
fn soak_every_check_of_the_demo_passes() {
    let process = start();
    let pid = process.pid();
    let finished = process.finish(5 * LIMIT).unwrap();
    assert!(finished.success(), "{}{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("checks passed."), "{}", finished.stdout);
    assert_eq!(left(pid), Vec::<PathBuf>::new());
}
