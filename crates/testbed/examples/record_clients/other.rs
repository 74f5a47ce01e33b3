//! What is not file sharing between peers, and must not be called so: the web, mail, names, chat,
//! file transfer, shells, clocks, loads and random bytes; also between hosts that share files.

use super::{
    Scene,
    bittorrent::{self, Odd},
    cut::MUCH,
    lan::Lan,
};
use std::{path::Path, time::Duration};
use testbed::{
    Chrony, Error, Namespace,
    clients::{Ngircd, Peer, Prosody, Script, noise},
};

/// Nothing of it is file sharing.
pub(crate) const OTHER: &[&str] = &["any *:* *:* other plain"];

pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "background", least: 150, truth: OTHER, keep: MUCH, play: background },
    Scene { name: "chat", least: 4, truth: OTHER, keep: MUCH, play: chat },
    Scene { name: "transfer", least: 40, truth: OTHER, keep: MUCH, play: transfer },
    Scene {
        name: "bt-among-others",
        least: 100,
        truth: &[
            "any *:* 10.60.0.9:* other plain",
            "udp *:* *:53 other plain",
            "udp *:* *:* bittorrent plain",
            "tcp *:* *:6969 bittorrent plain",
            "tcp *:* *:* bittorrent hidden",
        ],
        keep: MUCH,
        play: among_others,
    },
];

/// How long one of the clients may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Five hosts talk with one that serves all of peers/background.py.
fn background(lan: &mut Lan) -> Result<(), Error> {
    let hosts = lan.hosts(6)?;
    let folder = folder()?;
    let certificate = certificate(&hosts[0], folder.path())?;
    let _server = Script::start(&hosts[0], "background.py", &["serve", "10.60.0.1", &certificate])?;
    (2..).zip(&hosts[1..]).try_for_each(|(seed, host): (u64, _)| talk(host, "10.60.0.1", seed, 7))
}

/// A hidden swarm; its hosts meanwhile do everything else, too.
fn among_others(lan: &mut Lan) -> Result<(), Error> {
    let hosts = lan.hosts(9)?;
    let folder = folder()?;
    let certificate = certificate(&hosts[8], folder.path())?;
    let _server = Script::start(&hosts[8], "background.py", &["serve", "10.60.0.9", &certificate])?;
    bittorrent::swarm(&hosts[..8], 50, Odd::Aria2, &Peer::hidden, &|| {
        (12..)
            .zip(&hosts[1..6])
            .try_for_each(|(seed, host): (u64, _)| talk(host, "10.60.0.9", seed, 4))
    })
}

/// People talk over IRC and XMPP.
fn chat(lan: &mut Lan) -> Result<(), Error> {
    let hosts = lan.hosts(5)?;
    let _irc = Ngircd::start(&hosts[0], "10.60.0.1")?;
    let _xmpp = Prosody::start(&hosts[0], "10.60.0.1", &["ann", "bob", "cid"])?;
    let folder = folder()?;
    let at = folder.path().to_string_lossy().into_owned();
    let mut people = Vec::new();
    for (nick, host) in ["ann", "bob", "cid"].iter().zip(&hosts[1..]) {
        let home = format!("{at}/{nick}");
        people.push(host.spawn(&["ii", "-s", "10.60.0.1", "-i", &home, "-n", nick])?);
        let server = folder.path().join(nick).join("10.60.0.1");
        say(&server, "/j #room")?;
        say(&server.join("#room"), "hello from here")?;
    }
    let mut waiting = Script::start(
        &hosts[1],
        "xmpp_client.py",
        &["10.60.0.1", "ann@test.example", "secret", "wait"],
    )?;
    for (number, host) in hosts[1..4].iter().enumerate() {
        let words = [
            "10.60.0.1",
            ["ann", "bob", "cid"][number],
            "secret",
            "send",
            "ann@test.example",
            "good morning",
        ];
        let user = format!("{}@test.example", words[1]);
        Script::check(host, "xmpp_client.py", &[&[words[0], &user], &words[2..]].concat())?;
    }
    testbed::wait_until("three messages", LIMIT, || {
        waiting.process().stdout().matches("good morning").count() == 3
    })
    .map(drop)
}

/// Writes a line to one of ii's pipes once that is there.
fn say(folder: &Path, line: &str) -> Result<(), Error> {
    let pipe = folder.join("in");
    testbed::wait_until("ii's pipe", LIMIT, || pipe.exists())?;
    std::fs::write(&pipe, format!("{line}\n"))
        .map_err(|error| Error::new(pipe.to_string_lossy(), error))
}

/// FTP, SSH, NTP and loads.
fn transfer(lan: &mut Lan) -> Result<(), Error> {
    let hosts = lan.hosts(4)?;
    let folder = folder()?;
    let at = folder.path().to_string_lossy().into_owned();
    std::fs::write(folder.path().join("file.bin"), noise(1, 50_000))
        .map_err(|error| Error::new("writing a file", error))?;
    let server = &hosts[0];
    let key = format!("{at}/key");
    server.check(&["dropbearkey", "-t", "ed25519", "-f", &key])?;
    let _ftp = Script::start(server, "ftp_server.py", &["10.60.0.1", &at])?;
    let _ssh = server.spawn(&["dropbear", "-F", "-E", "-r", &key, "-p", "22"])?;
    let _ntp = Chrony::start(server, "local stratum 3\nallow all\n")?;
    let _load = server.spawn(&["iperf3", "-s"])?;
    let mut clocks = Vec::new();
    for host in &hosts[1..] {
        clocks.push(Chrony::start(host, "server 10.60.0.1 iburst\n")?);
        for form in ["--ftp-pasv", "--ftp-port=-", "--disable-epsv"] {
            let form: Vec<_> = form.split('=').collect();
            let words = ["curl", "-s", "-S", "-o", "/dev/null", "ftp://10.60.0.1/file.bin"];
            host.check(&[&words[..], &form].concat())?;
        }
        host.check(&["lftp", "-c", "open 10.60.0.1; ls; cat file.bin"])?;
        for _ in 0..4 {
            // It gets as far as the question who we are; the rest of a session is encrypted, too.
            let words =
                ["ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"];
            let ask = ["-o", "BatchMode=yes", "nobody@10.60.0.1", "true"];
            host.run(&[&words[..], &ask].concat(), LIMIT)?;
        }
        let load = ["iperf3", "-c", "10.60.0.1", "-n", "500K"];
        testbed::wait_until("iperf3", LIMIT, || host.check(&load).is_ok())?;
        host.check(&[&load[..], &["-u", "-b", "20M"]].concat())?;
    }
    Ok(())
}

fn talk(host: &Namespace, server: &str, seed: u64, count: u32) -> Result<(), Error> {
    let (seed, count) = (seed.to_string(), count.to_string());
    Script::check(host, "background.py", &["talk", server, &seed, &count]).map(drop)
}

/// A key and its certificate in one file, `server.pem`; the certificate is also in `server.pem.crt`.
pub(crate) fn certificate(namespace: &Namespace, folder: &Path) -> Result<String, Error> {
    let path = folder.join("server.pem").to_string_lossy().into_owned();
    let words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let how = ["-nodes", "-subj", "/CN=server.test.example", "-keyout", &path, "-out"];
    namespace.check(&[&words[..], &how, &[&format!("{path}.crt")]].concat())?;
    let certificate = std::fs::read(format!("{path}.crt"));
    let both = certificate
        .and_then(|more| Ok([std::fs::read(&path)?, more].concat()))
        .and_then(|both| std::fs::write(&path, both));
    both.map_err(|error| Error::new(&path, error))?;
    Ok(path)
}

pub(crate) fn folder() -> Result<tempfile::TempDir, Error> {
    tempfile::tempdir().map_err(|error| Error::new("making a folder", error))
}
