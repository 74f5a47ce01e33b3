//! How a lab starts and ends, and what is left of it: nothing, even when it was killed.

use super::{LIMIT, TWO_HOSTS, binary, lab};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use std::{
    io::Read,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Output, Stdio},
};
use testbed::{Namespace, wait_until};

/// Runs a scene from a file with a prefix for its namespaces and more arguments.
fn run(scene: &str, prefix: &str, words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scene.toml");
    std::fs::write(&path, scene).unwrap();
    let mut command = Command::new(binary());
    command.args(["lab", "run", "--prefix", prefix]).arg(path).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_there(namespace: &str) -> bool {
    Path::new("/run/netns").join(namespace).exists()
}

/// What the names of namespaces begin with in one test.
fn prefix(label: &str) -> String {
    format!("nigh.{}.{label}.", std::process::id())
}

#[test]
fn a_command_runs_in_a_host_and_its_exit_code_is_returned() {
    let prefix = prefix("command");
    let output = run(TWO_HOSTS, &prefix, &["--", "ping", "-c", "1", "server"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("1 received"));
    let output =
        run(TWO_HOSTS, &prefix, &["--in", "server", "--", "sh", "-c", "hostname -I; exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("30.0.0.10"));
    let output = run(TWO_HOSTS, &prefix, &["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(128 + 9));
    let output = run(TWO_HOSTS, &prefix, &["--in", "nobody", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no host nobody"), "{}", text(&output.stderr));
    assert!(!is_there(&format!("{prefix}pc")));
}

#[test]
fn exec_returns_the_exit_code_and_needs_a_host_that_is_there() {
    let lab = lab(TWO_HOSTS);
    let finished = lab.run("pc", &["sh", "-c", "exit 3"], LIMIT).unwrap();
    assert_eq!(finished.status.code(), Some(3));
    let finished = lab.run("nobody", &["true"], LIMIT).unwrap();
    assert_eq!(finished.status.code(), Some(125));
    assert!(finished.stderr.contains("there are pc, server"), "{}", finished.stderr);
    let finished = lab.run("pc", &["./no-such-program"], LIMIT).unwrap();
    assert_eq!(finished.status.code(), Some(127));
    assert!(finished.stderr.contains("no-such-program"), "{}", finished.stderr);
    // `ip netns exec` finds the host as well.
    let output = Command::new("ip").args(["netns", "exec", &lab.namespace("pc"), "true"]).status();
    assert!(output.unwrap().success());
    // Only the host's interfaces are seen, in /sys too.
    let links = lab.check("pc", &["ls", "/sys/class/net"]).unwrap();
    assert_eq!(links.split_whitespace().collect::<Vec<_>>(), ["eth0", "lo"]);
}

#[test]
fn an_end_by_signal_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut lab = lab(TWO_HOSTS);
        let names = ["pc", "server"].map(|host| lab.namespace(host));
        assert!(names.iter().all(|name| is_there(name)));
        lab.process().signal(signal).unwrap();
        let mut status = None;
        wait_until("the end", LIMIT, || {
            status = lab.process().ended();
            status.is_some()
        })
        .unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(0), "{signal}: {}", lab.wrote());
        assert!(!names.iter().any(|name| is_there(name)));
        assert!(lab.process().stdout().contains("\"ended\""));
    }
}

#[test]
fn a_killed_lab_is_cleaned_up_with_what_runs_in_it_and_nothing_else() {
    let unknown = Namespace::new("unknown").unwrap();
    let running = lab(TWO_HOSTS);
    for by_the_next_run in [false, true] {
        let mut killed = lab(TWO_HOSTS);
        let names = ["pc", "server"].map(|host| killed.namespace(host));
        let mut sleeper = killed.spawn("pc", &["sleep", "1000"]).unwrap();
        wait_until("sleep in the host", LIMIT, || {
            let pids = Command::new("ip").args(["netns", "pids", &names[0]]).output().unwrap();
            text(&pids.stdout).lines().any(|pid| pid == sleeper.pid().to_string())
        })
        .unwrap();
        killed.process().kill();
        // Other tests' labs may have cleaned up by now, which is as good.
        if by_the_next_run {
            assert!(run(TWO_HOSTS, &prefix("next"), &["--", "true"]).status.success());
        } else {
            let output = Command::new(binary()).args(["lab", "clean"]).output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        assert!(!names.iter().any(|name| is_there(name)));
        wait_until("the end of sleep", LIMIT, || sleeper.ended().is_some()).unwrap();
    }
    assert!(is_there(unknown.name()));
    running.check("pc", &["ping", "-c", "1", "server"]).unwrap();
}

#[test]
fn a_scene_that_fails_halfway_leaves_nothing() {
    let prefix = prefix("half");
    // The second host's name is taken by somebody else's namespace.
    let taken = format!("{prefix}server");
    let ip = |word| Command::new("ip").args(["netns", word, &taken]).status().unwrap().success();
    assert!(ip("add"));
    let output = run(TWO_HOSTS, &prefix, &["--", "true"]);
    let (stderr, there) = (text(&output.stderr), is_there(&taken));
    assert!(ip("del"));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("exists already and is not the lab's"), "{stderr}");
    assert!(there, "somebody else's namespace was removed");
    assert!(!is_there(&format!("{prefix}pc")));
    // An address that the kernel refuses.
    let scene = TWO_HOSTS.replace("30.0.0.10/24", "30.0.0.0/33");
    assert_eq!(run(&scene, &prefix, &["--", "true"]).status.code(), Some(1));
    assert!(!is_there(&format!("{prefix}pc")));
}

#[test]
fn two_labs_do_not_share_a_namespace() {
    let lab = lab(TWO_HOSTS);
    let prefix = lab.namespace("pc");
    let output = run(TWO_HOSTS, prefix.strip_suffix("pc").unwrap(), &["--", "true"]);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("belongs to the lab of process"), "{stderr}");
    lab.check("pc", &["ping", "-c", "1", "server"]).unwrap();
}

#[test]
fn the_thread_that_carries_packets_has_no_capabilities() {
    let mut lab = lab(TWO_HOSTS);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", lab.process().pid())).unwrap();
    let carriers: Vec<String> = tasks
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap())
        .filter(|status| status.starts_with("Name:\tlab\n"))
        .collect();
    assert_eq!(carriers.len(), 1);
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(carriers[0].contains(&format!("{set}:\t0000000000000000")), "{}", carriers[0]);
    }
}

#[test]
fn a_command_takes_the_signals_that_the_lab_waits_for() {
    let words = ["grep", "SigBlk", "/proc/self/status"];
    let without = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let output = run(TWO_HOSTS, &prefix("mask"), &["--", words[0], words[1], words[2]]);
    assert_eq!(text(&output.stdout), text(&without.stdout), "{}", text(&output.stderr));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scene.toml");
    std::fs::write(&path, TWO_HOSTS).unwrap();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut command = Command::new(binary());
        command.args(["lab", "run", "--prefix", &prefix("signal")]).arg(&path);
        // Who runs the tests in the background of a shell has had SIGINT ignored, and so all after it.
        command.args(["--", "env", "--default-signal=INT", "sh", "-c", "echo; exec sleep 20"]);
        let mut lab = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        lab.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        // The thread that started the command takes signals itself until it ends.
        let tasks = format!("/proc/{}/task", lab.id());
        wait_until("the end of the start", LIMIT, || {
            let mut tasks = std::fs::read_dir(&tasks).unwrap().flatten();
            tasks.all(|task| {
                let status = std::fs::read_to_string(task.path().join("status"));
                status.is_ok_and(|status| status.contains("SigBlk:\t0000000000014003"))
            })
        })
        .unwrap();
        let pid = Pid::from_raw(lab.id().cast_signed());
        // Ctrl-C is for all that runs in the terminal, SIGTERM for the lab only.
        match signal {
            Signal::SIGINT => killpg(pid, signal).unwrap(),
            signal => kill(pid, signal).unwrap(),
        }
        assert_eq!(lab.wait().unwrap().code(), Some(128 + signal as i32));
    }
}

#[test]
fn a_prefix_that_leads_out_of_the_folder_of_namespaces_is_refused() {
    let output = run(TWO_HOSTS, "../nigh-", &["--", "true"]);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("\"../nigh-pc\" cannot name a namespace"), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn clean_in_a_dead_labs_host_does_not_end_itself() {
    // Another test's lab that starts cleans up as well and ends what runs there.
    testbed::private_run().unwrap();
    let mut killed = lab(TWO_HOSTS);
    let name = killed.namespace("pc");
    killed.process().kill();
    let clean = Command::new("ip")
        .args(["netns", "exec", &name])
        .arg(binary())
        .args(["lab", "clean"])
        .output()
        .unwrap();
    let stdout = text(&clean.stdout);
    assert!(clean.status.success(), "{}: {}", clean.status, text(&clean.stderr));
    assert!(stdout.contains(&name), "{stdout}");
    assert!(!is_there(&name));
}

#[test]
fn a_file_that_a_killed_lab_had_begun_is_removed() {
    let clean = || Command::new(binary()).args(["lab", "clean"]).status().unwrap().success();
    // Makes the folder as well.
    assert!(clean());
    let draft = Path::new("/run/nigh-lab/.draft-4194305");
    std::fs::write(draft, "{").unwrap();
    assert!(clean());
    assert!(!draft.exists());
}

#[test]
fn traceroute_shows_the_names_of_nodes() {
    let lab = lab(TWO_HOSTS);
    for family in ["-4", "-6"] {
        let words = ["traceroute", family, "-q", "1", "-N", "1", "-w", "20", "server"];
        let output = lab.check("pc", &words).unwrap();
        let names: Vec<_> =
            output.lines().skip(1).map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(names, [Some("r1"), Some("r2"), Some("server")], "{output}");
    }
}
