//! The programs that tests, the demo and benchmarks start, by name.
//!
//! What is not named here is not started: [`check`] refuses it. The test `programs` of this crate holds
//! that `scripts/setup` installs the packages that they belong to, so that a fresh machine passes.

use crate::Error;
use std::{ffi::OsStr, process::Command};

/// Started by the demo as well: `scripts/setup demo` installs them, and so does `test` and `bench`.
pub const EVERYWHERE: &[&str] = &[
    "/usr/lib/frr/bgpd",
    "bird",
    "bridge",
    "ethtool",
    "ip",
    "ping",
    "ss",
    "tc",
    "tcpdump",
    "traceroute",
    "vtysh",
];

/// Started by tests: `scripts/setup test` installs them.
pub const TESTS: &[&str] = &[
    "/usr/bin/python3",
    "amulecmd",
    "amuled",
    "apparmor_parser",
    "aria2c",
    "bash",
    "bpftool",
    "cat",
    "cc",
    "chronyc",
    "chronyd",
    "clamd",
    "curl",
    "date",
    "diff",
    "dpkg",
    "dpkg-query",
    "eiskaltdcpp-daemon",
    "env",
    "fping",
    "grep",
    "groff",
    "gzip",
    "ii",
    "ip6tables",
    "iperf3",
    "iptables",
    "kill",
    "ls",
    "mkfifo",
    "mtr",
    "nft",
    "ngircd",
    "node",
    "opentracker",
    "pkg-config",
    "prosody",
    "python3",
    "rsync",
    "sc_warts2json",
    "scamper",
    "script",
    "setpriv",
    "sh",
    "sleep",
    "ssh",
    "sysctl",
    "systemd-analyze",
    "systemd-sysusers",
    "timeout",
    "transmission-create",
    "transmission-daemon",
    "transmission-remote",
    "transmission-show",
    "true",
    "tshark",
    "uhub",
    "unshare",
    "valgrind",
    "wget",
];

/// Started by benchmarks besides: one of the jobs `bench` of `scripts/setup` installs them.
pub const BENCHMARKS: &[&str] = &["cc", "iperf3", "kill", "sh", "sysctl", "taskset", "which"];

/// From elsewhere than Debian 12: `scripts/setup` builds or unpacks them.
pub const BUILT: &[&str] = &["gobgp", "gobgpd", "rattan", "stamp-suite", "suricata"];

/// Only for new recordings (`scripts/record-clients`), which no test makes.
pub const RECORDINGS: &[&str] =
    &["dnsmasq", "dropbear", "dropbearkey", "lftp", "mosquitto_sub", "openssl"];

/// Scripts look for them, and go without or say how to get them.
pub const OPTIONAL: &[&str] =
    &["apt-get", "cargo", "cargo-deny", "go", "rustup", "sudo", "systemctl"];

/// Refuses a program that is not named here. One with a path is the project's own, or its package was
/// looked for by whoever knows the path.
///
/// # Errors
///
/// Says what to do.
pub fn check(command: &Command) -> Result<(), Error> {
    let words: Vec<&OsStr> =
        std::iter::once(command.get_program()).chain(command.get_args()).collect();
    named(words[0])?;
    // `ip netns exec NAMESPACE PROGRAM`
    match words.as_slice() {
        [ip, netns, exec, _, program, ..]
            if (*ip, *netns, *exec) == ("ip".as_ref(), "netns".as_ref(), "exec".as_ref()) =>
        {
            named(program)
        }
        _ => Ok(()),
    }
}

/// Refuses a name that is not here.
pub(crate) fn named(program: &OsStr) -> Result<(), Error> {
    let name = program.to_string_lossy();
    let all = [EVERYWHERE, TESTS, BENCHMARKS, BUILT, RECORDINGS];
    if name.contains('/') || all.iter().any(|list| list.contains(&&*name)) {
        return Ok(());
    }
    let why =
        "it is not named in testbed's src/programs.rs, so nothing makes sure that it is installed";
    Err(Error::new(format!("starting {name}"), why))
}
