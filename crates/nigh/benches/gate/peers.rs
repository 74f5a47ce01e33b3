//! Gateways of others: a program at NFQUEUE with nDPI (peer/nfqueue.c), and Suricata inline.

use crate::{Failure, stage::Stage};
use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use testbed::{Process, wait_until};

/// Queues and threads of either: one a processor.
pub(crate) const QUEUES: u16 = 2;
/// How long a gateway may take to be ready; Suricata compiles its patterns.
const START: Duration = Duration::from_secs(60);

/// A gateway at work; taken away when dropped.
pub(crate) struct Peer<'a> {
    stage: &'a Stage,
    process: Process,
}

impl Peer<'_> {
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Stops it and returns what it reports.
    pub(crate) fn end(mut self) -> Result<String, Failure> {
        self.process.signal(nix::sys::signal::Signal::SIGTERM)?;
        let mut ended = false;
        wait_until("the peer's end", START, || {
            ended = self.process.ended().is_some();
            ended
        })?;
        Ok(self.process.stdout())
    }
}

impl Drop for Peer<'_> {
    fn drop(&mut self) {
        for table in ["filter", "mangle"] {
            let _ = self.stage.gate.check(&["iptables", "-w", "-t", table, "-F"]);
        }
    }
}

/// Where sources and built peers are.
fn home(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// Compiles the program at NFQUEUE. `Err`: what is missing.
fn build(stage: &Stage) -> Result<Result<PathBuf, String>, Failure> {
    let program = stage.folder.path().join("nfqueue");
    if program.exists() {
        return Ok(Ok(program));
    }
    let line = "cc -O2 -o \"$1\" \"$2\" $(pkg-config --cflags --libs libndpi libnetfilter_queue) -lpthread";
    let output = Command::new("sh")
        .args(["-ec", line, "sh"])
        .arg(&program)
        .arg(home("benches/gate/peer/nfqueue.c"))
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Ok(Err(format!("it cannot be built (`scripts/setup bench-gate`): {why}")));
    }
    Ok(Ok(program))
}

/// The words of iptables that queue what is forwarded.
fn rules(stage: &Stage, mark: bool) -> Result<(), Failure> {
    let queues = format!("0:{}", QUEUES - 1);
    let queue = ["-j", "NFQUEUE", "--queue-balance", &queues];
    let add = |words: &[&str]| stage.gate.check(&[&["iptables", "-w"], words].concat()).map(drop);
    if mark {
        // What carries a mark after the queue is decided, and so is its connection.
        let decided = ["-m", "connmark", "--mark", "1", "-j", "ACCEPT"];
        add(&[&["-t", "mangle", "-A", "FORWARD"], &decided[..]].concat())?;
        let save = ["-m", "mark", "--mark", "1", "-j", "CONNMARK", "--save-mark"];
        add(&[&["-A", "FORWARD"], &save[..]].concat())?;
    }
    add(&[&["-t", "mangle", "-A", "FORWARD"], &queue[..]].concat())?;
    Ok(())
}

/// Starts the program at NFQUEUE; `mark`: with rules that let decided connections by.
pub(crate) fn nfqueue<'a>(
    stage: &'a Stage,
    words: &[&str],
    mark: bool,
) -> Result<Result<Peer<'a>, String>, Failure> {
    let program = match build(stage)? {
        Ok(program) => program,
        Err(why) => return Ok(Err(why)),
    };
    let queues = QUEUES.to_string();
    let program = program.to_string_lossy().into_owned();
    let line = [&[program.as_str()], words, &[&queues]].concat();
    let mut peer = Peer { stage, process: stage.gate.spawn(&line)? };
    let mut ended = false;
    wait_until("the program at NFQUEUE", START, || {
        ended = peer.process.ended().is_some();
        ended || peer.process.stdout().contains("ready")
    })?;
    if ended {
        return Ok(Err(peer.process.stderr()));
    }
    rules(stage, mark)?;
    Ok(Ok(peer))
}

/// As many rules as the paper's gateway had, for the same applications.
fn signatures() -> String {
    let patterns = [
        "|13|BitTorrent protocol",
        "d1|3a|ad2|3a|id20|3a|",
        "announce?info_hash",
        "BT-SEARCH",
        "GNUTELLA CONNECT",
        "GNUTELLA/0.6",
        "GND|02|",
        "urn|3a|sha1",
        "|24|MyNick ",
        "|24|Lock ",
        "|24|ADCGET ",
        "HSUP ADBASE",
        "|e3 00 00 00 01|",
        "|c5 00 00 00 01|",
        "X-Kazaa-",
        "GIVE KazaA",
        "GET sha1|3a|",
        "X-Gnutella-",
        "MSG IM",
        "USR |30| ",
    ];
    let mut text = String::new();
    for (number, pattern) in patterns.iter().enumerate() {
        text.push_str(&format!(
            "alert tcp any any -> any any (msg:\"pattern {number}\"; flow:established; \
             content:\"{pattern}\"; depth:256; sid:{}; rev:1;)\n",
            number + 1
        ));
    }
    text
}

/// Starts Suricata at the same queues, with its own configuration of Debian and the rules above.
pub(crate) fn suricata(stage: &Stage) -> Result<Result<Peer<'_>, String>, Failure> {
    let own = home("../../target/peers/suricata");
    let unpacked = own.join("usr/bin/suricata");
    let (program, etc) = if unpacked.exists() {
        (unpacked, own.join("etc/suricata"))
    } else if Command::new("suricata").arg("-V").output().is_ok() {
        (PathBuf::from("suricata"), PathBuf::from("/etc/suricata"))
    } else {
        return Ok(
            Err("there is no suricata (`scripts/setup bench-gate` looks for it)".to_owned()),
        );
    };
    let folder = stage.folder.path().join("suricata");
    std::fs::create_dir_all(&folder)?;
    let rules_file = folder.join("rules");
    std::fs::write(&rules_file, signatures())?;
    let libraries = own.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", format!("{0}:{0}/dpdk/pmds-23.0", libraries.display()));
    command
        .arg("-c")
        .arg(etc.join("suricata.yaml"))
        .arg("-S")
        .arg(&rules_file)
        .arg("-l")
        .arg(&folder);
    command.args(["--runmode", "workers", "--set", "nfq.batchcount=20"]);
    for (key, file) in [
        ("classification-file", "classification.config"),
        ("reference-config-file", "reference.config"),
        ("threshold-file", "threshold.config"),
    ] {
        command.arg("--set").arg(format!("{key}={}", etc.join(file).display()));
    }
    command.arg("--pidfile").arg(folder.join("pid"));
    command.arg("--set").arg(format!("unix-command.filename={}", folder.join("socket").display()));
    for queue in 0..QUEUES {
        command.arg("-q").arg(queue.to_string());
    }
    let mut peer = Peer { stage, process: stage.gate.start(command)? };
    let mut ended = false;
    let wrote = |process: &Process| process.stdout() + &process.stderr();
    let up = wait_until("Suricata", START, || {
        ended = peer.process.ended().is_some();
        ended || wrote(&peer.process).contains("ngine started")
    });
    if ended || up.is_err() {
        return Ok(Err(format!("it did not start: {}", wrote(&peer.process).trim())));
    }
    rules(stage, false)?;
    Ok(Ok(peer))
}
