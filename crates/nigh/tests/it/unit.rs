//! What is in contrib/ for systemd and AppArmor, as their own tools read it. Nothing is started or loaded.

use serde_json::Value;
use std::process::Command;
use testbed::{Finished, LIMIT, Process};

/// What the sandbox leaves open, by the names of `systemd-analyze security`; decision 206 has the reasons.
const OPEN: &[&str] = &[
    "AmbientCapabilities=",
    "CapabilityBoundingSet=~CAP_BPF",
    "CapabilityBoundingSet=~CAP_NET_(BIND_SERVICE|BROADCAST|RAW)",
    "CapabilityBoundingSet=~CAP_NET_ADMIN",
    "IPAddressDeny=",
    "PrivateNetwork=",
    "PrivateUsers=",
    "ProcSubset=",
    "ProtectClock=",
    "RestrictAddressFamilies=~AF_(INET|INET6)",
    "RestrictAddressFamilies=~AF_NETLINK",
    "RestrictAddressFamilies=~AF_PACKET",
    "RestrictAddressFamilies=~AF_UNIX",
    "RootDirectory=/RootImage=",
    "SystemCallFilter=~@clock",
    "SystemCallFilter=~@privileged",
    "SystemCallFilter=~@resources",
];

/// A file in contrib/.
fn contrib(name: &str) -> String {
    format!("{}/../../contrib/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a program to its end.
fn run(line: &[&str]) -> Finished {
    let mut command = Command::new(line[0]);
    command.args(&line[1..]);
    let finished = Process::start(command).unwrap().finish(LIMIT).unwrap();
    assert!(finished.success(), "{line:?}: {}{}", finished.stdout, finished.stderr);
    finished
}

#[test]
fn the_unit_leaves_nothing_open_that_the_jobs_do_not_need() {
    let unit = contrib("nigh.service");
    let security = ["systemd-analyze", "security", "--no-pager", "--offline=true"];
    let whole = run(&[&security[..], &[&unit]].concat());
    println!("{}", whole.stdout.lines().last().unwrap_or_default());
    let table = run(&[&security[..], &["--json=short", &unit]].concat());
    let table: Vec<Value> = serde_json::from_str(&table.stdout).unwrap();
    let exposes = |row: &&Value| {
        row["exposure"].as_str().is_some_and(|exposure| exposure.parse::<f64>().unwrap() > 0.0)
    };
    let mut open: Vec<_> =
        table.iter().filter(exposes).map(|row| row["name"].as_str().unwrap()).collect();
    open.sort_unstable();
    assert_eq!(open, OPEN);
}

#[test]
fn the_user_and_the_folders_are_those_of_the_unit() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("etc")).unwrap();
    for (file, folder) in
        [("nigh.sysusers", "usr/lib/sysusers.d"), ("nigh.tmpfiles", "usr/lib/tmpfiles.d")]
    {
        let folder = root.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(contrib(file), folder.join("nigh.conf")).unwrap();
    }
    let at = format!("--root={}", root.path().display());
    run(&["systemd-sysusers", &at]);
    let users = std::fs::read_to_string(root.path().join("etc/passwd")).unwrap();
    let user = users.lines().find(|line| line.starts_with("nigh:")).expect("a user nigh");
    assert!(user.ends_with("/nologin"), "{user}");
    let unit = std::fs::read_to_string(contrib("nigh.service")).unwrap();
    let folders = std::fs::read_to_string(contrib("nigh.tmpfiles")).unwrap();
    for (setting, folder) in [
        ("ConfigurationDirectory", "/etc/nigh"),
        ("LogsDirectory", "/var/log/nigh"),
        ("RuntimeDirectory", "/run/nigh"),
        ("StateDirectory", "/var/lib/nigh"),
    ] {
        assert!(unit.contains(&format!("\n{setting}=nigh\n")), "{setting}");
        assert!(folders.contains(&format!("\nd {folder} ")), "{folder}");
    }
}

#[test]
fn apparmor_reads_the_profile() {
    run(&[
        "apparmor_parser",
        "--skip-kernel-load",
        "--skip-cache",
        &contrib("apparmor/usr.bin.nigh"),
    ]);
}
