//! EICAR is stopped on every plain path, and a clean file of the same size arrives intact.

use super::{
    site::{EXTERNAL, Site, count},
    web::Web,
};
use testbed::{
    Namespace,
    clients::{Clamd, Script, eicar, noise},
};

/// Sizes: EICAR alone, a packet or two, more than a stream may wait with, more than what is sent to clamd again.
const SIZES: [usize; 4] = [68, 5_000, 2_500_000, 12_000_000];

/// A site whose files are scanned.
pub(super) struct Scanned {
    pub(super) site: Site,
    _clamd: Clamd,
    _namespace: Namespace,
}

impl Scanned {
    pub(super) fn start(application: &str) -> Self {
        Self::with(application, "")
    }

    /// With more of `[gate.scan]`.
    pub(super) fn with(application: &str, scan: &str) -> Self {
        // The gate reaches clamd by its socket in the file system, so its namespace does not matter.
        let namespace = Namespace::new("clamd").unwrap();
        let clamd = Clamd::start(&namespace, None).unwrap();
        let site = Site::start(&format!(
            "refuse_for = \"0s\"\non_failure = \"drop\"\n[[gate.file]]\nname = \"no-virus\"\naction = \"scan\"\n\
             application = [{application}]\n[gate.scan]\n{scan}\nclamd = \"{}\"\n",
            clamd.socket().display()
        ));
        Self { site, _clamd: clamd, _namespace: namespace }
    }
}

/// A clean file and one of the same size with EICAR at its end.
pub(super) fn pair(size: usize) -> [Vec<u8>; 2] {
    let clean = noise(size as u64, size);
    let mut found = clean.clone();
    let eicar = eicar();
    found[size - eicar.len()..].copy_from_slice(&eicar);
    [clean, found]
}

#[test]
fn http_brings_clean_files_and_no_eicar() {
    let Scanned { site, .. } = &Scanned::start("\"http\"");
    let web = Web::start(site);
    let mut found = 0;
    for size in SIZES {
        let [clean, virus] = pair(size);
        web.offer("clean.bin", &clean);
        web.offer("virus.bin", &virus);
        for form in ["length", "chunked", "close"] {
            let got = web.fetch(site, form, "clean.bin");
            assert!(got.as_ref() == Some(&clean), "{form} {size}: {}", site.state());
            let got = web.fetch(site, form, "virus.bin");
            assert!(got.as_ref() != Some(&virus), "{form} {size}: {}", site.state());
            found += 1;
        }
        for form in ["length", "chunked"] {
            assert!(web.bring(site, form, "brought", &clean), "{form} {size}: {}", site.state());
            assert!(web.brought("brought") == Some(clean.clone()), "{form} {size}");
            assert!(!web.bring(site, form, "stopped", &virus), "{form} {size}: {}", site.state());
            assert!(web.brought("stopped").is_none(), "{form} {size}");
            found += 1;
        }
    }
    let status = site.wait("all finds", |status| count(&status["files"], "found") >= found);
    assert_eq!(count(&status["files"], "found"), found, "{status:#}");
    assert_eq!(count(&status["files"], "unscanned"), 0, "{status:#}");
}

/// A response as some servers write it, or as one does who wants to pass unread.
#[test]
fn odd_http_brings_no_eicar() {
    let Scanned { site, .. } = &Scanned::with("\"http\"", "on_failure = \"refuse\"");
    let web = Web::start(site);
    let mut found = 0;
    for size in &SIZES[..3] {
        let [clean, virus] = pair(*size);
        web.offer("clean.bin", &clean);
        web.offer("virus.bin", &virus);
        for form in ["blanks", "digits"] {
            let got = web.fetch(site, form, "clean.bin");
            assert!(got.as_ref() == Some(&clean), "{form} {size}: {}", site.state());
            let got = web.fetch(site, form, "virus.bin");
            assert!(got.as_ref() != Some(&virus), "{form} {size}: {}", site.state());
            found += 1;
        }
    }
    let status = site.wait("all finds", |status| count(&status["files"], "found") >= found);
    assert_eq!(count(&status["files"], "found"), found, "{status:#}");
    assert_eq!(count(&status["files"], "unscanned"), 0, "{status:#}");
    // Chromium does not read the chunks that curl reads: nobody can say what is in it.
    assert!(web.fetch(site, "old", "clean.bin").is_none(), "{}", site.state());
    site.wait("what was not scanned", |status| count(&status["files"], "unscanned") == 1);
}

#[test]
fn ftp_brings_clean_files_and_no_eicar() {
    let Scanned { site, .. } = &Scanned::start("\"ftp\", \"ftp-data\"");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let served = folder.path().to_str().unwrap();
    let _server = Script::start(&site.external, "ftp_server.py", &[EXTERNAL, served]).unwrap();
    let fetched = tempfile::tempdir().unwrap();
    let to = fetched.path().join("file");
    let url = |name: &str| format!("ftp://{EXTERNAL}/{name}");
    let mut found = 0;
    for size in SIZES {
        let [clean, virus] = pair(size);
        std::fs::write(path("clean.bin"), &clean).unwrap();
        std::fs::write(path("virus.bin"), &virus).unwrap();
        // EPSV, PASV, EPRT and PORT.
        for form in ["--ftp-pasv", "--disable-epsv", "--ftp-port -", "--disable-eprt --ftp-port -"]
        {
            let mut words = vec!["curl", "-s", "-S", "-m", "20", "-o", to.to_str().unwrap()];
            words.extend(form.split(' '));
            let fetch = |name: &str| {
                let whole = site.client(&[&words[..], &[&url(name)]].concat());
                let content = std::fs::read(&to);
                let _ = std::fs::remove_file(&to);
                content.ok().filter(|_| whole)
            };
            let got = fetch("clean.bin");
            assert!(got.as_ref() == Some(&clean), "{form} {size}: {}", site.state());
            let got = fetch("virus.bin");
            assert!(got.as_ref() != Some(&virus), "{form} {size}: {}", site.state());
            found += 1;
        }
        let bring = |from: &str, name: &str| {
            let (from, url) = (path(from), url(name));
            site.client(&["curl", "-s", "-S", "-m", "20", "-T", from.to_str().unwrap(), &url]);
            std::fs::read(path(name)).ok()
        };
        assert!(bring("clean.bin", "brought") == Some(clean), "{size}: {}", site.state());
        assert!(bring("virus.bin", "stopped") != Some(virus), "{size}: {}", site.state());
        found += 1;
    }
    let status = site.wait("all finds", |status| count(&status["files"], "found") >= found);
    assert_eq!(count(&status["files"], "unscanned"), 0, "{status:#}");
}
