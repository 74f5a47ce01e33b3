//! EICAR is stopped between the clients of Direct Connect (ADC and NMDC) and of eDonkey, and a clean file of the same
//! size arrives intact.

use super::{
    scanned::{Scanned, pair},
    site::{EXTERNAL, INTERNAL, LIMIT, Site, count},
};
use std::time::{Duration, Instant};
use testbed::{
    Error, Namespace,
    clients::{Amule, Ed2kServer, Eiskalt, Script, Uhub},
    wait_until,
};

/// aMule's port over TCP; the one over UDP, three above, must not be the eDonkey server's.
const SEED: u16 = 4700;

/// A clean file and one with EICAR for each size, with their names.
fn files(sizes: &[usize]) -> Vec<(String, Vec<u8>)> {
    let each = sizes.iter().flat_map(|&size| {
        let [clean, virus] = pair(size);
        [(format!("clean-{size}.bin"), clean), (format!("virus-{size}.bin"), virus)]
    });
    each.collect()
}

/// Waits for so many finds, of files that were inspected to their ends, but for so many that were broken off.
fn found(site: &Site, found: u64, broken: u64) {
    let status = site.wait("a find", |status| count(&status["files"], "found") >= found);
    assert!(count(&status["files"], "unscanned") <= broken, "{broken}: {status:#}");
}

/// Whether a file is one that has to arrive.
fn clean(name: &str) -> bool {
    name.starts_with("clean")
}

#[test]
fn adc_brings_clean_files_and_no_eicar() {
    let Scanned { site, .. } = &Scanned::start("\"directconnect\"");
    let _hub = Uhub::start(&site.external, EXTERNAL).unwrap();
    direct_connect(site, &format!("adc://{EXTERNAL}:1511"));
}

#[test]
fn nmdc_brings_clean_files_and_no_eicar() {
    let Scanned { site, .. } = &Scanned::start("\"directconnect\"");
    let _hub = Script::start(&site.external, "nmdc_hub.py", &[EXTERNAL, "411"]).unwrap();
    direct_connect(site, &format!("dchub://{EXTERNAL}:411"));
}

/// Internal clients fetch from an external one that they meet at a hub.
fn direct_connect(site: &Site, hub: &str) {
    // Of larger ones the client asks for parts.
    let files = files(&[68, 5_000]);
    let shared: Vec<_> = files.iter().map(|(name, content)| (&name[..], &content[..])).collect();
    let _seed = Eiskalt::start(&site.external, "seed", EXTERNAL, 4000, hub, &shared).unwrap();
    // A client that was refused tries the same file again and again: each file has one of its own.
    for (number, (name, content)) in (1..).zip(&shared) {
        let (nick, port) = (format!("leech{number}"), 4000 + 10 * number);
        let leech = Eiskalt::start(&site.internal, &nick, INTERNAL, port, hub, &[]).unwrap();
        leech.wait_user(&site.internal, "seed", LIMIT).unwrap();
        let asked = leech.fetch(&site.internal, "seed", name, LIMIT);
        assert!(asked.is_ok(), "{asked:?}: {:#?} {}", site.flows("directconnect"), site.state());
        if clean(name) {
            let arrived = wait_until(name, LIMIT, || leech.file(name).exists());
            assert!(arrived.is_ok(), "{name}: {:#?} {}", site.flows("directconnect"), site.state());
            assert!(std::fs::read(leech.file(name)).unwrap() == *content, "{name}");
        } else {
            found(site, u64::from(number) / 2, 0);
            assert!(!leech.file(name).exists(), "{name}: {}", site.state());
        }
    }
}

#[test]
fn edonkey_brings_clean_files_and_no_eicar() {
    edonkey(&files(&[68]));
}

#[test]
fn edonkey_brings_clean_files_and_no_eicar_in_packed_blocks() {
    let mut files = files(&[400_000]);
    for (_, content) in &mut files {
        // aMule packs what becomes smaller; EICAR stays as it is.
        let before = content.len() - 68;
        content[..before].fill(b'x');
    }
    edonkey(&files);
}

/// How long a client may leave unread what has arrived.
const UNREAD: Duration = Duration::from_secs(5);

/// Internal clients fetch from an external one that they meet at a server.
fn edonkey(files: &[(String, Vec<u8>)]) {
    let Scanned { site, .. } = &Scanned::start("\"edonkey\"");
    let mut broken = 0;
    for (number, (name, content)) in (1..).zip(files) {
        let finds = u64::from(number) / 2;
        let done = |leech: &Amule| match clean(name) {
            true => leech.received(name).as_ref() == Some(content),
            false => count(&site.status()["files"], "found") >= finds,
        };
        // Each attempt has a server, a seed and a client of its own: only minutes later does a client ask a peer
        // that it knows for a second file, or a server again who has the first.
        let leech = loop {
            let port = SEED + 10 * (number + broken);
            let mut server = Ed2kServer::start(&site.external, EXTERNAL, false).unwrap();
            let shared = [(&name[..], &content[..])];
            let _seed = Amule::start(&site.external, EXTERNAL, port, false, &shared).unwrap();
            let link = server.wait_link(name, LIMIT).unwrap();
            let leech = Amule::start(&site.internal, EXTERNAL, port, false, &[]).unwrap();
            leech.fetch(&site.internal, &link).unwrap();
            let over = done_or_unread(site, || done(&leech));
            let state =
                || format!("{} {:#?} {}", leech.wrote(), site.flows("edonkey"), site.state());
            if over.unwrap_or_else(|error| panic!("{name}: {error:?} {}", state())) {
                break leech;
            }
            broken += 1;
        };
        if !clean(name) {
            found(site, finds, broken.into());
            assert!(!leech.file(name).exists(), "{name}: {}", site.state());
        }
    }
}

/// Waits until a transfer is done, or until aMule does not read what the gate has brought to it: then it is not.
///
/// aMule 2.3.3 watches each socket with four threads. On a busy machine one of them can come when another has
/// read all: it takes the missing bytes for the connection's end, and reads nothing more. aMule gives the
/// connection up after 40 seconds and asks the same peer again some 20 minutes later; a new client asks at
/// once. What has not arrived is no such case, and no reason for another attempt.
fn done_or_unread(site: &Site, done: impl Fn() -> bool) -> Result<bool, Error> {
    let mut since = None;
    let mut is_done = false;
    wait_until("aMule", LIMIT, || {
        is_done = done();
        let waits = unread(&site.internal, EXTERNAL) || unread(&site.external, INTERNAL);
        since = waits.then(|| since.unwrap_or_else(Instant::now));
        is_done || since.is_some_and(|since| since.elapsed() >= UNREAD)
    })?;
    Ok(is_done)
}

/// Whether bytes wait at a host, in its connections with an address, for its programs to read them.
fn unread(host: &Namespace, with: &str) -> bool {
    let wrote = host.check(&["ss", "-Htn", "state", "established", "dst", with]).unwrap();
    wrote.lines().any(|line| line.split_whitespace().next() != Some("0"))
}
