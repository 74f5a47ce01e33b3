//! EICAR is stopped between the clients of Direct Connect (ADC and NMDC) and of eDonkey, and a clean file of the same
//! size arrives intact.

use super::{
    scanned::{Scanned, pair},
    site::{LIMIT, OUTSIDE, Site, count},
};
use testbed::{
    clients::{Amule, Ed2kServer, Eiskalt, Script, Uhub},
    wait_until,
};

const INSIDE: &str = "10.61.0.2";
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

/// Waits for so many finds, of files that were looked at to their ends.
fn found(site: &Site, found: u64) {
    let status = site.wait("a find", |status| count(&status["files"], "found") >= found);
    assert_eq!(count(&status["files"], "unscanned"), 0, "{status:#}");
}

/// Whether a file is one that has to arrive.
fn clean(name: &str) -> bool {
    name.starts_with("clean")
}

#[test]
fn adc_brings_clean_files_and_no_eicar() {
    if !testbed::require_root() {
        return;
    }
    let Scanned { site, .. } = &Scanned::start("\"directconnect\"");
    let _hub = Uhub::start(&site.outside, OUTSIDE).unwrap();
    direct_connect(site, &format!("adc://{OUTSIDE}:1511"));
}

#[test]
fn nmdc_brings_clean_files_and_no_eicar() {
    if !testbed::require_root() {
        return;
    }
    let Scanned { site, .. } = &Scanned::start("\"directconnect\"");
    let _hub = Script::start(&site.outside, "nmdc_hub.py", &[OUTSIDE, "411"]).unwrap();
    direct_connect(site, &format!("dchub://{OUTSIDE}:411"));
}

/// Clients inside fetch from one outside that they meet at a hub.
fn direct_connect(site: &Site, hub: &str) {
    // Of larger ones the client asks for parts.
    let files = files(&[68, 5_000]);
    let shared: Vec<_> = files.iter().map(|(name, content)| (&name[..], &content[..])).collect();
    let _seed = Eiskalt::start(&site.outside, "seed", OUTSIDE, 4000, hub, &shared).unwrap();
    // A client that was refused tries the same file again and again: each file has one of its own.
    for (number, (name, content)) in (1..).zip(&shared) {
        let (nick, port) = (format!("leech{number}"), 4000 + 10 * number);
        let leech = Eiskalt::start(&site.inside, &nick, INSIDE, port, hub, &[]).unwrap();
        leech.wait_user(&site.inside, "seed", LIMIT).unwrap();
        let asked = leech.fetch(&site.inside, "seed", name, LIMIT);
        assert!(asked.is_ok(), "{asked:?}: {:#?} {}", site.flows("directconnect"), site.says());
        if clean(name) {
            let arrived = wait_until(name, LIMIT, || leech.file(name).exists());
            assert!(arrived.is_ok(), "{name}: {:#?} {}", site.flows("directconnect"), site.says());
            assert!(std::fs::read(leech.file(name)).unwrap() == *content, "{name}");
        } else {
            found(site, u64::from(number) / 2);
            assert!(!leech.file(name).exists(), "{name}: {}", site.says());
        }
    }
}

#[test]
fn edonkey_brings_clean_files_and_no_eicar() {
    if testbed::require_root() {
        edonkey(&files(&[68]));
    }
}

#[test]
fn edonkey_brings_clean_files_and_no_eicar_in_packed_blocks() {
    if testbed::require_root() {
        let mut files = files(&[400_000]);
        for (_, content) in &mut files {
            // aMule packs what becomes smaller; EICAR stays as it is.
            let before = content.len() - 68;
            content[..before].fill(b'x');
        }
        edonkey(&files);
    }
}

/// Clients inside fetch from one outside that they meet at a server.
fn edonkey(files: &[(String, Vec<u8>)]) {
    let Scanned { site, .. } = &Scanned::start("\"edonkey\"");
    let mut server = Ed2kServer::start(&site.outside, OUTSIDE, false).unwrap();
    let shared: Vec<_> = files.iter().map(|(name, content)| (&name[..], &content[..])).collect();
    let _seed = Amule::start(&site.outside, OUTSIDE, SEED, false, &shared).unwrap();
    // A client asks a peer that it knows for a second file only minutes later.
    for (number, (name, content)) in (1..).zip(&shared) {
        let link = server.wait_link(name, LIMIT).unwrap();
        let leech = Amule::start(&site.inside, OUTSIDE, SEED + 10 * number, false, &[]).unwrap();
        leech.fetch(&site.inside, &link).unwrap();
        if clean(name) {
            let arrived = leech.wait_complete(name, LIMIT);
            assert!(arrived.is_ok(), "{arrived:?}: {:#?} {}", site.flows("edonkey"), site.says());
            assert!(std::fs::read(leech.file(name)).unwrap() == *content, "{name}");
        } else {
            found(site, u64::from(number) / 2);
            assert!(!leech.file(name).exists(), "{name}: {}", site.says());
        }
    }
}
