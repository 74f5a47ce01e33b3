//! Measured through one lab, imported, and run as another: the same hops.

use super::{LIMIT, binary, lab, programs::chain, routing::addresses, using::ask};
use std::{path::Path, process::Command};
use testbed::Lab;

/// The addresses on the path from one address to another through what was imported from `file`.
fn imported(file: &Path, from: &str, to: &str) -> Vec<String> {
    let network = file.with_extension("nigh");
    let words = ["lab", "import", "--json", "-o"];
    let output = Command::new(binary()).args(words).arg(&network).arg(file).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}", file.display());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["bad"].as_array().unwrap().len(), 0, "{report}");
    let mut lab = lab(&format!("[lab]\nnetwork = \"{}\"\n", network.display()));
    let path = ask(&mut lab, &["path", from, to]);
    assert!(path["stopped"].is_null(), "{path}");
    let hops = path["hops"].as_array().unwrap();
    hops.iter().map(|hop| hop["address"].as_str().unwrap().to_owned()).collect()
}

/// Runs a program in pc and writes what it prints into a file beside the scene.
fn print(lab: &Lab, name: &str, words: &[&str]) -> std::path::PathBuf {
    let finished = lab.run("pc", words, LIMIT).unwrap();
    assert!(finished.success(), "{words:?}: {}{}", finished.stdout, finished.stderr);
    let file = lab.folder().join(name);
    std::fs::write(&file, finished.stdout).unwrap();
    file
}

#[test]
fn what_traceroute_mtr_and_scamper_saw_is_imported_with_the_same_hops() {
    let mut lab = chain();
    // A host is Linux, and reports only six times at once that a port is closed.
    let limits =
        "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit; echo 0 > /proc/sys/net/ipv6/icmp/ratelimit";
    lab.check("server", &["sh", "-c", limits]).unwrap();
    for (family, to) in [("-4", "30.0.0.10"), ("-6", "2001:db8:30::10")] {
        let mut right = addresses(&mut lab, to);
        right.push(to.to_owned());
        assert_eq!(right.len(), 5, "{right:?}");
        let name = |name: &str| format!("{name}{family}");
        let warts = lab.folder().join(name("scamper") + ".warts");
        let trace = format!("trace -P icmp-paris -q 1 -w 1 {to}");
        let words = ["scamper", "-O", "warts", "-o", warts.to_str().unwrap(), "-I", &trace];
        lab.check("pc", &words).unwrap();
        let files = [
            print(&lab, &name("trace.txt"), &["traceroute", "-n", family, "-w", "20", to]),
            print(&lab, &name("icmp.txt"), &["traceroute", "-I", "-n", family, "-w", "20", to]),
            print(
                &lab,
                &name("mtr.json"),
                &["mtr", family, "-n", "-c", "2", "-i", "0.3", "--json", to],
            ),
            print(
                &lab,
                &name("mtr.txt"),
                &["mtr", family, "-n", "-c", "2", "-i", "0.3", "--report", to],
            ),
            print(&lab, &name("scamper.json"), &["sc_warts2json", warts.to_str().unwrap()]),
            warts,
        ];
        for file in files {
            let went = imported(&file, &right[0], to);
            assert_eq!(went, right, "{}", file.display());
        }
    }
}
